"""Attention weights of dot products and of two Synthesizers, before and after one token is replaced."""

from math import exp, sqrt
from random import Random

from drawing.canvas import Canvas
from drawing.links import SYNTHESIZER, WEIGHTS

BEFORE = ("the", "cat", "sat", "on", "it")
AFTER = ("the", "dog", "sat", "on", "it")
SEQ, SIZE, SPREAD = len(BEFORE), 8, 1.5
CELL, LEFTS, TOPS = 20, (52, 172, 292), (58, 206)
Vector = list[float]
Matrix = list[Vector]


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        316,
        "What attention weights depend on",
        "Attention weights of five tokens, computed in three ways, and the same after one token was "
        "replaced. Dot products compare all tokens, so all rows change. In a dense Synthesizer only the row "
        "of the new token changes, and in a random one nothing does.",
    )
    dice = Random(4)
    words = {word: _vector(dice) for word in (*BEFORE, *AFTER)}
    query, key, dense = (_matrix(dice, SIZE) for _ in range(3))
    random = _matrix(dice, SEQ, SPREAD)
    columns = (
        (
            "Dot products",
            "*q*_{i} · *k*_{j}",
            WEIGHTS,
        ),
        ("Dense", "*F*(*x*_{i})", f"{SYNTHESIZER}.DenseSynthesizer"),
        ("Random", "*R*_{ij}", f"{SYNTHESIZER}.RandomSynthesizer"),
    )
    results = []
    for text in (BEFORE, AFTER):
        x = [words[word] for word in text]
        keys = [_times(v, key) for v in x]
        scores = (
            [[_dot(_times(v, query), k) / sqrt(SIZE) for k in keys] for v in x],
            [_times(v, dense)[:SEQ] for v in x],
            random,
        )
        results.append([[_softmax(row) for row in rows] for rows in scores])
    for left, (name, formula, link) in zip(LEFTS, columns, strict=True):
        with canvas.link(link):
            canvas.words(left + CELL * SEQ / 2, 16, name, "strong")
        canvas.words(left + CELL * SEQ / 2, 38, formula)
    for top, text, weights in zip(TOPS, (BEFORE, AFTER), results, strict=True):
        for i, word in enumerate(text):
            new = word != BEFORE[i]
            canvas.words(
                LEFTS[0] - 10,
                top + CELL * (i + 0.5),
                word,
                "right c1 strong" if new else "right",
            )
        for left, rows, old, (_, _, link) in zip(
            LEFTS, weights, results[0], columns, strict=True
        ):
            for i, row in enumerate(rows):
                kind, y = "c5" if row == old[i] else "c1", top + CELL * i
                with canvas.link(link):
                    canvas.matrix(left, y, [[1.3 * w for w in row]], CELL, CELL, kind)
    middle = (LEFTS[0] + LEFTS[-1] + CELL * SEQ) / 2
    canvas.words(
        middle, TOPS[1] - 22, "weights that change if *cat* becomes *dog*", "c1"
    )
    return canvas.svg()


def _vector(dice: Random) -> Vector:
    return [dice.gauss(0, SPREAD) for _ in range(SIZE)]


def _matrix(dice: Random, size: int, spread: float = 1.0) -> Matrix:
    return [[dice.gauss(0, spread) for _ in range(size)] for _ in range(size)]


def _times(vector: Vector, matrix: Matrix) -> Vector:
    return [
        sum(v * row[j] for v, row in zip(vector, matrix, strict=True)) / sqrt(SIZE)
        for j in range(len(matrix[0]))
    ]


def _dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _softmax(row: Vector) -> Vector:
    total = sum(map(exp, row))
    return [exp(x) / total for x in row]
