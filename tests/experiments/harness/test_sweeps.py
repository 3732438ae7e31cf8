"""Tests of the command that runs what is missing from the plans."""

import json
import math
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from forks import Started, start_command
from inline_ray import InlineRay
from runs import on_one_core, timeless
from tiny_plans import OTHER, PLAN, TINY, as_toml, write_plan

from experiments.harness import run as command
from experiments.harness.configuration import Run
from experiments.harness.fingerprint import fingerprint, is_current
from experiments.harness.long_run import long_run
from experiments.harness.plan import Plan
from experiments.harness.run import (
    announce,
    expected_seconds,
    quick,
    run_missing,
    step_seconds,
    try_quickly,
)
from experiments.harness.sweep import alone
from experiments.harness.training import Training
from experiments.records.lines import read_lines
from experiments.records.runs import STEP_TIMES, read_plan, read_results, write_record

__all__ = ["on_one_core"]  # a fixture that acts here too

GIT = """#!/bin/sh
case "$*" in
    *rev-parse*) echo 0123456789012345678901234567890123456789 ;;
    *status*) [ ! -e {folder}/modified ] || echo " M a.py" ;;
esac
"""
"""Git of a folder in which code is modified if there is a file of this name."""

LONG = replace(TINY, steps=400)
ONE = replace(PLAN, rates=(1e-3,), seeds=1)
PLANS = {
    "toy-first": replace(ONE, name="toy-first", models={"plain": LONG}),
    "toy-second": replace(ONE, name="toy-second", models={"same": LONG}),
    "toys": replace(PLAN, name="toys", models={"unknown": replace(TINY, steps=9)}),
}


def folder_of(folder: Path, plans: dict[str, Plan]) -> Path:
    """Write plans into a folder, and a Git that says whether its code is modified."""
    (folder / "plans").mkdir()
    for name, plan in plans.items():
        (folder / "plans" / f"{name}.toml").write_text(as_toml(plan))
    (folder / "bin").mkdir()
    (folder / "bin" / "git").write_text(GIT.format(folder=folder))
    (folder / "bin" / "git").chmod(0o755)
    return folder


def command_in(folder: Path, name: str, *words: object) -> Started:
    """Give the command for the plans of a folder."""
    module, where = "experiments.harness.run", ("--folder", folder, "--cores", 2)
    path = f"{folder}/bin:{os.environ['PATH']}"
    home = str(folder / "home")
    return start_command(folder, name, module, *where, *words, PATH=path, HOME=home)


def printed(folder: Path, *words: object) -> str:
    """Return what the command prints, which ends well."""
    command = command_in(folder, "command", *words)
    assert command.wait() == 0, command.printed
    return command.printed


def refusal(folder: Path, *words: object) -> str:
    """Return what the command prints, which fails."""
    command = command_in(folder, "command", *words)
    assert command.wait() != 0, command.printed
    return command.printed


# A sweep, killed and given again


@dataclass
class Swept:
    """A folder in which a sweep was killed, and then a worker of the next one, which ended."""

    folder: Path
    saved: dict[Path, int]
    """The steps that each run had saved when its worker was killed."""
    printed: str

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        return read_lines(self.folder / "results" / "toy-first.jsonl")


def kill_worker(run: Path, sweep: Started) -> None:
    """Kill the process that trains a run: the one that has its lock open."""
    while True:
        assert sweep.process.is_alive(), sweep.printed
        for opened in Path("/proc").glob("[0-9]*/fd/*"):
            with suppress(OSError):
                if opened.readlink() == run / "lock":
                    os.kill(int(opened.parts[2]), signal.SIGKILL)
                    return


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    folder = folder_of(tmp_path_factory.mktemp("sweep"), PLANS)
    killed = command_in(folder, "killed", "--only", "toy")
    runs = folder / "built" / "toy-first"
    while not list(runs.glob("plain-*/checkpoint.pt")):
        assert killed.process.is_alive(), killed.printed
        time.sleep(0.01)
    killed.kill()
    (run,) = runs.glob("plain-*")
    resumed = command_in(folder, "resumed", "--only", "toy")
    kill_worker(run, resumed)
    saved = {run: torch.load(run / "checkpoint.pt", weights_only=True)["done"]}
    assert resumed.wait() == 0, resumed.printed
    return Swept(folder, saved, resumed.printed)


@pytest.mark.slow
def test_run_of_a_killed_sweep_and_of_a_killed_worker_resumes_at_its_last_checkpoint(
    swept: Swept,
) -> None:
    assert swept.saved
    for folder, done in swept.saved.items():
        last = max((folder / "labml").rglob("log.jsonl"), key=os.path.getmtime)
        first = json.loads(last.read_text().splitlines()[0])["track"]["loss"][0][0]
        assert first == done + 1 or done == LONG.steps


