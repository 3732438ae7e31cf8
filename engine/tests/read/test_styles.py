"""Modules are read as people write them: in NumPy, Google, reStructuredText or plain style, as notebooks."""

import re
from collections import Counter
from collections.abc import Callable
from html import unescape

import pytest
from small_books import Built, Shelf, words
from sphinx_annotated.page.build.book import Book
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.manners.plain import is_code
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.take.markdown import MarkdownWriter
from sphinx_annotated.take.written import as_markdown

Make = Callable[[dict[str, str]], Project]

NUMPY = r'''
    """
    Rolling means
    =============

    Two of them.

    Notes
    -----
    Both skip gaps.
    """

    __docformat__ = "numpy"

    # The *default* of __init__, in [rows].
    SIZE = 3
    # SIZE = compute(4)


    def mean(x, size=SIZE):
        """
        Return the rolling mean, see :func:`median`.

        .. math:: y_i = \\frac{1}{n} \sum_j x_{i-j}

        Parameters
        ----------
        x : array_like, shape (n,)
            The values, as ``float`` or `int`.
        size : int, optional
            How many.

        Returns
        -------
        array
            The means [1]_.

        References
        ----------
        .. [1] Ann Author, Journal 3.

        Examples
        --------
        >>> # a comment
        >>> mean([1, 2])
        """


    def median(x):
        """Return the rolling median [1]_, as nobody cited [7]_ does.

        .. [1] Another.
        """
'''
GOOGLE = '''
    """Layers that mix."""


    def mix(x, *rest, rate=0.5):
        """Mixes `x` with others.

        ```python
        # no heading
        mix(a, b)
        ```

        Args:
          x (Tensor): What is mixed,
            over two lines.
          *rest: More.
          rate: A :class:`float`.

        Returns:
          A tensor.

        Raises:
          ValueError: If `rate` is negative.
        """
'''
REST = '''
    """An archive."""


    def read(path, strict=False):
        """Read an archive.

        :param path: where it is,
            with ``/``.
        :param bool strict: whether to stop.
        :returns: the entries
        :rtype: list
        :raises OSError: if there is none

        .. note:: It stays :ref:`open <nowhere>`.

        .. versionadded:: 2.0
        """
'''
PLAIN = '''
    """Parts *of* a job_name, 3 * 4 * 5.

    # not a heading

      - one
      - two
    """

    def run(job):
        """Run `job` -- or __all__ of <them>, at $5 and $6."""
        # See :func:`go` [0].
        #
        # job = load(1)
        # job.start()
        return job
'''
GALLERY = '''
    """
    .. _the-label:

    Fitting a line
    ==============

    Text with :math:`a x + b`, by `Someone <https://example.org>`_.
    """

    # sphinx_gallery_thumbnail_number = 2

    import math

    # %%
    # First step
    # ----------
    #
    # Prose of :mod:`math`.

    x = 1

    # An *ordinary* comment.
    y = 2

    ######################################################################
    # More prose in ``this`` block.

    z = 3

    ######################################################################
    # --------------
    #

    # sphinx_gallery_start_ignore
    hidden = 4
    # sphinx_gallery_end_ignore

    # %%
    # Second step
    # ###########
    #
    # Words.

    total = hidden
'''
PERCENT = """
    # ---
    # jupyter:
    #   jupytext:
    #     formats: py:percent
    # ---

    # %%
    import os

    # %% [markdown]
    # # Counting words
    # Some _stress_ and $x$.

    # %% Loading tags=["x"] {"y": 1}
    words = os.sep

    # %% Drawing of data
    words += ""

    # %% [markdown]
    # ## Result
"""
KERAS = '''
    """
    Title: A small net
    Author: [me](https://example.org)
    Date created: 2020/01/01
    Description: It counts.
    """

    """
    ## Setup

    Needs a package:
    """

    """shell
    pip install net
    """

    import os

    SIZE = 3
    """How large."""

    """
    ## Training
    """

    size = SIZE
'''
MARIMO = '''
    # /// script
    # requires-python = ">=3.10"
    # ///

    import marimo

    app = marimo.App()


    @app.cell
    def _():
        import marimo as mo
        return (mo,)


    @app.cell(hide_code=True)
    def _(mo):
        mo.md(
            r"""
            # A walk

            Steps of $\\frac{1}{2}$.
            """
        )
        return


    @app.cell
    def _(mo, n):
        mo.md(f"{n} steps")
        return
'''
FILES = {
    "numpy/rolling.py": NUMPY,
    "google/layers.py": GOOGLE,
    "rest/archive.py": REST,
    "plain/jobs.py": PLAIN,
    "rest/gallery.py": GALLERY,
    "percent.py": PERCENT,
    "keras.py": KERAS,
    "walk.py": MARIMO,
}
CONF = """
annotated_style = {"google": "google", "rest/*": "restructuredtext", "plain": "plain"}
annotated_chapters = ["**.py"]
nb_execution_mode = "off"
"""


