"""What an execution depends on, as one short string.

The same digest, the same outputs: the chapter's code without comments and docstrings, every
module of the project that it imports, the data files these declare, the versions of Python and
of the packages, and how figures are drawn.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from functools import lru_cache

from annotated.modules import Module, Project, imported_names, library
from annotated.parse import Chapter, ChapterError, bare


def digest(chapter: Chapter, module: Module, project: Project, extra: str = "") -> str:
    """The key under which the outputs of ``chapter`` are kept."""
    own = [f"{cell.kind}\n{bare(cell.nodes)}" for cell in chapter.cells if cell.nodes]
    others = project.dependencies(module)
    parts = [platform.python_version(), extra, module.name, *own]
    for other in others:
        parts += [other.name, bare(library(other.tree))]
    for each in (module, *others):
        parts += [f"{path} {content}" for path, content in _data(each, project)]
    parts += [f"{name} {version}" for name, version in versions(module, others).items()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def versions(module: Module, others: list[Module]) -> dict[str, str]:
    """Versions of the packages that a chapter and its modules import, or name in a string."""
    found: dict[str, str] = {}
    for each, body in [(module, module.tree.body), *((m, library(m.tree)) for m in others)]:
        for name in _mentioned(body, each.package):
            version = _version(name)
            if version:
                found[name] = version
    return dict(sorted(found.items()))


def _mentioned(body: list[ast.stmt], package: str) -> Iterator[str]:
    """First parts of imported names, and strings that might name a package (``files("corpus")``)."""
    for statement in body:
        for node in ast.walk(statement):
            yield from (name.partition(".")[0] for name in imported_names(node, package))
            if isinstance(node, ast.Call):
                for value in node.args[:1]:
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        yield value.value


@lru_cache(maxsize=1024)
def _version(name: str) -> str | None:
    if name in sys.stdlib_module_names or not name.replace("-", "_").isidentifier():
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        distributions = _distributions().get(name)
        return importlib.metadata.version(distributions[0]) if distributions else None


@lru_cache(maxsize=1)
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())


def _data(module: Module, project: Project) -> Iterator[tuple[str, str]]:
    """Files that a module declares in ``__data__ = ("folder/file.json",)``, relative to the root."""
    for node in library(module.tree):
        if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "__data__":
            continue
        for name in ast.literal_eval(node.value):
            path = project.root / name
            if not path.is_file():
                raise ChapterError(
                    str(module.path), node.lineno, f"__data__ names {name}, which is not there. Make it, or correct the path."
                )
            yield name, hashlib.sha256(path.read_bytes()).hexdigest()
