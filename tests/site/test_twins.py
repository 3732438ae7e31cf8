"""Each page as Markdown, for programs that read."""

import os
import re
from copy import copy
from functools import lru_cache
from urllib.parse import unquote, urldefrag, urljoin

import yaml
from address import online
from bs4 import BeautifulSoup, Tag
from built_book import CHAPTERS, PAGES, ROOT, Site, cases
from sphinx_annotated.page.build.repository import Repository

CONFIGURED = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
HERE = Repository(**online(CONFIGURED, os.environ))
TEN = {
    *("book/pages/index", "book/pages/glossary", "book/pages/references"),
    *("book/pages/individuals", "book/pages/notation", "book/pages/write"),
    *("labml_primer/transformer/attention", "labml_primer/primer/primer_ez"),
    *("labml_primer/search/primitives", "experiments/chapters/results"),
}
some_pages = cases("page", PAGES, daily=TEN)
# What a page has besides its text.
AROUND = (
    ".chapter-head nav, .page-tools, .downloads, .headerlink, .lno, .picture-foot, .bibtex button, "
    ".edition-counts, form, #standalone, .facts, script, .plot-narrow, .plot-order, .inlay, "
    ".linenos, .visually-hidden, .solution__of, .needs, .own, [hidden]"
)
LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)")


def main(site: Site, page: str) -> Tag:
    """The text of a page without what is around it, which a test may change."""
    return copy(text_of(site.text(page)))


@lru_cache(maxsize=1)
def text_of(html: str) -> Tag:
    soup = BeautifulSoup(html, "html.parser").main
    assert soup
    for element in soup.select(AROUND):
        element.decompose()
    # A name in code is a link on the page alone.
    for reference in soup.select("a.ref"):
        reference.unwrap()
    return soup


def plain(text: str) -> str:
    """Words without marks and blanks, so that prose and Markdown can be compared."""
    text = re.sub(r"(?m)^(> ?)+", "", text)  # of quotes
    return re.sub(r"[\s*_\\`$#\[\]|]", "", text)


def twin(site: Site, page: str) -> str:
    return (site.folder / f"{page}.html.md").read_text(encoding="utf-8")


@some_pages
def test_every_heading_formula_and_line_of_code_is_in_the_twin(
    site: Site, page: str
) -> None:
    text, soup = twin(site, page), main(site, page)
    lines = set(text.split("\n"))
    for formula in soup.select("annotation"):
        assert plain(formula.get_text()) in plain(text), formula.get_text()
    headings = [plain(line) for line in lines if re.match(r"> ?|#+ |\*\*", line)]
    for mathematics in soup.select(".katex"):
        tex = mathematics.select_one("annotation")
        mathematics.replace_with(tex.get_text() if tex else "")
    for heading in soup.select("h1, h2, h3, h4, h5, h6"):
        assert plain(heading.get_text()) in headings, heading.get_text()
    for line in soup.select("pre.code .ln"):
        code = line.get_text().strip()
        assert any(code in each for each in lines), code


@some_pages
def test_every_output_and_every_description_of_a_picture_is_in_the_twin(
    site: Site, page: str
) -> None:
    text, soup = plain(LINK.sub("]", twin(site, page))), main(site, page)
    for output in soup.select("pre:not(.code)"):
        assert plain(output.get_text()) in text, output.get_text()
    for cell in soup.select("table td, table th"):
        if not cell.select(".katex"):
            assert plain(cell.get_text()) in text, cell.get_text()
    for picture in soup.select("figure.out svg[aria-label]"):
        assert plain(str(picture["aria-label"])) in text, picture["aria-label"]
        for words in picture.select("desc"):
            assert plain(words.get_text()) in text, words.get_text()


@some_pages
def test_every_paragraph_is_in_the_twin(site: Site, page: str) -> None:
    text, soup = twin(site, page), main(site, page)
    text = plain(LINK.sub("]", text))
    for mathematics in soup.select(".katex"):
        tex = mathematics.select_one("annotation")
        mathematics.replace_with(tex.get_text() if tex else "")
    for paragraph in soup.select("p"):
        if not paragraph.find_parent(class_="live"):
            assert plain(paragraph.get_text()) in text, paragraph.get_text()


@some_pages
def test_every_link_is_in_the_twin_and_leads_somewhere(site: Site, page: str) -> None:
    address = f"{HERE.pages}{page}.html"
    found = [link.removesuffix(">") for link in LINK.findall(twin(site, page))]
    for element in main(site, page).select("a[href]"):
        if not element.find_parent("svg"):
            link = urljoin(address, str(element["href"]))
            assert link in found, link
    for link in filter(lambda link: link.startswith(HERE.pages), found):
        path, fragment = urldefrag(link.removeprefix(HERE.pages))
        assert (site.folder / unquote(path)).is_file(), link
        if fragment and path.endswith(".html") and "/" not in fragment:
            assert unquote(fragment) in site.ids(path.removesuffix(".html")), link


def test_a_page_links_to_its_twin_and_the_list_has_them_all(site: Site) -> None:
    listed = LINK.findall((site.folder / "llms.txt").read_text(encoding="utf-8"))
    assert listed == [f"{HERE.pages}{page}.html.md" for page in PAGES[1:]]
    for page in (PAGES[0], CHAPTERS[3]):
        (link,) = site.soup(page).select("link[rel=alternate][type='text/markdown']")
        assert link["href"] == page.split("/")[-1] + ".html.md"
        foot = {a.get_text(): a["href"] for a in site.soup(page).select(".foot a")}
        assert foot["As Markdown"] == link["href"]
    twins = {p.relative_to(site.folder).as_posix() for p in site.folder.rglob("*.md")}
    editions = [path.parent.name for path in ROOT.glob("book/locale/*/language.toml")]
    english = {twin for twin in twins if twin.split("/")[0] not in editions}
    assert english == {f"{page}.html.md" for page in PAGES}
