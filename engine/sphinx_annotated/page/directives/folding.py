"""Folded code on a page: the code that only draws, with the comments in it."""

from __future__ import annotations

from html import escape

from docutils import nodes
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.build.state import state_of
from sphinx_annotated.page.html.boxes import between


class fold(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """Code that is shown on demand. ``summary`` says of what, and how many lines."""


class remark(nodes.General, nodes.Element):  # noqa: N801
    """A comment in folded code. Its row moves its content into the fold."""


def summary(title: str, lines: int) -> str:
    """Return what a fold is called in the language of the build: `Code of this figure, 12 lines`."""
    pattern = _("{}, {} line") if lines == 1 else _("{}, {} lines")
    return pattern.format(named(title), lines)


def named(title: str) -> str:
    """Return the title of a fold in the language of the build."""
    known = {
        "Code": _("Code"),
        "Code of this figure": _("Code of this figure"),
        "Code of this table": _("Code of this table"),
    }
    return known.get(title) or _("Code of {}").format(title.removeprefix("Code of "))


def own(directive: SphinxDirective) -> None:
    """Raise an error for a directive of the engine that an author wrote."""
    page = state_of(directive.env).page
    if page is None or directive.arguments[0] != page.chapter.key:
        message = f"{directive.name}: only the engine writes this directive. Remove it."
        raise directive.error(message)


class Remark(SphinxDirective):
    """The comment of a row that is folded whole."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        own(self)
        node = remark()
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


FOLD = between(
    lambda node: f'<details class="fold"><summary>{escape(node["summary"])}</summary>',
    "</details>",
)
