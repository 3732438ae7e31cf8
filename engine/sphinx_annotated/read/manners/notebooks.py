"""Notebooks as Python files: Jupytext reads them, and its cells are found again in the lines of the file."""

from __future__ import annotations

import ast
import re
from typing import Any

from sphinx_annotated.read.chapter import Kind
from sphinx_annotated.read.parse import Manner, comment_tokens
from sphinx_annotated.read.syntax import ChapterError, first_line

# Its settings at the start of a file, and the mark of a cell that is prose.
JUPYTEXT = re.compile(r"(?m)^#  +jupytext:|^# (%%|\+) (.* )?\[(markdown|md|raw)\]")
MARIMO = re.compile(r"(?m)^app = marimo\.App\(")
INSTALL = (
    "this is a notebook that Jupytext reads, which is not installed: "
    'pip install "sphinx-annotated[notebooks]"'
)


def is_one(text: str) -> bool:
    """Return whether a module is a notebook that Jupytext reads."""
    return JUPYTEXT.search(text) is not None


def is_of_marimo(text: str) -> bool:
    """Return whether a module is a notebook of marimo, whose texts are arguments of calls."""
    return MARIMO.search(text) is not None


def read(text: str, tree: ast.Module, path: str) -> Manner:
    """Return what is prose in a notebook. A comment in one of its cells of code is a comment.

    Raises ``ChapterError`` if Jupytext is not installed.
    """
    lines = text.split("\n")
    at = (
        lines.index("# ---", 1) + 1
        if "# ---" in lines[1:] and lines[0] == "# ---"
        else 0
    )
    kinds: dict[int, Kind] = {}
    titles: dict[int, str] = {}
    starts: set[int] = set()
    inside: set[int] = set()
    for cell in _cells(text, path):
        if title := cell.metadata.get("title"):
            at = next(n for n in range(at, len(lines)) if title in lines[n])
            titles[at + 1] = title
        found = []
        for words in filter(_bare, cell.source.split("\n")):
            place = next(
                (n for n in range(at, len(lines)) if _bare(lines[n]) == _bare(words)),
                None,
            )
            if place is None:  # Jupytext made it of the mark of the cell
                continue
            at = place + 1
            found.append(at)
            if _is_comment(lines[place]) and not _is_comment(words):
                kinds[at] = "code"  # in another language, or for the notebook
        if not found:
            continue
        own = range(found[0], found[-1] + 1)
        inside.update(own)
        if cell.cell_type == "markdown":
            around = [
                first_line(n)
                for n in tree.body
                if n.lineno <= own[0] <= (n.end_lineno or 0)
            ]
            kinds |= dict.fromkeys([*own, *around], "markdown")
        elif cell.cell_type == "code":
            starts.add(own[0])
    margin = {token.line for token in comment_tokens(text) if token.column == 0}
    return Manner(kinds=kinds, marks=margin - inside, starts=starts, titles=titles)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _bare(line: str) -> str:
    """Return a line without what makes it a comment: Jupytext adds and removes that."""
    return line.lstrip("# ").rstrip()


def _cells(text: str, path: str) -> list[Any]:
    try:
        import jupytext
    except ModuleNotFoundError:
        raise ChapterError(path, 1, INSTALL) from None
    found: list[Any] = jupytext.reads(text, fmt=".py").cells
    return found
