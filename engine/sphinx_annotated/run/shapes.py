"""Recorded shapes: compare them with the shapes in the prose, and place them on the page.

A shape note is a shape in brackets, either after a name in prose (``x`` is
``[batch, seq, d_model]``) or at the end of a line (``# [batch, heads, seq, d_k]``) for the
tensor that the line assigns. Within one call the same word means the same size, and an integer
variable of that name must have that value.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.syntax import (
    DEFINITIONS,
    ChapterError,
    docstring,
    first_line,
    last_line,
)

NAMED = re.compile(
    r"(?P<names>`[A-Za-z_]\w*`(?:(?:,\s+|,?\s+and\s+)`[A-Za-z_]\w*`)*)"
    r"(?:\s+(?:is|are|has shape|have shape|of shape))?\s+`\[(?P<sizes>[^`\]]+)\]`"
)
TRAILING = re.compile(r"#\s*\[(?P<sizes>[^\]]+)\]\s*$")
ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Note:
    """A claim: ``name``, assigned on one of the lines ``start`` to ``end``, has these sizes."""

    line: int
    name: str
    sizes: tuple[str, ...]
    start: int
    end: int


def positions(chapter: Chapter) -> list[int]:
    """Return the line of every syntax node, in an order that comments and layout keep."""
    skipped = {id(text) for node in ast.walk(chapter.tree) if (text := docstring(node))}
    lines: list[int] = []
    waiting: list[ast.AST] = [chapter.tree]
    while waiting:
        node = waiting.pop()
        if id(node) not in skipped and not isinstance(node, ast.Pass):
            lines += [node.lineno] if hasattr(node, "lineno") else []
            waiting += ast.iter_child_nodes(node)
    return lines


def moved(
    shapes: dict[str, Any], before: list[int], after: list[int]
) -> dict[str, Any]:
    """Return the recorded shapes with the line numbers that the same code has now."""
    line = {0: 0, **dict(zip(before, after, strict=True))}
    return {
        "names": [[line[at], *rest] for at, *rest in shapes["names"]],
        "calls": [
            {
                **call,
                "line": line[call["line"]],
                "tensors": [[line[at], *rest] for at, *rest in call["tensors"]],
            }
            for call in shapes["calls"]
        ],
    }


def check(chapter: Chapter, calls: list[dict[str, Any]], path: str) -> int:
    """Compare every shape note with every recorded call.

    Returns the number of notes that could be compared. Raises ``ChapterError`` at the first
    wrong note.
    """
    compared: set[Note] = set()
    by_function = {
        line: list(_notes(chapter, node)) for line, node in _functions(chapter)
    }
    by_function[0] = list(_trailing(chapter, _top_level(chapter)))
    for call in calls:
        known = dict(call["sizes"])
        for note in by_function.get(call["line"], []):
            for line, name, sizes in call["tensors"]:
                if name == note.name and note.start <= line <= note.end:
                    _compare(note, sizes, known, path, call["name"])
                    compared.add(note)
                    break
    return len(compared)


def _compare(
    note: Note, sizes: list[int], known: dict[str, int], path: str, function: str
) -> None:
    words = list(note.sizes)
    gap = next((i for i, word in enumerate(words) if word in ("...", "…")), None)
    if gap is not None:  # the dots mean any number of sizes
        words[gap : gap + 1] = ["_"] * max(len(sizes) - len(words) + 1, 0)
    wrong = len(words) != len(sizes)
    for word, size in zip(words, sizes, strict=False):
        if word == "_":
            continue
        if word.isidentifier():
            wrong |= known.setdefault(word, size) != size
        else:
            value = _value(word, known)
            wrong |= value is not None and value != size
    if wrong:
        where = "" if function == "<module>" else f" in {function}"
        raise ChapterError(
            path,
            note.line,
            f"`{note.name}` is noted as [{', '.join(note.sizes)}], but was {sizes}{where}. "
            "Correct the note, or the code.",
        )


def _value(word: str, known: dict[str, int]) -> int | None:
    """Return a size written as a sum, product or quotient, if all its parts are known."""
    try:
        tree = ast.parse(word.replace("·", "*").replace("×", "*"), mode="eval")
        return _size(tree.body, known)
    except (SyntaxError, LookupError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _size(node: ast.expr, known: dict[str, int]) -> int:
    """Raise ``LookupError`` for what is no arithmetic of sizes."""
    if isinstance(node, ast.BinOp):
        return ARITHMETIC[type(node.op)](
            _size(node.left, known), _size(node.right, known)
        )
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise LookupError


def _functions(
    chapter: Chapter,
) -> Iterator[tuple[int, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.walk(chapter.tree):
        if isinstance(node, FUNCTIONS):
            yield first_line(node), node


def _top_level(chapter: Chapter) -> list[ast.stmt]:
    """Return the statements outside functions."""
    return [
        inner
        for cell in chapter.cells
        for node in cell.nodes
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef))
        for inner in ast.walk(node)
        if isinstance(inner, ast.stmt)
    ]


def _notes(
    chapter: Chapter, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Note]:
    text = docstring(node)
    if text is not None:
        lines = "\n".join(chapter.lines[text.lineno - 1 : text.end_lineno])
        start, end = first_line(node), node.body[0].lineno
        for match in NAMED.finditer(lines):
            at = text.lineno + lines[: match.start()].count("\n")
            for name in re.findall(r"`(\w+)`", match["names"]):
                yield Note(at, name, _sizes(match["sizes"]), start, end)
    yield from _trailing(
        chapter, [n for n in ast.walk(node) if isinstance(n, ast.stmt)]
    )


def _trailing(chapter: Chapter, statements: list[ast.stmt]) -> Iterator[Note]:
    for node in statements:
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            continue
        end = node.end_lineno or node.lineno
        match = TRAILING.search(chapter.lines[end - 1])
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if match and len(targets) == 1:
            for target in ast.walk(targets[0]):
                if isinstance(target, ast.Name):
                    yield Note(end, target.id, _sizes(match["sizes"]), node.lineno, end)


def _sizes(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def by_line(
    chapter: Chapter, names: list[list[Any]]
) -> dict[int, dict[str, tuple[str, str, bool]]]:
    """Return for each line: name -> (sizes, dtype, whether it is assigned here).

    A use has the shape of the last assignment above it in the same function, class or module. If
    that one was no tensor, it has none.
    """
    given: dict[int, dict[str, tuple[str, str] | None]] = {}
    for line, name, sizes, dtype in names:
        seen = None if sizes is None else (", ".join(map(str, sizes)), dtype)
        given.setdefault(line, {})[name] = seen
    owners = [0] * (len(chapter.lines) + 1)  # the innermost scope around each line
    for node in ast.walk(chapter.tree):
        if isinstance(node, DEFINITIONS):
            for line in range(first_line(node), last_line(node) + 1):
                owners[line] = first_line(node)
    known: dict[int, dict[str, tuple[str, str] | None]] = {}
    shown: dict[int, dict[str, tuple[str, str, bool]]] = {}
    for line in range(1, len(owners)):
        mine, here = known.setdefault(owners[line], {}), given.get(line, {})
        shown[line] = {
            name: (*seen, name in here)
            for name, seen in (mine | here).items()
            if seen is not None
        }
        mine |= here
    return shown
