"""Notebooks as Python files: Jupytext reads them, and its cells are found again in the lines of the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from sphinx_annotated.read.chapter import Kind
from sphinx_annotated.read.parse import Manner, comment_tokens
from sphinx_annotated.read.syntax import ChapterError, first_line

# Its settings at the start of a file, and the mark of a cell that is prose or has tags.
JUPYTEXT = re.compile(
    r"(?m)^#  +jupytext:|^# (%%|\+) (.* )?(\[(markdown|md|raw)\]|tags=\[)"
)
MARIMO = re.compile(r"(?m)^app = marimo\.App\(")
INSTALL = (
    "this is a notebook that Jupytext reads, which is not installed: "
    "pip install jupytext"
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
    kinds: dict[int, Kind] = {}
    titles: dict[int, str] = {}
    starts: set[int] = set()
    inside: set[int] = set()
    tags: dict[tuple[int, int], set[str]] = {}
    for cell, mark, found in _placed(_cells(text, path), text.split("\n")):
        if mark:
            titles[mark] = cell.metadata["title"]
        if not found:
            continue
        first, last = min(found), max(found)
        inside.update(range(first, last + 1))
        if cell.cell_type == "markdown":
            kinds |= dict.fromkeys(range(first, last + 1), "markdown")
            ends = ((node, node.end_lineno or 0) for node in tree.body)
            within = [node for node, end in ends if node.lineno <= first <= end]
            kinds |= {first_line(node): "markdown" for node in within}
        elif cell.cell_type == "code":
            starts.add(first)
            tags[first, last] = _tags(cell.metadata)
            # What Jupytext reads as no comment is in another language, or for the notebook alone.
            kinds |= {line: "code" for line, typed in found.items() if typed}
    margin = {token.line for token in comment_tokens(text) if token.column == 0}
    removed = (range(a, b + 1) for (a, b), t in tags.items() if "remove-cell" in t)
    marks = (margin - inside).union(*removed)
    return Manner(kinds=kinds, marks=marks, starts=starts, titles=titles, tags=tags)


def _tags(metadata: Any) -> set[str]:
    """Return the tags of a cell in the words of MyST-NB, and other programs' settings for its code as one."""
    tags = {str(tag).replace("_", "-") for tag in metadata.get("tags", ())}
    hidden = (
        metadata.get("nbsphinx") == "hidden"
        or metadata.get("hide_input")
        or metadata.get("cellView") == "form"
        or metadata.get("jupyter", {}).get("source_hidden")
    )
    return tags | {"hide-input"} if hidden else tags


def _placed(
    cells: list[Any], lines: list[str]
) -> Iterator[tuple[Any, int, dict[int, bool]]]:
    """Yield each cell with the line of its title, and its lines: which are comments in the file alone."""
    header = lines[0] == "# ---" and "# ---" in lines[1:]
    at = lines.index("# ---", 1) + 1 if header else 0
    for cell in cells:
        mark = 0
        if title := cell.metadata.get("title"):
            at = next((n for n in range(at, len(lines)) if title in lines[n]), at)
            mark = at + 1
        found: dict[int, bool] = {}
        for words in filter(_bare, cell.source.split("\n")):
            same = (n for n in range(at, len(lines)) if _bare(lines[n]) == _bare(words))
            place = next(same, None)
            if place is not None:  # else Jupytext made it of the mark of the cell
                at = place + 1
                found[at] = _is_comment(lines[place]) and not _is_comment(words)
        yield cell, mark, found


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
