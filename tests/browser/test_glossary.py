"""A link to a term shows the definition, by pointer and by keyboard."""

import re

from playwright.sync_api import expect
from visits import Reading, Visitor, barriers, in_theme

GENERATION = "labml_primer/transformer/generation"
TERM = "a[href$='#term-KV-cache']"
WORDS = re.compile("stored keys and values", re.IGNORECASE)


def test_a_term_shows_its_definition_when_pointed_at_and_when_focused(
    reading: Reading,
) -> None:
    page = reading(GENERATION)
    tip, link = page.locator("#definition[role=tooltip]"), page.locator(TERM).first
    link.hover()
    expect(tip).to_contain_text(WORDS)
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(0, 0)
    link.focus()  # after a key was pressed, so that the focus is visible
    expect(tip).to_contain_text(WORDS)
    expect(link).to_have_attribute("aria-describedby", "definition")
    link.blur()
    expect(tip).to_be_hidden()


def test_a_definition_stays_while_the_pointer_is_on_it(reading: Reading) -> None:
    page = reading(GENERATION)
    tip, link = page.locator("#definition"), page.locator(TERM).first
    link.hover()
    tip.hover()
    page.wait_for_timeout(500)
    expect(tip).to_be_visible()
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()


def test_a_definition_is_within_the_window(reading: Reading) -> None:
    for width in (1400, 390):
        page = reading(GENERATION, width)
        for link in page.locator("a:has(> .std-term):visible").all():
            link.hover()
            box = page.locator("#definition").bounding_box()
            assert box and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_a_term_is_a_link_with_a_title_without_scripts(visit: Visitor) -> None:
    page = visit(GENERATION, scripts=False).page
    link = page.locator(TERM).first
    expect(link).to_have_attribute("title", WORDS)
    link.click()
    page.wait_for_url(re.compile(r"glossary\.html#term-KV-cache$"))


def test_a_click_shows_the_definition_with_a_link_and_stays_on_the_page(
    reading: Reading,
) -> None:
    page = reading(GENERATION, 390)
    box, link = page.locator("#definition[role=dialog]"), page.locator(TERM).first
    address = page.url
    link.click()
    expect(box).to_contain_text(WORDS)
    expect(link).to_have_attribute("aria-expanded", "true")
    place = box.bounding_box()
    assert place and place["x"] >= 0 and place["x"] + place["width"] <= 390
    page.mouse.move(0, 0)
    page.wait_for_timeout(300)
    expect(box).to_be_visible()  # until it is closed
    for theme in ("light", "dark"):
        in_theme(page, theme)
        assert barriers(page, within="#definition") == [], theme
    page.locator("h1").click()
    expect(box).to_be_hidden()
    assert page.url == address
    link.click()
    box.get_by_role("link", name="In the glossary").click()
    page.wait_for_url(re.compile(r"glossary\.html#term-KV-cache$"))


def test_enter_opens_a_definition_and_escape_or_tab_leads_back_to_the_term(
    reading: Reading,
) -> None:
    page = reading(GENERATION)
    box, link = page.locator("#definition[role=dialog]"), page.locator(TERM).first
    expect(page.locator("#definition")).to_be_attached()
    link.focus()
    page.keyboard.press("Enter")
    expect(box.get_by_role("link")).to_be_focused()
    expect(box).to_have_attribute("aria-label", "KV cache")
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    expect(box).to_be_hidden()
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    link.click()
    link.click()  # the second one follows the link
    page.wait_for_url(re.compile(r"glossary\.html#term-KV-cache$"))


def test_no_request_is_made_for_a_definition(visit: Visitor) -> None:
    opened = visit(GENERATION)
    opened.quiet()
    before = list(opened.asked)
    opened.page.locator(TERM).first.hover()
    expect(opened.page.locator("#definition")).to_be_visible()
    assert opened.asked == before
