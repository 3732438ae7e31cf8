"""The 39 primitives by kind: those that move information between positions, and those with weights."""

from drawing.canvas import Canvas
from drawing.links import primitive

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "two inputs": ("", ("ADD", "DIFFERENCE", "MULTIPLY", "DIVIDE")),
    "one input": (
        "",
        (
            "SQUARE",
            "ABS ROOT",
            "EXP",
            "LOG",
            "ABS",
            "RECIP",
            "SIGN",
            "COS",
            "SIN",
            "TANH",
            "SIGMOID",
            "MASK",
        ),
    ),
    "one input and a constant": ("", ("C MUL", "MAX", "MIN")),
    "along the features": (
        "",
        (
            "CUM SUM",
            "CUM PROD",
            "RED MEAN",
            "RED SUM",
            "RED MIN",
            "RED MAX",
            "RED PROD",
        ),
    ),
    "with weights": ("c2", ("SCALE", "SHIFT", "CONV 1X1")),
    "between positions": ("c1", ("MAT MUL", "T-MAT MUL")),
    "between positions, with weights": (
        "c1",
        (
            "CONV 3X1",
            "CONV 7X1",
            "CONV 15X1",
            "CONV 31X1",
            "DCONV 3X1",
            "DCONV 7X1",
            "DCONV 15X1",
            "DCONV 31X1",
        ),
    ),
}
WIDE, TALL, PITCH, ROW = 92, 22, 99, 28


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        492,
        "The 39 primitives",
        "The primitives in seven groups. Most compute each position from itself: those with two inputs, with "
        "one, with a constant, and sums and products along the features. Blue ones have weights. Orange "
        "ones move information between positions: the two matrix products and the convolutions, which have "
        "weights too.",
    )
    y = 14.0
    for kind, (colour, names) in KINDS.items():
        canvas.words(4, y, kind, "soft", side="left")
        y += 14
        for number, name in enumerate(names):
            if number and number % 4 == 0:
                y += ROW
            x = 4 + PITCH * (number % 4)
            canvas.box(x, y, WIDE, TALL, name, colour, primitive(name))
        y += ROW + 12
    return canvas.svg()
