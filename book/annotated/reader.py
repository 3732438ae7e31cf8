"""The reader's notebook: a chapter that runs from top to bottom where the package is not."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from annotated.difference import as_markdown, changes
from annotated.digest import versions
from annotated.execute import KERNEL
from annotated.modules import Module, Project, absolute
from annotated.parse import Cell, Chapter, ChapterError, parse
from annotated.standalone import NAMES, Collector

ROLE = re.compile(
    r"(?P<code>(?<!`)(`+)(?!`).*?(?<!`)\2(?!`))|\{(?P<role>[\w:-]+)\}`(?P<text>[^`]*)`",
    re.DOTALL,
)
FENCE = re.compile(r"^(?P<mark>:{3,}|`{3,})\{(?P<name>[\w:-]+)\} *(?P<title>.*)$")


OPTION = re.compile(r"^:(of|cost): ")


@dataclass(frozen=True)
class Book:
    """What a notebook must know of the book around it."""

    title: str
    project: Project
    url: str  # where the site is, with a slash at the end
    install: dict[
        str, str
    ]  # package -> what pip is told, where the notebook's host lacks it
    titles: dict[str, str] = field(default_factory=dict)  # docname -> title
    cite: Callable[[str], str] = str  # key -> "Authors (year)" as Markdown


def reader_notebook(path: Path, book: Book) -> str:
    """The notebook of the chapter in ``path``, as JSON."""
    module = book.project.at(path)
    chapter = parse(module.text, str(path))
    docname = path.relative_to(book.project.root).with_suffix("").as_posix()
    writer = _Writer(chapter, module, docname, book)
    return json.dumps(writer.notebook(), indent=1, ensure_ascii=False) + "\n"


class _Writer:
    def __init__(self, chapter: Chapter, module: Module, docname: str, book: Book):
        self.chapter, self.module, self.docname, self.book = (
            chapter,
            module,
            docname,
            book,
        )
        self.markdown = Plain(docname, str(module.path), book)
        self.cells: list[dict[str, object]] = []

    def notebook(self) -> dict[str, object]:
        collector = self._needed()
        opening = self.chapter.cells[0].rows[0] if self.chapter.cells else None
        if opening and opening.heading:
            self._prose(self.markdown(opening.prose, opening.line))
        page = f"{self.book.url}{self.docname}.html"
        self._prose(
            f"*A chapter of [{self.book.title}]({page}), with nothing to install beforehand.*"
        )
        self._install(collector)
        self._definitions(collector)
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

    def _prose(self, text: str) -> None:
        if text.strip():
            self._add("markdown", text.strip())

    # -- what comes from elsewhere ---------------------------------------------------------

    def _local(self, node: ast.AST) -> Module | None:
        """The module of the project that an import statement names."""
        if isinstance(node, ast.ImportFrom):
            return self.book.project.find(absolute(node, self.module.package))
        if isinstance(node, ast.Import) and any(
            self.book.project.find(a.name) for a in node.names
        ):
            raise ChapterError(
                str(self.module.path),
                node.lineno,
                f"imports a module of the project whole. {NAMES}",
            )
        return None

    def _needed(self) -> Collector:
        collector = Collector(self.book.project)
        for node in ast.walk(self.chapter.tree):
            source = self._local(node)
            if source and isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    own = collector.need(source, alias.name)
                    if alias.asname and alias.asname != own:
                        collector.bundle.aliases[alias.asname] = own
        return collector

    def _install(self, collector: Collector) -> None:
        used = versions(self.module, collector.bundle.modules)
        wanted = [pip for package, pip in self.book.install.items() if package in used]
        if wanted:
            self._add("code", "\n".join(f"%pip install -q {pip}" for pip in wanted))

    def _definitions(self, collector: Collector) -> None:
        bundle = collector.bundle
        if not bundle.definitions:
            return
        links = []
        for module in bundle.modules:
            docname = (
                module.path.relative_to(self.book.project.root)
                .with_suffix("")
                .as_posix()
            )
            title = self.book.titles.get(docname)
            links.append(
                f"[{title}]({self.book.url}{docname}.html)"
                if title
                else f"`{module.name}`"
            )
        self._prose(
            "Definitions from elsewhere in the book, folded here: "
            + ", ".join(links)
            + "."
        )
        source = (
            '# @title Definitions from other chapters { display-mode: "form" }\n'
            + bundle.source()
        )
        self._add("code", source, cellView="form", jupyter={"source_hidden": True})

    # -- the chapter's own cells -----------------------------------------------------------

    def _cell(self, cell: Cell) -> None:
        rows = cell.rows
        opening = (
            rows[0] is self.chapter.cells[0].rows[0] and rows[0].heading is not None
            if rows
            else False
        )
        first = (
            "" if opening or not rows else self.markdown(rows[0].prose, rows[0].line)
        )
        notes = [
            (row, self.markdown(row.prose, row.line)) for row in rows[1:] if row.prose
        ]
        self._prose(
            "\n\n".join(
                [
                    first,
                    *(
                        f"{i}. " + _indented(text)
                        for i, (_, text) in enumerate(notes, 1)
                    ),
                ]
            )
        )
        source = self._source(cell, {id(row): i for i, (row, _) in enumerate(notes, 1)})
        if source:
            self._add("code", source)

    def _source(self, cell: Cell, numbers: dict[int, int]) -> str:
        """The cell's code, its notes as numbers, without imports of what now stands at the top."""
        dropped = {
            n
            for node in cell.nodes
            for statement in ast.walk(node)
            if isinstance(statement, ast.Import | ast.ImportFrom)
            and self._local(statement)
            for n in range(
                statement.lineno, (statement.end_lineno or statement.lineno) + 1
            )
        }
        out: list[str] = []
        last = 0
        for row in cell.rows:
            for i, block in enumerate(row.blocks):
                lines = [n for n in block.lines if n not in dropped]
                if not lines:
                    continue
                between = (
                    n for n in range(last + 1, lines[0]) if n not in self.chapter.aside
                )
                if out and any(not self.chapter.lines[n - 1].strip() for n in between):
                    out.append("")
                if i == 0 and id(row) in numbers:
                    code = self.chapter.line_of(cell, lines[0])
                    out.append(
                        code[: len(code) - len(code.lstrip())]
                        + f"# ({numbers[id(row)]})"
                    )
                out += [self.chapter.line_of(cell, n) for n in lines]
                last = lines[-1]
        return "\n".join(out).strip("\n")


