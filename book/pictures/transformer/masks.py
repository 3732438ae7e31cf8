"""A causal mask, a padding mask, and both."""

from drawing.canvas import Canvas
from drawing.links import TRANSFORMER, WEIGHTS

CAUSAL_MASK = f"{TRANSFORMER}.attention.causal_mask"
WORDS = ["dog", "bites", "man", "pad", "pad"]
LENGTH, CELL, TOP = 3, 20, 76
LEFT = (46, 168, 290)  # left ends of the three matrices


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        208,
        "Causal mask, padding mask, and both",
        "Three matrices of five queries by five keys for the sentence dog bites man, followed by two "
        "positions of padding. The causal mask lets each query attend to itself and to earlier keys: a "
        "lower triangle. The padding mask hides the last two keys from every query. Both together leave "
        "a triangle that ends at the third key.",
    )
    size = len(WORDS)
    causal = [[float(j <= i) for j in range(size)] for i in range(size)]
    padding = [[float(j < LENGTH) for j in range(size)] for _ in range(size)]
    both = [
        [a * b for a, b in zip(*rows, strict=True)]
        for rows in zip(causal, padding, strict=True)
    ]
    for x, name, rows, link in zip(
        LEFT,
        ("causal", "padding", "both"),
        (causal, padding, both),
        (CAUSAL_MASK, WEIGHTS, WEIGHTS),
        strict=True,
    ):
        middle = x + CELL * size / 2
        with canvas.link(link):
            canvas.words(middle, 14, name, "strong")
        shades = [[0.75 * number for number in row] for row in rows]
        canvas.matrix(x, TOP, shades, CELL, CELL, "c1")
        for j, word in enumerate(WORDS):
            at = x + CELL * (j + 0.5)
            canvas.words(at, TOP - 8, word, "soft", side="left", upward=True)
    for i, word in enumerate(WORDS):
        canvas.words(38, TOP + CELL * (i + 0.5), word, "soft", side="right")
    for x, sign in ((157, "`&`"), (279, "=")):
        canvas.words(x, TOP + CELL * size / 2, sign)
    canvas.words(
        LEFT[0],
        TOP + CELL * size + 20,
        "Filled: the query (row) may attend to the key (column).",
        "soft",
        side="left",
    )
    return canvas.svg()
