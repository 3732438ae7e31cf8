"""Tables of printed numbers, from a paper or our own: where they are from, and their entries by name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.records.timings import Pair, Timings, ratios, spread
from labml_primer.training.table import table_as_html, table_as_text


@dataclass(frozen=True)
class SourcedTable:
    """Entries are text, as printed. `columns` maps names to units; `source` says where the table is from."""

    title: str
    source: str
    columns: dict[str, str]
    rows: list[list[str]]

    @classmethod
    def of(
        cls,
        title: str,
        source: str,
        rows: Iterable[Mapping[str, str]],
        units: Mapping[str, str],
    ) -> "SourcedTable":
        """Return a table of rows that name their entries, all the same. Columns may have `units`."""
        named = list(rows)
        heads = {name: units.get(name, "") for name in named[0]} if named else {}
        return cls(title, source, heads, [list(row.values()) for row in named])

    def column(self, name: str, /, **where: str) -> list[str]:
        """Return a column's entries in the rows that match `where`: `column("hours", model="Primer")`."""
        names = list(self.columns)
        wanted = [(names.index(key), value) for key, value in where.items()]
        at = names.index(name)
        return [
            row[at] for row in self.rows if all(row[i] == value for i, value in wanted)
        ]

    def entry(self, name: str, /, **where: str) -> str:
        """Return a column's entry in the only row that matches `where`.

        Raises `LookupError` if no row or several rows match.
        """
        found = self.column(name, **where)
        if len(found) != 1:
            message = f"{len(found)} rows of {self.source} match {where}, not one"
            raise LookupError(message)
        return found[0]

    def __repr__(self) -> str:
        """Return the table as text under its title, for a terminal."""
        return f"{self.title}\n{table_as_text(self.columns, self.rows)}"

    def _repr_html_(self) -> str:
        """Return the table as HTML, for a notebook and for the page."""
        return table_as_html(self.columns, self.rows, f"{self.title}. {self.source}.")


def grid(
    record: Timings, title: str, rows: Mapping[str, Sequence[str]]
) -> SourcedTable:
    """Return a table of each label's entries at every place of the grid.

    The places are its rows, unless there are more labels than places.
    """
    where = [cell["where"] for cell in record["cells"]]
    if len(rows) > len(where):
        heads = ["compared", *(" / ".join(map(str, place.values())) for place in where)]
        lines = [[label, *entries] for label, entries in rows.items()]
        return SourcedTable(
            title, " / ".join(where[0]), dict.fromkeys(heads, ""), lines
        )
    places = (list(map(str, place.values())) for place in where)
    entries = zip(*rows.values(), strict=True)
    lines = [[*place, *each] for place, each in zip(places, entries, strict=True)]
    question = f"{record['question']}.json"
    return SourcedTable(title, question, dict.fromkeys([*where[0], *rows], ""), lines)


def ratio_table(record: Timings, title: str, pairs: Mapping[str, Pair]) -> SourcedTable:
    """Return a table of ratios at every place of the grid, with the spread in its title."""
    rows = {
        label: [f"{ratio:.2f}" for ratio in ratios(record, *pair)]
        for label, pair in pairs.items()
    }
    within = spread(record["cells"], pairs.values())
    return grid(record, f"{title} (half of the rounds within {within:.2f})", rows)
