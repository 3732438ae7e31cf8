"""Deviations from sources: folded to a line each, and listed on a page of their own."""

import re
from collections.abc import Callable

import pytest
from small_books import Built, Shelf

CHAPTER = '''
"""
# {title}

A summary.
"""


class Layer:
    """
    ## A layer

    It maps.

    :::{{deviation}} the slides, section {number}
    They map twice, with *two* maps. See {{doc}}`other`.
    :::

    :::{{deviation}} the paper
    It does not map.
    :::
    """
'''
FILES = {
    "index.md": "# Book\n\n```{toctree}\nsub/later\nsub/earlier\nlist\n```\n",
    "sub/later.py": CHAPTER.format(title="Comes first", number=1),
    "sub/earlier.py": CHAPTER.format(title="Comes second", number=2),
    "sub/other.md": "---\norphan: true\n---\n# Other\n",
    "list.md": "# List\n\n:::{deviations} the slides\n:::\n",
}


@pytest.fixture(scope="module")
def built(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    return shelf(FILES).well_built("-W", "--keep-going")


def test_a_deviation_is_one_line_that_opens(built: Built) -> None:
    page = built.page("sub/later")
    folded = re.findall(
        r"<details class=\"note note--deviation\">.*?</details>", page, re.S
    )
    assert len(folded) == 2
    assert (
        '<summary class="note__title">Deviation from the slides, section 1' in folded[0]
    )
    assert "They map twice" in folded[0]


def test_the_list_has_those_of_a_source_in_the_order_of_the_book(built: Built) -> None:
    page = built.page("list")
    listed = page[page.index("deviations docutils") :].partition("</div>")[0]
    items = re.findall(r"<li>.*?</li>", listed, re.S)
    assert ["section 1" in items[0], "section 2" in items[1], len(items)] == [
        True,
        True,
        2,
    ]
    assert "the paper" not in "".join(items) and "<em>two</em>" in items[0]
    assert 'href="sub/later.html"' in items[0]
    assert 'href="sub/later.html#Layer"' in items[0]
    assert 'href="sub/other.html"' in items[0]
