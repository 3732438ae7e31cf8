"""A Transformer's block next to Primer-EZ's. Their two differences are coloured."""

from drawing.blocks import norm
from drawing.canvas import Canvas
from drawing.links import (
    ATTENTION,
    CONVOLUTION,
    FEED_FORWARD,
    PROJECT,
    SQUARED_RELU,
)

LEFT, RIGHT, WIDE = 98, 298, 132  # middles of the two blocks, width of a box
BOTTOM = 520


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        BOTTOM + 22,
        "A block of the Transformer and a block of Primer-EZ",
        "Two blocks side by side, from the bottom up: normalization, attention, a sum with the block's "
        "input, normalization, feed-forward, a sum with its own input. Primer-EZ has the same wiring. "
        "After its projections to queries, keys and values there is a depthwise convolution three "
        "tokens wide, and the activation function of its feed-forward layer is the squared ReLU.",
    )
    canvas.words(LEFT, 14, "Transformer", "title")
    canvas.words(RIGHT, 14, "Primer-EZ", "title")
    _block(canvas, LEFT, ez=False)
    _block(canvas, RIGHT, ez=True)
    return canvas.svg()


def _block(canvas: Canvas, x: float, ez: bool) -> None:
    """Draw one block, from its input at the bottom to its output at the top."""
    left = x - WIDE / 2
    canvas.box(x - 88, 52, 186, 432, kind="area", round=10)
    canvas.line((x, BOTTOM), (x, 478))
    canvas.words(x, BOTTOM + 12, "*x*  `[batch, seq, d_model]`", "soft")
    # attention
    canvas.arrow((x, 478), (x, 462))
    norm(canvas, x, 438, WIDE)
    canvas.line((x, 438), (x, 424))
    for i, name in enumerate("QKV"):
        at = left + 22 + 44 * i
        canvas.arrow((x, 424), (at, 424), (at, 412), round=4)
        canvas.box(at - 18, 388, 36, 24, f"*{name}*", link=PROJECT)
        canvas.arrow((at, 388), (at, 370 if ez else 318))
        if ez:
            canvas.box(at - 18, 346, 36, 24, "3×1", "c1", CONVOLUTION)
            canvas.arrow((at, 346), (at, 318))
    canvas.box(left, 284, WIDE, 34, "Attention", link=ATTENTION)
    canvas.arrow((x, 284), (x, 266))
    canvas.around(x, 470, 258, x + WIDE / 2 + 16)
    # feed-forward
    canvas.arrow((x, 250), (x, 226))
    norm(canvas, x, 202, WIDE)
    canvas.arrow((x, 202), (x, 190))
    canvas.box(left, 166, WIDE, 24, "Linear, wider", link=FEED_FORWARD)
    canvas.arrow((x, 166), (x, 154))
    if ez:
        canvas.box(left, 126, WIDE, 28, "max(*x*, 0)^{2}", "c1", SQUARED_RELU)
    else:
        canvas.box(left, 126, WIDE, 28, "max(*x*, 0)", link=FEED_FORWARD)
    canvas.arrow((x, 126), (x, 114))
    canvas.box(left, 90, WIDE, 24, "Linear", link=FEED_FORWARD)
    canvas.arrow((x, 90), (x, 76))
    canvas.around(x, 240, 68, x + WIDE / 2 + 16)
    canvas.arrow((x, 60), (x, 32))
