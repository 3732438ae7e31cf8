"""Where a block has had short convolutions: Primer's, token shift, smear and the Canon layers."""

from drawing.canvas import Canvas
from drawing.links import ATTENTION, EMBEDDING, FEED_FORWARD, MDHA, NORM, PROJECT

SINCE = "labml_primer.since.short_convolutions"
MIDDLE, WIDE, TALL = 98, 132, 22
CELL, LAST = 15, 262  # a cell of a kernel, the right end of all kernels
# The weights that a layer starts with, from the earliest token to the current one. Random ones are pale.
CANON = (0.12, 0.12, 0.12, 1.0)


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        592,
        "Places for a short convolution",
        "A block from the bottom up, with the places of short convolutions. Smear comes once, after the "
        "embedding. In the block, Canon-A follows the first norm, token shift precedes the projections, MDHA "
        "and Canon-B follow them, Canon-C follows the second norm, and Canon-D the first linear layer of the "
        "feed-forward part. Rows of cells show the kernels: two tokens wide for smear and token shift, three "
        "for MDHA and four for the Canon layers.",
    )
    canvas.words(LAST - 30, 14, "tokens read", "soft")
    canvas.box(MIDDLE - 88, 24, 176, 480, kind="area", round=10)
    _feed_forward(canvas)
    _attention(canvas)
    _input(canvas)
    return canvas.svg()


def _feed_forward(canvas: Canvas) -> None:
    _box(canvas, 60, "Linear", FEED_FORWARD)
    _box(canvas, 92, "max(*x*, 0)", FEED_FORWARD)
    _place(canvas, 124, "D")
    _kernel(canvas, 124, "Canon-D", CANON, f"{SINCE}.CanonFeedForward")
    _box(canvas, 156, "Linear, wider", FEED_FORWARD)
    _place(canvas, 188, "C")
    _kernel(canvas, 188, "Canon-C", CANON, f"{SINCE}.CanonBlock")
    _box(canvas, 220, "Norm", NORM)
    canvas.arrow((MIDDLE, 256), (MIDDLE, 243))
    canvas.arrow((MIDDLE, 60), (MIDDLE, 47))
    canvas.around(MIDDLE, 250, 39, MIDDLE - 80)
    canvas.arrow((MIDDLE, 31), (MIDDLE, 16))


def _attention(canvas: Canvas) -> None:
    _box(canvas, 282, "Attention", ATTENTION)
    canvas.arrow((MIDDLE, 282), (MIDDLE, 272))
    _place(canvas, 325, "B", 304)
    _kernel(canvas, 312, "MDHA", (1 / 6, 1 / 6, 0.5), MDHA, 336)
    _kernel(canvas, 338, "Canon-B", CANON, f"{SINCE}.CanonAttention", 336)
    canvas.line((MIDDLE, 366), (MIDDLE, 347))
    _box(canvas, 366, "*Q*   *K*   *V*", PROJECT)
    _place(canvas, 398, "")
    _kernel(canvas, 398, "token shift", (0.5, 0.5), f"{SINCE}.TokenShift")
    _place(canvas, 430, "A")
    _kernel(canvas, 430, "Canon-A", CANON, f"{SINCE}.CanonBlock")
    _box(canvas, 462, "Norm", NORM)
    canvas.arrow((MIDDLE, 526), (MIDDLE, 485))
    canvas.around(MIDDLE, 495, 264, MIDDLE - 80)


def _input(canvas: Canvas) -> None:
    _place(canvas, 526, "")
    _kernel(canvas, 526, "smear, once", (0.05, 1.0), f"{SINCE}.Smear")
    _box(canvas, 560, "Embedding", EMBEDDING)


def _box(canvas: Canvas, y: float, text: str, link: str) -> None:
    """Draw a layer of the block, with the line above it."""
    canvas.box(MIDDLE - WIDE / 2, y, WIDE, TALL, text, link=link)
    if y > 60:
        canvas.line((MIDDLE, y), (MIDDLE, y - 10))


def _place(canvas: Canvas, y: float, letter: str, above: float = 0) -> None:
    """Draw a place where a convolution can be, with the line to what is `above` it."""
    canvas.box(MIDDLE - WIDE / 2, y, WIDE, TALL, letter, "c1 dashed")
    if letter or y < 500:
        canvas.line((MIDDLE, y), (MIDDLE, above or y - 10))


def _kernel(
    canvas: Canvas,
    y: float,
    name: str,
    weights: tuple[float, ...],
    link: str,
    place: float = 0,
) -> None:
    """Draw a kernel at the height of its place: a cell for each token, shaded by its initial weight."""
    start = LAST - CELL * len(weights)
    with canvas.link(link):
        for i, weight in enumerate(weights):
            at = start + CELL * i, y + (TALL - CELL) / 2
            canvas.cell(*at, CELL, CELL, 0.7 * weight + 0.1, "c1")
        canvas.words(LAST + 10, y + TALL / 2, name, "left")
    middle, side = y + TALL / 2, MIDDLE + WIDE / 2
    canvas.line((side, place or middle), (start - 6, middle), kind="soft")
