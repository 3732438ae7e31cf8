r"""How a module's prose is written: in Markdown, as this engine's own, or as other projects write it.

The style is a setting of the book, of a folder, or of a module, by a line that other tools read too::

    __docformat__ = "numpy"

Prose in Markdown stays as it is. Prose in another style is enclosed in a directive with the line that it
starts on, and ``page/manners/written.py`` reads it. Titles become headings, because pages have sections:

- In reStructuredText, NumPy and Google style, docstrings have that markup. Comments are plain, as everywhere
  in Python, except for those that a cell starts with (``# %%``, or a row of ``#``), as in a gallery.
- In plain style, nothing is markup.
- What was written as Markdown stays Markdown: a cell that says ``[markdown]``, and ``mo.md``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sphinx_annotated.read.chapter import HEADING, Chapter, Row
from sphinx_annotated.read.chapter import LABEL as TARGET
from sphinx_annotated.read.manners import galleries, html, notebooks
from sphinx_annotated.read.manners.galleries import as_shell
from sphinx_annotated.read.manners.plain import is_code
from sphinx_annotated.read.manners.rest import LINK, ROLE, named, titles
from sphinx_annotated.read.parse import Manner, comments
from sphinx_annotated.read.patterns import matches
from sphinx_annotated.read.prose import blocks
from sphinx_annotated.read.syntax import ChapterError, docstring

MARKDOWN = "markdown"
PLAIN = "plain"
REST = ("restructuredtext", "numpy", "google")
STYLES = (MARKDOWN, *REST, PLAIN)
OTHER_NAMES = {"rest": "restructuredtext", "rst": "restructuredtext"}
OTHER_NAMES |= {"numpydoc": "numpy", "plaintext": PLAIN, "myst": MARKDOWN}
DIRECTIVE = "annotated-prose"
NUMPY = re.compile(
    r"(?i)(args|arguments|attributes|examples?|methods|notes?|references|see also|todo|warnings?|warns?"
    r"|(other |keyword )?param(eter)?s|keyword arg(ument)?s|raises|receives?|returns?|yields?)"
)
LABEL = re.compile(r"\.\. _([\w. -]+):\s*")  # of the title below it
REFERENCE = re.compile(r"`([^`<]+)`_{1,2}(?!\w)")
# Emphasis as notebooks have it. In a module's own prose, an underscore is part of a name.
UNDERSCORES = re.compile(r"(?<![\w`\\$_])_(?=[^\s_])([^_`$\n]*[^\s_`$])_(?![\w`$_])")


def known(name: str) -> str:
    """Return the style of that name, or nothing if there is none."""
    word = name.lower().split()[0] if name.split() else ""
    word = OTHER_NAMES.get(word, word)
    return word if word in STYLES else ""


def style_of(docname: str, tree: ast.Module, path: str, book: Mapping[str, str]) -> str:
    """Return the style of a module. ``book`` has styles by pattern: the last one that matches counts.

    Raises ``ChapterError`` if the module names a style that the engine cannot read.
    """
    style = MARKDOWN
    for pattern, given in book.items():
        if matches(pattern, docname):
            style = given
    for node in tree.body:
        own = _docformat(node)
        if own is None:
            continue
        # NumPy and Google style are dialects of reStructuredText, and many modules name only that.
        if known(own) == "restructuredtext" and style in REST:
            return style
        if known(own):
            return known(own)
        message = f'__docformat__ is "{own}", which the engine cannot read. '
        message += f"Name one of {', '.join(STYLES)}, or remove the line."
        raise ChapterError(path, node.lineno, message)
    return style


def _docformat(node: ast.stmt) -> str | None:
    """Return the style that a statement names, as ``__docformat__ = "numpy"`` does."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return None
    own = isinstance(target, ast.Name) and target.id == "__docformat__"
    value = getattr(node.value, "value", None)
    return value if own and isinstance(value, str) else None


def manner_of(text: str, tree: ast.Module, path: str, style: str) -> Manner:
    """Return what is prose in a module: in a notebook and in other styles, comments are no Markdown.

    Raises ``ChapterError`` if the module is a notebook that cannot be read.
    """
    notebook = notebooks.is_one(text)
    manner = (
        notebooks.read(text, tree, path) if notebook else galleries.read(text, tree)
    )
    if style == MARKDOWN and not notebook:
        return manner
    kinds = dict(manner.kinds)
    for comment in comments(text, manner)[0]:
        if comment.kind == "comment" and is_code(comment.text):
            kinds |= dict.fromkeys(range(comment.line, comment.end + 1), "code")
    return replace(manner, kinds=kinds, comments="plain")


def in_markdown(chapter: Chapter) -> Chapter:
    """Return a chapter with cells' commands of the shell as code, and with their HTML as Markdown."""
    ways = {"block": as_shell, "markdown": html.as_markdown}
    for row in (row for cell in chapter.cells for row in cell.rows):
        row.notes = [
            (line, ways.get(chapter.kinds.get(line, ""), str)(text))
            for line, text in row.notes
        ]
    return chapter


def styled(chapter: Chapter, style: str) -> Chapter:
    """Return a chapter all of whose prose is Markdown: other prose is in directives."""
    opening = chapter.opening
    for cell in chapter.cells:
        cell.rows = [_row(row, chapter, style, row is opening) for row in cell.rows]
        cell.rows = [part for row in cell.rows for part in _parts(row, chapter, style)]
    return chapter


