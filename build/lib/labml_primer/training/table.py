"""Small tables: text in a terminal, HTML in a notebook and on the page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

LONG = 6  # a table with as many rows can be sorted on the page
SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9}
# "3.8K", "12,193.5", "-0.02", "2.14E+21", "<0.5", "35.00 ± 0.12", "1.5x", but not "3rd"
NUMBER = re.compile(
    r"[<≤≥>~≈$]?([+-]?[\d,]*\.?\d+(?:[eE][+-]?\d+)?)([KMB]?)x?(?![\w.])"
)


@dataclass(frozen=True)
class Table:
    """A table whose entries are shown as `str` shows them. Numbers are aligned on the right.

    `columns` are the names of the columns. A mapping gives their units too.
    """

    columns: Sequence[str] | Mapping[str, str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __repr__(self) -> str:
        """Return the table as text."""
        return table_as_text(self.columns, self.rows)

    def _repr_html_(self) -> str:
        """Return the table as HTML. The page lets readers sort a long one by its columns."""
        return table_as_html(self.columns, self.rows, self.caption)


def table_as_text(
    columns: Sequence[str] | Mapping[str, str], rows: Sequence[Sequence[object]]
) -> str:
    """Return a table with aligned columns, without units."""
    lines = [[str(entry) for entry in row] for row in (columns, *rows)]
    widths = [max(map(len, entries)) for entries in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{entry:{w}}" for entry, w in zip(line, widths, strict=True))
        for line in lines
    )


def table_as_html(
    columns: Sequence[str] | Mapping[str, str],
    rows: Sequence[Sequence[object]],
    caption: str,
) -> str:
    """Return a table as HTML."""
    units = columns if isinstance(columns, Mapping) else {}
    cells = [
        column_cells(name, units.get(name, ""), [str(row[i]) for row in rows])
        for i, name in enumerate(columns)
    ]
    head, *body = (f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    sortable = ' class="sortable"' if len(rows) >= LONG else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f"<table{sortable}>{title}<thead>{head}</thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def column_cells(name: str, unit: str, entries: Sequence[str]) -> list[str]:
    """Return a column's cells, the head first. Those of numbers have a class."""
    small = f" <small>{escape(unit)}</small>" if unit else ""
    head = f'scope="col">{escape(name)}{small}</th>'
    if not all(is_number(entry) for entry in entries):
        return [f"<th {head}", *(f"<td>{escape(entry)}</td>" for entry in entries)]
    cells = (
        f'<td class="number"{sort_value(entry)}>{escape(entry)}</td>'
        for entry in entries
    )
    return [f'<th class="number" {head}', *cells]


def is_number(entry: str) -> bool:
    """Return whether an entry is empty, a dash or starts with a number, as "1.2 ± 0.1" does."""
    return is_missing(entry) or NUMBER.match(ascii_minus(entry)) is not None


def is_missing(entry: str) -> bool:
    """Return whether an entry is empty or a dash."""
    return not entry.strip(" -–—")


def ascii_minus(entry: str) -> str:
    """Return an entry that Python can read as a number if it is one."""
    return entry.strip().replace("−", "-")


def sort_value(entry: str) -> str:
    """Return the attribute with an entry's value, so that "207K" sorts before "1M".

    A plain number needs none.
    """
    if entry.partition(" ")[0].replace(".", "", 1).isdecimal():
        return ""
    match = None if is_missing(entry) else NUMBER.match(ascii_minus(entry))
    if not match:
        return ' data-value=""'
    value = float(match[1].replace(",", "")) * SCALES[match[2]]
    return f' data-value="{value:.10g}"'