@pytest.mark.slow
def test_sweep_records_each_run_once_with_the_numbers_of_a_run_alone(
    swept: Swept, tmp_path: Path
) -> None:
    assert [*swept.records] == ["tuning-plain-0.001", "plain-0"]
    swept_run = swept.records["plain-0"]
    alone = long_run(Run.of(swept_run["configuration"]), tmp_path)
    assert timeless(swept_run)["curve"] == timeless(alone)["curve"]
    # A run has one core.
    assert swept_run["machine"]["threads"] == 1


@pytest.mark.slow
def test_run_that_two_plans_of_a_family_share_is_run_once(swept: Swept) -> None:
    results = swept.folder / "results"
    lines = read_lines(results / "toy-second.jsonl")
    assert {each["recorded_in"] for each in lines.values()} == {"toy-first"}
    assert read_plan("toy-second", results)["same-0"] == swept.records["plain-0"]
    assert not (results / "toys.jsonl").exists(), "another family"


@pytest.mark.slow
def test_recorded_runs_are_not_run_again_but_a_lost_one_is(swept: Swept) -> None:
    path = swept.folder / "results" / "toy-first.jsonl"
    before = path.read_bytes()
    assert "Missing: 0 min on a core" in printed(swept.folder, "--only", "toy")
    assert path.read_bytes() == before
    path.write_bytes(b"".join(before.splitlines(keepends=True)[:-1]))
    again = printed(swept.folder, "--only", "toy-first", "--list")
    path.write_bytes(before)
    assert "0 short runs for rates    1 runs" in again


@pytest.mark.slow
def test_step_times_of_the_models_are_recorded(swept: Swept) -> None:
    times = json.loads((swept.folder / "results" / STEP_TIMES).read_text())
    assert times["seconds"].keys() == {"toy-first", "toy-second"}
    assert times["seconds"]["toy-first"]["plain"] > 0


@pytest.mark.slow
def test_sweep_prints_outcomes_and_time_left_and_leaves_the_home_folder_alone(
    swept: Swept,
) -> None:
    assert re.search(r"toy-first/plain-0: \d\.\d{4} nats, \d+ min", swept.printed)
    assert re.findall("about (.+) left", swept.printed)[-1] == "0 min"
    assert not (swept.folder / "home").exists()


# In one process


def run_inline(folder: Path, plans: list[Plan], committed: bool = False) -> int:
    """Run what is missing of plans, one run after another."""
    inline = nullcontext(InlineRay())
    results = folder / "results"
    left = announce(plans, 1, results)
    return run_missing(plans, left, results, folder / "built", inline, committed)


def test_record_of_a_killed_sweep_that_was_not_written_is_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_inline(tmp_path, [PLAN]) == 0
    path = tmp_path / "results" / "tiny.jsonl"
    whole = read_lines(path)
    path.unlink()
    (lost,) = (tmp_path / "built" / "tiny").glob("plain-0-*")
    shutil.rmtree(lost)
    assert run_inline(tmp_path, [PLAN]) == 0
    lines = read_lines(path)
    assert lines["plain-1"] == whole["plain-1"]
    assert lines["plain-0"]["curve"]["seconds"] != whole["plain-0"]["curve"]["seconds"]
    first, again = capsys.readouterr().out.split("tiny/tuning-plain-1e+09: ")[1:]
    assert "the batch is saved in" in first and "diverged at step 2\n" in again


def test_rate_that_diverges_is_a_result_and_stops_no_other_run(tmp_path: Path) -> None:
    assert run_inline(tmp_path, [PLAN]) == 0
    lines = read_lines(tmp_path / "results" / "tiny.jsonl")
    assert lines["tuning-plain-1e+09"]["diverged_at_step"] == 2
    assert lines["plain-0"]["configuration"]["rate"] == 1e-3


def test_run_that_fails_is_counted_and_its_plan_is_not_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = PLAN.trial(TINY, 1e-3)
    folder = tmp_path / "built" / "tiny" / f"tuning-plain-0.001-{trial.digest[:8]}"
    folder.mkdir(parents=True)
    (folder / "checkpoint.pt").write_bytes(b"damaged")
    assert run_inline(tmp_path, [PLAN]) == 1
    assert "checkpoint.pt cannot be read" in capsys.readouterr().out
    lines = read_lines(tmp_path / "results" / "tiny.jsonl")
    assert [*lines] == ["tuning-plain-1e+09"], "without its rate no run can be reported"


