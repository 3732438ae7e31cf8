"""Tests of the records: they match their plans, and chapters read what they contain."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_plans import OTHER, PLAN, SIZES, TINY, WIDER, record_of, write_plan

from experiments.harness.configuration import Run
from experiments.harness.fingerprint import is_current
from experiments.harness.plan import PLANS, Plan
from experiments.harness.step_times import measure_missing, missing_models
from experiments.harness.step_times import read as read_times
from experiments.harness.texts import SUBWORDS, load_texts
from experiments.records.lines import read_lines, write_line, write_lines
from experiments.records.runs import (
    RESULTS,
    STEP_TIMES,
    RunRecord,
    arrange,
    of_modified_code,
    read_plan,
    read_results,
    read_step_times,
    write_run,
)

ROOT = PLANS.parent.parent


def chapters() -> dict[str, str]:
    """Return the source of every chapter that the book executes, by its name in the contents."""
    names = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    paths = {name: ROOT / f"{name}.py" for name in names}
    return {n: p.read_text(encoding="utf-8") for n, p in paths.items() if p.exists()}


PLAN_NAMES = sorted(path.stem for path in PLANS.glob("*.toml"))
Plans = dict[str, Plan]
Recorded = dict[str, dict[str, RunRecord]]


def each_record(recorded: Recorded) -> Iterator[tuple[str, RunRecord]]:
    """Yield all records, each with its plan and its name."""
    for plan, runs in recorded.items():
        for name, record in runs.items():
            yield f"{plan}/{name}", record


# -- the files -------------------------------------------------------------------------------


def test_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "results" / "tiny.jsonl"
    losses = [0.1 + 0.2, 1e-300, 1 / 3, 12345678901234567890.0]
    first, second = {"loss": losses, "title": "Γ\n\u2028"}, {"loss": [], "cut": None}
    write_line(path, "plain-0", first)
    write_line(path, "plain-1", second)
    lines = read_lines(path)
    assert [*lines] == ["plain-0", "plain-1"]
    assert lines["plain-0"] == {"run": "plain-0", **first}
    write_line(path, "plain-0", second)
    assert read_lines(path)["plain-0"]["loss"] == []
    assert len(path.read_text("utf-8").split("\n")) == 3, "a line a run"


def test_kill_while_a_record_is_written_leaves_all_others_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.jsonl"
    write_line(path, "plain-0", {"digest": "a"})
    before = path.read_bytes()

    def killed(self: Path, text: str, **_: str) -> None:
        with self.open("w") as file:
            file.write(text[: len(text) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        write_line(path, "plain-1", {"digest": "b"})
    monkeypatch.undo()
    assert path.read_bytes() == before
    write_line(path, "plain-1", {"digest": "b"})
    assert [*read_lines(path)] == ["plain-0", "plain-1"]


def test_git_merges_the_runs_that_two_branches_recorded(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)

    path = tmp_path / "experiments" / "results" / "tiny.jsonl"
    write_line(path, "plain-0", {"digest": "a"})
    shutil.copy(ROOT / ".gitattributes", tmp_path)
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "other")
    write_line(path, "plain-1", {"digest": "b"})
    git("commit", "-q", "-a", "-m", "two")
    git("checkout", "-q", "main")
    write_line(path, "plain-2", {"digest": "c"})
    git("commit", "-q", "-a", "-m", "three")
    git("merge", "-q", "other", "-m", "both")
    assert {*read_lines(path)} == {"plain-0", "plain-1", "plain-2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"run": "a"}\n{"run": "b", "dig', "line 2 is no whole record"),
        ('{"digest": "a"}\n', "line 1 is no whole record"),
        ('["run"]\n', "line 1 is no whole record"),
        ("<<<<<<< HEAD\n", "line 1 is no whole record"),
        ('{"run": "a"}\n{"run": "b"}\n{"run": "a"}\n', "line 3: a is recorded twice"),
    ],
)
def test_error_of_a_file_that_cannot_be_read_names_it_and_the_line(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "tiny.jsonl").write_text(text)
    with pytest.raises(ValueError, match=rf"tiny\.jsonl, {message}"):
        read_lines(tmp_path / "tiny.jsonl")


def test_run_that_another_plan_recorded_is_found_there(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path)
    names = OTHER.lines(read_results(tmp_path))
    arrange("other", names, tmp_path)
    assert read_results(tmp_path).keys() == {
        *PLAN.lines(read_results(tmp_path)).values()
    }
    runs = read_plan("other", tmp_path)
    assert runs["same-1"] == read_plan("tiny", tmp_path)["plain-1"]
    assert [*runs] == [
        name for name in names if name.startswith(("same", "tuning-same"))
    ][:4]
    # The other plan records the run again, with other settings.
    changed = record_of(replace(TINY, batch=8))
    write_run("tiny", "plain-1", changed, tmp_path)
    with pytest.raises(ValueError, match=r"same-1 is not recorded as plain-1 in tiny"):
        read_plan("other", tmp_path)


def test_lines_of_a_plan_are_in_the_order_of_its_runs(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path)
    names = PLAN.lines(read_results(tmp_path))
    records = read_plan("tiny", tmp_path)
    mixed = {name: records[name] for name in sorted(records, reverse=True)}
    write_lines(tmp_path / "tiny.jsonl", mixed)
    write_run("tiny", "unknown-0", record_of(WIDER), tmp_path)
    arrange("tiny", names, tmp_path)
    assert [*read_plan("tiny", tmp_path)] == [*names, "unknown-0"]


# -- the recorded runs -----------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAN_NAMES)
def test_record_matches_its_configuration_and_its_plan(
    name: str, plans: Plans, recorded: Recorded, known: dict[str, RunRecord]
) -> None:
    asked = plans[name].lines(known)
    file = f"{name}.jsonl"
    for run, record in recorded.get(name, {}).items():
        assert record["digest"] == Run.of(record["configuration"]).digest, run
        assert run in asked, (
            f"no plan has {run} of {file}: delete its line, or restore the plan"
        )
        assert asked[run] == record["digest"], (
            f"{run} of {file} was recorded with another configuration: delete its line, and run "
            f"make experiments ONLY={name}"
        )
    digests = {run: record["digest"] for run, record in read_plan(name).items()}
    if plans[name].unfinished:
        asked = {run: digest for run, digest in asked.items() if run in digests}
    assert list(digests.items()) == list(asked.items()), f"make experiments ONLY={name}"


def test_every_finished_plan_has_records_and_no_other_name_has(
    plans: Plans, recorded: Recorded
) -> None:
    finished = {name for name, plan in plans.items() if not plan.unfinished}
    for name in finished - {*recorded}:
        pytest.fail(
            f"{name} has no records: make experiments ONLY={name}, or let its plan be unfinished"
        )
    assert {*recorded} <= {*PLAN_NAMES}, (
        "records without a plan: restore it, or delete them"
    )


def test_configuration_of_a_record_still_builds_its_model(recorded: Recorded) -> None:
    # A digest does not cover the definition of a preset.
    sizes: dict[Any, int] = {}
    symbols = {"subwords": SUBWORDS} | {
        data: load_texts(data).vocab_size for data in ("characters", "code")
    }
    for name, record in each_record(recorded):
        run = Run.of(record["configuration"])
        key = (run.preset, run.data, json.dumps(run.model, sort_keys=True))
        if key not in sizes:
            with torch.device("meta"):
                model = run.build(symbols[run.data])
            sizes[key] = sum(p.numel() for p in model.parameters())
        assert record["parameters"] == sizes[key], name


def test_no_selected_rate_is_the_lowest_or_highest_tried(
    plans: Plans, known: dict[str, RunRecord]
) -> None:
    # There may be a better one beyond it: add more to the plan.
    for plan in plans.values():
        tuning, _ = plan.missing(known)
        for name, model in plan.models.items():
            if not (plan.unfinished or tuning) and len(plan.rates) > 1:
                chosen = plan.rate(model, known)
                assert min(plan.rates) < chosen < max(plan.rates), (
                    f"{plan.name}: {name} does best at {chosen:g}, the last rate tried: add the next one to "
                    f"experiments/plans/{plan.name}.toml, and run make experiments ONLY={plan.name}"
                )


@pytest.mark.parametrize(
    "name",
    [
        name if name == "live" else pytest.param(name, marks=pytest.mark.nightly)
        for name in PLAN_NAMES
    ],
)
def test_code_still_computes_what_was_recorded(name: str, recorded: Recorded) -> None:
    runs = recorded.get(name, {}).items()
    stale = [run for run, record in runs if not is_current(record)]
    assert not stale, (
        f"the code computes something else now: make experiments ONLY={name}"
    )


def test_recorded_code_is_committed_and_in_the_history(
    recorded: Recorded,
) -> None:
    def git(*words: str) -> str:
        return subprocess.check_output(["git", "-C", str(ROOT), *words], text=True)

    whole = git("rev-parse", "--is-shallow-repository").strip() == "false"
    history = set(git("rev-list", "HEAD").split())

    def cannot_be_looked_up(record: RunRecord) -> bool:
        commits = {part["commit"] for part in (record, *record.get("earlier", []))}
        return of_modified_code(record) or (whole and not commits <= history)

    found = {
        plan: [name for name, run in runs.items() if cannot_be_looked_up(run)]
        for plan, runs in recorded.items()
    }
    assert {plan: runs for plan, runs in found.items() if runs} == {}


def test_no_record_names_the_home_folder_of_its_machine() -> None:
    for path in [*RESULTS.glob("*.json*"), *RESULTS.glob("search/*")]:
        assert str(Path.home()) not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("name", PLAN_NAMES)
def test_recorded_step_times_are_those_of_the_models_that_the_plan_has_now(
    name: str, plans: Plans
) -> None:
    if plans[name].timed:
        changed = missing_models(plans[name], read_times(RESULTS))
        assert not changed, f"make experiments ONLY={name}"


def test_chapters_give_the_command_of_every_finished_plan_and_no_other(
    plans: Plans,
) -> None:
    command = r"make experiments ONLY=(\w+)"
    page = (ROOT / "book" / "pages" / "write.md").read_text(encoding="utf-8")
    named = re.findall(command, "\n".join([*chapters().values(), page]))
    families = {name.partition("-")[0] for name in PLAN_NAMES}
    finished = {
        name.partition("-")[0] for name, plan in plans.items() if not plan.unfinished
    }
    for name in finished - {*named}:
        pytest.fail(
            f"no chapter of experiments/chapters gives the command of {name}: write "
            f"`make experiments ONLY={name}` where one shows its runs, or let the plan be unfinished"
        )
    assert {*named} <= families


def test_building_the_book_does_not_import_what_trains_the_plans() -> None:
    trains = {"experiments.harness.run", "experiments.harness.step_times"}
    trains |= {"experiments.harness.long_run"}
    assert "experiments/chapters/ours" in chapters()
    code = ["import sys"]
    for chapter, source in chapters().items():
        # The book executes all of a chapter, so imports count at any depth.
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                code += [ast.unparse(node)]
        code += [f"assert not {trains} & sys.modules.keys(), '{chapter}'"]
    text = "\n".join(code)
    subprocess.run([sys.executable, "-"], cwd=ROOT, check=True, text=True, input=text)


# -- what chapters read ----------------------------------------------------------------------


def test_step_time_of_every_model_is_measured_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wider = replace(TINY, model=SIZES | {"d_ff": 1024})
    plan = replace(PLAN, models={"plain": TINY, "wider": wider})
    # Seed and length do not change a step.
    same = replace(TINY, seed=7, rate=0.5, steps=9)
    plans = [plan, replace(plan, name="other", models={"same": same})]
    measure_missing(plans, tmp_path, tmp_path)
    measured = read_step_times(tmp_path)
    assert min(measured["tiny"].values()) > 0
    assert measured["tiny"]["wider"] != measured["tiny"]["plain"]
    assert measured["other"]["same"] == measured["tiny"]["plain"]
    assert json.loads((tmp_path / STEP_TIMES).read_text())["machine"]
    measure_missing(plans, tmp_path, tmp_path)
    assert read_step_times(tmp_path) == measured
    plans[1] = replace(plan, name="other", models={"same": same, "new": TINY})
    measure_missing(plans, tmp_path, tmp_path)
    assert read_step_times(tmp_path)["other"].keys() == plans[1].models.keys()
    assert re.findall(r"a step of (\d)", capsys.readouterr().out) == ["2", "1"]
