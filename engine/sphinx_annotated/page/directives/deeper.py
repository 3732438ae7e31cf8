"""Sections that a reader may pass over: folded on the page, whole in the notebook and in print.

``:::{deeper}`` below a section's heading folds the section. Its content says what the section is about, and
is shown while it is closed.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.build.state import state_of
from sphinx_annotated.page.html.boxes import between
from sphinx_annotated.read.chapter import Row

MISPLACED = (
    "deeper: it folds the section that it is in, so it stands below the heading of a section, in the "
    "same note. Move it there."
)
SECOND = (
    "deeper: the next section starts in a note of this one, and would be folded too. Leave a line empty, "
    "without #, above its heading."
)


class deeper(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """What a folded section is about."""


class deeper_section(nodes.General, nodes.Element):  # noqa: N801
    """A folded section: its heading with what it is about, then its rows."""


class Deeper(SphinxDirective):
    """Its section is folded when the page is written."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        if state_of(self.env).page is None:
            raise self.error("deeper: only a chapter can fold a section. Remove it.")
        node = deeper()
        self.state.nested_parse(self.content, self.content_offset, node)
        if next(node.findall(_is_link), None):
            raise self.error(
                "deeper: what opens a section cannot contain a link. Move it below."
            )
        return [node]


def _is_link(node: nodes.Node) -> bool:
    return isinstance(node, nodes.reference | addnodes.pending_xref)


def is_misplaced(row: Row, prose: nodes.Element) -> bool:
    """Return whether a row folds a section and does not start one."""
    heading = row.heading
    starts = heading is not None and len(heading[1]) > 1
    return next(prose.findall(deeper), None) is not None and not starts


def _opened(node: deeper_section) -> str:
    word = _("Deeper")
    return (
        f'<details class="deeper"><summary><span class="deeper__label">{word}</span> '
    )


ABOUT = between(lambda node: '<div class="deeper__about">', "</div></summary>")
SECTION = between(_opened, "</details>")
