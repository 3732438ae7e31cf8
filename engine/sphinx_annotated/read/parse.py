"""Parse a module's text into a chapter: cells that run, each made of rows to read.

This is pure: text in, data out. Nothing here imports, executes or opens anything.

A *row* is one note and the lines of code next to it. A *cell* runs as one piece: a whole
definition, one step of a demo (the body of ``if __name__ == "__main__":`` up to the next
comment at its top level), or a run of plain statements. Its statements run one by one, so
that a comment, which may cut a cell in two, changes nothing that runs.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import re
import tokenize
import warnings
from bisect import bisect, bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from sphinx_annotated.read.docstrings import as_written
from sphinx_annotated.read.prose import as_typed

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
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
DEPTH = 200  # of nesting: a term of a sum is one deeper than the next
LABELS = r"(?:\([^()\n]+\)=\n+)*"  # targets of cross-references, before a heading
HEADING = re.compile(LABELS + r"(#{1,6}) +(.+?)\s*(?:\n|$)")

EXERCISE = re.compile(r"^:{3,}\{exercise\}", re.MULTILINE)
SOLUTION = re.compile(r"^:{3,}\{solution\}", re.MULTILINE)


# A docstring, a comment in Markdown or without markup, the prose of a cell in the style of the book, prose
# that is Markdown in any style, and a comment that is no prose.
Kind = Literal["docstring", "comment", "plain", "block", "markdown", "code"]


@dataclass(frozen=True)
class Manner:
    """What is prose in a module by the manner of another format. ``read/manners`` has these.

    ``kinds`` are those of full-line comments, by line, and of statements that are prose, by their first
    lines. Other comments are of the kind ``comments``. ``marks`` are lines that are neither prose nor code,
    ``starts`` those on which cells of code start, and ``titles`` headings by the lines of marks.
    """

    kinds: Mapping[int, Kind] = field(default_factory=dict)
    comments: Kind = "comment"
    marks: Set[int] = frozenset()
    starts: Set[int] = frozenset()
    titles: Mapping[int, str] = field(default_factory=dict)


class ChapterError(Exception):
    """An error in a module. The message gives the file, the line and the fix."""

    def __init__(self, path: str, line: int, message: str):
        super().__init__(f"{path}:{line}: {message}")


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
    """Code that runs as one piece. ``dedent`` columns are cut from each line (4 in a demo)."""

    kind: Literal["definition", "demo", "code"]
    rows: list[Row] = field(default_factory=list)
    nodes: list[ast.stmt] = field(default_factory=list)
    dedent: int = 0

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
        return self.nodes[-1].end_lineno or self.line


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
        blocks = (
            block for cell in self.cells for row in cell.rows for block in row.blocks
        )
        named = {block.lines[0]: block.name for block in blocks if block.name}
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, DEFINITIONS) and (name := named.get(first_line(node))):
                found.append((name, first_line(node), node.end_lineno or node.lineno))
        return found

    @cached_property
    def shown(self) -> frozenset[int]:
        """The lines that are code on the page."""
        blocks = (
            block for cell in self.cells for row in cell.rows for block in row.blocks
        )
        return frozenset(n for block in blocks for n in block.lines)

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


def parse(text: str, path: str = "<module>", manner: Manner | None = None) -> Chapter:
    """Parse a module. Raises ``ChapterError`` if it is not valid Python."""
    text = re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff"))
    tree = syntax_tree(text, path)
    _check_docstrings(tree, path)
    return _Reader(text, tree, manner or Manner()).chapter()


def syntax_tree(text: str, path: str) -> ast.Module:
    """Return Python's syntax tree. Raises ``ChapterError`` if the text is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # importing the module shows them
            tree = ast.parse(text)
            _check_depth(tree, path)
            # This finds errors beyond grammar.
            compile(text, path, "exec", dont_inherit=True)
            return tree
    except (RecursionError, MemoryError):
        raise _deep(path, _longest(text)) from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", None) or str(error)
        raise ChapterError(
            path, line, f"this is not Python: {reason}. Correct the line."
        ) from None


def _check_depth(tree: ast.Module, path: str) -> None:
    """Raise ``ChapterError`` if code is nested too deeply to be read."""
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    line = next((node.lineno for node in level if hasattr(node, "lineno")), None)
    if line:
        raise _deep(path, line)


