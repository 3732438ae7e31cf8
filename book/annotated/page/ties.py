"""Ties between names and symbols: the chapter says them in a sentence, and the page lights both.

"`query`, `key` and `value` are $Q$, $K$ and $V$" ties each name to the symbol in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes

NAME, SYMBOL = (
    "\N{START OF TEXT}",
    "\N{END OF TEXT}",
)  # one of each stands in a sentence
LIST = "{0}(?:(?:, and|,| and) {0})*"
TIE = re.compile(
    f"({LIST.format(NAME)}) (?:is|are|stands for|stand for) ({LIST.format(SYMBOL)})"
)
SIMPLE = re.compile(r"\\?[A-Za-z]+(?:_(?:\w|\{[^{}]*\}|\\\w+(?:\{\w+\}|\s\w)?))?")


class tie(nodes.Inline, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """Round a name in prose (``stop``: where the keyboard stops), or round its symbol."""


def tied(prose: nodes.Element) -> None:
    """Puts a tie round each name and symbol of the sentences that tie them."""
    for paragraph in list(prose.findall(nodes.paragraph)):
        for name, symbol in list(_pairs(paragraph)):
            for node in (name, symbol):
                stop = node is name
                wrapped = tie(name=name.astext(), stop=stop)
                node.parent.replace(node, wrapped)
                wrapped += node


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
    """What stands for a node in the sentence, where it can be tied."""
    text = node.astext()
    if isinstance(node, nodes.literal) and text.isidentifier():
        return NAME
    if isinstance(node, nodes.math) and SIMPLE.fullmatch(text):
        return SYMBOL
    return ""


def visit_tie(translator: Any, node: tie) -> None:
    stop = ' tabindex="0"' if node["stop"] else ""
    translator.body.append(f'<span class="tie" data-tie="{node["name"]}"{stop}>')


def depart_tie(translator: Any, node: tie) -> None:
    translator.body.append("</span>")
