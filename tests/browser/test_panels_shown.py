"""The panels "Your own sentence" in the chapters: closed at first, then the reader's own sentence."""

import gzip

import live
import pytest
from built_book import Site, cases
from live import panels
from measures import Looker
from playwright.sync_api import Locator, Page, expect
from visits import Visitor, barriers, in_theme, resized, settle

expect.set_options(timeout=60_000)  # a busy machine loads and computes slowly

PANELS = {panel["page"]: name for name, panel in panels.read_panels().items()}
SENTENCES = ["What light through yonder window breaks?", "Fair is foul"]


def opened(page: Page) -> Locator:
    """Open the page's panel, and wait until it shows a sentence."""
    panel = page.locator(".own")
    panel.locator("summary").first.click()
    expect(panel.locator(".own__picture svg")).to_be_visible()
    return panel


def packed(text: str) -> int:
    """Return how many bytes a text is on its way."""
    return len(gzip.compress(text.encode(), 6))


def table(panel: Locator) -> str:
    return panel.locator(".own__table").text_content() or ""


def test_a_sentence_goes_with_the_reader_through_all_chapters(
    visit: Visitor, site: Site
) -> None:
    first, *others = PANELS
    opening = visit(first, width=390)
    page = opening.page
    assert not [url for url in opening.asked if ".bin" in url or "panel" in url]
    for at, chapter in enumerate([first, *others]):
        if at:
            page.goto(site.url(chapter))
            settle(page)
        panel = opened(page)
        field = panel.get_by_role("textbox", name="Your sentence")
        if at:
            expect(field).to_have_value(SENTENCES[(at - 1) % 2])
        before = table(panel)
        assert before
        field.fill(SENTENCES[at % 2])
        expect(panel.locator(".own__table")).not_to_have_text(before)
        # A line that it names is code of this page.
        for link in panel.locator("p a[href^='#L']").all():
            line = page.locator(link.get_attribute("href") or "")
            title = link.get_attribute("title") or ""
            assert title and title in (line.text_content() or "")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    models = {panel["model"] for panel in panels.read_panels().values()}
    assert len({url for url in opening.asked if ".bin" in url}) == len(models)
    assert opening.said == []


@pytest.fixture
def attention(visit: Visitor) -> Page:
    page: Page = visit("labml_primer/transformer/attention").page
    opened(page)
    return page


def test_what_was_chosen_by_key_or_click_is_shown(attention: Page) -> None:
    panel = attention.locator(".own")
    caption = panel.locator("figcaption")
    character = panel.get_by_role("slider", name="Character")
    character.focus()
    before = caption.inner_text()
    character.press("ArrowLeft")
    expect(caption).not_to_have_text(before)
    assert "b" in (character.get_attribute("aria-valuetext") or "")
    before = caption.inner_text()
    panel.get_by_role("combobox", name="Layer").select_option("3")
    expect(caption).not_to_have_text(before)
    panel.locator("[data-at='1']").click()
    expect(character).to_have_value("1")
    expect(panel.locator("tbody tr")).to_have_count(2)


def test_a_sentence_that_the_model_cannot_read_is_explained(attention: Page) -> None:
    panel = attention.locator(".own")
    field, status = (
        panel.get_by_role("textbox", name="Your sentence"),
        panel.locator(".own__status"),
    )
    for text, said in (("Zoë", "does not know “ë”"), ("", "at least one character")):
        field.fill(text)
        expect(status).to_contain_text(said)
    field.fill("Zoe")
    expect(status).to_have_text("")
    expect(panel.locator("tbody tr")).to_have_count(3)


def test_an_open_panel_has_no_barrier_and_works_without_a_network(
    attention: Page,
) -> None:
    attention.context.set_offline(True)
    panel = attention.locator(".own")
    panel.get_by_text("The numbers as a table").click()
    panel.get_by_role("textbox", name="Your sentence").fill("Ay, madam")
    expect(panel.locator("tbody tr")).to_have_count(9)
    resized(attention, 390)
    for theme in ("dark", "light"):
        in_theme(attention, theme)
        assert barriers(attention, within=".own") == [], theme


def test_a_model_that_cannot_be_loaded_is_reported_and_loaded_again(
    visit: Visitor,
) -> None:
    page = visit("labml_primer/transformer/embedding").page
    page.context.route("**/transformer.bin*", lambda route: route.abort())
    panel = page.locator(".own")
    panel.locator("summary").first.click()
    expect(panel.locator(".own__status")).to_contain_text("the site does not answer")
    expect(panel.locator("img")).to_be_visible()  # the recorded example
    page.context.unroute("**/transformer.bin*")
    panel.get_by_role("button", name="Try again").click()
    expect(panel.locator(".own__picture svg")).to_be_visible()


def test_without_scripts_the_panel_shows_a_recorded_example(visit: Visitor) -> None:
    page = visit(next(iter(PANELS)), scripts=False).page
    panel = page.locator(".own")
    panel.locator("summary").click()
    picture = panel.locator("img")
    expect(picture).to_be_visible()
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", True)
    assert picture.bounding_box()["height"] > 100  # type: ignore[index]


@cases("page", list(PANELS), daily=list(PANELS)[:1])
def test_a_closed_panel_adds_at_most_2_kilobytes_to_the_first_view(
    look: Looker, site: Site, page: str
) -> None:
    text = site.text(page)
    start = text.index('<details class="fold own"')
    end = text.index("</details>", start) + len("</details>")
    script = (live.FILES / "own.js").read_text("utf-8")
    assert packed(text) - packed(text[:start] + text[end:]) + packed(script) <= 2_000
    asked = look(page, 1400, "light")["asked"]
    assert [url for url in asked if "/live/" in url and "own.js" not in url] == []
