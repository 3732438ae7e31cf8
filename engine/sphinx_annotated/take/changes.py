"""Which statements of a module make a name: those that bind it, and those that change its object."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy

from sphinx_annotated.read.names import bound_names, free_names
from sphinx_annotated.read.syntax import DEFINITIONS

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
CHANGE = re.compile(  # methods of Python's own containers
    r"(append|extend|pop)(left|item)?|insert|remove|discard|clear|update|setdefault|add|sort|reverse|rotate"
)
CHANGE_FIRST = re.compile(  # functions of Python's library, by their first argument
    r"heap(push|pop|ify|replace|pushpop)|insort(_left|_right)?|shuffle|next|setitem|delitem|(set|del)attr"
)
SETS = re.compile(
    r"(set|seed|manual_seed|enable|disable|update|basicConfig)|(register|use|filterwarnings|simplefilter)$"
)


def makers(library: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Return the statements that make each name of a module, in order.

    They bind it, change its object in place (``table[k] = v``, ``fill(table)``), run a function or a class of
    the module that does, or are a function that assigns to it as ``global``.
    """
    defined = {node.name: node for node in library if isinstance(node, DEFINITIONS)}
    imported = {n for s in library if isinstance(s, IMPORTS) for n in bound_names(s)}
    fixed = defined.keys() | _constants(library)
    effects = _effects(defined)
    made: dict[str, list[ast.stmt]] = {}
    aliases: dict[str, str] = {}
    for node in library:
        changed = _changed(node)
        changed |= {aliases[name] for name in changed & aliases.keys()}
        names = {*bound_names(node), *set_as_global(node), *changed}
        if isinstance(node, ast.Assign) and (root := _root(node.value)):
            aliases |= dict.fromkeys(bound_names(node), aliases.get(root, root))
        names |= set(_given(node, defined, imported)) - fixed
        for called in free_names(run_at_once(node, future=True)) & effects.keys():
            names |= effects[called]
        for name in names:
            made.setdefault(name, []).append(node)
    return made


def is_setting(node: ast.stmt, name: str) -> bool:
    """Return whether a statement sets something of an imported name, rather than show, write or test it."""
    if isinstance(node, DEFINITIONS):
        return False
    changes = (change for part in _parts(node) for change in _changes(part))
    own = [each for each in changes if _root(each, calls=True) == name]
    return any(
        not isinstance(getattr(each, "ctx", None), ast.Load)
        or (isinstance(each, ast.Attribute) and SETS.match(each.attr))
        for each in own
        if not ast.unparse(each).startswith("sys.path")  # which copies do without
    )


def _changed(node: ast.stmt) -> set[str]:
    """Return names whose objects a statement changes in place itself: ``table[k] = v``, also in a loop."""
    parts = [*_parts(node)]
    found = _names(change for part in parts for change in _changes(part))
    for part in parts:  # what a loop changes is in what it loops over
        if isinstance(part, ast.For) and found & {*bound_names(part.target)}:
            found |= {_root(part.iter, calls=True)} - {""}
    return found


def run_at_once(node: ast.stmt, future: bool = False) -> ast.stmt:
    """Return a statement without code that runs later: function bodies, in the ``future`` annotations."""
    node = deepcopy(node)
    for part in ast.walk(node):
        if isinstance(part, FUNCTIONS):
            part.body = [ast.Pass()]
            if future:
                part.returns = None
                for argument in ast.walk(part.args):
                    if isinstance(argument, ast.arg):
                        argument.annotation = None
    return node


def _effects(defined: dict[str, Definition]) -> dict[str, set[str]]:
    """Return the names of the module that each definition changes when it is called, if any."""
    free = {name: free_names(node) for name, node in defined.items()}
    found = {
        name: set_as_global(node) | (_changed_inside(node) & free[name])
        for name, node in defined.items()
    }
    for _ in defined:  # what it calls may change more
        for name in defined:
            for called in free[name] & defined.keys():
                found[name] = found[name] | found[called]
    return {name: names for name, names in found.items() if names}


def _changed_inside(node: ast.stmt) -> set[str]:
    return _names(change for part in ast.walk(node) for change in _changes(part))


