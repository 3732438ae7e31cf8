"""A canvas for pictures: boxes that are links, arrows, matrices, curves and words, as SVG.

Lengths are in units. A picture is `WIDTH` units wide, which is about the width of a phone, so its
words, 13 units high, can be read there. Colours are the page's where the picture is part of a page.
A picture on its own, in a notebook or on a slide, has a style of its own inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path

Point = tuple[float, float]

WIDTH = 400
LEAST = 0.85  # of a unit in pixels: words of 13 units are 11 pixels high
CODE = 7.2  # width of a character of code, in every font: 0.6 times its size in drawing.css
THEME = Path(__file__).parents[1] / "theme" / "static"
STYLE = (THEME / "drawing.css").read_text(encoding="utf-8")
CJK = "\u2e80"  # the first character of the Chinese and Japanese scripts
MARKUP = re.compile(r"\*([^*]+)\*|`([^`]+)`|([_^])\{([^}]+)\}")


def say(text: str, picture: str) -> str:
    """Return words as the picture of this title shows them. An edition puts its translation here."""
    return text


class Canvas:
    """A picture in the making. `description` says what it shows to those who cannot see it."""

    def __init__(self, height: float, title: str, description: str, steps: int = 0):
        self.height, self.name = height, title
        self.title, self.description = self.say(title), self.say(description)
        self.count = steps
        self.parts: list[str] = []
        self.reached: set[str] = set()  # where links lead that Tab reaches

    def say(self, text: str) -> str:
        """Return words as this picture shows them."""
        return say(text, self.name)

    def svg(self) -> str:
        """Return the picture."""
        steps = f' data-steps="{self.count}"' if self.count else ""
        return (
            f'<svg class="picture" xmlns="http://www.w3.org/2000/svg" role="group"{steps} '
            f'viewBox="0 0 {WIDTH} {_n(self.height)}" style="--least: {_n(LEAST * self.height)}px" '
            f'aria-label="{escape(self.title)}">'
            f"<style>{STYLE}</style><desc>{escape(self.description)}</desc>"
            f'<rect class="ground" width="100%" height="100%"/>{"".join(self.parts)}</svg>'
        )

    @contextmanager
    def link(self, target: str) -> Iterator[None]:
        """Make what is drawn inside a link to a module or definition: `package.module.Class`.

        Tab stops at one link of those that lead to the same place.
        """
        start, more = len(self.parts), ""
        if target in self.reached:
            more = ' tabindex="-1"'
        self.reached.add(target)
        with self._group("", "</a>"):
            yield
        if "<text" not in "".join(self.parts[start:]):
            # A link without words is named after its definition.
            more += f' aria-label="{escape(target.rpartition(".")[2])}"'
        self.parts[start] = f'<a href="{escape(target)}"{more}>'

    @contextmanager
    def at(self, *steps: int) -> Iterator[None]:
        """Show what is drawn inside at these steps only (from 1). The last step is the whole picture."""
        off = "" if self.count in steps else ' class="off"'
        numbers = " ".join(map(str, steps))
        with self._group(f'<g data-at="{numbers}"{off}>', "</g>"):
            yield

    def captions(self, texts: Sequence[str], x: float, y: float) -> None:
        """Write at each step what it shows, from `x` on."""
        for step, text in enumerate(texts, 1):
            with self.at(step):
                self.words(x, y, text, "caption soft", side="left")

    @contextmanager
    def faint(self) -> Iterator[None]:
        """Draw pale what is inside."""
        with self._group('<g class="faint">', "</g>"):
            yield

    @contextmanager
    def _group(self, start: str, end: str) -> Iterator[None]:
        self.parts.append(start)
        yield
        self.parts.append(end)

    def words(
        self,
        x: float,
        y: float,
        text: str,
        kind: str = "",
        *,
        side: str = "",
        upward: bool = False,
    ) -> None:
        """Write lines of text whose middle is at `y`.

        `side` is `left` if the text starts at `x`, `right` if it ends there; else it is centred.
        `kind` is any of `soft`, `strong`, `title`, `c0` to `c5`. In the text, `*q*` is italic,
        `` `code` `` is code, `_{k}` is an index and `^{T}` a raised one.
        With `upward` the text is turned to the left.
        """
        lines = self.say(text).split("\n")
        top = y - (len(lines) - 1) * 8 + 4.5
        for i, line in enumerate(lines):
            place = f'x="{_n(x)}" y="{_n(top + 16 * i)}"'
            if upward:
                place += f' transform="rotate(-90 {_n(x)} {_n(y)})"'
            self.parts.append(
                f"<text{_class(kind, side)} {place}>{_marked(line)}</text>"
            )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        text: str = "",
        kind: str = "",
        link: str = "",
        round: float = 5,
    ) -> None:
        """Draw a box with its top left corner at `x`, `y`. It is a link if `link` names a definition.

        With a colour (`c0` to `c5`) it is tinted. `area` is a tint without an outline, `dashed` an
        outline alone.
        """
        if link:
            with self.link(link):
                return self.box(x, y, width, height, text, kind, round=round)
        size = f'{_size(x, y, width, height)} rx="{_n(round)}"'
        tint = re.search(r"c\d", kind)
        if "area" not in kind.split():
            self.parts.append(f"<rect{_class('box', kind)} {size}/>")
        if (tint and "dashed" not in kind) or "area" in kind.split():
            self.parts.append(
                f"<rect{_class('area', tint[0] if tint else '')} {size}/>"
            )
        if text:
            small = "s" if _needs(self.say(text)) > width else ""
            self.words(x + width / 2, y + height / 2, text, small)
        return None

    def line(self, *points: Point, kind: str = "", round: float = 7) -> None:
        """Draw a line through points, its corners rounded."""
        self.parts.append(f'<path{_class("line", kind)} d="{_path(points, round)}"/>')

    def arrow(self, *points: Point, kind: str = "", round: float = 7) -> None:
        """Draw a line with a head at its last point."""
        (x0, y0), (x, y) = points[-2:]
        length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5 or 1.0
        dx, dy = (x - x0) / length, (y - y0) / length
        self.line(*points[:-1], (x - 5 * dx, y - 5 * dy), kind=kind, round=round)
        corners = [
            (x, y),
            *((x - 7 * dx - s * dy, y - 7 * dy + s * dx) for s in (3.5, -3.5)),
        ]
        self.parts.append(f'<path{_class("head", kind)} d="{_path(corners)}Z"/>')

    def plus(self, x: float, y: float, kind: str = "") -> None:
        """Draw the sum of two paths."""
        self.circle(x, y, 8, f"box {kind}")
        self.line((x - 4, y), (x + 4, y), kind=kind)
        self.line((x, y - 4), (x, y + 4), kind=kind)

    def around(
        self, x: float, start: float, y: float, side: float, kind: str = ""
    ) -> None:
        """Lead the line at `x` around boxes, from `start` along `side`, to a sum at `y`."""
        end = x + 8 if side > x else x - 8
        self.arrow((x, start), (side, start), (side, y), (end, y), kind=kind)
        self.plus(x, y)

    def circle(self, x: float, y: float, radius: float, kind: str = "ring") -> None:
        """Draw a circle: `ring` is open, `box` has the ground's colour, `dot` is full."""
        place = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
        self.parts.append(f"<circle{_class(kind)} {place}/>")

    def matrix(
        self,
        x: float,
        y: float,
        rows: Sequence[Sequence[float | None]],
        width: float,
        height: float,
        kind: str = "c0",
        text: str = "",
    ) -> None:
        """Draw cells of `width` by `height`, each shaded by its number from 0 to 1, or empty for None.

        With a format such as `.1f` in `text`, cells show their numbers.
        """
        for i, row in enumerate(rows):
            for j, number in enumerate(row):
                self.cell(x + j * width, y + i * height, width, height, number, kind)
                if text and number is not None:
                    middle = (x + (j + 0.5) * width, y + (i + 0.5) * height)
                    self.words(*middle, format(number, text))

    def cell(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        shade: float | None,
        kind: str = "c0",
    ) -> None:
        """Draw one cell of a matrix."""
        size = _size(x, y, width, height)
        self.parts.append(f'<rect class="box" {size}/>')
        if shade:
            opacity = f'fill-opacity="{0.85 * min(1.0, shade):.2f}"'
            self.parts.append(f"<rect{_class('tint', kind)} {size} {opacity}/>")

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a bar on which words can be read."""
        size = _size(x, y, width, height)
        self.parts.append(f'<rect{_class("tint", kind)} {size} fill-opacity=".3"/>')

    def frame(
        self, x: float, y: float, width: float, height: float, kind: str = ""
    ) -> None:
        """Draw a thick outline around cells."""
        right, bottom = x + width, y + height
        corners = (x, y), (right, y), (right, bottom), (x, bottom)
        self.parts.append(f'<path{_class("line thick", kind)} d="{_path(corners)}Z"/>')

    def curve(self, points: Iterable[Point], kind: str = "c0") -> None:
        """Draw straight lines between many points, its corners sharp."""
        self.parts.append(f'<path{_class("line", kind)} d="{_path(list(points))}"/>')


def _needs(text: str) -> float:
    """Return how much room words need in a script whose letters are as wide as high; 0 for others."""
    words = MARKUP.sub(lambda m: m[1] or m[2] or m[4], text)
    lines = [line for line in words.split("\n") if max(line, default="") >= CJK]
    return max(
        (sum(13 if c >= CJK else 6.6 for c in line) for line in lines), default=0
    )


def _class(*kinds: str) -> str:
    names = " ".join(" ".join(kinds).split())
    return f' class="{names}"' if names else ""


def _size(x: float, y: float, width: float, height: float) -> str:
    return f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".") if number else "0"


def _marked(line: str) -> str:
    """Return a line of text as SVG, its markup as spans."""
    out, at, lowered = [], 0, 0
    for match in MARKUP.finditer(line):
        out.append(_span(line[at : match.start()], "", lowered, 0))
        lowered = lowered if match.start() == at else 0
        kind = "i" if match[1] else "m" if match[2] else "s"
        lower = {"_": 3, "^": -5}.get(match[3], 0)
        out.append(_span(match[1] or match[2] or match[4], kind, lowered, lower))
        lowered, at = lower, match.end()
    out.append(_span(line[at:], "", lowered, 0))
    return "".join(out)


def _span(text: str, kind: str, lowered: int, lower: int) -> str:
    """Return a span. After an index, the text returns by what the index was lowered."""
    if not text:
        return ""
    shift = lower - lowered
    if not kind and not shift:
        return escape(text)
    moved = f' dy="{shift}"' if shift else ""
    wide = f' textLength="{_n(CODE * len(text))}"' if kind == "m" else ""
    return f"<tspan{_class(kind)}{moved}{wide}>{escape(text)}</tspan>"


def _path(points: Sequence[Point], round: float = 0) -> str:
    """Return a path through points. Corners are rounded by at most half of their shorter side."""
    out = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = _toward(corner, before, round), _toward(corner, after, round)
        out.append(f"L{_n(a[0])} {_n(a[1])}")
        if round:
            out.append(f"Q{_n(corner[0])} {_n(corner[1])} {_n(b[0])} {_n(b[1])}")
    out.append(f"L{_n(points[-1][0])} {_n(points[-1][1])}")
    return "".join(out)


def _toward(start: Point, end: Point, step: float) -> Point:
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5 or 1.0
    part = min(step, length / 2) / length
    return (
        start[0] + (end[0] - start[0]) * part,
        start[1] + (end[1] - start[1]) * part,
    )
