"""Tests of the command that runs what is missing from the plans."""

import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from experiments.harness.estimate import announce, recorded
from experiments.harness.quick import quick
from inline_ray import InlineRay
from runs import on_one_core
from tiny_plans import OTHER, PLAN, SIZES, TINY, write_plan

from experiments.harness import estimate, optimizer, training
from experiments.harness import fingerprint as fingerprints
from experiments.harness import run as module
from experiments.harness import sweep as sweeping
from experiments.harness.configuration import Run
from experiments.harness.fingerprint import fingerprint, is_current
from experiments.harness.long_run import long_run
from experiments.harness.plan import Plan
from experiments.harness.run import run_missing, try_quickly
from experiments.harness.tasks import LANGUAGE_MODELING
from experiments.records.lines import read_lines, write_lines
from experiments.records.runs import (
    TUNING_PLAY,
    loss_on,
    read_results,
    write_run,
)

__all__ = ["on_one_core"]  # a fixture that acts here too


class TenMinutesAStep:
    """A training on a slow machine, whose first step is slower still."""

    def __init__(self, *_: object):
        self.seconds = 0.0

    def step(self) -> None:
        self.seconds += 600 if self.seconds else 5000


@pytest.fixture
def ten_minutes_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "training_of", TenMinutesAStep)
    not_kept = estimate.step_seconds.__wrapped__
    monkeypatch.setattr(estimate, "step_seconds", not_kept)


