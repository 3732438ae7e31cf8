"""The reader's notebook: a chapter that runs without the package being installed."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sphinx.locale import _

from sphinx_annotated.page.build.book import Book
from sphinx_annotated.page.chapter.site_notebook import visible
from sphinx_annotated.page.directives.folding import named
from sphinx_annotated.read.chapter import Cell, Row
from sphinx_annotated.read.digest import (
    DOCUMENTATION,
    data,
    recorded,
    versions,
    words_in,
)
from sphinx_annotated.read.folds import Folds
from sphinx_annotated.read.modules import Module, text_of
from sphinx_annotated.read.names import bound_names
from sphinx_annotated.read.syntax import ChapterError, bare, docstring, is_for_types
from sphinx_annotated.run.kernel import KERNEL
from sphinx_annotated.run.narrow import FORMAT as NARROW
from sphinx_annotated.run.store import Record
from sphinx_annotated.take.markdown import COMPUTED, MarkdownWriter
from sphinx_annotated.take.standalone import (
    NEEDED,
    STARS,
    Collector,
    bound,
    is_local,
    meaning,
    without,
)
from sphinx_annotated.take.translated import Say

FILES = "Data of this chapter"
RESULTS = "Records that this chapter reads"
DEFINITIONS = "Definitions from other chapters"
HEADING = re.compile(r"#+ +(.+)")
TARGET = re.compile(r"(?<=\])\([^()\s]*\)")  # of a link
VALUE = re.compile(COMPUTED.format("(.*?)"), re.DOTALL)
DATA = """\
from pathlib import Path

for name, content in {{
{}
}}.items():
    if not Path(name).exists():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content, encoding="utf-8")"""

RETURNED = """\
import json
from functools import partial

RETURNED = r\"""
{}
\"""


def _returned(function, *arguments):
    for given, value in json.loads(RETURNED)[function]:
        if given == list(arguments):
            return value
    raise LookupError(f"{{function}}{{arguments}} was not called when the page was built")


{}"""
Calls = Mapping[str, list[Any]]  # by function, pairs of arguments and result


def reader_notebook(
    path: Path,
    book: Book,
    record: Record | None = None,
    values: Mapping[str, str] | None = None,
    returned: Calls | None = None,
    say: Say | None = None,
    reach: int = NEEDED,
) -> str:
    """Return the notebook of the chapter in ``path`` as JSON.

    With a ``record`` it contains the outputs. ``values`` are those of the expressions in prose, and
    ``returned`` the results of recorded functions, both by default the record's. ``say`` translates the
    texts of its prose. It takes as much of other chapters as ``reach`` says.
    """
    module = book.project.at(path)
    own = record or Record()
    writer = _Writer(
        module,
        book,
        record,
        own.values if values is None else values,
        own.returned if returned is None else returned,
        say,
        reach,
    )
    return json.dumps(writer.notebook(), indent=1, ensure_ascii=False) + "\n"


def library_code(module: Module, book: Book, returned: Calls, reach: int) -> str:
    """Return the code of a chapter's notebook without that of its demonstrations."""
    return _Writer(module, book, None, {}, returned, None, reach).library_code()


