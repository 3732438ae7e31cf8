"""Runs in a chapter's kernel: draws each figure a second time, for a narrow screen.

Panels are below each other, a legend is below its panel, and long titles and names take several lines. The
words keep their size. The page shows this drawing on a phone; the notebook has only the other one. If words
would lie on each other, or outside, the figure has no narrow drawing, and the page lets its readers scroll.
"""

import copy
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from IPython.core.formatters import BaseFormatter

FORMAT = "image/x-narrow+svg"
# Inches. On a screen of 390 pixels, 3.8 enlarge a word a little.
WIDTHS = (3.8, 4.3, 4.8)
SMALLEST = 8.0  # points


class Narrow(BaseFormatter):  # type: ignore[misc]
    """A display format of a figure: its narrow drawing, if it has one."""

    def __call__(self, shown: Any) -> str | None:
        if hasattr(shown, "get_figwidth") and hasattr(shown, "savefig"):
            return narrow(shown)
        return None


def install(shell: Any) -> None:
    """Add the format after the others, when the ids of curves are known."""
    display = shell.display_formatter
    display.formatters = {**display.formatters, FORMAT: Narrow(parent=display)}


def narrow(figure: Any) -> str | None:
    """Return a figure, which was drawn already, as SVG for a narrow screen.

    Returns nothing if it is narrow, or cannot be laid out so.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Whatever an author's figure is made of, the page has the wide one.
        with suppress(Exception):
            if figure.get_figwidth() > WIDTHS[0]:
                return next(map(drawn, filter(is_readable, attempts(figure))), None)
    return None


def attempts(figure: Any) -> Iterator[Any]:
    """Yield narrow layouts of a figure: the narrowest first, with columns of panels if there is room."""
    for width in WIDTHS:
        for columns in numbers_of_columns(figure, width):
            other = copied(figure)
            lay_out(other, width, columns)
            yield other


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


# -- panels ------------------------------------------------------------------------------------


def panels(figure: Any) -> list[list[Any]]:
    """Return the axes of a figure's grid in reading order; those in one place are one panel."""
    found: dict[tuple[int, int, int], list[Any]] = {}
    for axes in figure.axes:
        spec = axes.get_subplotspec()
        if spec is not None and not hasattr(axes, "_colorbar"):
            rows, columns = spec.rowspan, spec.colspan
            place = id(spec.get_gridspec()), rows.start, columns.start
            found.setdefault(place, []).append(axes)
    corner = {place: axes[0].get_position() for place, axes in found.items()}
    order = sorted(found, key=lambda p: (-round(corner[p].y1, 2), corner[p].x0))
    return [found[place] for place in order]


def grid_columns(figure: Any) -> int:
    """Return the number of panels next to each other."""
    tops = [round(panel[0].get_position().y1, 2) for panel in panels(figure)]
    return max((tops.count(top) for top in tops), default=1)


def numbers_of_columns(figure: Any, width: float) -> Iterator[int]:
    """Yield the numbers of columns to try: those that leave the panels about as wide as they were."""
    if figure.subfigs:
        raise NotImplementedError("a figure of figures")
    now = grid_columns(figure)
    room = figure.get_figwidth() / now
    for columns in range(now, 0, -1):
        if columns == 1 or (now % columns == 0 and width / columns > 0.9 * room):
            yield columns


def lay_out(figure: Any, width: float, columns: int) -> None:
    """Lay a figure out in so many inches and columns."""
    shown = [panel for panel in panels(figure) if any(a.get_visible() for a in panel)]
    sizes = {panel[0]: size(figure, panel[0].get_position()) for panel in shown}
    moved = columns < grid_columns(figure)
    if moved:
        rearrange(shown, columns)
    for text in words(figure):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))
    figure.set_figwidth(width)
    legends = [
        Legend(figure, axes) for axes in (figure, *figure.axes) if has_legend(axes)
    ]
    taller = wrap_names(figure, shown, width)
    settle(figure)
    for last in (False, True):
        set_heights(figure, shown, columns if moved else 0, sizes, taller)
        settle(figure)
        wrap_titles(figure, width, names=last)
        for legend in legends:
            legend.place(width)
        if last:
            for axes in figure.axes:
                thin_out(axes)
        settle(figure)
    set_heights(figure, shown, columns if moved else 0, sizes, taller)
    figure.draw_without_rendering()  # this places the words of legends, too


def settle(figure: Any) -> None:
    """Let a figure compute its layout."""
    engine = figure.get_layout_engine()
    if engine:
        engine.execute(figure)
    else:
        figure.draw_without_rendering()


def size(figure: Any, box: Any) -> tuple[float, float]:
    """Return the width and height, in inches, of a box in parts of a figure."""
    wide, high = figure.get_size_inches()
    return float(box.width * wide), float(box.height * high)


