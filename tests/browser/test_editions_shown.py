"""The book in another language, as its readers meet it: light, without barriers, found by its own words."""

import re
from pathlib import Path
from zipfile import ZipFile

import offline
import pytest
from built_book import PAGES, ROOT, Site, cases
from editions.catalogues import read
from lookups import JAPANESE
from measures import KINDS, SIDEWAYS
from playwright.sync_api import Browser, expect
from visits import Visitor, barriers, missed, resized, settle, weights

LOCALE = ROOT / "book" / "locale"
FOUND = "Search finished, found ${resultCount} pages matching the search query."
HEAVIEST = "ja/labml_primer/compared/t5"
# Their first hits are the terms of the glossary, by their own names and by the English ones.
TERMS = ("depthwise convolution", "residual stream", "layer normalization")


@pytest.fixture(autouse=True)
def published(site: Site) -> None:
    if "ja" not in site.editions:
        pytest.skip("this site has no Japanese edition")


def test_the_heaviest_first_view_of_the_edition_weighs_at_most_120_kilobytes(
    visit: Visitor, site: Site
) -> None:
    opened = visit(HEAVIEST)
    settle(opened.page)
    parts = weights(site, opened.asked)
    assert "ja/_static/words.js" in parts
    assert sum(parts.values()) <= 120_000, parts


@pytest.mark.parametrize("name", ["ja/labml_primer/transformer/decoder", "ja/search"])
def test_a_page_of_the_edition_has_no_barrier(visit: Visitor, name: str) -> None:
    opened = visit(name, width=390).page
    settle(opened)
    assert barriers(opened) == []


@cases("page", PAGES, daily=KINDS)
def test_nothing_of_the_edition_scrolls_sideways(visit: Visitor, page: str) -> None:
    opened = visit(f"ja/{page}", width=390).page
    for width in (390, 320):
        resized(opened, width)
        assert opened.evaluate(SIDEWAYS) == []


def test_the_switch_leads_to_the_same_page_in_the_other_language(
    visit: Visitor,
) -> None:
    opened = visit("labml_primer/transformer/decoder").page
    opened.locator(".topbar .language[lang=ja]").click()
    opened.wait_for_url("**/ja/labml_primer/transformer/decoder.html*")
    expect(opened.locator("html")).to_have_attribute("lang", "ja")
    opened.locator(".topbar .language[lang=en]").click()
    expect(opened.locator("html")).to_have_attribute("lang", "en")


def test_on_a_phone_the_title_of_the_book_is_whole_and_the_languages_are_in_the_drawer(
    visit: Visitor,
) -> None:
    opened = visit("labml_primer/transformer/decoder", width=390).page
    title = opened.locator(".topbar__title")
    assert title.evaluate("e => e.scrollWidth <= e.clientWidth")
    opened.locator("#nav-toggle").click()
    opened.locator(".chapnav .language[lang=ja]").click()
    expect(opened.locator("html")).to_have_attribute("lang", "ja")


def own_names(site: Site, code: str) -> dict[str, str]:
    """The terms of an edition's glossary by their English names, which are in brackets after them."""
    terms = [term.get_text() for term in site.soup(f"{code}/book/pages/glossary")("dt")]
    found = [re.match(r"(.+)（(.+)）", term) for term in terms]
    return {match[2]: match[1] for match in found if match}


def test_a_search_by_its_own_or_its_english_name_finds_the_term_first(
    visit: Visitor, site: Site
) -> None:
    for code in site.editions:
        opened, names = visit(f"{code}/book/pages/index").page, own_names(site, code)
        for english in TERMS:
            for query in (english, names[english]):
                opened.locator(".search input").fill(query)
                first = opened.locator("#hits [role=option]").first
                expect(first).to_contain_text(names[english])


def test_look_ups_in_japanese_find_the_right_place_among_the_first_three(
    visit: Visitor,
) -> None:
    opened = visit("ja/book/pages/index").page
    opened.locator(".search input").focus()  # which loads the search
    opened.locator("#hits").wait_for(state="attached")
    assert missed(opened, JAPANESE) == {}


def test_a_column_of_words_has_four_letters_in_a_line_on_a_phone(
    visit: Visitor,
) -> None:
    opened = visit("ja/book/pages/use", width=390).page
    letters = opened.evaluate(
        """() => [...document.querySelectorAll("td:not(.text-right)")].map(
             cell => cell.clientWidth / parseFloat(getComputedStyle(cell).fontSize))"""
    )
    assert letters and min(letters) >= 3.9


def test_the_link_at_a_term_is_named_in_japanese(site: Site) -> None:
    links = site.soup("ja/book/pages/glossary").select("dt > a.headerlink")
    assert {link["title"] for link in links} == {"この用語へのリンク"}


def test_the_archives_search_finds_compounds(
    chromium: Browser, site: Site, tmp_path: Path
) -> None:
    """The search page of each edition's archive, opened from disk."""
    for code in site.editions:
        offline.archive(site.folder, tmp_path / f"{code}.zip", code)
        with ZipFile(tmp_path / f"{code}.zip") as zipped:
            zipped.extractall(tmp_path)
        words = {m.english: m.text for m in read(LOCALE / code / "words.po")}
        page, names = chromium.new_page(), own_names(site, code)
        page.goto((tmp_path / f"{code}/{code}/search.html").as_uri())
        for english in ("attention", "random seed"):
            page.locator(".search-page input").fill(names[english])
            page.locator(".search-page button").click()
            heading = page.locator("#search-results h2")
            expect(heading).to_have_text(words["Search Results"])
            said = page.locator(".search-summary")
            count = re.escape(words[FOUND]).replace(
                re.escape("${resultCount}"), r"[1-9]\d*"
            )
            expect(said).to_have_text(re.compile(f"^{count}$"))
        page.close()
