"""Compare two classes: the lines that differ, each with its module and number.

An added line is a line of the variant, a removed one of the other class. If the variant inherits
from it, nothing that still runs is shown as removed: neither methods that it does not override
nor the lines that its calls of ``super()`` run. A class can also be compared with itself when it
gets another argument.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from sphinx_annotated.read.modules import Module, Project, absolute
from sphinx_annotated.read.syntax import (
    DEFINITIONS,
    Definition,
    docstring,
    first_line,
    last_line,
)


@dataclass(frozen=True)
class Line:
    """A line of a module. If a class gets another argument, its value is in its place."""

    module: str
    number: int
    text: str


Found = tuple[Module, ast.ClassDef]


@dataclass(frozen=True)
class Change:
    """A line of the difference. One that both classes have is ``needed`` in a statement that changed."""

    sign: Literal["-", "+", " "]
    line: Line
    needed: bool = False


def find_class(project: Project, module: Module, name: str) -> Found | None:
    """Find a class by its dotted name, or by its name in ``module``, following imports."""
    if "." in name:
        where, _, name = name.rpartition(".")
        found = project.find(where)
        return find_class(project, found, name) if found else None
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                source = project.find(absolute(node, module.package))
                if (alias.asname or alias.name) == name and source:
                    return find_class(project, source, alias.name)
    return None


def changes(
    project: Project, module: Module, base: str, variant: str, given: str = ""
) -> list[Change]:
    """Return the difference. Raises ``LookupError`` if a class does not exist.

    Without a ``base``, the class with its defaults is compared with the class that gets the
    argument ``given``, as in ``activation=SquaredReLU``.
    """
    pair = []
    for name in (base or variant, variant):
        found = find_class(project, module, name)
        if found is None:
            raise LookupError(f"there is no class {name} in the project")
        pair.append(found)
    if not base:
        parameter, _, value = given.partition("=")
        return rebound(*pair[1], parameter.strip(), value.strip())
    line = _line_of_descent(project, pair[1], pair[0])
    if not line:
        return difference(pair[0], pair[1], inherits=False)
    steps = pairwise(reversed(line))
    return [change for step in steps for change in difference(*step, inherits=True)]


def _line_of_descent(project: Project, heir: Found, ancestor: Found) -> list[Found]:
    """Return the classes from one to an ancestor, or nothing if it inherits from another."""
    module, node = heir
    if node is ancestor[1]:
        return [heir]
    for parent in node.bases:
        found = find_class(project, module, ast.unparse(parent))
        if found and (line := _line_of_descent(project, found, ancestor)):
            return [heir, *line]
    return []


def difference(base: Found, variant: Found, inherits: bool) -> list[Change]:
    """Return the changed lines of the variant, under the first lines of their methods."""
    (old_module, old), (new_module, new) = base, variant
    found = _compared(_head(old_module, old), _head(new_module, new))
    found += _attributes(base, variant, inherits)
    methods = {node.name: node for node in old.body if isinstance(node, DEFINITIONS)}
    for node in new.body:
        if not isinstance(node, DEFINITIONS):
            continue
        counterpart = methods.get(node.name)
        before = _lines(old_module, counterpart) if counterpart else []
        after = _lines(new_module, node)
        if inherits and counterpart:
            after = _with_inherited(after, node, counterpart, before)
        found += _headed(_compared(before, after))
    if not inherits:
        kept = {node.name for node in new.body if isinstance(node, DEFINITIONS)}
        for name, node in methods.items():
            if name not in kept:
                found += [Change("-", line) for line in _lines(old_module, node)]
    return found


def _attributes(base: Found, variant: Found, inherits: bool) -> list[Change]:
    """Return the changes of what the classes assign outside their methods."""
    (old_module, old), (new_module, new) = base, variant
    own = _assigned(new)
    before = [
        line
        for name, node in _assigned(old).items()
        if not inherits or name in own
        for line in _lines(old_module, node)
    ]
    after = [line for node in own.values() for line in _lines(new_module, node)]
    return _changed(_compared(before, after))


def _assigned(node: ast.ClassDef) -> dict[str, ast.stmt]:
    """Return the statements of a class that are neither its docstring nor definitions."""
    return {
        ast.unparse(_targets(each)[0]): each
        for each in node.body
        if isinstance(each, ast.Assign | ast.AnnAssign)
    }


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def rebound(
    module: Module, node: ast.ClassDef, parameter: str, value: str
) -> list[Change]:
    """Return the lines that change if a parameter is ``value`` instead of its default."""
    changes: list[Change] = []
    for method in node.body:
        if isinstance(method, DEFINITIONS) and not isinstance(method, ast.ClassDef):
            default = _defaults(method).get(parameter)
            if default:
                lines = _lines(module, method)
                before = _with(lines, method, parameter, default)
                after = _with(lines, method, parameter, value)
                changes += _headed(_compared(before, after))
    if not changes:
        message = (
            f"{node.name} has no parameter {parameter or '(:of: or :with: is missing)'}"
        )
        raise LookupError(f"{message} with a default that it uses")
    return changes


def _defaults(method: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Return a method's parameters with defaults, and the defaults as text."""
    plain = [*method.args.posonlyargs, *method.args.args]
    pairs = [
        *zip(plain[::-1], method.args.defaults[::-1], strict=False),
        *zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True),
    ]
    return {a.arg: ast.unparse(default) for a, default in pairs if default}


