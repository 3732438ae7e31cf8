"""The reader's notebook: a chapter that runs from top to bottom where the package is not."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from annotated.book import Book
from annotated.difference import as_markdown, changes
from annotated.digest import data, versions
from annotated.execute import KERNEL, Record
from annotated.modules import Module, text_of
from annotated.names import bound_names
from annotated.parse import Cell, ChapterError, Row, bare, docstring
from annotated.site import visible
from annotated.standalone import Collector, bound, meaning, without

ROLE = re.compile(
    r"(?P<code>(?<!`)(`+)(?!`).*?(?<!`)\2(?!`))|\{(?P<role>[\w:-]+)\}`(?P<text>[^`]*)`",
    re.DOTALL,
)
DIRECTIVE = re.compile(r"(?P<mark>:{3,}|`{3,})\{(?P<name>[\w:-]+)\} *(?P<title>.*)$")
OPTION = re.compile(r":(\w+):(.*)$")
CODE = re.compile(r" *(`{3,}|~{3,})[^`]*$")
FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
LABEL = re.compile(r"\([^()\n]+\)=\s*")
NOTES = (
    "note",
    "tip",
    "hint",
    "important",
    "warning",
    "caution",
    "seealso",
    "admonition",
)
DATA = """\
from pathlib import Path

