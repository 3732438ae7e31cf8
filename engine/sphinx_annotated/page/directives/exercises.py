"""Exercises: a question, and a folded solution that runs with the chapter.

``:::{exercise} Title`` starts the note of one step of a demo; the step's code is the solution.
``:::{solution}`` in the same note is the solution in words. It is folded with the code.

If the step has a function that only raises ``NotImplementedError``, the reader is to write it. The step is
shown, and the next step, whose note is a ``:::{solution}``, is the folded solution.
"""

from __future__ import annotations

from html import escape

from docutils import nodes
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.html.boxes import between


class exercise(nodes.Admonition, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """A question."""


class solution(nodes.General, nodes.Element):  # noqa: N801
    """Its answer: words, code and outputs, folded."""


class Exercise(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        words, messages = self.state.inline_text(self.arguments[0], self.lineno - 1)
        node, raw = exercise(), self.arguments[0]
        title = nodes.paragraph(raw, "", *words, classes=["note__title"])
        self.set_source_info(title)  # then it can be translated
        node += title
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node, *messages]


class Solution(SphinxDirective):
    """Its row moves it to the code column."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        node = solution()
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def folded(prose: nodes.Element, code: nodes.Element) -> None:
    """Move the code of a solution into it, after its words."""
    answer = next(prose.findall(solution), None) or solution()
    if answer.parent is not None:
        answer.parent.remove(answer)
    answer += list(code.children)
    code.children = []
    code += answer


def _opened(node: solution) -> str:
    """Return the fold. It names its exercise for paper, where the solutions are apart."""
    row: nodes.Element | None = node.parent
    while row is not None and not (asked := [*row.findall(exercise)]):
        row = row.parent
    title = asked[-1][0].astext() if row is not None else ""
    return (
        f'<details class="solution"><summary>{_("Solution")}'
        f'<span class="solution__of">: {escape(title)}</span></summary>'
        '<div class="solution__body">'
    )


QUESTION = between(
    lambda node: '<div class="note note--exercise" role="note">', "</div>"
)
ANSWER = between(_opened, "</div></details>")
