"""The ``value`` role: a number in prose, computed by the chapter's kernel.

``{value}`f"{loss:.2f}"``` shows the ``str`` of the expression after the chapter's last cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from annotated.page.state import state_of
from annotated.read.expressions import ROLE, one_line


class Value(SphinxRole):
    """Shows the recorded value of its expression."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        page = state_of(self.env).page
        text = page.record.values.get(one_line(self.text)) if page else None
        if text is not None:
            return [nodes.inline(self.rawtext, text, classes=["value"])], []
        message = (
            f"value: `{self.text}` was not evaluated. Use it in a chapter's notes."
        )
        error = self.inliner.reporter.error(message, line=self.lineno)
        return [self.inliner.problematic(self.rawtext, self.rawtext, error)], [error]


def with_values(prose: str, values: Mapping[str, str]) -> str:
    """Return prose with each ``value`` role replaced by its text."""

    def text(match: re.Match[str]) -> str:
        if match["role"] != "value":
            return match[0]
        return values.get(one_line(match["text"]), match[0])

    return ROLE.sub(text, prose)
