"""Texts without markup: which of them are code."""

from __future__ import annotations

import ast
import warnings
from textwrap import dedent

# Statements that hardly anyone writes as a sentence.
CODE: tuple[type[ast.stmt], ...] = (
    ast.Assign,
    ast.AugAssign,
    ast.FunctionDef,
    ast.ClassDef,
    ast.AsyncFunctionDef,
)
CODE += (ast.Import, ast.ImportFrom, ast.For, ast.While, ast.If, ast.With, ast.Try)


def is_code(text: str) -> bool:
    """Return whether a text is commented-out code: ``x = f(y)``, and not ``see f``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(dedent(text)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(map(_is_statement, body)) and all(
        _is_statement(node) or not isinstance(node, ast.Expr) for node in body
    )


def _is_statement(node: ast.stmt) -> bool:
    """Return whether a statement is code, and not a word or two that happen to be valid."""
    value = getattr(node, "value", None)
    if isinstance(node, ast.Expr):
        return isinstance(value, ast.Call | ast.Await)
    if isinstance(node, ast.Return | ast.Raise | ast.Assert):
        value = value or getattr(node, "exc", None) or getattr(node, "test", None)
        return value is not None and not isinstance(value, ast.Name)
    if isinstance(node, ast.AnnAssign):
        return value is not None
    return isinstance(node, CODE)
