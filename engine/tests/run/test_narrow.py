"""A figure has a second drawing for a narrow screen, in which its words keep their size."""

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.figure import Figure
from sphinx_annotated.page.html.figures import themed
from sphinx_annotated.run.curves import note
from sphinx_annotated.run.narrow import WIDTHS, Narrow, narrow

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
        "a title that is as long as the figure for which it was written, and not shorter, "
        "and that goes on",
        fontsize=8,
    )
    return figure


def test_a_line_says_that_panels_are_below_each_other() -> None:
    def on_page(figure: Figure) -> str:
        file = io.StringIO()
        shown(figure).savefig(file, format="svg")
        return themed(file.getvalue(), "A figure", narrow(figure) or "")

    assert on_page(two_panels()).count(ORDER) == 1
    assert ORDER not in on_page(one_long_title())


def size(svg: str) -> tuple[float, float]:
    """The width and height of a drawing in inches."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert found
    return float(found[1]) / 72, float(found[2]) / 72


def test_panels_are_below_each_other_and_each_has_its_names() -> None:
    drawing = narrow(shown(two_panels())) or ""
    wide, high = size(drawing)
    assert wide == pytest.approx(WIDTHS[0]) and high == pytest.approx(2 * 2.6, rel=0.05)
    for words, count in (("before", 1), ("after", 1), ("loss", 2), ("1.0", 4)):
        assert drawing.count(f"<!-- {words} -->") == count, words


def test_a_long_title_takes_several_lines_and_nothing_from_the_panel() -> None:
    drawing = narrow(shown(one_long_title())) or ""
    lines = re.findall(
        r"<!-- (.*?(?:title|figure|written|shorter|goes).*?) -->", drawing
    )
    assert len(lines) > 1 and "goes on" in " ".join(lines)
    assert size(drawing)[1] > 2.6


def test_a_figure_with_many_panels_has_none() -> None:
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    figure.subplots(2, 8)
    assert narrow(shown(figure)) is None


def test_a_figure_with_long_names_of_rows_has_none() -> None:
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    figure.subplots().barh(
        ["a name that is longer than two thirds of the figure is wide on any screen"],
        [1],
    )
    assert narrow(shown(figure)) is None


def test_a_figure_with_small_words_has_none() -> None:
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    figure.subplots().text(0.5, 0.5, "in small letters", fontsize=6)
    assert narrow(shown(figure)) is None


def test_an_error_of_the_narrow_drawing_is_told_and_the_wide_one_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Wide(Figure):
        def savefig(self, *args: Any, **kwargs: Any) -> None:
            if self.get_figwidth() < 7:
                raise ValueError("too narrow")
            super().savefig(*args, **kwargs)

    figure = Wide(figsize=(7, 2.6))
    figure.subplots().plot([1, 2])
    assert Narrow()(shown(figure)) is None
    assert "too narrow" in "".join(capsys.readouterr())
    assert figure.get_figwidth() == 7


@pytest.mark.parametrize("figure", [two_panels, one_long_title])
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
        axes.text(x, 0.5, "a few words", ha="center")
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

    assert Narrow()(Grid()) is None
    assert Narrow()(Figure) is None
