"""A small search without Ray and without training, and processes that end before their time."""

import time
from typing import Any
from zlib import crc32

from experiments.search.candidates import Task, time_limits
from experiments.search.searches import Search

SMALL = Task(budget=62.0, parameters=9000, layers=1, seq=8, batch=2, hurdles=4)
TINY = Search(individuals=30, size=8, tournament=3, task=SMALL)


def outcome_of(
    dna: str, seed: int, bars: tuple[float, ...], task: Task
) -> dict[str, Any]:
    """Return an outcome that depends on the program alone. Some programs are rejected."""
    value = crc32(f"{dna} {seed}".encode()) / 2**32
    if value < 0.1:
        return {"losses": [], "rejected": "not finite"}
    losses = [value + 4 - k for k in range(5)]
    passed = [loss <= bar for loss, bar in zip(losses, bars, strict=False)]
    end = passed.index(False) + 1 if False in passed else 5
    return {"losses": losses[:end], "rejected": "", "whole": 1.0}


def sleep_too_long() -> None:
    with time_limits(cpu=10**6, wall=1):
        time.sleep(10**6)


def compute_too_long() -> None:
    with time_limits(cpu=1, wall=10**6):
        while True:
            pass
