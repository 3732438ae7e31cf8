"""Find the definitions, here or in other modules, that names in the code refer to."""

from __future__ import annotations

import ast
import symtable
from contextlib import suppress
from dataclasses import dataclass

from sphinx_annotated.read.modules import absolute
from sphinx_annotated.read.syntax import DEFINITIONS, split_lines


@dataclass(frozen=True)
class Use:
    """A name in the code that refers to ``target``. Columns count characters."""

    line: int
    start: int
    end: int
    target: str


def free_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement takes from its module or from the builtins."""
    return {
        symbol.get_name()
        for table in _tables_of(node)
        for symbol in table.get_symbols()
        if symbol.is_referenced()
        and (
            symbol.is_global()
            or (table.get_type() == "module" and not _bound_first(node, symbol))
        )
    }


def quoted_names(node: ast.stmt) -> set[str]:
    """Return the names in the texts that are annotations: ``x: "ClassVar[int]"``, ``-> "Table"``."""
    found: set[str] = set()
    waiting: list[ast.AST] = [
        annotation
        for part in ast.walk(node)
        for field in ("annotation", "returns")  # of names and arguments; of functions
        if (annotation := getattr(part, field, None))
    ]
    for part in waiting:
        if isinstance(part, ast.Subscript) and "Literal" in ast.unparse(part.value):
            continue
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            with suppress(SyntaxError):
                read = ast.walk(ast.parse(part.value.strip(), mode="eval"))
                found |= {n.id for n in read if isinstance(n, ast.Name)}
        waiting += ast.iter_child_nodes(part)
    return found


def class_names(node: ast.ClassDef) -> set[str]:
    """Return the names that a class body both binds and reads: ``limit = limit`` reads the module's."""
    return {
        symbol.get_name()
        for table in _tables_of(node)
        if table.get_type() == "class"
        for symbol in table.get_symbols()
        if symbol.is_referenced() and symbol.is_assigned()
    }


def _bound_first(node: ast.stmt, symbol: symtable.Symbol) -> bool:
    """Return whether the statement itself defines the name."""
    return isinstance(node, DEFINITIONS) and node.name == symbol.get_name()


def _tables_of(node: ast.stmt) -> list[symtable.SymbolTable]:
    """Return the tables of the names in a statement, that of its own first."""
    found = [symtable.symtable(ast.unparse(node), "<definition>", "exec")]
    for table in found:
        found += table.get_children()
    return found


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_names(node: ast.AST, deep: bool = True) -> list[str]:
    """Return the names that a statement at a module's top level binds.

    If ``deep``, they include those that comprehensions in it bind for it: ``[last := x for x in xs]``.
    """
    if isinstance(node, DEFINITIONS):
        return [node.name]
    if isinstance(node, ast.Lambda) or (isinstance(node, COMPREHENSIONS) and not deep):
        return []
    if isinstance(node, ast.comprehension):  # its own name is none of the module's
        return [name for test in node.ifs for name in bound_names(test)]
    names = _stored_by(node)
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return names + [
        name
        for child in ast.iter_child_nodes(node)
        for name in bound_names(child, deep)
    ]


