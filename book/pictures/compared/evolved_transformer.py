"""The Evolved Transformer's block: two layers of its own before the usual two."""

from drawing.canvas import Canvas
from drawing.links import EVOLVED, FEED_FORWARD, MULTI_HEAD, NORM

BRANCHES = f"{EVOLVED}.BranchedConvolution"
SEPARABLE = f"{EVOLVED}.SeparableConvolution"
MIDDLE, WIDE, TALL = 150, 206, 24
SIDE, NOTES = MIDDLE + WIDE / 2 + 14, 288
LEFT, RIGHT, BRANCH = MIDDLE - 53, MIDDLE + 53, 100  # middles of branches, their width
BOTTOM = 572


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        BOTTOM + 22,
        "A block of the Evolved Transformer",
        "From the bottom up: attention with twice as many heads; then two branches, a convolution eleven "
        "wide with a ReLU and one seven wide, whose sum is normalized and convolved again; then a usual "
        "block of attention and a feed-forward layer. Each of the four is normalized first and added to its "
        "input.",
    )
    canvas.box(30, 222, 252, 338, kind="area", round=10)
    canvas.box(30, 20, 252, 194, kind="area", round=10)
    canvas.words(NOTES, 45, "The usual\nblock", "left strong")
    canvas.words(NOTES, 247, "Added by\nthe search", "left strong")
    canvas.words(NOTES, 374, "separable\nconvolutions,\n11 and 7 wide", "left soft")
    canvas.words(MIDDLE, BOTTOM + 12, "*x*  `[batch, seq, d_model]`", "soft")
    canvas.line((MIDDLE, BOTTOM), (MIDDLE, 552))
    y = _layer(canvas, 552, "Attention, 2*H* heads", "c1", f"{EVOLVED}.EvolvedBlock")
    y = _branches(canvas, y)
    y = _layer(canvas, y, "Attention, *H* heads", "", MULTI_HEAD)
    y = _layer(canvas, y, "Feed-forward", "", FEED_FORWARD)
    canvas.arrow((MIDDLE, y + 12), (MIDDLE, 6))
    return canvas.svg()


def _layer(
    canvas: Canvas, start: float, text: str, kind: str = "", link: str = ""
) -> float:
    """Draw a norm and a layer above height `start`. Return the height above the sum."""
    canvas.arrow((MIDDLE, start), (MIDDLE, start - 8))
    _box(canvas, start - 32, "Layer norm", link=NORM)
    canvas.arrow((MIDDLE, start - 32), (MIDDLE, start - 42))
    _box(canvas, start - 66, text, kind, link)
    return _sum(canvas, start, start - 66)


def _sum(canvas: Canvas, start: float, top: float) -> float:
    """Draw the sum above a box with what went around, and a line to the height that is returned."""
    canvas.arrow((MIDDLE, top), (MIDDLE, top - 10))
    y = top - 18
    canvas.around(MIDDLE, start, y, SIDE)
    canvas.line((MIDDLE, y - 8), (MIDDLE, y - 20))
    return y - 20


def _branches(canvas: Canvas, start: float) -> float:
    """Draw the two branches, from the norm to the sum with what went around."""
    canvas.arrow((MIDDLE, start), (MIDDLE, start - 8))
    _box(canvas, start - 32, "Layer norm", link=NORM)
    canvas.line((MIDDLE, start - 32), (MIDDLE, start - 37))
    y = start - 71
    for x, text in ((LEFT, "11×1, to 2*d*"), (RIGHT, "7×1, to *d*/2")):
        canvas.arrow((MIDDLE, start - 37), (x, start - 37), (x, y + TALL), round=4)
        _box(canvas, y, text, "c1", SEPARABLE, x, BRANCH)
    canvas.arrow((LEFT, y), (LEFT, y - 10))
    _box(canvas, y - 34, "max(*x*, 0)", "c1", BRANCHES, LEFT, BRANCH)
    y -= 50
    canvas.arrow((LEFT, y + 16), (LEFT, y), (MIDDLE - 8, y), kind="", round=5)
    canvas.arrow((RIGHT, y + 50), (RIGHT, y), (MIDDLE + 8, y))
    canvas.plus(MIDDLE, y)
    canvas.arrow((MIDDLE, y - 8), (MIDDLE, y - 18))
    _box(canvas, y - 42, "Layer norm", link=NORM)
    canvas.arrow((MIDDLE, y - 42), (MIDDLE, y - 52))
    _box(canvas, y - 76, "7×1, to *d*", "c1", SEPARABLE)
    return _sum(canvas, start, y - 76)


def _box(
    canvas: Canvas,
    y: float,
    text: str,
    kind: str = "",
    link: str = "",
    middle: float = MIDDLE,
    width: float = WIDE,
) -> None:
    canvas.box(middle - width / 2, y, width, TALL, text, kind, link)
