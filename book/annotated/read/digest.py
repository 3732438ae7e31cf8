"""The digest of everything that a chapter's outputs depend on.

It covers the chapter's code without comments and docstrings, the expressions in its prose,
every module of the project that it imports, the data files these declare, the versions of
Python and of the packages, and the files that run in every kernel. A chapter runs again only
if its digest changes.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from annotated.read.expressions import expressions
from annotated.read.modules import Module, Project, imported_names
from annotated.read.names import bound_names
from annotated.read.parse import Chapter, ChapterError, bare


def digest(chapter: Chapter, module: Module, project: Project, extra: str = "") -> str:
    """Return the key under which the outputs of ``chapter`` are stored."""
    own = [
        f"{cell.kind}{_quiet(chapter.source(cell))}\n{bare(cell.nodes)}"
        for cell in chapter.cells
        if cell.nodes
    ]
    others = project.dependencies(module)
    asked = sorted(expressions(chapter, str(module.path)))
    parts = [platform.python_version(), extra, module.name, *own, *asked]
    for other in others:
        parts += [other.name, other.code]
    for each in (module, *others):
        parts += [f"{name} {_content(path)}" for name, path in data(each, project)]
    parts += [f"{name} {version}" for name, version in versions(module, others).items()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _quiet(source: str) -> str:
    """Return the final semicolon, which hides a cell's value."""
    return ";" if source.rstrip().endswith(";") else ""


def versions(module: Module, others: list[Module]) -> dict[str, str]:
    """Return the versions of packages that a chapter and its modules import or mention."""
    names = _mentioned(module, demos=True)
    names = names.union(*(_mentioned(other, demos=False) for other in others))
    found = {name: _version(name) for name in sorted(names)}
    return {name: version for name, version in found.items() if version}


@lru_cache(maxsize=512)
def _mentioned(module: Module, demos: bool) -> frozenset[str]:
    """Top-level imported names, and strings that may name a package: ``files("corpus")``."""
    found: set[str] = set()
    for statement in module.tree.body if demos else module.library:
        for node in ast.walk(statement):
            names = imported_names(node, module.package)
            found.update(name.partition(".")[0] for name in names)
            if isinstance(node, ast.Call):
                for value in node.args[:1]:
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        found.add(value.value)
    return frozenset(found)


@lru_cache(maxsize=1024)
def _version(name: str) -> str | None:
    if name in sys.stdlib_module_names or not name.replace("-", "_").isidentifier():
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        if importlib.machinery.PathFinder.find_spec(name) is None:
            return None  # an ordinary word, or a module of the project
        distributions = _distributions().get(name)
        return importlib.metadata.version(distributions[0]) if distributions else None


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


def data(module: Module, project: Project) -> Iterator[tuple[str, Path]]:
    """Yield the files declared in ``__data__ = ("folder/file.json",)``, from the root."""
    for node in module.library:
        if "__data__" in bound_names(node):
            for name in _declared(module, node):
                path = project.root / name
                if not path.is_file():
                    message = f"__data__ names {name}, which does not exist. Create it, or correct the path."
                    raise ChapterError(str(module.path), node.lineno, message)
                yield name, path


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _declared(module: Module, node: ast.stmt) -> tuple[str, ...]:
    try:
        names = ast.literal_eval(getattr(node, "value", None) or "None")
    except ValueError:
        names = None
    if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
        return names
    message = (
        "__data__ must be a literal tuple of paths, relative to the project's root."
    )
    raise ChapterError(str(module.path), node.lineno, message)