@pytest.fixture(scope="module")
def book(shelf: Callable[..., Shelf]) -> Shelf:
    return shelf(FILES, CONF)


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    return book.well_built()


def sheet(page: str) -> str:
    """The rows of a page."""
    return page.partition('<div class="sbs__sheet')[2].partition(
        '<div class="sphinxsidebar"'
    )[0]


def parts(page: str, kind: str) -> str:
    """The prose or the code of a page, row by row."""
    found = re.findall(r'<div class="sbs__(prose|code)[^"]*"', page)
    pieces = re.split(r'<div class="sbs__(?:prose|code)[^"]*"', page)[1:]
    return "\n".join(p for k, p in zip(found, pieces, strict=True) if k == kind)


pytestmark = pytest.mark.slow


def test_numpy_docstrings_have_lists_of_parameters_and_no_sections(
    built: Built,
) -> None:
    page = built.page("numpy/rolling")
    text = words(parts(page, "prose"))
    assert "x (array_like, shape (n,)) – The values, as float or int." in text
    assert "Returns array – The means" in text
    assert "Examples >>> # a comment" in text
    assert "----" not in text and ".. " not in text and ":func:" not in text
    assert "<h1>Rolling means<" in page and "<h2" not in sheet(page)


def test_roles_lead_to_definitions_and_formulas_are_formulas(built: Built) -> None:
    page = built.page("numpy/rolling")
    assert re.search(r'href="#median"[^>]*>.*?median\(\)', page)
    assert r"y_i = \frac{1}{n} \sum_j x_{i-j}" in unescape(page)
    assert page.count('class="math') >= 1


def test_footnotes_keep_the_numbers_that_each_docstring_gives_them(
    built: Built,
) -> None:
    text = words(parts(built.page("numpy/rolling"), "prose"))
    assert "means [1]." in text and "median [1]," in text
    assert "as nobody cited [7] does." in text  # there is no such note
    assert "[1] Ann Author, Journal 3." in text and "[1] Another." in text


def test_comments_are_plain_where_docstrings_have_markup(built: Built) -> None:
    page = built.page("numpy/rolling")
    assert "The *default* of __init__, in [rows]." in words(parts(page, "prose"))


def test_code_that_was_taken_out_stays_code(built: Built) -> None:
    for name, line in (
        ("numpy/rolling", "# SIZE = compute(4)"),
        ("rest/gallery", "# sphinx_gallery_thumbnail_number = 2"),
    ):
        page = built.page(name)
        assert line in words(parts(page, "code"))
        assert line.removeprefix("# ") not in words(parts(page, "prose"))


def test_google_docstrings_have_lists_and_blocks_of_code(built: Built) -> None:
    page = built.page("google/layers")
    text = words(parts(page, "prose"))
    assert "Parameters x (Tensor) – What is mixed, over two lines." in text
    assert "*rest – More." in text and "rate – A float." in text
    assert "Returns A tensor." in text
    assert "Raises ValueError – If rate is negative." in text
    assert "Args:" not in text and "```" not in text
    assert "# no heading" in words(page.partition("highlight-python")[2])


