"""Post-norm and pre-norm: where the norms are, and where the residual stream runs."""

from drawing.canvas import Canvas
from drawing.links import FEED_FORWARD, MULTI_HEAD, NORM, TRANSFORMER

POST, PRE = (f"{TRANSFORMER}.normalization.{name}" for name in ("PostNorm", "PreNorm"))
WIDE, TALL = 104, 24  # size of a box
BOTTOM, PITCH = 386, 148


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        BOTTOM + 22,
        "Post-norm and pre-norm",
        "Two blocks side by side, from the bottom up, each with attention and a feed-forward layer whose "
        "output is added to a vertical line, the residual stream. In post-norm a norm follows each addition, "
        "so the stream itself goes through every norm. In pre-norm the norms are on the side branches, "
        "before each layer, and nothing but additions is on the stream.",
    )
    _column(canvas, 58, "Post-norm", POST, pre=False)
    _column(canvas, 258, "Pre-norm", PRE, pre=True)
    return canvas.svg()


def _column(canvas: Canvas, x: float, title: str, link: str, pre: bool) -> None:
    """Draw a block whose residual stream is at `x`."""
    with canvas.link(link):
        canvas.words(x + 42, 14, title, "title")
    canvas.box(x - 50, 60, 184, BOTTOM - 76, kind="area", round=10)
    canvas.words(x, BOTTOM + 12, "*x*", "soft")
    canvas.line((x, BOTTOM), (x, BOTTOM - PITCH * 2 - 20), kind="c1 thick")
    for i, (text, target) in enumerate(
        (("Attention", MULTI_HEAD), ("Feed-forward", FEED_FORWARD))
    ):
        y, middle = BOTTOM - 32 - PITCH * i, x + 76
        left = middle - WIDE / 2
        at = y - 24
        canvas.arrow((x, y), (middle, y), (middle, at))
        if pre:
            canvas.box(left, at - TALL, WIDE, TALL, "Layer norm", link=NORM)
            canvas.arrow((middle, at - TALL), (middle, at - 36))
            at -= 36
        canvas.box(left, at - TALL, WIDE, TALL, text, link=target)
        end = y - 106 if pre else y - 72
        canvas.arrow((middle, at - TALL), (middle, end), (x + 8, end))
        canvas.plus(x, end, "c1")
        if not pre:
            canvas.box(x - 46, end - 46, 92, TALL, "Layer norm", "c1", NORM)
    canvas.arrow((x, BOTTOM - PITCH * 2 - 20), (x, 36), kind="c1 thick")
    if pre:
        canvas.words(x - 16, 174, "residual stream", "c1", upward=True)
