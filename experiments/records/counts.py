"""Read what counting makes of the text that a run reads: the line of counts in figures of losses.

`experiments.harness.counts` records it. The losses are Kneser and Ney's, of the chapter "Counting".
"""

import json
from typing import Any

from experiments.records.runs import RESULTS

COUNTS = "counts.json"
BATCH, SEQ = 16, 128
"""Those of all plans with language models."""
LENGTHS = {"characters": 4_660_983, "subwords": 1_707_272, "code": 14_434_811}
"""The tokens of the texts to learn from."""

# A notebook has what this function returned, not the file that it reads.
__recorded__ = ("entry",)


def key(data: str, steps: int, batch: int = BATCH, seq: int = SEQ) -> str:
    """Return the name of what a run reads."""
    return f"{data}, {steps} steps of {batch} x {seq}"


def entry(name: str, kind: str = "counts") -> dict[str, Any]:
    """Return what is recorded under a name."""
    path = RESULTS / COUNTS
    entries: dict[str, dict[str, Any]]
    entries = json.loads(path.read_text(encoding="utf-8"))[kind]
    if name not in entries:
        raise ValueError(
            f"{path} has no counts of {name}; run python -m experiments.harness.counts"
        )
    return entries[name]


def tokens_read(data: str, steps: int) -> int:
    """Return how many tokens of its text a plan's run of `steps` reads, each of them once."""
    tokens: int = entry(key(data, steps))["tokens"]
    return tokens


def best_counts(data: str, steps: int, reading: str = "windows") -> tuple[int, float]:
    """Return the best order of the counts of what a plan's run of `steps` reads, and its loss.

    The order is the best on the text that selects learning rates, and the loss is on the reported ones.
    `reading` is how they are read: in the `windows` of the learning curves, `whole` as after the last step,
    or as `text` without windows.
    """
    found = entry(key(data, steps))
    return found["order"], found[reading][found["order"]]


def cached_counts(data: str, steps: int, reading: str = "windows") -> float:
    """Return the loss of the best counts with a cache of the window, in `windows` or `whole`."""
    loss: float = entry(key(data, steps))["cache"][reading]
    return loss


def two_sided_counts(data: str, steps: int, seq: int) -> float:
    """Return the loss of counts at BERT's task, in windows of `seq`, in nats per masked token."""
    loss: float = entry(key(data, steps, seq=seq), "two_sided")["windows"]
    return loss
