"""What every page of the book promises in a browser, chapter or not."""

import pytest
from built_book import PAGES, Site, cases, every_page, nightly
from measures import KINDS, Looker, every_look
from visits import Visitor


def test_the_first_page_is_reached_from_the_root(visit: Visitor, site: Site) -> None:
    page = visit("index").page
    assert (
        page.locator("h1").text_content()
        == visit(site.pages[0]).page.locator("h1").text_content()
    )
    page.locator("main a[href$='attention.html']").first.click()
    page.wait_for_url("**/labml_primer/transformer/attention.html")


@every_look
def test_a_page_gives_the_browser_no_cause_to_complain(
    look: Looker, page: str, width: int, theme: str
) -> None:
    assert look(page, width, theme)["said"] == []


@every_look
def test_a_page_asks_for_nothing_that_is_not_the_sites_own(
    look: Looker, site: Site, page: str, width: int, theme: str
) -> None:
    found = look(page, width, theme)
    assert found["failed"] == []
    assert [url for url in found["asked"] if not url.startswith(site.address)] == []
    assert len(found["asked"]) > 1


@every_look
def test_nothing_scrolls_sideways(
    look: Looker, page: str, width: int, theme: str
) -> None:
    found = look(page, width, theme)
    wider = found["sideways"]  # at this width, and at each below
    between = {1000, 360} if width == 1400 else {360}
    full = page in KINDS or "barriers" in found  # by day, of a page of each kind
    assert set(wider) == {width, 390, 320} | (between if full else set())
    assert {width: elements for width, elements in wider.items() if elements} == {}


@every_page
def test_no_code_in_prose_is_cut_where_there_is_room(look: Looker, page: str) -> None:
    assert look(page, 1400, "light")["cut in prose"] == []


@pytest.mark.parametrize("theme", ["light", nightly("dark")])
@cases("page", PAGES, daily=KINDS)
def test_a_page_has_no_barrier(look: Looker, page: str, theme: str) -> None:
    assert look(page, 1400, theme)["barriers"] == []


@pytest.mark.parametrize("theme", ["dark", nightly("light")])
@cases("page", PAGES, daily=KINDS)
def test_a_page_has_no_barrier_on_a_phone(look: Looker, page: str, theme: str) -> None:
    assert look(page, 390, theme)["barriers"] == []


def test_letters_come_from_the_books_own_fonts(visit: Visitor) -> None:
    opened = visit("book/pages/references")
    assert opened.page.evaluate("document.fonts.check('17px \"Source Serif 4\"')")
    assert any("serif-ext.woff2" in url for url in opened.asked)  # for the ń of Mańke


@every_page
def test_what_is_not_seen_at_once_is_in_a_fold_that_the_browsers_search_opens(
    look: Looker, page: str
) -> None:
    assert look(page, 1400, "light")["out of reach"] == []
