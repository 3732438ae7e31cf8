"""The sheet of a page: HTML only, the rows in one box, each heading at the top of its note."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from docutils import nodes
from sphinx.locale import _
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.logging import getLogger

from sphinx_annotated.page.build.state import Head, state_of
from sphinx_annotated.page.directives.deeper import SECOND, deeper, deeper_section
from sphinx_annotated.page.directives.exercises import exercise, solution
from sphinx_annotated.page.directives.folding import fold
from sphinx_annotated.page.html.boxes import box, is_row, parts

LOGGER = getLogger(__name__)


class heading(nodes.TextElement):  # noqa: N801 (docutils names nodes so)
    """A section's title inside a row; ``anchor`` as in the HTML."""


def _page(node: nodes.Node) -> nodes.section:
    """Return the outermost section around a node, of its own document."""
    page = node
    while node is not None and not isinstance(node, nodes.document):
        page = node if isinstance(node, nodes.section) else page
        node = node.parent
    assert isinstance(page, nodes.section)
    return page


def _all_folded(code: nodes.Element) -> bool:
    """Return whether no line of code is shown outside a fold."""
    blocks = (n for n in code.children if isinstance(n, nodes.container))
    return not any("sbs__block" in n["classes"] for n in blocks)


def _depth(section: nodes.section) -> int:
    """Return the level of a section's heading: 1 is the page's."""
    page, depth, node = _page(section), 1, section
    while node is not page:
        depth += isinstance(node, nodes.section)
        node = node.parent
    return depth


class Sheet(SphinxPostTransform):
    """HTML only: encloses the rows in one sheet, and moves each heading into its note."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for rubric in self.document.findall(nodes.rubric):
            if level := rubric.get("level"):
                # A page has one title. Sphinx calls it otherwise than MyST-Parser.
                rubric["level"] = rubric["heading-level"] = max(level, 2)
        for page, rows in self._pages():
            sections = [s for s in page.findall(nodes.section) if _page(s) is page]
            for section in sections:
                if section is not page:
                    section["classes"].append("sbs__section")
                    self._hoist(section)
            self._answer(page)
            for row in rows:
                if row.parent is not None:
                    self._ask(row)
            for row in rows:
                if row.parent is not None:
                    self._solve(row)
            for section in sections:
                self._fold(section)
            self._enclose(page)

    def _pages(self) -> list[tuple[nodes.section, list[nodes.container]]]:
        """Return each page that has rows, with them. A book on a single page has several."""
        found: dict[int, tuple[nodes.section, list[nodes.container]]] = {}
        for row in self.document.findall(is_row):
            page = _page(row)
            found.setdefault(id(page), (page, []))[1].append(row)
        return list(found.values())

    def _enclose(self, page: nodes.section) -> None:
        """Enclose the rows of a page in a sheet."""
        head = [
            n
            for n in page.children
            if not is_row(n) and not isinstance(n, nodes.section)
        ]
        sheet = box("sbs__sheet")
        sheet += [n for n in page.children if n not in head]
        if self._has_title_block(page):
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
        rows = [n for n in before if is_row(n)]
        if not rows:
            return
        _, code = parts(rows[0])
        if not code.children or not _all_folded(code):
            return
        shown: list[nodes.Node] = []
        folds = list(code.children)
        for row in takewhile(lambda row: _all_folded(parts(row)[1]), rows[1:]):
            note, outputs = parts(row)
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
            row.parent = None
        code.children = []
        code += [*shown, *folds]

    def _ask(self, row: nodes.Element) -> None:
        """Give an exercise a row of its own: its solution is next to it, not next to what is before."""
        prose, _ = parts(row)
        headings = [
            i for i, n in enumerate(prose.children) if isinstance(n, nodes.rubric)
        ]
        if not headings or next(prose.findall(exercise), None) is None:
            return
        before, text = box(*row["classes"]), box("sbs__prose")
        text += prose.children[: headings[-1]]
        prose.children = prose.children[headings[-1] :]
        before += [text, box("sbs__code")]
        row["classes"].append("sbs__row--exercise")
        row.parent.insert(row.parent.index(row), before)

    def _solve(self, row: nodes.Element) -> None:
        """Move a solution that is a step of its own below the code that the reader completes."""
        _, code = parts(row)
        found = [n for n in code.children if isinstance(n, solution)]
        if not found:
            return
        before = row.parent.index(row) - 1
        asked = row.parent[before] if before >= 0 else None
        if asked is None or not is_row(asked):
            return
        if "sbs__row--write" in asked["classes"]:
            row.parent.remove(row)
            parts(asked)[1].append(found[0])

    def _fold(self, section: nodes.section) -> None:
        """Fold a section whose first note says that it goes deeper."""
        first = section[0] if len(section) else None
        if not is_row(first):
            return
        prose, _ = parts(first)
        about = next((n for n in prose.children if isinstance(n, deeper)), None)
        if about is None or not isinstance(prose[0], heading):
            return
        level = _depth(section)
        for rubric in section.findall(nodes.rubric):
            if rubric.get("level", level + 1) <= level:
                LOGGER.warning(SECOND, location=rubric)
        title = prose[0]
        prose.children = [n for n in prose.children if n not in (title, about)]
        body = box("deeper__body")
        body += [*section.children]
        if not prose.children and not parts(first)[1].children:
            body.remove(first)
        folded = deeper_section()
        folded += [title, about, body]
        section.children = []
        section += folded

    def _has_title_block(self, page: nodes.section) -> bool:
        """Return whether the theme shows the title, which it does once a file."""
        theme = getattr(self.app.builder, "theme", None)
        alone = page.get("docname", self.env.docname) == self.env.docname
        return alone and bool(theme and theme.get_options({}).get("title_block"))

    def _taken(self, head: list[nodes.Node], sheet: nodes.Element) -> Head:
        """Take the summary and the source out of the text, for the title block."""
        summary = next((n for n in head if isinstance(n, nodes.paragraph)), None)
        for paragraph in sheet[0].findall(nodes.paragraph):
            words = paragraph[0] if len(paragraph) else None
            for start in {"Source: ", _("Source: ")}:
                if isinstance(words, nodes.Text) and words.startswith(start):
                    paragraph.replace(words, nodes.Text(words.removeprefix(start)))
                    paragraph.parent.remove(paragraph)
                    return Head(summary, paragraph)
        return Head(summary)

    def _hoist(self, section: nodes.section) -> None:
        title, row = section[0], section[1] if len(section) > 1 else None
        if not isinstance(title, nodes.title) or row is None or not is_row(row):
            return
        anchor, *section["ids"] = section["ids"]
        node = heading("", "", *title.children, anchor=anchor)
        section.remove(title)
        parts(row)[0].insert(0, node)


def visit_heading(translator: Any, node: heading) -> None:
    translator.body.append(f'<h{_level(translator)} id="{node["anchor"]}">')


def depart_heading(translator: Any, node: heading) -> None:
    word = _("Link to this heading")
    link = (
        f'<a class="headerlink" data-pagefind-ignore href="#{node["anchor"]}" '
        f'aria-label="{word}">#</a>'
    )
    # A heading that opens a section is a button, and a button cannot contain a link.
    opens = isinstance(node.parent, deeper_section)
    translator.body.append(f"{'' if opens else link}</h{_level(translator)}>")


def _level(translator: Any) -> int:
    """Return the level of a heading in the section that is being written."""
    level: int = translator.section_level + translator.initial_header_level - 1
    return min(level, 6)
