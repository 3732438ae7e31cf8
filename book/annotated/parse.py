"""A module's text becomes a chapter: cells that run, made of rows that are read.

Pure: text in, data out. Nothing here imports, executes or opens anything.

A *row* is one note beside the lines it speaks of. A *cell* is what runs at once: a whole
definition, or one step of a demo (the body of ``if __name__ == "__main__":`` up to the
next comment at its top level), or a stretch of plain statements.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PRAGMA = re.compile(r"#(!|\s*(noqa|type:|fmt:|mypy:|pragma|pylint|ruff|isort|region|endregion|%%|-\*-))")
HEADING = re.compile(r"(#{1,6}) +(.+?)\s*(?:\n|$)")


class ChapterError(Exception):
    """What is wrong in a module, with its file, its line and the mend."""

    def __init__(self, path: str, line: int, message: str):
        super().__init__(f"{path}:{line}: {message}")


@dataclass(frozen=True)
class Name:
    """A definition: ``qualname`` inside its module, and how deep it stands (1 is the top)."""

    kind: Literal["class", "function", "method"]
    qualname: str
    level: int


@dataclass
class Block:
    """Consecutive lines of code in a row; the first line of a definition starts a block."""

    lines: list[int] = field(default_factory=list)
    name: Name | None = None


@dataclass
class Row:
    """A note and the lines beside it. ``line`` is where the note starts in the module."""

    prose: str = ""
    line: int = 0
    blocks: list[Block] = field(default_factory=list)

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
    """What runs at once. ``dedent`` columns are taken off each of its lines (4 in a demo)."""

    kind: Literal["definition", "demo", "code"]
    rows: list[Row] = field(default_factory=list)
    nodes: list[ast.stmt] = field(default_factory=list)
    dedent: int = 0

    @property
    def line(self) -> int:
        """The first line that runs."""
        return first_line(self.nodes[0])

    @property
    def end(self) -> int:
        """The last line that runs."""
        return self.nodes[-1].end_lineno or self.line


@dataclass(frozen=True)
class Chapter:
    """A parsed module."""

    text: str
    tree: ast.Module
    cells: list[Cell]
    verbatim: frozenset[int]  # lines that start inside a string: never dedented
    aside: frozenset[int]  # lines of comments and docstrings, shown as prose

    @property
    def title(self) -> str:
        """The heading of the module's docstring."""
        heading = self.cells[0].rows[0].heading if self.cells and self.cells[0].rows else None
        return heading.group(2) if heading else ""

    @property
    def lines(self) -> list[str]:
        """The module's lines; the number of the first is 1, so ``lines[n - 1]`` is line n."""
        return split_lines(self.text)

    def names(self) -> Iterator[tuple[Name, int]]:
        """Every definition outside the demos, with the line it starts on."""
        for cell in self.cells:
            for row in cell.rows if cell.kind == "definition" else ():
                for block in row.blocks:
                    if block.name:
                        yield block.name, block.lines[0]

    def line_of(self, cell: Cell, number: int) -> str:
        """Line ``number`` as the page shows it in ``cell``."""
        line = self.lines[number - 1]
        return line if number in self.verbatim else line[cell.dedent :]

    def source(self, cell: Cell) -> str:
        """What runs: the cell's lines, comments and all, so that line k is module line ``cell.line + k - 1``."""
        if not cell.nodes:
            return ""
        return "\n".join(self.line_of(cell, n) for n in range(cell.line, cell.end + 1))