def test_record_is_run_again_if_the_code_computes_something_else(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "plan"
    first = long_run(TINY, folder)
    assert is_current(first) and first["fingerprint"] == fingerprint(TINY)
    # Neither rate nor seed change the fingerprint; another model does.
    assert fingerprint(replace(TINY, seed=3, rate=0.5)) == first["fingerprint"]
    rotary = replace(TINY, model=SIZES | {"positions": "rotary"})
    assert not is_current(first | {"configuration": asdict(rotary)})
    # Records from before there were fingerprints are taken as they are.
    assert is_current({"digest": TINY.digest})
    path = folder / "record.json"
    old = first | {"fingerprint": [1.0, 1.0], "commit": "old"}
    path.write_text(json.dumps(old))
    write_run("plan", "plain-0", old, tmp_path)
    plan = replace(PLAN, rates=(TINY.rate,))
    assert recorded(plan, tmp_path) == {}
    again = long_run(TINY, folder)
    assert again["commit"] != "old"
    write_run("plan", "plain-0", again, tmp_path)
    assert recorded(plan, tmp_path).keys() == {TINY.digest}
    # It is not run again for a rewriting that changes the last digits.
    near = [loss * (1 + 1e-9) for loss in first["fingerprint"]]
    path.write_text(json.dumps(first | {"fingerprint": near, "commit": "old"}))
    assert long_run(TINY, folder)["commit"] == "old"


def altered(clip: float = 1.0, **settings: Any) -> Callable[..., Any]:
    """Return an `optimizer_of` whose optimizer has other settings."""
    original = optimizer.optimizer_of

    def optimizer_of(run: Run, model: torch.nn.Module) -> tuple[Any, float]:
        optimizer, _ = original(run, model)
        optimizer.param_groups[0].update(settings)
        return optimizer, clip

    return optimizer_of


CHANGED: dict[str, tuple[ModuleType, str, Callable[..., Any]]] = {
    "betas": (training, "optimizer_of", altered(betas=(0.5, 0.5))),
    "weight decay": (training, "optimizer_of", altered(weight_decay=0.1)),
    "clipping": (training, "optimizer_of", altered(clip=math.inf)),
    "warm-up": (optimizer, "warmed_up_rate", lambda step, rate, warmup: rate),
    "decrease": (optimizer, "warmed_up_rate", lambda s, rate, w: rate * min(s / w, 1)),
    "held-out windows": (
        training,
        "task_of",
        lambda *_: replace(LANGUAGE_MODELING, held_out=lambda *_: 0.0),
    ),
    "whole plays": (fingerprints, "whole_loss", lambda *_: 0.0),
}


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Compute fingerprints again, and forget them after the test."""
    fingerprints.losses_of.cache_clear()
    yield
    fingerprints.losses_of.cache_clear()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("part", CHANGED)
def test_record_is_out_of_date_if_training_or_evaluation_changed(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(TINY, whole=True)
    record = {"configuration": asdict(run), "fingerprint": fingerprint(run)}
    fingerprints.losses_of.cache_clear()
    assert is_current(record)
    fingerprints.losses_of.cache_clear()
    monkeypatch.setattr(*CHANGED[part])
    assert not is_current(record)


@pytest.mark.slow
@pytest.mark.usefixtures("ten_minutes_a_step", "on_one_core")
@pytest.mark.parametrize(
    "workers",
    [
        lambda *_: nullcontext(InlineRay()),
        pytest.param(sweeping.cores, marks=pytest.mark.nightly),
    ],
    ids=["in one process", "ray"],
)
def test_sweep_records_each_run_once_and_writes_nothing_to_the_home_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    workers: Callable[..., Any],
) -> None:
    monkeypatch.setattr(module, "cores", workers)
    # Twice as fast as announced, because there are two cores.
    clock = [10800, 7200, 3600, 1800, 0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.pop))
    home, results, built = (tmp_path / name for name in ("home", "results", "built"))
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    expected = announce([PLAN], 2, results)
    assert run_missing([PLAN], 2, expected, results, built) == 0
    path = results / "tiny.jsonl"
    assert [*read_lines(path)] == [
        "tuning-plain-0.001",
        "tuning-plain-1e+09",
        "plain-0",
        "plain-1",
    ]
    # A rate of a billion diverges. That is a result, and does not stop other runs.
    records = read_results(results)
    assert sum(r["diverged_at_step"] is not None for r in records.values()) == 1
    printed = capsys.readouterr().out
    assert "the batch is saved in" in printed
    times = re.findall("about (.+) left", printed)
    assert times == ["2.5 h", "2.0 h", "60 min", "0 min"]
    assert PLAN.rate(TINY, records) == 1e-3
    assert PLAN.missing(records) == [{}, {}]
    assert announce([PLAN], 2, results) == 0
    # Only a lost record is run again. One that a killed sweep had not written yet is in the run's folder.
    whole = read_lines(path)
    write_lines(
        path, {name: whole[name] for name in whole if name.startswith("tuning")}
    )
    for folder in (built / "tiny").glob("plain-0-*"):
        shutil.rmtree(folder)
    clock += [7200, 3600, 0]
    capsys.readouterr()
    assert run_missing([PLAN], 2, 7200, results, built) == 0
    again = re.findall("^tiny/(.+?):", capsys.readouterr().out, re.M)
    assert sorted(again) == ["plain-0", "plain-1"]
    lines = read_lines(path)
    assert lines.keys() == whole.keys() and lines["plain-1"] == whole["plain-1"]
    assert lines["plain-0"]["curve"]["seconds"] != whole["plain-0"]["curve"]["seconds"]
    assert PLAN.missing(read_results(results)) == [{}, {}]
    assert list(home.iterdir()) == []
    # A run has one core, and the same numbers as outside a sweep.
    run = PLAN.runs(records)["plain-1"]
    alone = long_run(run, tmp_path / "alone")
    swept = records[run.digest]
    assert swept["machine"]["threads"] == 1
    assert loss_on(swept, TUNING_PLAY) == pytest.approx(loss_on(alone, TUNING_PLAY))


@pytest.mark.slow
def test_run_whose_process_is_killed_resumes_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of the fingerprint, taken at the end in no folder, do not count."""
    taken, killed, home = (tmp_path / name for name in ("taken", "killed", "home"))
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    def killed_once(run: Run, folder: Path) -> dict[str, Any]:
        import os
        import signal

        from experiments.harness import long_run as running
        from experiments.harness.training import Training

        step, save = Training.step, running.save

        def noted(training: Training) -> None:
            step(training)
            if training.folder == folder:
                with taken.open("a") as steps:
                    steps.write(f"{training.done} ")

        def saved(training: Training) -> None:
            save(training)
            if not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        Training.step = noted  # type: ignore[method-assign]
        running.save = saved
        return running.long_run(run, folder, save_every=2)

    monkeypatch.setattr(sweeping, "long_run", killed_once)
    with sweeping.cores(1) as ray:
        swept = dict(sweeping.sweep(ray, {"plain": TINY}, "tiny", tmp_path, tmp_path))
    assert killed.exists() and taken.read_text().split() == ["1", "2", "3", "4"]
    record = swept["plain"]
    assert isinstance(record, dict)
    assert record["machine"]["threads"] == 1 and list(home.iterdir()) == []
    alone = long_run(TINY, tmp_path / "alone")
    assert loss_on(record, TUNING_PLAY) == loss_on(alone, TUNING_PLAY)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the printed lines, without their columns."""
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_announced_time_counts_runs_that_plans_share_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two steps and one evaluation, or four and two; an evaluation costs as much as four steps.
    seconds = announce([PLAN, OTHER], 2, tmp_path)
    assert seconds == 600 * (2 * 6 + 2 * 12 + 2 * 6 + 4 * 12)
    assert lines(capsys) == [
        "tiny 2 short runs for rates 2 runs 6.0 h on a core A small one",
        "other 2 short runs for rates 4 runs 10.0 h on a core A small one",
        "Missing: 16.0 h on a core, 8.0 h on 2",
    ]


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The command with two plans. It prints their names instead of running them."""

    def run_missing(plans: list[Plan], number: int, left: float, _: Path) -> int:
        print("run", *(plan.name for plan in plans), number, left)
        return 0

    def main(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["run", "--cores", "2", *arguments])
        module.main()

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(module, "BUILT", tmp_path)
    monkeypatch.setattr(module, "read_plans", lambda: {"tiny": PLAN, "other": OTHER})
    monkeypatch.setattr(module, "run_missing", run_missing)
    monkeypatch.setattr(module, "orphaned", lambda plans, results: "")
    monkeypatch.setattr(module, "measure_missing", lambda *_: None)
    monkeypatch.setattr(module, "recorded", lambda _: {})
    monkeypatch.setattr(module, "commit", lambda: "0123456")
    return main


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_expected_time_is_printed_first_and_one_plan_can_be_selected(
    main: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = "Missing: {} h on a core, {} h on 2"
    main()
    assert lines(capsys)[2:] == [
        missing.format("16.0", "8.0"),
        "run tiny other 2 57600.0",
    ]
    main("--only", "tiny")
    assert lines(capsys)[1:] == [missing.format("6.0", "3.0"), "run tiny 2 21600.0"]
    main("--only", "tiny", "--list")
    assert lines(capsys)[1:] == [missing.format("6.0", "3.0")]


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_a_family_of_plans_is_selected_by_its_name(
    main: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("tiny", "other-first", "other", "others")
    plans = {name: replace(PLAN, name=name) for name in names}
    monkeypatch.setattr(module, "read_plans", lambda: plans)
    main("--only", "other")
    assert lines(capsys)[-1].startswith("run other-first other 2")


def test_listing_takes_records_as_they_are_instead_of_computing_them_again(
    main: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_plan(PLAN, tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(estimate, "is_current", None)  # it would take minutes
    main("--only", "tiny", "--list")
    assert lines(capsys)[0].startswith("tiny 0 short runs for rates 0 runs")


def test_quick_runs_all_models_of_a_plan_into_a_folder_that_it_empties(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    inline = nullcontext(InlineRay(2))
    monkeypatch.setattr(module, "cores", lambda *_: inline)
    plan = replace(OTHER, rates=(1e-3,))
    for _ in range(2):
        assert try_quickly([plan], 2, tmp_path) == 0
        records = tmp_path / "quick" / "results" / "other.jsonl"
        names = {"same": 0, "wider": 0}
        tuning = {f"tuning-{name}-0.001" for name in names}
        assert set(read_lines(records)) == tuning | {f"{name}-0" for name in names}
        assert "Missing: " in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "quick"]


@pytest.mark.parametrize(("step", "steps"), [(0.0001, 2), (1.0, 33), (600.0, 2)])
def test_quick_has_as_many_steps_as_fit_into_two_minutes(
    monkeypatch: pytest.MonkeyPatch, step: float, steps: int
) -> None:
    monkeypatch.setattr("experiments.harness.quick.step_seconds", lambda _: step)
    plan = replace(PLAN, tuning_steps=1000 if step == 1.0 else 2)
    small = quick(plan, cores=1)
    assert small.tuning_steps == steps and small.seeds == len(small.rates) == 1
    (run,) = small.models.values()
    assert (run.steps, run.evaluations) == (2 * steps, 1) and not small.timed
    assert replace(run, steps=TINY.steps, evaluations=2) == TINY


def test_unknown_plan_error_lists_known_plans(
    main: Callable[..., None],
) -> None:
    with pytest.raises(
        SystemExit, match="unknown plan 'tny'; known plans: tiny, other"
    ):
        main("--only", "tny")


@pytest.mark.parametrize("unreadable", ["read_plans", "announce"])
def test_plan_or_record_that_cannot_be_read_ends_the_command_with_its_error(
    main: Callable[..., None], monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    def raising(*_: Any) -> None:
        raise ValueError("odd.file: not as it should be")

    monkeypatch.setattr(module, unreadable, raising)
    with pytest.raises(SystemExit, match=r"^odd\.file: not as it should be$"):
        main("--list")


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_number_of_cores_that_is_not_positive_is_refused(
    main: Callable[..., None], capsys: pytest.CaptureFixture[str], number: str
) -> None:
    with pytest.raises(SystemExit):
        main("--cores", number)
    message = f"argument --cores: '{number}' is not a whole number above 0"
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_second_sweep_at_the_same_time_is_refused(
    main: Callable[..., None], tmp_path: Path
) -> None:
    refused = pytest.raises(SystemExit, match="another sweep is running")
    with module.alone(tmp_path), refused:
        main()
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]


def test_modified_code_is_not_run_for_the_records_but_may_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Path] = []

    def remember(plans: Any, number: int, left: float, results: Path) -> int:
        ran.append(results)
        return 0

    monkeypatch.setattr(module, "BUILT", tmp_path)
    monkeypatch.setattr(module, "run_missing", remember)
    monkeypatch.setattr(module, "announce", lambda *_: 60.0)
    monkeypatch.setattr(module, "measure_missing", lambda *_: None)
    monkeypatch.setattr(module, "chosen_plans", lambda _: [])
    monkeypatch.setattr(sys.stdout, "reconfigure", lambda **_: None, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for commit, words, results in (
        ("abc", [], module.RESULTS),
        ("abc+", [], None),
        ("abc+", ["--trial"], tmp_path / "trials"),
    ):
        ran.clear()
        monkeypatch.setattr(module, "commit", lambda commit=commit: commit)
        monkeypatch.setattr(sys, "argv", ["run", *words])
        if results is None:
            with pytest.raises(SystemExit, match=r"the code is modified.*--trial"):
                module.main()
        else:
            module.main()
        assert ran == ([] if results is None else [results])


def test_a_record_of_code_that_was_modified_during_a_sweep_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, built = tmp_path / "results", tmp_path / "built"
    monkeypatch.setattr(sweeping, "RESULTS", results)
    for commit, count in (("abc+", 0), ("unknown", 0), ("abc", 1)):
        record = {"digest": TINY.digest, "commit": commit, "earlier": []}

        def run(_: Run, folder: Path, record: Any = record) -> str:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "record.json").write_text(json.dumps(record))
            return commit  # noqa: B023

        monkeypatch.setattr(sweeping, "long_run", run)
        ((name, ended),) = sweeping.sweep(
            InlineRay(), {"plain-0": TINY}, "plan", built, results
        )
        assert name == "plain-0" and len(read_results(results)) == count
        assert isinstance(ended, sweeping.UncommittedError) == (not count)
