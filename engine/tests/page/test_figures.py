"""A figure becomes a part of the page, with what its axes measure and what its lines are called."""

import io
import json
import re
from html import unescape

import matplotlib
import pytest
from matplotlib.figure import Figure
from sphinx_annotated.page.html.figures import themed
from sphinx_annotated.run.curves import note
from sphinx_annotated.run.fonts import use

SVG = '<svg viewBox="0 0 9 9">%s</svg>'


def test_what_is_white_in_a_figure_is_the_ground_of_the_page() -> None:
    svg = SVG % '<path style="stroke: #ffffff"/>'
    assert "stroke: var(--fig-ground, #ffffff)" in themed(svg, "Gaps")


def test_places_are_rounded_and_words_are_not() -> None:
    path, word = (
        '<path d="M 1.23456 2 \nL -3.98765 4 \n"/>',
        '<text x="0.125">0.0625</text>',
    )
    moved = f'\n   <g transform="translate(1.23456 -7)">{word}</g>'
    html = themed(SVG % (path + moved), "Places")
    assert '\n<g transform="translate(1.23 -7)">' in html
    assert 'd="M 1.23 2 L -3.99 4"' in html
    assert '<text x="0.12">0.0625</text>' in html


def test_words_are_turned_only_if_they_stand_askew() -> None:
    level, askew = (
        f'<text transform="rotate({by} 1 2)">x</text>' for by in ("-0", "-45")
    )
    assert themed(SVG % level, "Level").count("rotate") == 0
    assert askew in themed(SVG % askew, "Askew")


def drawn(
    figure: Figure, named: str = "data-curve"
) -> tuple[list[dict[str, list[object]]], list[str]]:
    """What the page's figure says of its axes and its lines or dots, once it is drawn."""
    note(figure)
    file = io.StringIO()
    figure.savefig(file, format="svg")
    html = themed(file.getvalue(), "A figure")
    quoted = r"""=(["'])(.*?)\1"""
    axes = [json.loads(unescape(m[2])) for m in re.finditer("data-axes" + quoted, html)]
    return axes, [unescape(m[2]) for m in re.finditer(named + quoted, html)]


def test_axes_tell_what_they_measure() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1, 10, 100], [2, 3, 4], label="a line")
    axes.set(xscale="log", xlabel="$d_k$", ylabel="loss", xlim=(1, 100), ylim=(4, 0))
    scales, curves = drawn(figure)
    assert scales == [{"x": ["d_k", "log", 1, 100], "y": ["loss", "linear", 4, 0]}]
    assert curves == ["a line"]


def test_a_line_is_called_as_in_the_legend_or_as_the_words_of_its_colour() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.plot([0, 1, 2], [0, 1, 2], "C0", label='the "first"')
    left.plot([0, 1, 2], [0, 1, 3], "C1")
    left.text(1, 1, "second", color="C1")
    right.plot([0, 1, 2], [5, 6, 7], "C1")  # its words stand in the other axes
    right.plot([0, 1, 2], [5, 6, 7], "C0--")  # not how the first looks
    right.axhline(6, color="C0")
    scales, curves = drawn(figure)
    assert len(scales) == 2
    assert curves == ['the "first"', "second", "second"]


def test_lines_that_look_alike_keep_their_own_names() -> None:
    figure = Figure()
    axes = figure.subplots()
    for width in (32, 64):
        axes.plot([0, 1, 2], [0, 1, width], "C0", label=f"width {width}")
    axes.text(1, 1, "a word", color="C0")
    assert drawn(figure)[1] == ["width 32", "width 64"]


def test_of_two_words_in_its_colour_neither_is_a_lines_name() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, 1, 2], "C0")
    for words in ("here", "there"):
        axes.text(1, 1, words, color="C0")
    assert drawn(figure) == ([], [])


def test_dots_have_their_own_names_or_none() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([1], [2], "o", color="C0", label="the mean")
    axes.plot([1, 2, 3], [2, 2, 2], "o", color="C0", label="a seed")
    axes.plot([1, 2, 3], [2, 2, 2], "o", color="C0")
    axes.errorbar([2], [1], xerr=[1], fmt="s", label="with a bar")
    scales, dots = drawn(figure, "data-dots")
    assert len(scales) == 1
    assert dots == ["the mean", "a seed", "with a bar"]
    assert drawn(figure)[1] == []


@pytest.mark.parametrize("kind", ["symlog", "logit"])
def test_of_scales_that_it_does_not_know_nothing_is_told(kind: str) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0.1, 0.2, 0.3], [1, 2, 3], label="a line")
    axes.set_xscale(kind)
    assert drawn(figure) == ([], [])


def test_a_drawing_without_a_frame_is_no_chart() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, 1, 2], label="a line")
    axes.axis("off")
    assert drawn(figure) == ([], [])


def test_without_fonts_matplotlib_keeps_its_own() -> None:
    before = dict(matplotlib.rcParams)
    use([])
    assert dict(matplotlib.rcParams) == before
