"""Pictures in a browser: their words have room, and their steps can be walked."""

import pytest
from built_book import Site, Visitor, settle
from playwright.sync_api import Browser, Route

ROOM = """() => {
  const inside = (a, b) =>
    a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  const shared = (a, b) => [
    Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
  const wrong = [];
  for (const picture of document.querySelectorAll(".picture")) {
    const frame = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll("text")].filter(text => !text.closest(".off"));
    const places = texts.map(text => text.getBoundingClientRect());
    texts.forEach((text, i) => {
      if (!inside(places[i], frame)) wrong.push(`outside: ${text.textContent}`);
      for (let j = 0; j < i; j++) {
        const [wide, high] = shared(places[i], places[j]);
        if (wide >= 1 && high >= 4) wrong.push(`${text.textContent} on ${texts[j].textContent}`);
      }
    });
  }
  return wrong;
}"""


@pytest.fixture
def illustrated(site: Site, page: str) -> str:
    if not site.soup(page).select(".picture"):
        pytest.skip("no picture")
    return page


@pytest.mark.parametrize("width", [1400, 390])
def test_the_words_of_a_picture_are_inside_it_and_apart(
    visit: Visitor, illustrated: str, width: int
) -> None:
    assert visit(illustrated, width=width).page.evaluate(ROOM) == []


def test_words_can_be_read_on_a_phone(visit: Visitor, illustrated: str) -> None:
    sizes = visit(illustrated, width=390).page.evaluate(
        """() => [...document.querySelectorAll(".picture text")].map(text =>
             parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a)"""
    )
    assert min(sizes) >= 10


def test_on_a_phone_a_chapter_opens_with_its_picture_or_figure(
    visit: Visitor, site: Site, chapter: str
) -> None:
    opening = site.soup(chapter).select_one(".sbs__row > .sbs__code > *")
    if not opening or not {"out--picture", "cell_output"} & set(opening["class"]):
        pytest.skip("its opening has only code")
    page = visit(chapter, width=390).page
    first = ".sbs__row:first-child > .sbs__code > :first-child"
    title, shown, facts, prose = (
        page.locator(part).first.bounding_box() or {}
        for part in ("h1", first, ".facts", ".sbs__row:first-child > .sbs__prose")
    )
    assert title["y"] < shown["y"] < facts["y"] < prose["y"]
    assert shown["y"] < 450  # the upper half of a screen


def test_without_scripts_a_picture_in_steps_shows_its_last(
    visit: Visitor, illustrated: str
) -> None:
    opened = visit(illustrated, scripts=False)
    assert opened.page.locator(".picture-steps").count() == 0
    for picture in opened.page.locator(".picture[data-steps]").all():
        last = picture.get_attribute("data-steps")
        for part in picture.locator("[data-at]").all():
            steps = (part.get_attribute("data-at") or "").split()
            hidden = part.evaluate("e => getComputedStyle(e).display === 'none'")
            assert hidden == (last not in steps)


def test_no_shape_has_the_black_of_a_missing_colour(
    visit: Visitor, illustrated: str
) -> None:
    black = (
        visit(illustrated)
        .page.locator(".picture")
        .evaluate_all(
            """pictures => pictures.flatMap(each => [...each.querySelectorAll("circle, rect, path")])
             .filter(shape => getComputedStyle(shape).fill === "rgb(0, 0, 0)").map(e => e.outerHTML)"""
        )
    )
    assert black == []


def test_arrow_keys_walk_the_steps_and_say_what_is_shown(
    visit: Visitor, illustrated: str
) -> None:
    page = visit(illustrated).page
    for slider in page.locator("figure .picture-steps input").all():
        steps = int(slider.get_attribute("max") or 0)
        slider.focus()
        page.keyboard.press("Home")
        said = set()
        for step in range(1, steps + 1):
            assert slider.input_value() == str(step)
            said.add(slider.get_attribute("aria-valuetext"))
            shown = slider.evaluate(
                """(slider, step) => [...slider.closest("figure").querySelectorAll("[data-at]")].every(
                     part => part.classList.contains("off") !== part.dataset.at.split(" ").includes(step))""",
                str(step),
            )
            assert shown
            page.keyboard.press("ArrowRight")
        assert len(said) == steps


def test_a_box_leads_to_its_definition_by_keyboard(visit: Visitor, site: Site) -> None:
    page = visit("labml_primer/primer/primer_ez").page
    page.locator(".picture a", has_text="²").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/primer_ez.html#SquaredReLU")


def test_a_late_font_still_becomes_the_one_of_pictures_and_figures(
    chromium: Browser, site: Site
) -> None:
    def width(late: bool) -> float:
        context = chromium.new_context(viewport={"width": 1400, "height": 900})
        opened = context.new_page()
        held: list[Route] = []
        if late:
            opened.route("**/serif*.woff2", lambda route: held.append(route))
        address = site.url("labml_primer/compared/switch")
        opened.goto(address, wait_until="domcontentloaded")
        if late:
            opened.wait_for_timeout(1000)  # the text is drawn without it
        for route in held:
            route.continue_()
        settle(opened)
        measured: float = opened.locator("svg text").evaluate_all(
            "words => words.reduce((sum, word) => sum + word.getComputedTextLength(), 0)"
        )
        context.close()
        return measured

    assert width(late=True) == pytest.approx(width(late=False), rel=1e-4)
