"""A page as Markdown: what Sphinx has read of it, node by node.

The page's prose, formulas, code and outputs are all there; of a picture or a figure there are the words
that describe it. A kind of node that is not named here shows what is inside it, so no text is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from docutils import nodes
from html_as_markdown import SPECIAL, code, fenced, markdown_of, table
from sphinx_annotated.page.directives.pictures import FOLDER

# What Markdown would interpret at the beginning of a paragraph.
OPENING = re.compile(r"^(\d*)([#>+.)-])(?=\s)")
SPOKEN = re.compile(r'aria-label="([^"]*)".*?<desc>(.*?)</desc>', re.DOTALL)
SKIPPED = (
    *("comment", "index", "standalone_code", "substitution_definition"),
    *("system_message", "target", "toctree"),
)
NOTES = ("note", "tip", "hint", "important", "warning", "caution", "seealso")


class Writer:
    """Writes one page. `address` completes a link, and `file` a path in the site."""

    def __init__(self, address: Callable[[str], str], file: Callable[[str], str]):
        self.address, self.file = address, file
        self.level = 0

    # -- blocks ----------------------------------------------------------------------------

    def blocks(self, children: Iterable[nodes.Node]) -> str:
        """Return nodes as blocks with blank lines between them."""
        parts: list[str] = []
        words = ""
        for child in children:
            if isinstance(child, nodes.Inline | nodes.Text):
                words += self.inline(child)
                continue
            parts += [words.strip(), self.block(child)]
            words = ""
        parts.append(words.strip())
        return "\n\n".join(part for part in parts if part.strip())

    def block(self, node: nodes.Node) -> str:
        """Return a node by its kind, or else what is in it."""
        name = type(node).__name__
        if name in SKIPPED or not isinstance(node, nodes.Element):
            return ""
        write = getattr(self, f"_{name}", None)
        if write is not None:
            return str(write(node))
        if isinstance(node, nodes.TextElement):
            return OPENING.sub(r"\1\\\2", self.words(node))
        return self.blocks(node.children)

    def _section(self, node: nodes.Element) -> str:
        self.level += 1
        text = self.blocks(node.children)
        self.level -= 1
        return text

    def _title(self, node: nodes.Element) -> str:
        inside = isinstance(node.parent, nodes.section)
        return self._heading(node) if inside else self._rubric(node)

    def _heading(self, node: nodes.Element) -> str:
        return f"{'#' * min(self.level, 6)} {self.words(node)}"

    def _rubric(self, node: nodes.Element) -> str:
        return f"**{self.words(node)}**"

    def _literal_block(self, node: nodes.Element) -> str:
        output = "out" in node["classes"] or "output" in node["classes"]
        language = "text" if output else node.get("language", "")
        return fenced(node.astext(), language.replace("default", ""))

    def _code_lines(self, node: nodes.Element) -> str:
        return fenced(node.astext(), "python")

    def _variant(self, node: nodes.Element) -> str:
        was, now = node["names"]
        cost = f": {node['cost']}" if node["cost"] else ""
        lines = [f"{sign}{text}" for sign, _, _, text, _ in node["lines"]]
        return f"From `{was}` to `{now}`{cost}\n\n{fenced(lines, 'diff')}"

    def _bibtex(self, node: nodes.Element) -> str:
        return fenced(node["text"], "bibtex")

    def _math_block(self, node: nodes.Element) -> str:
        return f"$$\n{node.astext().strip()}\n$$"

    def _raw(self, node: nodes.Element) -> str:
        if "html" not in node.get("format", ""):
            return ""
        return markdown_of(node.astext(), self.address)

    def _picture(self, node: nodes.Element) -> str:
        match = SPOKEN.search(node["svg"])
        words = re.sub(r"[\[\]]", "", f"{match[1]}. {match[2]}") if match else ""
        place = self.file(f"{FOLDER}/{node['name']}.svg")
        return f"![{markdown_of(words, str)}]({place})"

    def _image(self, node: nodes.Element) -> str:
        place = self.address(node.get("uri", ""))
        return f"![{node.get('alt', '')}]({place})"

    def _exercise(self, node: nodes.Element) -> str:
        title, *rest = node.children
        return f"**Exercise: {self.words(title)}**\n\n{self.blocks(rest)}"

    def _solution(self, node: nodes.Element) -> str:
        return f"**Solution**\n\n{self.blocks(node.children)}"

    def _deeper(self, node: nodes.Element) -> str:
        return f"*Deeper:* {self.blocks(node.children)}"

    def _deviation(self, node: nodes.Element) -> str:
        title, *rest = node.children
        return quoted(f"**{self.words(title)}**\n\n{self.blocks(rest)}")

    def _block_quote(self, node: nodes.Element) -> str:
        return quoted(self.blocks(node.children))

    _admonition = _block_quote

    def _note(self, node: nodes.Element) -> str:
        name = type(node).__name__.capitalize()
        return quoted(f"**{name}**\n\n{self.blocks(node.children)}")

    _tip = _hint = _important = _warning = _caution = _seealso = _note

    def _bullet_list(self, node: nodes.Element) -> str:
        return "\n".join(item("-", self.blocks(each)) for each in children(node))

    def _enumerated_list(self, node: nodes.Element) -> str:
        start = node.get("start", 1)
        return "\n".join(
            item(f"{number}.", self.blocks(each))
            for number, each in enumerate(children(node), start)
        )

    def _definition_list_item(self, node: nodes.Element) -> str:
        terms = [n for n in children(node) if isinstance(n, nodes.term)]
        rest = [n for n in children(node) if not isinstance(n, nodes.term)]
        return f"**{', '.join(map(self.words, terms))}**\n\n{self.blocks(rest)}"

    def _citation(self, node: nodes.Element) -> str:
        label, *rest = node.children
        return item("-", f"**{label.astext()}** {self.blocks(rest)}")

    def _table(self, node: nodes.Element) -> str:
        titles = [self.words(n) for n in node.findall(nodes.title)]
        rows = [
            [self._cell(entry) for entry in children(row)]
            for row in node.findall(nodes.row)
        ]
        caption = f"**{titles[0]}**\n\n" if titles else ""
        return caption + table(rows)

    def _cell(self, entry: nodes.Element) -> str:
        return " ".join(self.blocks(entry.children).split())

    # -- inside a paragraph ----------------------------------------------------------------

    def words(self, node: nodes.Node) -> str:
        """Return the text of a paragraph or a title, on one line for each of its own."""
        return "".join(map(self.inline, node.children)).strip()

    def inline(self, node: nodes.Node) -> str:
        """Return a part of a paragraph."""
        if isinstance(node, nodes.Text):
            return SPECIAL.sub(r"\\\g<0>", node.astext())
        name = type(node).__name__
        if name in SKIPPED or not isinstance(node, nodes.Element):
            return ""
        if isinstance(node, nodes.literal):
            return code(node.astext())
        if isinstance(node, nodes.math):
            return f"${node.astext()}$"
        if isinstance(node, nodes.raw | nodes.image):
            return self.block(node)
        inside = "".join(map(self.inline, node.children))
        if name == "download_reference":
            return f"[{inside}]({self.file('_downloads/' + node['filename'])})"
        if isinstance(node, nodes.reference):
            place = node.get("refuri") or f"#{node.get('refid', '')}"
            return f"[{inside}]({self.address(place)})"
        mark = {"emphasis": "*", "strong": "**"}.get(name, "")
        return f"{mark}{inside}{mark}" if inside.strip() else inside


def children(node: nodes.Element) -> list[Any]:
    return [n for n in node.children if isinstance(n, nodes.Element)]


def quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def item(mark: str, text: str) -> str:
    """Return an item of a list, its further lines indented."""
    lines = text.split("\n")
    indent = " " * (len(mark) + 1)
    rest = [f"{indent}{line}".rstrip() for line in lines[1:]]
    return "\n".join([f"{mark} {lines[0]}", *rest])
