"""Parse a module's text into a chapter: cells that run, each made of rows to read.

This is pure: text in, data out. Nothing here imports, executes or opens anything.

A *row* is one note and the lines of code next to it. A *cell* runs as one piece: a whole
definition, one step of a demo (the body of ``if __name__ == "__main__":`` up to the next
comment at its top level), or a run of plain statements. Its statements run one by one, so
that a comment, which may cut a cell in two, changes nothing that runs.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from bisect import bisect, bisect_left
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from sphinx_annotated.read.chapter import Block, Cell, Chapter, Kind, Name, Row
from sphinx_annotated.read.docstrings import as_written
from sphinx_annotated.read.syntax import (
    DEFINITIONS,
    Definition,
    check_docstrings,
    docstring,
    first_line,
    is_demo,
    last_line,
    split_lines,
    syntax_tree,
)

PRAGMA = re.compile(
    r"#(!|:|\s*(noqa\b|nosec\b|(type|fmt|mypy|pyright|pragma|pylint|ruff|isort|yapf|vim):"
    r"|(end)?region\b|%%|%[a-z_]{2,}\b|![a-z]+ |-\*-|(en)?coding[:=]))"
)
RULE = re.compile(r"[-=*~_#+]{3,}\s*")  # above or below a comment: it only decorates
SIDES = re.compile(r"(?m)^(#+ +|[-=]{2,} )(.*?)( +#+| [-=]{3,})?$")  # of a title
# What a script needs, for the tools that run it, and whose it is.
SCRIPT = re.compile(r"(?m)^/// [\w-]+\s*$")
LICENSE = re.compile(r"(?im)^(SPDX-License-Identifier:|copyright\b|\(c\) |license: )")
ROW = re.compile(r"#{3,}\s*")  # of a box around a comment
UNDERLINE = re.compile(r"# #{3,}\s*")  # of a title in one


@dataclass(frozen=True)
class Manner:
    """What is prose in a module by the manner of another format. ``read/manners`` has these.

    ``kinds`` are those of full-line comments, by line, and of statements that are prose, by their first
    lines. Other comments are of the kind ``comments``. ``marks`` are lines that are neither prose nor code,
    ``starts`` those on which cells of code start, and ``titles`` headings by the lines of marks. ``tags`` are
    those of cells of code, by their first and last lines.
    """

    kinds: Mapping[int, Kind] = field(default_factory=dict)
    comments: Kind = "comment"
    marks: Set[int] = frozenset()
    starts: Set[int] = frozenset()
    titles: Mapping[int, str] = field(default_factory=dict)
    tags: Mapping[tuple[int, int], Set[str]] = field(default_factory=dict)


def parse(text: str, path: str = "<module>") -> Chapter:
    """Parse a module. Raises ``ChapterError`` if it is not valid Python."""
    text = re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff"))
    return chapter_of(text, syntax_tree(text, path), path, Manner())


def chapter_of(text: str, tree: ast.Module, path: str, manner: Manner) -> Chapter:
    """Return the chapter of a module. Raises ``ChapterError`` if it cannot be written to a page."""
    check_docstrings(tree, path)
    return _Reader(text, tree, manner).chapter()


@lru_cache(maxsize=1)  # several readers ask for those of one module, in turn
def tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of a module."""
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


class CommentToken(NamedTuple):
    """A comment: its place, its text with the ``#``, and whether its line has no code."""

    line: int
    column: int
    text: str
    alone: bool


def comment_tokens(text: str) -> Iterator[CommentToken]:
    """Yield the comments of a module."""
    for token in tokens(text):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            alone = not token.line[:column].strip()
            yield CommentToken(line, column, token.string, alone)


@dataclass(frozen=True)
class Comment:
    """Full-line comments on consecutive lines with the same indentation."""

    line: int
    end: int
    column: int
    text: str
    kind: Kind = "comment"

    @property
    def is_boxed(self) -> bool:
        """Whether there are rows of ``#`` above and below it."""
        lines = self.text.split("\n")
        return len(lines) > 2 and all(ROW.fullmatch(lines[at]) for at in (0, -1))

    @property
    def note(self) -> tuple[int, str]:
        """Its text without the rules above and below it, and the line of its first word."""
        line, words = self.line, _without_sides(self.text.split("\n"))
        rule = ROW if self.kind in ("block", "markdown") else RULE
        while words and rule.fullmatch(words[-1]):
            words.pop()
        while words and RULE.fullmatch(words[0]):
            words.pop(0)
            line += 1
        text = "\n".join("" if ROW.fullmatch(each) else each for each in words)
        return line, SIDES.sub(r"\2", text) if self.kind == "plain" else text


