"""Tables of printed numbers, from a paper or our own, for the terminal and for a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from experiments.claims import Rounded


@dataclass(frozen=True)
class Table:
    """Entries are text, as printed. `columns` maps names to units; `source` says where the table is from."""

    title: str
    source: str
    columns: dict[str, str]
    rows: list[list[str]]

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
        """Return the table as text, for a terminal."""
        lines = [list(self.columns), *self.rows]
        widths = [max(map(len, entries)) for entries in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{entry:{w}}" for entry, w in zip(line, widths, strict=True))
            for line in lines
        )

    def _repr_html_(self) -> str:
        """Return the table as HTML, for a notebook and for the page.

        On the page, a click on a column header sorts by that column.
        """
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
    """Return a column's cells. Each has its value as an attribute, so that "207K" sorts before "1M"."""
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
    """Return the attribute with an entry's value, or "" if its first word is a plain number."""
    if entry.partition(" ")[0].replace(".", "", 1).isdecimal():
        return ""
    number = "" if entry == "-" else f"{Rounded.read(entry).value:.10g}"
    return f' data-value="{number}"'
