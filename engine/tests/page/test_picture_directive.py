"""Pictures: drawings of another package, whose boxes lead into the book."""

import base64
import json
import re
from collections.abc import Callable
from html import unescape

import pytest
from builds import ENGINE
from small_books import CONF, Built, Shelf, Write
from sphinx_annotated.page.build.book import Book
from sphinx_annotated.page.directives.pictures import drawn
from sphinx_annotated.read.modules import Project
from sphinx_annotated.take.notebook import reader_notebook

SITE = "https://owner.github.io/name/"
CONFIGURED = f"""{CONF.format(engine=str(ENGINE))}
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "lib"))
annotated_pictures = "drawings"
annotated_repository = {{"url": "https://github.com/owner/name"}}
annotated_license = "MIT"
"""
DRAWING = """
    from kit import TOP

    def draw():
        return (
            '<svg class="picture" xmlns="http://www.w3.org/2000/svg" aria-label="Two boxes">'
            "<style>.box { fill: red }</style><desc>One leads here, one there.</desc>"
            '<a href="one.Plant.grow"><text>here</text></a>'
            '<a href="two.rest"><text>there</text></a><a href="two"><text>' f"{TOP}</text></a>"
            '<a href="two.KINDS[tall]"><text>a line</text></a></svg>'
        )
"""
ONE = '''
    """
    # One

    A summary.

    Look first.

    :::{picture} boxes
    :::

    Then read.
    """

    import math


    class Plant:
        """## Plant"""

        def grow(self) -> float:
            """Grow."""
            return math.pi
'''
TWO = '''
    """
    # Two

    A summary.

    Words.
    """

    KINDS = {
        "low": 1,
        "tall": 2,
    }


    def rest() -> int:
        """
        ## Rest

        :::{picture} boxes
        :::
        """
        return 0
'''
FILES = {
    "conf.py": CONFIGURED,
    "index.md": "# Book\n\n```{toctree}\none\ntwo\n```\n",
    "lib/drawings/plants/boxes.py": DRAWING,
    "lib/kit.py": 'TOP = "top"\n',
    "one.py": ONE,
    "two.py": TWO,
}


@pytest.fixture(scope="module")
def book(shelf: Callable[[dict[str, str]], Shelf]) -> Shelf:
    return shelf(FILES)


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    return book.well_built("-W", "--keep-going").copy()


def figure(page: str) -> str:
    (found,) = re.findall(
        r'<figure class="out out--picture".*?</figure>', page, re.DOTALL
    )
    return str(found)


def test_boxes_lead_to_definitions_on_this_page_and_on_others(built: Built) -> None:
    links = re.findall(r'<a href="([^"]*)"><text>', figure(built.page("one")))
    assert links == ["#Plant.grow", "two.html#rest", "two.html", "two.html#L11"]
    assert re.search(r'id="L11"', built.page("two"))
    assert 'id="Plant.grow"' in built.page("one")


def test_a_picture_is_above_the_imports_beside_the_opening(built: Built) -> None:
    page = built.page("one")
    words, picture = page.index("Then read."), page.index("out--picture")
    assert words < picture < page.index('id="L14"')


def test_a_picture_of_a_definition_leaves_its_first_line_beside_the_heading(
    built: Built,
) -> None:
    page = built.page("two")
    heading, head = page.index(">Rest<"), page.index('id="rest"')
    assert heading < head < page.index("out--picture")


def test_a_picture_takes_its_style_from_the_page(built: Built) -> None:
    assert "<style>" not in figure(built.page("one"))


def test_a_picture_as_a_file_is_whole(built: Built) -> None:
    match = re.search(r'href="([^"]*\.svg)" download', figure(built.page("one")))
    assert match
    svg = (built.root / "_build" / "html" / match[1]).read_text(encoding="utf-8")
    assert "<style>" in svg and "MIT license" in svg and SITE in svg
    links = re.findall(r'<a href="([^"]*)"', svg)
    places = ["one.html#Plant.grow", "two.html#rest", "two.html", "two.html#L11"]
    assert links == [SITE + place for place in places]


def test_a_notebook_shows_the_picture_with_its_description(write: Write) -> None:
    root = write(FILES)
    book = Book(
        "Book", Project(root), SITE, {}, license_name="MIT", pictures="drawings"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "lib"))
        notebook = json.loads(reader_notebook(root / "one.py", book))
    prose = "".join("".join(cell["source"]) for cell in notebook["cells"])
    match = re.search(r"!\[(.*?)\]\(data:image/svg\+xml;base64,(.*?)\)", prose)
    assert match
    assert match[1] == "Two boxes. One leads here, one there."
    assert f"{SITE}two.html#rest" in unescape(base64.b64decode(match[2]).decode())


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "one.py",
            "{picture} boxes",
            "{picture} foxes",
            "no folder of drawings has foxes.py",
        ),
        pytest.param(
            *("lib/drawings/plants/boxes.py", "two.rest", "two.sleep"),
            "two.sleep is not defined",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            *("lib/drawings/plants/boxes.py", "two.rest", "three"),
            "three is not defined",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_wrong_name_or_link_is_an_error_at_the_line_of_the_directive(
    book: Shelf, built: Built, file: str, old: str, new: str, message: str
) -> None:
    book.edit(file, old, new)
    done = book.build("-W", "--keep-going")
    book.edit(file, new, old)
    assert done.code != 0
    line = next(line for line in done.log.splitlines() if message in line)
    assert re.search(r"one\.py:8\b", line), line


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("lib/kit.py", "top", "bottom"),  # what the drawing imports
        pytest.param(
            *("lib/drawings/plants/boxes.py", ">here<", ">near<"),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_changed_drawing_is_drawn_again(
    book: Shelf, built: Built, file: str, old: str, new: str
) -> None:
    assert new not in figure(built.page("one"))
    book.edit(file, old, new)
    again = book.build()
    book.edit(file, new, old)
    assert again.executed() == [] and new in figure(again.page("one"))


def test_two_pictures_of_one_name_are_an_error_that_names_both(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write({f"twice/{folder}/boxes.py": DRAWING for folder in ("one", "two")})
    monkeypatch.syspath_prepend(str(root))
    with pytest.raises(LookupError, match=r"one/boxes\.py and two/boxes\.py"):
        drawn("twice", "boxes")
