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

STYLE = Path(__file__).with_name("epub.css")
THEME = Path(__file__).parents[1] / "theme" / "static"
FONTS = ("serif.woff2", "serif-i.woff2")  # which the words in figures are placed for
DROPPED = (
    "noscript, form, button, input, select, textarea, canvas, label, fieldset, [hidden], "
    ".katex-html, .inlay, .linenos, .picture-foot, .own, .individuals, .live-load, "
    ".live-status, .plot:has(+ .plot-narrow)"
)
UNWRAPPED = "span:not([id], [lang], .glue), a.lno:not([id]), semantics"
# Some e-readers know no CSS inside figures: each element gets its computed style as attributes, where it
# differs from what it inherits.
SERIALIZE = """([html, style]) => {
    document.body.innerHTML = `<style>${style}</style><svg></svg>${html}`;
    const [, plain, main] = document.body.children;
    const names = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
        "stroke-linecap", "stroke-linejoin", "font-family", "font-size", "font-weight", "font-style",
        "text-anchor", "opacity"];
    const parts = [...main.querySelectorAll("svg, svg *")];
    const drawn = (part, name) => getComputedStyle(part)[name];
    for (const part of parts) {
        const around = part.matches("svg") ? plain : part.parentElement;
        for (const name of names) {
            const value = drawn(part, name);
            const inherited = name === "opacity" ? "1" : drawn(around, name);
            if (value !== inherited) part.setAttribute(name, value);
        }
    }
    const unseen = parts.filter((part) => drawn(part, "display") === "none");
    for (const part of parts) ["class", "style"].forEach((name) => part.removeAttribute(name));
    for (const part of unseen) part.remove();
    return new XMLSerializer().serializeToString(main);
}"""
CUBE = """<math xmlns="http://www.w3.org/1998/Math/MathML" alttext="2^3">
<msup><mn>2</mn><mn>3</mn></msup></math>"""
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>"""
ACCESS = (
    ("accessMode", "textual"),
    ("accessMode", "visual"),
    ("accessModeSufficient", "textual,visual"),
    ("accessibilityFeature", "MathML"),
    ("accessibilityFeature", "alternativeText"),
    ("accessibilityFeature", "structuralNavigation"),
    ("accessibilityFeature", "tableOfContents"),
    ("accessibilityHazard", "none"),
)


def epub(site: Path, docnames: list[str], book: Title, browser: Browser) -> bytes:
    """Bind these pages of a site, with a title page and a table of contents."""
    files: dict[str, str | bytes] = {
        "style.css": STYLE.read_text(encoding="utf-8"),
        **{name: (THEME / name).read_bytes() for name in FONTS},
    }
    pages = read(site, docnames, book.address, browser, files)
    where = escape(book.address)
    title = (
        f"<h1>{escape(book.title)}</h1><p>{escape(book.summary)}</p><p>{escape(book.author)}, "
        f'{escape(book.date)}</p><p><a href="{where}">{where}</a></p>'
        f"<p>{escape(book.formulas)} {CUBE}</p>"
    )
    files["title.xhtml"] = document(book, book.title, title)
    files["nav.xhtml"] = document(book, book.contents, "".join(contents(book, pages)))
    for page in pages:
        files[page.name] = document(book, page.title, page.html)
    target = BytesIO()
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as zipped:
        zipped.writestr("mimetype", "application/epub+zip", ZIP_STORED)
        zipped.writestr("META-INF/container.xml", CONTAINER)
        zipped.writestr("book/package.opf", package(book, files))
        for name, content in files.items():
            zipped.writestr(f"book/{name}", content)
    return target.getvalue()


# -- pages of the site become pages of the EPUB ---------------------------------------------


def read(
    site: Path,
    docnames: list[str],
    address: str,
    browser: Browser,
    files: dict[str, str | bytes],
) -> list[Page]:
    """Read pages of the site, and add their images to the files."""
    soups = {docname: parsed(site, docname) for docname in docnames}
    mains = {docname: reduced(soup) for docname, soup in soups.items()}
    ids = {
        docname: {str(each["id"]) for each in main.select("[id]")}
        for docname, main in mains.items()
    }
    wanted = set()
    for docname, main in mains.items():
        for link in main.select("a[href]"):
            link["href"] = _link(docname, str(link["href"]), ids, address)
            wanted.add(link["href"])
        for image in main.select("img"):
            path = urljoin(f"{docname}.html", str(image["src"]))
            image["src"] = name = path.replace("/", ".")
            files[name] = (site / path).read_bytes()
    drawing = (THEME / "drawing.css").read_text(encoding="utf-8")
    tab = browser.new_page(color_scheme="light")
    pages = []
    for docname, main in mains.items():
        name = _name(docname)
        for line in main.select("pre [id]"):
            if f"{name}#{quote(str(line['id']))}" not in wanted:
                line.unwrap()
        title = main.select_one("h1")
        assert title, f"{docname} has no title"
        sections = [(anchor(each), each.get_text()) for each in main.select("h2")]
        xhtml = tab.evaluate(SERIALIZE, [str(main), drawing])
        part, number = part_and_number(soups[docname])
        pages.append(Page(name, part, number, title.get_text(), sections, xhtml, []))
    tab.close()
    return pages


def reduced(soup: BeautifulSoup) -> Tag:
    """Return what a page says, without what needs the site, in elements that every e-reader has."""
    main = soup.select_one("main")
    assert main
    for element in main.select(DROPPED):
        element.decompose()
    for line in main.select("a.lno"):
        del line["href"]
    for line in main.select(".ln--add, .ln--del"):
        line.name = "ins" if "ln--add" in line["class"] else "del"
    for element in main.select(UNWRAPPED):
        element.unwrap()
    for tex in main.select("annotation"):
        formula = tex.find_parent("math")
        assert formula
        formula["alttext"] = tex.extract().get_text()
    for word in main.select(":is(mi, mn, mo, mtext):has(> *)"):  # KaTeX's \bmod
        word.string = word.get_text()
    for element in main.select("details, summary"):
        classes = [*element.get_attribute_list("class"), element.name]
        element["class"] = " ".join(classes)
        element.name = "div"
        element.attrs.pop("open", None)
    for pre in main.select("pre"):
        pre.wrap(soup.new_tag("pre"))
        pre.name = "samp" if pre.find_parent(class_="out") else "code"
    for link in main.select("svg a"):  # some e-readers show nothing in it
        link.unwrap()
    for element in [main, *main.find_all(True)]:
        if not element.find_parent("svg"):
            element.attrs.pop("style", None)
        for name in list(element.attrs):
            if name.startswith("data-") or name in ("download", "role", "tabindex"):
                del element[name]
    return main


def _name(docname: str) -> str:
    return f"{docname.replace('/', '.')}.xhtml"


def _link(docname: str, link: str, ids: dict[str, set[str]], address: str) -> str:
    """Return a link's target: a page of the EPUB or a place there, and else its address."""
    target, fragment = urldefrag(urljoin(f"{docname}.html", link))
    page, place = target.removesuffix(".html"), unquote(fragment)
    if urlsplit(target).scheme:
        return link
    end = f"#{quote(place)}" if place else ""
    inside = page in ids and (not place or place in ids[page])
    return (_name(page) if inside else urljoin(address, target)) + end


