"""One query's look-up, step by step, and the same for all queries as matrices."""

import math
from collections.abc import Sequence

from drawing.canvas import Canvas
from drawing.links import ATTENTION, WEIGHTS

WORDS = ["the", "dog", "bit", "its"]
QUERIES = [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 2, 1]]
KEYS = [[0, 2, 0, 0], [0, 1, 2, 2], [2, 0, 0, 0], [1, 1, 1, 1]]
VALUES = [[0, 1, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1], [0, 0, 1, 2]]
CAPTIONS = [
    "1. The word *its* asks with a query.",
    "2. Its dot product with each key is a score.",
    "3. Divide the scores by √*d*_{k}, here √4 = 2.",
    "4. Softmax turns them into weights that sum to 1.",
    "5. Add up the values, each times its weight.",
    "All queries at once: the same with matrices.",
]
CELL, PITCH, TOP = 22, 30, 92
KEY, DOT, SCALED, WEIGHT, VALUE = 42, 156, 196, 222, 304  # where the columns are
LAST = len(CAPTIONS)


def softmax(scores: Sequence[float]) -> list[float]:
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def look_up(query: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
    """Return dot products, weights and the weighted sum of the values."""
    dots = [math.fsum(a * b for a, b in zip(query, key, strict=True)) for key in KEYS]
    weights = softmax([dot / math.sqrt(len(query)) for dot in dots])
    total = [
        math.fsum(w * v for w, v in zip(weights, column, strict=True))
        for column in zip(*VALUES, strict=True)
    ]
    return dots, weights, total


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        384,
        "One query's look-up",
        "Four words, the dog bit its, each with a key and a value of four numbers. The query of the word its "
        "is compared with the four keys by dot products, which are divided by two, the root of d_k. "
        "Softmax turns these scores into weights; dog gets 0.64. The result is the mean of the values with "
        "these weights. Below, the same for all four queries is a product of matrices.",
        steps=LAST,
    )
    canvas.captions(CAPTIONS, 8, 268)
    _table(canvas)
    with canvas.at(LAST):
        _matrices(canvas, 304)
    return canvas.svg()


def _table(canvas: Canvas) -> None:
    """Draw one row per word, with what each step adds to it."""
    dots, weights, total = look_up(QUERIES[-1])
    canvas.words(36, 25, "*its*", side="right")
    canvas.matrix(KEY, 14, _shade([QUERIES[-1]]), CELL, CELL, "c0")
    _numbers(canvas, KEY, 14, QUERIES[-1], "d")
    canvas.words(KEY + 98, 25, "query *q*", "c0", side="left")
    canvas.words(KEY + 44, TOP - 18, "keys *k*", "c3")
    canvas.words(VALUE + 44, TOP - 18, "values *v*", "c4")
    for i, word in enumerate(WORDS):
        y = TOP + PITCH * i
        canvas.words(36, y + 11, f"*{word}*", side="right")
        canvas.matrix(KEY, y, _shade([KEYS[i]]), CELL, CELL, "c3")
        _numbers(canvas, KEY, y, KEYS[i], "d")
        canvas.matrix(VALUE, y, _shade([VALUES[i]]), CELL, CELL, "c4")
        _numbers(canvas, VALUE, y, VALUES[i], "d")
    for step, x, title, column in (
        (2, DOT, "*q* · *k*", [f"{dot:.0f}" for dot in dots]),
        (3, SCALED, "÷ √*d*_{k}", [f"{dot / 2:.0f}" for dot in dots]),
    ):
        with canvas.at(*range(step, LAST + 1)):
            canvas.words(x, TOP - 18, title)
            for i, text in enumerate(column):
                canvas.words(x, TOP + PITCH * i + 11, text)
    with canvas.at(*range(4, LAST + 1)), canvas.link(WEIGHTS):
        canvas.words(WEIGHT + 36, TOP - 18, "weights", "c1")
        for i, weight in enumerate(weights):
            y = TOP + PITCH * i
            canvas.cell(WEIGHT, y, 72, CELL, None)
            canvas.bar(WEIGHT, y, 72 * weight, CELL, "c1")
            canvas.words(WEIGHT + 66, y + 11, f"{weight:.2f}", side="right")
    with canvas.at(*range(5, LAST + 1)), canvas.link(ATTENTION):
        y = TOP + PITCH * 4 + 12
        canvas.arrow((VALUE + 44, y - 18), (VALUE + 44, y - 2))
        canvas.words(VALUE - 10, y + 11, "weighted sum", side="right")
        canvas.matrix(VALUE, y, _shade([total]), CELL, CELL, "c1")
        _numbers(canvas, VALUE, y, total, ".1f")


def _matrices(canvas: Canvas, y: float) -> None:
    """Draw softmax(Q K^T / root d_k) V. A frame marks the row of the query above."""
    weights = [look_up(query)[1] for query in QUERIES]
    results = [look_up(query)[2] for query in QUERIES]
    transposed = [list(column) for column in zip(*KEYS, strict=True)]
    size, side = 13, 52
    xs = [10, 80, 200, 270, 340]
    for x, name, rows, kind in zip(
        xs,
        ("*Q*", "*K*^{T}", "weights", "*V*", "result"),
        (_shade(QUERIES), _shade(transposed), weights, _shade(VALUES), _shade(results)),
        ("c0", "c3", "c1", "c4", "c1"),
        strict=True,
    ):
        canvas.words(x + side / 2, y, name, kind)
        canvas.matrix(x, y + 14, rows, size, size, kind)
        if kind in ("c0", "c1"):
            canvas.frame(x, y + 14 + 3 * size, side, size, kind)
    middle = y + 14 + side / 2
    for x, sign in ((71, "×"), (261, "×"), (331, "=")):
        canvas.words(x, middle, sign)
    canvas.words(165, middle - 12, "÷ √*d*_{k}")
    canvas.arrow((140, middle), (191, middle))
    canvas.words(165, middle + 13, "softmax")


def _shade(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[0.25 * number for number in row] for row in rows]


def _numbers(
    canvas: Canvas, x: float, y: float, row: Sequence[float], form: str
) -> None:
    for j, number in enumerate(row):
        canvas.words(x + CELL * (j + 0.5), y + CELL / 2, format(number, form))
