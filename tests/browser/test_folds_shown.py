"""Folded code: opened by pointer, keyboard and links, in print, and without scripts."""

import re
from urllib.parse import quote

import pytest
from built_book import Site
from playwright.sync_api import Locator, Page, expect
from visits import Reading, Visitor

FOLDED = "labml_primer/transformer/positional_encoding"  # its figures
RESULTS = "experiments/chapters/sizes"  # all of it


def first_fold(page: Page) -> Locator:
    return page.locator("details.fold").first


def is_open(fold: Locator) -> bool:
    found: bool = fold.evaluate("fold => fold.open")
    return found


def last_line(site: Site, page: str) -> str:
    """The anchor of a line at the end of the page's longest fold."""
    folds = site.soup(page).select("details.fold")
    longest = max(folds, key=lambda fold: len(fold.select(".ln")))
    return str(longest.select(".ln")[-1]["id"])


def folded_definition(site: Site) -> tuple[str, str]:
    """A page, and the name of a definition in one of its folds."""
    for page in ("experiments/chapters/parts", *site.chapters):  # most have none
        for box in site.soup(page).select("details.fold .def--own[id]"):
            return page, str(box["id"])
    raise LookupError("no chapter has a folded definition")


@pytest.mark.parametrize("where", [FOLDED, RESULTS])
def test_folded_code_is_hidden_until_its_summary_is_clicked(
    reading: Reading, where: str
) -> None:
    fold = first_fold(reading(where))
    line = fold.locator(".ln").first
    expect(line).to_be_hidden()
    fold.locator("summary").click()
    expect(line).to_be_visible()


def test_a_fold_is_reached_and_opened_by_keyboard(reading: Reading) -> None:
    page = reading(FOLDED)
    fold = first_fold(page)
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert is_open(fold)
    page.keyboard.press("Tab")  # the first line's number
    assert page.evaluate("document.activeElement.matches('details.fold .lno')")


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("where", [FOLDED, RESULTS])
def test_a_link_to_a_folded_line_opens_its_fold(
    visit: Visitor, site: Site, where: str, scripts: bool
) -> None:
    line = last_line(site, where)
    page = visit(f"{where}#{line}", scripts=scripts).page
    expect(page.locator(f"#{line}")).to_be_in_viewport()


def test_a_link_on_the_page_opens_a_fold(reading: Reading, site: Site) -> None:
    line = last_line(site, RESULTS)
    page = reading(RESULTS)
    page.evaluate("line => { location.hash = line; }", line)
    expect(page.locator(f"#{line}")).to_be_in_viewport()


def test_a_link_to_a_folded_definition_opens_its_fold(
    visit: Visitor, site: Site
) -> None:
    where, name = folded_definition(site)
    page = visit(f"{where}#{name}").page
    expect(page.locator(f"[id='{name}'] .ln").first).to_be_in_viewport()


def test_arrows_pass_over_closed_folds(reading: Reading) -> None:
    page = reading(FOLDED)
    before = page.locator("details.fold").first.locator(
        "xpath=preceding::*[contains(@class, 'lno')][1]"
    )
    before.focus()
    page.keyboard.press("ArrowDown")
    inside = "document.activeElement.closest('details.fold') !== null"
    assert page.evaluate("document.activeElement.matches('.lno')")
    assert not page.evaluate(inside)


def test_folded_code_is_open_on_paper(visit: Visitor, site: Site) -> None:
    line = last_line(site, FOLDED)
    page = visit(FOLDED).page
    page.emulate_media(media="print")
    height = f"document.getElementById('{line}').getBoundingClientRect().height"
    assert page.evaluate(height) > 0
    assert page.locator(f"#{line}").evaluate("line => line.checkVisibility()")


def test_a_definition_in_a_closed_fold_is_copied(reading: Reading, site: Site) -> None:
    where, name = folded_definition(site)
    page = reading(where)
    assert not page.locator(f"[id='{name}'] .ln").first.is_visible()
    page.evaluate(f"document.querySelector('[data-copy=\"{name}\"]').click()")
    expect(page.locator("#toast")).to_contain_text(f"{name} copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.match(rf"(@.*\n)*(def|class) {name}\b", copied)


def test_a_figure_is_above_the_fold_of_its_code(reading: Reading) -> None:
    page = reading(FOLDED)
    summary = page.locator("summary", has_text="Code of this figure").first
    figure = page.locator(".sbs__row", has=summary).first.locator("figure")
    above, below = figure.bounding_box(), summary.bounding_box()
    assert above and below
    assert above["y"] + above["height"] <= below["y"]


@pytest.mark.parametrize("width", [1400, 390])
def test_prose_starts_at_the_top_of_its_figure(reading: Reading, width: int) -> None:
    page = reading(RESULTS, width)
    apart = page.evaluate(
        """() => [...document.querySelectorAll(".sbs__row")].flatMap((row, i) => {
             if (!i && innerWidth <= 1180) return []; // opens with its figure
             const [prose, code] = row.children;
             const out = code.querySelector(
               ":scope > .cell_output:first-child > :first-child > :is(.out--plot, .out--table)");
             if (!out || !prose.textContent.trim()) return [];
             const edge = innerWidth > 1180 ? "top" : "bottom";
             return out.getBoundingClientRect().top - prose.getBoundingClientRect()[edge];
           })"""
    )
    assert apart
    assert all(0 <= distance < 40 for distance in apart), apart


# -- deeper sections and deviations ----------------------------------------------------------


@pytest.mark.parametrize("scripts", [True, False])
def test_a_deeper_section_is_closed_until_a_link_leads_into_it(
    visit: Visitor, scripts: bool
) -> None:
    """Its heading opens it too, with the script that follows links."""
    page = visit(FOLDED, scripts=scripts).page
    section = page.locator("details.deeper").first
    heading, line = section.locator("h2"), section.locator(".ln[id]").first
    expect(heading).to_be_visible()
    expect(line).to_be_hidden()
    names = [line.get_attribute("id")]
    names += [heading.get_attribute("id")] if scripts else []
    for name in names:
        opened = visit(f"{FOLDED}#{name}", scripts=scripts).page
        expect(opened.locator(f"[id='{name}']")).to_be_in_viewport()
        expect(opened.locator("details.deeper .ln[id]").first).to_be_visible()


def test_what_is_folded_in_prose_is_open_on_paper(visit: Visitor) -> None:
    page = visit(FOLDED).page
    page.emulate_media(media="print")
    for inside in ("details.deeper .sbs__row", "details.note--deviation > p"):
        box = page.locator(inside).first.bounding_box()
        assert box and box["height"] > 10, inside


@pytest.mark.parametrize(
    "fold", ["details.deeper .sbs__prose p", "details.note--deviation p"]
)
def test_words_in_a_closed_fold_are_found_on_the_page(
    visit: Visitor, site: Site, fold: str
) -> None:
    """A link to a text opens what the browser's search on the page opens, which no test can press."""
    starts = [str(e.find(string=True)).split() for e in site.soup(FOLDED).select(fold)]
    texts = [" ".join(start[:5]) for start in starts if len(start) > 5]
    words = next(text for text in texts if re.fullmatch(r"[A-Za-z ]+", text))
    page = visit(FOLDED).page
    place = page.locator(fold).filter(has_text=words).first
    expect(place).to_be_hidden()
    page.goto("about:blank")
    page.goto(f"{site.url(FOLDED)}#:~:text={quote(words)}")
    expect(place).to_be_in_viewport()
