"""The feed-forward layer: each position is widened, bent and narrowed by itself."""

import random

from drawing.canvas import Canvas
from drawing.links import FEED_FORWARD

D_MODEL, D_FF = 4, 16
WORDS = ["dog", "bites", "man"]
COLUMNS = (52, 156, 260)  # middles of the three positions
SPAN, TALL = 88, 12  # a vector of d_ff features
OUT, ACTIVE, WIDER, IN = 10, 86, 162, 238  # tops of the rows of vectors


def draw() -> str:
    """Return the picture as SVG."""
    generator = random.Random(0)
    expand = [[generator.gauss(0, 0.5) for _ in range(D_MODEL)] for _ in range(D_FF)]
    contract = [[generator.gauss(0, 0.35) for _ in range(D_FF)] for _ in range(D_MODEL)]
    canvas = Canvas(
        306,
        "The feed-forward layer",
        "From the bottom up, for each of three words separately: four features become sixteen by a linear "
        "layer, the activation function sets the negative ones to zero, and a second linear layer makes four "
        "features of them again. All positions have the same two layers, and no arrow leads from one "
        "position to another.",
    )
    for x, word in zip(COLUMNS, WORDS, strict=True):
        vector = [generator.gauss(0, 1) for _ in range(D_MODEL)]
        hidden = _times(expand, vector)
        active = [max(number, 0.0) for number in hidden]
        vectors = vector, hidden, active, _times(contract, active)
        tops = IN, WIDER, ACTIVE, OUT
        for numbers, y in zip(vectors, tops, strict=True):
            _vector(canvas, x, y, numbers)
        for y, text in ((IN, "Linear"), (WIDER, "max(*x*, 0)"), (ACTIVE, "Linear")):
            canvas.arrow((x, y), (x, y - 18))
            canvas.box(
                x - 44, y - 44, SPAN, 26, text, "c1" * (y == WIDER), FEED_FORWARD
            )
            canvas.arrow((x, y - 44), (x, y - 62))
        canvas.words(x, IN + 28, f"*{word}*")
    for y, size in (
        (IN, "d_model"),
        (WIDER, "d_ff"),
        (ACTIVE, "d_ff"),
        (OUT, "d_model"),
    ):
        canvas.words(320, y + 6, f"`{size}`", "soft", side="left")
    text = "Blue features are positive, grey ones negative."
    canvas.words(8, 292, text, "soft", side="left")
    return canvas.svg()


def _times(matrix: list[list[float]], vector: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _vector(canvas: Canvas, x: float, y: float, numbers: list[float]) -> None:
    """Draw a vector, its middle at `x`."""
    width = SPAN / D_FF
    for j, number in enumerate(numbers):
        left = x + width * (j - len(numbers) / 2)
        canvas.cell(
            left, y, width, TALL, abs(number) / 1.6, "c2" if number > 0 else "c5"
        )
