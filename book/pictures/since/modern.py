"""A Transformer's block next to that of a modern baseline. Their differences are coloured."""

from drawing.canvas import Canvas
from drawing.links import ATTENTION, BASELINES, FEED_FORWARD, PROJECT, TRANSFORMER

TODAY = "labml_primer.since.modern"
ROTATION = "labml_primer.since.rotary.Rotation"
GATED = f"{BASELINES}.GatedFeedForward"
LEFT, RIGHT, WIDE = 98, 298, 132  # middles of the two blocks, width of a box
BOTTOM = 540


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        BOTTOM + 22,
        "A block of the Transformer and a modern block",
        "Two blocks side by side, from the bottom up: normalization, attention, a sum with the block's "
        "input, normalization, feed-forward, a sum with its own input. Today's block has RMS norms, narrower "
        "keys and values that groups of heads share, a rotation of queries and keys by their positions, and "
        "a feed-forward layer with a gate. None of its linear layers has a bias.",
    )
    canvas.words(LEFT, 14, "Transformer", "title")
    canvas.words(RIGHT, 14, "Today", "title")
    _block(canvas, LEFT, today=False)
    _block(canvas, RIGHT, today=True)
    return canvas.svg()


def _block(canvas: Canvas, x: float, today: bool) -> None:
    """Draw one block, from its input at the bottom to its output at the top."""
    canvas.box(x - 88, 52, 186, 452, kind="area", round=10)
    canvas.line((x, BOTTOM), (x, 498))
    canvas.words(x, BOTTOM + 12, "*x*  `[batch, seq, d_model]`", "soft")
    canvas.arrow((x, 498), (x, 482))
    _norm(canvas, x, 458, today)
    canvas.line((x, 458), (x, 444))
    _attention(canvas, x, today)
    canvas.around(x, 490, 274, x + WIDE / 2 + 16)
    canvas.arrow((x, 266), (x, 246))
    _norm(canvas, x, 222, today)
    canvas.line((x, 222), (x, 212))
    if today:
        _gated(canvas, x)
    else:
        _plain(canvas, x)
    canvas.around(x, 258, 68, x + WIDE / 2 + 16)
    canvas.arrow((x, 60), (x, 32))


def _norm(canvas: Canvas, x: float, y: float, today: bool) -> None:
    name, kind = ("RMS norm", "c1") if today else ("Layer norm", "")
    link = "RMSNorm" if today else "LayerNorm"
    canvas.box(
        x - WIDE / 2, y, WIDE, 24, name, kind, f"{TRANSFORMER}.normalization.{link}"
    )


def _attention(canvas: Canvas, x: float, today: bool) -> None:
    """Draw the projections, the rotation and attention."""
    left = x - WIDE / 2
    grouped = f"{TODAY}.GroupedQueryAttention"
    for i, name in enumerate("QKV"):
        at = left + 22 + 44 * i
        canvas.arrow((x, 444), (at, 444), (at, 432), round=4)
        narrow = today and name != "Q"
        wide = 26 if narrow else 38
        link = grouped if today else PROJECT
        kind = "c1" if narrow else ""
        canvas.box(at - wide / 2, 408, wide, 24, f"*{name}*", kind, link)
        turned = today and name != "V"
        canvas.arrow((at, 408), (at, 388 if turned else 336))
        if turned:
            canvas.box(at - 19, 364, 38, 24, "↻ *t*", "c1", ROTATION)
            canvas.arrow((at, 364), (at, 336))
    canvas.box(left, 302, WIDE, 34, "Attention", link=ATTENTION)
    canvas.arrow((x, 302), (x, 282))


def _plain(canvas: Canvas, x: float) -> None:
    left = x - WIDE / 2
    canvas.arrow((x, 212), (x, 198))
    canvas.box(left, 174, WIDE, 24, "Linear, wider", link=FEED_FORWARD)
    canvas.arrow((x, 174), (x, 158))
    canvas.box(left, 132, WIDE, 26, "max(*x*, 0)", link=FEED_FORWARD)
    canvas.arrow((x, 132), (x, 114))
    canvas.box(left, 90, WIDE, 24, "Linear", link=FEED_FORWARD)
    canvas.arrow((x, 90), (x, 76))


def _gated(canvas: Canvas, x: float) -> None:
    """Draw the two linear maps of SwiGLU, and their product."""
    left, half = x - WIDE / 2, WIDE / 2 - 4
    gate, other = left + half / 2, x + 4 + half / 2
    for at in (gate, other):
        canvas.arrow((x, 212), (at, 212), (at, 198), round=4)
        canvas.box(at - half / 2, 174, half, 24, "Linear", "c1", GATED)
    canvas.arrow((gate, 174), (gate, 164))
    canvas.box(gate - half / 2, 142, half, 22, "Swish", "c1", GATED)
    canvas.line((gate, 142), (gate, 128), (x - 9, 128), kind="c1")
    canvas.line((other, 174), (other, 128), (x + 9, 128), kind="c1")
    canvas.circle(x, 128, 9, "box c1")
    canvas.words(x, 127.5, "×")
    canvas.arrow((x, 119), (x, 114))
    canvas.box(left, 90, WIDE, 24, "Linear", link=GATED)
    canvas.arrow((x, 90), (x, 76))
