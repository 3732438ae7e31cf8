"""The book away from its server: the archive opened from disk, and the PDF."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import offline
import pdf
import pytest
from built_book import PAGES, Site, cases
from playwright.sync_api import Browser, expect
from pypdf import PdfReader
from visits import Visit

Open = Callable[[str], Visit]
ATTENTION = "labml_primer/transformer/attention"
NOTATION = "book/pages/notation"


@pytest.fixture(scope="session")
def unpacked(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader has who unpacked the archive."""
    folder = tmp_path_factory.mktemp("archive")
    offline.archive(site.folder, folder / "book.zip")
    with ZipFile(folder / "book.zip") as zipped:
        zipped.extractall(folder)
    return folder / "book"


@pytest.fixture
def from_disk(chromium: Browser, unpacked: Path) -> Iterator[Open]:
    """Opens a file of the archive. The browser must not complain."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(60_000)
    visits: list[Visit] = []

    def open_file(name: str) -> Visit:
        visits.append(Visit(context.new_page()))
        visits[-1].page.goto((unpacked / name).as_uri())
        return visits[-1]

    yield open_file
    for visit in visits:
        assert visit.said == []
        # What a page still loads when one leaves it is aborted.
        assert [each for each in visit.failed if "ERR_ABORTED" not in each] == []
        assert all(url.startswith(unpacked.as_uri()) for url in visit.asked)
    context.close()


OTHERS = ["genindex", "search"]


@cases("page", [*PAGES, *OTHERS], daily=[ATTENTION, NOTATION, *OTHERS])
def test_every_page_opens_from_disk(from_disk: Open, page: str) -> None:
    opened = from_disk(f"{page}.html").page
    waits = (
        "document.fonts.ready.then(() => [...document.fonts].map(each => each.display))"
    )
    assert "optional" not in opened.evaluate(waits)
    assert opened.evaluate("document.fonts.check('17px \"Source Serif 4\"')")
    expect(opened.locator("h1")).to_be_visible()


def test_one_goes_on_from_page_to_page_on_disk(from_disk: Open, site: Site) -> None:
    page = from_disk("index.html").page  # the welcome page itself
    for name in site.pages[1:3]:
        page.locator(".pager [rel=next]").click()
        page.wait_for_url(f"**/{name}.html")


def test_the_chosen_theme_is_kept_on_disk(from_disk: Open, site: Site) -> None:
    page = from_disk(f"{site.pages[1]}.html").page
    page.locator("#theme-toggle").click()
    page.locator(".pager [rel=next]").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_search_finds_pages_on_disk(from_disk: Open) -> None:
    page = from_disk(f"{ATTENTION}.html").page
    page.locator(".topbar input[type=search]").fill("softmax")
    page.keyboard.press("Enter")
    page.locator("#search-results a").first.press("Enter")
    page.wait_for_url(re.compile(r"/(labml_primer|book)/.*\.html"))


# -- the PDF --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def paper(site: Site, chromium: Browser) -> PdfReader:
    """Two pages of the book, printed as the whole of it is."""
    config = {
        "title": "The title",
        "author": "The author",
        "repository": {"url": "https://github.com/a/b"},
    }
    title = pdf.title_page(site.folder, site.pages[0], config)
    content = pdf.pdf(site.folder, [ATTENTION, NOTATION], title, chromium)
    return PdfReader(BytesIO(content))


@cache
def words(paper: PdfReader, number: int) -> str:
    """The text of a page of paper; the first is 1."""
    return " ".join(paper.pages[number - 1].extract_text().split())


def test_the_first_page_of_the_pdf_says_what_it_is(paper: PdfReader) -> None:
    first = words(paper, 1)
    for part in ("The title", "The author", "https://a.github.io/b/"):
        assert part in first


def test_the_contents_name_the_pages_that_things_are_on(paper: PdfReader) -> None:
    lines = paper.pages[1].extract_text().splitlines()
    entries = [
        match for line in lines if (match := re.match(r"(\D.*\D)\s?(\d+)$", line))
    ]
    assert len(entries) > 10
    for entry in entries:
        assert " ".join(entry[1].split()) in words(paper, int(entry[2]))


def test_pages_of_the_pdf_are_numbered(paper: PdfReader) -> None:
    for number in range(2, len(paper.pages) + 1):
        assert words(paper, number).split()[0] == str(number)  # the foot comes first


def test_links_inside_the_pdf_lead_to_its_pages(paper: PdfReader) -> None:
    links = [
        link.get_object()
        for page in paper.pages
        for link in page.get("/Annots", ())
        if link.get_object()["/Subtype"] == "/Link"
    ]
    inside = [str(link["/Dest"]) for link in links if "/Dest" in link]
    outside = [str(link["/A"]["/URI"]) for link in links if "/A" in link]
    assert len(inside) > 20
    assert set(inside) <= set(paper.named_destinations)
    assert all(address.startswith("http") for address in outside)


def test_the_pdf_has_bookmarks_for_chapters_and_sections(paper: PdfReader) -> None:
    def titles(outline: list[Any]) -> Iterator[str]:
        for entry in outline:
            yield from titles(entry) if isinstance(entry, list) else [entry.title]

    found = {" ".join(title.split()) for title in titles(paper.outline)}
    assert {"Contents", "Multi-head attention", "By hand", "Notation"} <= found
