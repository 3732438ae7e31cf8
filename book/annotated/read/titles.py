"""The title of a chapter: each has one.

It is the ``# Title`` that the module starts with. Otherwise it is the title of its front matter,
an underlined title, the docstring's first line if that is a paragraph of its own, or the
module's name. A further ``# Heading`` is a section.
"""

from __future__ import annotations

import re
from dataclasses import replace

from annotated.read.parse import HEADING, LABELS, Cell, Chapter, Row, docstring

FRONT = re.compile(r"(?s)-{3,}\n(.*?\n)?title: *(?P<title>[^\n]+)\n(.*?\n)?-{3,}\n+")
UNDERLINED = re.compile(
    r"(?:([=~^*#\"-])\1{2,}\n)? *(?P<title>\S.*)\n([=~^*#\"-])\3{2,} *(?:\n|$)"
)
LINE = re.compile(r"(?P<title>[^\W_`*][^\n]{0,78})\n*(?:\n\n|$)")
DEEPER = re.compile(rf"^({LABELS})#{{2,6}} ")
FENCED = re.compile(r"(?ms)^ *(`{3,}|~{3,}).*?^ *\1 *$|^# (?P<heading>)")


def titled(chapter: Chapter, name: str) -> Chapter:
    """Return the chapter with one title, at its start. ``name`` is the module's."""
    cells = list(chapter.cells)
    first = cells[0].rows[0] if cells and cells[0].rows else Row()
    if docstring(chapter.tree) is None and not first.heading:
        cells.insert(0, Cell("code", [Row([(1, f"# {name}")])]))
    elif first.notes:
        line, text = first.notes[0]
        first.notes[0] = _with_title(text, line, name)
    opening = cells[0].rows[0]
    for row in (row for cell in cells for row in cell.rows):
        row.notes = [
            (line, _with_sections(text, start=row is opening and i == 0))
            for i, (line, text) in enumerate(row.notes)
        ]
    return replace(chapter, cells=cells)


def _with_title(text: str, line: int, name: str) -> tuple[int, str]:
    """Return a note that starts with a heading of the first level, and its line."""
    front = FRONT.match(text)
    title = front["title"].strip(" \"'") if front else ""
    if front:
        line, text = line + front[0].count("\n"), text[front.end() :]
    if HEADING.match(text):
        return line, DEEPER.sub(r"\1# ", text)
    if title:
        return line - 2, f"# {title}\n\n{text}"
    if match := UNDERLINED.match(text):
        rest = text[match.end() :].lstrip("\n")
        above = text[: len(text) - len(rest)].count("\n")
        return line + above - 2, f"# {match['title'].strip()}\n\n{rest}"
    match = LINE.match(text)
    if match and not re.search(r"[.!?] ", match["title"]):
        title = match["title"].strip().removesuffix(".")
        return line, f"# {title}{text[match.end('title') :]}"
    return line - 2, f"# {name}\n\n{text}"


def _with_sections(text: str, start: bool) -> str:
    """Return a note whose headings of the first level, except at its ``start``, are sections."""

    def deeper(match: re.Match[str]) -> str:
        title = start and re.fullmatch(LABELS, text[: match.start()])
        return match[0] if match["heading"] is None or title else f"#{match[0]}"

    return FENCED.sub(deeper, text)
