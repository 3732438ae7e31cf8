"""A figure becomes a part of the page."""

from annotated.figures import themed


def test_what_is_white_in_a_figure_is_the_ground_of_the_page() -> None:
    svg = '<svg viewBox="0 0 9 9"><path style="stroke: #ffffff"/></svg>'
    assert "stroke: var(--fig-ground, #ffffff)" in themed(svg, "Gaps")