class _Writer:
    def __init__(
        self,
        module: Module,
        book: Book,
        record: Record | None,
        values: Mapping[str, str],
        returned: Calls,
        say: Say | None = None,
        reach: int = NEEDED,
    ):
        self.chapter, self.module = module.chapter, module
        self.docname = book.project.docname(module)
        self.book, self.record = book, record
        self.outputs = (record or Record()).by_cell(module.chapter)
        self.counted = 0  # code cells with outputs so far
        self.markdown = MarkdownWriter(module, book, values, say)
        self.collector = Collector(
            book.project, lambda module: recorded(module, book.project), reach
        )
        self.returned = returned
        self.cells: list[dict[str, object]] = []
        self.section = ""  # the heading above the next cell
        self.ids: set[str] = set()

    def notebook(self) -> dict[str, object]:
        self._collect()
        if self.chapter.opening:
            self._prose(self._note(self.chapter.opening))
        self._origin()
        self._license()
        self._install()
        self._data()
        self._results()
        self._definitions()
        folds = self.book.folds(self.module)
        for cell, folded in zip(self.chapter.cells, folds, strict=True):
            self._cell(cell, folded)
        kernel = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
        return {
            "cells": self.cells,
            "metadata": kernel,
            "nbformat": 4,
            "nbformat_minor": 5,
        }

    def library_code(self) -> str:
        self._collect()
        self._results()
        self._definitions()
        folds = self.book.folds(self.module)
        for cell, folded in zip(self.chapter.cells, folds, strict=True):
            if cell.kind != "demo":
                self._cell(cell, folded)
        code = (cell for cell in self.cells if cell["cell_type"] == "code")
        return "\n\n".join("".join(cell["source"]) for cell in code)  # type: ignore[arg-type]

    def _add(self, kind: str, source: str, name: str = "", **metadata: object) -> None:
        """Add a cell. By ``name`` it is known if its content says less of what it is."""
        cell: dict[str, object] = {
            "cell_type": kind,
            "id": self._id(kind, VALUE.sub("", source), name),
            "metadata": metadata,
        }
        cell["source"] = VALUE.sub(r"\1", source).splitlines(keepends=True)
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        self.cells.append(cell)

    def _id(self, kind: str, source: str, name: str) -> str:
        """Return an id from the section and the content.

        Neither another cell, nor a value, nor the address of a link changes it.
        """
        source = TARGET.sub("", source) if kind == "markdown" else source
        if kind == "markdown" and (heading := HEADING.match(source)):
            self.section, words = _slug(heading[1], 40), ""
        else:
            first = _bound_by(source) if kind == "code" else source
            words = _slug(name or first, 40)
        parts = [self.section[: 62 - len(words)], words]
        found = "-".join(filter(None, parts)) or "cell"
        if found in self.ids:
            found = f"{found[:51]}-{hashlib.sha256(source.encode()).hexdigest()[:12]}"
        number = 2
        while found in self.ids:  # the same code once more in a section
            found, number = f"{found[:60]}-{number}", number + 1
        self.ids.add(found)
        return found

    def _folded(self, title: str, source: str, name: str = "") -> None:
        """Add a cell whose code is hidden at first, in Colab and in JupyterLab."""
        form = f'# @title {title} {{ display-mode: "form" }}'
        self._add(
            "code",
            f"{form}\n{source}",
            name,
            cellView="form",
            jupyter={"source_hidden": True},
        )

    def _prose(self, text: str) -> None:
        if text.strip():
            self._add("markdown", text.strip())

    def _origin(self) -> None:
        """Say where the notebook comes from, and with which versions it was tested."""
        page = self.book.address(self.docname)
        book = f"[{self.book.title}]({page})"
        words = [_("A chapter of {}. It needs no installation.").format(book)]
        if self.book.verified:
            words.append(_("Last tested with {}.").format(self.book.verified))
        if self.record:
            words.append(_("The outputs are from {}.").format(self.record.date))
        self._prose(f"*{' '.join(words)}*")

    def _license(self) -> None:
        """Add the comments above the module's docstring, which are its license."""
        if not (opening := docstring(self.chapter.tree)):
            return
        blocks = self.chapter.cells[0].rows[0].blocks
        lines = [n for block in blocks for n in block.lines if n < opening.lineno]
        if lines:
            text = "\n".join(self.chapter.lines[n - 1] for n in lines)
            self._add("code", text, "license")

    # -- definitions and data from elsewhere -----------------------------------------------

    def _local(self, node: ast.AST) -> bool:
        """Return whether a statement imports from the project."""
        return is_local(self.collector.project, self.module, node)

    def _collect(self) -> None:
        """Collect what the chapter needs from other modules. Each name must have one meaning."""
        self.collector.need_imports(self.module, self.chapter.tree)
        for cell in self.chapter.cells:
            for node in cell.nodes:
                if not self._local(node) and not is_for_types(node):
                    self._check(node)

    def _check(self, node: ast.stmt) -> None:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            raise ChapterError(str(self.module.path), node.lineno, STARS)
        said = (n for p in ast.walk(node) if isinstance(p, ast.Global) for n in p.names)
        for name in (*bound_names(node), *said):
            own = f"{self.module.name}.{name}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                own = next(meaning(node, a) for a in node.names if bound(a) == name)
            known = self.collector.meanings.get(name, own)
            if known != own:
                message = f"{name} also means `{known}`, which this chapter needs. Rename one."
                raise ChapterError(str(self.module.path), node.lineno, message)

    def _install(self) -> None:
        used = versions(self.module, self.collector.modules, self.book.project)
        wanted = [pip for package, pip in self.book.install.items() if package in used]
        if wanted:
            self._add("code", "\n".join(f"%pip install -q {pip}" for pip in wanted))

    def _data(self) -> None:
        """Add a cell that writes the files that the chapter reads, if they do not exist."""
        files = {
            name: text_of(path)
            for module in (self.module, *self.collector.modules)
            for name, path in data(module, self.book.project)
        }
        if not files:
            return
        lines = [f"    {name!r}: {content!r}," for name, content in files.items()]
        self._folded(_("Data of this chapter"), DATA.format("\n".join(lines)), FILES)

    def _results(self) -> None:
        """Add a cell with what recorded functions returned, instead of their code and their files."""
        calls: dict[str, list[Any]] = {}
        for name, module in sorted(self.collector.left.items()):
            if f"{module}.{name}" not in self.returned:
                message = f"{name} of {module} was not recorded. Build the book, then the notebooks."
                raise ChapterError(str(self.module.path), 1, message)
            calls[name] = self.returned[f"{module}.{name}"]
        if not calls:
            return
        lines = [
            f"{json.dumps(name)}: [\n" + ",\n".join(map(_compact, each)) + "\n]"
            for name, each in calls.items()
        ]
        again = "\n".join(f'{name} = partial(_returned, "{name}")' for name in calls)
        text = "{\n" + ",\n".join(lines) + "\n}"
        self._folded(
            _("Records that this chapter reads"), RETURNED.format(text, again), RESULTS
        )

    def _definitions(self) -> None:
        if not self.collector.taken and not self.collector.imports:
            return
        links = ", ".join(self._places(self.collector.modules))
        nodes = (node for cell in self.chapter.cells for node in cell.nodes)
        whole = any(words_in(node) & DOCUMENTATION for node in nodes)
        words = _("Definitions from other chapters, folded here: {}.")
        self._prose(words.format(links))
        self._folded(
            _("Definitions from other chapters"),
            self.collector.source(whole=whole),
            DEFINITIONS,
        )

    def _places(self, modules: list[Module]) -> Iterator[str]:
        """Yield links to the chapters in the book's order, then to modules without a page."""
        paths = {self.book.project.docname(module) for module in modules}
        for docname, title in self.book.titles.items():
            if docname in paths:
                yield f"[{title}]({self.book.address(docname)})"
        for docname in sorted(paths - set(self.book.titles)):
            name = f"`{docname}.py`"
            repository = self.book.repository
            source = repository.file(f"{docname}.py")
            yield f"[{name}]({source})" if source else name

    # -- the chapter's own cells -----------------------------------------------------------

    def _cell(self, cell: Cell, folds: Folds) -> None:
        titled = bool(cell.rows) and cell.rows[0] is self.chapter.opening
        first = "" if titled or not cell.rows else self._note(cell.rows[0])
        numbered = [
            row
            for i, row in enumerate(cell.rows)
            if i and row.prose and i not in folds.remarks
        ]
        notes = [
            f"{i}. " + _indented(self._note(row)) for i, row in enumerate(numbered, 1)
        ]
        self._prose("\n\n".join([first, *notes]))
        if cell.nodes:
            marks = {
                row.blocks[0].lines[0]: i
                for i, row in enumerate(numbered, 1)
                if row.blocks
            }
            self._parts(cell, folds, marks)

    def _parts(self, cell: Cell, folds: Folds, marks: dict[int, int]) -> None:
        """Add the cell's code: as one cell, or with the folded part in a cell of its own."""
        title = next((named(f.title) for f in folds.at.values()), _("Solution"))
        kept = {n for i in folds.remarks for n in self._comments(cell.rows[i])}
        parts = []
        for nodes, hidden in folds.parts(cell):
            source = self._source(cell, nodes, marks, kept)
            if source:
                parts.append((source, hidden or cell.is_solution))
        outputs = visible(next(self.outputs))
        for i, (source, hidden) in enumerate(parts):
            if hidden:
                self._folded(title, source)
            else:
                self._add("code", source)
            last = i == len(parts) - 1
            taken = len(outputs) if last else _before_figure(outputs)
            self._show(outputs[:taken])
            outputs = outputs[taken:]

    def _comments(self, row: Row) -> frozenset[int]:
        """Return the lines of a row's note."""
        lines = [row.line, *(n for block in row.blocks for n in block.lines)]
        return self.chapter.aside.intersection(range(min(lines), max(lines)))

    def _show(self, outputs: list[dict[str, Any]]) -> None:
        """Add these outputs to the last cell."""
        if not self.record:
            return
        self.counted += 1
        shown = [_portable(output, self.counted) for output in outputs]
        self.cells[-1] |= {"execution_count": self.counted, "outputs": shown}

    def _note(self, row: Row) -> str:
        return "\n\n".join(self.markdown(text, line) for line, text in row.notes)

    def _source(
        self, cell: Cell, nodes: list[ast.stmt], marks: dict[int, int], kept: set[int]
    ) -> str:
        """Return some statements of a cell, without imports from the project.

        Instead of notes they have numbers, except on the lines that are ``kept``.
        """
        instead = dict(
            self._replacements(ast.Module(nodes, []), cell.dedent, inside=False)
        )
        out: list[str] = []
        for n in self._lines(cell, nodes):
            line = instead.get(n, self.chapter.line_of(cell, n))
            if n in marks:
                out.append(line[: len(line) - len(line.lstrip())] + f"# ({marks[n]})")
            if n in kept:
                line = self.chapter.line_of(cell, n)
            doubled = not line.strip() and not (out and out[-1].strip())
            if (n in kept or not self._is_removed(n, instead)) and (
                n in self.chapter.verbatim or not doubled
            ):
                out.append(line)
        source = "\n".join(out).strip("\n")
        wanted = bare(
            [without(node, self._local) for node in nodes if not self._local(node)]
        )
        try:
            same = bare(ast.parse(source).body) == wanted
        except SyntaxError:
            same = False
        return source if same else wanted

    def _lines(self, cell: Cell, nodes: list[ast.stmt]) -> Iterator[int]:
        """Yield the lines of these statements, each with the comments and blank lines above."""
        after = cell.line - 1
        for node in cell.nodes:
            end = node.end_lineno or node.lineno
            if node in nodes:
                yield from range(after + 1, end + 1)
            after = end

    def _is_removed(self, line: int, instead: dict[int, str]) -> bool:
        return not instead[line] if line in instead else line in self.chapter.aside

    def _replacements(
        self, node: ast.AST, dedent: int, inside: bool
    ) -> Iterator[tuple[int, str]]:
        """Yield removed lines as empty text, and a ``pass`` for a body left empty."""
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if not isinstance(body, list):
                continue
            gone = [
                s for s in body if self._local(s) or (inside and s is docstring(node))
            ]
            gone = [s for s in gone if self._local(s) or s.lineno in self.chapter.aside]
            for statement in gone:
                for n in range(statement.lineno, (statement.end_lineno or 0) + 1):
                    yield n, ""
            if gone and len(gone) == len(body) and inside:
                yield gone[0].lineno, " " * (gone[0].col_offset - dedent) + "pass"
        for child in ast.iter_child_nodes(node):
            yield from self._replacements(child, dedent, inside=True)


