"""Tables of printed numbers, from a paper or our own: where they are from, and their entries by name."""

from dataclasses import dataclass

from labml_primer.training.table import table_as_html, table_as_text


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
        """Return the table as text under its title, for a terminal."""
        return f"{self.title}\n{table_as_text(self.columns, self.rows)}"

    def _repr_html_(self) -> str:
        """Return the table as HTML, for a notebook and for the page."""
        return table_as_html(self.columns, self.rows, f"{self.title}. {self.source}.")
