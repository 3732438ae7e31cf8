"""Tests of what the command says and measures before it runs the missing runs of a plan."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from runs import ROOT, SIZES
from tiny_plans import as_toml

from experiments.harness import run as command
from experiments.harness.configuration import Run
from experiments.harness.plan import PLANS, Plan, orphaned, read_plans
from experiments.harness.step_times import measure_missing
from experiments.records.lines import write_json
from experiments.records.runs import RESULTS, STEP_TIMES, read_step_times, write_run

SMALL = Run(model=SIZES, steps=4, batch=4, seq=16, warmup=4, evaluations=2)
WIDER = replace(SMALL, model=SIZES | {"d_ff": 64})
PLAN = Plan("tiny", "A small one", 1, 2, (1e-3, 2e-3), 2, {"plain": SMALL})


def recorded(plan: Plan, folder: Path) -> None:
    """Write records of all runs of a plan."""
    for name, run in (plan.tuning() | plan.runs({})).items():
        record = {"digest": run.digest, "configuration": asdict(run)}
        write_run(plan.name, name, record, folder)


def test_changed_plan_names_its_orphaned_runs_with_file_change_and_fix(
    tmp_path: Path,
) -> None:
    recorded(PLAN, tmp_path)
    assert orphaned([PLAN], tmp_path) == ""
    wider = replace(PLAN, models={"plain": WIDER})
    assert orphaned([wider], tmp_path).splitlines() == [
        f"{PLANS}/tiny.toml has changed, and {tmp_path}/tiny.jsonl has 4 runs of before:",
        "  tuning-plain-0.001, tuning-plain-0.002, plain-0 and 1 more: model.d_ff 32 is now 64",
        f"Keep them: restore the plan (git checkout {PLANS}/tiny.toml), or give the changed one a name "
        "of its own.",
        f"Replace them: delete their lines in {tmp_path}/tiny.jsonl, and give this command again.",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            replace(PLAN, models={"wider": WIDER}),
            "4 runs of before:\n  tuning-plain-0.001, tuning-plain-0.002, plain-0 and 1 more: the plan",
        ),
        (replace(PLAN, seeds=1), "has 1 run of before:\n  plain-1: the plan has no"),
        (replace(PLAN, tuning_steps=3), "tuning-plain-0.002: steps 2 is now 3"),
        (
            replace(PLAN, rates=(2e-3,)),
            "  plain-0, plain-1: the rate 0.001 is not in tuning.rates",
        ),
    ],
)
def test_orphans_of_every_kind_of_change_are_found(
    tmp_path: Path, changed: Plan, message: str
) -> None:
    recorded(PLAN, tmp_path)
    assert message in orphaned([changed], tmp_path)


def test_more_rates_seeds_and_models_orphan_nothing(tmp_path: Path) -> None:
    recorded(PLAN, tmp_path)
    models = {"plain": SMALL, "wider": WIDER}
    more = replace(PLAN, rates=(5e-4, 1e-3, 2e-3), seeds=3, models=models)
    assert orphaned([more], tmp_path) == ""


def test_recorded_runs_of_every_plan_are_still_of_it() -> None:
    assert orphaned(read_plans().values(), RESULTS) == ""


def test_command_with_orphaned_runs_ends_before_anything_is_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plans").mkdir()
    changed = replace(PLAN, models={"plain": WIDER})
    (tmp_path / "plans" / "tiny.toml").write_text(as_toml(changed))
    recorded(PLAN, tmp_path / "results")
    with pytest.raises(SystemExit, match=r"^\S+/plans/tiny\.toml has changed, and "):
        command.main(["--folder", str(tmp_path)])
    assert capsys.readouterr().out == "" and not (tmp_path / "built").exists()
    # A list is given all the same.
    command.main(["--folder", str(tmp_path), "--list"])
    assert re.search("has changed.*\n(.*\n)*Missing: ", capsys.readouterr().out)


def times_in(folder: Path) -> dict[str, Any]:
    times: dict[str, Any] = json.loads((folder / STEP_TIMES).read_text())
    return times


def test_only_models_without_step_times_are_measured_and_no_recorded_time_changes(
    tmp_path: Path,
) -> None:
    other = replace(PLAN, name="other")
    measure_missing([other], tmp_path, tmp_path)
    first = times_in(tmp_path)
    measure_missing([PLAN], tmp_path, tmp_path)
    again = times_in(tmp_path)
    assert first["seconds"]["other"] == again["seconds"]["other"]
    assert again["seconds"].keys() == {"other", "tiny"}
    assert again["machine"] == first["machine"]
    assert [each["models"] for each in again["later"]] == [{"tiny": ["plain"]}]
    measure_missing([PLAN, other], tmp_path, tmp_path)
    assert times_in(tmp_path) == again


def test_times_of_a_new_model_are_scaled_to_the_machine_of_the_recorded_ones(
    tmp_path: Path,
) -> None:
    measure_missing([PLAN], tmp_path, tmp_path)
    slow = times_in(tmp_path) | {"seconds": {"tiny": {"plain": 1000.0}}}
    write_json(tmp_path / STEP_TIMES, slow)
    more = replace(PLAN, models={"plain": SMALL, "wider": WIDER})
    measure_missing([more], tmp_path, tmp_path)
    seconds = read_step_times(tmp_path)["tiny"]
    assert seconds["plain"] == 1000 and seconds["wider"] > 100


@pytest.mark.parametrize("digest", ["of another", None])
def test_time_of_a_model_is_measured_again_unless_it_is_known_to_be_of_this_model(
    tmp_path: Path, digest: str | None
) -> None:
    recorded = {"seconds": {"tiny": {"plain": 1000.0}}}
    models = {"models": {"tiny": {"plain": digest}}} if digest else {}
    write_json(tmp_path / STEP_TIMES, recorded | models)
    measure_missing([PLAN], tmp_path, tmp_path)
    assert read_step_times(tmp_path)["tiny"]["plain"] < 1000


def test_no_module_of_the_experiments_imports_a_library_for_tests() -> None:
    for path in (ROOT / "experiments").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert "unittest" not in source and "pytest" not in source, path
