"""A figure tells the numbers behind the pointer, and those that the arrow keys lead to."""

import re

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from visits import Reading, Visitor, settle

from book.pages.example import MovingAverage
from experiments.chapters.parts import ACTIVATIONS
from experiments.measured.analysis import Spread, relative_perplexity
from experiments.records.query import read_runs

EXAMPLE, DOTS = "book/pages/example", "experiments/chapters/parts"


def told(page: Page) -> tuple[float, dict[str, float]]:
    """Where the tip is, and what it says of each line."""
    tip = page.get_by_role("status").and_(page.locator(".tip"))
    where = re.fullmatch(r"token ([\d.]+)", tip.locator("b").inner_text())
    assert where
    rows = [row.text_content() or "" for row in tip.locator("p").all()]
    pairs = [row.replace("−", "-").rsplit(" ", 1) for row in rows]
    values = {name: float(value) for name, value in pairs}
    return float(where[1]), values


def learned(page: Page) -> None:
    """Waits for the script."""
    page.locator(".tip--curves").wait_for(state="attached")


def point(page: Page, plot: Locator, across: float) -> None:
    box = plot.bounding_box()
    assert box
    page.mouse.move(box["x"] + across * box["width"], box["y"] + box["height"] / 2)


def example(reading: Reading) -> tuple[Page, Locator]:
    page = reading(EXAMPLE)
    plot = page.locator(".plot")
    plot.scroll_into_view_if_needed()
    settle(page)
    plot.hover()
    learned(page)
    return page, plot


@pytest.mark.parametrize("across", [0.3, 0.5, 0.8])
def test_it_tells_what_was_computed(reading: Reading, across: float) -> None:
    page, plot = example(reading)
    point(page, plot, across)
    token, values = told(page)
    torch.manual_seed(0)
    stream = torch.randn(1, 100, 1).cumsum(dim=1)
    part = token % 1
    for width in (1, 5, 20):
        means = MovingAverage(width)(stream).flatten()[int(token) :]
        expected = (1 - part) * means[0] + part * means[1]
        slope = (means[1] - means[0]).abs().item()
        about = 0.02 + 0.06 * slope  # a token is told to a tenth
        assert values[f"K = {width}"] == pytest.approx(expected.item(), abs=about)


def test_lines_are_told_in_the_order_in_which_they_stand(reading: Reading) -> None:
    page, plot = example(reading)
    for across in (0.3, 0.6):
        point(page, plot, across)
        values = list(told(page)[1].values())
        assert values == sorted(values, reverse=True)


def test_it_ends_where_the_pointer_leaves(reading: Reading) -> None:
    page, plot = example(reading)
    point(page, plot, 0.5)
    expect(page.locator(".tip--curves")).to_be_visible()
    page.mouse.move(5, 5)
    expect(page.locator(".tip--curves")).to_be_hidden()
    expect(page.locator(".cross")).to_have_count(0)


def test_arrow_keys_move_along_and_escape_ends_it(reading: Reading) -> None:
    page, plot = example(reading)
    page.mouse.move(5, 5)
    plot.locator("xpath=..").focus()
    page.keyboard.press("ArrowRight")
    first, _ = told(page)
    page.keyboard.press("ArrowRight")
    second, _ = told(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    third, _ = told(page)
    assert third < first < second
    page.keyboard.press("Escape")
    expect(page.locator(".tip--curves")).to_be_hidden()


def test_arrow_keys_lead_on_to_the_axes_beside(visit: Visitor) -> None:
    page = visit("labml_primer/transformer/feed_forward").page
    plot = page.locator(".plot").first
    expect(plot.locator("[data-axes]")).to_have_count(2)
    plot.locator("xpath=..").focus()
    learned(page)
    cross = plot.locator("[data-axes]").nth(1).locator(".cross")
    for _ in range(60):  # from the middle of the first, past its end
        page.keyboard.press("ArrowRight")
    expect(cross).to_be_attached()
    for _ in range(60):
        page.keyboard.press("ArrowLeft")
    expect(plot.locator("[data-axes]").first.locator(".cross")).to_be_attached()


def test_a_dot_tells_what_was_computed(reading: Reading) -> None:
    page = reading(DOTS)
    plot = page.locator(".plot").last
    plot.scroll_into_view_if_needed()
    settle(page)
    plot.hover()
    learned(page)
    runs = read_runs(plan="activations")
    tip = page.get_by_role("status").and_(page.locator(".tip"))
    for model in ("gelu", "relu"):
        name = f"{ACTIVATIONS[model][0]}, mean"
        plot.locator(f"[data-dots='{name}'] use").hover()
        mean = Spread.of(relative_perplexity(runs["squared-relu"], runs[model])).mean
        (row,) = tip.locator("p").all()  # the other axis says nothing of its own
        axis, value = (row.text_content() or "").rsplit(" ", 1)
        assert tip.locator("b").inner_text() == name
        assert axis == "perplexity, squared ReLU = 100"
        assert float(value) == pytest.approx(mean, abs=0.06)
    box = plot.bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
    expect(tip).to_be_hidden()  # no dot is near


def test_arrow_keys_lead_from_dot_to_dot(reading: Reading) -> None:
    page = reading(DOTS)
    plot = page.locator(".plot").last
    plot.locator("xpath=..").focus()
    learned(page)
    tip, met = page.locator(".tip--curves"), list[str]()
    number = plot.locator("[data-dots] use").count()
    for _ in range(number):
        page.keyboard.press("ArrowRight")
        met.append(tip.locator("b").inner_text())
    # From the middle to the end, and once round to where it began.
    means = [name for name in met if name.endswith("mean")]
    assert sorted(means) == sorted(f"{name}, mean" for name, _ in ACTIVATIONS.values())
    assert len(met) - len(means) == 3 * len(ACTIVATIONS)
    before = met[-2]
    page.keyboard.press("ArrowLeft")
    assert tip.locator("b").inner_text() == before


def test_the_script_comes_when_a_figure_is_first_pointed_at(visit: Visitor) -> None:
    opened = visit(EXAMPLE)
    opened.page.locator(".plot").scroll_into_view_if_needed()
    assert not [url for url in opened.asked if "curves.js" in url]
    for across in (0.4, 0.5, 0.6):
        point(opened.page, opened.page.locator(".plot"), across)
    learned(opened.page)
    assert len([url for url in opened.asked if "curves.js" in url]) == 1
