"""Sections that a reader may pass over: folded on the page, whole in the notebook."""

import re
from collections.abc import Callable

import pytest
from small_books import Built, Shelf, notebook_of

ONE = '''
    """
    # One

    A summary.

    The opening.
    """


    def grow(size: int) -> int:
        """## Grow"""
        return size + 1


    if __name__ == "__main__":
        # ## By how much?
        #
        # :::{deeper}
        # The growth, *measured*.
        # :::
        # A first note.
        print("grew by", grow(2) - 2)

        # ### Twice
        #
        # Not a new section of the page.
        print("grew twice", grow(grow(2)))

        # ## In short
        #
        # Everything grows.
        print("the end")
'''


@pytest.fixture(scope="module")
def built(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    return shelf({"one.py": ONE}).well_built("-W", "--keep-going")


def test_a_deeper_section_is_folded_up_to_the_next_heading_of_its_level(
    built: Built,
) -> None:
    page = built.page("one")
    (folded,) = re.findall(r'<details class="deeper">.*?</details>', page, re.DOTALL)
    for part in ("By how much?", "A first note.", "grew by 1", "grew twice 4"):
        assert part in folded, part
    for part in ("The opening", "Everything grows", "the end", 'id="grow"'):
        assert part in page and part not in folded, part


def test_its_heading_and_what_it_is_about_are_shown_while_it_is_closed(
    built: Built,
) -> None:
    summary = re.search(
        r'<details class="deeper"><summary>(.*?)</summary>', built.page("one"), re.S
    )
    assert summary
    assert '<h2 id="by-how-much">By how much?' in summary[1]
    assert "The growth, <em>measured</em>." in summary[1]
    assert "A first note" not in summary[1]


def test_the_notebook_has_a_deeper_section_whole(built: Built) -> None:
    cells = notebook_of(built.root, "one")
    text = "\n\n".join("".join(cell["source"]) for cell in cells)
    for part in ("## By how much?", "*Deeper", "*measured*", "A first note.", "Twice"):
        assert part in text, part
    assert "{deeper}" not in text


@pytest.fixture(scope="module")
def wrong(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    """Without a heading, opened by a link, with the next section in a note, and no chapter."""
    headless = ONE.replace("# ## By how much?", "# By how much?")
    page = "# Page\n\n:::{deeper}\nWords.\n:::\n"
    linked = ONE.replace("*measured*", "[measured](https://example.org)")
    double = ONE.replace("page.\n", "page.\n        #\n        # ## Next\n")
    assert linked != ONE != double
    files = {"one.py": headless, "two.py": linked, "three.py": double, "page.md": page}
    return shelf(files).build("-W", "--keep-going")


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("one.py", "below the heading of a section"),
        ("two.py", "cannot contain a link"),
        ("three.py", "would be folded too"),
        ("page.md", "only a chapter can fold a section"),
    ],
)
def test_a_deeper_that_cannot_fold_is_an_error_with_its_file(
    wrong: Built, file: str, message: str
) -> None:
    assert wrong.code != 0
    assert any(file in line and message in line for line in wrong.log.splitlines())
