"""Shared by the tests of long runs: a tiny run, its file, and what it leaves in its folder."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.harness.configuration import Run

ROOT = Path(__file__).resolve().parents[2]
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
