"""Processes that are killed: a run at chosen moments, and a sweep at any."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from inline_ray import InlineRay

from experiments.harness import long_run, sweep, training
from experiments.harness.configuration import Run

MOMENTS: list[tuple[Any, str, int]] = [
    (training, "draw_windows", 2),  # before the first checkpoint
    (torch, "save", 1),  # the first checkpoint is half written
    (Path, "replace", 1),  # the first checkpoint is written, and not yet renamed
    (torch.Tensor, "backward", 4),  # some steps after a checkpoint
    (torch.nn.utils, "clip_grad_norm_", 2),  # after the backward pass
    (long_run, "save", 1),  # after an evaluation, before its checkpoint
    (long_run, "write_record", 1),  # the weights are written, the record is not
]


def killing(target: Callable[..., Any], call: int) -> Callable[..., Any]:
    """Wrap `target` so that its `call`-th call kills the process, with a file half written."""
    calls = []

    def function(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == call:
            if target is torch.save:
                args[1].write(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        return target(*args, **kwargs)

    return function


def run_until(moment: int, run: Run, folder: Path) -> None:
    """Train, and be killed at one of `MOMENTS`."""
    owner, name, call = MOMENTS[moment]
    with patch.object(owner, name, killing(getattr(owner, name), call)):
        long_run.long_run(run, folder, save_every=3)


def sweep_runs(runs: dict[str, Run], folder: Path, how: str, kill: bool) -> None:
    """Sweep as the leader of a session. One that is to be killed waits for it after its first run."""
    os.setsid()

    def finish(ray: Any) -> None:
        for _, ended in sweep.sweep(ray, runs, "plan", folder / "built", folder):
            if isinstance(ended, BaseException):
                raise ended

    if how == "ray":
        with sweep.cores(2) as ray:
            finish(ray)
    else:
        if kill:
            long_run.record_of = lambda *_: signal.pause()
        finish(InlineRay())
