"""The book on an e-reader: what is in the EPUB, page by page."""

import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urldefrag, urlsplit
from xml.etree import ElementTree
from zipfile import ZipFile

import pdf
import pytest
from bs4 import BeautifulSoup, Tag
from built_book import PAGES, ROOT, Site
from epub import epub
from playwright.sync_api import Browser

ATTENTION = "labml_primer/transformer/attention"
NOTATION = "book/pages/notation"
INDIVIDUALS = "book/pages/individuals"  # its form and its plot need a script
CHECK = Path("/usr/share/java/epubcheck.jar")  # of Debian's package
EDITIONS = [
    "",
    *sorted(path.name for path in (ROOT / "book/locale").iterdir() if path.is_dir()),
]
SITE_ONLY = ["script", "form", "button", "input", "select", "details", "template"]
Files = dict[str, bytes]


def bound(
    site: Site, pages: list[str], chromium: Browser, language: str = "en"
) -> bytes:
    config = {
        "title": "A title & more",
        "author": "The author",
        "repository": {"url": "https://github.com/a/b"},
    }
    folder = "" if language == "en" else f"{language}/"
    title = pdf.title_page(site.folder, f"{folder}{PAGES[0]}", config, language)
    return epub(site.folder, [f"{folder}{page}" for page in pages], title, chromium)


@pytest.fixture(scope="session")
def files(site: Site, chromium: Browser) -> Files:
    """Three pages of the book, bound as the whole of it is."""
    content = bound(site, [ATTENTION, NOTATION, INDIVIDUALS], chromium)
    with ZipFile(BytesIO(content)) as zipped:
        assert zipped.infolist()[0].filename == "mimetype"
        return {name: zipped.read(name) for name in zipped.namelist()}


def pages_of(files: Files) -> dict[str, ElementTree.Element]:
    """The pages of XHTML; one that is not well formed is an error."""
    return {
        name: ElementTree.fromstring(content)
        for name, content in files.items()
        if name.endswith(".xhtml")
    }


def page_of(files: Files, page: str) -> Tag:
    text = files[f"book/{page.replace('/', '.')}.xhtml"].decode()
    main = BeautifulSoup(text, "html.parser").select_one("main")
    assert main
    return main


def words(page: Tag) -> list[str]:
    """The text of paragraphs, without formulas."""
    for formula in page.select(".katex, math"):
        formula.decompose()
    return [each.get_text() for each in page.select("section p")]


def values(page: ElementTree.Element, *names: str) -> Iterator[str]:
    for element in page.iter():
        yield from (element.get(name, "") for name in names if name in element.attrib)


def test_the_files_of_the_epub_are_those_of_its_manifest(files: Files) -> None:
    package = ElementTree.fromstring(files["book/package.opf"])
    items = {
        each.get("id"): each for each in package.iter() if each.tag.endswith("}item")
    }
    listed = {f"book/{each.get('href')}" for each in items.values()}
    around = {"mimetype", "META-INF/container.xml", "book/package.opf"}
    assert listed == files.keys() - around
    assert files["mimetype"] == b"application/epub+zip"
    order = [
        each.get("idref") for each in package.iter() if each.tag.endswith("}itemref")
    ]
    shown = pages_of(files).keys() - {"book/nav.xhtml"}  # the reader's own contents
    assert {f"book/{items[each].get('href')}" for each in order} == shown


def test_pages_of_the_epub_are_well_formed_and_need_no_script(files: Files) -> None:
    for name, page in pages_of(files).items():
        tags = {each.tag.rpartition("}")[2] for each in page.iter()}
        assert not tags & set(SITE_ONLY), name
        ids = list(values(page, "id"))
        assert len(ids) == len(set(ids)), name
        attributes = {key for each in page.iter() for key in each.attrib}
        assert not [each for each in attributes if each.startswith(("on", "data-"))]


def test_links_of_the_epub_lead_to_places_that_exist_or_to_the_site(
    files: Files,
) -> None:
    pages = pages_of(files)
    ids = {name: set(values(page, "id")) for name, page in pages.items()}
    inside = outside = 0
    for name, page in pages.items():
        for link in values(page, "href", "src", "{http://www.w3.org/1999/xlink}href"):
            target, place = urldefrag(link)
            if urlsplit(link).scheme:
                outside += link.startswith("https://a.github.io/b/")
                continue
            file = normpath(f"book/{target}") if target else name
            assert file in files, f"{name}: {link}"
            assert not place or unquote(place) in ids[file], f"{name}: {link}"
            inside += 1
    assert inside > 100 and outside > 10


def test_the_epub_has_each_formula_of_a_page_once_and_its_tex(
    files: Files, site: Site
) -> None:
    for page in (ATTENTION, NOTATION):
        here, there = (
            site.soup(page).select("main math"),
            page_of(files, page).select("math"),
        )
        tex = [
            each.get_text() for each in site.soup(page).select("main math annotation")
        ]
        assert len(here) == len(there) > 50
        assert [each["alttext"] for each in there] == tex
    site_page = BeautifulSoup(site.text(NOTATION), "html.parser")
    assert words(page_of(files, NOTATION)) == words(site_page)


def test_the_epub_has_the_code_and_the_pictures_of_a_page(
    files: Files, site: Site
) -> None:
    page = page_of(files, ATTENTION)
    code = [each.get_text() for each in site.soup(ATTENTION).select("main pre")]
    assert [each.get_text() for each in page.select("pre > code, pre > samp")] == code
    figures = site.soup(ATTENTION).select("main figure.out")
    assert len(page.select("figure svg")) == len(figures) > 3
    assert (
        page.select("svg[viewbox]")
        and b"viewBox" in files["book/labml_primer.transformer.attention.xhtml"]
    )


def test_figures_of_the_epub_need_no_style_and_have_no_links(files: Files) -> None:
    page = page_of(files, ATTENTION)
    assert not page.select("svg a, svg [class], svg [style], svg style")
    (box, *_) = page.select(
        'svg[aria-label="Multi-head attention as shapes"] rect[stroke]'
    )
    assert box["fill"] == "rgb(253, 252, 249)"
    assert float(str(box["stroke-width"]).removesuffix("px")) == 1.2
    assert not [name for name, content in files.items() if b"var(--" in content]


@pytest.mark.nightly
@pytest.mark.skipif(not CHECK.is_file(), reason="apt-get install epubcheck")
@pytest.mark.parametrize("language", EDITIONS)
def test_epubcheck_finds_nothing_in_the_book(
    site: Site, chromium: Browser, tmp_path: Path, language: str
) -> None:
    if language and language not in site.editions:
        pytest.skip("the site does not have this edition")
    book = tmp_path / "book.epub"
    book.write_bytes(bound(site, PAGES[1:], chromium, language or "en"))
    command = ["java", "-jar", str(CHECK), "--failonwarnings", str(book)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
