"""The title of a chapter: each has one.

It is the ``# Title`` that the module starts with. Otherwise it is the title of its front matter,
an underlined title, the docstring's first line if that is a paragraph of its own, or the
module's name. The summary of front matter comes below it. In reStructuredText, text may come before
the title. A further ``# Heading`` is a section.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sphinx_annotated.read.chapter import HEADING, LABELS, Cell, Chapter, Row
from sphinx_annotated.read.manners.rest import Title, titles
from sphinx_annotated.read.syntax import docstring

FRONT = re.compile(r"(?s)-{3,}\n(?P<facts>(?:.*?\n)?title:.*?\n)-{3,}(?:\n+|\Z)")
LINE = re.compile(r"(?P<title>[^\W_`*][^\n]{0,78})\n*(?:\n\n|$)")
# Without lines around it, as tutorials of Keras have it.
FIELDS = re.compile(r"Title: *(?P<title>\S.*)(?:\n[A-Z][\w ]*: *.*|\n +\S.*)*")
DEEPER = re.compile(rf"^({LABELS})#{{2,6}} ")
FENCED = re.compile(r"(?ms)^ *(`{3,}|~{3,}).*?^ *\1 *$|^# (?P<heading>)")


def titled(chapter: Chapter, name: str, markup: bool = True) -> Chapter:
    """Return the chapter with one title, at its start. ``name`` is the module's.

    Without ``markup``, no docstring or comment is Markdown.
    """
    kinds = ("markdown", *((None, "docstring", "comment", "block") if markup else ()))
    cells = list(chapter.cells)
    first = cells[0].rows[0] if cells and cells[0].rows else Row()
    if docstring(chapter.tree) is None and not first.heading:
        title = _first_heading(chapter) or (1, f"# {name}")
        cells.insert(0, Cell("code", [Row([title])]))
    elif first.notes:
        line, text = first.notes[0]
        first.notes[0] = _with_title(text, line, name, markup)
    opening = cells[0].rows[0]
    for row in (row for cell in cells for row in cell.rows):
        row.notes = [
            (line, _with_sections(text, start=row is opening and i == 0))
            if chapter.kinds.get(line) in kinds
            else (line, text)
            for i, (line, text) in enumerate(row.notes)
        ]
    return replace(chapter, cells=cells)


def _first_heading(chapter: Chapter) -> tuple[int, str] | None:
    """Take the title out of the first text of a notebook, if other code is above it."""
    for row in (row for cell in chapter.cells for row in cell.rows):
        for i, (line, text) in enumerate(row.notes):
            if chapter.kinds.get(line) in ("markdown", "block"):
                match = HEADING.match(text)
                if match is None or match[1] != "#":
                    continue
                rest = text[match.end() :]
                above = match[0].count("\n") + len(rest) - len(rest.lstrip("\n"))
                row.notes[i] = (line + above, rest.lstrip("\n"))
                chapter.kinds[line + above] = chapter.kinds[line]
                if not rest.strip():
                    del row.notes[i]
                return line, match[0].strip()
    return None


def _with_title(
    text: str, line: int, name: str, markup: bool = True
) -> tuple[int, str]:
    """Return a note that starts with a heading of the first level, and its line."""
    if fields := FIELDS.match(text):
        return line, _with_fields(fields[0]) + "\n\n" + text[fields.end() :]
    if front := FRONT.match(text):
        return _with_front(front, line)
    if HEADING.match(text):
        return line, DEEPER.sub(r"\1# ", text)
    lines = text.split("\n")
    if found := _underlined(lines, markup):
        above = "\n".join(lines[: found.at]).strip("\n")
        rest = "\n".join(lines[found.end :])
        below = rest.lstrip("\n")
        if above:
            return line, f"# {found.text}\n\n{above}\n\n{below}".rstrip()
        lead = found.end + len(rest) - len(below)
        return line + lead - 2, f"# {found.text}\n\n{below}"
    match = LINE.match(text)
    if match and not re.search(r"[.!?] ", match["title"]):
        title = match["title"].strip().removesuffix(".")
        return line, f"# {title}{text[match.end('title') :]}"
    return line - 2, f"# {name}\n\n{text}"


def _with_front(front: re.Match[str], line: int) -> tuple[int, str]:
    """Return a note with the summary of its front matter, and the title unless there is a heading."""
    title, summary = _fact(front["facts"], "title"), _fact(front["facts"], "summary")
    head, rest = f"# {title}", front.string[front.end() :]
    if heading := HEADING.match(rest):
        head = DEEPER.sub(r"\1# ", heading[0]).strip()
        rest = rest[heading.end() :].lstrip("\n")
    above = front.string.removesuffix(rest).count("\n")
    head += f"\n\n{summary}\n\n" if summary else "\n\n"
    return line + above - head.count("\n"), (head + rest).rstrip()


def _fact(facts: str, name: str) -> str:
    """Return a text of front matter, which may go on in indented lines."""
    found = re.search(rf"(?m)^{name}: *(?:[>|][-+]?)?(.*(?:\n[ \t]+.*)*)", facts)
    words = " ".join(found[1].split()) if found else ""
    return re.sub(r"""^(["'])(.*)\1$""", r"\2", words)


def _underlined(lines: list[str], markup: bool) -> Title | None:
    """Return the underlined title at the start. In reStructuredText, labels and the like may be above it."""
    flush = (title for title in titles(lines) if not title.indent)
    found = next(flush, None)
    above = "\n".join(lines[: found.at]).strip() if found else ""
    return None if above and (markup or LINE.match(above)) else found


def _with_sections(text: str, start: bool) -> str:
    """Return a note whose headings of the first level, except at its ``start``, are sections."""

    def deeper(match: re.Match[str]) -> str:
        title = start and re.fullmatch(LABELS, text[: match.start()])
        return match[0] if match["heading"] is None or title else f"#{match[0]}"

    return FENCED.sub(deeper, text)


def _with_fields(text: str) -> str:
    """Return a title and the facts of a chapter, of which each has a line of its own."""
    pairs = re.findall(r"(?m)^([A-Z][\w ]*): *(.*(?:\n +\S.*)*)", text)
    fields = {key: " ".join(value.split()) for key, value in pairs}
    title, summary = fields.pop("Title"), fields.pop("Description", "")
    facts = [f"- {key}: {value}" for key, value in fields.items() if value]
    return "\n\n".join(filter(None, [f"# {title}", summary, "\n".join(facts)]))
