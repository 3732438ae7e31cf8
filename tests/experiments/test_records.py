"""Tests of the records: they match their plans, and chapters read what they contain."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_plans import PLAN, SIZES, TINY, WIDER, found, record

from experiments.harness.configuration import Run
from experiments.harness.long_run import is_current
from experiments.harness.plan import PLANS, gather, read_plans
from experiments.harness.step_times import measure_missing
from experiments.harness.texts import REPORTED_PLAYS, TUNING_PLAY, load_texts
from experiments.records.runs import (
    RESULTS,
    STEP_TIMES,
    read_results,
    read_step_times,
)

ROOT = PLANS.parent.parent


def chapters() -> dict[str, str]:
    """Return the source of every chapter that the book executes, by its name in the contents."""
    names = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    paths = {name: ROOT / f"{name}.py" for name in names}
    return {n: p.read_text(encoding="utf-8") for n, p in paths.items() if p.exists()}


@pytest.mark.parametrize(
    "path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_record_matches_its_configuration_and_its_plan(path: Path) -> None:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    assert recorded["digest"] == Run.of(recorded["configuration"]).digest
    plan = read_plans()[path.parent.name]
    asked = plan.tuning() | plan.runs(read_results())
    assert path.stem in asked, (
        f"no plan has {path.name}: delete the file, or restore the plan"
    )
    assert asked[path.stem].digest == recorded["digest"], (
        f"{path} was recorded with another configuration: delete it, and run "
        f"make experiments ONLY={path.parent.name}"
    )


def test_configuration_of_a_record_still_builds_its_model() -> None:
    # A digest does not cover the definition of a preset.
    sizes: dict[Any, int] = {}
    for path in RECORDED:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        run = Run.of(recorded["configuration"])
        key = (run.preset, run.data, json.dumps(run.model, sort_keys=True))
        if key not in sizes:
            vocab_size = load_texts(run.data).vocab_size
            model = run.build(vocab_size)
            sizes[key] = sum(p.numel() for p in model.parameters())
        assert recorded["parameters"] == sizes[key], path


FINISHED = [name for name, plan in read_plans().items() if not plan.unfinished]


@pytest.mark.parametrize("name", sorted({*FINISHED} - {"live"}))
def test_every_model_is_reported_with_three_seeds_or_five_for_the_speedup(
    name: str,
) -> None:
    plan, known = read_plans()[name], read_results()
    assert plan.seeds >= (5 if name in ("speedup", "today-characters") else 3)
    missing = [run for part in plan.missing(known) for run in part]
    assert not missing, f"make experiments ONLY={name}"
    # A diverged run would be left out, and the mean of the other seeds would flatter its model.
    reported = gather({name: plan}, known, read_step_times())[name]
    for model in plan.models:
        seeds = [run["seed"] for run in reported[model]]
        assert seeds == list(range(plan.seeds)), model


def test_no_selected_rate_is_the_lowest_or_highest_tried() -> None:
    # There may be a better one beyond it: add more to the plan.
    known = read_results()
    for plan in map(read_plans().get, FINISHED):
        assert plan
        tuning, _ = plan.missing(known)
        for name, model in plan.models.items():
            if not tuning and len(plan.rates) > 1:
                chosen = plan.rate(model, known)
                assert min(plan.rates) < chosen < max(plan.rates), (plan.name, name)


def test_code_still_computes_what_was_recorded() -> None:
    stale = [
        path
        for path in RECORDED
        if not is_current(json.loads(path.read_text(encoding="utf-8")))
    ]
    assert not stale, "the code computes something else now: make experiments"


def test_no_record_names_the_home_folder_of_its_machine() -> None:
    for path in [*RECORDED, RESULTS / STEP_TIMES]:
        text = path.read_text(encoding="utf-8")
        assert str(Path.home()) not in text, path


def test_gathered_file_matches_the_records() -> None:
    gathered = json.loads((RESULTS / "gathered.json").read_text(encoding="utf-8"))
    again = gather(read_plans(), read_results(), read_step_times())
    assert gathered == again, "make experiments"


def test_chapters_give_the_command_of_every_plan_and_no_other() -> None:
    command = r"make experiments ONLY=(\w+)"
    page = (ROOT / "book" / "pages" / "write.md").read_text(encoding="utf-8")
    named = re.findall(command, "\n".join([*chapters().values(), page]))
    families = {name.partition("-")[0] for name in read_plans()}
    assert set(named) == families


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
    subprocess.run([sys.executable, "-c", "\n".join(code)], cwd=ROOT, check=True)


MEASURED = {"tiny": {"plain": 0.25}}


def test_only_runs_with_the_selected_rate_are_gathered() -> None:
    trials = found(*map(record, PLAN.tuning().values()))
    (first, second) = PLAN.runs(trials).values()
    runs = found(record(first, reported=2.0), record(second, reported=3.0))
    assert gather({"tiny": PLAN}, runs, MEASURED) == {}
    both = gather({"tiny": PLAN}, trials | runs, MEASURED)["tiny"]["plain"]
    assert [each["seed"] for each in both] == [0, 1]
    assert [each["loss"][-1] for each in both] == [2.0, 3.0]
    runs[first.digest]["diverged_at_step"] = 3
    assert len(gather({"tiny": PLAN}, trials | runs, MEASURED)["tiny"]["plain"]) == 1


def test_a_model_is_gathered_as_soon_as_its_own_rates_are_tried() -> None:
    plan = replace(PLAN, models={"plain": TINY, "wider": WIDER}, timed=False)
    trials = plan.tuning()
    first, *others = (name for name in trials if name.startswith("tuning-wider"))
    tried = found(*(record(trials[name]) for name in trials if name != first))
    records = tried | found(*map(record, plan.runs(tried).values()))
    assert [*gather({"tiny": plan}, records, {})["tiny"]] == ["plain"] and others
    records |= found(record(trials[first], tuning=2.0))
    assert [*gather({"tiny": plan}, records, {})["tiny"]] == ["plain", "wider"]


def test_gathered_seconds_are_steps_times_the_measured_step_time() -> None:
    records = found(*map(record, PLAN.tuning().values()))
    records |= found(*map(record, PLAN.runs(records).values()))
    reported = gather({"tiny": PLAN}, records, MEASURED)["tiny"]["plain"]
    assert [each["seconds"] for each in reported] == [[0.25, 0.5]] * 2
    assert gather({"tiny": PLAN}, records, {}) == {}


def test_plan_that_is_not_timed_is_gathered_without_step_times(tmp_path: Path) -> None:
    plan = replace(PLAN, timed=False)
    records = found(*map(record, plan.tuning().values()))
    one = record(plan.runs(records)["plain-1"])
    one["whole"] = {play: 3.0 for play in REPORTED_PLAYS} | {TUNING_PLAY: 9.0}
    gathered = gather({"tiny": plan}, records | found(one), {})["tiny"]["plain"]
    assert [run["seed"] for run in gathered] == [1]
    assert gathered[0]["whole"] == 3.0 and "seconds" not in gathered[0]
    measure_missing([plan], tmp_path, tmp_path)
    assert read_step_times(tmp_path) == {}


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
    assert re.findall(r"a step of (\d)", capsys.readouterr().out) == ["2", "2"]
