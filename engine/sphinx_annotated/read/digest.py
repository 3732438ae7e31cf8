"""The digest of everything that a chapter's outputs depend on.

It covers the chapter's code, the expressions in its prose, every module of the project that it
imports by name, the data files these declare, the versions of Python and of the packages, and
the files that run in every kernel. Comments count only if the code asks for source text, and
docstrings only if it asks for documentation. A chapter runs again only if its digest changes,
or if a module changed that its last run imported: see ``imported``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.metadata
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from sphinx_annotated.read.expressions import expressions
from sphinx_annotated.read.modules import Module, Project, imported_names
from sphinx_annotated.read.names import bound_names
from sphinx_annotated.read.parse import Chapter, ChapterError, bare

# Names by which code asks for documentation, and for source text.
DOCUMENTATION = {"__doc__", "help", "getdoc", "pydoc", "doctest"}
SOURCE = {"getsource", "getsourcelines", "getcomments", "findsource", "linecache"}


def digest(chapter: Chapter, module: Module, project: Project, extra: str = "") -> str:
    """Return the key under which the outputs of ``chapter`` are stored."""
    own = [
        f"{cell.kind}{_quiet(chapter.source(cell, nodes))}\n{bare(nodes)}"
        for cell, nodes in chapter.pieces()
    ]
    others = project.dependencies(module)
    asked = sorted(expressions(chapter, str(module.path)))
    parts = [platform.python_version(), extra, module.name, *own, *asked]
    for other in others:
        parts += [other.name, other.code]
    for each in (module, *others):
        parts += [f"{name} {_content(path)}" for name, path in data(each, project)]
    parts += _visible_prose([module, *others])
    parts += [f"{name} {version}" for name, version in versions(module, others).items()]
    return _hash(parts)


def imported(paths: Iterable[str], chapter: Path, project: Project) -> dict[str, str]:
    """Return a digest for each module that a chapter's run imported, by its path from the root.

    A module that no longer exists has none.
    """
    found = {}
    for name in paths:
        path = project.root / name
        if path.is_file() and path != chapter:
            module = project.at(path)
            files = [_content(each) for _, each in data(module, project)]
            prose = _visible_prose([project.at(chapter), module])[1:]
            found[name] = _hash([module.code, *files, *prose])
    return found


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _visible_prose(modules: list[Module]) -> list[str]:
    """Return the docstrings or the texts of modules if the code of one asks for them."""
    asked = _asked(modules[0], demos=True)
    asked = asked.union(*(_asked(module, demos=False) for module in modules[1:]))
    if asked & SOURCE:
        return [module.text for module in modules]
    if asked & DOCUMENTATION:
        return [ast.unparse(module.tree) for module in modules]
    return []


@lru_cache(maxsize=512)
def _asked(module: Module, demos: bool) -> frozenset[str]:
    """Return the names in a module's code, also those in strings: ``getattr(f, "__doc__")``."""
    found: set[str] = set()
    for statement in module.tree.body if demos else module.library:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.alias):
                found.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return frozenset(found)


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


@lru_cache(maxsize=512)
def recorded(module: Module) -> tuple[str, ...]:
    """Return the functions declared in ``__recorded__ = ("name",)``.

    What they return is kept when a chapter runs, and its notebook has it instead of them.
    """
    for node in module.library:
        if "__recorded__" in bound_names(node):
            names = _literal(node)
            defined = {n.name for n in module.library if isinstance(n, ast.FunctionDef)}
            if names is not None and set(names) <= defined:
                return names
            message = "__recorded__ must be a literal tuple of names of this module's functions."
            raise ChapterError(str(module.path), node.lineno, message)
    return ()


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _declared(module: Module, node: ast.stmt) -> tuple[str, ...]:
    names = _literal(node)
    if names is not None:
        return names
    message = (
        "__data__ must be a literal tuple of paths, relative to the project's root."
    )
    raise ChapterError(str(module.path), node.lineno, message)


def _literal(node: ast.stmt) -> tuple[str, ...] | None:
    """Return the tuple of strings that a statement assigns, if it is one."""
    try:
        names = ast.literal_eval(getattr(node, "value", None) or "None")
    except ValueError:
        return None
    if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
        return names
    return None
