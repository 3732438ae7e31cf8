"""The pages of modules that were not written for a book: all of their text is there."""

import re
from collections.abc import Callable

import pytest
from small_books import Built, Shelf, notebook_of, words

pytestmark = pytest.mark.slow
NAMES = '''
    # SPDX-License-Identifier: MIT

    """# Names

    A summary of __init__.
    """

    admin = "\u202eresu\u202c"


    def area(x, y):
        """It calls __init__ first; 2*x*y is twice the area, a<b and c>d.

        Pass --flag, d["key"] or f(x, ...) -- and "<pad>" costs $5 or $6.

        >>> area(1, 2)
        4
        """
        return 2 * x * y


    def angle():
        """Angle \\theta of a 3\\times1 convolution."""
'''
FILES = {
    "names.py": NAMES,
    "untitled.py": '''
        def first():
            """Opens <select> and <title>."""
            return 1


        print("x" * 200_000)
    ''',
    "boxes.py": '''
        """# Boxes

        !!! faq "A *FAQ* of __x__"

            A size $d_k$, and:

            ```python
            f(__x__)
            ```

            ??? note

                Inner words.

        After it.

        === "Tab"
            Of a tab.
        !!! note
        No body.

        ```
        !!! note
            In code.
        ```
        """
        x = 1
    ''',
    "formulas.py": r'''
        r"""# Formulas

        - In an item
          $$
          a
          $$
          and $$ \beta $$.
        - $$\text{A\small{B}}, \mbox{C \tiny D}$$
        """
        x = 1
    ''',
    "twice.py": '"""# One\n\nText.\n"""\n\nx = 1\n\n# # Two\n#\n# More.\ny = 2\n',
}


@pytest.fixture(scope="module")
def book(shelf: Callable[[dict[str, str]], Shelf]) -> Shelf:
    return shelf(FILES)


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    return book.well_built()


def test_code_in_a_docstring_is_on_the_page_as_typed(built: Built) -> None:
    text = words(built.page("names"))
    assert "A summary of __init__." in text
    assert "It calls __init__ first; 2*x*y is twice the area, a<b and c>d." in text
    assert 'Pass --flag, d["key"] or f(x, ...) – and “<pad>” costs $5 or $6.' in text


def test_a_doctest_is_highlighted_with_its_prompts(built: Built) -> None:
    block = built.page("names").partition('<div class="highlight-pycon')[2]
    assert words(block.partition("</pre>")[0]).endswith(">>> area(1, 2) 4")


def test_a_docstring_that_python_misreads_is_shown_as_written_with_a_warning(
    book: Shelf, built: Built
) -> None:
    assert r"Angle \theta of a 3\times1 convolution." in words(built.page("names"))
    line = (book.root / "names.py").read_text().split("\n").index("def angle():") + 2
    message = rf"names\.py:{line}: WARNING: .*\\theta.*Put an r before the quotes"
    assert re.search(message, built.log), built.log


def test_boxes_of_mkdocs_are_boxes_on_the_page_and_quotes_in_the_notebook(
    built: Built,
) -> None:
    page = built.page("boxes")
    shown = re.sub(r"\s+", " ", page.partition('role="main">')[2])
    assert shown.count('<div class="admonition') == 3
    for title in ("A <em>FAQ</em> of __x__", "Note", "Tab"):
        assert f'<p class="admonition-title">{title}</p>' in shown
    assert shown.count('<span class="math') == 1
    assert "!!! note No body." in words(page) and "!!! note In code." in words(page)
    text = "".join("".join(cell["source"]) for cell in notebook_of(built.root, "boxes"))
    for line in ("> **A *FAQ* of", "> A size $d_k$", "> f(__x__)", "> > Inner words."):
        assert line in text
    assert "> After" not in text and "{admonition}" not in text


