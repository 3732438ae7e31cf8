"""Notebooks compared without the numbers that a kernel computes for their prose."""

import re
from pathlib import Path

from annotated.take.notebook import reader_notebook
from carried import Carried
from write_notebooks import NOTEBOOKS, the_book

BOOK = the_book()
MARK = "COMPUTED"


class AnyValue(dict[str, str]):
    """Has one text for every expression."""

    def __missing__(self, expression: str) -> str:
        return MARK


def without_values(chapter: Path) -> re.Pattern[str]:
    """A pattern of a chapter's notebook, whatever the values in its prose are."""
    text = reader_notebook(
        chapter,
        BOOK,
        values=AnyValue(),
        returned=Carried(NOTEBOOKS / f"{chapter.stem}.ipynb"),
    )
    return re.compile(re.escape(text).replace(MARK, r"[^\n]*?"))
