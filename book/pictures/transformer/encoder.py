"""The encoder: N blocks along the residual stream, and a last norm."""

from drawing.canvas import Canvas
from drawing.links import FEED_FORWARD, MULTI_HEAD, NORM, TRANSFORMER

STREAM, LEFT, WIDE, TALL = 60, 92, 132, 24  # middle of the stream; boxes beside it
LAYERS = [
    ("Self-attention", MULTI_HEAD),
    ("Feed-forward", FEED_FORWARD),
]
SAYS = ["moves information\nbetween positions", "processes each\nposition by itself"]
BOTTOM, PITCH = 372, 118


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        BOTTOM + 22,
        "The encoder",
        "A vertical line, the residual stream, from the input at the bottom to the memory at the top. Within "
        "each of N blocks two branches leave it, each through a norm and a layer, self-attention or "
        "feed-forward, and are added to it. A last norm is on the stream itself.",
    )
    middle = LEFT + WIDE / 2
    top = BOTTOM - 32 - PITCH * 2 - 8
    canvas.box(16, top, 232, PITCH * 2 + 14, kind="area", round=10)
    with canvas.link(f"{TRANSFORMER}.encoder.EncoderBlock"):
        canvas.words(236, top + 16, "*N* ×", "soft", side="right")
    canvas.words(
        STREAM - 6, BOTTOM + 12, "*x*  `[batch, seq, d_model]`", "soft", side="left"
    )
    canvas.line((STREAM, BOTTOM), (STREAM, top - 20), kind="c1 thick")
    for i, (text, link) in enumerate(LAYERS):
        y = BOTTOM - 40 - PITCH * i
        canvas.arrow((STREAM, y), (middle, y), (middle, y - 18))
        canvas.box(LEFT, y - 42, WIDE, TALL, "Layer norm", link=NORM)
        canvas.arrow((middle, y - 42), (middle, y - 54))
        canvas.box(LEFT, y - 78, WIDE, TALL, text, link=link)
        canvas.arrow((middle, y - 78), (middle, y - 98), (STREAM + 8, y - 98))
        canvas.plus(STREAM, y - 98, "c1")
        canvas.words(262, y - 66, SAYS[i], "soft", side="left")
    canvas.arrow((STREAM, top - 20), (STREAM, top - 14), kind="c1 thick")
    canvas.box(STREAM - 44, top - 38, 88, TALL, "Layer norm", link=NORM)
    canvas.arrow((STREAM, top - 38), (STREAM, top - 58), kind="c1 thick")
    canvas.words(16, top - 68, "memory  `[batch, seq, d_model]`", "soft", side="left")
    return canvas.svg()
