"""Read what the benchmarks recorded, for the pages Speed and Results in one page."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.tables import Table

Record = dict[str, Any]
"""A question's record: machine, versions, commit, date, settings, and `cells`: for each place of a grid,
such as a width and a length, medians and ratios with their quartiles."""

Pair = tuple[str, str]


def recorded(question: str) -> Record:
    """Return the record of a question."""
    path = Path("benchmarks/results") / f"{question}.json"
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def ratios(record: Record, of: str, over: str) -> list[float]:
    """Return the median ratio of one thing over another, at every place of the grid."""
    return [
        ratio["median"]
        for cell in record["cells"]
        for ratio in cell["ratios"]
        if (ratio["of"], ratio["over"]) == (of, over)
    ]


def spread(cells: Iterable[Record], pairs: Collection[Pair]) -> float:
    """Return the largest distance of a quartile from its median."""
    return max(
        max(ratio["high"] - ratio["median"], ratio["median"] - ratio["low"])
        for cell in cells
        for ratio in cell["ratios"]
        if (ratio["of"], ratio["over"]) in pairs
    )


def grid(record: Record, title: str, rows: Mapping[str, Sequence[str]]) -> Table:
    """Return a table of each label's entries at every place of the grid.

    The places are its rows, unless there are more labels than places.
    """
    where = [cell["where"] for cell in record["cells"]]
    if len(rows) > len(where):
        heads = ["compared", *(" / ".join(map(str, place.values())) for place in where)]
        lines = [[label, *entries] for label, entries in rows.items()]
        return Table(title, " / ".join(where[0]), dict.fromkeys(heads, ""), lines)
    places = (list(map(str, place.values())) for place in where)
    entries = zip(*rows.values(), strict=True)
    lines = [[*place, *each] for place, each in zip(places, entries, strict=True)]
    question = f"{record['question']}.json"
    return Table(title, question, dict.fromkeys([*where[0], *rows], ""), lines)


def ratio_table(record: Record, title: str, pairs: Mapping[str, Pair]) -> Table:
    """Return a table of ratios at every place of the grid, with the spread in its title."""
    rows = {
        label: [f"{ratio:.2f}" for ratio in ratios(record, *pair)]
        for label, pair in pairs.items()
    }
    within = spread(record["cells"], pairs.values())
    return grid(record, f"{title} (half of the rounds within {within:.2f})", rows)
