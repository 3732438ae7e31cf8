"""What layer norm does to three positions: mean zero, variance one, each by itself."""

import random
import statistics

from drawing.canvas import Canvas
from drawing.links import NORM

D_MODEL = 8
POSITIONS = [("small", 0.0, 0.4), ("large", 0.0, 2.0), ("shifted", 2.2, 0.8)]
COLUMNS = (84, 196, 308)  # left ends of the three positions
BAR, PITCH, UNIT = 9, 11, 14  # width of a bar, from bar to bar, height of 1
BEFORE, AFTER = 84, 214  # heights of the zero lines


def draw() -> str:
    """Return the picture as SVG."""
    generator = random.Random(6)
    canvas = Canvas(
        260,
        "Layer norm",
        "Bar charts of the eight features of three positions, before and after the norm. Before it the "
        "features of one position are small, of another large, of the third shifted upwards. After it each "
        "position's features have mean zero and variance one, with the same pattern as before.",
    )
    for y, text in ((BEFORE, "before"), (AFTER, "after")):
        canvas.words(8, y, text, "strong", side="left")
    for x, (name, mean, size) in zip(COLUMNS, POSITIONS, strict=True):
        features = [generator.gauss(mean, size) for _ in range(D_MODEL)]
        middle, spread = statistics.fmean(features), statistics.pstdev(features)
        normed = [(feature - middle) / spread for feature in features]
        _bars(canvas, x, BEFORE, features, "c5")
        with canvas.link(NORM):
            _bars(canvas, x, AFTER, normed, "c1")
        center = x + PITCH * D_MODEL / 2
        canvas.arrow((center, BEFORE + 50), (center, AFTER - 42))
        canvas.words(center, 14, name, "soft")
    return canvas.svg()


def _bars(canvas: Canvas, x: float, y: float, numbers: list[float], kind: str) -> None:
    """Draw a bar for each number, up or down from the line at `y`."""
    for j, number in enumerate(numbers):
        tall = UNIT * abs(number)
        top = y - tall if number > 0 else y
        canvas.cell(x + PITCH * j, top, BAR, tall, 0.7, kind)
    canvas.line((x - 4, y), (x + PITCH * D_MODEL + 2, y))