def _deep(path: str, line: int) -> ChapterError:
    message = f"this is nested more than {DEPTH} deep, as a sum of {DEPTH} terms is. "
    return ChapterError(path, line, message + "Split it, or read it from a file.")


def _longest(text: str) -> int:
    """Return the line on which the longest statement starts. Python does not say what is deep."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    ends = [0] + [token.end[0] for token in tokens if token.type == tokenize.NEWLINE]
    lines = text.split("\n")
    sizes = [(sum(map(len, lines[a:b])), a + 1) for a, b in pairwise(ends)]
    return max(sizes)[1]


def _check_docstrings(tree: ast.Module, path: str) -> None:
    """Raise ``ChapterError`` for a docstring that cannot be written to a page."""
    for node in ast.walk(tree):
        text = docstring(node)
        if text and re.search("[\ud800-\udfff]", ast.literal_eval(text.value)):
            message = 'this docstring contains half of a character, as in "\\ud83d". '
            message += 'Write the whole character, or start the docstring with r""".'
            raise ChapterError(path, text.lineno, message)


# -- helpers on syntax trees, used by every group --------------------------------------


def split_lines(text: str) -> list[str]:
    """Split into lines as Python counts them: a form feed does not end a line."""
    return text.split("\n")


def first_line(node: ast.AST) -> int:
    """Return the line on which a statement starts, including decorators."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])  # type: ignore[attr-defined]


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def docstring(node: ast.AST) -> ast.Expr | None:
    """Return the statement that is the docstring of a module, class or function."""
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


def is_unwritten(node: ast.AST) -> bool:
    """Return whether this is a function whose body only raises ``NotImplementedError``."""
    if not isinstance(node, ast.FunctionDef):
        return False
    body = node.body[1:] if docstring(node) else node.body
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    called = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(called, ast.Name) and called.id == "NotImplementedError"


def is_demo(node: ast.AST) -> bool:
    """Return whether this is ``if __name__ == "__main__":`` with a body on its own lines."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and ast.unparse(node.test)
        in ("__name__ == '__main__'", "'__main__' == __name__")
        and node.test.end_lineno == node.lineno
        and node.body[0].lineno > node.lineno
    )


def is_for_types(node: ast.AST) -> bool:
    """Return whether this is ``if TYPE_CHECKING:``, which never runs."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return bool(re.fullmatch(r"(\w+\.)?TYPE_CHECKING", ast.unparse(node.test)))


def bare(nodes: Sequence[ast.stmt]) -> str:
    """Return the code without comments, docstrings and layout: outputs depend on it."""
    return "\n".join(
        ast.unparse(_Undocumented().visit(node)) for node in _copies(nodes)
    )


def _copies(nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
    return ast.parse(ast.unparse(ast.Module(list(nodes), []))).body


class _Undocumented(ast.NodeTransformer):
    """Removes docstrings."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, DEFINITIONS) and docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        return node


# -- comments ------------------------------------------------------------------------------


class CommentToken(NamedTuple):
    """A comment: its place, its text with the ``#``, and whether its line has no code."""

    line: int
    column: int
    text: str
    alone: bool


def comment_tokens(text: str) -> Iterator[CommentToken]:
    """Yield the comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
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


# -- rows and cells ------------------------------------------------------------------------


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
                self.hidden.update(range(line, _last(node) + 1))
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
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
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
        end = node.end_lineno or node.lineno
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
        self.notes.setdefault(first_line(node), []).extend(self._prose_of(text))
        self.hidden.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))

    def _alone(self, node: ast.stmt) -> bool:
        """Return whether its lines contain no other code."""
        before = self.lines[node.lineno - 1].encode()[: node.col_offset]
        after = self.lines[(node.end_lineno or node.lineno) - 1].encode()[
            node.end_col_offset :
        ]
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
            limit = (
                first_line(body[i + 1]) if i + 1 < len(body) else len(self.lines) + 1
            )
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
        last = opening.end_lineno or opening.lineno
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
        end = node.end_lineno or node.lineno
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
            for c in cuts[bisect(cuts, first_line(node)) : bisect(cuts, _last(node))]
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
