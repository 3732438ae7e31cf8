"""A cache that grows has another size at each step; one of fixed length has always the same."""

from drawing.canvas import Canvas
from drawing.links import GENERATION

COMPILED = "labml_primer.primer.compiled_generation"
TOKENS = ["to", "be", "or", "not", "to"]
STEPS, LENGTH, CELL, TOP = (3, 4, 5), 6, 24, 48  # tokens read, and places


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        TOP + CELL * len(STEPS) + 34,
        "A cache of fixed length",
        "Three steps of generation. A cache that grows holds three, then four, then five tokens, so its "
        "size changes at each step. A cache of fixed length always has six places; those of the tokens "
        "read so far are filled, and a mask hides the others.",
    )
    for left, name, link in (
        (30, "grows", f"{GENERATION}.Growing"),
        (222, "fixed length", f"{COMPILED}.FixedAttention"),
    ):
        fixed = link.startswith(COMPILED)
        with canvas.link(link):
            canvas.words(left + 2.5 * CELL, 14, name, "strong")
        for row, read in enumerate(STEPS):
            y = TOP + CELL * row
            canvas.words(left - 8, y + CELL / 2, str(read), "soft", side="right")
            filled: list[float | None] = [0.75] * read
            places = filled + [None] * (LENGTH - read if fixed else 0)
            canvas.matrix(left, y, [places], CELL, CELL, "c1")
        for column, token in enumerate(TOKENS):
            canvas.words(left + CELL * (column + 0.5), TOP - 12, f"*{token}*", "soft")
    canvas.words(8, TOP + CELL * len(STEPS) + 20, "tokens read", "soft", side="left")
    return canvas.svg()
