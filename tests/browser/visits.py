"""A page of the built book that is open in the browser, and what can be asked of any."""

import gzip
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from built_book import ROOT, Site
from playwright.sync_api import ConsoleMessage, Page, Request, Response, expect

AXE = ROOT / "book" / "node_modules" / "axe-core" / "axe.min.js"


def settle(page: Page) -> None:
    """Waits until a page has its fonts, and its script has fitted the formulas to them."""
    page.evaluate(
        """() => {  // as many frames as its script waits for, and one more
             const framed = () => new Promise(
               done => requestAnimationFrame(() => setTimeout(done)));
             return framed().then(() => document.fonts.ready).then(framed).then(framed);
           }"""
    )


def answers(page: Page, words: str) -> list[str]:
    """The addresses that the search field offers for these words, best first."""
    field, hits = page.locator(".search input"), page.locator("#hits")
    field.fill("")
    expect(hits).to_be_hidden()
    field.fill(words)
    expect(hits).to_be_visible(timeout=30_000)
    return [
        hit.get_attribute("href") or "" for hit in hits.locator("[role=option]").all()
    ]


def missed(page: Page, wanted: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """The look-ups whose place is not among the first three. Without a place, nothing is to be found."""
    first = {words: answers(page, words)[:3] for words in wanted}
    return {
        words: first[words]
        for words, places in wanted.items()
        if not any(url.endswith(places) for url in first[words])
        and (places or first[words])
    }


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


class Patient(ThreadingHTTPServer):
    """Says nothing of a browser that left before its answer: Python 3.11 parses the lines of a traceback,
    and a test that parses a module at the same time would fail for it."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder is served on this machine."""
    handler = partial(Quiet, directory=str(folder))
    server = Patient(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@dataclass
class Visit:
    """An open page, with what the browser said and asked for since."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    ended: int = 0

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfinished", self._ended)
        self.page.on("requestfailed", self._lost)
        self.page.on("response", self._answered)

    def _console(self, message: ConsoleMessage) -> None:
        # Chromium warns of a font that a page waits for if the machine is slow to draw it.
        late = "preloaded using link preload but not used" in message.text
        if message.type in ("warning", "error") and not late:
            self.said.append(message.text)

    def _ended(self, request: Request) -> None:
        self.ended += 1

    def _lost(self, request: Request) -> None:
        self.ended += 1
        self.failed.append(f"{request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.failed.append(f"{response.url}: {response.status}")

    def quiet(self) -> None:
        """Waits until nothing that was asked for is on its way, and the page is laid out."""
        for _ in range(1000):
            settle(self.page)
            if self.ended >= len(self.asked):
                return
        raise TimeoutError(f"an answer is missing: {self.asked}")


Visitor = Callable[..., Visit]
Reading = Callable[..., Page]

# Runs before the page: notes which folds it comes with open.
FOLDS = """addEventListener("DOMContentLoaded", () => {
  window.openAtFirst = new Set(document.querySelectorAll("details[open]"));
})"""

# Undoes what a reader did: opened, typed, followed, marked, focused, scrolled, remembered.
UNDO = """() => {
  localStorage.clear();
  document.documentElement.dataset.theme = "light";
  for (const fold of document.querySelectorAll("details")) fold.open = openAtFirst.has(fold);
  for (const field of document.querySelectorAll("input[type=search]")) {
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  document.activeElement?.blur();
  getSelection().removeAllRanges();
  if (location.hash) location.hash = "";
  scrollTo(0, 0);
}"""


def undo(page: Page, address: str) -> None:
    """Brings a page back to how it is at first; loads it if it is another, or none yet."""
    if page.url.partition("#")[0] == address:
        page.keyboard.press("Escape")
        page.mouse.move(0, 0)
        page.evaluate(UNDO)
    else:
        page.goto(address)
        settle(page)


def in_theme(page: Page, theme: str) -> None:
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)


def resized(page: Page, width: int, height: int = 900) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function("width => innerWidth === width", arg=width)
    settle(page)


def barriers(
    page: Page, rules: list[str] | None = None, within: str = "html"
) -> list[str]:
    """What axe-core finds wrong in a part of a page, with the first place of each."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(
        """([within, options]) => axe.run(document.querySelectorAll(within), options)
             .then(found => found.violations)""",
        [within, options],
    )
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]


# -- weight ---------------------------------------------------------------------------------

FIGURE = re.compile(rb'<svg class="plot[-"].*?</svg>', re.DOTALL)
PACKED = (".woff2", ".png", ".wasm")  # served as they are


@cache
def weight(path: Path) -> int:
    """Bytes of a file as GitHub Pages would send it; a page's figures do not count."""
    body = path.read_bytes()
    if path.suffix in PACKED:
        return len(body)
    return len(gzip.compress(FIGURE.sub(b"", body), 6))


def weights(site: Site, asked: list[str]) -> dict[str, int]:
    """The bytes of each file of the site that was asked for."""
    paths = [unquote(urlsplit(url).path).lstrip("/") for url in asked]
    return {path: weight(site.folder / path) for path in paths}
