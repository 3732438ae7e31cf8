"""Runs in a chapter's kernel: draws figures a second time, as wide as a phone, if their words fit.

Words keep their size, long titles take several lines, and panels are below each other. A figure with many
panels has no such drawing, nor has one whose words would touch: on a phone, its readers scroll.
"""

import copy
import io
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from IPython.core.formatters import BaseFormatter, catch_format_error

FORMAT = "image/x-narrow+svg"
WIDTHS = (3.8, 4.3, 4.8)  # inches; a screen of 390 pixels enlarges a word a little
SMALLEST = 1.9  # points of a word per inch of the drawing: 9 pixels on a phone
PANEL = 1.3  # inches that a panel is wide at least
MOST = 4  # panels


class Narrow(BaseFormatter):  # type: ignore[misc]
    """A display format of a figure: its narrow drawing, if it has one. The author sees an error of it."""

    @catch_format_error  # type: ignore[untyped-decorator]
    def __call__(self, shown: Any) -> str | None:
        matplotlib = sys.modules.get("matplotlib.figure")
        return (
            narrow(shown)
            if matplotlib and isinstance(shown, matplotlib.Figure)
            else None
        )


def install(shell: Any) -> None:
    """Add the format after the others, when the ids of curves are known."""
    display = shell.display_formatter
    display.formatters = {**display.formatters, FORMAT: Narrow(parent=display)}


def narrow(figure: Any) -> str | None:
    """Return a figure as SVG for a narrow screen, or nothing if it is narrow, or its words do not fit."""
    few = not figure.subfigs and len(panels(figure)) <= MOST
    widths = [width for width in WIDTHS if few and figure.get_figwidth() > width]
    return next(filter(None, (narrowed(figure, width) for width in widths)), None)


def narrowed(figure: Any, width: float) -> str | None:
    """Return a figure as SVG that is so many inches wide, or nothing if its words do not fit."""
    other = copied(figure)
    stack(other)
    other.set_figwidth(width)
    for text in titles_of(other):
        text.set_wrap(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wide drawing has shown them
        other.draw_without_rendering()
        # Titles of several lines have taken from the panels.
        lower = sum(height(each) for each in panels(figure)) - sum(
            height(each) for each in panels(other)
        )
        other.set_figheight(other.get_figheight() + max(0.0, lower))
        other.draw_without_rendering()
        return drawn(other) if is_readable(other) else None


def copied(figure: Any) -> Any:
    """Return a copy that pyplot does not know."""
    manager, figure.canvas.manager = figure.canvas.manager, None
    try:
        return copy.deepcopy(figure)
    finally:
        figure.canvas.manager = manager


def drawn(figure: Any) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches=None)
    return file.getvalue()


def panels(figure: Any) -> list[list[Any]]:
    """Return the axes of a figure's grid in reading order; those in one place are one panel."""
    found: dict[tuple[int, int], list[Any]] = {}
    for axes in figure.axes:
        if (place := axes.get_subplotspec()) and axes.get_visible():
            found.setdefault((place.rowspan.start, place.colspan.start), []).append(
                axes
            )
    return [found[place] for place in sorted(found)]


def height(panel: list[Any]) -> float:
    """Return the inches that a panel is high, whatever the shape of what is in it."""
    axes = panel[0]
    return float(axes.get_position(original=True).height * axes.figure.get_figheight())


def stack(figure: Any) -> None:
    """Place the panels below each other. Each has the names that it shared with its neighbour."""
    shown = panels(figure)
    rows = len({panel[0].get_subplotspec().rowspan.start for panel in shown})
    if len(shown) == rows:
        return
    figure.set_figheight(figure.get_figheight() / rows * len(shown))
    for place, panel in zip(figure.add_gridspec(len(shown), 1), shown, strict=True):
        for axes in panel:
            axes.set_subplotspec(place)
            show_names(axes, "x", "labelbottom")
            show_names(axes, "y", "labelleft")


def show_names(axes: Any, way: str, side: str) -> None:
    """Show the numbers of a shared axis, and its name, which only another panel has shown."""
    sharing = getattr(axes, f"get_shared_{way}_axes")().get_siblings(axes)
    names = filter(None, (getattr(each, f"get_{way}label")() for each in sharing))
    if len(sharing) > 1:
        axes.tick_params(axis=way, **{side: True})
        axis = getattr(axes, f"{way}axis")
        axis.set_label_text(next(names, ""))
        axis.label.set_visible(True)


def titles_of(figure: Any) -> Iterator[Any]:
    """Yield the titles of a figure and of its panels, and the names of their axes."""
    names = {figure.get_suptitle()}
    for axes in figure.axes:
        names |= {axes.get_title(place) for place in ("left", "center", "right")}
        names |= {axes.get_xlabel(), axes.get_ylabel()}
    yield from (text for text in words(figure) if text.get_text() in names)


def words(figure: Any) -> list[Any]:
    """Return the texts that a figure shows. Axes have ticks beyond their ends, which it does not."""
    from matplotlib.text import Text

    hidden = set()
    for axes in figure.axes:
        if not axes.get_visible():
            hidden.update(axes.findobj(Text))
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            margin = 1e-6 * (high - low)
            for minor in (False, True):
                labels = axis.get_ticklabels(minor=minor)
                for at, label in zip(
                    axis.get_ticklocs(minor=minor), labels, strict=False
                ):
                    if not axes.axison or not low - margin <= at <= high + margin:
                        hidden.add(label)
    return [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in hidden
    ]


def is_readable(figure: Any) -> bool:
    """Return whether panels and words are large enough, and each word is inside and none lies on another.

    Letters that mark points may touch, as they do in a wide drawing.
    """
    for axes in figure.axes:
        width = axes.get_position().width * figure.get_figwidth()
        if axes.get_subplotspec() and width < PANEL:
            return False
    marks = {
        text for axes in figure.axes for text in axes.texts if len(text.get_text()) < 3
    }
    texts = words(figure)
    smallest = SMALLEST * figure.get_figwidth()
    if any(text.get_fontsize() < smallest for text in texts):
        return False
    boxes = [text.get_window_extent() for text in texts if text not in marks]
    whole = figure.bbox.padded(4)
    return all(
        whole.x0 <= box.x0
        and box.x1 <= whole.x1
        and whole.y0 <= box.y0
        and box.y1 <= whole.y1
        for box in boxes
    ) and not any(
        min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2
        for i, a in enumerate(boxes)
        for b in boxes[:i]
    )
