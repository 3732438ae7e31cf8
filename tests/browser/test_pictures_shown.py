"""Pictures in a browser: their words have room, and their steps can be walked."""

import pytest
from built_book import CHAPTERS, PAGES, Site, cases, every_chapter, every_page, short
from measures import Looker, Reader, every_look
from playwright.sync_api import Browser, Route
from visits import Visitor, settle

# The welcome page and chapters, whatever they are written in.
SHOWN = [
    PAGES[0],
    *CHAPTERS,
    "book/pages/descendants",
    "book/pages/individuals",
    "book/pages/write",
]
STEPS = ["labml_primer/transformer/attention"]  # a picture in steps
# Whether a picture shows what its step has, and nothing else.
OF_STEP = """(slider, step) => [...slider.closest("figure").querySelectorAll("[data-at]")].every(
  part => (getComputedStyle(part).display !== "none") === part.dataset.at.split(" ").includes(step))"""


@every_look
def test_the_words_of_a_picture_are_inside_it_and_apart(
    look: Looker, page: str, width: int, theme: str
) -> None:
    found = look(page, width, theme)
    assert found["cramped"] == []
    assert found.get("phone", found)["cramped"] == []


@every_page
def test_words_can_be_read_at_every_width(look: Looker, page: str) -> None:
    wide = look(page, 1400, "light")
    for found, words in ((wide, 11), (wide["phone"], 10)):
        sizes = found["sizes in pictures"]
        assert [(size, word) for size, word in sizes if size < words] == []
        sizes = found["sizes of indices in pictures"]
        assert [(size, word) for size, word in sizes if size < 9] == []


@every_chapter
def test_no_figure_is_wider_than_a_phone(look: Looker, chapter: str) -> None:
    assert look(chapter, 1400, "light")["phone"]["figures that scroll"] == []


@every_chapter
def test_words_of_figures_can_be_read_on_a_phone(look: Looker, chapter: str) -> None:
    sizes = look(chapter, 1400, "light")["phone"]["sizes in figures"]
    assert [(size, word) for size, word in sizes if size < 9] == []


@pytest.mark.parametrize("page", SHOWN, ids=short)
def test_the_first_screen_has_a_whole_picture_or_result(
    look: Looker, page: str
) -> None:
    top, bottom = look(page, 1400, "light")["first screen"]
    assert 52 <= top < bottom <= 900
    top, _ = look(page, 1400, "light")["phone"]["first screen"]
    assert 52 <= top < 800


@every_chapter
def test_on_a_phone_a_chapter_opens_with_its_picture_or_figure(
    look: Looker, chapter: str
) -> None:
    found = look(chapter, 1400, "light")["phone"]
    if not found["opens with"]:
        pytest.skip("its opening has only code")
    title, shown, prose, facts = found["opening"]
    assert title < shown < prose < facts
    assert shown < 450  # the upper half of a screen


@cases("page", PAGES, daily=STEPS)
def test_without_scripts_a_picture_in_steps_shows_its_last(
    bare: Reader, page: str
) -> None:
    assert bare(page)["not of the last step"] == []


@every_look
def test_no_shape_has_the_black_of_a_missing_colour(
    look: Looker, page: str, width: int, theme: str
) -> None:
    found = look(page, width, theme)
    assert found["black in pictures"] == []
    assert found.get("phone", found)["black in pictures"] == []


@cases("page", PAGES, daily=STEPS)
def test_a_picture_opens_at_its_first_step_and_arrow_keys_and_next_walk_on(
    visit: Visitor, page: str
) -> None:
    opened = visit(page).page
    for walk in opened.locator("figure .picture-steps").all():
        slider, following = walk.locator("input"), walk.get_by_role("button").last
        steps = int(slider.get_attribute("max") or 0)
        for focused, key in ((slider, "ArrowRight"), (following, "Enter")):
            said = set()
            for step in range(1, steps + 1):
                assert slider.input_value() == str(step)
                text = walk.locator("output").text_content()
                said.add((slider.get_attribute("aria-valuetext"), text))
                assert slider.evaluate(OF_STEP, str(step))
                focused.focus()
                opened.keyboard.press(key)
            assert len(said) == steps
            assert slider.input_value() == str(steps)  # nothing is after the last
            for _ in range(steps - 1):
                walk.get_by_role("button").first.click()


def test_a_box_leads_to_its_definition_by_keyboard(visit: Visitor, site: Site) -> None:
    page = visit("labml_primer/primer/primer_ez").page
    page.locator(".picture a", has_text="0)2").focus()
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
            painted = "performance.getEntriesByType('paint').length > 0"
            while not opened.evaluate(painted):  # the text is drawn without it
                opened.wait_for_timeout(50)
        for route in held:
            route.continue_()
        settle(opened)
        measured: float = opened.locator("svg text").evaluate_all(
            "words => words.reduce((sum, word) => sum + word.getComputedTextLength(), 0)"
        )
        context.close()
        return measured

    assert width(late=True) == pytest.approx(width(late=False), rel=1e-4)