@pytest.mark.parametrize(("at", "count"), [("a+", 0), ("unknown", 0), ("a", 1)])
def test_record_of_code_that_was_modified_during_a_sweep_is_not_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str, count: int
) -> None:
    (name, run), *_ = PLAN.tuning().items()
    path = tmp_path / "built" / "tiny" / f"{name}-{run.digest[:8]}" / "record.json"
    record = long_run(run, tmp_path / "alone")
    write_record(path, record | {"commit": at})
    run_inline(tmp_path, [replace(PLAN, rates=PLAN.rates[:1], seeds=0)], committed=True)
    assert len(read_results(tmp_path / "results")) == count
    refused = "commit the code, delete this folder" in capsys.readouterr().out
    assert refused == (not count)


def test_quick_runs_all_models_of_a_plan_into_a_folder_that_it_empties(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = replace(OTHER, rates=(1e-3,))
    for _ in range(2):
        assert try_quickly([plan], 2, tmp_path, nullcontext(InlineRay(2))) == 0
        records = tmp_path / "results" / "other.jsonl"
        names = {"same": 0, "wider": 0}
        tuning = {f"tuning-{name}-0.001" for name in names}
        assert set(read_lines(records)) == tuning | {f"{name}-0" for name in names}
        assert "Missing: " in capsys.readouterr().out


# What it says first


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two plans, of which one run is in both."""
    return folder_of(
        tmp_path_factory.mktemp("plans"),
        {"tiny": PLAN, "other": replace(OTHER, turn=2)},
    )


def test_expected_time_counts_runs_that_plans_share_once(folder: Path) -> None:
    lines = [" ".join(line.split()) for line in printed(folder, "--list").splitlines()]
    assert [re.sub(r"[\d.]+ (min|h) on", "_ on", line) for line in lines] == [
        "tiny 2 short runs for rates 2 runs _ on a core A small one",
        "other 2 short runs for rates 4 runs _ on a core A small one",
        "Missing: _ on a core, _ on 2",
    ]
    (only,) = printed(folder, "--list", "--only", "other").splitlines()[:-1]
    assert " ".join(only.split()).startswith("other 4 short runs for rates 6 runs")


def test_expected_time_grows_with_weights_tokens_steps_and_evaluations() -> None:
    steps = TINY.steps + 4 * TINY.evaluations
    assert expected_seconds(TINY) == pytest.approx(steps * step_seconds(TINY))
    assert step_seconds(replace(TINY, seq=32)) == pytest.approx(
        2 * step_seconds(TINY), rel=0.1
    )
    assert expected_seconds(replace(TINY, whole=True)) > expected_seconds(TINY)


@pytest.mark.parametrize(("step", "steps"), [(0.0001, 1000), (1.0, 33), (600.0, 2)])
def test_quick_has_as_many_steps_as_fit_into_two_minutes(
    step: float, steps: int
) -> None:
    slower = step / step_seconds(TINY)  # a batch for which a step takes this long
    model = replace(TINY, batch=max(1, round(TINY.batch * slower)))
    plan = replace(PLAN, tuning_steps=1000, models={"plain": model})
    small = quick(plan, 1)
    assert small.tuning_steps == pytest.approx(steps, rel=0.2)
    (run,) = small.models.values()
    assert (run.steps, run.evaluations) == (2 * small.tuning_steps, 1)
    assert small.seeds == len(small.rates) == 1 and not small.timed
    assert replace(run, steps=TINY.steps, evaluations=2) == model


def test_listing_takes_records_as_they_are(tmp_path: Path) -> None:
    """Records are not of this code, and it would take minutes to see it."""
    folder_of(tmp_path, {"tiny": PLAN})
    write_plan(PLAN, tmp_path / "results")
    assert "0 short runs for rates    0 runs" in printed(tmp_path, "--list")


def test_unknown_plan_error_lists_known_plans(folder: Path) -> None:
    message = "unknown plan 'tny'; known plans: "
    assert message in refusal(folder, "--only", "tny")


def test_plan_or_record_that_cannot_be_read_ends_the_command_with_its_error(
    tmp_path: Path,
) -> None:
    folder_of(tmp_path, {"tiny": PLAN})
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "tiny.jsonl").write_text("half a li")
    assert "tiny.jsonl, line 1 is no whole record. Restore" in refusal(tmp_path)
    (tmp_path / "plans" / "tiny.toml").write_text("seeds = 0")
    assert re.match(r"\S+tiny\.toml: add what a plan needs", refusal(tmp_path))


def test_folder_that_cannot_be_written_ends_the_command_with_what_to_do(
    tmp_path: Path,
) -> None:
    folder_of(tmp_path, {"tiny": PLAN})
    (tmp_path / "built").touch()
    message = f"{tmp_path / 'built'}: File exists. Make room or change its rights"
    assert message in refusal(tmp_path)


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_number_of_cores_that_is_not_positive_is_refused(
    capsys: pytest.CaptureFixture[str], number: str
) -> None:
    with pytest.raises(SystemExit):
        command.main(["--cores", number])
    message = f"argument --cores: '{number}' is not a whole number above 0"
    assert message in capsys.readouterr().err


def test_second_sweep_at_the_same_time_is_refused(folder: Path) -> None:
    with alone(folder / "built"):
        message = refusal(folder)
    assert f"another sweep is running in {folder / 'built'}; wait for it" in message


def test_modified_code_is_not_run_for_the_records_but_may_be_tried(
    tmp_path: Path,
) -> None:
    folder_of(tmp_path, {"tiny": PLAN})
    (tmp_path / "modified").touch()
    assert re.search("the code is modified.*or try it with --trial", refusal(tmp_path))
    assert not (tmp_path / "results").exists()
    # A trial is recorded elsewhere; here, nothing of it is missing.
    write_plan(PLAN, tmp_path / "built" / "trials")
    assert "Missing: 0 min" in printed(tmp_path, "--trial")
    assert not (tmp_path / "results").exists()


# Whether a record is still what the code computes


def changed(change: Callable[[Training], None]) -> type[Training]:
    """Return a training that was changed at its beginning."""

    class Changed(Training):
        def begin(self) -> Self:
            super().begin()
            change(self)
            return self

    return Changed


def with_settings(**settings: Any) -> Callable[[Training], None]:
    return lambda training: training.optimizer.param_groups[0].update(settings)


def with_rates(rate: Callable[[int], float]) -> Callable[[Training], None]:
    """Replace the rate just before each step."""

    def change(training: Training) -> None:
        def hook(optimizer: Any, *_: Any) -> None:
            optimizer.param_groups[0]["lr"] = rate(training.done + 1)

        training.optimizer.register_step_pre_hook(hook)

    return change


def without_evaluation(training: Training) -> None:
    training.task = replace(training.task, held_out=lambda *_: 0.0)


CHANGES: dict[str, Callable[[Training], None]] = {
    "betas": with_settings(betas=(0.5, 0.5)),
    "weight decay": with_settings(weight_decay=0.1),
    "clipping": lambda training: setattr(training, "clip", math.inf),
    "warm-up": with_rates(lambda step: 1e-3),
    "decrease": with_rates(lambda step: 1e-3 * min(step / 2, 1)),
    "held-out windows": without_evaluation,
}


@pytest.mark.parametrize("name", CHANGES)
def test_record_is_out_of_date_if_training_or_evaluation_changed(name: str) -> None:
    record = {"configuration": asdict(TINY), "fingerprint": fingerprint(TINY)}
    assert is_current(record) and is_current(record, changed(lambda training: None))
    assert not is_current(record, changed(CHANGES[name]))


def test_record_is_out_of_date_if_any_of_its_losses_is_another() -> None:
    run = replace(TINY, whole=True)
    losses = fingerprint(run)
    assert len(losses) == len(fingerprint(TINY)) + 1, "that on a whole play"
    for place in range(len(losses)):
        other = [x * (1 + 1e-5 * (k == place)) for k, x in enumerate(losses)]
        assert not is_current({"configuration": asdict(run), "fingerprint": other})
    rounded = [x * (1 + 1e-8) for x in losses]
    assert is_current({"configuration": asdict(run), "fingerprint": rounded})


def test_record_that_is_out_of_date_is_run_again_and_older_ones_are_kept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "record.json"
    record = long_run(TINY, tmp_path)
    # Neither rate nor seed change the fingerprint; another model does.
    assert fingerprint(replace(TINY, rate=1.0, seed=7)) == record["fingerprint"]
    assert fingerprint(replace(TINY, preset="primer-ez")) != record["fingerprint"]
    other = [*record["fingerprint"][:-1], 0.0]
    write_record(path, record | {"commit": "old", "fingerprint": other})
    assert long_run(TINY, tmp_path)["commit"] != "old"
    # Of a record without a fingerprint nothing can be told.
    del record["fingerprint"]
    write_record(path, record | {"commit": "old"})
    assert long_run(TINY, tmp_path)["commit"] == "old"
