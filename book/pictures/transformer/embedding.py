"""A one-hot vector times the table: the row of one token is looked up."""

import math
import random

from drawing.canvas import Canvas
from drawing.links import EMBEDDING

VOCABULARY = ["an", "a", "is", "it", "example"]
TOKEN, D_MODEL = 2, 4
SMALL, CELL, TALL = 24, 40, 28  # cells of the one-hot vector, of the table
TABLE, TOP = 224, 46  # left end and top of the table
ROW = TOP + TALL * TOKEN  # top of the row that is looked up


def draw() -> str:
    """Return the picture as SVG."""
    generator = random.Random(2)
    table = [
        [round(generator.gauss(0, D_MODEL**-0.5), 1) + 0.0 for _ in range(D_MODEL)]
        for _ in VOCABULARY
    ]
    canvas = Canvas(
        282,
        "One row of the table is looked up",
        "The token is has number 2. Its one-hot vector, zeros and a single one at place 2, is multiplied by "
        "a table with one row for each of the five tokens of the vocabulary. The product is the row with "
        "number 2. Multiplied by the root of d_model it is the token's vector.",
    )
    with canvas.link(EMBEDDING):
        canvas.words(TABLE + CELL * 2, 14, "table *E*", "strong")
    canvas.words(TABLE + CELL * 2, 32, "`[vocab_size, d_model]`", "soft")
    for i, (word, row) in enumerate(zip(VOCABULARY, table, strict=True)):
        y = TOP + TALL * i
        kind = "c1" if i == TOKEN else ""
        canvas.words(
            TABLE - 8, y + TALL / 2, f"{i}  *{word}*", kind or "soft", side="right"
        )
        _row(canvas, y, row, i == TOKEN)
    canvas.frame(TABLE, ROW, CELL * D_MODEL, TALL, "c1")
    # one-hot
    canvas.words(8 + SMALL * 2.5, ROW - 34, "token *is*, number 2")
    canvas.words(8 + SMALL * 2.5, ROW - 16, "one-hot vector", "soft")
    for i in range(len(VOCABULARY)):
        x, hot = 8 + SMALL * i, i == TOKEN
        canvas.cell(x, ROW, SMALL, TALL, 0.6 * hot, "c1")
        canvas.words(x + SMALL / 2, ROW + TALL / 2, str(int(hot)))
        canvas.words(x + SMALL / 2, ROW + TALL + 12, str(i), "soft")
    canvas.words(8 + SMALL * 5 + 14, ROW + TALL / 2, "×")
    # result
    end = TOP + TALL * len(VOCABULARY)
    canvas.arrow((TABLE + CELL * 2, end + 6), (TABLE + CELL * 2, end + 44), kind="c1")
    canvas.words(TABLE + CELL * 2 + 10, end + 24, "× √`d_model`", side="left")
    canvas.words(TABLE - 12, end + 62, "vector of *is*  `[d_model]`", side="right")
    _row(
        canvas, end + 48, [math.sqrt(D_MODEL) * number for number in table[TOKEN]], True
    )
    return canvas.svg()


def _row(canvas: Canvas, y: float, row: list[float], found: bool) -> None:
    for j, number in enumerate(row):
        x = TABLE + CELL * j
        canvas.cell(x, y, CELL, TALL, 0.25 * found, "c1")
        canvas.words(x + CELL / 2, y + TALL / 2, f"{number:.1f}".replace("-", "−"))