def _without_sides(words: list[str]) -> list[str]:
    """Return lines without the ``#`` at their ends, where these are the side of a box."""
    words = list(words)
    rows = [at for at, each in enumerate(words) if ROW.fullmatch(each)]
    for above, below in pairwise(rows):
        inside = range(above + 1, below)
        if all(words[at].endswith("#") for at in inside if words[at].strip()):
            for at in inside:
                words[at] = words[at].rstrip("#").strip()
    return words


def comments(
    text: str, manner: Manner | None = None
) -> tuple[list[Comment], dict[int, str]]:
    """Return the comments that are prose, and by their lines those after code."""
    manner = manner or Manner()
    found: list[Comment] = []
    trailing: dict[int, str] = {}
    for line, column, written, alone in comment_tokens(text):
        kind = manner.kinds.get(line, manner.comments)
        if PRAGMA.match(written) or line in manner.marks or kind == "code":
            continue
        words = written.removeprefix("#").removeprefix(" ")
        if kind == "block" and UNDERLINE.fullmatch(written):
            words = words.replace("#", ";")  # rows of ``#`` are boxes
        last = found[-1] if found else None
        if not alone:
            trailing[line] = words
        elif last and (last.end, last.column, last.kind) == (line - 1, column, kind):
            found[-1] = replace(last, end=line, text=f"{last.text}\n{words}")
        else:
            found.append(Comment(line, line, column, words, kind))
    found += [
        Comment(line, line, 0, f"## {title}", "markdown")
        for line, title in manner.titles.items()
    ]
    return sorted(found, key=lambda comment: comment.line), trailing


