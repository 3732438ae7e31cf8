"""Python's syntax tree of a module, and what its statements are."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeGuard

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Syntax that some supported version of Python does not read: own types and their parameters, quotes and
# backslashes in the braces of a text; several exceptions without parentheses, templates.
NEWER = {
    (3, 12): re.compile(
        r"""^\s*(type\s+\w+\s*(\[.*\]\s*)?=|(async\s+)?(def|class)\s+\w+\s*\[)"""
        r"""|\b[rR]?[fF][rR]?("[^"{]*\{[^"}]*["\\]|'[^'{]*\{[^'}]*['\\])"""
    ),
    (3, 14): re.compile(
        r"""^\s*except\*?\s+[\w.]+\s*,\s*[\w.,\s]+:|(?<!["'\w])[rR]?[tT][rR]?["']"""
    ),
}
DEPTH = 200  # of nesting: a term of a sum is one deeper than the next


class ChapterError(Exception):
    """An error in a module. The message gives the file, the line and the fix."""

    def __init__(self, path: str, line: int, message: str):
        super().__init__(f"{path}:{line}: {message}")


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
        fix = _newer("".join(split_lines(text)[line - 1 : line]))
        if "unicodeescape" in reason:
            fix = 'Put an r before the quotes: r"""'
        message = f"this is not Python: {reason}. {fix or 'Correct the line.'}"
        raise ChapterError(path, line, message) from None


def _newer(line: str) -> str:
    """Return a sentence if a line seems to be written for a newer version of Python than this one."""
    own = sys.version_info[:2]
    for version, syntax in NEWER.items():
        if version > own and syntax.search(line):
            first, this = (".".join(map(str, each)) for each in (version, own))
            words = f"It seems to be Python {first}, and this is Python {this}. "
            return f"{words}Build the book with Python {first} or later, or correct the line."
    return ""


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


def check_docstrings(tree: ast.Module, path: str) -> None:
    """Raise ``ChapterError`` for a docstring that cannot be written to a page."""
    for node in ast.walk(tree):
        text = docstring(node)
        if text and re.search("[\ud800-\udfff]", ast.literal_eval(text.value)):
            message = 'this docstring contains half of a character, as in "\\ud83d". '
            message += 'Write the whole character, or start the docstring with r""".'
            raise ChapterError(path, text.lineno, message)


def split_lines(text: str) -> list[str]:
    """Split into lines as Python counts them: a form feed does not end a line."""
    return text.split("\n")


def first_line(node: ast.AST) -> int:
    """Return the line on which a statement starts, including decorators."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])  # type: ignore[attr-defined]


def last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def docstring(node: ast.AST) -> ast.Expr | None:
    """Return the statement that is the docstring of a module, class or function."""
    body = getattr(node, "body", None)
    if isinstance(node, (ast.Module, *DEFINITIONS)) and body:
        return body[0] if is_text(body[0]) else None
    return None


def is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Return whether a statement is a string and nothing else."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


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
    return "\n".join(map(_bare, nodes))


def _bare(node: ast.stmt) -> str:
    text = ast.unparse(node)
    if any(isinstance(n, DEFINITIONS) and docstring(n) for n in ast.walk(node)):
        copy = ast.parse(text).body[0]
        text = ast.unparse(_Undocumented().visit(copy))
    return text


class _Undocumented(ast.NodeTransformer):
    """Removes docstrings."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, DEFINITIONS) and docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        return node
