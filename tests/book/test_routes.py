"""Routes through a book: what a page needs, what comes next, and how long it takes."""

import re
from collections.abc import Callable
from pathlib import Path

from docutils import nodes
from docutils.utils import new_document
from routes import minutes
from small_books import Shelf, words

BOOK = Path(__file__).resolve().parents[2] / "book"
New = Callable[[dict[str, str]], Shelf]
CONF = f"""
sys.path[:0] = [{str(BOOK)!r}, {str(BOOK / "extensions")!r}]
extensions += ["theme", "routes"]
html_theme = "primer"
"""
PAGES = {
    "index.md": """
        # Book

        :::{times}
        :::

        :::{route} whole
        For readers.
        :::

        ```{toctree}
        :caption: Part

        one
        two
        three
        ```
        """,
    "one.md": "# One\n\n" + "word " * 2000,
    "two.md": "# Two\n\n```python\n" + "x = 1\n\n" * 300 + "```\n",
    "three.md": "# Three\n\nShort.",
    "routes.toml": """
        [needs]
        one = []
        two = ["one"]
        three = ["one", "two"]

        [routes]
        whole = ["one", "two", "three"]
        short = ["one", "three"]
        """,
}


def way(html: str) -> str:
    """The line of a page that says what it needs and what comes next."""
    found = re.search(r'<p class="needs".*?</p>', html, re.DOTALL)
    return found[0] if found else ""


def test_a_page_says_what_it_needs_and_what_comes_next_on_each_route(
    shelf: New,
) -> None:
    book = shelf(PAGES)
    book.configure(CONF)
    done = book.well_built("-W")
    one, two, three = (way(done.page(name)) for name in ("one", "two", "three"))
    assert words(one) == "Needs no other chapter · Next Two · Next Three"
    # Without a script, the next page of the first route alone is shown.
    assert re.findall(r'<span data-route="(\w+)"( hidden)?>', one) == [
        ("whole", ""),
        ("short", " hidden"),
    ]
    assert words(two) == "Needs One · Next Three"
    assert 'href="one.html"' in two and 'href="three.html"' in two
    assert words(three) == "Needs One, Two"
    assert way(done.page("index")) == ""
    # The welcome page has the time of each part and route: 2,000 words and 300 lines.
    welcome = words(done.page("index"))
    assert "Part30 min All parts30 min" in welcome
    assert "For readers. 30 min: One → Two → Three" in welcome


def test_a_page_on_a_route_that_is_gone_is_an_error_with_its_line(shelf: New) -> None:
    book = shelf(PAGES)
    book.configure(CONF)
    book.edit("routes.toml", 'short = ["one", "three"]', 'short = ["one", "four"]')
    done = book.build()
    assert done.code != 0
    assert f"{book.root / 'routes.toml'}:8: names four, which is no page." in done.log


def test_a_page_takes_as_long_as_its_words_and_its_lines_of_code() -> None:
    def page(*found: nodes.Node) -> nodes.document:
        document = new_document("page")
        document += list(found)
        return document

    def code(lines: int) -> nodes.literal_block:
        text = "x = 1\n\n" * lines
        return nodes.literal_block(text, text)

    class deeper(nodes.container):  # noqa: N801 (as the engine's)
        pass

    paragraph = nodes.paragraph("", "word " * 200)
    assert minutes(page(paragraph)) == 1
    assert minutes(page(nodes.paragraph("", "読" * 500))) == 1
    assert minutes(page(code(15))) == 1
    assert minutes(page(paragraph.deepcopy(), code(15))) == 2
    output = nodes.literal_block("1\n" * 90, "1\n" * 90, classes=["output"])
    assert minutes(page(output)) == 0
    assert minutes(page(deeper("", paragraph.deepcopy(), code(15)))) == 0
