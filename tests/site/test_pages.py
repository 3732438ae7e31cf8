"""What every page of the book promises, read from its file."""

import json
import os
import re
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
import yaml
from address import online
from bs4 import BeautifulSoup
from built_book import ROOT, Site, every_page

from labml_primer import PRESETS

OTHERS = {"index", "search", "genindex", "404"}
# An address that the script of the individuals reads: `transformer-0/812`.
INDIVIDUAL = re.compile(r"([\w-]+)/(\d+)")


def test_the_site_has_the_books_pages_and_no_others(site: Site) -> None:
    files = {
        path.relative_to(site.folder).with_suffix("").as_posix()
        for path in site.folder.rglob("[!._]*.html")
        if not path.relative_to(site.folder).parts[0].startswith((".", "_"))
    }
    pages = {*site.pages, *OTHERS}
    editions = {f"{code}/{page}" for code in site.editions for page in pages}
    assert files == pages | editions


@every_page
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
            script = site.folder / "_downloads" / "search" / f"{individual[1]}.js"
            data = json.loads(script.read_text().partition("]=")[2].rstrip(";\n"))
            numbers = range(len(data["individuals"]))
            if int(individual[2]) not in numbers:
                broken.append(link)
        elif fragment and path.suffix == ".html":
            name = path.relative_to(site.folder).with_suffix("").as_posix()
            if unquote(fragment) not in site.ids(name):
                broken.append(link)
    assert broken == []


@every_page
def test_no_two_elements_share_a_name(site: Site, page: str) -> None:
    ids = site.ids(page)
    assert sorted(ids) == sorted(set(ids))


@every_page
def test_a_page_describes_itself(site: Site, page: str) -> None:
    soup = site.soup(page)
    assert len(soup.select("h1")) == 1
    assert soup.title and soup.title.get_text().strip()
    described = soup.select_one('meta[name="description"]')
    assert described and 20 < len(str(described["content"])) < 220
    assert not re.search(r"[\\$`{}]", str(described["content"]))


@every_page
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


def test_the_index_names_every_definition(site: Site) -> None:
    links = {str(link["href"]) for link in site.soup("genindex").select(".letter a")}
    assert "labml_primer/primer/primer_ez.html#SquaredReLU" in links
    assert "labml_primer/transformer/encoder.html#Encoder.forward" in links
    for link in links:
        page, _, fragment = link.partition("#")
        assert fragment in site.ids(page.removesuffix(".html")), link


def test_the_index_names_each_chapter_and_leaves_out_what_only_helps(
    site: Site,
) -> None:
    entries = site.soup("genindex").select(".letter li")
    listed = {entry.get_text(" ", strip=True) for entry in entries}
    assert "SquaredReLU Primer-EZ" in listed
    assert {"Block Language model", "MultiHeadAttention Multi-head attention"} <= listed
    links = {str(entry.select("a")[0]["href"]) for entry in entries}
    for helper in (
        "labml_primer/transformer/embedding.html#same_kind",  # in a demonstration
        "labml_primer/compared/t5.html#corrupt_spans.lengths",
        "experiments/chapters/mdha.html#below",
    ):
        page, _, name = helper.partition("#")
        assert name in site.ids(page.removesuffix(".html"))
        assert helper not in links


def test_the_letters_of_the_glossary_lead_to_their_first_terms(site: Site) -> None:
    soup = site.soup("book/pages/glossary")
    first: dict[str, str] = {}
    for term in soup.select("dl.glossary > dt:first-child, dl.glossary > dd + dt"):
        first.setdefault(term.get_text()[0].upper(), str(term["id"]))
    letters = {a.get_text(): str(a["href"])[1:] for a in soup.select(".letters a")}
    assert letters == first
    assert list(letters) == sorted(letters) and len(letters) > 15


def test_use_it_links_to_the_repository_and_lists_every_preset(site: Site) -> None:
    soup, url = site.soup("book/pages/use"), repository()
    assert soup.select(f"a[href='{url}']")
    assert f"pip install git+{url}" in soup.get_text()
    rows = soup.select(".presets tbody tr")
    assert sorted(row.select("td")[0].get_text() for row in rows) == sorted(PRESETS)
    for row in rows:
        *_, small, search, medium, large = (
            float(cell.get_text().replace(",", "")) for cell in row.select("td")[2:]
        )
        assert small < search < medium < large
    welcome = site.soup("book/pages/index")
    assert welcome.select(".start a[href='use.html']")


