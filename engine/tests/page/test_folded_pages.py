"""A page and a notebook show the figure first, and its code on demand."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from small_books import Built, Shelf
from sphinx_annotated.page.build.book import Book
from sphinx_annotated.read.modules import Project
from sphinx_annotated.run.store import Record
from sphinx_annotated.take.notebook import reader_notebook

ONE = '''
    """
    # One

    A summary.
    """


    def double(x):
        """Twice."""
        return 2 * x


    if __name__ == "__main__":
        # Look at the line.
        import matplotlib.pyplot as plt

        values = [double(x) for x in range(3)]
        print(values)
        fig, ax = plt.subplots()
        for value in values:
            # A *dot* each.
            ax.plot(value, value, ".")
        plt.show()
        # A last word.
        print("done")
'''
RESULTS = '''
    """
    # Results

    A summary.

    Words.
    """

    SCALE = 3


    def triple(x):
        """## Triple"""
        return SCALE * x


    if __name__ == "__main__":
        # What comes out.
        print(triple(2))
'''
ANSWER = '''
    """
    # Answer

    A summary.

    In short, yes.
    """

    import math


    def line():
        """Return the ends of the line."""
        return [1, math.pi]


    if __name__ == "__main__":
        # The line rises.
        import matplotlib.pyplot as plt

        plt.plot(line())
        plt.show()

        # ## Details
        #
        # A table.
        print("a table")