for name, content in {{
{}
}}.items():
    if not Path(name).exists():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content, encoding="utf-8")"""


class Part(NamedTuple):
    """Lines of prose or of a block of code: how many notes they stand in, and where they start."""

    depth: int
    start: int
    lines: list[str]
    code: str  # the mark that opens and closes it


def reader_notebook(path: Path, book: Book, record: Record | None = None) -> str:
    """The notebook of the chapter in ``path``, as JSON; as it ran where there is a ``record``."""
    module = book.project.at(path)
    writer = _Writer(module, book, record)
    return json.dumps(writer.notebook(), indent=1, ensure_ascii=False) + "\n"


class _Writer:
    def __init__(self, module: Module, book: Book, record: Record | None):
        self.chapter, self.module = module.chapter, module
        self.docname = book.project.docname(module)
        self.book, self.record = book, record
        self.outputs = iter(record.outputs if record else ())
        self.counted = 0  # cells that ran
        self.markdown = Plain(self.docname, str(module.path), book)
        self.collector = Collector(book.project)
        self.cells: list[dict[str, object]] = []

    def notebook(self) -> dict[str, object]:
        self._collect()
        if self.chapter.opening:
            self._prose(self._note(self.chapter.opening))
        self._origin()
        self._install()
        self._data()
        self._definitions()
        for cell in self.chapter.cells:
            self._cell(cell)
        kernel = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
        return {
            "cells": self.cells,
            "metadata": kernel,
            "nbformat": 4,
            "nbformat_minor": 5,
        }

    def _add(self, kind: str, source: str, **metadata: object) -> None:
        cell: dict[str, object] = {
            "cell_type": kind,
            "id": f"cell-{len(self.cells)}",
            "metadata": metadata,
        }
        cell["source"] = source.splitlines(keepends=True)
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        self.cells.append(cell)

    def _folded(self, title: str, source: str) -> None:
        """A cell whose code shows when it is asked for, in Colab and in JupyterLab."""
        form = f'# @title {title} {{ display-mode: "form" }}'
        self._add(
            "code",
            f"{form}\n{source}",
            cellView="form",
            jupyter={"source_hidden": True},
        )

    def _prose(self, text: str) -> None:
        if text.strip():
            self._add("markdown", text.strip())

    def _origin(self) -> None:
        """Where the notebook comes from, and how far it can be trusted."""
        page = f"{self.book.url}{self.docname}.html"
        words = [
            f"A chapter of [{self.book.title}]({page}), with nothing to install beforehand."
        ]
        if self.book.verified:
            words.append(f"Last verified with {self.book.verified}.")
        if self.record:
            words.append(f"The outputs are of {self.record.date}.")
        self._prose(f"*{' '.join(words)}*")

    # -- what comes from elsewhere ---------------------------------------------------------

    def _local(self, node: ast.AST) -> bool:
        """Does a statement import something of the project?"""
        return self.collector.is_local(node, self.module)

    def _collect(self) -> None:
        """Finds what the chapter needs of other modules, and checks that each name means one thing."""
        self.collector.imports_of(self.module, self.chapter.tree)
        for cell in self.chapter.cells:
            for node in cell.nodes:
                if not self._local(node):
                    self._check(node)

    def _check(self, node: ast.stmt) -> None:
        for name in bound_names(node):
            own = f"{self.module.name}.{name}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                own = next(meaning(node, a) for a in node.names if bound(a) == name)
            known = self.collector.bundle.meanings.get(name, own)
            if known != own:
                message = f"{name} also means `{known}`, which this chapter needs. Rename one."
                raise ChapterError(str(self.module.path), node.lineno, message)

    def _install(self) -> None:
        used = versions(self.module, self.collector.bundle.modules)
        wanted = [pip for package, pip in self.book.install.items() if package in used]
        if wanted:
            self._add("code", "\n".join(f"%pip install -q {pip}" for pip in wanted))

    def _data(self) -> None:
        """The files that the chapter reads, written where they are not."""
        files = {
            name: text_of(path)
            for module in (self.module, *self.collector.bundle.modules)
            for name, path in data(module, self.book.project)
        }
        if not files:
            return
        lines = [f"    {name!r}: {content!r}," for name, content in files.items()]
        self._folded("Data of this chapter", DATA.format("\n".join(lines)))

    def _definitions(self) -> None:
        bundle = self.collector.bundle
        if not bundle.meanings:
            return
        links = ", ".join(self._places(bundle.modules))
        self._prose(f"Definitions from elsewhere in the book, folded here: {links}.")
        self._folded("Definitions from other chapters", self.collector.source())

    def _places(self, modules: list[Module]) -> Iterator[str]:
        """Links to the chapters in the book's order, then to the modules that have no page."""
        paths = {self.book.project.docname(module) for module in modules}
        for docname, title in self.book.titles.items():
            if docname in paths:
                yield f"[{title}]({self.book.url}{docname}.html)"
        for docname in sorted(paths - set(self.book.titles)):
            name = f"`{docname}.py`"
            source = f"{self.book.repository}/blob/main/{docname}.py"
            yield f"[{name}]({source})" if self.book.repository else name

    # -- the chapter's own cells -----------------------------------------------------------

    def _cell(self, cell: Cell) -> None:
        titled = bool(cell.rows) and cell.rows[0] is self.chapter.opening
        first = "" if titled or not cell.rows else self._note(cell.rows[0])
        numbered = [row for row in cell.rows[1:] if row.prose]
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
            source = self._source(cell, marks)
            outputs = next(self.outputs, [])
            if source and cell.exercise:
                self._folded("Solution", source)
                self._show(outputs)
            elif source:
                self._add("code", source)
                self._show(outputs)

    def _show(self, outputs: list[dict[str, Any]]) -> None:
        """Gives the last cell what it printed and drew, as the page has it."""
        if not self.record:
            return
        self.counted += 1
        shown = [_portable(output, self.counted) for output in visible(outputs)]
        self.cells[-1] |= {"execution_count": self.counted, "outputs": shown}

    def _note(self, row: Row) -> str:
        return "\n\n".join(self.markdown(text, line) for line, text in row.notes)

    def _source(self, cell: Cell, marks: dict[int, int]) -> str:
        """The cell's code, its notes as numbers, without imports of what now stands at the top."""
        instead = dict(
            self._instead(ast.Module(cell.nodes, []), cell.dedent, inside=False)
        )
        out: list[str] = []
        for n in range(cell.line, cell.end + 1):
            line = instead.get(n, self.chapter.line_of(cell, n))
            if n in marks:
                out.append(line[: len(line) - len(line.lstrip())] + f"# ({marks[n]})")
            doubled = not line.strip() and not (out and out[-1].strip())
            if not self._goes(n, instead) and (
                n in self.chapter.verbatim or not doubled
            ):
                out.append(line)
        source = "\n".join(out).strip("\n")
        wanted = bare(
            [without(node, self._local) for node in cell.nodes if not self._local(node)]
        )
        try:
            same = bare(ast.parse(source).body) == wanted
        except SyntaxError:
            same = False
        return source if same else wanted

    def _goes(self, line: int, instead: dict[int, str]) -> bool:
        return not instead[line] if line in instead else line in self.chapter.aside

    def _instead(
        self, node: ast.AST, dedent: int, inside: bool
    ) -> Iterator[tuple[int, str]]:
        """Lines that go, as empty ones, and a ``pass`` where a body would be left empty."""
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
            yield from self._instead(child, dedent, inside=True)


def _portable(output: dict[str, Any], count: int) -> dict[str, Any]:
    """An output that any notebook shows: figures on paper of their own, as some have dark grounds."""
    output = dict(output)
    data = output.get("data", {})
    if svg := "".join(data.get("image/svg+xml", "")):
        paper = r'\g<0><rect width="100%" height="100%" fill="white"/>'
        svg = re.sub(r"<svg\b[^>]*>", paper, svg, count=1)
        output["data"] = {**data, "image/svg+xml": svg}
    if output["output_type"] == "execute_result":
        output["execution_count"] = count
    return output


def _indented(text: str) -> str:
    return text.replace("\n", "\n   ").replace("\n   \n", "\n\n")


def _depth(opened: list[tuple[str, str]]) -> int:
    """How many notes stand round: a solution unfolds in its own place, and is none."""
    return sum(name != "solution" for _, name in opened)


