"""The book in another language, as its readers meet it: light, without barriers, found by its own words."""

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import offline
import pytest
from built_book import PAGES, Site, cases
from lookups import JAPANESE
from measures import KINDS, SIDEWAYS
from playwright.sync_api import Browser, Page, expect
from visits import Visitor, answers, barriers, resized, settle, weights

HEAVIEST = "ja/labml_primer/compared/t5"
SEARCHES = {
    "深さ方向畳み込み": "深さ方向畳み込み",
    "depthwise convolution": "深さ方向畳み込み",  # by its English name
    "残差ストリーム": "残差ストリーム",
    "正規化": "正規化",
}


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
    opened.locator(".topbar__language").click()
    opened.wait_for_url("**/ja/labml_primer/transformer/decoder.html*")
    expect(opened.locator("html")).to_have_attribute("lang", "ja")
    opened.locator(".topbar__language").click()
    expect(opened.locator("html")).to_have_attribute("lang", "en")


def test_a_search_by_japanese_or_english_name_finds_the_term_first(
    visit: Visitor, site: Site
) -> None:
    opened = visit("ja/book/pages/index").page
    terms = [term.get_text() for term in site.soup("ja/book/pages/glossary")("dt")]
    for query, wanted in SEARCHES.items():
        if not any(term.startswith(wanted) for term in terms):
            continue  # its English has changed, and is not translated yet
        opened.locator(".search input").fill(query)
        expect(opened.locator("#hits [role=option]").first).to_contain_text(wanted)


def test_look_ups_in_japanese_find_the_right_place_among_the_first_three(
    visit: Visitor,
) -> None:
    opened = visit("ja/book/pages/index").page
    opened.locator(".search input").focus()  # which loads the search
    opened.locator("#hits").wait_for(state="attached")
    first = {words: answers(opened, words)[:3] for words in JAPANESE}
    missed = {
        words: first[words]
        for words, places in JAPANESE.items()
        if not any(url.endswith(places) for url in first[words])
        and (places or first[words])
    }
    assert missed == {}


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


@pytest.fixture
def search_page(chromium: Browser, site: Site, tmp_path: Path) -> Iterator[Page]:
    """The search page of the edition's archive, opened from disk."""
    offline.archive(site.folder, tmp_path / "book.zip", "ja")
    with ZipFile(tmp_path / "book.zip") as zipped:
        zipped.extractall(tmp_path)
    page = chromium.new_page()
    page.goto((tmp_path / "book/ja/search.html").as_uri())
    yield page
    page.close()


def test_the_archives_search_finds_japanese_compounds(search_page: Page) -> None:
    for query in ("注意機構", "乱数シード"):
        search_page.locator(".search-page input").fill(query)
        search_page.locator(".search-page button").click()
        expect(search_page.locator("#search-results h2")).to_have_text("検索結果")
        said = search_page.locator(".search-summary")
        expect(said).to_have_text(re.compile(r"^[1-9]\d*ページが見つかりました。$"))
