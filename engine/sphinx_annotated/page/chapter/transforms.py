"""Transforms of a chapter's page as it is read: outputs move to their code, rules are kept."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

from sphinx_annotated.page.build.state import state_of
from sphinx_annotated.page.directives.exercises import solution
from sphinx_annotated.page.directives.folding import fold
from sphinx_annotated.page.html.boxes import is_row, parts

# Texts of formulas, in which MathJax reads no commands.
TEXT = re.compile(
    r"\\(?P<name>text(?:rm|it|bf|sf|tt|normal|up)?|mbox|hbox)\{(?:[^{}]|\{[^{}]*\})*\}"
)
SIZES = "tiny|scriptsize|footnotesize|small|normalsize|large|Large|LARGE|huge|Huge"
SIZED = re.compile(rf"\\({SIZES})(?![A-Za-z])\s*(?:\{{([^{{}}]*)\}}|([^{{}}\\]*))")


class Rules(SphinxTransform):
    """Keeps rules between paragraphs (``---``), which docutils knows only between sections."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        if state_of(self.env).page is not None:
            for rule in list(self.document.findall(nodes.transition)):
                rule.replace_self(nodes.raw("", "<hr>", format="html"))


class OutputsInRows(SphinxTransform):
    """Moves the outputs of a cell under the code that produced them."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        if state_of(self.env).page is None:
            return
        for cell in list(self.document.findall(_is_output)):
            row = _row_before(cell)
            if row is None:
                continue
            code = parts(row)[1]
            place = next(code.findall(solution), code)
            folds = [i for i, child in enumerate(place) if isinstance(child, fold)]
            at = folds[-1] if folds else len(place)
            for child in reversed(cell.children):
                place.insert(at, child)
                for text in child.findall(nodes.literal_block):
                    text["classes"].append("out")
            cell.parent.remove(cell)


def _is_output(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "cell" in node["classes"]


def _row_before(cell: nodes.Element) -> nodes.Element | None:
    """Return the last row with code before an output, also in the section before it."""
    siblings = cell.parent.children
    for node in reversed(siblings[: siblings.index(cell)]):
        rows = [n for n in node.findall() if is_row(n) and len(parts(n)[1])]
        if rows:
            return rows[-1]
    return None


class Sizes(SphinxTransform):
    """Puts sizes around the texts of formulas, in which MathJax would show their names."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        if state_of(self.env).page is None:
            return
        for kind in (nodes.math, nodes.math_block):
            for formula in list(self.document.findall(kind)):
                text = formula.astext()
                if (other := TEXT.sub(_sized, text)) != text:
                    formula.children = []
                    formula += nodes.Text(other)


def _sized(text: re.Match[str]) -> str:
    """Return ``\\text{A}{\\small\\text{B}}`` for ``\\text{A\\small{B}}``."""
    name = rf"\{text['name']}"
    made = SIZED.sub(
        lambda m: rf"}}{{\{m[1]}{name}{{{m[2] or m[3] or ''}}}}}{name}{{", text[0]
    )
    return made if made == text[0] else made.replace(f"{name}{{}}", "")
