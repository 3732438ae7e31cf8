"""The site's notebook: a chapter's rows as directives, with its outputs, for MyST-NB."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import nbformat
from nbformat import NotebookNode
from sphinx.locale import _

from sphinx_annotated.page.directives.values import with_values
from sphinx_annotated.page.html.figures import themed
from sphinx_annotated.page.html.limits import limited
from sphinx_annotated.page.html.outputs import portrayed
from sphinx_annotated.page.html.words import said
from sphinx_annotated.read.chapter import HEADING, Cell, Chapter, Row
from sphinx_annotated.read.folds import Folds
from sphinx_annotated.read.prose import as_typed
from sphinx_annotated.read.syntax import is_text
from sphinx_annotated.run.clean import cleaned
from sphinx_annotated.run.kernel import KERNEL
from sphinx_annotated.run.narrow import FORMAT as NARROW
from sphinx_annotated.run.store import Record

BLOCK = re.compile(r"\s*(`{3,}|~{3,}|:{3,})")  # code, or a directive
FENCE, INNER = "`" * 8, "`" * 7


def site_notebook(
    chapter: Chapter,
    record: Record,
    folds: list[Folds] | None = None,
    docname: str = "",
    values: Mapping[str, str] | None = None,
    say: Callable[[str], str] = str,
    note: Callable[[str], str] = str,
    notice: str = "",
) -> NotebookNode:
    """Return Markdown cells for headings and rows, and a code cell for each set of outputs.

    The notes of rows that are folded whole are in the row with the fold. ``values`` are those of the
    expressions in prose, by default the record's. ``say`` translates the words of figures and tables,
    and ``note`` a paragraph of prose. The ``notice`` is shown below the title.
    """
    values = record.values if values is None else values
    executed = {"execution_mode": "off"}  # for MyST-NB: the engine executes chapters
    metadata = {"kernelspec": KERNEL, "mystnb": executed}
    notebook = nbformat.v4.new_notebook(metadata=metadata)
    lines: list[int] = []  # module lines on which the cells start, for messages
    outputs = record.by_cell(chapter)

    def add(text: str, line: int, **more: Any) -> None:
        cell = {"cell_type": "markdown", "id": f"c{len(lines)}", "metadata": {}}
        notebook.cells.append(nbformat.from_dict({**cell, "source": text, **more}))
        lines.append(line - 2)  # then MyST-NB's messages have the right line

    for i, cell in enumerate(chapter.cells):
        folded = folds[i] if folds else Folds()
        for j, row in enumerate(cell.rows):
            if j in folded.remarks:
                continue
            head, rest, line = _head(row)
            if head:
                add(head, row.line)
            if notice and row is chapter.opening:
                add(f"{INNER}{{note}}\n{notice}\n{INNER}", row.line)
            remarks = [k for k in _rows(folded, j) if k in folded.remarks]
            notes = [cell.rows[k] for k in remarks]
            rest = _with_remarks(rest, line, notes, chapter.key)
            text = f"{FENCE}{{annotated-row}} {chapter.key} {i} {j}\n\n{rest}\n{FENCE}"
            add(text, line - 2)
        seen = visible(next(outputs)) if cell.nodes else []
        seen = [] if cell.is_silent else seen
        if _described(cell):
            seen = [each for each in seen if each["output_type"] != "execute_result"]
        if seen:
            label = _label(cell, values, note)
            add(
                "...",  # MyST-NB skips cells without source, and their outputs with them
                cell.line,
                cell_type="code",
                execution_count=None,
                outputs=[
                    _shown(output, label, say)
                    for output in limited(seen, f"{docname}-{i}")
                ],
                metadata={
                    "tags": ["remove-input"],
                    "mystnb": {"image": {"alt": label}},
                },
            )
    notebook.metadata["source_map"] = lines
    return notebook


def _described(cell: Cell) -> bool:
    """Return whether the cell ends with a constant and its description, which is not a result."""
    if len(cell.nodes) < 2:
        return False
    constant, last = cell.nodes[-2:]
    return isinstance(constant, ast.Assign | ast.AnnAssign) and is_text(last)


def _rows(folded: Folds, row: int) -> list[int]:
    return folded.at[row].rows if row in folded.at else []


def _with_remarks(text: str, line: int, rows: list[Row], key: str) -> str:
    """Add the notes of a fold, each on its own line if there is room."""
    for row in rows:
        gap = row.line - 2 - line - text.count("\n")
        text += "\n" * max(2, gap)
        text += f"{INNER}{{annotated-remark}} {key}\n\n{row.placed}\n{INNER}"
    return text


def _head(row: Row) -> tuple[str, str, int]:
    """Split a row's note: the part outside the row, the rest, and the line of the rest.

    A heading is outside because it starts a section. The page's title takes its summary, the
    first paragraph, with it; a block may have blank lines inside, and stays in the row.
    """
    prose = row.placed
    heading = HEADING.match(prose)
    if not heading:
        return "", prose, row.line
    end = heading.end()
    if len(heading.group(1)) == 1 and not BLOCK.match(prose, end):
        blank = prose.find("\n\n", len(prose[: end + 1].rstrip()) + 2)
        end = len(prose) if blank < 0 else blank
    head, rest = prose[:end], prose[end:]
    skipped = len(rest) - len(rest.lstrip("\n"))
    return (
        head,
        rest[skipped:],
        row.line + head.count("\n") + rest[:skipped].count("\n"),
    )


def _shown(
    output: dict[str, Any], label: str, say: Callable[[str], str] = str
) -> NotebookNode:
    """Return an output as the page shows it: figures and tables as HTML, in theme colours."""
    output = dict(output)
    data = dict(output.get("data", {}))
    narrow = "".join(data.pop(NARROW, ""))
    if "image/svg+xml" in data:
        output["data"] = {
            "text/html": said(
                themed("".join(data["image/svg+xml"]), label, narrow), say
            ),
            "text/plain": _("Figure: {}").format(label),  # for builders other than HTML
        }
    elif data:
        output["data"] = shown = portrayed(data, label)
        table = "".join(shown.get("text/html", ""))
        if table.startswith("<table"):
            table = said(table, say)
            shown["text/html"] = f'<div class="out out--table">{table}</div>'
    output.pop("execution_count", None)
    if output["output_type"] == "execute_result":
        output["output_type"] = "display_data"
    return nbformat.from_dict(output)


def visible(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the outputs of a cell that readers see.

    Text on stderr is left out, because the author has seen it during the build. Consecutive
    prints are joined, and what controls a terminal is left out.
    """
    joined: list[dict[str, Any]] = []
    for output in outputs:
        if output.get("name") == "stderr":
            continue
        if joined and output["output_type"] == joined[-1]["output_type"] == "stream":
            joined[-1]["text"] = "".join((*joined[-1]["text"], *output["text"]))
        else:
            joined.append(dict(output))
    return [cleaned(output) for output in joined]


