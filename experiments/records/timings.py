"""Read what the benchmarks recorded, for the pages Speed and Results in one page."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

Timings = dict[str, Any]
"""A question's record: machine, versions, commit, date, settings, and `cells`: for each place of a grid,
such as a width and a length, medians and ratios with their quartiles."""

Pair = tuple[str, str]

# A notebook has what these functions returned, not the files that they read.
__recorded__ = ("ratios_of", "values_of")


def recorded(question: str) -> Timings:
    """Return the record of a question."""
    path = Path("benchmarks/results") / f"{question}.json"
    record: Timings = json.loads(path.read_text(encoding="utf-8"))
    return record


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
    """Return the median ratio of one thing over another, at every place of a recorded grid."""
    return ratios(recorded(question), of, over)


def values_of(question: str, thing: str) -> list[float]:
    """Return the value of a thing at every place of a recorded grid."""
    return [cell["values"][thing] for cell in recorded(question)["cells"]]
