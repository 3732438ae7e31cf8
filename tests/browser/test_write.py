"""The page "Write with it": models that run in the reader's browser, and what a reader can do to them."""

import re

import live
import pytest
from built_book import Site, nightly
from live_models import PLAY, committed, error, reference
from measures import Looker
from playwright.sync_api import Page, expect
from visits import Reading, Visitor, barriers, in_theme, resized, settle, weights

from labml_primer.training.corpus import encode_text

expect.set_options(timeout=60_000)  # a busy machine loads and writes slowly

WRITE = "book/pages/write"
FILES = "_static/live"


# Undoes what a reader has set. Whoever types is answered a moment later, so the beginning is set without
# a word, and the page reads it with "Start again".
SET_BACK = """() => {
  for (const input of document.querySelectorAll(".live [name], .live-position input")) {
    if (input.type === "checkbox") {
      if (input.checked) input.click();
      continue;
    }
    const chosen = [...input.options ?? []].find(each => each.defaultSelected);
    input.value = input.options ? (chosen ?? input.options[0]).value
      : input.closest(".live-position") ? input.max : input.defaultValue;
    if (input.name !== "beginning")
      for (const event of ["input", "change"]) input.dispatchEvent(new Event(event));
  }
  document.querySelector(".live-status").textContent = "";
}"""


@pytest.fixture
def page(reading: Reading) -> Page:
    """The page with both models, which have written nothing yet."""
    page = reading(WRITE)
    load = page.get_by_role("button", name="Load both models")
    if load.is_visible():
        load.click()
        expect(page.locator(".live-status")).to_contain_text("Both models are loaded")
    else:
        page.evaluate(SET_BACK)
        press(page, "Start again")
        expect(page.locator(".live-status")).to_have_text("Back at the beginning.")
    settle(page)  # what the models say is drawn with the next frame
    return page


def texts(page: Page) -> list[str]:
    """What each model's panel says, without the marks for line breaks."""
    return [panel.text_content() or "" for panel in page.locator(".live-text").all()]


def wait_for_lengths(page: Page, *lengths: int) -> None:
    """Wait until the texts are so long. They are drawn with the frame after a reply, or a later one."""
    page.wait_for_function(
        """lengths => [...document.querySelectorAll(".live-text")]
            .every((text, i) => text.textContent.length === lengths[i])""",
        arg=list(lengths),
    )


