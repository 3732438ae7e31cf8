"""Runs in a chapter's kernel: writes into each figure what its axes measure and what its lines are called.

An SVG has places and no numbers. The ids of its groups take along what is missing: that of axes, where their
scales begin and end; that of a line or of dots, its name. ``figures.py`` reads them, and the page tells the
numbers behind the pointer.
"""

import json
import re
from typing import Any

from IPython.core.formatters import BaseFormatter


class Notes(BaseFormatter):  # type: ignore[misc]
    """A display format that shows nothing: it sees each figure just before it is drawn."""

    def __call__(self, shown: Any) -> None:
        if hasattr(shown, "axes") and hasattr(shown, "savefig"):
            note(shown)


def install(shell: Any) -> None:
    display = shell.display_formatter
    display.formatters = {"notes": Notes(parent=display), **display.formatters}


def note(figure: Any) -> None:
    """Gives the axes that have named lines or dots, and those, ids that tell what they are."""
    looks = called(figure)
    for axes in figure.axes:
        scales = {
            "x": measured(axes.xaxis, axes.get_xlim()),
            "y": measured(axes.yaxis, axes.get_ylim()),
        }
        for bars in axes.containers:
            if bars[0] in axes.lines:  # an error bar has its dot's name
                bars[0].set_label(bars.get_label())
        told = {line: kind for line in axes.lines if (kind := told_as(line, looks))}
        known = all(scale[1] in ("linear", "log") for scale in scales.values())
        # Without a frame there is nothing to measure by.
        if told and known and axes.axison:
            axes.set_gid("axes:" + json.dumps(scales, separators=(",", ":")))
            for line, kind in told.items():
                line.set_gid(plain(kind))


def told_as(line: Any, looks: dict[tuple[str, str], str]) -> str:
    """What kind of line it is, and its name; nothing if it has none, or is a stroke between two points."""
    if line.get_linestyle() == "None":
        return f"dots:{label(line)}" if label(line) else ""
    name = label(line) or looks.get(look(line), "")
    return f"curve:{name}" if name and len(line.get_xdata()) > 2 else ""


def called(figure: Any) -> dict[tuple[str, str], str]:
    """What a line of this colour and style is called: by another line, or by words of its colour beside it.

    Where two axes draw the same things, the words of one do for both. Of two words in a colour, neither does.
    """
    lines = [line for axes in figure.axes for line in axes.lines]
    texts = [text for axes in figure.axes for text in axes.texts]
    words: dict[str, set[str]] = {}
    for text in texts:
        words.setdefault(to_hex(text.get_color()), set()).add(text.get_text())
    names = {colour: said.pop() for colour, said in words.items() if len(said) == 1}
    beside = {
        look(line): names[look(line)[0]] for line in lines if look(line)[0] in names
    }
    return beside | {look(line): label(line) for line in lines if label(line)}


def label(line: Any) -> str:
    """A line's own name; matplotlib gives one that starts with a stroke where there is none."""
    own = str(line.get_label())
    return "" if own.startswith("_") else own


def look(line: Any) -> tuple[str, str]:
    return to_hex(line.get_color()), line.get_linestyle()


def to_hex(color: Any) -> str:
    from matplotlib.colors import to_hex  # only chapters that draw load it

    return to_hex(color)


def measured(axis: Any, ends: tuple[float, float]) -> list[Any]:
    """An axis's name, its kind, and where it begins and ends."""
    short = (float(f"{end:.6g}") for end in ends)
    return [plain(axis.get_label_text()), axis.get_scale(), *short]


def plain(words: str) -> str:
    """Without the marks of a formula."""
    return re.sub(r"[$\\{}]", "", words)
