"""Runs that are killed at chosen moments."""

import os
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from typing import Any
from unittest.mock import patch

import torch

from experiments.harness.configuration import Run
from experiments.harness.long_run import long_run

MOMENTS: list[tuple[Any, str, int, str]] = [
    (torch, "save", 1, ""),  # the first checkpoint is half written
    (Path, "replace", 1, ""),  # the first checkpoint is written, and not yet renamed
    (torch.Tensor, "backward", 4, ""),  # some steps after a checkpoint
    (torch.nn.utils, "clip_grad_norm_", 2, ""),  # after the backward pass
    (torch, "save", 2, ""),  # an evaluation was after the last checkpoint
    (Path, "replace", 1, "weights.pt.partial"),  # the last step has a checkpoint
    (Path, "replace", 1, "record.json.partial"),  # the weights are written
]
"""The call that kills, of a function of a library: which one, and for a path of which name."""


def killing(target: Callable[..., Any], call: int, path: str) -> Callable[..., Any]:
    """Wrap `target` so that its `call`-th call kills the process, with a file half written."""
    calls = []

    def function(*args: Any, **kwargs: Any) -> Any:
        if not path or args[0].name == path:
            calls.append(args)
        if len(calls) == call:
            if target is torch.save:
                args[1].write(b"half")
            os.kill(os.getpid(), SIGKILL)
        return target(*args, **kwargs)

    return function


def run_until(moment: int, run: Run, folder: Path) -> None:
    """Train, and be killed at one of `MOMENTS`."""
    owner, name, call, path = MOMENTS[moment]
    with patch.object(owner, name, killing(getattr(owner, name), call, path)):
        long_run(run, folder, save_every=3)
