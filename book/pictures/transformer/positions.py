"""Positions as a binary counter and as the hands of clocks, side by side."""

import math

from drawing.canvas import Canvas
from drawing.links import TRANSFORMER

ENCODING = f"{TRANSFORMER}.positional_encoding.positional_encoding"
D_MODEL = 26  # the speeds of neighbouring pairs differ by very nearly a factor of two
COLUMNS, POSITIONS = 4, 9
TOP, PITCH, CELL, RADIUS = 62, 32, 26, 12
BITS, CLOCKS = 52, 222  # left ends


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        TOP + PITCH * POSITIONS + 40,
        "Positions as a binary counter and as the hands of clocks",
        "One row for each position from 0 to 8. On the left its four binary digits: the last changes at each "
        "step, the one before it at every second step, and each further one half as often. On the right four "
        "clocks with one hand each: the last turns by one radian at each step, each one before it about half "
        "as fast. The hand's end is the sine and cosine of that pair of features.",
    )
    canvas.words(BITS + CELL * 2, 14, "binary counter", "strong")
    with canvas.link(ENCODING):
        canvas.words(CLOCKS + 80, 14, "sines and cosines", "strong")
    canvas.words(36, 40, "*t*", "soft", side="right")
    for column in range(COLUMNS):
        k = COLUMNS - 1 - column
        canvas.words(BITS + CELL * (column + 0.5), 40, str(2**k), "soft")
        canvas.words(CLOCKS + 40 * (column + 0.5), 40, f"*k* = {k}", "soft")
    for t in range(POSITIONS):
        y = TOP + PITCH * t
        canvas.words(36, y + CELL / 2, str(t), side="right")
        for column in range(COLUMNS):
            k = COLUMNS - 1 - column
            bit = t >> k & 1
            x = BITS + CELL * column
            canvas.cell(x, y, CELL, CELL, 0.6 * bit, "c5")
            canvas.words(x + CELL / 2, y + CELL / 2, str(bit))
            _clock(canvas, CLOCKS + 40 * (column + 0.5), y + CELL / 2, k, t)
    canvas.words(
        200,
        TOP + PITCH * POSITIONS + 18,
        "The hand of clock *k* points to (sin *ω*_{k}*t*, cos *ω*_{k}*t*), here for *d* = 26.",
        "soft",
    )
    return canvas.svg()


def _clock(canvas: Canvas, x: float, y: float, k: int, t: int) -> None:
    """Draw a clock that shows the pair of features `k` at position `t`."""
    angle = t * 10_000 ** (-2 * k / D_MODEL)
    end = (x + RADIUS * math.sin(angle), y - RADIUS * math.cos(angle))
    canvas.circle(x, y, RADIUS, "box")
    canvas.line((x, y), end, kind="c1 thick")
    canvas.circle(x, y, 1.8, "dot c1")