class _Reader:
    """Sorts a module's lines into cells and rows."""

    def __init__(self, text: str, tree: ast.Module, manner: Manner):
        self.text, self.tree, self.manner = text, tree, manner
        self.lines = split_lines(text)
        found, self.trailing = comments(text, manner)
        self.comments = [
            c
            for c in found
            if not SCRIPT.search(c.text)
            and not (LICENSE.search(c.text) and self._is_above_code(c))
        ]
        self.comment_lines = [comment.line for comment in self.comments]
        # line of code or comment -> notes
        self.notes: dict[int, list[tuple[int, str]]] = {}
        self.hidden: set[int] = set(manner.marks)  # lines that are no code on the page
        self.defs: dict[int, Name] = {}
        self.misread: dict[int, str] = {}  # see docstrings.py
        self.kinds: dict[int, Kind] = dict.fromkeys(self.trailing, manner.comments)
        for comment in self.comments:
            line, words = comment.note
            if words:
                self.notes[comment.line] = [(line, words)]
                self.kinds[line] = comment.kind
            self.hidden.update(range(comment.line, comment.end + 1))
        self.texts = self._texts()
        self._definitions(tree, [])

    def chapter(self) -> Chapter:
        cells = list(self._cells())
        opening = docstring(self.tree)
        if opening:
            if not cells or cells[0].kind != "code" or cells[0].rows[0].prose:
                cells.insert(0, Cell("code", [Row()]))
            cells[0].rows[0].notes = self._prose_of(opening)
            cells[0].rows[0].blocks[:0] = self._license(opening)
        for (first, last), tags in self.manner.tags.items():
            for cell in cells:
                if cell.nodes and first <= cell.line <= last:
                    cell.tags = frozenset(tags)
        verbatim, aside = self._verbatim(), frozenset(self.hidden)
        return Chapter(
            *(self.text, self.tree, cells, verbatim, aside),
            *(self.misread, self.kinds),
        )

    def _is_above_code(self, comment: Comment) -> bool:
        """Return whether a comment comes before all code, and not above the module's docstring."""
        opening = docstring(self.tree)
        if opening and comment.line < opening.lineno:
            return False
        code = [node for node in self.tree.body if node is not opening]
        return not code or comment.end < first_line(code[0])

    def _texts(self) -> set[int]:
        """Note the statements that are prose in this manner, and return their lines."""
        found: set[int] = set()
        for node in self.tree.body:
            line = first_line(node)
            if isinstance(node, ast.Expr) and line in self.manner.kinds:
                notes = self._prose_of(node)
                self.kinds[notes[0][0]] = self.manner.kinds[line]
                self.notes.setdefault(line, []).extend(notes)
                self.hidden.update(range(line, last_line(node) + 1))
                found.add(line)
        return found

    def _lead_cut(self, text: ast.expr) -> tuple[int, str]:
        """Return the text of an expression with the line of its first word."""
        raw = self._written(text)
        lead = len(raw) - len(raw.lstrip())
        return text.lineno + raw[:lead].count("\n"), inspect.cleandoc(raw)

    def _license(self, opening: ast.Expr) -> list[Block]:
        """Return the comments above the module's docstring: they are shown as they are."""
        above = [c for c in self.comments if c.line < opening.lineno]
        lines = [n for c in above for n in range(c.line, c.end + 1)]
        self.hidden.difference_update(lines)
        return [Block(lines)] if lines else []

    def _verbatim(self) -> frozenset[int]:
        lines: set[int] = set()
        opened: list[int] = []  # since Python 3.12 an f-string is several tokens
        for token in tokens(self.text):
            kind = tokenize.tok_name[token.type]
            if kind == "STRING":
                lines.update(range(token.start[0] + 1, token.end[0] + 1))
            elif kind.endswith("STRING_START"):
                opened.append(token.start[0])
            elif kind.endswith("STRING_END"):
                lines.update(range(opened.pop() + 1, token.end[0] + 1))
        return frozenset(lines)

    def _prose_of(self, node: ast.Expr) -> list[tuple[int, str]]:
        """Return a docstring's text with the line of its first word, and the comment after it."""
        text = self._lead_cut(node.value)
        end = last_line(node)
        after = self.trailing.get(end) if self._alone(node) else None
        return [text, (end, after)] if after else [text]

    def _written(self, node: ast.expr) -> str:
        """Return the text of a docstring as its author wrote it."""
        first, last = node.lineno, node.end_lineno or node.lineno
        lines = [line.encode() for line in self.lines[first - 1 : last]]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        text, misread = as_written(b"\n".join(lines).decode())
        if misread:
            self.misread[first] = misread
        return text

    def _definitions(self, node: ast.AST, inside: list[Definition]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, DEFINITIONS):
                kind: Literal["class", "function", "method"] = "function"
                if isinstance(child, ast.ClassDef):
                    kind = "class"
                elif inside and isinstance(inside[-1], ast.ClassDef):
                    kind = "method"
                qualname = ".".join([*(n.name for n in inside), child.name])
                self.defs[first_line(child)] = Name(kind, qualname, len(inside) + 1)
                self._docstring(child)
                self._definitions(child, [*inside, child])
            else:
                self._definitions(child, inside)

    def _docstring(self, node: Definition) -> None:
        text = docstring(node)
        if text is None or not self._alone(text):
            return
        self.notes.setdefault(first_line(node), []).extend(self._prose_of(text))
        self.hidden.update(range(text.lineno, last_line(text) + 1))

    def _alone(self, node: ast.stmt) -> bool:
        """Return whether its lines contain no other code."""
        before = self.lines[node.lineno - 1].encode()[: node.col_offset]
        after = self.lines[last_line(node) - 1].encode()[node.end_col_offset :]
        return not before.strip() and after.strip()[:1] in (b"", b"#")

    def _cells(self) -> Iterator[Cell]:
        """Yield the module's cells in order."""
        opening = docstring(self.tree)
        body, start = self.tree.body, 1
        if opening:
            body, start = body[1:], self._below(opening)
        body = [node for node in body if first_line(node) not in self.texts]
        cuts = sorted({*self.comment_lines, *self.texts, *self.manner.starts})
        cell: Cell | None = None
        for i, node in enumerate(body):
            after = body[i + 1 : i + 2]
            limit = first_line(after[0]) if after else len(self.lines) + 1
            end = self._end(node, limit)
            if isinstance(node, DEFINITIONS):
                if cell:
                    yield cell
                yield Cell("definition", self._rows(start, end), [node])
                cell = None
            elif is_demo(node):
                if cell:
                    yield cell
                assert isinstance(node, ast.If)
                yield from self._lead(start, node.lineno)
                yield from self._steps(node, end)
                cell = None
            else:
                cut = bisect_left(cuts, start) < bisect(cuts, first_line(node))
                if cell is None or cut:
                    if cell:
                        yield cell
                    cell = Cell("code")
                cell.nodes.append(node)
                cell.rows = self._joined(cell.rows, self._rows(start, end))
            start = end + 1
        if cell:
            yield cell
        yield from self._lead(start, len(self.lines) + 1)

    def _below(self, opening: ast.Expr) -> int:
        """Return the line where code may start. Lines above the docstring are not shown."""
        last = last_line(opening)
        start = last + 1 if self._alone(opening) else last
        self.hidden.update(range(1, start))
        return start

    def _lead(self, start: int, stop: int) -> Iterator[Cell]:
        """Yield comments before a demo or at the module's end: notes without code."""
        rows = self._rows(start, stop - 1)
        if rows:
            yield Cell("code", rows)

    def _joined(self, rows: list[Row], more: list[Row]) -> list[Row]:
        """Join two runs of plain code: lines without a note of their own extend the last row."""
        if rows and more and not more[0].prose and rows[-1].blocks:
            last, first = rows[-1].blocks[-1], more[0].blocks[0]
            gap = range(last.lines[-1] + 1, first.lines[0]) if last.lines else range(0)
            last.lines += [
                n for n in gap if not self.lines[n - 1].strip()
            ] + first.lines
            rows[-1].blocks += more[0].blocks[1:]
            more = more[1:]
        return rows + more

    def _end(self, node: ast.stmt, limit: int) -> int:
        """Return the last line of a statement, including indented comments at its end."""
        end = last_line(node)
        if not hasattr(node, "body"):
            return end
        for at in range(bisect(self.comment_lines, end), len(self.comments)):
            comment = self.comments[at]
            if comment.line >= limit or comment.column == 0:
                break
            if comment.line > end:
                end = comment.end
        return end

    def _steps(self, demo: ast.If, end: int) -> Iterator[Cell]:
        """Yield the steps of a demo: its body, cut at each comment at its top level."""
        if demo.lineno in self.trailing:  # the head itself is not shown
            head = (demo.lineno, self.trailing[demo.lineno])
            self.notes.setdefault(demo.lineno + 1, []).insert(0, head)
        column = demo.body[0].col_offset
        cuts = [
            c.line
            for c in self.comments
            if demo.lineno < c.line <= end and c.column == column
        ]
        inner = [
            n for n in demo.body if not isinstance(n, ast.Pass) or len(demo.body) > 1
        ]
        inside = {
            c
            for node in demo.body
            for c in cuts[
                bisect(cuts, first_line(node)) : bisect(cuts, last_line(node))
            ]
        }
        starts = sorted({demo.lineno + 1, *(c for c in cuts if c not in inside)})
        firsts = [first_line(node) for node in inner]
        for start, stop in zip(starts, [*starts[1:], end + 1], strict=True):
            nodes = inner[bisect_left(firsts, start) : bisect_left(firsts, stop)]
            rows = self._rows(start, stop - 1)
            if nodes or rows:
                yield Cell("demo", rows, nodes, dedent=column)

    def _rows(self, start: int, end: int) -> list[Row]:
        rows: list[Row] = []
        for n in range(start, end + 1):
            notes = self.notes.get(n, [])
            if notes and (not rows or rows[-1].blocks):
                rows.append(Row())
            if notes:  # a comment directly above a definition joins its docstring
                rows[-1].notes += notes
            if n in self.hidden:
                continue
            blank = not self.lines[n - 1].strip()
            if not rows:
                if blank:
                    continue
                rows.append(Row())
            row = rows[-1]
            if n in self.defs or not row.blocks:
                if blank:
                    continue
                row.blocks.append(Block(name=self.defs.get(n)))
            row.blocks[-1].lines.append(n)
        for row in rows:
            for block in row.blocks:
                while block.lines and not self.lines[block.lines[-1] - 1].strip():
                    block.lines.pop()
        return [row for row in rows if row.prose or row.blocks]