def test_fields_of_restructuredtext_are_lists_and_directives_are_read(
    built: Built,
) -> None:
    text = words(parts(built.page("rest/archive"), "prose"))
    assert "Parameters path – where it is, with /. strict (bool) – whether" in text
    assert "Returns list – the entries Raises OSError – if there is none" in text
    assert ":param" not in text and ".. " not in text and "Note It stays open" in text


def test_plain_text_stays_as_typed(built: Built) -> None:
    page = built.page("plain/jobs")
    text = words(page)
    assert "Parts *of* a job_name, 3 * 4 * 5" in text
    assert "# not a heading" in text and "- one - two" in text
    assert "of <them>, at $5 and $6." in text
    assert "See :func:`go` [0]." in text or "See :func:go [0]." in text
    assert "<em>" not in sheet(page) and 'class="math' not in page
    assert "job = load(1) job.start()" in words(parts(page, "prose"))


def test_a_gallery_has_a_title_sections_and_prose_in_blocks(built: Built) -> None:
    page = built.page("rest/gallery")
    assert re.search(r"<h1>Fitting a line<", page)
    assert re.search(r"<h2[^>]*>First step<.*<h2[^>]*>Second step<", page, re.DOTALL)
    text = words(parts(page, "prose"))
    assert "Prose of math." in text and "More prose in this block." in text
    assert "An *ordinary* comment." in text
    assert "total = hidden" in words(page)
    assert "hidden = 4" not in words(page) and "start_ignore" not in page
    assert "%%" not in text and "####" not in page and "the-label" not in text


def test_a_percent_notebook_has_the_prose_of_its_markdown_cells(built: Built) -> None:
    page = built.page("percent")
    assert re.search(r"<h1>Counting words<", page)
    assert re.findall(r"<h2[^>]*>(.*?)<", page) == [
        "Loading",
        "Drawing of data",
        "Result",
    ]
    assert "jupytext" not in words(sheet(page)) and "%%" not in words(sheet(page))
    assert "Some stress and" in words(page)


def test_texts_between_code_are_prose_and_a_description_of_a_constant_is_not(
    built: Built,
) -> None:
    page = built.page("keras")
    assert re.search(r"<h1>A small net<", page)
    assert re.findall(r"<h2[^>]*>(.*?)<", page) == ["Setup", "Training"]
    assert "It counts." in words(page) and "Author: me" in words(page)
    assert "pip install net" in words(page.partition("highlight-shell")[2])
    assert '"""How large."""' in words(parts(page, "code"))
    assert words(parts(page, "code")).count('"""') == 2


def test_a_notebook_of_marimo_is_code_with_a_warning_of_how_to_convert_it(
    built: Built,
) -> None:
    page = built.page("walk")
    code = words(parts(page, "code"))
    assert "# A walk" in code and 'mo.md(f"{n} steps")' in code
    assert '# requires-python = ">=3.10"' in code
    assert re.search(r"walk\.py:1: WARNING: .*marimo export ipynb", built.log)


def test_nothing_is_said_of_prose_that_is_right(built: Built) -> None:
    warnings = re.findall(r".*(?:WARNING|ERROR|SEVERE|CRITICAL).*", built.log)
    ours = [w for w in warnings if "marimo" not in w and "undefined label" not in w]
    assert all("toctree" in w for w in ours), ours


WRONG = [
    ("numpy/rolling.py", "The values, as", ":bad:`x`, as"),
    ("google/layers.py", "*rest: More.", "*rest: :bad:`x`"),
    ("google/layers.py", "A tensor.", "A :bad:`tensor`."),
    ("rest/archive.py", "whether to", ":bad:`x` to"),
    ("rest/gallery.py", "# Prose of :mod:`math`", "# Prose of :bad:`math`"),
    ("rest/gallery.py", "# More prose in ``this``", "# More prose in :bad:`this`"),
]


def test_errors_in_prose_have_their_lines(book: Shelf, built: Built) -> None:
    texts = {name: (book.root / name).read_text("utf-8") for name, *_ in WRONG}
    expected = []
    for name, old, new in WRONG:
        book.edit(name, old, new)
    for name, _, new in WRONG:
        lines = (book.root / name).read_text("utf-8").split("\n")
        expected.append((name, next(i for i, x in enumerate(lines, 1) if new in x)))
    done = book.build()
    for name, text in texts.items():
        (book.root / name).write_text(text, "utf-8")
    for name, line in expected:
        assert re.search(rf'{name}:{line}: ERROR: .*"bad"', done.log), (
            name,
            line,
            done.log,
        )