def _stored_by(node: ast.AST) -> list[str]:
    """Return the names that a node itself gives a value, other than by an import."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return [node.name] if isinstance(node, DEFINITIONS) else []


def uses(
    text: str, tree: ast.Module, module: str, package: str
) -> dict[int, list[Use]]:
    """Return, by line, every name in ``module`` that refers to a definition."""
    finder = _Finder(text, _meanings(tree, module, package), module, package)
    finder.visit(tree)
    by_line: dict[int, list[Use]] = {}
    for use in sorted(finder.found, key=lambda u: (u.line, u.start)):
        by_line.setdefault(use.line, []).append(use)
    return by_line


def _meanings(tree: ast.Module, module: str, package: str) -> dict[str, str]:
    """Map names of a module to dotted names: imports outside of functions, and its definitions."""
    meanings = _imports(tree.body, package)
    meanings |= {
        n.name: f"{module}.{n.name}" for n in tree.body if isinstance(n, DEFINITIONS)
    }
    return meanings


def _imports(statements: list[ast.stmt], package: str) -> dict[str, str]:
    """Map what statements import to dotted names, without the functions among them."""
    meanings: dict[str, str] = {}
    waiting: list[ast.AST] = [*statements]
    while waiting:
        node = waiting.pop(0)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.ImportFrom):
            base = absolute(node, package)
            meanings |= {
                alias.asname or alias.name: f"{base}.{alias.name}"
                for alias in node.names
            }
        elif isinstance(node, ast.Import):
            meanings |= {
                alias.asname: alias.name for alias in node.names if alias.asname
            }
    return meanings


def _stored(node: ast.AST) -> set[str]:
    """Return the names that get a value inside a node."""
    return {name for part in ast.walk(node) for name in _stored_by(part)}


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    return {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}


def inner_names(tree: ast.AST) -> set[tuple[int, int]]:
    """Return the places, by line and column, of the variables of lambdas and comprehensions."""
    found = set()
    for scope in ast.walk(tree):
        own: set[str] = set()
        if isinstance(scope, ast.Lambda):
            own = _arguments(scope)
        elif isinstance(scope, COMPREHENSIONS):
            own = own.union(*(_stored(part.target) for part in scope.generators))
        for node in ast.walk(scope) if own else ():
            if isinstance(node, ast.Name | ast.arg):
                name = node.id if isinstance(node, ast.Name) else node.arg
                found |= {(node.lineno, node.col_offset)} if name in own else set()
    return found


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str, meanings: dict[str, str], module: str, package: str):
        self.lines = [line.encode() for line in split_lines(text)]
        self.meanings, self.module, self.package = meanings, module, package
        self.local: list[set[str]] = []
        self.classes: list[tuple[str, set[str]]] = []
        self.found: list[Use] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        methods = {n.name for n in node.body if isinstance(n, DEFINITIONS)}
        prefix = f"{self.classes[-1][0]}." if self.classes else f"{self.module}."
        self.classes.append((prefix + node.name, methods))
        self.generic_visit(node)
        self.classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outside in (
            *node.decorator_list,
            *node.args.defaults,
            *node.args.kw_defaults,
        ):
            if outside:
                self.visit(outside)
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg) and argument.annotation:
                self.visit(argument.annotation)
        if node.returns:
            self.visit(node.returns)
        self.local.append(_arguments(node).union(*map(_stored, node.body)))
        known = self.meanings
        self.meanings = known | _imports(node.body, self.package)
        for statement in node.body:
            self.visit(statement)
        self.meanings = known
        self.local.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._scope(node, _arguments(node))

    def visit_ListComp(self, node: ast.AST) -> None:
        self._scope(node, _stored(node))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815

    def _scope(self, node: ast.AST, names: set[str]) -> None:
        self.local.append(names)
        self.generic_visit(node)
        self.local.pop()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and not any(
            node.id in names for names in self.local
        ):
            target = self.meanings.get(node.id)
            if target:
                self._add(node, target)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if (
            isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and self.classes
        ):
            name, methods = self.classes[-1]
            if node.attr in methods:
                self._add(node, f"{name}.{node.attr}", tail=len(node.attr))
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            target = None if alias.asname else self.meanings.get(alias.name)
            if target:
                self._add(alias, target)

    def _add(
        self, node: ast.expr | ast.alias, target: str, tail: int | None = None
    ) -> None:
        if node.end_lineno is None or node.end_col_offset is None:
            return
        line = self.lines[node.end_lineno - 1]
        end = len(line[: node.end_col_offset].decode())
        width = tail or len(line[node.col_offset : node.end_col_offset].decode())
        self.found.append(Use(node.end_lineno, end - width, end, target))