def repository() -> str:
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    url: str = online(config["repository"], os.environ)["url"]
    return url


@pytest.mark.parametrize("way", ["next", "prev"])
def test_one_link_leads_from_page_to_page_through_the_book(
    site: Site, way: str
) -> None:
    pages = site.pages if way == "next" else site.pages[::-1]
    for page, after in zip(pages, [*pages[1:], None], strict=True):
        links = site.soup(page).select(f"a[rel~={way}]")
        here = (site.folder / page).parent
        reached = {(here / str(link["href"])).resolve() for link in links}
        wanted = {(site.folder / f"{after}.html").resolve()} if after else set()
        assert reached == wanted, page


@every_page
def test_every_page_names_every_chapter(site: Site, page: str) -> None:
    here = (site.folder / page).parent
    links = [str(link["href"]) for link in site.soup(page).select("#chapnav a")]
    reached = {(here / link).resolve() if link else None for link in links}
    for chapter in site.chapters:
        target = (site.folder / f"{chapter}.html").resolve()
        assert target in reached or (chapter == page and None in reached)


@every_page
def test_only_pages_with_such_tables_load_the_script(site: Site, page: str) -> None:
    soup = site.soup(page)
    loaded = bool(soup.select("script[src*='sortable.js']"))
    assert loaded == bool(soup.select("table.sortable"))


def test_each_entry_links_to_the_place_that_explains_it(site: Site) -> None:
    for entry in site.soup("book/pages/glossary").select("dl.glossary > dd"):
        assert entry.select("p:last-child a[href]"), entry.get_text()


def test_the_site_holds_no_file_that_no_page_asks_for(site: Site) -> None:
    texts = {
        path: path.read_text(encoding="utf-8")
        for kind in ("html", "css", "js", "json")
        for path in site.folder.rglob(f"*.{kind}")
    }
    idle = [
        path.relative_to(site.folder).as_posix()
        for folder in ("_static", "_pagefind")
        for path in (site.folder / folder).glob("*.*")
        if path.suffix in (".css", ".js", ".png", ".svg", ".woff2")
        and not any(path.name in text for other, text in texts.items() if other != path)
    ]
    assert [path for path in idle if not path.endswith("pagefind.js")] == []
    assert not list(site.folder.glob("_pagefind/*ui*"))


# -- formulas ----------------------------------------------------------------------------


@every_page
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


@every_page
def test_no_formula_is_left_in_the_text(site: Site, page: str) -> None:
    text = prose(site.soup(page))
    assert not re.findall(r"\$[^$]{1,60}\$|\\\(|\\\[|\\[a-z]{3,}|\{[a-z:]+\}`", text)


def prose(soup: BeautifulSoup) -> str:
    """A page's words: no code, output, figure or rendered formula."""
    main = soup.select_one("main")
    assert main
    others = {id(e) for e in main.select("pre, code, .out, .output, svg, .katex")}
    return " ".join(
        text
        for text in main.strings
        if not any(id(parent) in others for parent in text.parents)
    )


@every_page
def test_every_formula_can_be_read_aloud(site: Site, page: str) -> None:
    for formula in site.soup(page).select(".katex"):
        spoken = formula.select_one("math")
        drawn = formula.select_one(".katex-html")
        assert spoken and spoken.get_text().strip()
        assert spoken.find_parent(attrs={"aria-hidden": "true"}) is None
        assert drawn and drawn["aria-hidden"] == "true"


# -- the page's own policy ---------------------------------------------------------------


@every_page
def test_a_page_has_no_script_inside(site: Site, page: str) -> None:
    check_scripts(site, page)


@pytest.mark.parametrize("other", ["search", "genindex"])
def test_search_and_index_have_no_script_inside(site: Site, other: str) -> None:
    check_scripts(site, other)


def check_scripts(site: Site, page: str) -> None:
    soup = site.soup(page)
    scripts = soup.select('script:not([type="application/ld+json"])')
    assert [script for script in scripts if script.get_text().strip()] == []
    assert [
        e for e in soup.find_all() if any(n.startswith("on") for n in e.attrs)
    ] == []
    assert soup.select("style, [href^='javascript:']") == []
    policy = soup.select_one('meta[http-equiv="Content-Security-Policy"]')
    assert policy is not None
    said = dict(part.split(maxsplit=1) for part in str(policy["content"]).split("; "))
    assert said["default-src"] == "'self'"
    assert "unsafe-inline" not in said["script-src"]
    assert "'unsafe-eval'" not in said["script-src"]
