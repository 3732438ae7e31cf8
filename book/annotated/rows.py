"""Directives and transforms: from the site's notebook to the rows of a page."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from annotated.code import Highlighter, code_node
from annotated.exercises import exercise, folded, solution
from annotated.parse import Block, Cell, Name
from annotated.ties import tied
from annotated.variants import variant


class heading(nodes.Element):  # noqa: N801 (docutils names nodes so)
    """A section's title, set where it is read; ``level`` and ``anchor`` as in the HTML."""


class snippets(nodes.Element):  # noqa: N801
    """What is copied to stand alone: ``texts`` by the names of the definitions."""


class deviation(nodes.Admonition, nodes.Element):  # noqa: N801
    """A note that the code departs from a source."""


class AnnotatedRow(SphinxDirective):
    """One row: arguments are the indices of the cell and of the row in it; content is the note."""

    required_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        page = self.env.temp_data["annotated"]
        cell: Cell = page.chapter.cells[int(self.arguments[0])]
        row = cell.rows[int(self.arguments[1])]
        prose, code = _box("sbs__prose"), _box("sbs__code")
        self.state.nested_parse(self.content, self.content_offset, prose)
        tied(prose)
        flagged = any(True for _ in prose.findall(deviation))
        for i, block in enumerate(row.blocks):
            code += self._block(
                page.highlighter, cell, block, first=i == 0, flagged=flagged and i == 0
            )
        for difference in list(prose.findall(variant)):
            difference.parent.remove(difference)
            code += difference
        if next(prose.findall(exercise), None) and len(cell.rows) > 1:
            message = "exercise: its solution is one step. Keep comments at the ends of its lines."
            raise self.error(message)
        folded(prose, code)
        level = min((block.name.level for block in row.blocks if block.name), default=0)
        box = _box(
            "sbs__row",
            *([f"sbs__row--def{min(level, 2)}"] if level else []),
            f"sbs__row--{cell.kind}",
        )
        box += [prose, code]
        return [box]

    def _block(
        self,
        highlighter: Highlighter,
        cell: Cell,
        block: Block,
        first: bool,
        flagged: bool,
    ) -> nodes.Element:
        box = _box("sbs__block", *(["def"] if block.name else []))
        if block.name:
            self._anchor(box, block.name)
        chapter = self.env.temp_data["annotated"].chapter
        lines = [
            (
                n,
                chapter.anchor(n),
                highlighter.line(cell, n),
                ["ln--deviation"] if flagged and k == 0 else [],
            )
            for k, n in enumerate(block.lines)
        ]
        of = [name.qualname for name, _ in chapter.around(block.lines[0])]
        box += code_node(lines, of, first)
        return box

    def _anchor(self, box: nodes.Element, name: Name) -> None:
        """The definition's own name is its anchor; a heading that had it gives way."""
        document, anchor = self.state.document, name.qualname
        holder = document.ids.get(anchor)
        if isinstance(holder, nodes.section):
            holder["ids"] = [
                f"{anchor}-section" if i == anchor else i for i in holder["ids"]
            ]
            document.ids[f"{anchor}-section"] = document.ids.pop(anchor)
            for key, value in document.nameids.items():
                if value == anchor:
                    document.nameids[key] = f"{anchor}-section"
        elif holder is not None:
            return  # a second definition of the same name, as of an overload
        document.ids[anchor] = box
        box["ids"].append(anchor)
        full = f"{self.env.temp_data['annotated'].module}.{anchor}"
        self.env.get_domain("py").note_object(full, name.kind, anchor, location=box)  # type: ignore[attr-defined]


class Deviation(SphinxDirective):
    """``:::{deviation} the paper, section 3``: what the code does otherwise, and why."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        where, messages = self.state.inline_text(self.arguments[0], self.lineno - 1)
        node = deviation()
        node += nodes.paragraph("", "Deviation from ", *where, classes=["note__title"])
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node, *messages]


def _box(*classes: str) -> nodes.container:
    return nodes.container(classes=list(classes))


class OutputsInRows(SphinxTransform):
    """Moves what a cell printed or drew under the code that made it."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        if "annotated" not in self.env.temp_data:
            return
        for cell in list(self.document.findall(_is_output)):
            row = _row_before(cell)
            if row is None:
                continue
            place = next(row[1].findall(solution), row[1])  # type: ignore[arg-type]
            for child in list(cell.children):
                place += child
                for text in child.findall(nodes.literal_block):
                    text["classes"].append("out")
            cell.parent.remove(cell)


