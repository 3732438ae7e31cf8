"""A figure has a second drawing for a narrow screen, laid out anew, in which its words keep their size."""

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.figure import Figure
from sphinx_annotated.page.html.figures import themed
from sphinx_annotated.run.curves import note
from sphinx_annotated.run.narrow import SMALLEST, WIDTHS, attempts, is_readable, narrow

ORDER = "The panels, from left to right, are here from top to bottom."


def shown(figure: Figure) -> Figure:
    """The figure, drawn as a notebook draws it before it asks for the narrow one."""
    note(figure)
    figure.savefig(io.StringIO(), format="svg")
    return figure


def two_panels() -> Figure:
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, title in ((left, "before"), (right, "after")):
        axes.plot([0, 1, 2], [0, 1, 2], label="a line")
        axes.set(title=title, xlabel="step")
    left.set_ylabel("loss")
    right.legend()
    return figure


def one_long_title() -> Figure:
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, 1, 2])
    axes.set_title(
        "a title that is as long as the figure for which it was written, and not shorter",
        fontsize=6,
    )
    return figure


def heat_maps() -> Figure:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    for axes in figure.subplots(2, 8).flat:
        axes.imshow([[0, 1], [1, 0]])
        axes.set_axis_off()
    return figure


def laid_out(figure: Figure) -> Any:
    """The first layout that can be read."""
    return next(filter(is_readable, attempts(shown(figure))))


def test_a_line_says_that_panels_are_below_each_other() -> None:
    def on_page(figure: Figure) -> str:
        file = io.StringIO()
        shown(figure).savefig(file, format="svg")
        return themed(file.getvalue(), "A figure", narrow(figure) or "")

    assert on_page(two_panels()).count(ORDER) == 1
    assert ORDER not in on_page(one_long_title())


def test_panels_are_below_each_other_and_each_has_its_names() -> None:
    other = laid_out(two_panels())
    upper, lower = other.axes
    assert other.get_figwidth() == WIDTHS[0]
    assert upper.get_position().y0 > lower.get_position().y1
    assert [axes.get_ylabel() for axes in other.axes] == ["loss", "loss"]
    assert lower.yaxis.get_tick_params()["labelleft"]
    assert [a.get_title() or a.get_title("left") for a in other.axes] == [
        "before",
        "after",
    ]


def test_a_panel_is_as_high_as_it_was() -> None:
    figure = shown(two_panels())
    before = figure.axes[0].get_position().height * figure.get_figheight()
    other = laid_out(figure)
    for axes in other.axes:
        height = axes.get_position().height * other.get_figheight()
        assert height == pytest.approx(before, rel=0.1)


def test_a_legend_is_below_its_panel() -> None:
    other = laid_out(two_panels())
    lower = other.axes[1]
    assert lower.get_legend().get_window_extent().y1 < lower.get_window_extent().y0


def test_a_long_title_takes_several_lines_and_small_words_grow() -> None:
    other = laid_out(one_long_title())
    title = other.axes[0].title
    assert "\n" in title.get_text()
    assert title.get_fontsize() == SMALLEST


def test_many_panels_stay_about_as_wide_as_they_were() -> None:
    other = laid_out(heat_maps())
    tops = [round(axes.get_position().y1, 2) for axes in other.axes]
    assert max(map(tops.count, tops)) == 4
    assert len(other.axes) == 16


@pytest.mark.parametrize("figure", [two_panels, one_long_title, heat_maps])
def test_the_figure_itself_stays_as_it_is(figure: Callable[[], Figure]) -> None:
    def svg(one: Figure) -> str:
        file = io.StringIO()
        one.savefig(file, format="svg", metadata={"Date": None})
        return re.sub(r'id="[^"]*"|#[\w]+', "", file.getvalue())

    one = shown(figure())
    before = svg(one)
    assert narrow(one)
    assert svg(one) == before


def test_a_curve_tells_the_same_numbers_in_both_drawings() -> None:
    figure = shown(two_panels())
    html = themed(io_svg(figure), "Two", narrow(figure) or "")
    wide, small = html.split('class="plot-narrow"')
    for pattern in (r"data-axes=(\S+)", r"data-curve=(\S+)"):
        assert re.findall(pattern, wide) == re.findall(pattern, small) != []


def io_svg(figure: Figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg")
    return file.getvalue()


def test_a_figure_whose_words_would_lie_on_each_other_has_none() -> None:
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.subplots()
    for x in range(12):
        axes.text(x, 0.5, "a few words", ha="center", fontsize=6)
    axes.set_xlim(-1, 12)
    assert narrow(shown(figure)) is None


def test_a_narrow_figure_needs_none() -> None:
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2])
    assert narrow(shown(figure)) is None


def test_a_figure_that_cannot_be_laid_out_again_has_none() -> None:
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    for part in figure.subfigures(1, 2, squeeze=False).flat:
        part.subplots().plot([1, 2])
    assert narrow(shown(figure)) is None


def test_without_a_narrow_drawing_the_page_has_one_drawing() -> None:
    assert themed('<svg viewBox="0 0 9 9"/>', "One").count("<svg") == 1


def test_what_is_no_figure_has_none() -> None:
    class Grid:
        savefig = get_figwidth = axes = None

    assert narrow(Grid()) is None
    assert narrow(Figure) is None