def _before_figure(outputs: list[dict[str, Any]]) -> int:
    """Return how many outputs there are before the first figure."""
    figures = (i for i, o in enumerate(outputs) if "image/svg+xml" in o.get("data", {}))
    return next(figures, len(outputs))


def _portable(output: dict[str, Any], count: int) -> dict[str, Any]:
    """Return an output for any notebook: figures get a white ground for dark themes."""
    output = dict(output)
    data = {k: shown for k, shown in output.get("data", {}).items() if k != NARROW}
    if data:
        output["data"] = data
    if svg := "".join(data.get("image/svg+xml", "")):
        paper = r'\g<0><rect width="100%" height="100%" fill="white"/>'
        svg = re.sub(r"<svg\b[^>]*>", paper, svg, count=1)
        output["data"] = {**data, "image/svg+xml": svg}
    if output["output_type"] == "execute_result":
        output["execution_count"] = count
    return output


def _indented(text: str) -> str:
    return text.replace("\n", "\n   ").replace("\n   \n", "\n\n")


def _compact(value: Any) -> str:
    """Return JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _slug(text: str, length: int) -> str:
    """Return the first words of a text as they may be in an id."""
    words = re.sub(r"[^a-zA-Z0-9_]+", "-", text[: 4 * length]).strip("-")
    return (
        words
        if len(words) <= length
        else words[:length].rpartition("-")[0] or words[:length]
    )


def _bound_by(source: str) -> str:
    """Return the names that code defines, or its first line if it defines none."""
    try:
        nodes = ast.parse(source).body
    except SyntaxError:  # a command of IPython
        nodes = []
    imports = ast.Import | ast.ImportFrom
    names = [
        name
        for node in nodes
        if not isinstance(node, imports)
        for name in bound_names(node, deep=False)
    ]
    first = next(iter(source.splitlines()), "")
    return " ".join(dict.fromkeys(names)) or first