def _with(lines: list[Line], method: ast.AST, parameter: str, value: str) -> list[Line]:
    """Return a method's lines with ``value`` in place of ``parameter``."""
    uses = [
        (n.lineno, n.col_offset)
        for n in ast.walk(method)
        if isinstance(n, ast.Name) and n.id == parameter
    ]
    found = []
    for line in lines:
        text = line.text.encode()
        for number, at in sorted(uses, reverse=True):
            if number == line.number:
                end = at + len(parameter.encode())
                text = text[:at] + value.encode() + text[end:]
        found.append(replace(line, text=text.decode()))
    return found


def _headed(part: list[Change]) -> list[Change]:
    """Return a method's changed lines, under its first line if that is unchanged."""
    changed = _changed(part)
    if not changed or part[0] in changed:
        return changed
    head = part[0].line
    if head.text.endswith("("):  # its parameters are on lines of their own
        head = replace(head, text=f"{head.text}...):")
    return [Change(" ", head), *changed]


def _changed(part: list[Change]) -> list[Change]:
    """Return the lines that differ, and the rest of their statements."""
    return [change for change in part if change.sign != " " or change.needed]


def _compared(before: list[Line], after: list[Line]) -> list[Change]:
    old, new = [line.text for line in before], [line.text for line in after]
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    differing = [code for code in codes if code[0] != "equal"]
    was, now = _statements(old), _statements(new)
    gone = {was[i] for _, a, b, _, _ in differing for i in range(a, b)}
    come = {now[i] for _, _, _, c, d in differing for i in range(c, d)}
    changes: list[Change] = []
    for kind, a, b, c, d in codes:
        if kind == "equal":
            for i, j in zip(range(a, b), range(c, d), strict=True):
                needed = was[i] in gone or now[j] in come
                changes.append(Change(" ", after[j], needed))
        else:
            changes += [Change("-", line) for line in before[a:b]]
            changes += [Change("+", line) for line in after[c:d]]
    return changes


def _statements(texts: list[str]) -> list[int]:
    """Return for each line the number of its statement, which ends where its brackets are closed."""
    numbers, number, depth = [], 0, 0
    for text in texts:
        numbers.append(number)
        brackets = re.sub(r"""\"[^\"]*\"|'[^']*'|#.*""", "", text)
        depth += sum(map(brackets.count, "([{")) - sum(map(brackets.count, ")]}"))
        number += depth <= 0
    return numbers


Stretch = tuple[int, int]  # start and end in a line's text


def marks(found: list[Change]) -> list[list[Stretch]]:
    """Return for each line of a difference the parts that its counterpart lacks."""
    marked: list[list[Stretch]] = [[] for _ in found]
    for minus, plus in _counterparts(found):
        old, new = _words(found[minus].line.text), _words(found[plus].line.text)
        for kind, a, b, c, d in SequenceMatcher(
            None, old, new, autojunk=False
        ).get_opcodes():
            for at, words, start, stop in ((minus, old, a, b), (plus, new, c, d)):
                if kind != "equal" and start < stop:
                    first = len("".join(words[:start]))
                    last = first + len("".join(words[start:stop]))
                    marked[at].append((first, last))
    return marked


