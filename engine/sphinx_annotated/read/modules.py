"""The project's modules, what each imports, and which code an execution depends on."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.manners.styles import (
    MARKDOWN,
    in_markdown,
    manner_of,
    style_of,
    styled,
)
from sphinx_annotated.read.memo import Memo, digest_of
from sphinx_annotated.read.parse import chapter_of
from sphinx_annotated.read.syntax import (
    ChapterError,
    bare,
    docstring,
    is_demo,
    is_for_types,
    syntax_tree,
)
from sphinx_annotated.read.titles import titled

T = TypeVar("T")
LINES = 100_000  # of parsed modules that are kept in memory: 250 MB
FROM_SRC = re.compile(rb"^\s*(from|import) +src\b", re.MULTILINE)
PARSED = ("tree", "chapter", "library", "run", "code", "_kept")


@dataclass(frozen=True)
class Module:
    """A file of the project. ``name`` is the dotted name for importing it.

    ``styles`` are those in which the book's prose is written, by pattern.
    """

    name: str
    path: Path
    text: str
    docname: str = ""
    styles: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return (
            self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]
        )

    @cached_property
    def key(self) -> str:
        """A digest of all that follows from the module itself."""
        styles = (f"{pattern} {style}" for pattern, style in self.styles.items())
        return digest_of([self.name, self.path.name, self.text, *styles])

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree. Raises ``ChapterError`` if it is not valid Python."""
        return syntax_tree(self.text, str(self.path))

    @cached_property
    def chapter(self) -> Chapter:
        """Its cells and rows. Raises ``ChapterError`` if it is not valid Python."""
        name = self.name.rpartition(".")[2] or self.path.stem
        style = style_of(self.docname, self.tree, str(self.path), self.styles)
        manner = manner_of(self.text, self.tree, str(self.path), style)
        chapter = in_markdown(chapter_of(self.text, self.tree, str(self.path), manner))
        return styled(titled(chapter, name, style == MARKDOWN), style)

    def keep(self, key: tuple[object, ...], work: Callable[[], Any]) -> Any:
        """Return what ``work`` returned first, for as long as the parsed module is kept."""
        kept = self._kept
        if key not in kept:
            kept[key] = work()
        return kept[key]

    @cached_property
    def _kept(self) -> dict[tuple[object, ...], Any]:
        return {}

    def forget(self) -> None:
        """Forget all but the text, from which the rest follows again."""
        for name in PARSED:
            self.__dict__.pop(name, None)

    @property
    def is_parsed(self) -> bool:
        """Whether its syntax tree is in memory."""
        return "tree" in self.__dict__

    @cached_property
    def library(self) -> list[ast.stmt]:
        """The statements that run on import: all except its docstring and demos."""
        opening = docstring(self.tree)
        body = self.tree.body
        return [node for node in body if node is not opening and not is_demo(node)]

    @cached_property
    def run(self) -> list[ast.stmt]:
        """``library`` without what only a type checker reads."""
        return [node for node in self.library if not is_for_types(node)]

    @cached_property
    def code(self) -> str:
        """``run`` without comments, docstrings and layout."""
        return bare(self.run)


