"""Directives and transforms that turn the site's notebook into the rows of a page."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, TypeGuard

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from annotated.page.code import Highlighter, code_lines, code_node
from annotated.page.exercises import exercise, folded, solution
from annotated.page.folding import fold, own, remark
from annotated.page.pictures import picture
from annotated.page.state import Head, page_of, state_of
from annotated.page.ties import tied
from annotated.page.variants import variant
from annotated.read.folds import Folds
from annotated.read.parse import Block, Cell, Name, Row


class heading(nodes.Element):  # noqa: N801 (docutils names nodes so)
    """A section's title inside a row; ``level`` and ``anchor`` as in the HTML."""


class deviation(nodes.Admonition, nodes.Element):  # noqa: N801
    """A note that the code deviates from a source."""


class AnnotatedRow(SphinxDirective):
    """One row. Its arguments are a key and the indices of cell and row; its content is the note."""

    required_arguments = 3
    has_content = True

    def run(self) -> list[nodes.Node]:
        own(self)
        page = page_of(self.env)
        cell: Cell = page.chapter.cells[int(self.arguments[1])]
        index = int(self.arguments[2])
        row, folds = cell.rows[index], page.folds[int(self.arguments[1])]
        prose, code = _box("sbs__prose"), _box("sbs__code")
        self.state.nested_parse(self.content, self.content_offset, prose)
        tied(prose)
        flagged = any(True for _ in prose.findall(deviation))
        shown = self._part(row, folds, hidden=False)
        for i, block in enumerate(shown):
            code += self._block(
                page.highlighter, cell, block, first=i == 0, flagged=flagged and i == 0
            )
        if index in folds.at:
            code += self._fold(cell, folds, index, prose, flagged and not shown)
        for difference in list(prose.findall(variant)):
            difference.parent.remove(difference)
            code += difference
        named = any(block.name for block in row.blocks)
        for drawing in list(prose.findall(picture)):
            drawing.parent.remove(drawing)
            code.insert(int(named), drawing)  # a definition's own line comes first
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

    def _part(self, row: Row, folds: Folds, hidden: bool) -> list[Block]:
        """Return the row's blocks with only the lines that are folded, or only the others."""
        text = page_of(self.env).chapter.lines
        blocks = []
        for block in row.blocks:
            lines = [n for n in block.lines if (n in folds.lines) == hidden]
            for end in (0, -1):
                while lines and not text[lines[end] - 1].strip():
                    lines.pop(end)
            if lines:
                name = block.name if lines[0] == block.lines[0] else None
                blocks.append(Block(lines, name))
        return blocks

    def _fold(
        self,
        cell: Cell,
        folds: Folds,
        index: int,
        prose: nodes.Element,
        flagged: bool,
    ) -> nodes.Element:
        """Return the fold at a row: the lines of its rows, with the comments between them."""
        page = page_of(self.env)
        box = fold(summary=folds.counted(cell, folds.at[index], page.chapter))
        remarks = list(prose.findall(remark))
        for node in remarks:
            node.parent.remove(node)
        for i in folds.at[index].rows:
            if i in folds.remarks:
                box += _box("fold__note")
                box[-1] += remarks.pop(0).children  # type: ignore[operator]
            for block in self._part(cell.rows[i], folds, hidden=True):
                first = next(box.findall(code_lines), None) is None
                box += self._block(
                    page.highlighter, cell, block, first, flagged and first
                )
        return box

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
        chapter = page_of(self.env).chapter
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
        """Make the definition's name its anchor. A heading of that name gets another one."""
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
            return  # a second definition of the same name, such as an overload
        document.ids[anchor] = box
        box["ids"].append(anchor)
        full = f"{page_of(self.env).module.name}.{anchor}"
        self.env.get_domain("py").note_object(full, name.kind, anchor, location=box)  # type: ignore[attr-defined]


class Deviation(SphinxDirective):
    """``:::{deviation} the paper, section 3``: how the code differs, and why."""

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
            code = _parts(row)[1]
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
        rows = [n for n in node.findall() if _is_row(n) and len(_parts(n)[1])]
        if rows:
            return rows[-1]
    return None


