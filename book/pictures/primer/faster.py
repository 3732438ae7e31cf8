"""The passes over memory of one convolution, plain and faster, and three convolutions merged into one."""

from drawing.canvas import Canvas
from drawing.links import CONVOLUTION

FASTER = "labml_primer.primer.faster"
# What each pass reads and writes. `t` is new memory for a product.
PASSES = (
    ("*y* = *w*_{2} *x*", "x", "y"),
    ("*t* = *w*_{1} *x*", "x", "t"),
    ("*y* += *t*", "ty", "y"),
    ("*t* = *w*_{0} *x*", "x", "t"),
    ("*y* += *t*", "ty", "y"),
)
FUSED = (
    ("*y* = *w*_{2} *x*", "x", "y"),
    ("*y* += *w*_{1} *x*", "xy", "y"),
    ("*y* += *w*_{0} *x*", "xy", "y"),
)
MERGED = f"{FASTER}.MergedConvolution"
CELL, TALL, PITCH, TOP, LABEL = 32, 22, 28, 58, 82
KEY, TOKEN = 212, 258  # the key to the colours, and the second half of the picture


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        386,
        "Passes over memory",
        "The plain convolution makes five passes over its tensors, and needs new memory for two products. "
        "With product and sum in one pass there are three passes and no such memory. While a text is "
        "generated, the convolutions of queries, keys and values are merged, so that one does the work of "
        "three.",
    )
    _passes(canvas, 8, "Plain", PASSES, "xty", CONVOLUTION)
    _passes(canvas, 224, "Faster", FUSED, "xy", f"{FASTER}.causal_sum")
    for x, kind, text in ((8, "", "read"), (72, "c1", "written")):
        canvas.box(x, KEY, 18, 14, kind=kind, round=0)
        canvas.words(x + 26, KEY + 7, text, "left soft")
    _separate(canvas)
    _merged(canvas)
    return canvas.svg()


def _passes(
    canvas: Canvas,
    x: float,
    title: str,
    passes: tuple[tuple[str, str, str], ...],
    tensors: str,
    link: str,
) -> None:
    """Draw a row for each pass and a column for each tensor: read, written, or both."""
    canvas.words(x, 14, f"{title}: {len(passes)} passes", "left strong")
    for column, name in enumerate(tensors):
        middle = x + LABEL + CELL * (column + 0.5)
        canvas.words(middle, TOP - 14, f"*{name}*", "soft")
    for row, (text, read, written) in enumerate(passes):
        y = TOP + PITCH * row
        with canvas.link(link):
            canvas.words(x, y + TALL / 2, text, "left")
            for column, name in enumerate(tensors):
                kinds = [""] * (name in read) + ["c1"] * (name in written)
                wide = (CELL - 4) / max(len(kinds), 1)
                for i, kind in enumerate(kinds):
                    left = x + LABEL + CELL * column + 2 + wide * i
                    canvas.box(left, y, wide, TALL, kind=kind, round=0)


def _separate(canvas: Canvas) -> None:
    """Draw three convolutions of one token."""
    canvas.words(8, TOKEN, "Training: three calls", "left strong")
    for x in _paths(canvas, 34):
        canvas.box(x - 22, TOKEN + 52, 44, 26, "3×1", "c1", CONVOLUTION)


def _merged(canvas: Canvas) -> None:
    """Draw them as one."""
    canvas.words(224, TOKEN, "Generating: one call", "left strong")
    _paths(canvas, 250)
    canvas.box(228, TOKEN + 52, 152, 26, "3×1, `3 * heads`", "c1", MERGED)


def _paths(canvas: Canvas, left: float) -> list[float]:
    """Draw what enters and leaves the convolutions. Return the middles."""
    middles = [left + 54 * i for i in range(3)]
    for x, name in zip(middles, "qkv", strict=True):
        canvas.words(x, TOKEN + 118, f"*{name}*")
        canvas.arrow((x, TOKEN + 108), (x, TOKEN + 78))
        canvas.arrow((x, TOKEN + 52), (x, TOKEN + 24))
    return middles
