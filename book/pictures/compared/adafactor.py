"""Adafactor's estimate of squared gradients, from the means of rows and columns."""

from collections.abc import Sequence
from random import Random

from drawing.canvas import Canvas
from drawing.links import T5

ADAFACTOR = f"{T5}.adafactor"
ROWS, COLUMNS, CELL = 5, 6, 22
TOP, LEFT, RIGHT = 60, 12, 226  # of the matrices
Matrix = Sequence[Sequence[float]]


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        244,
        "What Adam stores and what Adafactor stores",
        "On the left a matrix of squared gradients, which Adam stores. On the right the means of its rows "
        "and of its columns, which Adafactor stores, and the matrix that their products estimate, which "
        "is similar to the first and is not stored.",
    )
    squares = _squares()
    rows = [sum(row) / COLUMNS for row in squares]
    columns = [sum(column) / ROWS for column in zip(*squares, strict=True)]
    mean = sum(rows) / ROWS
    estimate = [[r * c / mean for c in columns] for r in rows]
    top = max(max(row) for row in (*squares, *estimate))
    wide, tall = CELL * COLUMNS, CELL * ROWS
    canvas.words(LEFT + wide / 2, 14, "Adam", "strong")
    canvas.words(RIGHT + 32 + wide / 2, 14, "Adafactor", "strong")
    _shaded(canvas, LEFT, TOP, squares, top, "c5")
    with canvas.link(ADAFACTOR):
        _shaded(canvas, RIGHT, TOP, [[r] for r in rows], top, "c1")
        _shaded(canvas, RIGHT + 32, TOP - 32, [columns], top, "c1")
        _shaded(canvas, RIGHT + 32, TOP, estimate, top, "c5")
    canvas.arrow((LEFT + wide + 10, TOP + tall / 2), (RIGHT - 10, TOP + tall / 2))
    canvas.words((LEFT + wide + RIGHT) / 2, TOP + tall / 2 - 16, "means")
    canvas.words(RIGHT + 20, TOP - 21, "*c*", "c1")
    canvas.words(RIGHT + CELL / 2, TOP + tall + 12, "*r*", "c1")
    y = TOP + tall + 22
    canvas.words(LEFT + wide / 2, y, f"{ROWS} · {COLUMNS} = {ROWS * COLUMNS} numbers")
    canvas.words(
        RIGHT + 32 + wide / 2, y, f"{ROWS} + {COLUMNS} = {ROWS + COLUMNS} numbers", "c1"
    )
    canvas.words(200, y + 28, "squared gradients, and their estimate", "soft")
    return canvas.svg()


def _squares() -> list[list[float]]:
    """Return squares of random gradients. Rows and columns differ in size."""
    dice = Random(2)
    rows = [dice.uniform(0.4, 1.6) for _ in range(ROWS)]
    columns = [dice.uniform(0.4, 1.6) for _ in range(COLUMNS)]
    return [[r * c * dice.uniform(0.7, 1.3) for c in columns] for r in rows]


def _shaded(
    canvas: Canvas, x: float, y: float, rows: Matrix, top: float, kind: str
) -> None:
    shares = [[number / top for number in row] for row in rows]
    canvas.matrix(x, y, shares, CELL, CELL, kind)
