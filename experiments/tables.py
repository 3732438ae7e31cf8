"""Tables of numbers as they are printed, in a paper's table or of ours, for a terminal and for a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from experiments.claims import Rounded


@dataclass(frozen=True)
class Table:
    """Entries are text, as printed. `columns` has names and units; `source` says where the table stands."""

    title: str
    source: str
    columns: dict[str, str]
    rows: list[list[str]]

    def column(self, name: str, /, **where: str) -> list[str]:
        """Entries of a column, in the rows that have `where`: `column("hours", model="Primer")`."""
        names = list(self.columns)
        wanted = [(names.index(key), value) for key, value in where.items()]
        at = names.index(name)
        return [
            row[at] for row in self.rows if all(row[i] == value for i, value in wanted)
        ]

    def entry(self, name: str, /, **where: str) -> str:
        """The one entry of a column in the row that has `where`."""
        found = self.column(name, **where)
        if len(found) != 1:
            message = f"{len(found)} rows of {self.source} have {where}, not one"
            raise LookupError(message)
        return found[0]

    def __repr__(self) -> str:
        """For a terminal."""
        lines = [list(self.columns), *self.rows]
        widths = [max(map(len, entries)) for entries in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{entry:{w}}" for entry, w in zip(line, widths, strict=True))
            for line in lines
        )

    def _repr_html_(self) -> str:
        """For a notebook, and for the page, where a click on a column's head sorts by it."""
        columns = [
            _cells(head, unit, entries)
            for (head, unit), entries in zip(
                self.columns.items(), zip(*self.rows, strict=True), strict=True
            )
        ]
        head, *rows = (f"<tr>{''.join(row)}</tr>" for row in zip(*columns, strict=True))
        return (
            f'<table class="sortable"><caption>{escape(self.title)}. '
            f"{escape(self.source)}.</caption><thead>{head}</thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )


def _cells(head: str, unit: str, entries: Sequence[str]) -> list[str]:
    """A column's cells. "1M" must not sort before "207K", so it carries what it means."""
    unit = f" <small>{escape(unit)}</small>" if unit else ""
    head = f'scope="col">{escape(head)}{unit}</th>'
    try:
        values = [_value(entry) for entry in entries]
    except ValueError:
        return [f"<th {head}", *(f"<td>{escape(entry)}</td>" for entry in entries)]
    cells = (
        f'<td class="number"{value}>{escape(entry)}</td>'
        for value, entry in zip(values, entries, strict=True)
    )
    return [f'<th class="number" {head}', *cells]


def _value(entry: str) -> str:
    """The number that an entry means, where its first word is not written like one."""
    if entry.partition(" ")[0].replace(".", "", 1).isdecimal():
        return ""
    number = "" if entry == "-" else f"{Rounded.read(entry).value:.10g}"
    return f' data-value="{number}"'