def _parts(row: Row, chapter: Chapter, style: str) -> list[Row]:
    """Split a row at its headings: each starts a section. A definition's code is next to the first part."""
    parts, of_cell = [Row()], False
    for i, (line, text) in enumerate(row.notes):
        kind = chapter.kinds.get(line, "docstring")
        cell = kind in ("block", "markdown")
        if cell:
            text = UNDERSCORES.sub(r"*\1*", text)
        whole = [(line, text)]  # a comment has one heading, above the code next to it
        pieces = whole if kind == "comment" else _sections(line, text, cell)
        for k, piece in enumerate(pieces):
            if k or (i and HEADING.match(text) and (cell or style != MARKDOWN)):
                parts.append(Row())
                of_cell = of_cell or cell or style != MARKDOWN
            parts[-1].notes.append(piece)
    parts[0 if row.name and not of_cell else -1].blocks = row.blocks
    return parts


def _sections(line: int, text: str, cell: bool) -> Iterator[tuple[int, str]]:
    """Yield prose in pieces that start with its headings.

    In a cell, these may be underlined, and need no blank line above.
    """
    lines = text.split("\n")
    if cell:
        _unify(lines)
    starts = {0}
    for token in blocks(lines) if "\n#" in "\n".join(lines) else ():
        at = token.map[0] if token.map and token.markup.startswith("#") else 0
        if token.type == "heading_open" and not token.level and at:
            above = at
            while above and _is_label(lines[above - 1]):
                above -= 1
            if cell or not lines[at - 1].strip():
                starts.add(at if not "".join(lines[above:at]).strip() else above)
    ends = [*sorted(starts)[1:], len(lines)]
    for at, end in zip(sorted(starts), ends, strict=True):
        piece = "\n".join(lines[at:end])
        blank = len(piece) - len(piece.lstrip("\n"))
        if piece.strip():
            yield line + at + blank, piece[blank:].rstrip("\n")


def _unify(lines: list[str]) -> None:
    """Write underlined titles with signs in front."""
    signs: list[str] = []
    for title in titles(lines):
        if title.indent == 0:
            signs += [] if title.sign in signs else [title.sign]
            level = "#" * min(signs.index(title.sign) + 2, 6)
            blank = [""] * (title.end - title.at - 1)
            lines[title.at : title.end] = [f"{level} {title.text}", *blank]


def _is_label(line: str) -> bool:
    return not line.strip() or re.fullmatch(TARGET, line) is not None


def _row(row: Row, chapter: Chapter, style: str, opens: bool) -> Row:
    if style == MARKDOWN and not any(
        chapter.kinds.get(line) == "plain" for line, _ in row.notes
    ):
        return row
    notes: list[tuple[int, str]] = []
    for i, (line, text) in enumerate(row.notes):
        kind: str = chapter.kinds.get(line, "docstring")
        if opens and i == 0 and docstring(chapter.tree):
            kind = "docstring"
        title = HEADING.match(text) if opens and i == 0 else None
        if title:
            notes.append((line, f"# {plain_title(title[2], style)}"))
            above = text[: title.end()].count("\n")
            rest = text[title.end() :]
            lead = len(rest) - len(rest.lstrip("\n"))
            line, text = line + above + rest[:lead].count("\n"), rest.lstrip("\n")
        if not text.strip():
            continue
        if kind == "plain":
            notes.append(_enclosed(line, text, PLAIN))
        elif kind == "markdown" or style == MARKDOWN:
            notes.append((line, text))
        elif style == PLAIN:
            notes.append(_enclosed(line, text, PLAIN))
        else:
            has_sections = kind == "block" or bool(title)
            notes += _with_headings(line, text, style, has_sections)
    return replace(row, notes=notes)


def _with_headings(
    line: int, text: str, style: str, sections: bool
) -> Iterator[tuple[int, str]]:
    """Yield prose in pieces, and between them its underlined titles as headings, if it has sections."""
    lines = text.split("\n")
    start = 0
    levels: list[str] = []
    for at, title, sign, end, indent in titles(lines) if sections else ():
        section = style in REST[1:] and NUMPY.fullmatch(title) and sign == "-"
        if section or indent:
            continue
        if sign not in levels:
            levels.append(sign)
        target, above = "", at
        while above > start and not lines[above - 1].strip():
            above -= 1
        if label := above > start and LABEL.fullmatch(lines[above - 1]):
            target, at = f"({label[1]})=\n", above - 1
        yield from _piece(line, lines, start, at, style)
        level = min(levels.index(sign) + 2, 6)
        yield line + at, f"{target}{'#' * level} {plain_title(title, style)}"
        start = end
    yield from _piece(line, lines, start, len(lines), style)


def _piece(
    line: int, lines: list[str], start: int, end: int, style: str
) -> Iterator[tuple[int, str]]:
    while start < end and not lines[start].strip():
        start += 1
    text = "\n".join(lines[start:end]).rstrip()
    if text:
        yield _enclosed(line + start, text, style)


def plain_title(title: str, style: str) -> str:
    """Return a title as Markdown, without reStructuredText's roles and links."""
    if style == PLAIN:
        return re.sub(r"([\\`*_\[\]<>$|])", r"\\\1", title)
    if style not in REST:
        return title
    title = ROLE.sub(lambda match: f"`{named(match)}`", title)
    return REFERENCE.sub(r"\1", LINK.sub(r"\g<text>", title)).replace("``", "`")


def _enclosed(line: int, text: str, style: str) -> tuple[int, str]:
    """Return prose in a directive, and the line of the fence above it."""
    runs = [len(run) for run in re.findall(r"`{3,}", text)]
    fence = "`" * max([5, *(n + 1 for n in runs)])
    return line - 1, f"{fence}{{{DIRECTIVE}}} {style} {line}\n{text}\n{fence}"