# -- parsing alone ---------------------------------------------------------------------------


def read(project: Make, text: str, style: str = "markdown") -> Chapter:
    made = project({"m.py": text})
    made.styles = {"**": style}
    return made.at(made.root / "m.py").chapter


def test_a_cell_starts_at_the_margin_with_two_signs_and_a_blank(project: Make) -> None:
    text = "# %%\n# %matplotlib inline\n# !pip install x\nx = 1\n\n\n"
    text += "def f():\n    # %%timeit\n    # %% no\n    y = 2\n\n\n# %%time f()\n"
    chapter = read(project, text)
    rows = [row for cell in chapter.cells for row in cell.rows]
    assert [row.notes for row in rows if row.notes] == [[(1, "# m")]]
    shown = [n for row in rows for block in row.blocks for n in block.lines]
    assert [n for n, line in enumerate(chapter.lines, 1) if line and n > 1] == [
        n for n in shown if chapter.lines[n - 1]
    ]


# Words of lines that are neither code nor prose: the header of a notebook, and what makes its cells.
HIDDEN = {
    "percent.py": "jupyter jupytext formats percent markdown tags",
    "keras.py": "Title Description",
    "rest/gallery.py": "sphinx gallery start ignore hidden",
}


def test_every_line_is_in_one_row_in_any_style(project: Make) -> None:
    for name, text in FILES.items():
        for style in ("markdown", "numpy", "google", "restructuredtext", "plain"):
            chapter = read(project, text, style)
            rows = [row for cell in chapter.cells for row in cell.rows]
            lines = [n for row in rows for block in row.blocks for n in block.lines]
            assert lines == sorted(set(lines))
            hidden = set(range(1, len(chapter.lines) + 1)) - set(lines)
            there = Counter(long_words("\n".join(row.prose for row in rows)))
            for n in sorted(hidden):
                there.subtract(long_words(chapter.lines[n - 1]))
            lost = {word for word, count in there.items() if count < 0}
            assert lost <= set(long_words(HIDDEN.get(name, ""))), (name, style)


def long_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]{4,}", text)


def test_a_docformat_that_cannot_be_read_is_an_error_with_its_line(
    project: Make,
) -> None:
    for given in ("", ": str", ": Final[str]"):
        with pytest.raises(
            ChapterError, match=r'm\.py:2: __docformat__ is "epytext".*numpy'
        ):
            read(project, f'"""A."""\n__docformat__{given} = "epytext"\n')


def test_a_module_that_names_restructuredtext_keeps_the_books_dialect(
    project: Make,
) -> None:
    text = (
        '"""A."""\n__docformat__ = "restructuredtext en"\n\n\ndef f():\n    """B."""\n'
    )
    for style in ("numpy", "google"):
        assert f"{style} 6" in read(project, text, style).cells[-1].rows[0].prose
    assert "restructuredtext 6" in read(project, text).cells[-1].rows[0].prose


def test_the_last_pattern_that_matches_counts(project: Make) -> None:
    made = project({"a/m.py": '"""A."""\n', "a/b/m.py": '"""A."""\n'})
    made.styles = {"**": "numpy", "a": "google", "a/b/*": "plain"}
    text = '\n\n\ndef f():\n    """B."""\n'
    for name, style in (("a/m.py", "google"), ("a/b/m.py", "plain")):
        (made.root / name).write_text(text)
        chapter = made.at(made.root / name).chapter
        assert f"{style} 5" in chapter.cells[-1].rows[0].prose


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = f(y)", True),
        ("print(x)", True),
        ("import torch\nx = 1", True),
        ("for x in y:\n    f(x)", True),
        ("return f(x)", True),
        ("see f", False),
        ("training", False),
        ("return early", False),
        ("Note: this", False),
        ("x, y", False),
        ("a - b", False),
        ("", False),
        ("Values are (1, 2).", False),
    ],
)
def test_code_is_told_from_sentences(text: str, code: bool) -> None:
    assert is_code(text) is code