def _is_row(node: nodes.Node) -> TypeGuard[nodes.container]:
    return isinstance(node, nodes.container) and "sbs__row" in node["classes"]


def _parts(row: nodes.Element) -> tuple[nodes.Element, nodes.Element]:
    """Return the boxes of a row's prose and of its code."""
    prose, code = row.children
    assert isinstance(prose, nodes.Element) and isinstance(code, nodes.Element)
    return prose, code


def _all_folded(code: nodes.Element) -> bool:
    """Return whether no line of code is shown outside a fold."""
    blocks = (n for n in code.children if isinstance(n, nodes.container))
    return not any("sbs__block" in n["classes"] for n in blocks)


def is_sheet(node: nodes.Node) -> bool:
    """Is it the box around all rows of a page?"""
    return isinstance(node, nodes.container) and "sbs__sheet" in node["classes"]


class Sheet(SphinxPostTransform):
    """HTML only: encloses the rows in one sheet, and moves each heading into its note."""

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
        self._answer(page)
        for row in list(page.findall(_is_row)):
            self._ask(row)
        head = [
            n
            for n in page.children
            if not _is_row(n) and not isinstance(n, nodes.section)
        ]
        sheet = _box("sbs__sheet")
        sheet += [n for n in page.children if n not in head]
        if self._theme_has_title_block():
            taken = self._taken(head, sheet)
            state_of(self.env).heads[self.env.docname] = taken
            head = [
                n
                for n in head
                if not isinstance(n, nodes.title) and n is not taken.summary
            ]
        page.children = []
        page += [*head, sheet]

    def _answer(self, page: nodes.section) -> None:
        """Move figures without a heading of their own next to an opening whose code is folded.

        Their notes become their captions.
        """
        before = takewhile(lambda n: not isinstance(n, nodes.section), page.children)
        rows = [n for n in before if _is_row(n)]
        if not rows:
            return
        _, code = _parts(rows[0])
        if not code.children or not _all_folded(code):
            return
        shown: list[nodes.Node] = []
        folds = list(code.children)
        for row in takewhile(lambda row: _all_folded(_parts(row)[1]), rows[1:]):
            note, outputs = _parts(row)
            hidden = [n for n in outputs.children if isinstance(n, fold)]
            demo = "sbs__row--demo" in row["classes"]
            note["classes"] = ["figure-note" if demo else "fold__note"]
            shown += [n for n in outputs.children if not isinstance(n, fold)]
            if demo and note.children:
                shown.append(note)
            elif note.children and hidden:
                hidden[0].insert(0, note)
            folds += hidden
            page.remove(row)
        code.children = []
        code += [*shown, *folds]

    def _ask(self, row: nodes.Element) -> None:
        """Give an exercise a row of its own: its solution is next to it, not next to what is before."""
        prose, _ = _parts(row)
        headings = [
            i for i, n in enumerate(prose.children) if isinstance(n, nodes.rubric)
        ]
        if not headings or next(prose.findall(exercise), None) is None:
            return
        before, text = _box(*row["classes"]), _box("sbs__prose")
        text += prose.children[: headings[-1]]
        prose.children = prose.children[headings[-1] :]
        before += [text, _box("sbs__code")]
        row["classes"].append("sbs__row--exercise")
        row.parent.insert(row.parent.index(row), before)

    def _theme_has_title_block(self) -> bool:
        theme = getattr(self.app.builder, "theme", None)
        return bool(theme and theme.get_options({}).get("title_block"))

    def _taken(self, head: list[nodes.Node], sheet: nodes.Element) -> Head:
        """Take the summary and the source out of the text, for the title block."""
        summary = next((n for n in head if isinstance(n, nodes.paragraph)), None)
        for paragraph in sheet[0].findall(nodes.paragraph):
            words = paragraph[0] if len(paragraph) else None
            if isinstance(words, nodes.Text) and words.startswith("Source: "):
                paragraph.replace(words, nodes.Text(words.removeprefix("Source: ")))
                paragraph.parent.remove(paragraph)
                return Head(summary, paragraph)
        return Head(summary)

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
        _parts(row)[0].insert(0, node)


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
