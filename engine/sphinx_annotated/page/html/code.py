"""The code column: highlighted lines with the module's line numbers and linked names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from docutils import nodes
from pygments import lex
from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES, _TokenType

from sphinx_annotated.read.chapter import Cell, Chapter
from sphinx_annotated.read.names import inner_names, uses
from sphinx_annotated.read.syntax import split_lines

# A tensor's sizes and dtype, and whether it is assigned here.
Tensor = tuple[str, str, bool]
Tensors = dict[int, dict[str, Tensor]]  # by line and name
# Pygments' short class, the text, the dotted name it refers to, and the tensor it was.
Segment = tuple[str, str, str, Tensor | None]


class code_lines(nodes.literal_block):  # noqa: N801 (docutils names nodes so)
    """A literal block whose HTML has one element per line. Other builders see a plain block.

    ``lines`` is a list of (number, anchor, indent level, segments, classes).
    """


class Highlighter:
    """A module's lines as segments. The whole text is highlighted once, then split."""

    def __init__(self, chapter: Chapter, module: str, package: str, tensors: Tensors):
        self.chapter, self.tensors = chapter, tensors
        self.uses = uses(chapter.text, chapter.tree, module, package)
        self.segments = _segments(chapter.text)
        keywords = (n for n in ast.walk(chapter.tree) if isinstance(n, ast.keyword))
        # Words that are no variables of the function around them.
        self.others = inner_names(chapter.tree).union(
            (word.lineno, word.col_offset) for word in keywords
        )

    def line(self, cell: Cell, number: int) -> list[Segment]:
        """Return line ``number`` as ``cell`` shows it."""
        dedent = self.chapter.cut(cell, number)
        segments: list[Segment] = []
        column = 0
        targets = {use.start: use for use in self.uses.get(number, [])}
        seen = self.tensors.get(number, {})
        for kind, text in self.segments[number - 1]:
            start, column = column, column + len(text)
            attribute = bool(segments) and segments[-1][1] == "."
            use = targets.get(start)
            target = use.target if use and use.end <= column else ""
            text = text[max(0, dedent - start) :]
            if text:
                named = kind == "n" and not attribute  # not a word in a string
                named = named and (number, start) not in self.others
                segments.append((kind, text, target, seen.get(text) if named else None))
        return segments


def _segments(text: str) -> list[list[tuple[str, str]]]:
    lines: list[list[tuple[str, str]]] = [[]]
    for token, value in lex(text, PythonLexer(stripnl=False, ensurenl=False)):
        for i, part in enumerate(value.split("\n")):
            if i:
                lines.append([])
            kind = _short(token)
            whole = kind in ("p", "s1", "s2")  # "):" and "a string" are one piece each
            if part and whole and lines[-1] and kind == lines[-1][-1][0]:
                lines[-1][-1] = (kind, lines[-1][-1][1] + part)
            elif part:
                lines[-1].append((kind, part))
    return lines + [[] for _ in range(len(split_lines(text)) - len(lines))]


def segments_of(line: str) -> list[tuple[str, str]]:
    """Highlight one line: Pygments' short classes and texts."""
    return _segments(line)[0]


def _short(token: _TokenType) -> str:
    """Return Pygments' short class, or nothing for blanks."""
    while token not in STANDARD_TYPES:
        token = token.parent
    kind = STANDARD_TYPES[token]
    return "" if kind == "w" else kind


# Characters that change the order or the look of code, and have no look of their own.
CONTROLS = re.compile(
    "[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)


def visible(text: str) -> str:
    """Return code as HTML. Controls of the direction of text are isolated and named."""

    def named(match: re.Match[str]) -> str:
        name = f"U+{ord(match[0]):04X}"
        return f'<bdi class="control" data-name="{name}">{match[0]}</bdi>'

    return CONTROLS.sub(named, escape(text, quote=False))


def visit_code_lines(translator: Any, node: code_lines) -> None:
    """Write one element per line. CSS counts the numbers, so that copies leave them out."""
    builder = translator.builder
    objects = builder.env.get_domain("py").objects
    current = builder.current_docname
    parts = []
    jumps = counted(line[0] for line in node["lines"])
    for position, (line, jump) in enumerate(zip(node["lines"], jumps, strict=True)):
        number, anchor, level, segments, classes = line
        tab = "" if position == 0 and node.get("first") else ' tabindex="-1"'
        kinds = " ".join(["ln", *([f"i{min(level, 6)}"] if level else []), *classes])
        taken = f"L{number}" in translator.document.ids  # by a definition of that name
        own = "" if taken else f' id="L{number}"'
        parts.append(
            f'<span class="{kinds}"{own}{jump}>'
            f'<a class="lno" {_named(anchor)}href="#{anchor}"{tab}></a>'
        )
        for kind, text, target, tensor in segments:
            html = visible(text)
            if tensor:
                stop = ' tabindex="0"' if tensor[2] else ""
                shape = f'data-shape="{tensor[0]}" data-dtype="{tensor[1]}"'
                html = f'<span class="t" {shape}{stop}>{html}</span>'
            if text.isspace():
                html = (
                    f'<i class="w">{html}</i>' if parts[-1].endswith("</a>") else html
                )
            elif kind not in ("", "n", "o"):  # names and operators are bare
                html = f'<span class="{kind}">{html}</span>'
            entry = objects.get(target) if target else None
            if entry:
                url = (
                    builder.get_relative_uri(current, entry.docname)
                    if entry.docname != current
                    else ""
                )
                html = f'<a class="ref" href="{url}#{entry.node_id}">{html}</a>'
            parts.append(html)
        parts.append(_inlay(segments) + "\n</span>")
    of = " ".join(node["of"])
    translator.body.append(f'<pre class="code" data-of="{of}">{"".join(parts)}</pre>')
    raise nodes.SkipNode


def counted(numbers: Iterable[int]) -> Iterator[str]:
    """Yield for each line the style that sets its number, if it does not follow the last."""
    before = 0
    for number in numbers:
        jump = f' style="counter-reset:line {number - 1}"'
        yield "" if number == before + 1 else jump
        before = number


def _named(anchor: str) -> str:
    """Return the id of a line's anchor in its definition, if it has one."""
    return f'id="{anchor}" ' if ":" in anchor else ""


def _inlay(segments: list[Segment]) -> str:
    """Return the shapes of the tensors that a line assigns, to be shown at its end."""
    given = {text: seen[0] for _, text, _, seen in segments if seen and seen[2]}
    words = "  ".join(f"{name} [{sizes}]" for name, sizes in given.items())
    return f'<i class="inlay" data-shapes="{words}"></i>' if words else ""


def code_node(
    lines: list[tuple[int, str, list[Segment], list[str]]], of: list[str], first: bool
) -> code_lines:
    """Return a block of code inside the definitions ``of``.

    The ``first`` block of a row has the row's one tab stop.
    """
    text = "\n".join("".join(s[1] for s in segments) for _, _, segments, _ in lines)
    node = code_lines(text, text, language="python", first=first, of=of)
    node["lines"] = [
        (number, anchor, _level(segments), segments, classes)
        for number, anchor, segments, classes in lines
    ]
    return node


def _level(segments: list[Segment]) -> int:
    """Return the indentation of a line in steps of four."""
    lead = segments[0][1] if segments and segments[0][1].isspace() else ""
    return len(lead) // 4