# -- the files around them --------------------------------------------------------------------


def document(book: Title, title: str, body: str) -> str:
    """Return a file of XHTML."""
    language = f'lang="{book.tag}" xml:lang="{book.tag}"'
    return f"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" {language}>
<head><title>{escape(title)}</title><link rel="stylesheet" href="style.css"/></head>
<body>{body}</body></html>
"""


def contents(book: Title, pages: list[Page]) -> Iterator[str]:
    """Yield the table of contents: parts, pages, sections."""
    yield f'<nav epub:type="toc"><h1>{escape(book.contents)}</h1><ol>'
    for part, inside in groupby(pages, lambda page: page.part):
        yield f"<li><span>{escape(part)}</span><ol>"
        for page in inside:
            sections = "".join(
                f'<li><a href="{page.name}#{quote(name)}">{escape(words.strip())}</a></li>'
                for name, words in page.sections
                if name
            )
            title = escape(f"{page.number} {page.title}".strip())
            inner = f"<ol>{sections}</ol>" if sections else ""
            yield f'<li><a href="{page.name}">{title}</a>{inner}</li>'
        yield "</ol></li>"
    yield "</ol></nav>"


def package(book: Title, files: dict[str, str | bytes]) -> str:
    """Return the package document: what the book is, its files, and the order of its pages."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    access = "".join(
        f'<meta property="schema:{name}">{value}</meta>' for name, value in ACCESS
    )
    items = "\n".join(_item(name, str(content)) for name, content in files.items())
    pages = (name for name in files if name.endswith(".xhtml") and name != "nav.xhtml")
    order = "".join(f'<itemref idref="{name}"/>' for name in pages)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{uuid5(NAMESPACE_URL, book.address + book.language).urn}</dc:identifier>
<dc:title>{escape(book.title)}</dc:title>
<dc:creator>{escape(book.author)}</dc:creator>
<dc:language>{book.tag}</dc:language>
<dc:date>{now[:10]}</dc:date>
<dc:description>{escape(book.summary)}</dc:description>
<dc:source>{escape(book.address)}</dc:source>
<meta property="dcterms:modified">{now}</meta>{access}
</metadata>
<manifest>
{items}
</manifest>
<spine>{order}</spine>
</package>
"""


def _item(name: str, text: str) -> str:
    kinds = {".xhtml": "application/xhtml+xml", ".woff2": "font/woff2"}
    kind = kinds.get(Path(name).suffix) or guess_type(name)[0]
    has = {"mathml": "<math" in text, "svg": "<svg" in text, "nav": name == "nav.xhtml"}
    properties = " ".join(each for each, there in has.items() if there)
    given = f' properties="{properties}"' if properties else ""
    return f'<item id="{name}" href="{name}" media-type="{kind}"{given}/>'