'''
INDEX = (
    "# Book\n\n```{toctree}\n:caption: Part\n\none\nmeasured/two\nmeasured/three\n```\n"
)
CONF = 'annotated_folded = ["measured"]\n'


@pytest.fixture(scope="module")
def built(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    made = shelf(
        {
            "index.md": INDEX,
            "one.py": ONE,
            "measured/two.py": RESULTS,
            "measured/three.py": ANSWER,
        }
    )
    conf = made.root / "conf.py"
    conf.write_text(conf.read_text() + CONF, encoding="utf-8")
    return made.well_built("-W", "--keep-going")


def folds(built: Built, page: str) -> list[Tag]:
    return BeautifulSoup(built.page(page), "html.parser").select("details.fold")


def lines(tag: Tag) -> list[str]:
    return [line.get_text().strip() for line in tag.select(".ln")]


def test_a_figure_comes_before_its_folded_code(built: Built) -> None:
    (fold,) = folds(built, "one")
    assert fold.summary and fold.summary.get_text() == "Code of this figure, 5 lines"
    assert lines(fold) == [
        "import matplotlib.pyplot as plt",
        "fig, ax = plt.subplots()",
        "for value in values:",
        'ax.plot(value, value, ".")',
        "plt.show()",
    ]
    figure = fold.find_previous("figure")
    assert figure and figure.find_parent(class_="sbs__code") is fold.parent
    row = fold.find_parent(class_="sbs__row")
    assert isinstance(row, Tag)
    shown = [line for line in lines(row) if line not in lines(fold)]
    assert shown == ["values = [double(x) for x in range(3)]", "print(values)"]
    assert "Look at the line." in row.get_text()


def test_a_figure_without_a_heading_is_beside_the_answer_of_a_folded_chapter(
    built: Built,
) -> None:
    page = BeautifulSoup(built.page("measured/three"), "html.parser")
    opening, details = page.select(".sbs__row")
    prose, code = (opening.select_one(f".sbs__{n}") for n in ("prose", "code"))
    assert prose and prose.get_text().strip() == "In short, yes."
    assert code and code.select_one("figure svg")
    note = code.select_one(".figure-note")
    assert note and note.get_text().strip() == "The line rises."
    first = code.find(["figure", "details"])
    assert first and first.name == "figure" and len(code.select("details.fold")) == 3
    hidden = code.select_one("details.fold .fold__note")
    assert hidden and "Return the ends" in hidden.get_text()
    assert "a table" in details.get_text()


def test_folded_lines_keep_their_numbers_and_links(built: Built) -> None:
    page = BeautifulSoup(built.page("one"), "html.parser")
    text = (built.root / "one.py").read_text().split("\n")
    found = {str(line["id"]): line.get_text().strip() for line in page.select(".ln")}
    for name, line in found.items():
        assert text[int(name[1:]) - 1].strip() == line
    assert len(found) == len(page.select(".ln"))


def test_a_comment_in_drawing_code_is_inside_the_fold(built: Built) -> None:
    (fold,) = folds(built, "one")
    note = fold.select_one(".fold__note")
    assert note and note.get_text().strip() == "A dot each."
    below = note.find_next(class_="ln")
    assert below and below.get_text().strip() == 'ax.plot(value, value, ".")'


def test_where_readers_come_for_results_all_code_is_folded(built: Built) -> None:
    page = BeautifulSoup(built.page("measured/two"), "html.parser")
    assert [
        line for line in page.select(".ln") if not line.find_parent("details")
    ] == []
    assert [
        fold.summary.get_text() for fold in folds(built, "measured/two") if fold.summary
    ] == [
        "Code, 1 line",
        "Code of triple, 2 lines",
        "Code, 1 line",
    ]
    for words in ("Words.", "Triple", "What comes out."):
        (found,) = page.find_all(string=re.compile(re.escape(words)))[-1:]
        assert not found.find_parent("details")


def test_the_anchor_of_folded_code_is_in_its_fold(built: Built) -> None:
    _, fold, _ = folds(built, "measured/two")
    definition = fold.find(id="triple")
    assert isinstance(definition, Tag) and "def" in definition["class"]


# -- the notebook -----------------------------------------------------------------------------


@pytest.fixture
def notebook(
    project: Callable[[dict[str, str]], Project],
) -> Callable[[str, str], list[dict[str, Any]]]:
    """The cells of a chapter's notebook in a book that folds ``measured``."""

    def maker(name: str, text: str) -> list[dict[str, Any]]:
        root = project({name: text})
        book = Book("Fixture", root, "", install={}, folded=("measured",))
        cells: list[dict[str, Any]] = json.loads(
            reader_notebook(root.root / name, book)
        )["cells"]
        return cells

    return maker


def is_folded(cell: dict[str, Any]) -> bool:
    forms = cell["metadata"] == {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert forms == cell["source"][0].startswith("# @title ")
    return forms


def test_a_notebook_has_drawing_code_in_a_folded_cell_of_its_own(
    notebook: Callable[[str, str], list[dict[str, Any]]],
) -> None:
    cells = [c for c in notebook("one.py", ONE) if c["cell_type"] == "code"]
    assert [is_folded(cell) for cell in cells] == [False, False, True, False]
    compute, draw = ("".join(cell["source"]) for cell in cells[1:3])
    assert compute == "values = [double(x) for x in range(3)]\nprint(values)"
    assert draw.split("\n") == [
        '# @title Code of this figure { display-mode: "form" }',
        "import matplotlib.pyplot as plt",
        "fig, ax = plt.subplots()",
        "for value in values:",
        "    # A *dot* each.",
        '    ax.plot(value, value, ".")',
        "plt.show()",
    ]


def test_a_notebook_of_results_is_folded_and_runs(
    notebook: Callable[[str, str], list[dict[str, Any]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = notebook("measured/two.py", RESULTS)
    codes = [c for c in cells if c["cell_type"] == "code"]
    assert [is_folded(cell) for cell in codes] == [True, True, True]
    space: dict[str, object] = {}
    for cell in codes:
        exec("".join(cell["source"]), space)
    assert capsys.readouterr().out == "6\n"


def test_a_figure_is_the_output_of_the_folded_cell(
    project: Callable[[dict[str, str]], Project],
) -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": "[0, 2, 4]\n"}
    figure = {"output_type": "display_data", "metadata": {}}
    figure["data"] = {"image/svg+xml": "<svg></svg>"}
    root = project({"one.py": ONE})
    record = Record(outputs=[[], [printed, figure], []], date="2026-11-21")
    book = Book("Fixture", root, "", install={})
    cells = json.loads(reader_notebook(root.root / "one.py", book, record))["cells"]
    compute, draw = [c for c in cells if c["cell_type"] == "code"][1:3]
    assert [output["output_type"] for output in compute["outputs"]] == ["stream"]
    assert [output["output_type"] for output in draw["outputs"]] == ["display_data"]
