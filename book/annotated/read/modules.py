"""Which modules of the project a module imports, and what of them an execution depends on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from annotated.read.parse import (
    Chapter,
    ChapterError,
    bare,
    docstring,
    is_demo,
    parse,
    syntax_tree,
)


@dataclass(frozen=True)
class Module:
    """A file of the project. ``name`` is the dotted name it is imported by."""

    name: str
    path: Path
    text: str

    @property
    def package(self) -> str:
        """What its relative imports start from."""
        return (
            self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]
        )

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree. Raises ``ChapterError`` where Python cannot read it."""
        return syntax_tree(self.text, str(self.path))

    @cached_property
    def chapter(self) -> Chapter:
        """It in cells and rows. Raises ``ChapterError`` where Python cannot read it."""
        return parse(self.text, str(self.path))

    @cached_property
    def library(self) -> list[ast.stmt]:
        """What an import of it runs: everything but its docstring and its demos."""
        opening = docstring(self.tree)
        body = self.tree.body
        return [node for node in body if node is not opening and not is_demo(node)]

    @cached_property
    def code(self) -> str:
        """``library`` without comments, docstrings or layout."""
        return bare(self.library)


class Project:
    """The modules below one folder, read once."""

    def __init__(self, root: Path):
        self.root = root
        self._read: dict[Path, Module] = {}
        self._found: dict[str, Module | None] = {}
        self._imported: dict[str, list[Module]] = {}

    def at(self, path: Path) -> Module:
        """The module in a file."""
        if path not in self._read:
            parts = path.relative_to(self.root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self._read[path] = Module(name, path, text_of(path))
        return self._read[path]

    def docname(self, module: Module) -> str:
        """What Sphinx calls its page."""
        return module.path.relative_to(self.root).with_suffix("").as_posix()

    def find(self, name: str) -> Module | None:
        """The module of that dotted name, if it is one of the project's."""
        if name not in self._found:
            base = self.root.joinpath(*name.split("."))
            paths = (base.with_suffix(".py"), base / "__init__.py") if name else ()
            there = next((path for path in paths if path.is_file()), None)
            self._found[name] = self.at(there) if there else None
        return self._found[name]

    def owns(self, name: str) -> bool:
        """Does the name start with a module or package of the project?"""
        top = self.find(name.partition(".")[0])
        return top is not None or self.find(name) is not None

    def parents(self, name: str) -> Iterator[Module]:
        """The packages whose ``__init__`` runs when the module is imported."""
        while "." in name:
            name = name.rpartition(".")[0]
            package = self.find(name)
            if package:
                yield package

    def imported(self, module: Module, body: list[ast.stmt]) -> list[Module]:
        """The project's modules that these statements of ``module`` import, packages included."""
        found: dict[str, Module] = {}
        for statement in body:
            for node in ast.walk(statement):
                for name in imported_names(node, module.package):
                    local = self.find(name)
                    if local:
                        found |= {m.name: m for m in (local, *self.parents(name))}
        return list(found.values())

    def dependencies(self, chapter: Module) -> list[Module]:
        """Every module of the project that runs when the chapter does, but for the chapter itself.

        The demos of an imported module do not run, so neither they nor what they import count.
        """
        found: dict[str, Module] = {}
        waiting = [
            *self.imported(chapter, chapter.tree.body),
            *self.parents(chapter.name),
        ]
        while waiting:
            module = waiting.pop()
            if module.name not in found and module.name != chapter.name:
                found[module.name] = module
                if module.name not in self._imported:
                    imported = self.imported(module, module.library)
                    self._imported[module.name] = imported
                waiting += self._imported[module.name]
        return [found[name] for name in sorted(found)]


def text_of(path: Path) -> str:
    """A file's text, with line ends as Python counts them. Raises ``ChapterError`` if not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ChapterError(
            str(path), line, "this is not UTF-8. Save the file as UTF-8."
        ) from None


def imported_names(node: ast.AST, package: str) -> list[str]:
    """Dotted names that an import statement may load, most specific first."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = absolute(node, package)
        return [*(f"{base}.{alias.name}" for alias in node.names), base]
    return []


def absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that ``from … import`` names, relative dots resolved."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module else base
