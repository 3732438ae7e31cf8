"""Ties between names and symbols: a sentence connects them, and the page highlights both.

"`query`, `key` and `value` are $Q$, $K$ and $V$" ties the first name to the first symbol, and
so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

from sphinx_annotated.page.html.boxes import between

# Characters that replace a name and a symbol in a sentence.
NAME, SYMBOL = "\N{START OF TEXT}", "\N{END OF TEXT}"
LIST = "{0}(?:(?:, and|,| and) {0})*"
TIE = re.compile(
    f"({LIST.format(NAME)}) (?:is|are|stands for|stand for) ({LIST.format(SYMBOL)})"
)
SIMPLE = re.compile(r"\\?[A-Za-z]+(?:_(?:\w|\{[^{}]*\}|\\\w+(?:\{\w+\}|\s\w)?))?")


class tie(nodes.Inline, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """Encloses a name in prose or its symbol. ``stop``: whether it is a tab stop."""


def tied(prose: nodes.Element) -> None:
    """Enclose each name and symbol in a tie where a sentence connects them."""
    for paragraph in list(prose.findall(nodes.paragraph)):
        for name, symbol in list(_pairs(paragraph)):
            pairs = paragraph.setdefault("ties", [])
            pairs.append((name.astext(), symbol.astext()))
            _enclose(name, symbol)


def _enclose(name: nodes.Element, symbol: nodes.Element) -> None:
    for node in (name, symbol):
        wrapped = tie(name=name.astext(), stop=node is name)
        node.parent.replace(node, wrapped)
        wrapped += node


class TiesOfTranslations(SphinxTransform):
    """Ties the names and symbols of a translated paragraph that its English sentence connects."""

    default_priority = 30  # after Sphinx has put in the translations

    def apply(self, **kwargs: Any) -> None:
        for paragraph in self.document.findall(nodes.paragraph):
            pairs = paragraph.attributes.pop("ties", [])
            if pairs and next(paragraph.findall(tie), None) is None:
                for name, symbol in pairs:
                    literal = _first(paragraph, nodes.literal, name)
                    math = _first(paragraph, nodes.math, symbol)
                    if literal is not None and math is not None:
                        _enclose(literal, math)


def _first(
    paragraph: nodes.Element, kind: type[nodes.Element], text: str
) -> nodes.Element | None:
    """Return the first node of a kind with this text that is not tied yet."""
    found = (n for n in paragraph.findall(kind) if n.astext() == text)
    return next((n for n in found if not isinstance(n.parent, tie)), None)


def _pairs(
    paragraph: nodes.paragraph,
) -> Iterator[tuple[nodes.Element, nodes.Element]]:
    text, marked = "", []
    for child in paragraph.children:
        mark = _mark(child)
        text += mark or re.sub("[\x02\x03]", " ", child.astext())
        marked += [child] if mark else []
    for match in TIE.finditer(re.sub(r"\s+", " ", text)):
        before = sum(map(match.string[: match.start()].count, (NAME, SYMBOL)))
        names, symbols = match[1].count(NAME), match[2].count(SYMBOL)
        found = marked[before : before + names + symbols]
        if names == symbols:
            yield from zip(found[:names], found[names:], strict=True)


def _mark(node: nodes.Node) -> str:
    """Return the character that replaces a node in its sentence, if it can be tied."""
    text = node.astext()
    if isinstance(node, nodes.literal) and text.isidentifier():
        return NAME
    if isinstance(node, nodes.math) and SIMPLE.fullmatch(text):
        return SYMBOL
    return ""


def _opened(node: tie) -> str:
    stop = ' tabindex="0"' if node["stop"] else ""
    return f'<span class="tie" data-tie="{node["name"]}"{stop}>'


TIE_HTML = between(_opened, "</span>")
