"""What a long run promises: its numbers depend on its configuration, and on nothing else."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from labml_primer.presets import PRESETS
from labml_primer.training import long_run as module
from labml_primer.training.configuration import Run
from labml_primer.training.corpus import VALIDATION_PLAYS
from labml_primer.training.long_run import DivergedError, long_run, rate_at
from labml_primer.training.texts import REPORTED_PLAYS, TUNING_PLAY, load_texts

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"d_model": 16, "heads": 2, "d_ff": 32, "layers": 1}
TINY = Run(
    "primer-ez", SIZES, steps=8, batch=4, seq=16, warmup=4, evaluations=4, seed=1
)


def toml(run: Run) -> str:
    """The file that `run` is read from."""
    settings = {**vars(run), "model": None}
    top = [f"{k} = {json.dumps(v)}" for k, v in settings.items() if v is not None]
    own = [f"{k} = {json.dumps(v)}" for k, v in run.model.items()]
    return "\n".join([*top, "[model]", *own])


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return torch.load(folder / "weights.pt", weights_only=True)["model"]


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    """All of a record but the time that it took."""
    return record | {"curve": record["curve"] | {"seconds": None}}


def same_bits(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


# Stopped and taken up again


KILLED = """
import os, signal, sys
from pathlib import Path
from unittest.mock import patch
import torch
from labml_primer.training import long_run as module
from labml_primer.training.configuration import Run

run, folder = Run.read(Path(sys.argv[1])), Path(sys.argv[2])
module.load_texts(run.data)  # once for all that are killed

def killing(target, call):
    '''The function at `target`, and at its `call`-th call the end, with a file half written.'''
    original, calls = target, []
    def function(*args, **kwargs):
        calls.append(args)
        if len(calls) == call:
            if original is torch.save:
                args[1].write_bytes(b'half')
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)
    return function

moments = [
    (module, 'draw_windows', 2),          # before anything was saved
    (torch, 'save', 1),                   # half of the first save is written
    (Path, 'replace', 1),                 # the first save is whole, and not yet in its place
    (torch.Tensor, 'backward', 4),        # some steps behind a save
    (torch.nn.utils, 'clip_grad_norm_', 2),  # the gradients are there
    (module, 'held_out_loss', 5),         # an evaluation is half done
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


@pytest.mark.parametrize("optimizer", ["adamw", "adafactor"])
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bits(
    tmp_path: Path, optimizer: str
) -> None:
    run = replace(TINY, optimizer=optimizer, model=SIZES | {"dropout": 0.1})
    (tmp_path / "run.toml").write_text(toml(run))
    whole = long_run(run, tmp_path / "whole")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "run.toml", tmp_path / "killed"],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())},
        capture_output=True,
        text=True,
    )
    assert killed.returncode == 0, killed.stderr
    assert killed.stdout.count("killed") == 7
    again = json.loads((tmp_path / "killed" / "record.json").read_text())
    assert timeless(again) == timeless(whole)
    assert same_bits(weights(tmp_path / "killed"), weights(tmp_path / "whole"))
