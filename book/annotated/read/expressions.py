"""Expressions in prose that the kernel evaluates after the chapter's last cell.

They are the ``:cost:`` of a ``variant`` directive, and the content of a ``value`` role, as in
``{value}`f"{loss:.2f}"```.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from annotated.read.parse import Chapter, ChapterError

COST = re.compile(r"^:cost: *(?P<text>.+)$", re.MULTILINE)
# A role, or code between backticks, in which nothing is a role.
ROLE = re.compile(
    r"(?P<code>(?<!`)(`+)(?!`).*?(?<!`)\2(?!`))|\{(?P<role>[\w:-]+)\}`(?P<text>[^`]*)`",
    re.DOTALL,
)
FENCE = re.compile(r" *(`{3,}|~{3,})(?!\{)[^`]*$")


def expressions(chapter: Chapter, path: str) -> dict[str, int]:
    """Return the expressions in a chapter's prose, each with its first line.

    Raises ``ChapterError`` for one that is not a Python expression.
    """
    found: dict[str, int] = {}
    for cell in chapter.cells:
        for row in cell.rows:
            for start, note in row.notes:
                for text, line in _in_note(note, start):
                    found.setdefault(_checked(text, path, line), line)
    return found


def one_line(text: str) -> str:
    """Return an expression that may be wrapped over several lines of prose as one line."""
    return re.sub(r"\s*\n\s*", " ", text.strip())


def _in_note(note: str, start: int) -> Iterator[tuple[str, int]]:
    prose = _without_code_blocks(note)
    values = [m for m in ROLE.finditer(prose) if m["role"] == "value"]
    for match in [*COST.finditer(prose), *values]:
        yield one_line(match["text"]), start + prose.count("\n", 0, match.start())


def _without_code_blocks(note: str) -> str:
    """Return the note with the lines of fenced code empty."""
    lines, fence = [], ""
    for line in note.split("\n"):
        opening = FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
            line = ""
        elif opening:
            fence, line = opening[1], ""
        lines.append(line)
    return "\n".join(lines)


def _checked(text: str, path: str, line: int) -> str:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        message = f"`{text}` is not a Python expression. Correct it."
        raise ChapterError(path, line, message) from None
    return text
