"""Compare two classes: the lines that differ, each with its module and number.

If the variant inherits from the other class, its calls of ``super()`` are replaced by the lines
that they run. The difference then shows what the class does, not how it is written. A class can
also be compared with itself when it gets another argument.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

from annotated.read.modules import Module, Project, absolute
from annotated.read.parse import (
    DEFINITIONS,
    Definition,
    docstring,
    first_line,
)


@dataclass(frozen=True)
class Line:
    """A line of a module, with calls of ``super()`` and arguments replaced."""

    module: str
    number: int
    text: str


@dataclass(frozen=True)
class Change:
    """A line of the difference."""

    sign: Literal["-", "+", " "]
    line: Line


def find_class(
    project: Project, module: Module, name: str
) -> tuple[Module, ast.ClassDef] | None:
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
    if base:
        return difference(pair[0], pair[1])
    parameter, _, value = given.partition("=")
    return rebound(*pair[1], parameter.strip(), value.strip())


def difference(
    base: tuple[Module, ast.ClassDef], variant: tuple[Module, ast.ClassDef]
) -> list[Change]:
    """Return the changed lines of the variant, under the first lines of their methods."""
    (old_module, old), (new_module, new) = base, variant
    inherits = any(
        ast.unparse(parent).split(".")[-1] == old.name for parent in new.bases
    )
    changes = _compared(_head(old_module, old), _head(new_module, new))
    methods = {node.name: node for node in old.body if isinstance(node, DEFINITIONS)}
    for node in new.body:
        if not isinstance(node, DEFINITIONS):
            continue
        counterpart = methods.get(node.name)
        before = _lines(old_module, counterpart) if counterpart else []
        after = _lines(new_module, node)
        if inherits:
            after = _without_overridden(_inlined(after, methods, old_module), after)
        changes += _headed(_compared(before, after))
    if not inherits:
        kept = {node.name for node in new.body if isinstance(node, DEFINITIONS)}
        for name, node in methods.items():
            if name not in kept:
                changes += [Change("-", line) for line in _lines(old_module, node)]
    return changes


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
    changed = [change for change in part if change.sign != " "]
    if not changed or part[0].sign != " ":
        return changed
    head = part[0].line
    if head.text.endswith("("):  # its parameters are on lines of their own
        head = replace(head, text=f"{head.text}...):")
    return [Change(" ", head), *changed]


def _compared(before: list[Line], after: list[Line]) -> list[Change]:
    old, new = [line.text for line in before], [line.text for line in after]
    changes: list[Change] = []
    for kind, a, b, c, d in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            changes += [Change(" ", line) for line in after[c:d]]
        else:
            changes += [Change("-", line) for line in before[a:b]]
            changes += [Change("+", line) for line in after[c:d]]
    return changes


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
    end = (docstring(node) or node.body[0]).lineno
    return [line for line in _all(module) if first_line(node) <= line.number < end]


def _lines(module: Module, node: Definition) -> list[Line]:
    """Return a method's lines, without notes and blank lines."""
    end = node.end_lineno or node.lineno
    return [line for line in _all(module) if first_line(node) <= line.number <= end]


def _all(module: Module) -> list[Line]:
    return [
        Line(module.name, n, text)
        for n, text in enumerate(module.chapter.lines, 1)
        if text.strip() and n not in module.chapter.aside
    ]


SUPER = re.compile(
    r"^(?P<indent>\s*)(?P<before>.*?)super\(\)\.(?P<name>\w+)\((?P<arguments>[^()]*)\)$"
)


def _inlined(
    lines: list[Line], methods: dict[str, Definition], module: Module
) -> list[Line]:
    """Replace ``x = super().name(…)`` by the parent's body, with ``x =`` for ``return``."""
    result: list[Line] = []
    for line in lines:
        match = SUPER.match(line.text)
        parent = methods.get(match["name"]) if match else None
        if match is None or parent is None:
            result.append(line)
            continue
        start = next(
            (n for n in parent.body if n is not docstring(parent)), parent.body[0]
        ).lineno
        for inner in _lines(module, parent):
            if inner.number >= start:
                text = re.sub(r"^(\s*)return ", rf"\1{match['before']}", inner.text)
                result.append(replace(inner, text=text))
    return result


ATTRIBUTE = re.compile(r"\s*(self\.\w+) = .*[^(\[{,]$")  # an assignment on one line


def _without_overridden(lines: list[Line], own: list[Line]) -> list[Line]:
    """Remove the parent's assignments that one of the class's ``own`` lines overrides."""
    overridden = {match[1] for line in own if (match := ATTRIBUTE.match(line.text))}
    return [
        line
        for line in lines
        if line in own
        or not ((match := ATTRIBUTE.match(line.text)) and match[1] in overridden)
    ]


def as_markdown(found: list[Change]) -> list[str]:
    """Return the difference as a fenced block, for the notebook."""
    return ["```diff", *(f"{change.sign}{change.line.text}" for change in found), "```"]
