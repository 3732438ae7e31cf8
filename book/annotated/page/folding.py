"""Folded code on a page: the code that only draws, with the comments in it."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class fold(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """Code that is shown on demand. ``summary`` says of what, and how many lines."""


class remark(nodes.General, nodes.Element):  # noqa: N801
    """A comment in folded code. Its row moves its content into the fold."""


class Remark(SphinxDirective):
    """The comment of a row that is folded whole."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        node = remark()
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def visit_fold(translator: Any, node: fold) -> None:
    translator.body.append(
        f'<details class="fold"><summary>{translator.encode(node["summary"])}</summary>'
    )


def depart_fold(translator: Any, node: fold) -> None:
    translator.body.append("</details>")
