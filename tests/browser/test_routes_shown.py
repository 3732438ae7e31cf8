"""A reader chooses a route, sees what comes next on it and what was read, and has it forgotten."""

from built_book import Site
from playwright.sync_api import expect
from visits import Visitor, barriers, settle

CHAPTER = "labml_primer/primer/primer_ez"


def test_a_route_and_what_was_read_are_kept_in_every_edition_until_forgotten(
    visit: Visitor, site: Site
) -> None:
    page = visit("book/pages/index", width=390, theme="dark").page
    button = page.locator(".route--hour button")
    expect(button).to_have_attribute("aria-pressed", "false")
    forget = page.get_by_role("button", name="Forget")
    expect(forget).to_be_hidden()
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")

    page.goto(site.url(CHAPTER))
    settle(page)
    line = page.locator(".needs [data-route]:visible")
    expect(line).to_have_text("· Next Results in one page")
    here = page.locator("#chapnav [aria-current] .tick")
    expect(here).to_have_count(0)  # only the beginning is seen yet
    page.locator(".pager").scroll_into_view_if_needed()
    expect(here).to_have_attribute("aria-label", "read")
    page.goto(site.url(f"ja/{CHAPTER}"))
    expect(here).to_have_attribute("aria-label", "読了")
    expect(line).to_have_attribute("data-route", "hour")

    page.goto(site.url("book/pages/index"))
    said = page.locator(".route--hour .route__read")
    expect(said).to_have_text("1 of 4 read")
    assert barriers(page, within=".route") == []
    forget.click()
    expect(page.locator(".tick")).to_have_count(0)
    expect(button).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("localStorage.length") == 0


def test_without_scripts_routes_are_lists_of_links(visit: Visitor) -> None:
    page = visit("book/pages/index", scripts=False).page
    assert page.locator(".route button").count() == 0
    assert page.locator(".route--hour .stops a").count() == 4
    chapter = visit(CHAPTER, scripts=False).page
    expect(chapter.locator(".needs")).to_contain_text("Needs 12 Language model")
    expect(chapter.locator(".needs [data-route]:visible")).to_have_count(1)
