"""What programs are told of a page: its card, what it is, and what has changed."""

import json
import os
import re
from datetime import date
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import cards
import pytest
import yaml
from address import online
from bs4 import BeautifulSoup, SoupStrainer
from built_book import CHAPTERS, PAGES, ROOT, Site, cases, every_page
from changelog import moment, releases
from described import locale, released
from online import changes, headers, with_reports
from PIL import Image
from sphinx_annotated.page.build.repository import Repository

CONFIGURED = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
HERE = Repository(**online(CONFIGURED, os.environ))
ATOM = "{http://www.w3.org/2005/Atom}"


def said(site: Site, page: str) -> dict[str, str]:
    """What a page says of itself to other sites."""
    head = BeautifulSoup(site.text(page).partition("</head>")[0], "html.parser")
    found = head.find_all("meta", property=True)
    return {str(each["property"]): str(each["content"]) for each in found}


@every_page
def test_a_page_names_its_card_and_says_what_it_is(site: Site, page: str) -> None:
    soup, open_graph = site.soup(page), said(site, page)
    address = HERE.pages + (f"{page}.html" if page != PAGES[0] else "")
    (canonical,) = soup.select("link[rel=canonical]")
    assert open_graph["og:url"] == str(canonical["href"]) == address
    described = soup.select_one("meta[name=description]")
    assert described and open_graph["og:description"] == described["content"]
    assert open_graph["og:title"] and open_graph["og:image:alt"]
    card = site.folder / open_graph["og:image"].removeprefix(HERE.pages)
    with Image.open(card) as image:
        assert (image.format, image.size) == ("PNG", (1200, 630))
    (script,) = soup.select('script[type="application/ld+json"]')
    article = json.loads(script.get_text())
    assert article["@context"] == "https://schema.org"
    assert article["@type"] == "TechArticle" and article["url"] == address
    assert article["headline"] == open_graph["og:title"]
    assert article["image"] == open_graph["og:image"]
    assert article["author"]["name"] and article["license"] == HERE.file("LICENSE")
    begun, changed = article["datePublished"], article["dateModified"]
    assert date.fromisoformat(begun) <= date.fromisoformat(changed)
    assert (begun, changed) == (
        open_graph["article:published_time"],
        open_graph["article:modified_time"],
    )
    feed = soup.select_one('link[type="application/atom+xml"]')
    assert feed and (site.folder / page).parent.joinpath(str(feed["href"])).is_file()


def test_a_page_names_its_language_with_a_country_where_it_is_read() -> None:
    found = [locale(code) for code in ("en", "ja", "zh_Hans", "pt_BR")]
    assert found == ["en_GB", "ja_JP", "zh_CN", "pt_BR"]


def test_a_card_shows_the_first_picture_of_the_page_and_its_title() -> None:
    files = cards.fonts(ROOT / "_build" / ".fonts-of-cards")
    svg = '<svg class="picture" viewBox="0 0 400 200" aria-label="A"><rect class="c0"/></svg>'
    long = "A title of many words that needs more than five lines at its first size, in all"
    card = cards.card(long, "Part", "Book", svg, files)
    lines = re.findall(r'<text class="title"[^>]*>([^<]*)</text>', card)
    assert " ".join(lines) == long and len(lines) <= 5
    assert svg[5:20] in card and "Part" in card and "Book" in card
    assert "var(" not in card and ":is(" not in card
    assert not re.search(r"[^\w-]title", cards.card("T", "", "", "", files)[:50])


def test_a_card_is_drawn_again_only_if_it_changes(tmp_path: Path) -> None:
    files = cards.fonts(ROOT / "_build" / ".fonts-of-cards")
    path = tmp_path / "card.png"
    cards.write(path, cards.card("One", "", "", "", files), files)
    first = path.read_bytes()
    os.utime(path, (1, 1))
    cards.write(path, cards.card("One", "", "", "", files), files)
    assert path.stat().st_mtime == 1
    cards.write(path, cards.card("Two", "", "", "", files), files)
    assert path.read_bytes() != first


