"""Find code that only draws or builds a table, so that pages and notebooks can fold it.

This is pure, as ``parse`` is. In a demo, the statements from the first to the last one that
draws are folded, and so are imports of plotting packages and functions that draw. A step of a
demo that ends with a table is folded whole. Elsewhere, functions that draw are folded. ``#: fold``
at the end of a line folds from its statement to the end of the cell instead. In a chapter whose
readers come for results alone, all code is folded, and so is what a notebook's cell hides.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sphinx_annotated.read.chapter import Cell, Chapter, Row
from sphinx_annotated.read.names import bound_names, free_names
from sphinx_annotated.read.syntax import DEFINITIONS, first_line, last_line

PACKAGES = {"matplotlib", "mpl_toolkits", "seaborn"}
CUSTOMARY = {"fig", "ax", "axes"}  # names of a figure's parts, if the chapter draws
# A parameter's type in a function that draws.
DRAWN_ON = {"Axes", "Figure", "SubFigure"}
MARK = re.compile(r"#:\s*fold\s*$")
DIRECTIVE = re.compile(r"^:{3,}\{", re.MULTILINE)
TABLE = ("Table", "DataFrame")  # ends of the names of what builds one
FEWEST = 3  # lines: a fold of fewer saves no room


@dataclass
class Fold:
    """Folded code: what it is the code of, and the rows that its lines come from."""

    title: str
    rows: list[int] = field(default_factory=list)


@dataclass
class Folds:
    """The folded code of a cell.

    - ``lines``: the folded lines.
    - ``at``: the folds, by the row next to which they are shown.
    - ``remarks``: rows that are folded whole. Their notes are shown inside the fold.
    """

    lines: frozenset[int] = frozenset()
    at: dict[int, Fold] = field(default_factory=dict)
    remarks: set[int] = field(default_factory=set)

    def length(self, cell: Cell, fold: Fold, chapter: Chapter) -> int:
        """Return how many lines of code the fold has."""
        return sum(
            1
            for i in fold.rows
            for block in cell.rows[i].blocks
            for n in block.lines
            if n in self.lines and chapter.lines[n - 1].strip()
        )

    def parts(self, cell: Cell) -> Iterator[tuple[list[ast.stmt], bool]]:
        """Split the cell's statements into runs, each with whether it is folded.

        Folded statements before the last run of them join it: imports, and functions that draw.
        """
        folded = [first_line(node) in self.lines for node in cell.nodes]
        if not any(folded):
            yield cell.nodes, False
            return
        last = len(folded) - 1 - folded[::-1].index(True)
        pairs = list(zip(cell.nodes, folded, strict=True))
        for run, hidden in (
            ([node for node, on in pairs[: last + 1] if not on], False),
            ([node for node, on in pairs if on], True),
            ([node for node, _ in pairs[last + 1 :]], False),
        ):
            if run:
                yield run, hidden


def folds(chapter: Chapter, everything: bool = False) -> list[Folds]:
    """Return the folds of each cell; with ``everything``, all code except solutions."""
    finder = _Finder(chapter)
    found = []
    for cell in chapter.cells:
        drawing = finder.drawing(cell)
        marked = finder.marked(cell)
        title = _title(cell, drawn=not all(map(_prepares, drawing)))
        if cell.is_stub or cell.is_solution or not cell.nodes:
            found.append(Folds())
        elif (
            everything
            or cell.is_folded
            or marked
            or (tabulates(cell) and finder.lines_of(cell.nodes) >= FEWEST)
        ):
            nodes = (
                marked if marked and not (everything or cell.is_folded) else cell.nodes
            )
            found.append(_folds(chapter, cell, nodes, nodes[0], title))
        elif finder.lines_of(drawing) < FEWEST:
            found.append(Folds())
        else:
            start = next((n for n in drawing if not _prepares(n)), drawing[0])
            found.append(_folds(chapter, cell, drawing, start, title))
    return found


def tabulates(cell: Cell) -> bool:
    """Return whether a cell of a demo ends with a table that it shows, or prints more below it."""
    nodes = list(cell.nodes) if cell.kind == "demo" else []
    while nodes and _called(nodes[-1]) == "print":
        nodes.pop()
    shown: ast.AST | None = nodes[-1] if nodes else None
    if _called(shown) == "display" and isinstance(shown, ast.Expr):
        shown = next(iter(getattr(shown.value, "args", [])), None)
    return _called(shown).endswith(TABLE)


def _called(node: ast.AST | None) -> str:
    """Return the last name of what an expression calls: ``Table`` of ``tables.Table()``."""
    call = node.value if isinstance(node, ast.Expr) else node
    if not isinstance(call, ast.Call):
        return ""
    return ast.unparse(call.func).rpartition(".")[2]


def _title(cell: Cell, drawn: bool) -> str:
    last = cell.nodes[-1] if cell.nodes else None
    if isinstance(last, DEFINITIONS) and cell.kind == "definition":
        return f"Code of {last.name}"
    if drawn:
        return "Code of this figure"
    calls = [
        n for node in cell.nodes for n in ast.walk(node) if isinstance(n, ast.Call)
    ]
    names = {n.func.id for n in calls if isinstance(n.func, ast.Name)}
    if names & {"Table", "display"}:
        return "Code of this table"
    return "Code"


def _folds(
    chapter: Chapter, cell: Cell, nodes: Sequence[ast.stmt], start: ast.stmt, title: str
) -> Folds:
    """Return the folds of a cell if these statements are folded, shown from ``start`` on."""
    lines = frozenset(
        n for node in nodes for n in range(first_line(node), last_line(node) + 1)
    )
    folds = Folds(lines)
    waiting: list[int] = []  # rows with folded lines before the fold
    opened: Fold | None = None
    for i, row in enumerate(cell.rows):
        numbers = [n for block in row.blocks for n in block.lines]
        numbers = [n for n in numbers if chapter.lines[n - 1].strip()]
        if not lines.intersection(numbers):
            continue
        remark = i > 0 and lines.issuperset(numbers) and _is_remark(row)
        if numbers[-1] < first_line(start):
            waiting.append(i)
        elif opened and (remark or not lines.issuperset(numbers)):
            opened.rows.append(i)
        else:
            opened = folds.at[i] = Fold(title, [*waiting, i])
            waiting, remark = [], False
        if remark:
            folds.remarks.add(i)
    return folds


def _is_remark(row: Row) -> bool:
    """Return whether a note is only about its code: no heading, no directive."""
    return not row.heading and not DIRECTIVE.search(row.prose)


def _prepares(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)


class _Finder:
    """Finds the statements that draw, cell by cell: demos share their names."""

    def __init__(self, chapter: Chapter):
        self.chapter = chapter
        self.names: set[str] = set()  # of plotting packages, figures and their parts
        for node in ast.walk(chapter.tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and _plots(node):
                self.names.update(bound_names(node), CUSTOMARY)

    def marked(self, cell: Cell) -> list[ast.stmt]:
        """Return the statements from the one with ``#: fold`` on."""
        numbers = range(cell.line, cell.end + 1) if cell.nodes else ()
        marks = [n for n in numbers if MARK.search(self.chapter.lines[n - 1])]
        return [node for node in cell.nodes if marks and last_line(node) >= marks[0]]

    def lines_of(self, nodes: Sequence[ast.stmt]) -> int:
        """Return how many lines these statements have, without comments and blank ones."""
        return sum(
            bool(self.chapter.lines[n - 1].strip()) and n not in self.chapter.aside
            for node in nodes
            for n in range(first_line(node), last_line(node) + 1)
        )

    def drawing(self, cell: Cell) -> list[ast.stmt]:
        """Return the statements of a cell that only draw, and those between them."""
        if cell.kind == "code":
            return []
        draws = [self._draws(node) for node in cell.nodes]
        main = [
            i for i, node in enumerate(cell.nodes) if draws[i] and not _prepares(node)
        ]
        within = range(main[0], main[-1] + 1) if main else ()
        return [node for i, node in enumerate(cell.nodes) if draws[i] or i in within]

    def _draws(self, node: ast.stmt) -> bool:
        """Return whether a statement draws, and remember the names that it binds."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return _plots(node)
        used = free_names(node) if self.names else set()
        if isinstance(node, ast.For):
            used -= set(bound_names(node.target))
        draws = bool(used & self.names)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            draws = draws or self._is_given_axes(node) or _imports_plots(node)
            bound = {node.name}
        elif isinstance(node, ast.ClassDef):
            return False
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = {name for target in targets for name in bound_names(target)}
            if _root(node.value) not in self.names:
                self.names -= bound - CUSTOMARY
                return draws
        else:
            return draws
        if draws:
            self.names |= bound
        return draws

    def _is_given_axes(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Return whether a function is given a figure or its axes. Elsewhere, an axis may be a tensor's."""
        if not self.names:
            return False
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        hints = [ast.unparse(a.annotation) for a in arguments if a.annotation]
        words = {word for hint in hints for word in re.findall(r"\w+", hint)}
        return bool(words & DRAWN_ON) or any(a.arg == "ax" for a in arguments)


def _plots(node: ast.Import | ast.ImportFrom) -> bool:
    modules = (
        [alias.name for alias in node.names]
        if isinstance(node, ast.Import)
        else [node.module or "" if not node.level else ""]
    )
    return all(module.partition(".")[0] in PACKAGES for module in modules)


def _imports_plots(node: ast.AST) -> bool:
    return any(
        isinstance(n, ast.Import | ast.ImportFrom) and _plots(n) for n in ast.walk(node)
    )


def _root(value: ast.expr | None) -> str:
    """Return the name that a value comes from: ``fig`` in ``fig.subplots(2)[0]``."""
    while not isinstance(value, ast.Name):
        if isinstance(value, ast.Call):
            value = value.func
        elif isinstance(value, ast.Attribute | ast.Subscript | ast.Starred):
            value = value.value
        elif isinstance(value, ast.ListComp):
            value = value.elt
        else:
            return ""
    return value.id
