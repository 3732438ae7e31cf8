"""The book as an EPUB 3, from the site's pages: formulas as MathML, code as text, figures as SVG.

What is interactive or belongs to the site is left out. What is folded is shown.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from html import escape
from io import BytesIO
from itertools import groupby
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit
from uuid import NAMESPACE_URL, uuid5
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from bs4 import BeautifulSoup, Tag
from pdf import Page, Title, anchor, parsed, part_and_number
from playwright.sync_api import Browser
from sphinx_annotated.page.directives.pictures import light

STYLE = Path(__file__).with_name("epub.css")
THEME = Path(__file__).parents[1] / "theme" / "static"
FONTS = ("serif.woff2", "serif-i.woff2")  # the places of words in figures are for them
DROPPED = (
    "noscript, form, button, input, select, textarea, canvas, label, fieldset, [hidden], "
    ".katex-html, .inlay, .linenos, .picture-foot, .own, .live-load, .live-status, "
    ".plot:has(+ .plot-narrow)"
)
GONE = ("download", "role", "tabindex")
SERIALIZE = """html => new XMLSerializer().serializeToString(
    new DOMParser().parseFromString(html, "text/html").body.firstElementChild)"""
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>"""
ACCESS = {
    "accessMode": ["textual", "visual"],
    "accessModeSufficient": ["textual,visual", "textual"],
    "accessibilityFeature": [
        *("MathML", "alternativeText", "longDescription", "structuralNavigation"),
        *("tableOfContents", "displayTransformability"),
    ],
    "accessibilityHazard": ["none"],
}


def epub(site: Path, docnames: list[str], book: Title, browser: Browser) -> bytes:
    """Bind these pages of a site, with a title page and a table of contents."""
    pages = read(site, docnames, book.address, browser)
    files: dict[str, str | bytes] = {
        "nav.xhtml": document(book, book.contents, "".join(_contents(book, pages))),
        "title.xhtml": document(book, book.title, _title(book)),
        **{page.name: document(book, page.title, page.html) for page in pages},
        "style.css": style(),
        **{name: (THEME / name).read_bytes() for name in FONTS},
    }
    target = BytesIO()
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as zipped:
        zipped.writestr("mimetype", "application/epub+zip", ZIP_STORED)
        zipped.writestr("META-INF/container.xml", CONTAINER)
        zipped.writestr("book/package.opf", package(book, files))
        for name, content in files.items():
            zipped.writestr(f"book/{name}", content)
    return target.getvalue()


def style() -> str:
    """Return the style of the book, with that of its pictures: light, and without variables."""
    drawing = (THEME / "drawing.css").read_text(encoding="utf-8")
    drawn = light(f"<style>{drawing}</style>").removeprefix("<style>")
    return STYLE.read_text(encoding="utf-8") + drawn.removesuffix("</style>")


# -- pages of the site become pages of the EPUB ---------------------------------------------


def read(site: Path, docnames: list[str], address: str, browser: Browser) -> list[Page]:
    """Read pages of the site. Links lead to each other, and else to the site's address."""
    trees = {docname: parsed(site, docname) for docname in docnames}
    mains = {docname: reduced(soup) for docname, soup in trees.items()}
    ids = {
        docname: {str(each["id"]) for each in main.select("[id]")}
        for docname, main in mains.items()
    }
    wanted = set()
    for docname, main in mains.items():
        for link in main.select("a[href]"):
            link["href"] = _link(docname, str(link["href"]), ids, address)
            wanted.add(link["href"])
    tab = browser.new_page()
    pages = []
    for docname, main in mains.items():
        name = _name(docname)
        for line in main.select("pre [id]"):
            if f"{name}#{quote(str(line['id']))}" not in wanted:
                line.unwrap()
        part, number = part_and_number(trees[docname])
        title = main.select_one("h1")
        assert title, f"{docname} has no title"
        sections = [(anchor(each), each.get_text()) for each in main.select("h2")]
        xhtml = tab.evaluate(SERIALIZE, str(main))
        pages.append(Page(name, part, number, title.get_text(), sections, xhtml, []))
    tab.close()
    return pages