def _is_output(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "cell" in node["classes"]


def _row_before(cell: nodes.Element) -> nodes.Element | None:
    """The last row with code before an output, in its section or at the end of the one before."""
    siblings = cell.parent.children
    for node in reversed(siblings[: siblings.index(cell)]):
        rows = [n for n in node.findall(_is_row) if len(n[1])]
        if rows:
            return rows[-1]
    return None


def _is_row(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "sbs__row" in node["classes"]


class Sheet(SphinxPostTransform):
    """HTML only: one sheet round the rows, and each heading at the top of the note it opens."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        page = next(
            (s for s in self.document.children if isinstance(s, nodes.section)), None
        )
        if page is None or next(self.document.findall(_is_row), None) is None:
            return
        for section in list(page.findall(nodes.section)):
            if section is not page:
                section["classes"].append("sbs__section")
                self._hoist(section)
        whole = self._snippets(page)
        head = [
            n
            for n in page.children
            if not _is_row(n) and not isinstance(n, nodes.section)
        ]
        sheet = _box("sbs__sheet")
        sheet += [*(n for n in page.children if n not in head), whole]
        if self._theme_has_title_block():
            taken = self.document.annotated_head = self._taken(head, sheet)
            shown = [n for n in head if isinstance(n, nodes.title)] + list(
                taken.values()
            )
            head = [n for n in head if n not in shown]
        page.children = []
        page += [*head, sheet]

    def _snippets(self, page: nodes.Element) -> snippets:
        """Marks the definitions that a reader can copy; what stands alone comes with what it needs.

        A function inside of another is of no use elsewhere.
        """
        book = self.app.annotated  # type: ignore[attr-defined]
        whole: dict[str, str] = book.snippets(self.env.docname)
        names = [name for name, _ in book.job(self.env.docname).chapter.names()]
        inner = {n.qualname for n in names if n.kind == "function" and n.level > 1}
        for box in list(page.findall(_is_definition)):
            name = box["ids"][0]
            if name.partition(".")[0] in whole and name not in inner:
                box["classes"].append("def--own")
        return snippets(texts=whole)

    def _theme_has_title_block(self) -> bool:
        theme = getattr(self.app.builder, "theme", None)
        return bool(theme and theme.get_options({}).get("title_block"))

    def _taken(
        self, head: list[nodes.Node], sheet: nodes.Element
    ) -> dict[str, nodes.Element]:
        """Summary and source, out of the text and on their way to the title block."""
        summary = next((n for n in head if isinstance(n, nodes.paragraph)), None)
        taken = {"summary": summary} if summary is not None else {}
        for paragraph in sheet[0].findall(nodes.paragraph):
            words = paragraph[0] if len(paragraph) else None
            if isinstance(words, nodes.Text) and words.startswith("Source: "):
                paragraph.replace(words, nodes.Text(words.removeprefix("Source: ")))
                paragraph.parent.remove(paragraph)
                taken["source"] = paragraph
                break
        return taken

    def _hoist(self, section: nodes.section) -> None:
        title, row = section[0], section[1] if len(section) > 1 else None
        if not isinstance(title, nodes.title) or row is None or not _is_row(row):
            return
        level = 1
        parent = section.parent
        while parent is not None:
            level += isinstance(parent, nodes.section)
            parent = parent.parent
        anchor, *section["ids"] = section["ids"]
        node = heading("", *title.children, level=level, anchor=anchor)
        section.remove(title)
        row[0].insert(0, node)  # type: ignore[index]


def _is_definition(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.container)
        and "def" in node["classes"]
        and bool(node["ids"])
    )


def visit_snippets(translator: Any, node: snippets) -> None:
    """Write what stands alone to a script, which a page asks for when a reader wants to copy it.

    A script can be read from disk too, where nothing can be fetched. Pieces that several definitions
    share are in it once, and each definition names its pieces.
    """
    pieces: dict[str, int] = {}
    lists = []
    for name, text in node["texts"].items():
        parts = text.removesuffix("\n").split("\n\n\n")
        numbers = " ".join(str(pieces.setdefault(part, len(pieces))) for part in parts)
        lists.append(f'<b title="{name}">{numbers}</b>')
    texts = [f"<i>{escape(piece, quote=False)}</i>" for piece in pieces]
    builder = translator.builder
    page = builder.current_docname
    name = f"_static/standalone/{page.replace('/', '.')}.js"
    path = Path(builder.outdir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    held = json.dumps("".join((*texts, *lists)))
    path.write_text(
        f'document.getElementById("standalone").innerHTML = {held}', "utf-8"
    )
    source, names = "../" * page.count("/") + name, " ".join(node["texts"])
    translator.body.append(
        f'<template id="standalone" data-of="{names}" data-source="{source}"></template>'
    )
    raise nodes.SkipNode


def visit_heading(translator: Any, node: heading) -> None:
    translator.body.append(f'<h{node["level"]} id="{node["anchor"]}">')


def depart_heading(translator: Any, node: heading) -> None:
    translator.body.append(
        f'<a class="headerlink" data-pagefind-ignore href="#{node["anchor"]}" '
        f'aria-label="Link to this heading">#</a></h{node["level"]}>'
    )


def visit_deviation(translator: Any, node: deviation) -> None:
    translator.body.append('<div class="note note--deviation" role="note">')


def depart_deviation(translator: Any, node: deviation) -> None:
    translator.body.append("</div>")