def rearrange(shown: list[list[Any]], columns: int) -> None:
    """Place the panels in so many columns. Each has the names that it shared with its neighbour."""
    rows = -(-len(shown) // columns)
    grid = shown[0][0].figure.add_gridspec(rows, columns)
    for at, panel in enumerate(shown):
        axes = panel[0]
        first = at % columns == 0
        for way in "xy":
            if first or way == "x":
                show_shared(axes, way)
        for each in panel:
            each.set_subplotspec(grid[at // columns, at % columns])


def show_shared(axes: Any, way: str) -> None:
    """Show the ticks' names, and the name of the axis, that only other axes have shown."""
    axis = getattr(axes, f"{way}axis")
    side = {"x": "labelbottom", "y": "labelleft"}[way]
    group = getattr(axes, f"get_shared_{way}_axes")().get_siblings(axes)
    if any(getattr(a, f"{way}axis").get_tick_params().get(side) for a in group):
        axis.set_tick_params(which="both", **{side: True})
        axis.offsetText.set_visible(True)
    named = [n for a in group if (n := getattr(a, f"{way}axis").get_label_text())]
    if named and not axis.get_label_text():
        axis.set_label_text(named[0])
    axis.label.set_visible(True)


def set_heights(
    figure: Any,
    shown: list[list[Any]],
    columns: int,
    sizes: dict[Any, tuple[float, float]],
    taller: dict[Any, float],
) -> None:
    """Make a figure so high that its panels have their own heights, or their own shapes."""
    wanted, there = {}, {}
    for axes, *_ in shown:
        wide, high = sizes[axes]
        # Of axes with a shape of their own, the place that they are in.
        room, there[axes] = size(figure, axes.get_position(original=True))
        shaped = axes.get_aspect() != "auto"
        most = high / wide * min(room, 1.3 * wide)
        wanted[axes] = most if shaped else high * taller.get(axes, 1.0)
    if columns:
        rows = [shown[at : at + columns] for at in range(0, len(shown), columns)]
        heights = [max(wanted[panel[0]] for panel in row) for row in rows]
        shown[0][0].get_subplotspec().get_gridspec().set_height_ratios(heights)
        more = sum(heights) - sum(max(there[p[0]] for p in row) for row in rows)
    else:
        more = max((wanted[a] - there[a] for a in wanted), default=0)
        tops = {round(a.get_position(original=True).y1, 2) for a in wanted}
        more *= len(tops)
    figure.set_figheight(max(1.0, figure.get_figheight() + more))


# -- words -------------------------------------------------------------------------------------


def words(figure: Any) -> list[Any]:
    """Return the texts of a figure that are shown."""
    from matplotlib.text import Text

    hidden = {
        id(text)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for text in (tick.label1, tick.label2)
        if not inside(axis, tick)
    }
    return [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


def inside(axis: Any, tick: Any) -> bool:
    """Return whether a tick is in view."""
    low, high = sorted(axis.get_view_interval())
    margin = 1e-6 * (high - low)
    return bool(low - margin <= tick.get_loc() <= high + margin)


def wrapped(text: Any, room: float) -> str:
    """Return a text in lines of at most so many pixels. Formulas are not broken."""
    said = text.get_text()
    pieces = re.findall(r"(?:\$[^$]*\$|[^\s$])+|\n", said)
    lines, line = [], ""
    for piece in pieces:
        longer = f"{line} {piece}".strip()
        text.set_text(longer)
        if piece == "\n" or (line and extent(text) > room):
            lines.append(line)
            line = piece.strip()
        else:
            line = longer
    text.set_text(said)
    return "\n".join([*lines, line])


def extent(text: Any) -> float:
    """Return how many pixels a text is long, whatever its direction."""
    box = text.get_window_extent()
    return float(box.height if text.get_rotation() == 90 else box.width)


def wrap_titles(figure: Any, width: float, names: bool) -> None:
    """Break titles that are longer than there is room, and if asked for the names of axes."""
    room = width * figure.dpi
    if figure._suptitle:
        figure._suptitle.set_text(wrapped(figure._suptitle, 0.96 * room))
    for axes in figure.axes:
        box = axes.get_window_extent()
        for title in (axes.title, axes._left_title, axes._right_title):
            if title.get_text():
                title.set_text(wrapped(title, room - box.x0 - 4))
        middle = (box.x0 + box.x1) / 2
        across = 2 * min(middle, room - middle)
        for axis, long in ((axes.xaxis, across), (axes.yaxis, 1.25 * box.height)):
            if names and axis.label.get_text():
                axis.label.set_text(wrapped(axis.label, 0.98 * long))


def wrap_names(figure: Any, shown: list[list[Any]], width: float) -> dict[Any, float]:
    """Break long names of rows. Return by how much their panels must be taller."""
    from matplotlib.ticker import FixedFormatter

    taller = {}
    for axes in (axes for panel in shown for axes in panel):
        axis = axes.yaxis
        if not isinstance(axis.get_major_formatter(), FixedFormatter):
            continue
        labels = [t.label1 for t in axis.get_major_ticks()]
        room = 0.36 * width * figure.dpi
        names = [wrapped(label, room) for label in labels]
        lines = max((name.count("\n") for name in names), default=0)
        if lines > max(label.get_text().count("\n") for label in labels):
            axis.set_ticklabels(names)
            taller[axes] = 1 + 0.4 * lines
    return taller


def thin_out(axes: Any) -> None:
    """Give a horizontal axis fewer ticks, or turn its names, if they lie on each other."""
    from matplotlib.ticker import FixedLocator

    axis = axes.xaxis
    ticks = [
        t for t in axis.get_major_ticks() if inside(axis, t) and t.label1.get_visible()
    ]
    labels = [t.label1 for t in ticks if t.label1.get_text()]
    if not overlap(labels, 3):
        return
    if not isinstance(axis.get_major_locator(), FixedLocator):
        with_fewer = getattr(axis.get_major_locator(), "set_params", None)
        if with_fewer:
            with_fewer(
                **({"numticks": 4} if axes.get_xscale() == "log" else {"nbins": 4})
            )
    elif all(re.fullmatch(r"[-−]?[\d.,]+\D?", label.get_text()) for label in labels):
        for label in labels[1::2]:
            label.set_text("")
        axis.set_ticklabels([t.label1.get_text() for t in axis.get_major_ticks()])
    else:
        for label in labels:
            label.set(rotation=40, ha="right", rotation_mode="anchor")


# -- legends -----------------------------------------------------------------------------------


def has_legend(parent: Any) -> bool:
    return bool(parent.legends if hasattr(parent, "legends") else parent.get_legend())


class Legend:
    """A legend of a figure or of axes, that is moved below it."""

    def __init__(self, figure: Any, parent: Any):
        self.figure, self.parent = figure, parent
        old = parent.legends[0] if hasattr(parent, "legends") else parent.get_legend()
        self.handles = list(old.legend_handles)
        self.names = [text.get_text() for text in old.get_texts()]
        title = old.get_title().get_text()
        self.style = {
            "frameon": old.get_frame_on(),
            "fontsize": max(old._fontsize, SMALLEST),
            "title": title or None,
            "borderaxespad": 0,
            "columnspacing": 1.2,
            "alignment": "left",
        }
        old.remove()

    def place(self, width: float) -> None:
        """Place it below the names of the axis, in as many columns as there is room for."""
        from matplotlib.transforms import ScaledTranslation

        figure, axes = self.figure, self.parent
        if axes is figure:
            where: dict[str, Any] = {"loc": "outside lower left"}
        else:
            if axes.get_legend():
                axes.get_legend().remove()
            box = axes.get_window_extent()
            names = axes.xaxis.get_tightbbox()
            down = (box.y0 - names.y0 if names else 0) / figure.dpi + 0.08
            left = (box.x0 - 4) / figure.dpi  # of the figure, from the axes
            shift = ScaledTranslation(-left, -down, figure.dpi_scale_trans)
            where = {
                "loc": "upper left",
                "bbox_to_anchor": (0, 0),
                "bbox_transform": axes.transAxes + shift,
            }
        most = 4 if len(self.names) > 4 else len(self.names)
        for columns in range(most, 0, -1):
            if axes is figure:
                for legend in list(figure.legends):
                    legend.remove()
            legend = axes.legend(
                self.handles, self.names, ncols=columns, **where, **self.style
            )
            room = width * figure.dpi - 8
            if legend.get_window_extent().width <= room:
                return
            if columns == 1:
                for text in legend.get_texts():
                    over = legend.get_window_extent().width - extent(text)
                    text.set_text(wrapped(text, room - over))


# -- whether it can be read ---------------------------------------------------------------------


def overlap(texts: Iterable[Any], least: float = 0) -> bool:
    """Return whether two of the texts lie on each other, or are closer than so many pixels."""
    boxes = [text.get_window_extent() for text in texts]
    return any(
        min(a.x1, b.x1) - max(a.x0, b.x0) > -least
        and min(a.y1, b.y1) - max(a.y0, b.y0) > 2
        for i, a in enumerate(boxes)
        for b in boxes[:i]
    )


def is_readable(figure: Any) -> bool:
    """Return whether each word is inside the figure and none lies on another.

    Letters that mark points may touch, as they do in a wide drawing.
    """
    texts = words(figure)
    whole = figure.bbox
    for text in texts:
        box = text.get_window_extent()
        if (
            min(box.x0 + 4, whole.x1 - box.x1 + 4, box.y0 + 4, whole.y1 - box.y1 + 4)
            < 0
        ):
            return False
    labels = {id(text) for axes in figure.axes for text in axes.texts}
    letters = [t for t in texts if id(t) in labels and len(t.get_text().strip()) < 3]
    others = [text for text in texts if text not in letters]
    return not overlap(others, -1)
