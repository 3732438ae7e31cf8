"""What every page of the book promises, chapter or not."""

import json
import re
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from bs4 import BeautifulSoup
from built_book import ROOT, Site, Visit, Visitor

OTHERS = {"index", "search", "genindex"}
# An address that the script of the individuals reads: `transformer-0/812`.
INDIVIDUAL = re.compile(r"([\w-]+)/(\d+)")


def test_the_site_has_the_books_pages_and_no_others(site: Site) -> None:
    files = {
        path.relative_to(site.folder).with_suffix("").as_posix()
        for path in site.folder.rglob("[!._]*.html")
        if not path.relative_to(site.folder).parts[0].startswith((".", "_"))
    }
    assert files == {*site.pages, *OTHERS}


def test_the_first_page_is_reached_from_the_root(visit: Visitor, site: Site) -> None:
    opened = visit("index")
    opened.page.wait_for_url(site.url(site.pages[0]))


LOOKS: dict[str, Visit] = {}


def look(visit: Visitor, page: str) -> Visit:
    """A page, once it asks for nothing more; each is opened once for the two tests below."""
    if page not in LOOKS:
        LOOKS[page] = visit(page)
        LOOKS[page].page.wait_for_load_state("networkidle")
    return LOOKS[page]


def test_a_page_gives_the_browser_no_cause_to_complain(
    visit: Visitor, page: str
) -> None:
    assert look(visit, page).said == []


def test_a_page_asks_for_nothing_that_is_not_the_sites_own(
    visit: Visitor, site: Site, page: str
) -> None:
    opened = look(visit, page)
    assert opened.failed == []
    assert [url for url in opened.asked if not url.startswith(site.address)] == []
    assert len(opened.asked) > 1


def test_nothing_scrolls_sideways(visit: Visitor, page: str) -> None:
    opened = visit(page).page
    for width in (1400, 1000, 390):
        opened.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            opened.evaluate("t => document.documentElement.dataset.theme = t", theme)
            wider = opened.evaluate(
                """() => document.documentElement.scrollWidth <= innerWidth ? [] :
                    [...document.querySelectorAll("main *")].filter(
                        e => e.getBoundingClientRect().right > innerWidth + 1
                    ).slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""
            )
            assert wider == [], f"at {width} px, {theme}"


def test_no_code_in_prose_is_cut_where_there_is_room(visit: Visitor, page: str) -> None:
    opened = visit(page).page
    cut = opened.evaluate(
        """() => [...document.querySelectorAll(".plain pre")]
            .filter(e => e.scrollWidth > e.clientWidth + 1)
            .map(e => e.textContent.slice(0, 80))"""
    )
    assert cut == []


def test_math_is_rendered_while_building(site: Site, page: str) -> None:
    soup = site.soup(page)
    formulas = soup.select("span.katex")
    assert formulas or "$" not in source_of(page)
    assert all(formula.select_one("math > semantics") for formula in formulas)
    assert not soup.select(".katex-error")
    scripts = " ".join(str(script) for script in soup.select("script")).lower()
    assert "katex" not in scripts
    assert "mathjax" not in scripts


def source_of(page: str) -> str:
    """What a page was written as; nothing for one that Sphinx makes."""
    paths = [ROOT / f"{page}{ending}" for ending in (".py", ".md")]
    return "".join(path.read_text() for path in paths if path.is_file())


def test_no_formula_is_left_in_the_text(site: Site, page: str) -> None:
    text = prose(site.soup(page))
    assert not re.findall(r"\$[^$]{1,60}\$|\\\(|\\\[|\\[a-z]{3,}|\{[a-z:]+\}`", text)


def prose(soup: BeautifulSoup) -> str:
    """A page's words: no code, output, figure or rendered formula."""
    copy = BeautifulSoup(str(soup.select_one("main")), "html.parser")
    for element in copy.select("pre, code, .out, .output, svg, .katex"):
        element.decompose()
    return copy.get_text(" ")


def test_every_link_leads_somewhere(site: Site, page: str) -> None:
    broken = []
    for element in site.soup(page).select("[href], [src]"):
        link = str(element.get("href", element.get("src")))
        target, fragment = urldefrag(urljoin(f"{page}.html", link))
        if urlsplit(target).scheme:
            continue
        path = site.folder / unquote(urlsplit(target).path)
        if not path.is_file():
            broken.append(link)
        elif individual := INDIVIDUAL.fullmatch(fragment):
            data = site.folder / "_downloads" / "search" / f"{individual[1]}.json"
            numbers = range(len(json.loads(data.read_text())["individuals"]))
            if int(individual[2]) not in numbers:
                broken.append(link)
        elif fragment and path.suffix == ".html":
            name = path.relative_to(site.folder).with_suffix("").as_posix()
            if unquote(fragment) not in site.ids(name):
                broken.append(link)
    assert broken == []


def test_no_two_elements_share_a_name(site: Site, page: str) -> None:
    ids = site.ids(page)
    assert sorted(ids) == sorted(set(ids))


def test_a_page_describes_itself(site: Site, page: str) -> None:
    soup = site.soup(page)
    assert len(soup.select("h1")) == 1
    assert soup.title and soup.title.get_text().strip()
    described = soup.select_one('meta[name="description"]')
    assert described and 20 < len(str(described["content"])) < 220
    assert not re.search(r"[\\$`{}]", str(described["content"]))


def test_the_chapter_list_marks_the_page(site: Site, page: str) -> None:
    soup = site.soup(page)
    marked = soup.select("#chapnav [aria-current=page]")
    if page == site.pages[0]:
        assert marked == []
    else:
        heading = soup.select_one("h1")
        assert heading and len(marked) == 1
        title = re.sub(r"[#¶]$", "", heading.get_text()).strip()
        assert re.sub(r"^\d+", "", marked[0].get_text().strip()) == title


def test_letters_come_from_the_books_own_fonts(visit: Visitor) -> None:
    opened = visit("book/pages/references")
    assert opened.page.evaluate("document.fonts.check('17px \"Source Serif 4\"')")
    assert any("serif-ext.woff2" in url for url in opened.asked)  # for the ń of Mańke


def test_the_index_names_every_definition(site: Site) -> None:
    links = {str(link["href"]) for link in site.soup("genindex").select(".letter a")}
    assert "labml_primer/primer/primer_ez.html#SquaredReLU" in links
    assert "labml_primer/transformer/encoder.html#Encoder.forward" in links
    for link in links:
        page, _, fragment = link.partition("#")
        assert fragment in site.ids(page.removesuffix(".html")), link