def test_the_feed_has_each_release_and_what_comes_next(site: Site) -> None:
    feed = ElementTree.parse(site.folder / "feed.xml").getroot()
    assert feed.tag == f"{ATOM}feed"
    for name in ("title", "id", "updated", "author"):
        assert len(feed.findall(ATOM + name)) == 1
    links = {link.get("rel"): link.get("href") for link in feed.findall(f"{ATOM}link")}
    assert links == {None: HERE.pages, "self": f"{HERE.pages}feed.xml"}
    entries = feed.findall(f"{ATOM}entry")
    listed = releases(ROOT, HERE)
    assert len(entries) == len(listed) > 1
    assert feed.findtext(f"{ATOM}updated") == entries[0].findtext(f"{ATOM}updated")
    for entry, release in zip(entries, listed, strict=True):
        address = str(entry.findtext(f"{ATOM}id")).removeprefix(HERE.pages)
        page, _, anchor = address.partition("#")
        assert site.soup(page.removesuffix(".html")).find(id=anchor)
        day = entry.findtext(f"{ATOM}updated")
        assert day == moment(release.day) or not release.day
        content = BeautifulSoup(str(entry.findtext(f"{ATOM}content")), "html.parser")
        assert len(content.select("li")) == release.text.count("\n- ") + 1


def test_without_a_history_the_days_are_those_of_the_release(tmp_path: Path) -> None:
    assert changes(tmp_path) == {}
    assert date.fromisoformat(released(ROOT)).year >= 2026


def test_the_headers_are_the_policy_of_the_pages_and_what_no_page_can_say(
    site: Site,
) -> None:
    (policy,) = site.soup(PAGES[0]).select('meta[http-equiv="Content-Security-Policy"]')
    text = (site.folder / "_headers").read_text()
    assert text == headers(site.text(PAGES[0]))
    assert f"{policy['content']}; frame-ancestors 'none'\n" in text
    assert "X-Content-Type-Options: nosniff" in text


@cases("chapter", CHAPTERS, daily={"labml_primer/transformer/attention"})
def test_each_section_has_a_form_with_its_address_its_line_and_the_commit(
    site: Site, chapter: str
) -> None:
    links = site.soup(chapter).select("a.wrong")
    assert links
    for link in links:
        heading = link.parent
        assert heading and link["aria-hidden"] == "true" and link["tabindex"] == "-1"
        assert f"%23{heading['id']}" in str(link["href"]) or "%" in str(heading["id"])
        assert str(link["href"]).startswith(f"{HERE.url}/issues/new?template=words.yml")
    given = "".join(str(link["href"]) for link in links)
    lines = map(int, re.findall(r"line=(\d+)", given))
    assert all(
        line in range(1, len(site.module(chapter).split("\n"))) for line in lines
    )
    assert "line=" in given
    if changes(ROOT):
        assert re.search(r"commit\+[0-9a-f]{7}", given)


def test_a_report_has_the_first_line_of_its_own_section_alone() -> None:
    def heading(name: str) -> str:
        return f'<h2 id="{name}">T<a class="headerlink" href="#{name}" aria-label="x">#</a></h2>'

    line = '<span class="ln" id="L7">'
    body = heading("a") + heading("b") + line

    def report(where: dict[str, str]) -> str:
        return f"f?{urlencode({'k': 'v', **where})}"

    links = re.findall(r'href="(f[^"]*)"', with_reports(body, "p", report))
    assert links == ["f?k=v&amp;page=p%23a", "f?k=v&amp;page=p%23b&amp;line=7"]


@pytest.mark.parametrize("page", ["deviations", "numbers"])
def test_a_generated_page_has_something_of_every_chapter(site: Site, page: str) -> None:
    soup = site.soup(f"book/pages/{page}")
    links = {str(a["href"]).partition("#")[0] for a in soup.select("main a[href]")}
    mark = {"deviations": 'class="note note--deviation"', "numbers": 'class="value"'}
    having = [chapter for chapter in CHAPTERS if mark[page] in site.text(chapter)]
    assert len(having) > 15
    for chapter in having:
        if not chapter.startswith("book/"):
            assert f"../../{chapter}.html" in links, chapter


def test_the_numbers_are_those_of_the_chapters(site: Site) -> None:
    listed = site.soup("book/pages/numbers").select(".value")
    only = SoupStrainer("p")  # much faster than whole pages
    values = [
        value.get_text()
        for chapter in CHAPTERS
        for value in BeautifulSoup(
            site.text(chapter), "html.parser", parse_only=only
        ).find_all(class_="value")
    ]
    assert len(values) > 100
    assert sorted(value.get_text() for value in listed) == sorted(values)


def test_every_deviation_is_listed_once(site: Site) -> None:
    items = site.soup("book/pages/deviations").select(".deviations > ul > li")
    notes = "".join(map(site.text, CHAPTERS)).count('class="note note--deviation"')
    assert len(items) == notes > 90
