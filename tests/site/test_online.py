"""How the site is found, and how a reader finds whom to tell, for any repository and address."""

import ast
import os
import posixpath
import re
from urllib.parse import parse_qs, urljoin, urlsplit
from xml.etree import ElementTree

import yaml
from address import online
from built_book import CHAPTERS, PAGES, ROOT, Site, cases, every_page
from online import moved, version
from sphinx.util.inventory import InventoryFile
from sphinx_annotated.page.build.repository import Repository

import labml_primer

NAME = labml_primer.__name__
CONFIGURED = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
HERE = Repository(**online(CONFIGURED, os.environ))


@every_page
def test_the_foot_of_a_page_leads_to_its_source_its_licence_and_a_form(
    site: Site, page: str
) -> None:
    links = {a.get_text(): str(a["href"]) for a in site.soup(page).select(".foot a")}
    assert links["Repository"] == HERE.url
    assert links["MIT license"] == HERE.file("LICENSE")
    kind = "py" if (ROOT / f"{page}.py").is_file() else "md"
    edit = f"{HERE.url}/edit/{HERE.branch}/{page}.{kind}"
    assert links["Edit this page"] == edit
    assert "template=words.yml" in links["Something wrong here?"]
    assert (ROOT / ".github/ISSUE_TEMPLATE/words.yml").is_file()


@cases("page", PAGES, daily=[*PAGES[:1], *CHAPTERS[:2]])
def test_the_foot_of_an_editions_page_leads_to_its_words_and_reports_it(
    site: Site, page: str
) -> None:
    for code in site.editions:
        links = [str(a["href"]) for a in site.soup(f"{code}/{page}").select(".foot a")]
        edit = f"{HERE.url}/edit/{HERE.branch}/book/locale/{code}/{page}.po"
        assert edit in links
        (report,) = (each for each in links if "template=words.yml" in each)
        reported = parse_qs(urlsplit(report).query)["page"]
        assert reported == [f"{HERE.pages}{code}/{page}.html"]


def test_the_root_is_the_welcome_page_with_links_that_work(site: Site) -> None:
    root, welcome = site.soup("index"), site.soup(PAGES[0])
    assert root.title and root.title.get_text() == welcome.title.get_text()  # type: ignore[union-attr]
    assert root.find("main").get_text() == welcome.find("main").get_text()  # type: ignore[union-attr]
    assert root.select("html[lang]") and not root.select("[data-pagefind-body]")
    for element in root.select("[href], [src]"):
        link = str(element.get("href", element.get("src")))
        parts = urlsplit(link)
        if not parts.scheme and parts.path:
            assert (site.folder / parts.path).is_file(), link
    assert str(root.select("link[rel=canonical]")[0]["href"]) == HERE.pages


def test_the_root_of_an_edition_is_its_welcome_page_with_links_that_work(
    site: Site,
) -> None:
    for code in site.editions:
        root, welcome = site.soup(f"{code}/index"), site.soup(f"{code}/{PAGES[0]}")
        assert root.find("main").get_text() == welcome.find("main").get_text()  # type: ignore[union-attr]
        for element in root.select("[href], [src]"):
            link = str(element.get("href", element.get("src")))
            parts = urlsplit(link)
            if not parts.scheme and parts.path:
                assert (site.folder / code / parts.path).is_file(), link


def test_other_books_can_link_to_each_edition_by_name_and_version(site: Site) -> None:
    for folder in ("", *site.editions):
        lines = (site.folder / folder / "objects.inv").read_bytes().split(b"\n")
        title = yaml.safe_load((ROOT / "_config.yml").read_text())["title"]
        assert lines[1].decode() == f"# Project: {title}"
        assert lines[2].decode() == f"# Version: {version(ROOT)}"


def test_other_books_can_link_to_each_name_that_one_imports(site: Site) -> None:
    texts = [(ROOT / f).read_text() for f in ("README.md", "book/pages/use.md")]
    blocks = re.findall(r"^```python\n(.*?)^```$", "\n".join(texts), re.S | re.M)
    imported = {
        f"{node.module}.{alias.name}"
        for block in blocks
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(NAME)
        for alias in node.names
    } | {f"{NAME}.{name}" for name in labml_primer.__all__}
    assert len(imported) > 10
    for folder in ("", *site.editions):
        with (site.folder / folder / "objects.inv").open("rb") as file:
            inventory = InventoryFile.load(file, "", posixpath.join)
        names = {
            name: place[2]
            for kind, found in inventory.items()
            if kind.startswith("py:")
            for name, place in found.items()
        }
        pages = inventory["std:doc"]
        for name in imported:
            if name.replace(".", "/") in pages:
                continue  # a module is a page
            page, _, anchor = names[name].partition("#")
            soup = site.soup(posixpath.join(folder, page.removesuffix(".html")))
            assert soup.find(id=anchor), name