def _indented(text: str) -> str:
    return text.replace("\n", "\n   ").replace("\n   \n", "\n\n")


class Plain:
    """MyST to the Markdown that Colab and JupyterLab read: no role, directive or label is left."""

    def __init__(self, docname: str, path: str, book: Book):
        self.docname, self.path, self.book = docname, path, book

    def __call__(self, text: str, line: int) -> str:
        lines = [
            part for part in text.split("\n") if not re.fullmatch(r"\([\w.-]+\)=", part)
        ]
        return ROLE.sub(
            lambda m: self._role(m, line), "\n".join(self._directives(lines, line))
        )

    def _directives(self, lines: list[str], line: int) -> list[str]:
        """Notes of every kind become quotes with a bold title."""
        out: list[str] = []
        open_marks: list[str] = []
        for k, part in enumerate(lines):
            match = FENCE.match(part)
            if match and match["name"] == "variant":
                of = next(
                    (o[4:].strip() for o in lines[k:] if o.startswith(":of:")), ""
                )
                out += self._variant(of, match["title"], line + k)
                open_marks.append(match["mark"])
            elif open_marks and OPTION.match(part):
                continue
            elif match:
                title = self._title(match["name"], match["title"], line + k)
                open_marks.append(match["mark"])
                out.append("> " * len(open_marks) + title)
                out.append(">" + " >" * (len(open_marks) - 1))
            elif open_marks and part.strip() == open_marks[-1]:
                open_marks.pop()
            else:
                out.append(("> " * len(open_marks) + part).rstrip())
        return out

    def _variant(self, base: str, name: str, line: int) -> list[str]:
        """The difference as a block of code."""
        project = self.book.project
        try:
            found = changes(project, project.at(Path(self.path)), base, name)
        except LookupError as error:
            raise ChapterError(
                self.path, line, f"variant: {error}. Correct the name."
            ) from None
        return as_markdown(found)

    def _title(self, name: str, title: str, line: int) -> str:
        if name == "deviation":
            return f"**Deviation from {title}**"
        if name in (
            "note",
            "tip",
            "hint",
            "important",
            "warning",
            "seealso",
            "admonition",
        ):
            return f"**{title or name.capitalize()}**"
        raise ChapterError(
            self.path,
            line,
            f"the notebook has no form for the directive {{{name}}}. Use a note, or say it in prose.",
        )

    def _role(self, match: re.Match[str], line: int) -> str:
        if match["code"]:
            return match["code"]
        role, text = match["role"], match["text"]
        explicit = re.fullmatch(r"(.*?)\s*<([^<>]+)>", text, re.DOTALL)
        label, target = (explicit[1], explicit[2]) if explicit else ("", text)
        if role.startswith("cite"):
            return ", ".join(self.book.cite(key.strip()) for key in target.split(","))
        if role.startswith("py:"):
            return self._definition(role, label, target)
        if role == "doc":
            docname = _joined(self.docname, target)
            return f"[{label or self.book.titles.get(docname, docname)}]({self.book.url}{docname}.html)"
        if role == "math":
            return f"${text}$"
        if role in ("ref", "term", "abbr"):
            return label or target
        where = line + match.string[: match.start()].count("\n")
        raise ChapterError(
            self.path,
            where,
            f"the notebook has no form for the role {{{role}}}. Use a link, or say it in prose.",
        )

    def _definition(self, role: str, label: str, target: str) -> str:
        name = target.lstrip("~")
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = self.book.project.find(".".join(parts[:cut]))
            if module:
                docname = (
                    module.path.relative_to(self.book.project.root)
                    .with_suffix("")
                    .as_posix()
                )
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
