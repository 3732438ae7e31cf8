"""The book as one PDF: its pages become one document, which Chromium prints.

It is printed twice. The page numbers in the contents come from the first print.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from address import online
from babel.dates import format_date
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser
from pypdf import PdfReader
from sphinx_annotated.page.build.repository import Repository

STYLE = Path(__file__).with_name("pdf.css")
UNPRINTED = (
    "script, template, .page-tools, .glance, .headerlink, .downloads, .bibtex, "
    ".visually-hidden"
)


@dataclass(frozen=True)
class Title:
    """The text of the title page, and the language of the document with its own words."""

    title: str
    summary: str
    author: str
    address: str
    date: str
    language: str = "en"
    contents: str = "Contents"
    formulas: str = "Formulas require MathML. This should be 2 to the power of 3:"

    @property
    def tag(self) -> str:
        """The language, as documents name it."""
        return self.language.replace("_", "-")


@dataclass(frozen=True)
class Page:
    """A page of the site, prepared for the document."""

    name: str  # in the document
    part: str
    number: str
    title: str
    sections: list[tuple[str, str]]  # name in the document, title as HTML
    html: str
    styles: list[str]


def title_page(
    site: Path, welcome: str, config: dict[str, Any], language: str = "en"
) -> Title:
    """Return the title page's text, from the configuration and the welcome page."""
    text = (site / f"{welcome}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(text, "html.parser")
    summary = soup.select_one('meta[name="description"]')
    return Title(
        title=config["title"],
        summary=str(summary["content"]) if summary else "",
        author=config["author"],
        address=Repository(**online(config["repository"], os.environ)).pages,
        date=format_date(format="long", locale=language)
        if language != "en"
        else time.strftime("%d %B %Y").lstrip("0"),
        language=language,
    )


def pdf(site: Path, docnames: list[str], book: Title, browser: Browser) -> bytes:
    """Print these pages of a site, with a title page and a table of contents."""
    pages = read(site, docnames)
    blank = printed(site, document(book, pages, {}), browser)
    return printed(site, document(book, pages, places(blank)), browser)


def places(content: bytes) -> dict[str, int]:
    """Return the page number of each anchor in a PDF."""
    reader = PdfReader(BytesIO(content))
    found = {}
    for name, destination in reader.named_destinations.items():
        number = reader.get_destination_page_number(destination)
        if number is not None:
            found[unquote(name.removeprefix("/"))] = number + 1
    return found


def printed(site: Path, html: str, browser: Browser) -> bytes:
    """Print a document that is located in the site's folder."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=site, prefix=".", suffix=".html"
    ) as file:
        file.write(html)
        file.flush()
        page = browser.new_page(color_scheme="light")
        page.goto(Path(file.name).as_uri())
        page.evaluate("document.fonts.ready.then(() => true)")
        content = page.pdf(prefer_css_page_size=True, outline=True, tagged=True)
        page.close()
        return content


# -- pages become parts of one document ----------------------------------------------------


def read(site: Path, docnames: list[str]) -> list[Page]:
    """Read pages of the site. Their anchors and links become those of the document."""
    trees = {docname: parsed(site, docname) for docname in docnames}
    anchors = {
        name for docname in docnames for name in anchors_of(docname, trees[docname])
    }
    return [prepared(docname, trees[docname], anchors) for docname in docnames]


def parsed(site: Path, docname: str) -> BeautifulSoup:
    """Return a page of the site, without what is not printed."""
    text = (site / f"{docname}.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(text, "html.parser")
    for element in soup.select(f"main :is({UNPRINTED})"):
        element.decompose()
    return soup


def anchors_of(docname: str, soup: BeautifulSoup) -> set[str]:
    """Return what a link can lead to, as it is called in the document: a page and its places."""
    ids = {str(element["id"]) for element in _selected(soup, "main [id]")}
    return {_name(docname)} | {_name(docname, anchor) for anchor in ids}


def prepared(docname: str, soup: BeautifulSoup, anchors: set[str]) -> Page:
    """Prepare a page for a document that has these anchors."""
    main = soup.select_one("main")
    title = main.select_one("h1") if main else None
    assert main and title, f"{docname} has no title"
    for element in main.select("details"):
        element["open"] = ""
    _rename(main, docname, anchors)
    part, number = part_and_number(soup)
    return Page(
        name=_name(docname),
        part=part,
        number=number,
        title=title.get_text().strip(),
        sections=[
            (anchor(heading), heading.decode_contents())
            for heading in main.select("h2")
            if anchor(heading)
        ],
        html=f'<div class="{_layout(main)}">{main}</div>',
        styles=[
            urljoin(f"{docname}.html", str(link["href"]))
            for link in soup.select('link[rel="stylesheet"]')
        ],
    )


def part_and_number(soup: BeautifulSoup) -> tuple[str, str]:
    """Return the part of the book that a page is in, and its number, as the list of chapters has them."""
    here = soup.select_one("#chapnav [aria-current=page]")
    part = here.find_previous("p", class_="chapnav__part") if here else None
    number = here.select_one(".num") if here else None
    return part.get_text() if part else "", number.get_text() if number else ""


def _layout(main: Tag) -> str:
    """Return the theme's class for two columns or one."""
    return " ".join(main.parent.get_attribute_list("class")) if main.parent else ""


def _selected(within: Tag, selector: str) -> list[Tag]:
    """Return elements of a page. Of a drawing these are the links alone: its names are its own."""
    drawn = {id(part) for part in within.select("svg :not(a)")}
    return [each for each in within.select(selector) if id(each) not in drawn]


def _rename(main: Tag, docname: str, anchors: set[str]) -> None:
    """Prefix anchors with their page, lead links to them, and remove dead links."""
    for element in _selected(main, "[id], [href], [src]"):
        if "id" in element.attrs:
            element["id"] = _name(docname, str(element["id"]))
        if "src" in element.attrs:
            element["src"] = urljoin(f"{docname}.html", str(element["src"]))
        if "href" in element.attrs:
            link = _link(docname, str(element["href"]), anchors)
            if link and "lno" not in element.get_attribute_list("class"):
                element["href"] = link
            else:
                del element["href"]


def _name(docname: str, fragment: str = "") -> str:
    return ":".join(filter(None, (docname.replace("/", "."), fragment)))


def _link(docname: str, link: str, anchors: set[str]) -> str:
    """Return a link's target in the document, or nothing if it has none there."""
    target, fragment = urldefrag(urljoin(f"{docname}.html", link))
    if urlsplit(target).scheme:
        return link
    name = _name(target.removesuffix(".html"), unquote(fragment))
    return f"#{name}" if name in anchors else ""


def anchor(heading: Tag) -> str:
    """Return a heading's anchor: its own, or that of its section."""
    holder = heading if "id" in heading.attrs else heading.find_parent(id=True)
    return str(holder["id"]) if holder else ""


def document(book: Title, pages: list[Page], numbers: dict[str, int]) -> str:
    """Return one HTML page: title, contents with known page numbers, and all pages."""
    style = STYLE.read_text(encoding="utf-8")
    styles = dict.fromkeys(link for page in pages for link in page.styles)
    sheets = "".join(f'<link rel="stylesheet" href="{escape(s)}">' for s in styles)
    parts = "".join(
        f'<section class="bound" id="{page.name}">{page.html}</section>'
        for page in pages
    )
    return f"""<!doctype html>
<html lang="{book.tag}" data-theme="light">
<head><meta charset="utf-8"><title>{escape(book.title)}</title>{sheets}<style>{style}</style></head>
<body>
<section class="cover"><h1>{escape(book.title)}</h1><p>{escape(book.summary)}</p>
<p class="cover__foot">{escape(book.author)}, {escape(book.date)}<br>
<a href="{escape(book.address)}">{escape(book.address)}</a></p></section>
<nav class="contents"><h1>{escape(book.contents)}</h1>{"".join(_contents(pages, numbers))}</nav>
{parts}
</body></html>
"""


def _contents(pages: list[Page], numbers: dict[str, int]) -> Iterator[str]:
    part = ""
    for page in pages:
        if page.part != part:
            part = page.part
            yield f'<p class="contents__part">{escape(part)}</p>'
        title = f'<span class="num">{page.number}</span>{escape(page.title)}'
        yield _entry("contents__page", page.name, title, numbers)
        for name, section in page.sections:
            yield _entry("contents__section", name, section, numbers)


def _entry(kind: str, name: str, title: str, numbers: dict[str, int]) -> str:
    number = numbers.get(name, "")
    return (
        f'<p class="{kind}"><a href="#{quote(name, safe=":")}">{title}</a>'
        f'<i class="leader"></i><span class="num">{number}</span></p>'
    )