def test_a_page_names_the_feed_at_whatever_depth_it_is(site: Site) -> None:
    folders = ("", *(f"{code}/" for code in site.editions))
    for page in ("index", *(f"{folder}{PAGES[0]}" for folder in folders)):
        (link,) = site.soup(page).select('link[type="application/atom+xml"]')
        place = posixpath.join(posixpath.dirname(page), str(link["href"]))
        assert posixpath.normpath(place) == "feed.xml", page
    assert (site.folder / "feed.xml").is_file()


def test_the_map_has_every_page_once(site: Site) -> None:
    tree = ElementTree.parse(site.folder / "sitemap.xml")
    places = [each.text for each in tree.iter() if each.tag.endswith("loc")]
    english = [HERE.pages + (f"{p}.html" if p != PAGES[0] else "") for p in PAGES]
    others = [f"{HERE.pages}{code}/{p}.html" for code in site.editions for p in PAGES]
    # A page that is hardly translated yet is listed in English alone.
    translated = [address for address in others if address in places]
    assert bool(translated) == bool(site.editions)
    assert sorted(map(str, places)) == sorted(english + translated)
    robots = (site.folder / "robots.txt").read_text()
    assert f"Sitemap: {HERE.pages}sitemap.xml" in robots


def test_the_map_names_the_page_in_each_language_that_it_is_translated_into(
    site: Site,
) -> None:
    tree = ElementTree.parse(site.folder / "sitemap.xml")
    named: set[str] = set()
    for place in tree.getroot():
        (address,) = [each.text for each in place if each.tag.endswith("loc")]
        links = [each.attrib for each in place if each.tag.endswith("link")]
        found = {link["hreflang"]: link["href"] for link in links}
        assert not found or address in found.values()
        named |= found.keys()
    tags = [code.replace("_", "-") for code in site.editions]
    assert sorted(named) == (["en", *tags] if tags else [])


def test_the_page_for_missing_addresses_works_at_any_depth(site: Site) -> None:
    soup, base = site.soup("404"), urlsplit(HERE.pages).path
    assert soup.select(".chapnav a") and soup.select("form.search")
    assert not soup.select("link[rel=canonical]")
    for element in soup.select("[href], [src]"):
        link = str(element.get("href", element.get("src")))
        path = urlsplit(link).path
        if not urlsplit(link).scheme and path:
            assert path.startswith(base), link
            assert (site.folder / path.removeprefix(base)).is_file(), link


def test_a_fork_has_its_own_address_and_a_pull_request_keeps_the_branch() -> None:
    ours = {"url": "https://github.com/a/b", "branch": "main", "site": "https://b.org"}
    assert online(ours, {}) == ours
    fork = {"GITHUB_REPOSITORY": "c/d", "GITHUB_REF": "refs/heads/draft"}
    assert online(ours, fork) == {"url": "https://github.com/c/d", "branch": "draft"}
    request = {"GITHUB_REPOSITORY": "a/b", "GITHUB_REF": "refs/pull/3/merge"}
    assert online(ours, request) == ours
    elsewhere = online(ours, {**fork, "BOOK_SITE": "https://d.org/book"})
    assert Repository(**elsewhere).pages == "https://d.org/book/"
    assert Repository(**online(ours, fork)).pages == "https://c.github.io/d/"
    pipeline = {"CI_PROJECT_URL": "https://gitlab.com/c/d", "CI_COMMIT_BRANCH": "x"}
    assert online(ours, pipeline) == {"url": "https://gitlab.com/c/d", "branch": "x"}
    forgejo = {**fork, "GITHUB_SERVER_URL": "https://codeberg.org"}
    assert Repository(**online(ours, forgejo)).pages == "https://c.codeberg.page/d/"


def test_a_moved_page_keeps_where_its_links_lead() -> None:
    page = (
        '<a href="../x/y.html#z"><img src="a.png"><a href="#b"><a href="https://c.org">'
    )
    here = "book/pages/index.html"
    for to in ("./", "/base/"):
        links = moved(page, here, to).split('"')[1::2]
        assert links[2:] == ["#b", "https://c.org"]
        assert (
            links[0] == f"{to}book/x/y.html#z" and links[1] == f"{to}book/pages/a.png"
        )
    assert moved(moved(page, here, "/base/"), here, "/base/") == moved(
        page, here, "/base/"
    )
    assert urljoin("https://a.org/", "./x") == "https://a.org/x"
