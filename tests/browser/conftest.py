"""What the browser's tests share: the built site, served, and a Chromium that looks at it.

Environment: ``BROWSER_TESTS=required`` makes a missing Chromium a failure; ``BROWSER_SITE``
names a site that was built already, to test it as it is.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from built_book import ROOT, Site, Visit, Visitor, contents, settle
from chromium import launched
from filelock import FileLock
from playwright.sync_api import Browser, BrowserContext, Error, sync_playwright

BUILT = Path(os.environ.get("BROWSER_SITE", ROOT / "_build" / "html"))
NO_BROWSER = "NO CHROMIUM, SO NO BROWSER TEST RAN: install chromium, or let pip's do it"

PAGES = contents()
CHAPTERS = [name for name in PAGES if (ROOT / f"{name}.py").is_file()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a ``page`` runs for every page, for a ``chapter`` for every chapter."""
    for name, every in (("page", PAGES), ("chapter", CHAPTERS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, every, ids=lambda page: page.split("/")[-1])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if any(NO_BROWSER in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(NO_BROWSER, red=True, bold=True)


# -- the site ------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The book, built if it is older than its sources, on a port of this machine."""
    if "BROWSER_SITE" not in os.environ:
        BUILT.parent.mkdir(exist_ok=True)
        with FileLock(BUILT.parent / ".browser-tests.lock"):
            if outdated():
                build()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(BUILT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Site(BUILT, f"http://127.0.0.1:{server.server_port}", PAGES, CHAPTERS)
    server.shutdown()


def outdated() -> bool:
    written = [path.stat().st_mtime for path in BUILT.rglob("*") if path.is_file()]
    left_out = ("__pycache__", "node_modules")
    sources = [
        path
        for folder in ("labml_primer", "book", "experiments", "benchmarks", "notebooks")
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


@pytest.fixture
def visit(chromium: Browser, site: Site) -> Iterator[Visitor]:
    """Opens a page of the site in a browser that knows nothing yet.

    ``visit("book/pages/index", width=390, theme="dark", scripts=False)``
    """
    contexts: list[BrowserContext] = []

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
        opened = Visit(context.new_page())
        name, _, fragment = page.partition("#")
        opened.page.goto(site.url(name) + (f"#{fragment}" if fragment else ""))
        if scripts and name in PAGES:
            settle(opened.page)
        return opened

    yield open_page
    for context in contexts:
        context.close()
