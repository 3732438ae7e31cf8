"""Small tables: text in a terminal, HTML in a notebook and on the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

LONG = 8  # a table with as many rows can be sorted on the page


@dataclass(frozen=True)
class Table:
    """A table whose entries are shown as `str` shows them. Numbers are aligned on the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __repr__(self) -> str:
        """Return the table as text."""
        lines = [[str(entry) for entry in row] for row in (self.columns, *self.rows)]
        widths = [max(map(len, entries)) for entries in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{entry:{w}}" for entry, w in zip(line, widths, strict=True))
            for line in lines
        )

    def _repr_html_(self) -> str:
        """Return the table as HTML. The page lets readers sort a long one by its columns."""
        numeric = [
            all(is_number(str(row[i])) for row in self.rows)
            for i in range(len(self.columns))
        ]
        kind = [' class="number"' if each else "" for each in numeric]
        head = "".join(
            f'<th{k} scope="col">{escape(name)}</th>'
            for k, name in zip(kind, self.columns, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(
                f"<td{k}>{escape(str(entry))}</td>"
                for k, entry in zip(kind, row, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        sortable = ' class="sortable"' if len(self.rows) >= LONG else ""
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        return (
            f"<table{sortable}>{caption}<thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


def is_number(entry: str) -> bool:
    """Return whether an entry is empty, a dash or starts with a number, as "1.2 ± 0.1" does."""
    return entry.strip(" -–—") == "" or entry.lstrip(" +-−±<≤~$")[:1].isdecimal()