def _label(
    cell: Cell, values: Mapping[str, str], note: Callable[[str], str] = str
) -> str:
    """Return a figure's text alternative: the first sentence of the note next to its code."""
    prose = next((row.prose for row in cell.rows if row.prose), "")
    prose = re.sub(r"(?m)^(#|:::|`+\{).*\n?", "", prose).strip("\n")
    first, _gap, rest = prose.partition("\n\n")
    first = " ".join(first.split("\n"))
    translated = note(first) if first else ""
    own = translated != first
    text = translated if own else " ".join([first, *rest.split()])
    plain = _plain(with_values(as_typed(text), values))
    return re.split(r"(?<=。)" if own else r"\. ", plain)[0].strip(" .。") or _(
        "Figure"
    )


def _plain(text: str) -> str:
    """Return a note as plain text: no citations, the text of links, formulas without TeX."""
    text = re.sub(r"\s*\{cite[^}]*\}`[^`]*`", "", text)
    text = re.sub(r"\{[\w:]+\}`(?:~(?:\w+\.)*)?([^`<]*?)\s*(?:<[^>]*>)?`", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\\(?:text|mathrm|operatorname|left|right)\b", "", text)
    text = re.sub(r"\\([^\w\s{}])|[$`*\\]", r"\1", text)
    text = text.translate(str.maketrans("{}", "()"))
    return " ".join(text.split())
