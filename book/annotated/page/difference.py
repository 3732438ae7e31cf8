"""One class as a change of another: the lines that differ, each with its own module and number.

Where the variant inherits from the other class, its calls of ``super()`` are read as the lines
they stand for, so that the difference is what the class does, not how it is written. A class can
also be compared with itself, given another argument.
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
    """A line of a module, as the class means it."""

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
    """A class by its dotted name, or by the name it has in ``module``, imports followed."""
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
    """The difference. Raises ``LookupError`` naming the class that is not there.

    Without a ``base`` it is that between the class with its own defaults and with the argument
    ``given``, as in ``activation=SquaredReLU``.
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
    """The variant as a change of the base: changed lines, under the heads of the methods they stand in."""
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
            after = _standing(_inlined(after, methods, old_module), after)
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
    """What a class does with ``value`` for a parameter, as a change of what its default does."""
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
    """The parameters of a method that have defaults, and these as text."""
    plain = [*method.args.posonlyargs, *method.args.args]
    pairs = [
        *zip(plain[::-1], method.args.defaults[::-1], strict=False),
        *zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True),
    ]
    return {a.arg: ast.unparse(default) for a, default in pairs if default}


def _with(lines: list[Line], method: ast.AST, parameter: str, value: str) -> list[Line]:
    """A method's lines with ``value`` where its body says ``parameter``."""
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
    """The changed lines of a method, under its first line where that is as it was."""
    changed = [change for change in part if change.sign != " "]
    if not changed or part[0].sign != " ":
        return changed
    head = part[0].line
    if head.text.endswith("("):  # its parameters stand on lines of their own
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


Stretch = tuple[int, int]  # of a line's text, from and up to


def marks(found: list[Change]) -> list[list[Stretch]]:
    """For each line of a difference, what its counterpart in the other version has not."""
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
    """Removed and added lines, next to each other, that are versions of one another."""
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
    """A method's own lines, without notes and blank lines."""
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
    """``x = super().name(…)`` as the parent's body, its ``return`` turned into ``x =``."""
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


def _standing(lines: list[Line], own: list[Line]) -> list[Line]:
    """The lines less the parent's assignments that one of the class's ``own`` undoes."""
    undone = {match[1] for line in own if (match := ATTRIBUTE.match(line.text))}
    return [
        line
        for line in lines
        if line in own
        or not ((match := ATTRIBUTE.match(line.text)) and match[1] in undone)
    ]


def as_markdown(found: list[Change]) -> list[str]:
    """The difference as a fenced block, for the notebook."""
    return ["```diff", *(f"{change.sign}{change.line.text}" for change in found), "```"]
