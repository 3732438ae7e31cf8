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
from sphinx_annotated.read.manners import galleries, notebooks
from sphinx_annotated.read.manners.galleries import as_shell
from sphinx_annotated.read.manners.plain import is_code
from sphinx_annotated.read.manners.rest import LINK, ROLE, named, titles
from sphinx_annotated.read.parse import Manner, comments
from sphinx_annotated.read.patterns import matches
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


def styled(chapter: Chapter, style: str) -> Chapter:
    """Return a chapter all of whose prose is Markdown: other prose is in directives."""
    opening = chapter.opening
    for cell in chapter.cells:
        for row in cell.rows:
            row.notes = [_with_commands(chapter, *note) for note in row.notes]
        cell.rows = [_row(row, chapter, style, row is opening) for row in cell.rows]
        cell.rows = [part for row in cell.rows for part in _parts(row, chapter, style)]
    return chapter


def _parts(row: Row, chapter: Chapter, style: str) -> list[Row]:
    """Split a row at the headings of cells and blocks: each starts a section."""
    starts = [0]
    for i, (line, text) in enumerate(row.notes):
        cell = chapter.kinds.get(line) in ("block", "markdown")
        if cell:
            row.notes[i] = (line, UNDERSCORES.sub(r"*\1*", text))
        if i and HEADING.match(text) and (cell or style != MARKDOWN):
            starts.append(i)
    ends = [*starts[1:], len(row.notes)]
    parts = [Row(row.notes[a:b]) for a, b in zip(starts, ends, strict=True)]
    parts[-1].blocks = row.blocks
    return parts


def _with_commands(chapter: Chapter, line: int, text: str) -> tuple[int, str]:
    return line, as_shell(text) if chapter.kinds.get(line) == "block" else text


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
