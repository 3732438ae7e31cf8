"""The built book, and a page of it that is open in the browser."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from bs4 import BeautifulSoup
from playwright.sync_api import ConsoleMessage, Page, Request, Response

ROOT = Path(__file__).resolve().parents[2]


def contents() -> list[str]:
    """The book's pages in order, as ``_toc.yml`` names them."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *files]


def settle(page: Page) -> None:
    """Waits until a page has its fonts, and its script has fitted the formulas to them."""
    page.evaluate(
        """() => {  // as many frames as its script waits for, and one more
             const framed = () => new Promise(
               done => requestAnimationFrame(() => setTimeout(done)));
             return framed().then(() => document.fonts.ready).then(framed).then(framed);
           }"""
    )


@dataclass
class Site:
    """The built site, and the address it is served at."""

    folder: Path
    address: str
    pages: list[str]
    chapters: list[str]
    soups: dict[str, BeautifulSoup] = field(default_factory=dict)
    named: dict[str, list[str]] = field(default_factory=dict)

    def url(self, page: str) -> str:
        return f"{self.address}/{page}.html"

    def soup(self, page: str) -> BeautifulSoup:
        """A page's HTML, parsed once."""
        if page not in self.soups:
            text = (self.folder / f"{page}.html").read_text(encoding="utf-8")
            self.soups[page] = BeautifulSoup(text, "html.parser")
        return self.soups[page]

    def ids(self, page: str) -> list[str]:
        """The names on a page that a link can point at."""
        if page not in self.named:
            found = self.soup(page).select("[id]")
            self.named[page] = [str(element["id"]) for element in found]
        return self.named[page]

    def module(self, chapter: str) -> str:
        """The text of the module that a chapter was made of."""
        return (self.folder / "_sources" / f"{chapter}.py").read_text(encoding="utf-8")


@dataclass
class Visit:
    """An open page, with what the browser said and asked for since."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfailed", self._lost)
        self.page.on("response", self._answered)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("warning", "error"):
            self.said.append(message.text)

    def _lost(self, request: Request) -> None:
        self.failed.append(f"{request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.failed.append(f"{response.url}: {response.status}")


Visitor = Callable[..., Visit]
