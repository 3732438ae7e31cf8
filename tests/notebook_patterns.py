"""Notebooks compared without the numbers that a kernel computes for their prose."""

from functools import cache
from pathlib import Path

from carried import Carried
from sphinx_annotated.page.build.book import Book
from sphinx_annotated.take.notebook import reader_notebook
from write_notebooks import NOTEBOOKS, the_book

MARK = "COMPUTED"


class AnyValue(dict[str, str]):
    """Has one text for every expression."""

    def __missing__(self, expression: str) -> str:
        return MARK


@cache
def book() -> Book:
    """The book, which reads each module once."""
    return the_book()


class WithoutValues:
    """What a chapter's notebook is, whatever the values in its prose are."""

    def __init__(self, text: str):
        self.lines = text.split("\n")

    def fullmatch(self, text: str) -> bool:
        """Is it this text, but for the values?"""
        lines = text.split("\n")
        return len(lines) == len(self.lines) and all(map(same, self.lines, lines))


def same(pattern: str, line: str) -> bool:
    """Is the line the pattern's, with any text for each mark?

    The first place of each part leaves the most for the next. A regular expression would try all of them.
    """
    first, *parts = pattern.split(MARK)
    if not parts:
        return pattern == line
    *between, last = parts
    if len(line) < len(first) + len(last) or not line.startswith(first):
        return False
    at, end = len(first), len(line) - len(last)
    for part in between:
        found = line.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return line.endswith(last)


def without_values(chapter: Path) -> WithoutValues:
    """What a chapter's sources give."""
    returned = Carried(NOTEBOOKS / f"{chapter.stem}.ipynb")
    text = reader_notebook(chapter, book(), values=AnyValue(), returned=returned)
    return WithoutValues(text)
