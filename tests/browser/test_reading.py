"""What a reader does with the book: goes through it, looks things up, takes things along."""

import re

import pytest
from built_book import CHAPTERS, Site, cases, nightly
from playwright.sync_api import Page, expect
from visits import Reading, Visitor, settle

PRIMER = "labml_primer/primer/primer_ez"
ATTENTION = "labml_primer/transformer/attention"


def theme(page: Page) -> tuple[str, str]:
    """The theme that is set, and the ground that is seen."""
    found: list[str] = page.evaluate(
        "[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]"
    )
    return found[0], found[1]


# -- light and dark -------------------------------------------------------------------------


def test_the_theme_follows_the_system_until_it_is_chosen(visit: Visitor) -> None:
    page = visit(ATTENTION).page
    light = theme(page)
    assert light[0] == "light"
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert theme(page)[1] != light[1]


def test_the_theme_that_is_chosen_is_remembered(visit: Visitor, site: Site) -> None:
    page = visit(ATTENTION).page
    light = theme(page)
    page.get_by_role("button", name="Light or dark").press("Enter")
    dark = theme(page)
    assert dark[0] == "dark"
    assert dark[1] != light[1]
    page.reload()
    assert theme(page) == dark
    page.goto(site.url(PRIMER))
    assert theme(page) == dark
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    assert theme(page) == dark
    page.get_by_role("button", name="Light or dark").click()
    assert theme(page) == light


# -- the way through ------------------------------------------------------------------------


def test_the_drawer_opens_and_closes_by_keyboard(visit: Visitor) -> None:
    page = visit(ATTENTION, width=1000).page
    button, drawer = page.locator("#nav-toggle"), page.locator("#chapnav")
    expect(drawer).to_be_hidden()
    for _ in range(3):  # the link that skips to the text, then the button
        page.keyboard.press("Tab")
        if button.evaluate("e => e === document.activeElement"):
            break
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(drawer).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    assert drawer.evaluate("e => e.contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "false")


@pytest.mark.parametrize("width", [1400, 1000])
def test_the_chapter_is_in_sight_in_the_list_and_the_page_at_its_top(
    visit: Visitor, site: Site, width: int
) -> None:
    page = visit(site.chapters[-1], width=width).page
    page.set_viewport_size({"width": width, "height": 500})
    page.reload()
    settle(page)
    if width == 1000:
        page.locator("#nav-toggle").click()
    expect(page.locator("#chapnav [aria-current=page]")).to_be_in_viewport()
    assert page.evaluate("scrollY") == 0


def test_the_chapter_list_can_be_put_away_and_stays_away(visit: Visitor) -> None:
    page = visit(ATTENTION).page
    expect(page.locator("#chapnav")).to_be_visible()
    page.locator("#nav-toggle").click()
    expect(page.locator("#chapnav")).to_be_hidden()
    page.reload()
    expect(page.locator("#chapnav")).to_be_hidden()


def test_a_name_in_the_code_leads_to_its_definition_in_another_chapter(
    reading: Reading, site: Site
) -> None:
    page = reading(PRIMER)
    page.locator(".code a.ref", has_text="MultiHeadAttention").first.click()
    page.wait_for_url(f"{site.url(ATTENTION)}#MultiHeadAttention")
    definition = page.locator("#MultiHeadAttention .ln").first
    expect(definition).to_contain_text("class MultiHeadAttention")
    expect(definition).to_be_in_viewport()


def test_a_name_in_the_code_leads_to_its_definition_on_the_page(
    reading: Reading,
) -> None:
    page = reading(PRIMER)
    name = "SpatialDepthWiseConvolution"
    page.locator(f".code a.ref[href='#{name}']:visible").last.click()
    definition = page.locator(f"#{name} .ln").first
    expect(definition).to_be_in_viewport()
    marked, plain = page.evaluate(
        """id => [`#${id} .ln`, ".ln:not(.ln--deviation)"].map(
            name => getComputedStyle(document.querySelector(name)).boxShadow)""",
        name,
    )
    assert marked != plain


def test_arrows_walk_the_numbers_of_lines(reading: Reading) -> None:
    page = reading(PRIMER)
    page.locator(".lno").first.focus()
    line = "Number(document.activeElement.parentNode.id.slice(1))"
    before = page.evaluate(line)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(line) == before + 2


# -- looking things up ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "where"),
    [
        ("walk-through", PRIMER),  # of prose
        ("scaled_dot_product_attention", ATTENTION),  # of code, with underscores
        nightly("SpatialDepthWiseConvolution", PRIMER),
        nightly("padding", ATTENTION),
    ],
)
def test_the_search_finds_a_word(
    visit: Visitor, site: Site, word: str, where: str
) -> None:
    opened = visit(where)
    opened.page.keyboard.press("/")
    opened.page.keyboard.type(word)
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_url(re.compile("search.html"))
    found = opened.page.locator(
        f"#search-results a[href*='{where.split('/')[-1]}.html']"
    )
    found.first.wait_for()
    assert not opened.said
    assert [url for url in opened.asked if not url.startswith(site.address)] == []
    found.first.press("Enter")  # results move while their excerpts arrive
    opened.page.wait_for_url(re.compile(f"{where}.html"))