def docstrings_read(node: ast.stmt) -> Iterator[str]:
    """Yield the names whose docstrings a statement reads, or ``""`` for that of an expression.

    One that is only given on (``inner.__doc__ = f.__doc__``) is not read.
    """
    given = [p.value for p in ast.walk(node) if isinstance(p, ast.Assign)]
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr == "__doc__":
            if isinstance(part.ctx, ast.Load) and part not in given:
                yield _root(part.value)
        elif isinstance(part, ast.Call) and part.args:
            name = getattr(part.func, "attr", getattr(part.func, "id", ""))
            if name == "getdoc" or ast.unparse(part.func) == "help":
                yield _root(part.args[0])


def set_as_global(node: ast.stmt) -> set[str]:
    """Return the names that functions in a statement assign to as ``global``."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, FUNCTIONS):
            said = {
                n for p in ast.walk(part) if isinstance(p, ast.Global) for n in p.names
            }
            found |= said.intersection(
                *[[n for s in part.body for n in bound_names(s)]]
            )
    return found


def _given(
    node: ast.stmt, defined: dict[str, Definition], imported: set[str]
) -> Iterator[str]:
    """Yield names that a statement gives to a call which is there for its effect, and may change them.

    A function of the module changes one if it changes an argument. One of a package is not read.
    """
    for part in _parts(node):
        if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)):
            continue
        call, called = part.value, _root(part.value.func)
        given = [
            _root(each) for each in (*call.args, *(k.value for k in call.keywords))
        ]
        if called in defined and _changes_arguments(defined[called]):
            yield from filter(None, given)
        elif called in imported:
            yield from (name for name in given if name and name not in imported)
        elif called in ("setattr", "delattr"):
            yield from filter(None, given[:1])


def _changes_arguments(node: Definition) -> bool:
    parts = [part for part in ast.walk(node) if isinstance(part, FUNCTIONS)]
    arguments = {
        a.arg for f in parts for a in ast.walk(f.args) if isinstance(a, ast.arg)
    }
    calls = [
        p.value
        for p in ast.walk(node)
        if isinstance(p, ast.Expr) and isinstance(p.value, ast.Call)
    ]
    passed = {
        _root(a) for call in calls if _root(call.func) != "print" for a in call.args
    }
    return bool((_changed_inside(node) | passed) & (arguments - {"self", "cls"}))


def _constants(library: list[ast.stmt]) -> set[str]:
    """Return the names of numbers and texts."""
    simple = [
        s
        for s in library
        if isinstance(s, ast.Assign | ast.AnnAssign)
        and isinstance(s.value, ast.Constant)
    ]
    return {name for s in simple for name in bound_names(s)}


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and what is in it, except for what is in definitions, which runs later."""
    yield node
    if not isinstance(node, (*DEFINITIONS, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _parts(child)


def _changes(part: ast.AST) -> list[ast.expr]:
    """Return what a part of a statement changes: ``table[k]``, ``table.update``."""
    if isinstance(part, ast.Attribute | ast.Subscript):
        return [] if isinstance(part.ctx, ast.Load) else [part]
    if isinstance(part, DEFINITIONS):
        return [d.func if isinstance(d, ast.Call) else d for d in part.decorator_list]
    if isinstance(part, ast.Lambda):
        return [part.body.func] if isinstance(part.body, ast.Call) else []
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        return [part.value.func]
    if isinstance(part, ast.Call):  # as in `last = heap.pop()`
        name = getattr(part.func, "attr", getattr(part.func, "id", ""))
        if CHANGE_FIRST.fullmatch(name) and part.args:
            return [ast.Attribute(part.args[0], "_", ast.Store())]
        return [part.func] if CHANGE.fullmatch(name) else []
    return []


def _names(changes: Iterable[ast.expr]) -> set[str]:
    """Return the names whose objects these change. A name alone is not changed but called or bound."""
    changed = (each for each in changes if not isinstance(each, ast.Name))
    return {_root(e, calls=not isinstance(e, ast.Call)) for e in changed} - {""}


def _root(node: ast.expr, calls: bool = False) -> str:
    """Return the name that ``name.rows[0]`` begins with, or ``""``. With ``calls``, ``name.row(0).x`` too."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Call):
            if not (calls and isinstance(node.func, ast.Attribute)):
                return ""
            node = node.func
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
