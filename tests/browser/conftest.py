"""What the browser's tests share: the built site, served, and a Chromium that looks at it.

A page is visited once for each width and theme, and measured; tests read what was measured
from ``look``, ``bare`` and ``use``. What needs a visit of its own asks for ``visit``.

Environment: ``BROWSER_TESTS=required`` makes a missing Chromium a failure.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from built_book import PAGES, Site, built, page_by_page
from chromium import launched
from measures import SHIFTS, Looker, Measures, Reader, measured, used, without_scripts
from playwright.sync_api import Browser, Error, sync_playwright
from visits import Visit, Visitor, served, settle

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


# -- what was measured in one visit ----------------------------------------------------------


@pytest.fixture(scope="session")
def look(chromium: Browser, site: Site) -> Looker:
    """``look("book/pages/index", 390, "dark")``: all that is measured on a page."""

    @cache
    def once(page: str, width: int, theme: str) -> Measures:
        with visits(chromium, site) as visit:
            return measured(visit(page, width, theme))

    return once


@pytest.fixture(scope="session")
def bare(chromium: Browser, site: Site) -> Reader:
    """``bare("book/pages/index")``: what is measured on a page without scripts."""

    @cache
    def once(page: str) -> Measures:
        with visits(chromium, site) as visit:
            return without_scripts(visit(page, scripts=False))

    return once


@pytest.fixture(scope="session")
def use(chromium: Browser, site: Site) -> Reader:
    """``use("labml_primer/primer/primer")``: what a chapter gives whoever copies from it."""

    @cache
    def once(chapter: str) -> Measures:
        with visits(chromium, site) as visit:
            return used(visit(chapter))

    return once
