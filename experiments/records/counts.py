"""Read what counting makes of the text that a run reads: the line of counts in figures of losses.

`experiments.harness.counts` records it. The losses are those of the chapter "Counting".
"""

import json
from typing import Any

from experiments.records.runs import RESULTS

COUNTS = "counts.json"
BATCH, SEQ = 16, 128
"""Those of all plans."""
LENGTHS = {"characters": 4_660_983, "subwords": 1_707_272, "code": 14_434_811}
"""The tokens of the texts to learn from."""

# A notebook has what these functions returned, not the files that they read.
__recorded__ = ("counts_of", "tokens_read")


def key(data: str, steps: int, batch: int = BATCH, seq: int = SEQ) -> str:
    """Return the name of what a run reads."""
    return f"{data}, {steps} steps of {batch} x {seq}"


def entry(data: str, steps: int) -> dict[str, Any]:
    """Return what is recorded of the text that a plan's run of `steps` reads."""
    path = RESULTS / COUNTS
    entries: dict[str, dict[str, Any]]
    entries = json.loads(path.read_text(encoding="utf-8"))["counts"]
    name = key(data, steps)
    if name not in entries:
        raise ValueError(
            f"{path} has no counts of {name}; run python -m experiments.harness.counts"
        )
    return entries[name]


def counts_of(data: str, steps: int, reading: str) -> list[float]:
    """Return the losses by order of the counts of what a plan's run of `steps` reads.

    `reading` is how the plays are read: in the `windows` of the learning curves, `whole` as after the last
    step, or as `text` without windows.
    """
    found: list[float] = entry(data, steps)[reading]
    return found


def tokens_read(data: str, steps: int) -> int:
    """Return how many tokens of its text a plan's run of `steps` reads, each of them once."""
    tokens: int = entry(data, steps)["tokens"]
    return tokens


def best_counts(data: str, steps: int, reading: str = "windows") -> tuple[int, float]:
    """Return the best order and its loss."""
    by_order = counts_of(data, steps, reading)
    return min(enumerate(by_order), key=lambda pair: pair[1])