class Plain:
    """MyST to the Markdown that Colab and JupyterLab read: no role, directive or label is left."""

    def __init__(self, docname: str, path: str, book: Book):
        self.docname, self.path, self.book = docname, path, book

    def __call__(self, text: str, line: int) -> str:
        """``text`` starts at ``line`` of the module. Raises ``ChapterError`` for what has no form."""
        out: list[str] = []
        for part in self._parts(self._variants(text.split("\n"), line), line):
            if part.lines:
                words = "\n".join(part.lines)
                words = words if part.code else self._roles(words, part.start)
                if part.depth:  # a quote's marks must not get into a formula
                    words = FORMULA.sub(lambda m: " ".join(m[0].split()), words)
                out += [
                    ("> " * part.depth + each).rstrip() for each in words.split("\n")
                ]
        return "\n".join(out)

    def _variants(self, lines: list[str], line: int) -> list[str]:
        """Each difference that is asked for, as a block of code."""
        out: list[str] = []
        waiting = iter(enumerate(lines, line))
        for number, text in waiting:
            match = DIRECTIVE.match(text)
            if not match or match["name"] != "variant":
                out.append(text)
                continue
            options: dict[str, str] = {}
            for _, inner in waiting:
                if inner.strip() == match["mark"]:
                    break
                option = OPTION.match(inner)
                options |= {option[1]: option[2].strip()} if option else {}
            base, given = options.get("of", ""), options.get("with", "")
            project = self.book.project
            module = project.at(Path(self.path))
            try:
                found = changes(project, module, base, match["title"], given)
            except LookupError as error:
                message = f"variant: {error}. Correct the name."
                raise ChapterError(self.path, number, message) from None
            out += as_markdown(found)
        return out

    def _parts(self, lines: list[str], line: int) -> Iterator[Part]:
        """Notes of every kind become quotes with a bold title; labels go; code stays as it is."""
        opened: list[tuple[str, str]] = []  # open directives: mark and name
        part = Part(0, line, [], "")
        for k, text in enumerate(lines, line):
            directive, fence = DIRECTIVE.match(text), CODE.match(text)
            if part.code:
                part.lines.append(text)
                if text.strip() == part.code:
                    yield part
                    part = Part(_depth(opened), k + 1, [], "")
            elif directive:
                yield part
                opened.append((directive["mark"], directive["name"]))
                title = self._title(directive["name"], directive["title"], k)
                yield Part(_depth(opened), k, [title, ""], "")
                part = Part(_depth(opened), k + 1, [], "")
            elif opened and text.strip() == opened[-1][0]:
                yield part
                if opened.pop()[1] == "solution":
                    yield Part(_depth(opened), k, ["", "</details>"], "")
                part = Part(_depth(opened), k + 1, [], "")
            elif fence:
                yield part
                part = Part(_depth(opened), k, [text], fence[1])
            else:
                part.lines.append("" if LABEL.fullmatch(text) else text)
        yield part

    def _title(self, name: str, title: str, line: int) -> str:
        if name == "deviation":
            return f"**Deviation from {title}**"
        if name == "exercise":
            return f"**{title}**"
        if name == "solution":
            return "\n<details><summary>Solution, in words</summary>"
        if name in NOTES:
            return f"**{title or name.capitalize()}**"
        message = f"the notebook has no form for the directive {{{name}}}. Use a note, or say it in prose."
        raise ChapterError(self.path, line, message)

    def _roles(self, text: str, line: int) -> str:
        return ROLE.sub(
            lambda m: self._role(m, line + text[: m.start()].count("\n")), text
        )

    def _role(self, match: re.Match[str], line: int) -> str:
        if match["code"]:
            return match["code"]
        role, text = match["role"], match["text"]
        explicit = re.fullmatch(r"(.*?)\s*<([^<>]+)>", text, re.DOTALL)
        label, target = (explicit[1], explicit[2]) if explicit else ("", text)
        if role.startswith("cite"):
            return ", ".join(
                self._cited(key.strip(), line) for key in target.split(",")
            )
        if role.startswith("py:"):
            return self._definition(role, label, target)
        if role == "doc":
            docname = _joined(self.docname, target)
            return f"[{label or self.book.titles.get(docname, docname)}]({self.book.url}{docname}.html)"
        if role == "math":
            return f"${text}$"
        if role in ("ref", "term", "abbr"):
            return label or target
        message = f"the notebook has no form for the role {{{role}}}. Use a link, or say it in prose."
        raise ChapterError(self.path, line, message)

    def _cited(self, key: str, line: int) -> str:
        try:
            return self.book.cite(key)
        except KeyError:
            message = f"{key} is not among the references. Add it, or correct the key."
            raise ChapterError(self.path, line, message) from None

    def _definition(self, role: str, label: str, target: str) -> str:
        name = target.lstrip("~")
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = self.book.project.find(".".join(parts[:cut]))
            if module:
                docname = self.book.project.docname(module)
                short = parts[-1] if target.startswith("~") else name
                calls = "()" if role in ("py:func", "py:meth") and not label else ""
                return f"[`{label or short}{calls}`]({self.book.url}{docname}.html#{'.'.join(parts[cut:])})"
        return f"`{label or name}`"


def _joined(docname: str, target: str) -> str:
    """A document's name, relative to another's folder (or from the root, with a slash)."""
    if target.startswith("/"):
        return target[1:]
    parts = docname.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
