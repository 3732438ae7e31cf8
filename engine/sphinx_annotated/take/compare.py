"""Which copies and notebooks have what their modules have, found by running both.

Only what a module runs on import is run, in processes of its own (see ``run/described.py``), and only for
chapters that the book executes. The answers are kept by the digest of what a chapter's outputs depend on.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sphinx_annotated.page.build.book import Book
from sphinx_annotated.read.digest import DOCUMENTATION, recorded, words_in
from sphinx_annotated.read.memo import engine
from sphinx_annotated.read.modules import Module, Project, absolute, tops
from sphinx_annotated.read.names import bound_names
from sphinx_annotated.read.syntax import ChapterError, bare, docstring
from sphinx_annotated.run import described
from sphinx_annotated.take.notebook import Calls, library_code
from sphinx_annotated.take.standalone import (
    NEEDED,
    WHOLE,
    Collector,
    Import,
    bound,
    is_local,
    without,
)

LONGEST = 600  # lines of a copy with more than the plain rule takes, that one is glad to paste
NOTEBOOK = ""  # its name among those of a chapter's copies
DIFFERENT = "where this is pasted, {} is another: {}."


@dataclass
class Verdict:
    """How far the copies of a chapter reach, by name, and how others differ from its definitions."""

    reach: dict[str, int] = field(default_factory=dict)
    different: dict[str, list[str]] = field(default_factory=dict)

    def reach_of(self, project: Project, chapter: Module, name: str) -> int:
        """Return how far a copy reaches. Raises ``ChapterError`` if none has what the module has."""
        if name not in self.different:
            return self.reach.get(name, NEEDED)
        module, what, words = self.different[name]
        source = project.find(module) or chapter
        lines = (node.lineno for node in source.run if what in bound_names(node))
        message = DIFFERENT.format(what or name or "this chapter", words)
        raise ChapterError(str(source.path), next(lines, 1), message)


@dataclass(frozen=True)
class Chapter:
    """A chapter whose copies are compared. If it has a notebook, ``returned`` gives that its results."""

    module: Module
    ran: str  # a digest of its code and of what its run left
    returned: Callable[[], Calls] | None = None

    @property
    def key(self) -> str:
        """What the verdict follows from."""
        return f"{engine()} {self.ran} {self.returned is not None}"


@dataclass(frozen=True)
class Copy:
    """Code that is to define some names of a chapter as its module does."""

    page: str
    name: str
    names: list[str]
    text: str
    documented: bool  # whether the code asks for documentation


class Comparison:
    """Compares copies and notebooks with the modules of a book, and keeps the verdicts in a folder."""

    def __init__(self, book: Book, folder: Path, seconds: float):
        self.book, self.project = book, book.project
        self.folder, self.seconds = folder, seconds

    def verdicts(self, chapters: dict[str, Chapter]) -> dict[str, Verdict]:
        """Return the verdict of each chapter, by its page."""
        found = self.kept(chapters)
        ran = self._run({p: chapters[p] for p in chapters.keys() - found.keys()})
        for page, verdict in ran.items():
            self._keep(page, chapters[page].key, verdict)
        return found | ran

    def kept(self, chapters: dict[str, Chapter]) -> dict[str, Verdict]:
        """Return the verdicts that are known already."""
        kept = {page: self._kept(page, each.key) for page, each in chapters.items()}
        return {page: verdict for page, verdict in kept.items() if verdict}

    def _run(self, chapters: dict[str, Chapter]) -> dict[str, Verdict]:
        """Compare what the plain rule takes, and where that differs, more."""
        found = {page: Verdict() for page in sorted(chapters)}
        left = {page: _names(chapters[page]) for page in found}
        for reach in range(NEEDED, WHOLE + 1):
            copies = [
                copy
                for page, names in left.items()
                for name in names
                if (copy := self._copy(page, chapters[page], name, reach))
            ]
            left = {page: [] for page in found}
            for copy, different in self._compared(copies, chapters):
                verdict = found[copy.page]
                if different is None:
                    verdict.different.pop(copy.name, None)
                    verdict.reach[copy.name] = reach
                else:
                    verdict.different.setdefault(copy.name, different)
                    left[copy.page].append(copy.name)
        return found

    def _copy(self, page: str, chapter: Chapter, name: str, reach: int) -> Copy | None:
        """Return a copy, or None if there cannot be one, which pages and notebooks say themselves."""
        module = chapter.module
        try:
            if name == NOTEBOOK:
                return self._notebook(page, chapter, reach)
            collector = Collector(self.project, reach=reach)
            collector.need(module, name)
        except ChapterError:
            return None
        if reach > NEEDED and collector.source().count("\n") > LONGEST:
            return None
        documented = collector.reads_docstrings
        return Copy(page, name, [name], collector.bare(), documented)

    def _notebook(self, page: str, chapter: Chapter, reach: int) -> Copy:
        module = chapter.module
        nodes = (node for node in module.run if not isinstance(node, Import))
        names = dict.fromkeys(name for node in nodes for name in bound_names(node))
        returned = chapter.returned() if chapter.returned else {}
        text = library_code(module, self.book, returned, reach)
        documented = any(words_in(node) & DOCUMENTATION for node in module.tree.body)
        return Copy(page, NOTEBOOK, [*names], _plain(text, documented), documented)

    def _compared(
        self, copies: list[Copy], chapters: dict[str, Chapter]
    ) -> Iterator[tuple[Copy, list[str] | None]]:
        """Yield each copy with its first difference from the module, if there is one."""
        groups: dict[tuple[str, bool], list[Copy]] = {}
        for copy in copies:
            groups.setdefault((copy.page, copy.documented), []).append(copy)
        jobs = [
            self._job(chapters[page].module, documented, group)
            for (page, documented), group in groups.items()
        ]
        for group, answers in zip(groups.values(), self._answers(jobs), strict=True):
            yield from zip(group, answers, strict=True)

    def _job(
        self, module: Module, documented: bool, copies: list[Copy]
    ) -> dict[str, Any]:
        modules = [module, *self.project.dependencies(module)]
        return {
            "module": module.name,
            "own": {
                m.name: [self._imported(m, documented), str(m.path)] for m in modules
            },
            "documented": documented,
            "recorded": [name for m in modules for name in recorded(m, self.project)],
            "copies": [[copy.names, copy.text] for copy in copies],
        }

    def _imported(self, module: Module, documented: bool) -> str:
        """Return what a module runs on import. What functions import from the project is at its end.

        Names from the project are assigned, because Python compiles the use of an imported name otherwise.
        """

        def work() -> str:
            imports = _Imports(module, self.project)
            opening = docstring(module.tree)
            nodes = [imports.visit(deepcopy(node)) for node in module.run]
            body = [*filter(None, [opening]), *nodes, *imports.late]
            return _plain(ast.unparse(ast.Module(body, [])), documented)

        found: str = module.keep(("imported", documented), work)
        return found

    def _answers(self, jobs: list[dict[str, Any]]) -> list[list[list[str] | None]]:
        if not jobs:
            return []
        paths = [
            *map(str, reversed(tops(self.project.root))),
            os.environ.get("PYTHONPATH", ""),
        ]
        settings = {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",  # of macOS; the packages are imported before
        }
        ran = subprocess.run(
            [sys.executable, described.__file__],
            input=json.dumps({"jobs": jobs, "seconds": self.seconds}),
            capture_output=True,
            cwd=self.project.root,
            env={**os.environ, **settings},
            encoding="utf-8",
        )
        if ran.returncode:
            words = f"the comparison ended: {ran.stderr.strip().rpartition(chr(10))[2]}"
            return [[["", "", words]] * len(job["copies"]) for job in jobs]
        answers: list[list[list[str] | None]] = json.loads(ran.stdout)
        return answers

    # -- kept verdicts ---------------------------------------------------------------------

    def _path(self, page: str) -> Path:
        return self.folder / f"{page.replace('/', '.')}.copies.json"

    def _kept(self, page: str, key: str) -> Verdict | None:
        with suppress(OSError, ValueError, TypeError):
            known, verdict = json.loads(self._path(page).read_text(encoding="utf-8"))
            return Verdict(**verdict) if known == key else None
        return None

    def _keep(self, page: str, key: str, verdict: Verdict) -> None:
        with suppress(OSError):  # the next build compares again
            self._path(page).write_text(
                json.dumps([key, asdict(verdict)]), encoding="utf-8"
            )


class _Imports(ast.NodeTransformer):
    """Makes assignments of imports from the project, those of functions ``late``."""

    def __init__(self, module: Module, project: Project):
        self.module = module
        self.local = partial(is_local, project, module)
        self.late: list[ast.stmt] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        imports = [n for n in ast.walk(node) if isinstance(n, ast.ImportFrom)]
        imports = [each for each in imports if self.local(each)]
        names = [name for each in imports for name in bound_names(each)]
        others = [name for each in node.body for name in bound_names(each)]
        if any(others.count(name) > names.count(name) for name in names):
            return node  # whose copy lacks what it imports
        self.late += map(self.visit_ImportFrom, imports)
        return without(node, self.local)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if not self.local(node) or node.names[0].name == "*":
            return node
        base, names = absolute(node, self.module.package), [a.name for a in node.names]
        there = f"__import__({base!r}, fromlist={names})"
        pairs = (f"{bound(a)} = {there}.{a.name}" for a in node.names)
        return ast.parse("if True:\n    " + "\n    ".join(pairs)).body[0]


def _names(chapter: Chapter) -> list[str]:
    """Return the names of a chapter's copies."""
    names = [n.qualname for n, _ in chapter.module.chapter.names() if n.level == 1]
    return [*names, NOTEBOOK] if chapter.returned else names


def _plain(text: str, documented: bool) -> str:
    """Return code as both sides have it: without comments and layout, and docstrings if none is asked for."""
    body = ast.parse(text).body
    return ast.unparse(ast.Module(body, [])) if documented else bare(body)
