"""Tests of what the command says and measures before it runs the missing runs of a plan."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from runs import ROOT, SIZES

from experiments.harness import run as command
from experiments.harness import step_times
from experiments.harness.configuration import Run
from experiments.harness.orphans import orphaned
from experiments.harness.plan import PLANS, Plan, read_plans
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
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "read_plans", lambda: {"tiny": PLAN})
    monkeypatch.setattr(command, "orphaned", lambda *_: "tiny.toml has changed")
    monkeypatch.setattr(command, "announce", None)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(sys, "argv", ["run"])
    with pytest.raises(SystemExit, match=r"^tiny\.toml has changed$"):
        command.main()
    # A list is given all the same.
    monkeypatch.setattr(command, "announce", lambda *_: print("estimated"))
    monkeypatch.setattr(sys, "argv", ["run", "--list"])
    command.main()
    assert capsys.readouterr().out == "tiny.toml has changed\nestimated\n"


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The seconds that a step of each model takes on this machine, by its width; none is run."""
    widths = {"32": 1.0, "64": 2.0}

    def measured(models: dict[str, Run], built: Path) -> dict[str, float]:
        return {key: widths[str(run.model["d_ff"])] for key, run in models.items()}

    monkeypatch.setattr(step_times, "measure", measured)
    return widths


def test_only_models_without_step_times_are_measured_and_no_recorded_time_changes(
    tmp_path: Path, seconds: dict[str, float]
) -> None:
    other = replace(PLAN, name="other")
    measure_missing([other], tmp_path, tmp_path)
    first = json.loads((tmp_path / STEP_TIMES).read_text())
    seconds["32"] = 10.0  # on another machine
    measure_missing([PLAN], tmp_path, tmp_path)
    assert read_step_times(tmp_path) == {"other": {"plain": 1.0}, "tiny": {"plain": 10}}
    again = json.loads((tmp_path / STEP_TIMES).read_text())
    assert {name: again[name] for name in ("commit", "machine")} == {
        name: first[name] for name in ("commit", "machine")
    }
    assert [each["models"] for each in again["later"]] == [{"tiny": ["plain"]}]
    measure_missing([PLAN, other], tmp_path, tmp_path)
    assert json.loads((tmp_path / STEP_TIMES).read_text()) == again


def test_times_of_a_new_model_are_scaled_to_the_machine_of_the_recorded_ones(
    tmp_path: Path, seconds: dict[str, float]
) -> None:
    measure_missing([PLAN], tmp_path, tmp_path)
    seconds |= {"32": 10.0, "64": 30.0}
    more = replace(PLAN, models={"plain": SMALL, "wider": WIDER})
    measure_missing([more], tmp_path, tmp_path)
    assert read_step_times(tmp_path)["tiny"] == {"plain": 1.0, "wider": 3.0}


def test_time_of_a_model_is_measured_again_if_the_plan_has_another_under_its_name(
    tmp_path: Path, seconds: dict[str, float]
) -> None:
    measure_missing([PLAN], tmp_path, tmp_path)
    measure_missing([replace(PLAN, models={"plain": WIDER})], tmp_path, tmp_path)
    assert read_step_times(tmp_path)["tiny"] == {"plain": 2.0}


def test_time_without_the_digest_of_its_model_is_measured_again(
    tmp_path: Path, seconds: dict[str, float]
) -> None:
    write_json(tmp_path / STEP_TIMES, {"seconds": {"tiny": {"plain": 0.25}}})
    measure_missing([PLAN], tmp_path, tmp_path)
    assert read_step_times(tmp_path)["tiny"] == {"plain": 1.0}


def test_command_measures_only_the_plans_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = replace(PLAN, name="other")
    measured: list[str] = []

    def noted(plans: list[Plan], built: Path, results: Path) -> None:
        measured.extend(plan.name for plan in plans)

    monkeypatch.setattr(command, "read_plans", lambda: {"tiny": PLAN, "other": other})
    monkeypatch.setattr(command, "BUILT", tmp_path)
    monkeypatch.setattr(command, "announce", lambda *_: 0)
    monkeypatch.setattr(command, "measure_missing", noted)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(sys, "argv", ["run", "--only", "tiny"])
    command.main()
    assert measured == ["tiny"]


def test_no_module_of_the_experiments_imports_a_library_for_tests() -> None:
    for path in (ROOT / "experiments").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert "unittest" not in source and "pytest" not in source, path