def parse(text: str, path: str = "<module>") -> Chapter:
    """Read a module. Raises ``ChapterError`` where Python cannot."""
    try:
        tree = ast.parse(text)
        comments = _comments(text)
    except (SyntaxError, tokenize.TokenError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", None) or str(error)
        raise ChapterError(path, line, f"this is not Python: {reason}. Correct the line.") from None
    except ValueError as error:
        raise ChapterError(path, 1, f"this is not Python: {error}.") from None
    return _Reader(text, tree, comments).chapter()


# -- small questions about syntax trees, used by every other room ------------------------


def split_lines(text: str) -> list[str]:
    """Lines as Python counts them: form feeds and their kin end none."""
    return re.split(r"\r\n|\n|\r", text)


def first_line(node: ast.AST) -> int:
    """The line a statement starts on, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])  # type: ignore[attr-defined]


def docstring(node: ast.AST) -> ast.Expr | None:
    """The statement that is the docstring of a module, class or function."""
    body = getattr(node, "body", None)
    if isinstance(node, (ast.Module, *DEFINITIONS)) and body:
        first = body[0]
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            return first
    return None


def is_demo(node: ast.AST) -> bool:
    """Is it ``if __name__ == "__main__":``, with its body on lines of its own?"""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and ast.unparse(node.test) == "__name__ == '__main__'"
        and node.body[0].lineno > node.lineno
    )


def bare(nodes: Sequence[ast.stmt]) -> str:
    """The code without comments, docstrings or layout: what an execution depends on."""
    return "\n".join(ast.unparse(_Undocumented().visit(node)) for node in _copies(nodes))


def _copies(nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
    return ast.parse(ast.unparse(ast.Module(list(nodes), []))).body


class _Undocumented(ast.NodeTransformer):
    """Takes the docstrings off."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, DEFINITIONS) and docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        return node


# -- comments ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Comment:
    """Full-line comments on consecutive lines, at one depth."""

    line: int
    end: int
    column: int
    text: str


def _comments(text: str) -> list[_Comment]:
    found: list[_Comment] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.line[: token.start[1]].strip():
            continue
        if PRAGMA.match(token.string):
            continue
        line, column = token.start
        words = re.sub(r"^#+? ?", "", token.string)
        if found and found[-1].end == line - 1 and found[-1].column == column:
            last = found.pop()
            found.append(_Comment(last.line, line, column, f"{last.text}\n{words}"))
        else:
            found.append(_Comment(line, line, column, words))
    return found


# -- rows and cells ------------------------------------------------------------------------


class _Reader:
    """Sorts a module's lines into cells and rows."""

    def __init__(self, text: str, tree: ast.Module, comments: list[_Comment]):
        self.text, self.tree = text, tree
        self.lines = split_lines(text)
        self.comments = comments
        self.notes: dict[int, list[tuple[int, str]]] = {}  # line of code or comment -> notes
        self.hidden: set[int] = set()  # lines shown at the left, or not at all
        self.defs: dict[int, Name] = {}
        for comment in comments:
            self.notes[comment.line] = [(comment.line, comment.text)]
            self.hidden.update(range(comment.line, comment.end + 1))
        self._definitions(tree, [])

    def chapter(self) -> Chapter:
        cells = list(self._cells())
        opening = self._opening()
        if opening:
            if not cells or cells[0].kind != "code" or (cells[0].rows and cells[0].rows[0].prose):
                cells.insert(0, Cell("code", [Row()]))
            row = cells[0].rows[0]
            row.line, row.prose = opening
        cells = [c for c in cells if c.rows or c.nodes]
        return Chapter(self.text, self.tree, cells, self._verbatim(), frozenset(self.hidden))

    def _opening(self) -> tuple[int, str] | None:
        """The module's docstring."""
        node = docstring(self.tree)
        return self._prose_of(node) if node else None

    def _verbatim(self) -> frozenset[int]:
        lines: set[int] = set()
        opened: list[int] = []  # f-strings are tokens of their own since Python 3.12
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            kind = tokenize.tok_name[token.type]
            if kind == "STRING":
                lines.update(range(token.start[0] + 1, token.end[0] + 1))
            elif kind.endswith("STRING_START"):
                opened.append(token.start[0])
            elif kind.endswith("STRING_END"):
                lines.update(range(opened.pop() + 1, token.end[0] + 1))
        return frozenset(lines)

    def _prose_of(self, node: ast.Expr) -> tuple[int, str]:
        """A docstring's text, and the line its first word stands on."""
        assert isinstance(node.value, ast.Constant)
        raw = str(node.value.value)
        lead = len(raw) - len(raw.lstrip())
        return node.lineno + raw[:lead].count("\n"), inspect.cleandoc(raw)

    def _definitions(self, node: ast.AST, outer: list[ast.AST]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, DEFINITIONS):
                inside = [n for n in outer if isinstance(n, DEFINITIONS)]
                kind: Literal["class", "function", "method"] = (
                    "class"
                    if isinstance(child, ast.ClassDef)
                    else "method"
                    if inside and isinstance(inside[-1], ast.ClassDef)
                    else "function"
                )
                qualname = ".".join([*(n.name for n in inside), child.name])
                self.defs[first_line(child)] = Name(kind, qualname, len(inside) + 1)
                self._docstring(child)
                self._definitions(child, [*outer, child])
            else:
                self._definitions(child, outer)

    def _docstring(self, node: Definition) -> None:
        text = docstring(node)
        if text is None or not self._alone(text):
            return
        self.notes.setdefault(first_line(node), []).append(self._prose_of(text))
        self.hidden.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))

    def _alone(self, node: ast.stmt) -> bool:
        """Does nothing else stand on its lines?"""
        before = self.lines[node.lineno - 1].encode()[: node.col_offset]
        after = self.lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :]
        return not before.strip() and not after.strip()

    def _cells(self) -> Iterator[Cell]:
        """Cells of the module's top level, in order."""
        body = self.tree.body[1:] if docstring(self.tree) else self.tree.body
        opening = docstring(self.tree)
        start = (opening.end_lineno or 1) + 1 if opening else 1
        cell: Cell | None = None
        for i, node in enumerate(body):
            limit = first_line(body[i + 1]) if i + 1 < len(body) else len(self.lines) + 1
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
                commented = any(start <= c.line < first_line(node) for c in self.comments)
                if cell is None or commented:
                    if cell:
                        yield cell
                    cell = Cell("code")
                cell.nodes.append(node)
                cell.rows = self._joined(cell.rows, self._rows(start, end))
            start = end + 1
        if cell:
            yield cell
        yield from self._lead(start, len(self.lines) + 1)

    def _lead(self, start: int, stop: int) -> Iterator[Cell]:
        """Comments that stand before a demo, or end the module: notes without code."""
        rows = self._rows(start, stop - 1)
        if rows:
            yield Cell("code", rows)

    def _joined(self, rows: list[Row], more: list[Row]) -> list[Row]:
        """Two stretches of plain code as one: lines without a note of their own join the last row."""
        if rows and more and not more[0].prose and rows[-1].blocks:
            last, first = rows[-1].blocks[-1], more[0].blocks[0]
            gap = range(last.lines[-1] + 1, first.lines[0]) if last.lines else range(0)
            last.lines += [n for n in gap if not self.lines[n - 1].strip()] + first.lines
            rows[-1].blocks += more[0].blocks[1:]
            more = more[1:]
        return rows + more

    def _end(self, node: ast.stmt, limit: int) -> int:
        """The last line of a statement with the indented comments that close it."""
        end = node.end_lineno or node.lineno
        if not hasattr(node, "body"):
            return end
        for comment in self.comments:
            if end < comment.line < limit:
                if comment.column == 0:
                    break
                end = comment.end
        return end

    def _steps(self, demo: ast.If, end: int) -> Iterator[Cell]:
        """A demo's body, cut at each comment at its top level."""
        column = demo.body[0].col_offset
        cuts = [c.line for c in self.comments if demo.lineno < c.line <= end and c.column == column]
        inner = [n for n in demo.body if not isinstance(n, ast.Pass) or len(demo.body) > 1]
        inside = {c for c in cuts if any(n.lineno < c <= (n.end_lineno or 0) for n in demo.body)}
        starts = sorted({demo.lineno + 1, *(c for c in cuts if c not in inside)})
        for start, stop in zip(starts, [*starts[1:], end + 1], strict=True):
            nodes = [n for n in inner if start <= first_line(n) < stop]
            rows = self._rows(start, stop - 1)
            if nodes or rows:
                yield Cell("demo", rows, nodes, dedent=column)

    def _rows(self, start: int, end: int) -> list[Row]:
        rows: list[Row] = []
        for n in range(start, end + 1):
            notes = self.notes.get(n, [])
            if notes and rows and not rows[-1].blocks:  # a comment right above a definition
                rows[-1].prose += "".join(f"\n\n{text}" for _, text in notes)
            elif notes:
                rows.append(Row("\n\n".join(text for _, text in notes), notes[0][0]))
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
