"""What the browser's tests share: the built site, served, and a Chromium that looks at it.

A page is visited once for each width and theme, and measured; tests read what was measured
from ``look``, ``bare`` and ``use``. What needs a visit of its own asks for ``visit``.

Environment: ``BROWSER_TESTS=required`` makes a missing Chromium a failure.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from built_book import PAGES, Site, built, page_by_page
from chromium import launched
from measures import (
    KINDS,
    SHIFTS,
    Looker,
    Measures,
    Reader,
    measured,
    used,
    without_scripts,
)
from playwright.sync_api import Browser, Error, Page, sync_playwright
from visits import FOLDS, Reading, Visit, Visitor, served, settle, undo

NO_BROWSER = "NO CHROMIUM, SO NO BROWSER TEST RAN: install chromium, or let pip's do it"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in page_by_page(items, Path(__file__).parent):
        item.add_marker(pytest.mark.browser)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if any(NO_BROWSER in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(NO_BROWSER, red=True, bold=True)


# -- the site ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The book, built if it is older than its sources, on a port of this machine."""
    folder = built()
    with served(folder) as address:
        yield Site(folder, address)


# -- the browser ---------------------------------------------------------------------------


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser a worker."""
    with sync_playwright() as playwright:
        try:
            browser = launched(playwright)
        except (Error, OSError, subprocess.SubprocessError) as error:
            if os.environ.get("BROWSER_TESTS") == "required":
                pytest.fail(f"{NO_BROWSER}: {error}")
            pytest.skip(NO_BROWSER)
        yield browser
        browser.close()


@contextmanager
def visits(chromium: Browser, site: Site) -> Iterator[Visitor]:
    """Opens pages of the site, each in a browser that knows nothing yet, and closes them."""
    contexts = []

    def open_page(
        page: str, width: int = 1400, theme: str = "light", scripts: bool = True
    ) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        context.set_default_timeout(60_000)
        contexts.append(context)
        context.add_init_script(SHIFTS)
        opened = Visit(context.new_page())
        name, _, fragment = page.partition("#")
        opened.page.goto(site.url(name) + (f"#{fragment}" if fragment else ""))
        if scripts and name in PAGES:
            settle(opened.page)
        return opened

    try:
        yield open_page
    finally:
        for context in contexts:
            context.close()


@pytest.fixture
def visit(chromium: Browser, site: Site) -> Iterator[Visitor]:
    """``visit("book/pages/index", width=390, theme="dark", scripts=False)``"""
    with visits(chromium, site) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def read(chromium: Browser, site: Site) -> Iterator[dict[tuple[str, int], Page]]:
    """The pages that tests of one file have opened and share."""
    pages: dict[tuple[str, int], Page] = {}
    yield pages
    for page in pages.values():
        page.context.close()


@pytest.fixture
def reading(
    chromium: Browser,
    site: Site,
    read: dict[tuple[str, int], Page],
    request: pytest.FixtureRequest,
) -> Iterator[Reading]:
    """``reading("book/pages/index", 390)``: a page that other tests have used too, as it was at first.

    It may use the clipboard. A test that changes more than a reader can, or needs a page as it comes, asks
    for ``visit``.
    """

    def page_of(name: str, width: int = 1400) -> Page:
        page = read.get((name, width))
        if page is None:
            context = chromium.new_context(
                viewport={"width": width, "height": 900},
                permissions=["clipboard-read", "clipboard-write"],
                reduced_motion="reduce",
            )
            context.set_default_timeout(60_000)
            context.add_init_script(FOLDS)
            page = read[name, width] = context.new_page()
        undo(page, site.url(name))
        return page

    failed = request.session.testsfailed
    yield page_of
    if request.session.testsfailed > failed:  # what such a test left is unknown
        for page in read.values():
            page.context.close()
        read.clear()


# -- what was measured in one visit ----------------------------------------------------------


def once(visit: Callable[..., Measures]) -> Callable[..., Measures]:
    """Remember what a visit measured, or the error it ended with: no test tries it again."""

    @cache
    def ended(*asked: Any) -> Measures | Error | TimeoutError:
        try:
            return visit(*asked)
        except (Error, TimeoutError) as error:
            return error

    def remembered(*asked: Any) -> Measures:
        found = ended(*asked)
        if isinstance(found, Exception):
            raise found
        return found

    return remembered


@pytest.fixture(scope="session")
def look(chromium: Browser, site: Site, pytestconfig: pytest.Config) -> Looker:
    """``look("book/pages/index", 390, "dark")``: all that is measured on a page."""
    by_day = "not nightly" in pytestconfig.getoption("markexpr")

    @once
    def visited(page: str, width: int, theme: str) -> Measures:
        with visits(chromium, site) as visit:
            full = page in KINDS or not by_day
            return measured(visit(page, width, theme), page, full)

    return visited


@pytest.fixture(scope="session")
def bare(chromium: Browser, site: Site) -> Reader:
    """``bare("book/pages/index")``: what is measured on a page without scripts."""

    @once
    def visited(page: str) -> Measures:
        with visits(chromium, site) as visit:
            return without_scripts(visit(page, scripts=False))

    return visited


@pytest.fixture(scope="session")
def use(chromium: Browser, site: Site) -> Reader:
    """``use("labml_primer/primer/primer")``: what a chapter gives whoever copies from it."""

    @once
    def visited(chapter: str) -> Measures:
        with visits(chromium, site) as visit:
            return used(visit(chapter))

    return visited
