"""Primer's block whole. What the search changed is coloured, with the paper's word on it."""

from drawing.canvas import Canvas
from drawing.links import (
    CONVOLUTION,
    FEED_FORWARD,
    MULTI_HEAD,
    PRIMER,
    PROJECT,
    SQUARED_RELU,
    WEIGHTS,
)

SEARCHED = f"{PRIMER}.SearchedAttention"
MIDDLE, WIDE, TALL, PITCH = 118, 160, 22, 29
SIDE, NOTES = MIDDLE + WIDE / 2 + 14, 236
QUERY, KEY, VALUE = MIDDLE - 56, MIDDLE, MIDDLE + 56  # middles of narrow boxes
NARROW = 48
BOTTOM = 504
KEPT, FOUND = "c1", "c1 dashed"  # in the paper's Primer, in the searched program alone


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        BOTTOM + 52,
        "Primer's block",
        "From the bottom up: a norm, projections to keys and values, a convolution on each, a factor, "
        "queries made of the keys, attention whose weights pass a tanh and a gate, and a sum with the input. "
        "Then a wider feed-forward layer with a squared ReLU, its norm last, and a sum. Next to each change "
        "is what the paper says about it.",
    )
    canvas.box(20, 24, 206, _row(1) + TALL + 16 - 24, kind="area", round=10)
    canvas.words(NOTES, 36, "The paper on it", "left soft")
    canvas.words(MIDDLE, BOTTOM + 10, "*x*  `[batch, seq, d_model]`", "soft")
    canvas.line((MIDDLE, BOTTOM), (MIDDLE, _row(1) + TALL + 8))
    canvas.arrow((MIDDLE, _row(1) + TALL + 8), (MIDDLE, _row(1) + TALL))
    _projections(canvas)
    _weights(canvas)
    _feed_forward(canvas)
    canvas.box(20, BOTTOM + 31, 20, 14, kind=KEPT, round=3)
    canvas.words(48, BOTTOM + 38, "in Primer", "left")
    canvas.box(130, BOTTOM + 31, 20, 14, kind=FOUND, round=3)
    canvas.words(158, BOTTOM + 38, "in the searched program only", "left")
    return canvas.svg()


def _projections(canvas: Canvas) -> None:
    """Draw how queries, keys and values are made, from the norm up."""
    norm = "Norm, *x*(*x* − *μ*)"
    _box(canvas, 1, norm, KEPT, f"{PRIMER}.PrimerNorm", "“not always effective”")
    canvas.line((MIDDLE, _row(1)), (MIDDLE, _row(1) - 4))
    for x, name in ((KEY, "*K*"), (VALUE, "*V*")):
        canvas.arrow((KEY, _row(1) - 4), (x, _row(1) - 4), (x, _row(2) + TALL), round=3)
        _box(canvas, 2, name, link=PROJECT, middle=x, width=NARROW)
        _up(canvas, 2, x)
        _box(canvas, 3, "3×1", KEPT, CONVOLUTION, middle=x, width=NARROW)
        _up(canvas, 3, x)
        _box(canvas, 4, "×−1.12", FOUND, SEARCHED, middle=x, width=NARROW)
    canvas.arrow((KEY, _row(4)), (KEY, _row(6) + TALL))
    canvas.arrow((KEY, _row(5) + TALL / 2), (QUERY + NARROW / 2, _row(5) + TALL / 2))
    shared = f"{PRIMER}.SharedQueryAttention"
    _box(canvas, 5, "*Q*=*KW*", KEPT, shared, middle=QUERY, width=NARROW)
    _up(canvas, 5, QUERY)
    canvas.arrow((VALUE, _row(4)), (VALUE, _row(8) + TALL))
    for row, text in (
        (3, "helps always"),
        (4, "no difference"),
        (5, "“generally hurts”"),
    ):
        _note(canvas, row, text)


def _weights(canvas: Canvas) -> None:
    """Draw the softmax, what comes after it, and the sum of values."""
    both, middle = KEY - QUERY + NARROW, (KEY + QUERY) / 2
    _box(canvas, 6, "softmax(*QK*ᵀ)", "", WEIGHTS, middle=middle, width=both)
    _up(canvas, 6, QUERY)
    found = "tanh: no difference\ngate: fixed length only"
    _box(canvas, 7, "tanh", FOUND, SEARCHED, middle=QUERY, width=NARROW)
    height = _row(7) + TALL / 2
    canvas.arrow((QUERY + NARROW / 2, height), (KEY - NARROW / 2, height))
    _box(canvas, 7, "gate *s*", FOUND, SEARCHED, found, middle=KEY, width=NARROW)
    _up(canvas, 7, KEY)
    _box(canvas, 8, "Sum of values, linear", "", MULTI_HEAD)
    _twice(canvas, 9, _row(1) + TALL + 8)


def _feed_forward(canvas: Canvas) -> None:
    """Draw the feed-forward layer, whose norm comes last."""
    canvas.arrow((MIDDLE, _row(10) + 4), (MIDDLE, _row(11) + TALL))
    wide = "Linear to 12 *d*_{model}"
    _box(canvas, 11, wide, FOUND, FEED_FORWARD, "small models only")
    _up(canvas, 11)
    _box(canvas, 12, "max(*x*, 0)^{2}", KEPT, SQUARED_RELU, "helps always")
    _up(canvas, 12)
    _box(canvas, 13, "Linear, no bias", FOUND, FEED_FORWARD, "not mentioned")
    _up(canvas, 13)
    _box(canvas, 14, "Norm, after", KEPT, f"{PRIMER}.PrimerBlock", "in some cases")
    _twice(canvas, 15, _row(10))
    canvas.arrow((MIDDLE, _row(16) + 4), (MIDDLE, 10))


def _twice(canvas: Canvas, row: int, start: float) -> None:
    """Draw the second residual, and the sum above it with what went around from height `start`."""
    _up(canvas, row - 1)
    _box(
        canvas,
        row,
        "× 2",
        FOUND,
        f"{PRIMER}.SearchedBlock",
        "no difference",
        width=NARROW,
    )
    end = _row(row + 1) + 12
    canvas.arrow((MIDDLE, _row(row)), (MIDDLE, end + 8))
    canvas.around(MIDDLE, start, end, SIDE)


def _row(number: int) -> float:
    """Return the top of a row of boxes, counted from the bottom. The two sums need less."""
    return BOTTOM - 24 - PITCH * number + 4 * (number > 9) + 4 * (number > 15)


def _box(
    canvas: Canvas,
    row: int,
    text: str,
    kind: str = "",
    link: str = "",
    note: str = "",
    middle: float = MIDDLE,
    width: float = WIDE,
) -> None:
    canvas.box(middle - width / 2, _row(row), width, TALL, text, kind, link)
    if note:
        _note(canvas, row, note)


def _note(canvas: Canvas, row: int, text: str) -> None:
    canvas.words(NOTES, _row(row) + TALL / 2, text, "left")


def _up(canvas: Canvas, row: int, x: float = MIDDLE) -> None:
    """Draw an arrow from a row to the next."""
    canvas.arrow((x, _row(row)), (x, _row(row + 1) + TALL))
