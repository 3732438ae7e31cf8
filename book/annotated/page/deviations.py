"""The ``deviation`` directive: a note that the code differs from a source."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class deviation(nodes.Admonition, nodes.Element):  # noqa: N801
    """A note that the code deviates from a source."""


class Deviation(SphinxDirective):
    """``:::{deviation} the paper, section 3``: how the code differs, and why."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        where, messages = self.state.inline_text(self.arguments[0], self.lineno - 1)
        node = deviation()
        node += nodes.paragraph("", "Deviation from ", *where, classes=["note__title"])
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node, *messages]


def visit_deviation(translator: Any, node: deviation) -> None:
    translator.body.append('<div class="note note--deviation" role="note">')


def depart_deviation(translator: Any, node: deviation) -> None:
    translator.body.append("</div>")
