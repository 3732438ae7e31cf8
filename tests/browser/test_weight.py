"""What a page weighs, and whether it stands still while it comes."""

import time
from contextlib import closing

import pytest
from built_book import PAGES, Site, cases, every_chapter
from measures import KINDS, LOADED, SHIFTS, Looker, every_look
from playwright.sync_api import Browser, Route
from visits import Visitor, settle, weights

RARE = "KaTeX_"  # the fonts of a formula's rare signs


@every_chapter
def test_the_first_view_of_a_chapter_weighs_at_most_120_kilobytes(
    look: Looker, site: Site, chapter: str
) -> None:
    parts = weights(site, look(chapter, 1400, "light")["asked"])
    assert any(name.endswith(".woff2") for name in parts)
    assert sum(parts.values()) <= 120_000, parts


@every_look
def test_nothing_shifts_while_a_page_loads(
    look: Looker, visit: Visitor, page: str, width: int, theme: str
) -> None:
    shifts = look(page, width, theme)["shifts"]
    if moved(shifts) >= 0.02:  # by fonts that came late, perhaps; now they are at hand
        again = visit(page, width, theme).page
        again.reload()
        settle(again)
        shifts = again.evaluate(LOADED["shifts"])
    assert moved(shifts) < 0.02, shifts


@pytest.mark.parametrize("page", ["book/pages/deviations", KINDS[1]])
def test_fonts_that_come_late_shift_little(
    chromium: Browser, site: Site, page: str
) -> None:
    """A formula may go to another line. Browsers call less than 0.1 good."""
    with closing(chromium.new_context(viewport={"width": 1400, "height": 900})) as new:
        new.add_init_script(SHIFTS)
        opened = new.new_page()
        opened.route("**/*.woff2", late)
        opened.goto(site.url(page))
        settle(opened)
        assert moved(opened.evaluate(LOADED["shifts"])) < 0.1


def late(route: Route) -> None:
    """Let a font come after the page has been drawn."""
    time.sleep(0.3)
    route.continue_()


def moved(shifts: list[tuple[float, list[str]]]) -> float:
    return sum(value for value, _nodes in shifts)


@cases("page", PAGES, daily=KINDS)
def test_a_page_loads_at_once_the_fonts_that_it_needs(look: Looker, page: str) -> None:
    found = look(page, 1400, "light")
    preloaded, needed = set(found["preloaded"]), set(found["fonts"])
    folded = set(found.get("paper", found)["fonts"])  # on paper all folds are open
    assert any(url.endswith("/serif.woff2") for url in needed)
    assert preloaded <= needed | folded  # none in vain
    late = {url.split("/")[-1] for url in (needed | folded) - preloaded}
    assert {name for name in late if not name.startswith(RARE)} == set()
    asked = [url for url in found["asked"] if url.endswith(".woff2")]
    assert sorted(asked) == sorted(needed | preloaded)  # each of them once
