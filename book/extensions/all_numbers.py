"""The directive `numbers`: of each chapter, the sentences with computed numbers, and what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx_annotated.page.build.contents import in_order
from sphinx_annotated.page.build.state import state_of

END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|(?<=。)")  # of a sentence
LINES = 6  # of an output that is shown whole
WIDE = 100  # characters of a line


class numbers(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """Where the numbers go."""


class Numbers(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # any chapter may have others
        return [numbers()]


class Gather(SphinxPostTransform):
    """Puts the numbers of all chapters into the page, which are known when all pages are read."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for place in list(self.document.findall(numbers)):
            found: list[nodes.Node] = []
            for docname in in_order(self.app):
                if docname in state_of(self.env).jobs:
                    found += self._of(docname)
            place.replace_self(found)

    def _of(self, docname: str) -> list[nodes.Node]:
        """Return the numbers of one chapter below a link to it."""
        page = self.env.get_doctree(docname)
        items = nodes.bullet_list()
        for sentence in sentences(page):
            items += nodes.list_item("", nodes.paragraph("", "", *sentence))
        texts = list(printed(page))
        if not items.children and not texts:
            return []
        uri = self.app.builder.get_relative_uri(self.env.docname, docname)
        title = self.env.titles[docname].astext()
        link = nodes.reference("", title, refuri=uri, internal=True)
        shown: list[nodes.Node] = [nodes.rubric("", "", link)]
        shown += [items] if items.children else []
        if texts:
            text = "\n".join(texts)
            shown.append(nodes.literal_block(text, text, language="text"))
        return shown


def sentences(page: nodes.document) -> Iterator[list[nodes.Node]]:
    """Yield each sentence of a page that has a computed number, without its links."""
    for paragraph in page.findall(nodes.paragraph):
        if not any(map(is_value, paragraph.findall(nodes.inline))):
            continue
        sentence: list[nodes.Node] = []
        for node in flat(paragraph):
            first, *others = END.split(str(node)) if is_text(node) else [node]
            sentence.append(nodes.Text(first) if is_text(node) else node.deepcopy())
            for other in others:
                if any(map(is_value, sentence)):
                    yield sentence
                sentence = [nodes.Text(other)]
        if any(map(is_value, sentence)):
            yield sentence


def flat(node: nodes.Element) -> Iterator[Any]:
    """Yield the text, code, formulas and numbers inside a paragraph."""
    for child in node.children:
        whole = isinstance(child, nodes.Text | nodes.literal | nodes.math)
        if whole or is_value(child):
            yield child
        elif isinstance(child, nodes.Element):
            yield from flat(child)


def is_text(node: Any) -> bool:
    return isinstance(node, nodes.Text)


def is_value(node: Any) -> bool:
    return isinstance(node, nodes.inline) and "value" in node["classes"]


def printed(page: nodes.document) -> Iterator[str]:
    """Yield the short outputs of a page that have a number."""
    for block in page.findall(nodes.literal_block):
        lines = block.astext().strip().split("\n")
        short = len(lines) <= LINES and all(len(line) <= WIDE for line in lines)
        if "out" in block["classes"] and short and re.search(r"\d", block.astext()):
            yield from lines


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(numbers)
    app.add_directive("numbers", Numbers)
    app.add_post_transform(Gather)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
