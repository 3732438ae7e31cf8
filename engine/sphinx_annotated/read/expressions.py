"""Expressions in prose that the kernel evaluates after the chapter's last cell.

They are the ``:cost:`` of a ``variant`` directive, and the content of a ``value`` role, as in
``{value}`f"{loss:.2f}"```, or ``:value:`f"{loss:.2f}"``` in reStructuredText. That of
``{value}`f"{loss:.2f}" </folder/chapter>``` is another chapter's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.syntax import ChapterError

COST = re.compile(
    r"^ *(?:[:`]{3,}\{variant\}|\.\. variant::).*\n"
    r"(?: *:[\w-]+:.*\n)*? *:cost: *(?P<text>.+)$",
    re.MULTILINE,
)
# A role, or code between backticks, in which nothing is a role.
ROLE = re.compile(
    r"(?P<code>(?<!`)(`+)(?!`).*?(?<!`)\2(?!`))|\{(?P<role>[\w:-]+)\}`(?P<text>[^`]*)`",
    re.DOTALL,
)
REST_ROLE = re.compile(
    r"(?P<code>``.+?``)|(?<!\w):(?P<role>value):`(?P<text>[^`]+)`", re.DOTALL
)
# Prose in another style, as `read/manners/styles.py` encloses it.
ENCLOSED = re.compile(r"`{5,}\{annotated-prose\} (?P<style>\w+) \d+\n")
OTHER = re.compile(r"(?P<text>.*?)\s*</(?P<docname>[^<>\s]+)>", re.DOTALL)
FENCE = re.compile(r" *(`{3,}|~{3,})(?!\{)[^`]*$")


def expressions(chapter: Chapter, path: str) -> dict[str, int]:
    """Return the expressions in a chapter's prose that its kernel evaluates, each with its first line.

    Raises ``ChapterError`` for one that is not a Python expression.
    """
    found: dict[str, int] = {}
    for text, line in _asked(chapter):
        if not OTHER.fullmatch(text):
            found.setdefault(_checked(text, path, line), line)
    return found


def of_others(chapter: Chapter) -> dict[str, tuple[str, str]]:
    """Return what a chapter's prose asks of others: each role's text, with the chapter and the expression."""
    matches = {text: OTHER.fullmatch(text) for text, _ in _asked(chapter)}
    return {text: (m["docname"], m["text"]) for text, m in matches.items() if m}


def with_others(
    others: Mapping[str, Sequence[str]],
    own: Mapping[str, str],
    of: Callable[[str], Mapping[str, str]],
) -> dict[str, str]:
    """Return a chapter's own values and those that it asks of ``others``, by the text of the role.

    ``of`` returns the values of the chapter of that name; those that it does not show are left out.
    """
    found = dict(own)
    for text, (docname, expression) in others.items():
        if expression in (values := of(docname)):
            found[text] = values[expression]
    return found


def _asked(chapter: Chapter) -> Iterator[tuple[str, int]]:
    for cell in chapter.cells:
        for row in cell.rows:
            for start, note in row.notes:
                yield from _in_note(note, start)


def one_line(text: str) -> str:
    """Return an expression that may be wrapped over several lines of prose as one line."""
    return re.sub(r"\s*\n\s*", " ", text.strip())


def _in_note(note: str, start: int) -> Iterator[tuple[str, int]]:
    enclosed = ENCLOSED.match(note)
    if enclosed and enclosed["style"] == "plain":
        return
    prose = note if enclosed else _without_code_blocks(note)
    roles = (REST_ROLE if enclosed else ROLE).finditer(prose)
    values = [m for m in roles if m["role"] == "value"]
    for match in [*COST.finditer(prose), *values]:
        place = match.start("text") if match.re is COST else match.start()
        yield one_line(match["text"]), start + prose.count("\n", 0, place)


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