class Project:
    """The modules below one folder. Each is read once.

    ``styles`` are those in which their prose is written, by pattern. By default, all is Markdown. ``memo``
    has what earlier builds found out, and ``before`` modules that they read, for where the text is the same.
    """

    def __init__(
        self,
        root: Path,
        styles: Mapping[str, str] | None = None,
        memo: Memo | None = None,
        before: Project | None = None,
    ):
        self.root = root
        self.styles = styles or {}
        self.memo = memo or Memo()
        self._before = before.read if before else {}
        self.read: dict[Path, Module] = {}
        self._seen: dict[tuple[Path, Callable[[Path], str]], str] = {}
        self._found: dict[str, Module | None] = {}
        self._imported: dict[str, list[Module]] = {}
        self._lines = 0  # of all modules

    @cached_property
    def tops(self) -> list[Path]:
        """The folders that modules are imported from."""
        return tops(self.root)

    def at(self, path: Path) -> Module:
        """Return the module in a file."""
        if path not in self.read:
            docname = path.relative_to(self.root).with_suffix("").as_posix()
            top = next(each for each in self.tops if path.is_relative_to(each))
            parts = path.relative_to(top).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            now = Module(name, path, text_of(path), docname, self.styles)
            self._lines += now.text.count("\n")
            before = self._before.get(path)
            self.read[path] = before if before is not None and before == now else now
        module = self.read[path] = self.read.pop(path)  # the last one asked for
        return module

    def trim(self) -> None:
        """Forget the parsed form of the modules that were asked for longest ago, if there is much of it."""
        if self._lines <= LINES:
            return
        lines = 0
        for path, module in reversed(self.read.items()):
            if module is self._before.get(path):
                continue  # it is another's
            if module.is_parsed and lines > LINES:
                module.forget()
            elif module.is_parsed:
                lines += module.text.count("\n")

    def once(
        self, module: Module, name: str, work: Callable[[], T], given: str = ""
    ) -> T:
        """Return what ``work`` returns. It follows from the module and what is ``given``.

        It must be what JSON has, because it is kept for later builds.
        """
        return self.memo.once(module.docname, name, f"{module.key}{given}", work)

    def seen(self, path: Path, look: Callable[[Path], str]) -> str:
        """Return what ``look`` returns for a file. It is looked at once."""
        if (path, look) not in self._seen:
            self._seen[path, look] = look(path)
        return self._seen[path, look]

    def docname(self, module: Module) -> str:
        """Return Sphinx's name for the module's page."""
        return module.path.relative_to(self.root).with_suffix("").as_posix()

    def find(self, name: str) -> Module | None:
        """Return the module of that dotted name, if the project has it."""
        if name not in self._found:
            bases = [top.joinpath(*name.split(".")) for top in self.tops if name]
            paths = [
                p for b in bases for p in (b.with_suffix(".py"), b / "__init__.py")
            ]
            there = next((path for path in paths if path.is_file()), None)
            self._found[name] = self.at(there) if there else None
        return self._found[name]

    def owns(self, name: str) -> bool:
        """Return whether the name starts with a module or package of the project."""
        top = self.find(name.partition(".")[0])
        return top is not None or self.find(name) is not None

    def parents(self, name: str) -> Iterator[Module]:
        """Yield the packages whose ``__init__`` runs when the module is imported."""
        while "." in name:
            name = name.rpartition(".")[0]
            package = self.find(name)
            if package:
                yield package

    def imported(self, module: Module, demos: bool) -> list[Module]:
        """Return the project's modules that a module imports, including packages.

        With its ``demos``, or what it imports when it is imported itself.
        """

        def names() -> list[str]:
            body = module.tree.body if demos else module.run
            package = module.package
            found = (
                name
                for statement in body
                for node in ast.walk(statement)
                for name in imported_names(node, package)
            )
            return list(dict.fromkeys(found))

        found: dict[str, Module] = {}
        for name in self.once(module, f"imports {demos}", names):
            local = self.find(name)
            if local:
                found |= {m.name: m for m in (local, *self.parents(name))}
        return list(found.values())

    def dependencies(self, chapter: Module) -> list[Module]:
        """Return every other module of the project that runs when the chapter runs.

        Demos of imported modules do not run, nor does what only a type checker reads: they and
        their imports do not count.
        """
        found: dict[str, Module] = {}
        waiting = [
            *self.imported(chapter, demos=True),
            *self.parents(chapter.name),
        ]
        while waiting:
            module = waiting.pop()
            if module.name not in found and module.name != chapter.name:
                found[module.name] = module
                if module.name not in self._imported:
                    imported = self.imported(module, demos=False)
                    self._imported[module.name] = imported
                waiting += self._imported[module.name]
        return [found[name] for name in sorted(found)]


def tops(root: Path) -> list[Path]:
    """Return the folders that a project's modules are imported from: its root, and before it ``src``.

    That is a folder of modules like any other if it is a package, or if one of them imports from ``src``.
    """
    src = root / "src"
    plain = src.is_dir() and not (src / "__init__.py").exists()
    if plain and not any(
        FROM_SRC.search(path.read_bytes()) for path in src.rglob("*.py")
    ):
        return [src, root]
    return [root]


def text_of(path: Path) -> str:
    """Return a file's text. Raises ``ChapterError`` if it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ChapterError(
            str(path), line, "this is not UTF-8. Save the file as UTF-8."
        ) from None


def imported_names(node: ast.AST, package: str) -> list[str]:
    """Return the dotted names that an import may load, most specific first.

    ``import_module("lib.x")`` is an import too. One whose name is computed is known only to a run.
    """
    if isinstance(node, ast.Call):
        name = _named_in_call(node, package)
        return [name] if name else []
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = absolute(node, package)
        return [*(f"{base}.{alias.name}" for alias in node.names), base]
    return []


def _named_in_call(node: ast.Call, package: str) -> str:
    """Return the module that ``import_module`` or ``__import__`` loads, if it is a literal."""
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    words = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]
    if called not in ("import_module", "__import__") or not words:
        return ""
    name = getattr(words[0], "value", None)
    if not isinstance(name, str):
        return ""
    level = len(name) - len(name.lstrip("."))
    anchor = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "package")]
    if level and anchor and isinstance(anchor[0], ast.Constant):
        package = str(anchor[0].value)
    return absolute(ast.ImportFrom(name[level:] or None, [], level), package)


def absolute(node: ast.ImportFrom, package: str) -> str:
    """Return the module named by ``from … import``, with relative dots resolved."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module else base