def reduced(soup: BeautifulSoup) -> Tag:
    """Return what a page says, without what needs the site, in elements that every reader has."""
    main = soup.select_one("main")
    assert main
    for element in main.select(DROPPED):
        element.decompose()
    for link in main.select("a.lno"):
        del link["href"]
    for span in main.select(
        "span:not([id], [lang], .glue), a.lno:not([id]), semantics"
    ):
        span.unwrap()
    for tex in main.select("annotation"):
        formula = tex.find_parent("math")
        assert formula
        formula["alttext"] = tex.extract().get_text()
    for element in main.select("details, summary"):
        element["class"] = [*element.get_attribute_list("class", []), element.name]
        element.name = "div"
        element.attrs.pop("open", None)
    for pre in main.select("pre"):
        pre.wrap(soup.new_tag("pre"))
        pre.name = "samp" if pre.find_parent(class_="out") else "code"
    for link in main.select("svg a"):
        link["xlink:title"] = link.get("aria-label") or link.get_text()
    for element in [main, *main.find_all(True)]:
        if "style" in element.attrs and element.find_parent("svg"):
            element["style"] = light(str(element["style"]))
        else:
            element.attrs.pop("style", None)
        for name in list(element.attrs):
            if name.startswith("data-") or name in GONE:
                del element[name]
    return main


def _name(docname: str) -> str:
    return f"{docname.replace('/', '.')}.xhtml"


def _link(docname: str, link: str, ids: dict[str, set[str]], address: str) -> str:
    """Return a link's target: a place or a page of the EPUB, or else its address."""
    target, fragment = urldefrag(urljoin(f"{docname}.html", link))
    page, place = target.removesuffix(".html"), unquote(fragment)
    if urlsplit(target).scheme:
        return link
    if page not in ids:
        return urljoin(address, target) + (f"#{fragment}" if fragment else "")
    return _name(page) + (f"#{quote(place)}" if place in ids[page] else "")


# -- the pages around them --------------------------------------------------------------------


def document(book: Title, title: str, body: str) -> str:
    language = f'lang="{book.tag}" xml:lang="{book.tag}"'
    return f"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" {language}>
<head><title>{escape(title)}</title><link rel="stylesheet" href="style.css"/></head>
<body>{body}</body></html>
"""


def _title(book: Title) -> str:
    where = escape(book.address)
    return (
        f"<h1>{escape(book.title)}</h1><p>{escape(book.summary)}</p><p>{escape(book.author)}, "
        f'{escape(book.date)}</p><p><a href="{where}">{where}</a></p>'
    )


def _contents(book: Title, pages: list[Page]) -> Iterator[str]:
    yield f'<nav epub:type="toc"><h1>{escape(book.contents)}</h1><ol>'
    for part, inside in groupby(pages, lambda page: page.part):
        yield f"<li><span>{escape(part)}</span><ol>"
        for page in inside:
            title = f"{page.number} {page.title}".strip()
            yield f'<li><a href="{page.name}">{escape(title)}</a>'
            sections = [
                f'<li><a href="{page.name}#{quote(name)}">{escape(words.strip())}</a></li>'
                for name, words in page.sections
                if name
            ]
            yield f"<ol>{''.join(sections)}</ol></li>" if sections else "</li>"
        yield "</ol></li>"
    yield "</ol></nav>"


def package(book: Title, files: dict[str, str | bytes]) -> str:
    """Return the package document: what the book is, its files, and the order of its pages."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    identifier = uuid5(NAMESPACE_URL, f"{book.address}{book.language}").urn
    order = ["title.xhtml", *(name for name in files if name.endswith(".xhtml"))]
    items = "\n".join(_item(name, content) for name, content in files.items())
    refs = "".join(f'<itemref idref="{name}"/>' for name in dict.fromkeys(order))
    access = "".join(
        f'<meta property="schema:{name}">{value}</meta>'
        for name, values in ACCESS.items()
        for value in values
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{identifier}</dc:identifier>
<dc:title>{escape(book.title)}</dc:title>
<dc:creator>{escape(book.author)}</dc:creator>
<dc:language>{book.tag}</dc:language>
<dc:date>{now[:10]}</dc:date>
<dc:description>{escape(book.summary)}</dc:description>
<dc:source>{escape(book.address)}</dc:source>
<meta property="dcterms:modified">{now}</meta>
{access}
</metadata>
<manifest>
{items}
</manifest>
<spine>{refs}</spine>
</package>
"""


def _item(name: str, content: str | bytes) -> str:
    kinds = {"xhtml": "application/xhtml+xml", "woff2": "font/woff2"}
    kind = kinds.get(name.rpartition(".")[2]) or guess_type(name)[0]
    has = {"nav": name == "nav.xhtml"}
    if isinstance(content, str) and name.endswith(".xhtml"):
        has |= {"mathml": "<math" in content, "svg": "<svg" in content}
    properties = " ".join(each for each, there in has.items() if there)
    given = f' properties="{properties}"' if properties else ""
    return f'<item id="{name}" href="{name}" media-type="{kind}"{given}/>'
