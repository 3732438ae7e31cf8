"""Whoever reads, with whatever they read: no barrier, by keyboard alone, without scripts."""

from collections.abc import Callable
from itertools import starmap

import pytest
from built_book import PAGES, cases, nightly
from measures import LOOKS, Looker, Reader, every_look
from playwright.sync_api import Locator, Page, expect
from visits import Reading, Visit, Visitor, barriers, in_theme, settle

ATTENTION = "labml_primer/transformer/attention"
DECODER = "labml_primer/transformer/decoder"  # short, so that axe is quick
PRIMER = "labml_primer/primer/primer_ez"
FOLDED = "experiments/chapters/sizes"


# The rules that a theme can break, which changes colours and nothing else.
COLOURS = ["color-contrast", "link-in-text-block"]

# -- barriers -------------------------------------------------------------------------------


# Each is none of the book's pages, yet a reader comes to it.
@pytest.mark.parametrize("width", [nightly(1400), 390])
@pytest.mark.parametrize("other", ["search", "genindex"])
def test_search_and_index_have_no_barrier(
    visit: Visitor, other: str, width: int
) -> None:
    page = visit(other, width=width).page
    settle(page)
    in_theme(page, "light")
    assert barriers(page) == []
    in_theme(page, "dark")
    assert barriers(page, COLOURS) == [], "dark"


def test_every_link_of_the_index_is_large_enough_for_a_finger(visit: Visitor) -> None:
    opened = visit("genindex", width=390).page
    assert barriers(opened, ["target-size"]) == []


@every_look
def test_what_can_be_clicked_is_as_large_as_a_fingertip(
    look: Looker, page: str, width: int, theme: str
) -> None:
    found = look(page, width, theme)
    assert found["small"] == []
    assert found.get("phone", found)["small"] == []


OPEN: dict[str, Callable[[Page], None]] = {
    "drawer": lambda page: page.locator("#nav-toggle").click(),
    "menu": lambda page: page.locator(".menu summary").first.click(),
    "results": lambda page: searched(page),
    "keys": lambda page: page.keyboard.press("?"),
    "tip": lambda page: pointed_at(page.locator("[data-shape]:visible").first),
}


def searched(page: Page) -> None:
    page.locator("form.search input").fill("softmax")
    page.locator("form.search [role=option]").first.wait_for()


def pointed_at(element: Locator) -> None:
    """The pointer comes to it once the page stands still, as a reader's does."""
    element.scroll_into_view_if_needed()
    settle(element.page)
    element.hover()


# What each of them opens. The page around it has a test of its own.
OPENED = {
    "drawer": "#chapnav",
    "menu": ".menu__list",
    "results": "#hits",
    "keys": "#keys",
    "tip": "#tip",
}


@pytest.mark.parametrize("what", OPEN)
def test_what_is_opened_has_no_barrier(reading: Reading, what: str) -> None:
    page, part = reading(DECODER, 1000), OPENED[what]
    in_theme(page, "light")
    OPEN[what](page)
    expect(page.locator(part).first).to_be_visible()
    assert barriers(page, within=part) == []
    in_theme(page, "dark")
    assert barriers(page, COLOURS, within=part) == [], "dark"


# -- the keyboard ---------------------------------------------------------------------------

FOCUSABLE = """() => [...document.querySelectorAll(
    "a[href], button, input, summary, [tabindex]")].filter(e =>
    e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true})
      && e.id !== "main").length"""

FOCUSED = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  const seen = !e.dataset.walked;
  e.dataset.walked = "yes";
  return {
    name: e.outerHTML.slice(0, 120),
    seen,
    marked: e.matches(":focus-visible") && style.outlineStyle !== "none"
      && parseFloat(style.outlineWidth) >= 2,
    colour: style.outlineColor,
    inside: box.bottom > 0 && box.top < innerHeight
      && box.right > 0 && box.left < innerWidth && box.width > 0,
  };
}"""


@pytest.mark.parametrize(("width", "theme"), [*LOOKS[:2], *starmap(nightly, LOOKS[2:])])
def test_tab_reaches_all_and_its_place_is_seen(
    visit: Visitor, theme: str, width: int
) -> None:
    page = visit(PRIMER, theme=theme, width=width).page
    settle(page)
    wanted, places = page.evaluate(FOCUSABLE), []
    while True:
        page.keyboard.press("Tab")
        place = page.evaluate(FOCUSED)
        if place is None or not place["seen"]:
            break
        places.append(place)
    assert [p["name"] for p in places if not (p["marked"] and p["inside"])] == []
    assert len(places) == wanted
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for colour in {p["colour"] for p in places}:
        assert contrast(page, colour, ground) >= 3


def contrast(page: Page, one: str, other: str) -> float:
    """The contrast of two opaque colours, as WCAG counts it."""
    found: float = page.evaluate(
        """colours => {
          const light = colour => colour.match(/[\\d.]+/g).slice(0, 3)
            .map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0) + .05;
          const [a, b] = colours.map(light);
          return Math.max(a, b) / Math.min(a, b);
        }""",
        [one, other],
    )
    return found


def test_the_first_tab_skips_to_the_text(visit: Visitor) -> None:
    page = visit(PRIMER).page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_escape_closes_a_menu_and_gives_the_focus_back(reading: Reading) -> None:
    page = reading(PRIMER)
    summary = page.locator(".menu summary").first
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".menu__list").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.locator(".menu__list").first).to_be_hidden()
    expect(summary).to_be_focused()


# -- motion, scripts ------------------------------------------------------------------------


def test_nothing_moves_where_motion_is_not_wanted(visit: Visitor) -> None:
    page = visit(PRIMER).page  # the fixture asks for reduced motion
    moving = """() => [document.documentElement, ...document.querySelectorAll("*")].filter(e =>
        ["", "::before", "::after"].some(part => {
          const style = getComputedStyle(e, part || null);
          return parseFloat(style.transitionDuration) > 0 || parseFloat(style.animationDuration) > 0
            || style.scrollBehavior === "smooth";
        })).length"""
    assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(moving) > 0


@cases("page", PAGES, daily=[ATTENTION, PRIMER, FOLDED])
def test_without_scripts_nothing_is_hidden_and_nothing_is_dead(
    bare: Reader, page: str
) -> None:
    assert bare(page)["hidden"] == []
    assert bare(page)["dead"] == []


# -- the page's own policy ------------------------------------------------------------------


def test_the_policy_stops_a_script_that_slipped_in(visit: Visitor) -> None:
    opened = visit(PRIMER)
    opened.page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.slipped = true";
          document.body.append(script);
        }"""
    )
    assert not opened.page.evaluate("window.slipped")
    assert any("Content Security Policy" in text for text in opened.said)


def test_all_that_a_reader_does_is_within_the_policy(visit: Visitor) -> None:
    opened: Visit = visit(ATTENTION, width=1000)
    for what, act in OPEN.items():
        act(opened.page)
        opened.page.keyboard.press("Escape")
        assert opened.said == [], what
