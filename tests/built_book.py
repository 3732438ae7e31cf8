"""The built book, as the tests of its files and those in a browser have it.

Environment: ``BROWSER_SITE`` names a site that was built already, to test it as it is.
"""

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Collection
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from bs4 import BeautifulSoup
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[1]
BUILT = Path(os.environ.get("BROWSER_SITE", ROOT / "_build" / "html"))


def contents() -> list[str]:
    """The book's pages in order, as ``_toc.yml`` names them."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *files]


PAGES = contents()
CHAPTERS = [name for name in PAGES if (ROOT / f"{name}.py").is_file()]


# -- the cases of a test --------------------------------------------------------------------


def short(page: str) -> str:
    return page.split("/")[-1]


def nightly(*values: object) -> object:
    """A case that only the nightly tests have."""
    return pytest.param(*values, marks=pytest.mark.nightly)


def cases(
    name: str, every: list[str], daily: Collection[str] | None = None
) -> pytest.MarkDecorator:
    """A test runs for every page; for one that is not among the ``daily``, only nightly."""
    params = [
        page if daily is None or page in daily else nightly(page) for page in every
    ]
    return pytest.mark.parametrize(name, params, ids=short)


every_page = cases("page", PAGES)
every_chapter = cases("chapter", CHAPTERS)


def page_of(item: pytest.Item) -> int:
    """Where in the book the page of a case is; what has none comes first."""
    given = getattr(item, "callspec", None)
    params = given.params if given else {}
    page = params.get("page") or params.get("chapter")
    return PAGES.index(page) if page in PAGES else -1


def page_by_page(items: list[pytest.Item], folder: Path) -> list[pytest.Item]:
    """Sort a folder's tests in place by page, so that a worker reads or visits a page once."""
    inside = f"{folder}{os.sep}"
    places = [i for i, item in enumerate(items) if str(item.path).startswith(inside)]
    ours = sorted((items[i] for i in places), key=page_of)
    for place, item in zip(places, ours, strict=True):
        items[place] = item
    return ours


# -- the site -------------------------------------------------------------------------------


def built() -> Path:
    """The folder of the site, built if it is older than its sources."""
    if "BROWSER_SITE" not in os.environ:
        BUILT.parent.mkdir(exist_ok=True)
        with FileLock(BUILT.parent / ".browser-tests.lock"):
            if outdated():
                build()
    return BUILT


def outdated() -> bool:
    written = [path.stat().st_mtime for path in BUILT.rglob("*") if path.is_file()]
    left_out = ("__pycache__", "node_modules")
    sources = [
        path
        for folder in (
            *("labml_primer", "book", "engine/sphinx_annotated", "experiments"),
            *("benchmarks", "notebooks"),
        )
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not any(name in path.parts for name in left_out)
    ]
    sources += [ROOT / "_config.yml", ROOT / "_toc.yml"]
    return not written or max(path.stat().st_mtime for path in sources) > max(written)


def build() -> None:
    command = [sys.executable, str(ROOT / "book" / "tools" / "build.py")]
    run = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if run.returncode:
        pytest.fail(f"the book was not built:\n{(run.stdout + run.stderr)[-3000:]}")


# Parsing a page takes fifty times as long.
ID = re.compile(r'<[a-zA-Z][^<>]*?\sid="([^"]*)"')


@dataclass
class Site:
    """The built site, and the address it is served at, if it is."""

    folder: Path
    address: str = ""
    pages: list[str] = field(default_factory=lambda: PAGES)
    chapters: list[str] = field(default_factory=lambda: CHAPTERS)
    soups: dict[str, BeautifulSoup] = field(default_factory=dict)
    named: dict[str, list[str]] = field(default_factory=dict)

    @property
    def editions(self) -> list[str]:
        """The languages that the site has besides English, by their folders."""
        found = ROOT.glob("book/locale/*/language.toml")
        codes = sorted(path.parent.name for path in found)
        return [code for code in codes if (self.folder / code).is_dir()]

    def url(self, page: str) -> str:
        return f"{self.address}/{page}.html"

    def text(self, page: str) -> str:
        return (self.folder / f"{page}.html").read_text(encoding="utf-8")

    def soup(self, page: str) -> BeautifulSoup:
        """A page's HTML, parsed once."""
        if page not in self.soups:
            self.soups[page] = BeautifulSoup(self.text(page), "html.parser")
        return self.soups[page]

    def ids(self, page: str) -> list[str]:
        """The names on a page that a link can point at."""
        if page not in self.named:
            self.named[page] = [unescape(name) for name in ID.findall(self.text(page))]
        return self.named[page]

    def module(self, chapter: str) -> str:
        """The text of the module that a chapter was made of."""
        return (self.folder / "_sources" / f"{chapter}.py").read_text(encoding="utf-8")


# -- a chapter's module ---------------------------------------------------------------------


def code_lines(text: str) -> set[int]:
    """Lines that are neither blank, nor comment, nor docstring, nor the head of a demo."""
    lines = text.split("\n")
    kept = {n for n, line in enumerate(lines, 1) if line.strip()}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        alone = not token.line[: token.start[1]].strip()
        if token.type == tokenize.COMMENT and alone:
            kept.discard(token.start[0])
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, holders) and body and ast.get_docstring(node) is not None:
            kept -= set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            kept.discard(node.lineno)
    return kept


def definitions(text: str) -> dict[str, int]:
    """Every definition's dotted name, with its first line."""
    found: dict[str, int] = {}

    def look(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                name = f"{outer}.{child.name}".strip(".")
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found.setdefault(name, first)
            look(child, name)

    look(ast.parse(text), "")
    return found
