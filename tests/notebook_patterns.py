"""Notebooks compared without the numbers that a kernel computes for their prose."""

import re
from pathlib import Path

from annotated.take.notebook import reader_notebook
from write_notebooks import the_book

BOOK = the_book()
MARK = "COMPUTED"


class AnyValue(dict[str, str]):
    """Has one text for every expression."""

    def __missing__(self, expression: str) -> str:
        return MARK


def without_values(chapter: Path) -> re.Pattern[str]:
    """A pattern of a chapter's notebook, whatever the values in its prose are."""
    text = reader_notebook(chapter, BOOK, values=AnyValue())
    return re.compile(re.escape(text).replace(MARK, r"[^\n]*?"))
