"""The ``value`` role: a number in prose, computed by the chapter's kernel.

``{value}`f"{loss:.2f}"``` shows the ``str`` of the expression after the chapter's last cell.
``{value}`f"{loss:.2f}" </folder/chapter>``` shows a value that another chapter shows, on any page. Pages are
written after all chapters ran, so it may be a later chapter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from sphinx_annotated.page.build.catalogues import words_of
from sphinx_annotated.page.build.state import Shown, State, state_of
from sphinx_annotated.page.html.words import spoken
from sphinx_annotated.read.expressions import OTHER, ROLE, one_line
from sphinx_annotated.read.memo import digest_of


class Value(SphinxRole):
    """Shows the recorded value of its expression."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        expression, values = self._asked()
        text = values.get(one_line(expression))
        if text is not None:
            shown = spoken(text, words_of(_place(self.text, self.env.docname)))
            return [nodes.inline(self.rawtext, shown, classes=["value"])], []
        if self._unexecuted(expression):
            return [nodes.literal(self.rawtext, expression)], []
        message = (
            f"value: `{self.text}` was not evaluated. Use it in a chapter's notes, or name a chapter "
            "whose notes have this very expression: {value}`expression </chapter>`."
        )
        error = self.inliner.reporter.error(message, line=self.lineno)
        return [self.inliner.problematic(self.rawtext, self.rawtext, error)], [error]

    def _unexecuted(self, expression: str) -> bool:
        """Return whether the chapter that has this value was not executed."""
        docname = _place(self.text, self.env.docname)
        return docname in state_of(self.env).unexecuted

    def _asked(self) -> tuple[str, Mapping[str, str]]:
        """Return the expression, and the values of this chapter or of the one that is named."""
        state = state_of(self.env)
        if state.page:
            return self.text, state.page.values
        match = OTHER.fullmatch(self.text)
        if not match or match["docname"] not in state.jobs:
            return self.text, {}
        state.use(self.env.docname, f"values of {match['docname']}")
        return match["text"], state.ran(state.jobs[match["docname"]])[1].values


def _place(expression: str, docname: str) -> str:
    """Return the page whose value an expression asks for on a page: another that it names, or its own."""
    match = OTHER.fullmatch(expression)
    return match["docname"] if match else docname


def in_edition(values: Mapping[str, str], docname: str) -> dict[str, str]:
    """Return a page's values with the words of an edition, as "1.2 to 1.5" has one."""
    return {
        expression: spoken(text, words_of(_place(expression, docname)))
        for expression, text in values.items()
    }


def _values_of(state: State, docname: str) -> str:
    job = state.jobs.get(docname)
    return digest_of(map(str, state.ran(job)[1].values.items())) if job else ""


Shown.kinds["values"] = _values_of


def with_values(prose: str, values: Mapping[str, str]) -> str:
    """Return prose with each ``value`` role replaced by its text."""

    def text(match: re.Match[str]) -> str:
        if match["role"] != "value":
            return match[0]
        return values.get(one_line(match["text"]), match[0])

    return ROLE.sub(text, prose)