def test_formulas_in_items_are_formulas(built: Built) -> None:
    page = built.page("formulas").partition('role="main">')[2]
    found = re.findall(
        r'<div class="math[^>]*>\s*\\\[\s*(.*?)\s*\\\]</div>', page, re.DOTALL
    )
    assert found[:2] == ["a", r"\beta"] and len(found) == 3 and "$" not in page


def test_a_size_in_the_text_of_a_formula_is_around_it(built: Built) -> None:
    page = built.page("formulas")
    assert r"\text{A}{\small\text{B}}, \mbox{C }{\tiny\mbox{D}}" in page


def test_a_license_above_the_docstring_is_on_the_page(built: Built) -> None:
    line = built.page("names").partition('id="L1"')[2].partition('id="L')[0]
    assert "# SPDX-License-Identifier: MIT" in words(line)


def test_controls_of_direction_in_code_are_isolated_and_named(built: Built) -> None:
    page = built.page("names")
    for name, control in (("U+202E", "\u202e"), ("U+202C", "\u202c")):
        assert f'<bdi class="control" data-name="{name}">{control}</bdi>' in page
        assert page.count(control) == 1


def test_a_module_without_a_title_has_its_name_a_sheet_and_a_copy(built: Built) -> None:
    page = built.page("untitled")
    assert "<h1>untitled<" in page and "no title" not in page
    assert page.count('class="sbs__sheet') == 1
    assert 'data-of="first"' in page and 'class="sbs__block def def--own' in page
    assert "Opens <select> and <title>." in words(page)
    listed = '<a class="reference internal" href="untitled.html">untitled<'
    assert listed in built.page("twice")


def test_a_second_heading_of_the_first_level_is_a_section(built: Built) -> None:
    page = built.page("twice")
    assert page.count("<h1") == 2  # with the site's name
    assert re.search(r'<h2 id="two">Two<.*More\.', page, re.DOTALL)


def test_pages_in_folders_lead_to_their_files(book: Shelf, built: Built) -> None:
    done = book.build(builder="dirhtml")
    assert done.code == 0 and done.executed() == [], done.log
    site = book.root / "_build/dirhtml"
    page = site / "untitled/index.html"
    html = page.read_text(encoding="utf-8")
    source = re.findall(r'data-source="([^"]+)"', html)
    whole = re.findall(r'href="([^"]+)">The whole output', html)
    assert len(source) == len(whole) == 1
    assert all((page.parent / link).is_file() for link in source + whole)


def test_a_book_on_one_page_has_every_chapter_with_its_code(
    book: Shelf, built: Built
) -> None:
    done = book.build(builder="singlehtml")
    assert done.code == 0 and done.executed() == [], done.log
    page = (book.root / "_build/singlehtml/index.html").read_text(encoding="utf-8")
    assert page.count('class="sbs__sheet') == len(FILES)
    assert all(f"<h2>{title}<" in page for title in ("Names", "untitled", "One"))
    assert page.count('<h3 id="two">Two<') == 1
    (whole,) = re.findall(r'href="([^"]+)">The whole output', page)
    assert (book.root / "_build/singlehtml" / whole).is_file()


def test_two_chapters_with_one_notebook_are_an_error_that_names_both(
    shelf: Callable[[dict[str, str]], Shelf],
) -> None:
    index = "# B\n\n```{toctree}\na/same\nb/same\n```\n"
    text = '"""# Same"""\n'
    book = shelf({"index.md": index, "a/same.py": text, "b/same.py": text})
    book.edit("conf.py", '"lib"', '"notebooks"')
    book.write({"notebooks/same.ipynb": "{}"})
    done = book.build()
    assert done.code != 0 and done.executed() == []
    assert re.search(r"b/same\.py:1: .*a/same\.py is notebooks/same\.ipynb", done.log)
    book.write({"notebooks/b/same.ipynb": "{}"})
    book.well_built()
    for folder, file in (
        ("a", "notebooks/same.ipynb"),
        ("b", "notebooks/b/same.ipynb"),
    ):
        notebook = (book.root / "_build/html" / file).read_text()
        assert f"{folder}/same.html" in notebook
