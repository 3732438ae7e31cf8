"""The digest of everything that a chapter's outputs depend on.

It covers the chapter's code, the expressions in its prose, every module of the project that it
imports by name, the data files these declare, the versions of Python and of the packages, and
the files that run in every kernel. Comments count only if the code asks for source text or lines, and
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
from typing import Any

from sphinx_annotated.read.expressions import expressions
from sphinx_annotated.read.memo import digest_of
from sphinx_annotated.read.modules import Module, Project, imported_names
from sphinx_annotated.read.names import bound_names
from sphinx_annotated.read.syntax import ChapterError, bare

# Names by which code asks for documentation, and for source text or places in it.
DOCUMENTATION = {"__doc__", "help", "getdoc", "pydoc", "doctest", "unittest"}
SOURCE = {
    *("getsource", "getsourcelines", "getcomments", "findsource", "linecache"),
    *("traceback", "format_exc", "print_exc", "format_exception"),
    *("f_lineno", "tb_lineno", "co_firstlineno", "currentframe", "_getframe"),
}
NO_DATA = "__data__ must be a literal tuple of paths, relative to the project's root."
NOT_RECORDED = (
    "__recorded__ must be a literal tuple of names of this module's functions."
)


def digest(module: Module, project: Project, extra: str = "") -> str:
    """Return the key under which the outputs of a chapter are stored."""
    others = project.dependencies(module)
    files = [
        f"{name} {project.seen(path, content)}"
        for each in (module, *others)
        for name, path in data(each, project)
    ]
    used = versions(module, others, project)
    packages = [f"{name} {version}" for name, version in used.items()]

    def work() -> str:
        chapter = module.chapter
        own = [
            f"{cell.kind}{' '.join(['', *cell.ways])}{_quiet(chapter.source(cell, nodes))}\n{bare(nodes)}"
            for cell, nodes in chapter.pieces()
        ]
        asked = sorted(expressions(chapter, str(module.path)))
        parts = [platform.python_version(), extra, module.name, *own, *asked]
        for other in others:
            parts += [other.name, other.code]
        prose = _visible_prose([module, *others], project)
        return digest_of([*parts, *files, *prose, *packages])

    keys = (other.key for other in others)
    given = digest_of([extra, *keys, *files, *packages])
    return project.once(module, "digest", work, given)


def imported(paths: Iterable[str], chapter: Path, project: Project) -> dict[str, str]:
    """Return a digest for each module that a chapter's run imported, by its path from the root.

    A module that no longer exists has none.
    """
    found = {}
    for name in paths:
        path = project.root / name
        if path.is_file() and path != chapter:
            found[name] = _imported(project.at(path), project.at(chapter), project)
    return found


def _imported(module: Module, chapter: Module, project: Project) -> str:
    files = [project.seen(each, content) for _, each in data(module, project)]
    asked = _seen([chapter, module], project)

    def work() -> str:
        prose = _visible_prose([chapter, module], project)[1:]
        return digest_of([module.code, *files, *prose])

    return project.once(module, f"imported {asked}", work, digest_of(files))


def _visible_prose(modules: list[Module], project: Project) -> list[str]:
    """Return the docstrings or the texts of modules if the code of one asks for them."""
    seen = _seen(modules, project)
    if seen == "source":
        return [module.text for module in modules]
    if seen == "documentation":
        return [ast.unparse(module.tree) for module in modules]
    return []


def _seen(modules: list[Module], project: Project) -> str:
    """Return what of their prose the code of a chapter, the first of the modules, and of others asks for."""
    asked = set(_asked(modules[0], True, project))
    asked = asked.union(*(_asked(each, False, project) for each in modules[1:]))
    return "source" if asked & SOURCE else "documentation" if asked else ""


def _asked(module: Module, demos: bool, project: Project) -> list[str]:
    """Return the names by which a module asks for prose, also those in strings: ``getattr(f, "__doc__")``."""

    def work() -> list[str]:
        body = module.tree.body if demos else module.library
        return sorted(set().union(*map(words_in, body)) & (SOURCE | DOCUMENTATION))

    return project.once(module, f"asked {demos}", work)


def words_in(statement: ast.stmt) -> set[str]:
    """Return the names, attributes and strings in a statement."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def _quiet(source: str) -> str:
    """Return the final semicolon, which hides a cell's value."""
    return ";" if source.rstrip().endswith(";") else ""


def versions(module: Module, others: list[Module], project: Project) -> dict[str, str]:
    """Return the versions of packages that a chapter and its modules import or mention.

    The project's own modules have none, even if it is installed: their code is known.
    """
    names = set(_mentioned(module, True, project))
    names = names.union(*(_mentioned(other, False, project) for other in others))
    found = {name: _version(name) for name in sorted(names) if not project.owns(name)}
    return {name: version for name, version in found.items() if version}


def _mentioned(module: Module, demos: bool, project: Project) -> list[str]:
    """Top-level imported names, and strings that may name a package: ``files("corpus")``."""

    def work() -> list[str]:
        found: set[str] = set()
        package = module.package
        for statement in module.tree.body if demos else module.library:
            for node in ast.walk(statement):
                names = imported_names(node, package)
                found.update(name.partition(".")[0] for name in names)
                if isinstance(node, ast.Call):
                    for value in node.args[:1]:
                        text = getattr(value, "value", None)
                        if isinstance(value, ast.Constant) and isinstance(text, str):
                            found.add(text)
        return sorted(filter(_may_be_package, found))

    return project.once(module, f"mentioned {demos}", work)


def _may_be_package(name: str) -> bool:
    known = name in sys.stdlib_module_names
    return not known and name.replace("-", "_").isidentifier()


@lru_cache(maxsize=1024)
def _version(name: str) -> str | None:
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

    def work() -> list[list[Any]]:
        found: list[list[Any]] = []
        for node in module.library:
            if "__data__" in bound_names(node):
                names = _literal(node)
                if names is None:
                    raise ChapterError(str(module.path), node.lineno, NO_DATA)
                found += [[name, node.lineno] for name in names]
        return found

    for name, line in project.once(module, "data", work):
        path = project.root / name
        if not path.is_file():
            message = f"__data__ names {name}, which does not exist. Create it, or correct the path."
            raise ChapterError(str(module.path), line, message)
        yield name, path


def recorded(module: Module, project: Project) -> list[str]:
    """Return the functions declared in ``__recorded__ = ("name",)``.

    What they return is kept when a chapter runs, and its notebook has it instead of them.
    """

    def work() -> list[str]:
        defined = {n.name for n in module.library if isinstance(n, ast.FunctionDef)}
        for node in module.library:
            if "__recorded__" in bound_names(node):
                names = _literal(node)
                if names is None or not defined.issuperset(names):
                    raise ChapterError(str(module.path), node.lineno, NOT_RECORDED)
                return names
        return []

    return project.once(module, "recorded", work)


def content(path: Path) -> str:
    """Return a digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _literal(node: ast.stmt) -> list[str] | None:
    """Return the strings in the tuple that a statement assigns, if it is one."""
    try:
        names = ast.literal_eval(getattr(node, "value", None) or "None")
    except ValueError:
        return None
    if isinstance(names, tuple) and all(isinstance(name, str) for name in names):
        return list(names)
    return None