def test_on_a_phone_the_field_has_room_while_one_types(visit: Visitor) -> None:
    page = visit(PRIMER, width=390).page
    field = page.locator(".search input")
    field.focus()
    box = field.bounding_box()
    assert box and box["width"] > 250


def test_a_search_for_nothing_that_is_there_says_so(visit: Visitor) -> None:
    page = visit("search").page
    page.locator(".search-page input").fill("xylophone")
    page.keyboard.press("Enter")
    expect(page.locator("#search-results")).to_contain_text("did not match")


# -- without scripts, on paper --------------------------------------------------------------


@pytest.mark.parametrize("width", [1400, nightly(1000), 390])
def test_without_scripts_all_can_be_read_and_reached(
    visit: Visitor, site: Site, width: int
) -> None:
    page = visit(PRIMER, width=width, scripts=False).page
    expect(page.locator("h1")).to_be_visible()
    figure = ":is(.plot, .plot-narrow)"  # one of the two is shown
    for part in (".sbs__prose", ".code", ".out", figure, ".katex"):
        expect(page.locator(f"{part}:visible").first).to_be_visible()
    for chapter in site.chapters:
        link = page.locator(f"#chapnav a[href$='{chapter.split('/')[-1]}.html']")
        if chapter == PRIMER:
            link = page.locator("#chapnav a[aria-current=page]")
        expect(link.first).to_be_visible()
    link = page.locator("#chapnav a[href$='attention.html']").first
    link.click()
    page.wait_for_url(site.url(ATTENTION))


def test_without_scripts_the_theme_is_the_systems(visit: Visitor) -> None:
    light = visit(ATTENTION, scripts=False).page
    dark = visit(ATTENTION, scripts=False, theme="dark").page
    grounds = [
        page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
        for page in (light, dark)
    ]
    assert grounds[0] != grounds[1]


def test_paper_shows_the_text_and_not_the_buttons(visit: Visitor) -> None:
    page = visit(PRIMER).page
    page.emulate_media(media="print")
    for part in (".topbar", "#chapnav", ".pager", ".page-tools", ".glance"):
        expect(page.locator(part).first).to_be_hidden()
    for part in ("h1", ".sbs__prose", ".code", ".out", "svg.plot"):
        expect(page.locator(part).first).to_be_visible()
    page.set_viewport_size({"width": 700, "height": 1000})  # A4 between its margins
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# -- taking things along --------------------------------------------------------------------


@cases("chapter", CHAPTERS, daily=[ATTENTION])
def test_a_click_on_a_link_to_take_a_chapter_along_downloads_its_file(
    visit: Visitor, site: Site, chapter: str
) -> None:
    page = visit(chapter, width=700).page
    for link in page.locator(".page-tools a[download]").all():
        page.locator(".page-tools summary").click()
        with page.expect_download() as download:
            link.click()
        file = (site.folder / chapter).parent / str(link.get_attribute("href"))
        name = link.get_attribute("download") or file.name
        assert download.value.suggested_filename == name
        assert download.value.path().read_bytes() == file.read_bytes()