def test_notebooks_have_the_prose_without_roles_and_directives(project: Make) -> None:
    made = project(FILES)
    made.styles = {"numpy": "numpy", "google": "google", "plain": "plain"}
    made.styles |= {"rest": "restructuredtext"}
    found = {}
    for name in ("numpy/rolling", "google/layers", "rest/archive", "plain/jobs"):
        module = made.at(made.root / f"{name}.py")
        write = MarkdownWriter(module, Book("Book", made, "", {}), {})
        rows = [row for cell in module.chapter.cells for row in cell.rows]
        notes = [write(text, line) for row in rows for line, text in row.notes]
        found[name] = "\n\n".join(notes)
        marks = r"-{4,}|annotated-prose" + ("" if name == "plain/jobs" else r"|:\w+:`")
        assert not re.search(marks, found[name])
    assert "- `size` (int, optional): How many." in found["numpy/rolling"]
    assert "$$\ny_i = \\frac{1}{n}" in found["numpy/rolling"]
    assert "- `rate`: A `float`." in found["google/layers"]
    assert "- *raises* `OSError`: if there is none" in found["rest/archive"]
    assert r"Parts \*of\* a job\_name" in found["plain/jobs"]


def test_code_in_docstrings_is_in_notebooks_as_it_was_typed() -> None:
    for code in (
        ">>> f(1)\narray([[1, 2],\n       [3, 4]])\n>>> g(`a`, ``b``)",
        "```python\nfor x in y:\n    f(x, ``a``)\nArgs:\n    b = x[1::\n```",
        "    x = 1\n    y = 2",
    ):
        for style in ("numpy", "google", "restructuredtext"):
            text = f"Some text about it:\n\n{code}\n\nMore."
            assert code in "\n".join(as_markdown(text.split("\n"), style))


def test_a_theme_that_does_not_style_chapters_gets_the_base_style(built: Built) -> None:
    assert 'href="_static/annotated.css' in built.page("keras")
    assert (built.root / "_build/html/_static/annotated.css").is_file()


OTHERS = {
    "license.py": """
        # Copyright 2026 Somebody. All rights reserved.
        # /// script
        # dependencies = ["marimo"]
        # ///

        import marimo

        app = marimo.App()


        @app.cell
        def _(mo):
            mo.md(
                r'''
                # Blocks

                Its text.
                '''
            )
            return
    """,
    "authors.py": '''
        """Title.

        Text.
        """

        # Authors: Somebody
        # SPDX-License-Identifier: MIT

        x = 1
    ''',
    "slides.py": """
        # ---
        # jupyter:
        #   jupytext:
        #     formats: py:percent
        # ---

        # %% [markdown] slideshow={"slide_type": "slide"}
        # A cell.

        # %% language="html"
        # <p>Typed</p>

        # %%
        # %load_ext other.thing
        x = 1
    """,
}


def test_licenses_needs_of_scripts_and_other_languages_stay_as_typed(
    project: Make,
) -> None:
    made = project(OTHERS)

    def code(name: str) -> list[str]:
        chapter = made.at(made.root / f"{name}.py").chapter
        rows = [row for cell in chapter.cells for row in cell.rows]
        numbers = [n for row in rows for block in row.blocks for n in block.lines]
        return [chapter.lines[n - 1] for n in numbers if chapter.lines[n - 1]]

    assert code("license")[:4] == [
        "# Copyright 2026 Somebody. All rights reserved.",
        "# /// script",
        '# dependencies = ["marimo"]',
        "# ///",
    ]
    assert code("authors") == [
        "# Authors: Somebody",
        "# SPDX-License-Identifier: MIT",
        "x = 1",
    ]
    assert code("slides") == ["# <p>Typed</p>", "# %load_ext other.thing", "x = 1"]
    slides = made.at(made.root / "slides.py").chapter
    assert slides.title == "slides"
    assert [r.prose for c in slides.cells for r in c.rows if r.prose][1:] == ["A cell."]