def _counterparts(found: list[Change]) -> Iterator[tuple[int, int]]:
    """Yield pairs of neighbouring removed and added lines that are similar."""
    free: list[int] = []
    for i, change in enumerate(found):
        if change.sign == " " or (
            change.sign == "-" and i and found[i - 1].sign == "+"
        ):
            free = []
        if change.sign == "-":
            free.append(i)
        if change.sign == "+":
            like = [j for j in free if _alike(found[j].line.text, change.line.text)]
            if like:
                yield like[0], i
                free = [j for j in free if j > like[0]]


def _alike(old: str, new: str) -> bool:
    return SequenceMatcher(None, _words(old), _words(new)).ratio() > 0.5


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def _head(module: Module, node: ast.ClassDef) -> list[Line]:
    return _between(module, first_line(node), (docstring(node) or node.body[0]).lineno)


def _lines(module: Module, node: ast.stmt) -> list[Line]:
    """Return the lines of a method or a statement, without notes and blank lines."""
    return _between(module, first_line(node), last_line(node) + 1)


def _between(module: Module, start: int, stop: int) -> list[Line]:
    return [line for line in code_lines(module) if start <= line.number < stop]


@lru_cache(maxsize=64)
def code_lines(module: Module) -> list[Line]:
    """Return a module's lines without notes and blank lines."""
    return [
        Line(module.name, n, text)
        for n, text in enumerate(module.chapter.lines, 1)
        if text.strip() and n not in module.chapter.aside
    ]


def _with_inherited(
    lines: list[Line], method: Definition, parent: Definition, before: list[Line]
) -> list[Line]:
    """Return a method's lines with its parent's in front of the call of ``super()``.

    Assignments of the parent that the method overrides are left out, and so is a call of
    ``super()`` that is a statement of its own.
    """
    place = _call_of_parent(method)
    if place is None:
        return lines
    body = parent.body[1:] if docstring(parent) else parent.body
    start = (body or parent.body)[0].lineno
    gone = _assigning(parent, _overridden(method))
    inherited = [
        line
        for line in before
        if line.number >= start and not any(a <= line.number <= b for a, b in gone)
    ]
    above = [line for line in lines if line.number < place[0]]
    return [*above, *inherited, *(line for line in lines if line.number >= place[1])]


def _call_of_parent(method: Definition) -> tuple[int, int] | None:
    """Return the line above which the parent's lines run, and the first that is shown then."""
    calls = [n.lineno for n in ast.walk(method) if _is_super(n, method.name)]  # type: ignore[attr-defined]
    if not calls:
        return None
    around = (
        node
        for node in ast.walk(method)
        if isinstance(node, ast.stmt)
        and node is not method
        and node.lineno <= min(calls) <= (node.end_lineno or 0)
    )
    inner = max(around, key=lambda node: node.lineno)
    alone = isinstance(inner, ast.Expr) and _is_super(inner.value, method.name)
    return inner.lineno, (inner.end_lineno or 0) + 1 if alone else inner.lineno


def _is_super(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Call)
        and ast.unparse(node.func.value.func) == "super"
    )


def _overridden(method: Definition) -> set[str]:
    """Return the attributes that a method assigns without use of their values before."""
    found = set()
    for node in ast.walk(method):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            used = {ast.unparse(n) for n in ast.walk(node.value)}
            names = {ast.unparse(target) for target in _targets(node)}
            found |= {name for name in names - used if name.startswith("self.")}
    return found


def _assigning(method: Definition, names: set[str]) -> list[tuple[int, int]]:
    """Return the first and last lines of a method's assignments to these attributes."""
    return [
        (node.lineno, last_line(node))
        for node in ast.walk(method)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and names.issuperset(map(ast.unparse, _targets(node)))
    ]


def as_markdown(found: list[Change]) -> list[str]:
    """Return the difference as a fenced block, for the notebook."""
    return ["```diff", *(f"{change.sign}{change.line.text}" for change in found), "```"]
