"""The boxes of a page: rows, each with its prose and its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

from docutils import nodes

Write = Callable[[Any, Any], None]


def between(before: Callable[[Any], str], after: str) -> tuple[Write, Write]:
    """Return what writes a node of HTML: what is ``before`` it, and ``after`` it."""

    def visit(translator: Any, node: nodes.Element) -> None:
        translator.body.append(before(node))

    def depart(translator: Any, node: nodes.Element) -> None:
        translator.body.append(after)

    return visit, depart


def skip(translator: Any, node: nodes.Element) -> None:
    """Leave a node out, where it cannot be shown."""
    raise nodes.SkipNode


def box(*classes: str) -> nodes.container:
    return nodes.container(classes=list(classes))


def is_row(node: nodes.Node) -> TypeGuard[nodes.container]:
    return isinstance(node, nodes.container) and "sbs__row" in node["classes"]


def is_sheet(node: nodes.Node) -> bool:
    """Is it the box around all rows of a page?"""
    return isinstance(node, nodes.container) and "sbs__sheet" in node["classes"]


def parts(row: nodes.Element) -> tuple[nodes.Element, nodes.Element]:
    """Return the boxes of a row's prose and of its code."""
    prose, code = row.children
    assert isinstance(prose, nodes.Element) and isinstance(code, nodes.Element)
    return prose, code
