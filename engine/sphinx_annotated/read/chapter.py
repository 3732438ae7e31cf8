"""A chapter: cells that run, each made of rows to read."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sphinx_annotated.read.prose import ANCHOR, as_typed
from sphinx_annotated.read.syntax import (
    DEFINITIONS,
    first_line,
    is_unwritten,
    last_line,
    split_lines,
)

LABEL = rf"(?:\([^()\n]+\)=|{ANCHOR})"  # a target of cross-references
LABELS = rf"(?:{LABEL}\n+)*"  # before a heading
HEADING = re.compile(LABELS + r"(#{1,6}) +(.+?)\s*(?:\n|$)")
EXERCISE = re.compile(r"^:{3,}\{exercise\}", re.MULTILINE)
SOLUTION = re.compile(r"^:{3,}\{solution\}", re.MULTILINE)
# A docstring, a comment in Markdown or without markup, the prose of a cell in the style of the book, prose
# that is Markdown in any style, and a comment that is no prose.
Kind = Literal["docstring", "comment", "plain", "block", "markdown", "code"]


@dataclass(frozen=True)
class Name:
    """A definition: its ``qualname`` in the module, and its nesting level (1 is the top)."""

    kind: Literal["class", "function", "method"]
    qualname: str
    level: int


@dataclass
class Block:
    """Consecutive lines of code in a row. The first line of a definition starts a block."""

    lines: list[int] = field(default_factory=list)
    name: Name | None = None


@dataclass
class Row:
    """A note and its lines of code. ``notes`` holds texts with the lines they start on."""

    notes: list[tuple[int, str]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def prose(self) -> str:
        """The note: comments and a docstring, separated by blank lines."""
        return "\n\n".join(text for _, text in self.notes)

    @property
    def line(self) -> int:
        """The line on which the note starts; 0 if there is none."""
        return self.notes[0][0] if self.notes else 0

    @property
    def placed(self) -> str:
        """The note as Markdown, its lines spaced as in the module, so that they can be counted."""
        out = ""
        for line, text in self.notes:
            gap = line - self.line - out.count("\n")
            out += "\n" * (max(2, gap) if out else 0) + as_typed(text)
        return out

    @property
    def heading(self) -> re.Match[str] | None:
        """The heading that the note starts with."""
        return HEADING.match(self.prose)

    @property
    def name(self) -> Name | None:
        """The definition that this row opens."""
        return self.blocks[0].name if self.blocks else None


@dataclass
class Cell:
    """Code that runs as one piece. ``dedent`` columns are cut from each line (4 in a demo).

    ``tags`` are those of a notebook's cell: of what is hidden, and of how it runs.
    """

    kind: Literal["definition", "demo", "code"]
    rows: list[Row] = field(default_factory=list)
    nodes: list[ast.stmt] = field(default_factory=list)
    dedent: int = 0
    tags: frozenset[str] = frozenset()

    @property
    def ways(self) -> list[str]:
        """How it runs, as tags: it may end with an error, which is then its output, or it does not run."""
        return sorted(self.tags & {"raises-exception", "skip-execution"})

    @property
    def is_folded(self) -> bool:
        """Whether its code is hidden until a reader asks for it."""
        return not self.tags.isdisjoint({"hide-input", "hide-cell", "remove-input"})

    @property
    def is_silent(self) -> bool:
        """Whether its outputs are not shown."""
        return not self.tags.isdisjoint({"remove-output", "remove-cell"})

    @property
    def is_stub(self) -> bool:
        """Whether this is the exercise itself: it has a function that the reader is to write."""
        asks = bool(self.rows) and EXERCISE.search(self.rows[0].prose) is not None
        return asks and any(map(is_unwritten, self.nodes))

    @property
    def is_solution(self) -> bool:
        """Whether this is the solution of an exercise."""
        if not self.rows or self.is_stub:
            return False
        prose = self.rows[0].prose
        return bool(EXERCISE.search(prose) or SOLUTION.search(prose))

    @property
    def line(self) -> int:
        """The first line of its code."""
        return first_line(self.nodes[0])

    @property
    def end(self) -> int:
        """The last line of its code."""
        return last_line(self.nodes[-1])


@dataclass(frozen=True)
class Chapter:
    """A parsed module."""

    text: str
    tree: ast.Module
    cells: list[Cell]
    verbatim: frozenset[int]  # lines that start inside a string: never dedented
    aside: frozenset[int]  # lines of comments and docstrings
    misread: dict[int, str] = field(
        default_factory=dict
    )  # words in docstrings, by line
    kinds: dict[int, Kind] = field(default_factory=dict)  # of notes, by line

    @property
    def opening(self) -> Row | None:
        """The row that contains the chapter's title."""
        row = self.cells[0].rows[0] if self.cells and self.cells[0].rows else None
        return row if row and row.heading else None

    @property
    def title(self) -> str:
        """The heading of the module's docstring."""
        heading = self.opening and self.opening.heading
        return heading.group(2) if heading else ""

    @cached_property
    def lines(self) -> list[str]:
        """The module's lines. They are counted from 1, so ``lines[n - 1]`` is line n."""
        return split_lines(self.text)

    @cached_property
    def key(self) -> str:
        """An argument of the engine's own directives, which no author can write."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:8]

    def names(self) -> Iterator[tuple[Name, int]]:
        """Yield every definition outside the demos, with the line it starts on."""
        for cell in self.cells:
            for row in cell.rows if cell.kind != "demo" else ():
                for block in row.blocks:
                    if block.name:
                        yield block.name, block.lines[0]

    @cached_property
    def spans(self) -> list[tuple[Name, int, int]]:
        """Every definition, also in demos, with its first and last line, outermost first."""
        named = {block.lines[0]: block.name for block in self._blocks if block.name}
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, DEFINITIONS) and (name := named.get(first_line(node))):
                found.append((name, first_line(node), last_line(node)))
        return found

    @cached_property
    def shown(self) -> frozenset[int]:
        """The lines that are code on the page."""
        return frozenset(n for block in self._blocks for n in block.lines)

    @property
    def _blocks(self) -> Iterator[Block]:
        rows = (row for cell in self.cells for row in cell.rows)
        return (block for row in rows for block in row.blocks)

    @cached_property
    def _around(self) -> dict[int, list[tuple[Name, int]]]:
        found: dict[int, list[tuple[Name, int]]] = {}
        for name, first, last in self.spans:
            for line in range(first, last + 1):
                found.setdefault(line, []).append((name, first))
        return found

    def around(self, line: int) -> list[tuple[Name, int]]:
        """Return the definitions around a line, outermost first, with their first lines."""
        return self._around.get(line, [])

    @cached_property
    def _firsts(self) -> dict[str, int]:
        """The line of the first definition of each name."""
        found: dict[str, int] = {}
        for name, line, _ in self.spans:
            found[name.qualname] = min(line, found.get(name.qualname, line))
        return found

    def anchor(self, line: int) -> str:
        """Return the anchor of a line: its number in its definition, else in the module."""
        for name, first in self.around(line)[-1:]:
            if first == self._firsts[name.qualname]:  # not an overload of that name
                return f"{name.qualname}:{line - first + 1}"
        return f"L{line}"

    def line_of(self, cell: Cell, number: int) -> str:
        """Return line ``number`` as the page shows it in ``cell``."""
        return self.lines[number - 1][self.cut(cell, number) :]

    def cut(self, cell: Cell, number: int) -> int:
        """Return how many blanks ``cell`` cuts from the start of a line."""
        line = self.lines[number - 1]
        blanks = len(line) - len(line.lstrip())
        return 0 if number in self.verbatim else min(cell.dedent, blanks)

    def source(self, cell: Cell, nodes: Sequence[ast.stmt] | None = None) -> str:
        """Return the code of a cell, or of some of its statements, with the comments in it."""
        nodes = cell.nodes if nodes is None else nodes
        if not nodes:
            return ""
        lines = range(first_line(nodes[0]), (nodes[-1].end_lineno or 0) + 1)
        return "\n".join(self.line_of(cell, n) for n in lines)

    def pieces(self) -> Iterator[tuple[Cell, list[ast.stmt]]]:
        """Yield what runs at once: one statement, or those that share a line."""
        for cell in self.cells:
            piece: list[ast.stmt] = []
            for node in cell.nodes:
                if piece and first_line(node) > (piece[-1].end_lineno or 0):
                    yield cell, piece
                    piece = []
                piece.append(node)
            if piece:
                yield cell, piece
