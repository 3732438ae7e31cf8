"""Notebooks as Python files, which Jupytext reads."""

import re
import sys
from collections.abc import Callable

import pytest
from small_books import Built, Shelf, words
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.syntax import ChapterError

New = Callable[..., Shelf]
Make = Callable[[dict[str, str]], Project]
VALUES = """
    # %% [markdown]
    # # Values

    # %%
    x = 1
    x + 1

    # %%
    x + 10

    # %%
    print("third")

    # %%
    "last"
"""
TRAINING = '''
    # ---
    # jupyter:
    #   jupytext:
    #     formats: ipynb,py:percent
    # ---

    # %% [markdown] id="F1" jp-MarkdownHeadingCollapsed=true tags=[]
    # # Training
    #
    # Words. <s>A year</s> *five* years.

    # %%
    import sys

    # %% id="v1" tags=["remove_input"]
    # # Uncomment it
    # #
    # !pip install -q torch

    # %% [markdown]
    """
    ## Loading

    - one
    - two
    """

    # %% id="k0"
    # # What follows
    import math

    ROOT = math.sqrt(2)
'''
MARKUP = """
    # %% [markdown]
    # <h1>A title in <em>HTML</em></h1>
    #
    # With \\(x^2\\), \\\\(y_1\\\\) and
    # \\[
    # a = b
    # \\]
    # <a name="there"></a> <!-- a remark -->
    #
    # First part
    # ----------
    # See [it](#there), <a href="values.html">the values</a>, <s>struck</s>, <pad> stays.
    #
    # ## Second part
    # Text.
    # <img src="drawn.svg" alt="A drawing" width="50%">
"""
TAGS = """
    # %% tags=["raises-exception"]
    x = 1
    1 / 0
    x = 2

    # %%
    x

    # %% tags=["hide-input"]
    y = 5
    y

    # %% tags=["remove-cell"]
    secret = 41
    secret

    # %% tags=["remove_output"]
    z = 7777
    z

    # %%
    secret + 1

    # %% tags=["skip-execution"]
    secret = 0

    # %%
    secret - 1
"""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"></svg>'


@pytest.fixture(scope="module")
def built(shelf: New) -> Built:
    files = {"values.py": VALUES, "training.py": TRAINING}
    files |= {"markup.py": MARKUP, "tags.py": TAGS, "drawn.svg": SVG}
    return shelf(files).well_built("-q")


@pytest.mark.slow
def test_a_quiet_build_that_executes_says_nothing(built: Built) -> None:
    assert built.log == ""


@pytest.mark.slow
def test_html_of_cells_is_markup_and_each_heading_a_section(built: Built) -> None:
    page = built.page("markup").partition('role="main">')[2]
    assert re.search(r"<h1>A title in HTML<", page)
    sections = r'<section[^>]* id="([^"]*)"|<h2[^>]*>(.*?)<'
    assert [b for a, b in re.findall(sections, page) if b] == [
        "First part",
        "Second part",
    ]
    assert re.search(r'<img alt="A drawing"[^>]* src="_images/drawn.svg"', page)
    assert 'href="values.html"' in page and "<s>struck</s>" in page
    assert page.count('id="there"') == 1 and "a remark" not in page
    assert "<pad> stays" in words(page)


@pytest.mark.slow
def test_formulas_in_brackets_with_backslashes_are_formulas(built: Built) -> None:
    page = built.page("markup")
    inline = re.findall(r'<span class="math[^>]*>(.*?)</span>', page)
    assert inline == [r"\(x^2\)", r"\(y_1\)"]
    assert re.search(r'<div class="math[^>]*>\s*\\\[a = b\\\]</div>', page)


@pytest.mark.slow
def test_tags_of_cells_are_obeyed(built: Built) -> None:
    text = words(built.page("tags"))
    assert "ZeroDivisionError: division by zero" in text
    assert "x = 2 ZeroDivisionError" in text and "x 1" in text
    assert "Code, 2 lines y = 5 y 5" in text or "5 Code, 2 lines y = 5 y" in text
    assert "secret = 41" not in text and "secret + 1 42" in text
    assert "secret = 0" in text and "secret - 1 40" in text
    assert "z = 7777 z" in text and "z 7777" not in text


@pytest.mark.slow
def test_each_cell_of_a_notebook_shows_its_own_value(built: Built) -> None:
    rows = built.page("values").split('<div class="sbs__row')[1:]
    shown = [words(row.rpartition("</div>")[0]) for row in rows]
    for code, value in (("x + 1", "2"), ("x + 10", "11"), ('"last"', "'last'")):
        (row,) = [each for each in shown if f"{code} {value}" in each]
    (row,) = [each for each in shown if "third" in each]
    assert 'print("third") third' in row


@pytest.mark.slow
def test_the_metadata_of_a_notebook_and_its_cells_are_not_shown(built: Built) -> None:
    page = built.page("training")
    text = words(page.partition('role="main">')[2])
    assert re.search(r"<h1>Training<", page) and "<em>five</em>" in page
    assert re.findall(r"<h2[^>]*>(.*?)<", page) == ["Loading"]
    for word in ("jupytext", "%%", "Collapsed", "remove_input", '"""'):
        assert word not in text, word


@pytest.mark.slow
def test_a_comment_in_a_cell_of_code_is_no_heading(built: Built) -> None:
    text = words(built.page("training"))
    assert "Uncomment it" in text and "What follows" in text
    assert "!pip install -q torch" in text


def chapter_of(project: Make, text: str) -> Chapter:
    made = project({"m.py": text})
    return made.at(made.root / "m.py").chapter


def test_lines_of_a_notebook_have_their_numbers_in_the_file(project: Make) -> None:
    chapter = chapter_of(project, TRAINING)
    rows = [row for cell in chapter.cells for row in cell.rows]
    code = [chapter.lines[n - 1] for r in rows for b in r.blocks for n in b.lines]
    assert [line for line in code if line] == [
        "import sys",
        "# !pip install -q torch",
        "import math",
        "ROOT = math.sqrt(2)",
    ]
    first = {row.line: row.prose.split()[-1] for row in rows if row.line}
    heading = chapter.lines.index("# # Training") + 1
    assert first[heading] == "years."
    assert chapter.lines.index("## Loading") + 1 in first


def test_a_notebook_without_jupytext_is_an_error_that_says_what_to_install(
    project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jupytext", None)
    with pytest.raises(ChapterError, match=r"m\.py:1: .*pip install"):
        chapter_of(project, VALUES)
    assert chapter_of(project, "# %%\n# Prose of a gallery.\nx = 1\n").title == "m"
