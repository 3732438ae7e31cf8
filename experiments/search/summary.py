"""Numbers of a recorded search: its costs, its population over time, and what it found.

python -m experiments.search.summary [SEARCH.jsonl ...]
"""

import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from experiments.search.log import Line, read_log
from labml_primer.search.primitives import PRIMITIVES
from labml_primer.search.programs import TRANSFORMER, expand, live_values, parse


@dataclass(frozen=True)
class Costs:
    """What a search cost so far. `saving` is how many times cheaper hurdles made it."""

    individuals: int
    rejected: int
    core_hours: float
    training_share: float
    saving: float
    reached: tuple[int, ...]

    @property
    def per_core_hour(self) -> float:
        return self.individuals / self.core_hours


def ends(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of individuals that ended, in this order."""
    return [line for line in lines if "ended" in line]


def task_of(lines: Sequence[Line]) -> dict[str, Any]:
    """Return the settings of the training."""
    task: dict[str, Any] = lines[0]["began"]["task"]
    return task


def costs(lines: Sequence[Line]) -> Costs:
    """Return the costs of a search. Raises `ValueError` if none of its individuals has been trained."""
    ended, task = ends(lines), task_of(lines)
    trained = [line for line in ended if line["losses"]]
    if not trained:
        raise ValueError("no individual has been trained")
    whole = sum(line.get("whole", 0.0) for line in ended)
    used = sum(line["used"] for line in trained)
    return Costs(
        len(ended),
        len(ended) - len(trained),
        whole / 3600,
        sum(line.get("seconds", 0.0) for line in ended) / whole,
        len(trained) * task["budget"] / used,
        tuple(
            sum(len(line["losses"]) > k for line in trained)
            for k in range(task["hurdles"] + 1)
        ),
    )


def populations(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the living after each individual that ended, as lines that say how they ended."""
    size = lines[0]["began"]["size"]
    living: deque[Line] = deque(maxlen=size)
    for line in ends(lines):
        if line["losses"]:
            living.append(line)
        yield list(living)


def medians(lines: Sequence[Line]) -> list[float | None]:
    """Return the median loss of the living after each individual that ended."""
    return [
        median(line["losses"][-1] for line in living) if living else None
        for living in populations(lines)
    ]


def operations(dna: str) -> Counter[str]:
    """Return how often each primitive runs in a program."""
    lines = expand(parse(dna))
    names = (lines[value - 2].operation for value in live_values(lines))
    return Counter(name for name in names if name in PRIMITIVES)


def new_operations(dna: str) -> list[str]:
    """Return the primitives that run in a program and not in the Transformer."""
    return sorted(operations(dna).keys() - operations(str(TRANSFORMER)).keys())


def spread(lines: Sequence[Line], operation: str) -> list[float]:
    """Return the share of the living in which a primitive runs, after each individual that ended."""
    having = {
        line["born"]: operations(line["dna"])[operation] > 0
        for line in lines
        if "born" in line
    }
    return [
        sum(having[line["ended"]] for line in living) / len(living) if living else 0.0
        for living in populations(lines)
    ]


def summary(path: Path) -> str:
    """Return what a search has cost and found, in a few lines."""
    lines = read_log(path)
    found = costs(lines)
    last = [line for line in ends(lines) if line["losses"]]
    best = min(last, key=lambda line: line["losses"][-1])
    dna = next(line["dna"] for line in lines if line.get("born") == best["ended"])
    return "\n".join(
        (
            f"{path.stem}: {found.individuals} individuals, {found.rejected} rejected",
            f"  {found.per_core_hour:.0f} per core-hour, "
            f"{found.training_share:.0%} of the time is training",
            f"  hurdles save {found.saving:.1f} times; trained to each: {found.reached}",
            f"  best {best['losses'][-1]:.4f}, individual {best['ended']}, "
            f"new operations: {', '.join(new_operations(dna)) or 'none'}",
        )
    )


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]):
        print(summary(each))
