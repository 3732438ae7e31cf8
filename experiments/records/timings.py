"""Read what the benchmarks recorded, for the pages Speed and Results in one page."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

Timings = dict[str, Any]
"""A question's record on one kind of processor: machine, versions, commit, date, settings, and `cells`: for
each place of a grid, such as a width and a length, medians and ratios with their quartiles."""

Pair = tuple[str, str]

# A notebook has what these functions returned, not the files that they read.
__recorded__ = ("processors", "ratios_of", "values_of")


def by_processor(question: str) -> dict[str, Timings]:
    """Return the records of a question, by the name of the processor, the first one's first."""
    path = Path("benchmarks/results") / f"{question}.json"
    records: dict[str, Timings] = json.loads(path.read_text(encoding="utf-8"))
    return records


def recorded(question: str) -> Timings:
    """Return the record of a question on the first processor."""
    return next(iter(by_processor(question).values()))


def processors(question: str) -> str:
    """Return the names of the processors, as a sentence has them: "one A and one B"."""
    return " and ".join(f"one {name}" for name in by_processor(question))


def ratios(record: Timings, of: str, over: str) -> list[float]:
    """Return the median ratio of one thing over another, at every place of the grid."""
    return [
        ratio["median"]
        for cell in record["cells"]
        for ratio in cell["ratios"]
        if (ratio["of"], ratio["over"]) == (of, over)
    ]


def spread(cells: Iterable[Timings], pairs: Collection[Pair]) -> float:
    """Return the largest distance of a quartile from its median."""
    return max(
        max(ratio["high"] - ratio["median"], ratio["median"] - ratio["low"])
        for cell in cells
        for ratio in cell["ratios"]
        if (ratio["of"], ratio["over"]) in pairs
    )


def ratios_of(question: str, of: str, over: str) -> list[float]:
    """Return the median ratio of one thing over another, at every place and on every processor."""
    records = by_processor(question).values()
    return [ratio for record in records for ratio in ratios(record, of, over)]


def values_of(question: str, thing: str) -> list[float]:
    """Return the value of a thing at every place of the grid, on the first processor."""
    return [cell["values"][thing] for cell in recorded(question)["cells"]]
