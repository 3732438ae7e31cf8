"""Tables: one rendering for results and for printed numbers."""

import re

from experiments.measured.tables import SourcedTable
from labml_primer.training.table import LONG, Table


def columns(html: str) -> list[list[str]]:
    """The cells of a table by column, with their tags."""
    rows = [re.findall(r"<t[hd].*?</t[hd]>", row) for row in html.split("</tr>")]
    return [list(column) for column in zip(*filter(None, rows), strict=True)]


def test_columns_of_numbers_are_aligned_and_others_are_not() -> None:
    entries = ["3.8K", "12,193.5", "-0.02", "−1", "2.14E+21", "<0.5", "1 ± 2", "-", ""]
    table = Table(["name", "n"], [[f"{i}rd", each] for i, each in enumerate(entries)])
    names, numbers = columns(table._repr_html_())
    assert not any("number" in cell for cell in names)
    assert all('class="number"' in cell for cell in numbers)


def test_numbers_sort_by_their_values() -> None:
    entries = ["207K", "1M", "1,024", "−0.5", "<0.5", "0.25", "1.5 ± 0.1", "-"]
    (cells,) = columns(Table(["n"], [[each] for each in entries])._repr_html_())
    found = [re.search(r'data-value="(.*?)"', cell) for cell in cells[1:]]
    values = [match and match[1] for match in found]
    assert values == ["207000", "1000000", "1024", "-0.5", "0.5", None, None, ""]


def test_only_long_tables_can_be_sorted() -> None:
    for rows in (LONG - 1, LONG):
        html = Table(["n"], [[1]] * rows)._repr_html_()
        assert html.startswith('<table class="sortable">') == (rows == LONG)


def test_columns_may_share_a_name() -> None:
    table = Table(["", "n", "n"], [["a", 1, 2]])
    assert len(columns(table._repr_html_())) == 3
    assert repr(table) == "   n  n\na  1  2"


def test_printed_numbers_are_shown_as_any_table() -> None:
    units, rows = {"model": "", "n": "<count>"}, [["a", "1M"], ["b", "-"]]
    printed = SourcedTable("T & t", "s", units, rows)
    table = Table(units, rows, "T & t. s.")
    assert printed._repr_html_() == table._repr_html_()
    assert repr(printed) == f"T & t\n{table!r}"
    assert "<caption>T &amp; t. s.</caption>" in table._repr_html_()
    assert "n <small>&lt;count&gt;</small>" in table._repr_html_()