def type_in(page: Page, text: str) -> None:
    page.get_by_label("Beginning").fill(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


# -- without scripts, without weights --------------------------------------------------------


def test_the_example_is_seen_without_scripts(visit: Visitor) -> None:
    page = visit(WRITE, scripts=False).page
    for panel in page.locator(".live-text").all():
        assert len(panel.inner_text()) > 200
    expect(page.locator(".live-next li").first).to_be_visible()
    expect(page.locator(".live-load")).to_be_hidden()
    expect(page.locator(".live-controls")).to_be_hidden()


def test_the_first_view_loads_no_weights_and_at_most_120_kilobytes(
    look: Looker, site: Site
) -> None:
    parts = weights(site, look(WRITE, 1400, "light")["asked"])
    assert not [url for url in parts if ".bin" in url or "worker" in url]
    assert sum(parts.values()) <= 120_000, parts


# -- the models --------------------------------------------------------------------------------

LOGITS = """async ({ base, name, tokens }) => {
  const { Model, parseModel } = await import(base + "model.js");
  const { config, weights } = parseModel(await (await fetch(base + name + ".bin")).arrayBuffer());
  const model = new Model(config, weights);
  return tokens.map((token) => Array.from(model.append(token)));
}"""


@pytest.mark.parametrize("name", live.NAMES)
def test_logits_in_chromium_equal_pytorchs(page: Page, site: Site, name: str) -> None:
    tokens = encode_text(PLAY, live.header(name)["symbols"])[:200].tolist()
    given = {"base": f"{site.address}/{FILES}/", "name": name, "tokens": tokens}
    found = page.evaluate(LOGITS, given)
    assert error(found, reference(committed(name), tokens)) < 1e-3


def test_one_character_adds_one_to_each_text_and_says_which(page: Page) -> None:
    type_in(page, "KING")
    expect(page.locator(".live-text").first).to_have_text("KING")
    press(page, "One character")
    expect(page.locator(".live-status")).to_contain_text("Primer-EZ: “")
    wait_for_lengths(page, 5, 5)


def test_run_writes_until_stop(page: Page) -> None:
    page.get_by_label("Speed").select_option("as fast as possible")
    before = [len(text) for text in texts(page)]
    press(page, "Run")
    press(page, "Stop")
    status = page.locator(".live-status")
    expect(status).to_contain_text("Stopped. Each model wrote")
    words = re.search(r"Each model wrote (\d+)", status.text_content() or "")
    assert words
    wait_for_lengths(page, *(length + int(words[1]) for length in before))


def test_the_same_seed_writes_the_same_text(page: Page) -> None:
    written = []
    for _ in range(2):
        press(page, "Start again")
        expect(page.locator(".live-status")).to_have_text("Back at the beginning.")
        for count in range(1, 4):
            press(page, "One character")
            expect(page.locator(".live-text .live-written")).to_have_count(2 * count)
        written.append(texts(page))
    assert written[0] == written[1]


def test_after_loading_the_page_needs_no_network(page: Page) -> None:
    page.context.set_offline(True)
    try:
        press(page, "One character")
        expect(page.locator(".live-status")).to_contain_text("Transformer: “")
    finally:
        page.context.set_offline(False)


def test_a_switched_kernel_changes_primer_ez_and_not_the_transformer(
    page: Page,
) -> None:
    odds = page.locator(".live-next")
    before = [odds.nth(i).inner_text() for i in range(2)]
    box = page.get_by_label("all kernels of all layers")
    box.check()
    expect(odds.nth(1)).not_to_have_text(before[1], use_inner_text=True)
    assert odds.nth(0).inner_text() == before[0]
    assert all(each.is_checked() for each in page.locator(".live-kernels input").all())
    page.get_by_label("key, head 2").uncheck()
    assert box.evaluate("box => box.indeterminate")
    box.check()
    box.uncheck()
    expect(odds.nth(1)).to_have_text(before[1], use_inner_text=True)


def test_temperature_0_leaves_one_character(page: Page) -> None:
    page.get_by_label("Temperature").fill("0")
    for column in page.locator(".live-next").all():
        expect(column.locator("li").first).to_contain_text("→ 100%")
        expect(column.locator("li").nth(1)).to_contain_text("→ 0%")


def test_top_k_redraws_the_chart(page: Page) -> None:
    page.get_by_label("Top-k").fill("1")
    for column in page.locator(".live-next").all():
        expect(column.locator("li").first).to_contain_text("→ 100%")


def test_run_just_after_a_key_continues_the_typed_text(page: Page) -> None:
    type_in(page, PLAY[:100])
    expect(page.locator(".live-text").first).to_have_text(
        PLAY[:100], use_inner_text=False
    )
    page.evaluate(
        """() => {
          const field = document.querySelector(".live [name=beginning]");
          field.value = "To";
          field.dispatchEvent(new Event("input"));
          document.querySelector("[data-act=run]").click();
        }"""
    )
    expect(page.locator(".live-text .live-written").first).to_be_attached()
    press(page, "Stop")
    expect(page.locator(".live-status")).to_contain_text("Stopped.")
    assert all(text.startswith("To") for text in texts(page))


# -- attention -----------------------------------------------------------------------------------


def test_a_pointed_character_shows_what_it_looks_at_and_who_looks_at_it(
    page: Page,
) -> None:
    type_in(page, "to be, or not")
    panel = page.locator(".live-text").first
    expect(panel).to_have_text("to be, or not")
    panel.locator("span[data-at='5']").hover()
    said = page.locator(".live-looks").first
    expect(said).to_contain_text("“,” looks at")
    shades = panel.locator("[data-at]").evaluate_all(
        """spans => spans.map(span => ["--looked-at", "--looks"].map(
             name => Number(span.style.getPropertyValue(name))))"""
    )
    assert all(back == 0 for at, (_, back) in enumerate(shades) if at <= 5)
    assert all(forward == 0 for at, (forward, _) in enumerate(shades) if at > 5)
    assert sum(forward**2 for forward, _ in shades) == pytest.approx(1, abs=0.02)


def test_the_keyboard_moves_along_the_text(page: Page) -> None:
    slider = page.get_by_label("Character whose attention is shown, Primer-EZ")
    last = slider.get_attribute("aria-valuetext")
    slider.press("ArrowLeft")
    moved = slider.get_attribute("aria-valuetext")
    assert moved and moved != last and "looks at" in moved


def test_another_head_is_chosen_by_list_or_by_click(page: Page) -> None:
    said = page.locator(".live-looks").first
    before = said.inner_text()
    page.locator("select[name=layer]").select_option("3")
    expect(said).not_to_have_text(before)
    canvas = page.locator(".live-heads canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    canvas.click(position={"x": 0.6 * box["width"], "y": 0.3 * box["height"]})
    assert page.locator("select[name=layer]").input_value() == "1"
    assert page.locator("select[name=head]").input_value() == "2"


# -- what can go wrong -----------------------------------------------------------------------------


def test_unknown_characters_are_named_and_the_page_goes_on_working(
    page: Page,
) -> None:
    status = page.locator(".live-status")
    type_in(page, "Zoë 😀")
    expect(status).to_contain_text("do not know “ë”, “😀”")
    press(page, "Run")
    press(page, "One character")
    type_in(page, "")
    expect(status).to_contain_text("Type at least one character")
    type_in(page, "x" * 2001)
    expect(status).to_contain_text("2001 characters")
    type_in(page, "Zoe")
    expect(page.locator(".live-text").first).to_have_text("Zoe")
    expect(status).to_have_text("")
    press(page, "One character")
    expect(status).to_contain_text("Transformer: “")


def test_a_long_beginning_is_read_in_the_models_window(page: Page) -> None:
    type_in(page, PLAY[:200])
    expect(page.locator(".live-text").last).to_have_text(
        PLAY[:200], use_inner_text=False
    )
    assert len(page.locator(".live-earlier").first.text_content() or "") == 128


FAULTS = {
    "the site answers 404": lambda route: route.fulfill(status=404),
    "the site does not answer": lambda route: route.abort(),
    "broken or out of date": lambda route: route.fulfill(body=b"no weights"),
}


def test_weights_that_cannot_be_loaded_are_reported_and_can_be_loaded_again(
    visit: Visitor,
) -> None:
    page = visit(WRITE).page
    press_load = page.locator(".live-load button")
    for message, fault in FAULTS.items():
        page.context.route("**/primer-ez.bin*", fault)
        press_load.click()
        expect(page.locator(".live-status")).to_contain_text(message)
        assert all(
            len(text) > 200 for text in texts(page)
        )  # the example is still there
        page.context.unroute("**/primer-ez.bin*")
    press_load.click()
    expect(page.locator(".live-status")).to_contain_text("Both models are loaded")


def test_changed_weights_are_refused(visit: Visitor) -> None:
    page = visit(WRITE).page
    file = bytearray((live.FILES / "transformer.bin").read_bytes())
    file[-1] ^= 1
    page.context.route(
        "**/transformer.bin*", lambda route: route.fulfill(body=bytes(file))
    )
    page.locator(".live-load button").click()
    expect(page.locator(".live-status")).to_contain_text("broken or out of date")


def test_two_clicks_at_once_load_once_and_write_twice(visit: Visitor) -> None:
    opened = visit(WRITE)
    page = opened.page
    page.evaluate(
        """() => { const load = document.querySelector(".live-load button"); load.click(); load.click(); }"""
    )
    expect(page.locator(".live-status")).to_contain_text("Both models are loaded")
    page.evaluate(
        """() => {
          const one = document.querySelector("[data-act=one]");
          one.click(); one.click();
        }"""
    )
    expect(page.locator(".live-text .live-written")).to_have_count(4)
    assert len([url for url in opened.asked if "primer-ez.bin" in url]) <= 1


def test_a_tab_in_the_background_pauses(page: Page) -> None:
    press(page, "Run")
    page.evaluate(
        """() => {
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
          delete document.hidden;
        }"""
    )
    expect(page.locator(".live-status")).to_contain_text("Paused while this tab")
    press(page, "Run")
    press(page, "Stop")  # so it wrote
    expect(page.locator(".live-status")).to_contain_text("Stopped.")


# -- for everyone ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [nightly(1400), 390])
def test_the_live_page_has_no_barrier_and_does_not_scroll_sideways(
    page: Page, width: int
) -> None:
    press(page, "One character")
    expect(page.locator(".live-status")).to_contain_text("Transformer: “")
    resized(page, width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for theme in ("dark", "light"):
        in_theme(page, theme)
        assert barriers(page) == [], theme
    resized(page, 1400)


def test_on_a_phone_the_settings_are_folded_and_run_shows_both_texts(
    page: Page,
) -> None:
    resized(page, 390)
    for label in ("Temperature", "Top-p", "Top-k", "Seed"):
        expect(page.get_by_label(label)).to_be_hidden()
    press(page, "Run")
    for text in page.locator(".live-text").all():
        expect(text).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_in_viewport()
    press(page, "Stop")
    expect(page.locator(".live-status")).to_contain_text("Stopped.")
    page.get_by_text("Temperature, top-p, top-k, seed").click()
    expect(page.get_by_label("Seed")).to_be_visible()
    resized(page, 1400)


def test_every_control_has_a_name_and_is_reached_by_tab(page: Page) -> None:
    page.get_by_label("Beginning").focus()
    names = []
    for _ in range(8):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate(
                "document.activeElement.name || document.activeElement.textContent"
            )
        )
    buttons = ["One character", "Run", "Start again"]
    assert names == [*buttons, "pace", "temperature", "topP", "topK", "seed"]
