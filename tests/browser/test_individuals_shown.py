"""The form that picks an individual, and a lineage as a walk, with a small search made here."""

from collections.abc import Iterator
from pathlib import Path

import individuals
import pytest
from playwright.sync_api import Browser, Page, expect
from visits import served

STATIC = Path(__file__).resolve().parents[2] / "book" / "theme" / "static"
FIRST = """constants 0.0 0.5
dimensions 1 2 4 8 12 16
S0
  h2 = S1(h0, h0)
  h3 = ADD(h2, h0)
S1
  h2 = MAX(h0, h0)
"""
SECOND = FIRST.replace("h2 = MAX(h0, h0)", "h2 = MAX(h0, h0)\n  h3 = SQUARE(h2, h2)")
THIRD = SECOND.replace("h3 = ADD(h2, h0)", "h3 = ADD(h0, h2)")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a page with the form and a lineage."""
    search = [
        individuals.Individual(0, None, [], FIRST, [None], [3.0, 2.5], "", 9.0),
        individuals.Individual(1, 0, ["insert"], SECOND, [None], [2.9, 2.25], "", 9.5),
        individuals.Individual(2, 1, ["swap"], THIRD, [None], [], "sees the future"),
    ]
    begun = [individuals.Individual(0, None, [], FIRST, [None])]
    for name, shown in {"begun": begun, "small": search}.items():
        data = individuals.script(name, shown)
        (tmp_path / f"{name}.js").write_text(data, encoding="utf-8")
    form = individuals.form_html(["broken", "begun", "small"], ".")
    steps = individuals.lineage_html("small", search[:2])
    (tmp_path / "index.html").write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Small</title>"
        f"<meta name=viewport content='width=device-width'>"
        f"<script src=individuals.js defer></script>"
        f"<link rel=stylesheet href=individuals.css><main>{form}{steps}</main>",
        encoding="utf-8",
    )
    for name in ("individuals.js", "individuals.css"):
        (tmp_path / name).write_text((STATIC / name).read_text())
    with served(tmp_path) as root:
        yield f"{root}/index.html"


@pytest.fixture
def form(chromium: Browser, address: str) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


def test_the_page_opens_with_the_best_individual_of_the_first_search(
    form: Page, address: str, tmp_path: Path
) -> None:
    shown = form.locator(".individual")
    expect(shown).to_have_text(
        "The data of broken could not be loaded. Press Best to retry."
    )
    data = (tmp_path / "small.js").read_text().replace("small", "broken")
    (tmp_path / "broken.js").write_text(data)
    form.goto(address)
    expect(shown.get_by_role("heading")).to_have_text("Individual 1 of broken")


def test_an_individual_is_shown_with_its_parent_children_and_difference(
    form: Page,
) -> None:
    form.get_by_label("Search").select_option("small")
    shown = form.locator(".individual")
    expect(shown.get_by_role("heading")).to_have_text("Individual 1 of small")  # best
    expect(shown.locator("ins")).to_have_text(["+   h3 = SQUARE(h2, h2)\n"])
    expect(shown.locator("dl")).to_contain_text("loss 2.250, 9.5 s of training")
    expect(shown.locator("dd").nth(2)).to_have_text("0 (2.500)")
    expect(shown.locator("dd").nth(3)).to_have_text("2")
    shown.get_by_role("link", name="2").click()
    expect(shown.get_by_role("heading")).to_have_text("Individual 2 of small")
    expect(shown.locator("mark")).to_have_text(["~   h3 = ADD(h0, h2)\n"])
    expect(shown.locator("dl")).to_contain_text("rejected: sees the future")
    form.go_back()
    expect(shown.get_by_role("heading")).to_have_text("Individual 1 of small")
    width = "document.documentElement.scrollWidth"
    assert form.evaluate(width) <= 390


def test_an_address_names_an_individual_and_the_keyboard_picks_another(
    form: Page, address: str
) -> None:
    form.goto(f"{address}#small/0")
    heading = form.locator(".individual").get_by_role("heading")
    expect(heading).to_have_text("Individual 0 of small")
    form.get_by_label("Individual", exact=True).focus()
    form.keyboard.press("ArrowUp")
    form.keyboard.press("Enter")
    expect(heading).to_have_text("Individual 1 of small")
    form.get_by_role("button", name="Best").press("Enter")
    expect(heading).to_have_text("Individual 1 of small")


def test_the_plot_has_a_point_for_each_trained_to_the_end_and_a_click_chooses_it(
    form: Page, address: str
) -> None:
    form.goto(f"{address}#small/1")
    plot = form.locator(".population")
    expect(plot.locator("circle:not(.line)")).to_have_count(2)
    expect(plot.locator("circle.line")).to_have_count(2)  # individual 1 and its parent
    plot.click(position={"x": 2, "y": 2})
    heading = form.locator(".individual").get_by_role("heading")
    expect(heading).to_have_text("Individual 0 of small")


def test_missing_data_and_numbers_are_reported(
    form: Page, address: str, tmp_path: Path
) -> None:
    shown = form.locator(".individual")
    form.goto(f"{address}#small/99")
    expect(shown).to_contain_text("small has no individual 99")
    form.goto(f"{address}#broken/0")
    expect(shown).to_contain_text("The data of broken could not be loaded")
    # A server that answers each unknown address with its welcome page.
    (tmp_path / "begun.js").write_text("<!doctype html><title>Welcome</title>")
    form.goto("about:blank")
    form.goto(f"{address}#begun/0")
    expect(shown).to_contain_text("The data of begun could not be loaded")


def test_best_loads_data_again_that_could_not_be_loaded(
    form: Page, address: str, tmp_path: Path
) -> None:
    form.goto(f"{address}#begun/0")  # has no best individual, so the button is off
    best = form.get_by_role("button", name="Best")
    expect(best).to_be_disabled()
    form.goto(f"{address}#broken/0")
    shown = form.locator(".individual")
    expect(shown).to_contain_text("Press Best to retry.")
    data = (tmp_path / "small.js").read_text().replace("small", "broken")
    (tmp_path / "broken.js").write_text(data)
    best.click()
    expect(shown.get_by_role("heading")).to_have_text("Individual 1 of broken")


def test_a_page_opened_from_a_file_shows_individuals(
    form: Page, address: str, tmp_path: Path
) -> None:
    form.goto(f"{(tmp_path / 'index.html').as_uri()}#small/0")
    heading = form.locator(".individual").get_by_role("heading")
    expect(heading).to_have_text("Individual 0 of small")


def test_a_search_without_an_individual_trained_to_the_end_is_shown_without_a_plot(
    form: Page, address: str
) -> None:
    plot = form.locator(".population")
    form.goto(f"{address}#small/0")
    expect(plot).to_be_visible()
    form.goto(f"{address}#begun/0")
    heading = form.locator(".individual").get_by_role("heading")
    expect(heading).to_have_text("Individual 0 of begun")
    expect(plot).to_be_hidden()


def test_a_lineage_is_walked_by_buttons_and_keys(form: Page) -> None:
    steps = form.locator(".lineage > li")
    expect(steps.nth(0)).to_be_hidden()
    expect(steps.nth(1)).to_be_visible()  # the best individual
    expect(steps.nth(1)).to_contain_text("insert. S1: new SQUARE")
    form.get_by_role("button", name="Back").click()
    expect(steps.nth(0)).to_be_visible()
    form.get_by_role("slider").press("ArrowRight")
    expect(steps.nth(1)).to_be_visible()


def test_without_scripts_the_page_says_so_and_shows_the_lineage(
    chromium: Browser, address: str
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("noscript").inner_text()
    expect(page.locator("form")).to_be_hidden()
    for step in page.locator(".lineage > li").all():
        expect(step).to_be_visible()
    context.close()
