"""A walk-through's package as a book, as its own site shows it. The package is fetched."""

import ast
import re
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from builds import ENGINE
from locked import folder_of
from small_books import Built, Shelf

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
LOCK = ENGINE / "tests" / "walk_through.lock"
PAGES = 65
ANCHOR = re.compile(r'<a id="(\w+)"></a>')
# What a module has and its page does not show: targets of links, tags, keys and titles of front matter (which
# headings have, too), what makes a string raw, and the line above a demonstration.
UNSEEN = re.compile(
    r'(?m)\]\([^)\n]*\)|</?\w[^>\n]*>|^(title|redirect): .*|^summary:|\br(?=""")|^if __name__ == .*'
)


@pytest.fixture(scope="module")
def built(shelf: Callable[..., Shelf]) -> Built:
    try:
        package = folder_of(LOCK, "walk-through", ["labml-nn"]) / "labml_nn"
    except pytest.fail.Exception as error:
        pytest.skip(f"the package is not here: {error}")
    files = {
        f"labml_nn/{path.relative_to(package)}": path.read_text(encoding="utf-8")
        for path in [*package.glob("transformers/**/*.py"), package / "__init__.py"]
    }
    index = "# Book\n\n```{toctree}\n:glob:\n\nlabml_nn/transformers/**\n```\n"
    book = shelf({**files, "index.md": index})
    book.edit("conf.py", ', "**/__init__.py"', ', "labml_nn/__init__.py"')
    book.configure(
        'annotated_execute = []\nannotated_chapters = ["labml_nn/transformers/**"]\n'
    )
    return book.well_built()


@pytest.fixture(scope="module")
def pages(built: Built) -> dict[Path, str]:
    """The pages, by the modules that they are of."""
    site = built.root / "_build" / "html"
    return {
        path: (site / path.relative_to(built.root))
        .with_suffix(".html")
        .read_text("utf-8")
        for path in sorted((built.root / "labml_nn" / "transformers").rglob("*.py"))
    }


def test_every_module_is_a_page(pages: dict[Path, str]) -> None:
    assert len(pages) == PAGES
    assert all('class="sbs__sheet' in page or "<h1>" in page for page in pages.values())


def test_every_link_between_its_pages_leads_somewhere(
    built: Built, pages: dict[Path, str]
) -> None:
    site = built.root / "_build" / "html"
    dead, between = [], 0
    for path, page in pages.items():
        here = (site / path.relative_to(built.root)).with_suffix(".html")
        for href in re.findall(r'<a [^>]*?href="([^":]*)"', page):
            target, _, place = unquote(unescape(href)).partition("#")
            there = (here.parent / target).resolve() if target else here
            between += target.endswith(".html") and there != here
            text = there.read_text("utf-8") if there.suffix == ".html" else ""
            if not there.is_file() or (place and f'id="{place}"' not in text):
                dead.append((here.name, href))
    assert dead == [] and between > 250


def test_every_place_that_has_a_name_is_there_once(pages: dict[Path, str]) -> None:
    count = 0
    for path, page in pages.items():
        ids = Counter(re.findall(r'\bid="([^"]*)"', page))
        named = ANCHOR.findall(path.read_text("utf-8"))
        count += len(named)
        assert all(ids[name] == 1 for name in named), path
        assert "&lt;a id=" not in page
    assert count == 15


def test_title_and_summary_of_front_matter_are_the_pages(
    pages: dict[Path, str],
) -> None:
    count = 0
    for path, page in pages.items():
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        front = re.match(r"---\ntitle: (.*)\nsummary:(?: >\n)?((?: .*\n)+)", text)
        if front is None:
            continue
        count += 1
        summary = " ".join(re.findall(r"\w+", front[2]))
        assert summary in shown(page), path
        assert "summary: &gt;" not in page and "title: " not in page
    assert count == 62


def test_every_formula_is_one(pages: dict[Path, str]) -> None:
    for path, page in pages.items():
        code = r"(?s)<pre.*?</pre>|<code.*?</code>|<(span|div) class=\"(amsmath )?math.*?</\1>"
        assert "$" not in re.sub(code, "", main_of(page)), path


def test_no_word_is_lost(pages: dict[Path, str]) -> None:
    count = 0
    for path, page in pages.items():
        text = UNSEEN.sub(" ", path.read_text("utf-8"))
        words = Counter(re.findall(r"\w+", text))
        count += words.total()
        assert not words - Counter(shown(main_of(page)).split()), path
    assert count > 48_000


def test_images_of_other_sites_are_links(pages: dict[Path, str]) -> None:
    badges = sum(
        page.count("Open In Colab (colab.research.google.com)")
        for page in pages.values()
    )
    assert badges == 13 and not any('<img src="http' in page for page in pages.values())


def main_of(page: str) -> str:
    """The page without what is around its text."""
    return page.partition('role="main">')[2].partition('"sphinxsidebar"')[0]


def shown(page: str) -> str:
    """The words of a page, in their order."""
    return " ".join(re.findall(r"\w+", unescape(re.sub(r"<[^>]+>", "", page))))
