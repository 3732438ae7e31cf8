"""The directive that makes a row of a page from a row of a chapter."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.build.book import is_below
from sphinx_annotated.page.build.state import page_of
from sphinx_annotated.page.chapter.ties import tied
from sphinx_annotated.page.directives.deeper import MISPLACED, is_misplaced
from sphinx_annotated.page.directives.deviations import deviation
from sphinx_annotated.page.directives.exercises import exercise, folded, solution
from sphinx_annotated.page.directives.folding import fold, own, remark, summary
from sphinx_annotated.page.directives.pictures import picture
from sphinx_annotated.page.directives.variants import variant
from sphinx_annotated.page.html.boxes import box
from sphinx_annotated.page.html.code import code_lines, code_node
from sphinx_annotated.read.chapter import Block, Cell, Name, Row
from sphinx_annotated.read.folds import Folds


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
        prose, code = box("sbs__prose"), box("sbs__code")
        # Cells of tables learn their source from the document.
        prose.document = self.state.document
        self.state.nested_parse(self.content, self.content_offset, prose)
        if is_misplaced(row, prose):
            raise self.error(MISPLACED)
        tied(prose)
        flagged = any(True for _ in prose.findall(deviation))
        shown = self._part(row, folds, hidden=False)
        for i, block in enumerate(shown):
            code += self._block(cell, block, first=i == 0, flagged=flagged)
        if index in folds.at:
            code += self._fold(cell, folds, index, prose, flagged and not shown)
        for difference in list(prose.findall(variant)):
            difference.parent.remove(difference)
            code += difference
        named = any(block.name for block in row.blocks)
        for drawing in list(prose.findall(picture)):
            drawing.parent.remove(drawing)
            code.insert(int(named), drawing)  # a definition's own line comes first
        asks = any(True for kind in (exercise, solution) for _ in prose.findall(kind))
        if asks and len(cell.rows) > 1:
            message = "exercise: its solution is one step. Keep comments at the ends of its lines."
            raise self.error(message)
        if asks and cell.is_solution:
            folded(prose, code)
        level = min((block.name.level for block in row.blocks if block.name), default=0)
        made = box(
            "sbs__row",
            *([f"sbs__row--def{min(level, 2)}"] if level else []),
            f"sbs__row--{cell.kind}",
            *(["sbs__row--write"] if cell.is_stub else []),
        )
        made += [prose, code]
        return [made]

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
        opened = folds.at[index]
        length = folds.length(cell, opened, page.chapter)
        made = fold(summary=summary(opened.title, length))
        remarks = list(prose.findall(remark))
        for node in remarks:
            node.parent.remove(node)
        for i in folds.at[index].rows:
            if i in folds.remarks:
                made += box("fold__note")
                made[-1] += remarks.pop(0).children  # type: ignore[operator]
            for block in self._part(cell.rows[i], folds, hidden=True):
                first = next(made.findall(code_lines), None) is None
                made += self._block(cell, block, first, flagged)
        return made

    def _block(
        self, cell: Cell, block: Block, first: bool, flagged: bool
    ) -> nodes.Element:
        """Return a block. If it is ``flagged``, so is the first line of the ``first`` one."""
        made = box("sbs__block", *(["def"] if block.name else []))
        page = page_of(self.env)
        chapter, flagged = page.chapter, flagged and first
        if block.name:
            self._anchor(made, block.name, helps=self._helps(cell, block.name))
        lines = [
            (
                n,
                chapter.anchor(n),
                page.highlighter.line(cell, n),
                ["ln--deviation"] if flagged and k == 0 else [],
            )
            for k, n in enumerate(block.lines)
        ]
        of = [name.qualname for name, _ in chapter.around(block.lines[0])]
        made += code_node(lines, of, first)
        return made

    def _helps(self, cell: Cell, name: Name) -> bool:
        """Return whether a definition only helps: in a demonstration, a function, or a folded chapter."""
        inner = name.kind == "function" and name.level > 1
        everything = is_below(self.env.docname, self.config.annotated_folded)
        return cell.kind == "demo" or inner or everything

    def _anchor(self, block: nodes.Element, name: Name, helps: bool) -> None:
        """Make the definition's name its anchor. A heading of that name gets another one.

        One that ``helps`` can be linked to, but Sphinx lists it nowhere.
        """
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
        document.ids[anchor] = block
        block["ids"].append(anchor)
        full = f"{page_of(self.env).module.name}.{anchor}"
        python: Any = self.env.get_domain("py")
        python.note_object(full, name.kind, anchor, aliased=helps, location=block)
