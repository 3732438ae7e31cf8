"""A feed-forward layer, and one with a gate: SwiGLU."""

from pictures.canvas import Canvas

PLAIN = "labml_primer.transformer.feed_forward.PositionwiseFeedForward"
GATED = "labml_primer.primer.baselines.GatedFeedForward"
BOTTOM = 268


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        BOTTOM + 24,
        "A feed-forward layer without and with a gate",
        "Two layers side by side, from the bottom up. Without a gate, x goes through a linear layer, an "
        "activation function and a second linear layer. With a gate there are two linear layers at the "
        "bottom; the result of one goes through Swish, and is then multiplied with that of the other, "
        "feature by feature, before the last linear layer.",
    )
    _plain(canvas, 76)
    _gated(canvas, 268)
    return canvas.svg()


def _plain(canvas: Canvas, x: float) -> None:
    canvas.words(x, 14, "Feed-forward", "title")
    canvas.words(x, BOTTOM + 12, "*x*", "soft")
    canvas.arrow((x, BOTTOM), (x, 236))
    canvas.box(x - 60, 210, 120, 26, "Linear *W*", link=PLAIN)
    canvas.arrow((x, 210), (x, 176))
    canvas.box(x - 60, 150, 120, 26, "max(*x*, 0)", link=PLAIN)
    canvas.arrow((x, 150), (x, 82))
    _last(canvas, x, PLAIN)


def _gated(canvas: Canvas, x: float) -> None:
    left, right = x - 54, x + 54
    canvas.words(x, 14, "With a gate: SwiGLU", "title")
    canvas.words(x, BOTTOM + 12, "*x*", "soft")
    canvas.line((x, BOTTOM), (x, 252))
    for at, name in ((left, "*W*"), (right, "*U*")):
        canvas.arrow((x, 252), (at, 252), (at, 236))
        canvas.box(at - 46, 210, 92, 26, f"Linear {name}", "c1" * (at == right), GATED)
    canvas.arrow((left, 210), (left, 176))
    canvas.box(left - 46, 150, 92, 26, "Swish", "c1", GATED)
    canvas.arrow((left, 150), (left, 116), (x - 8, 116))
    canvas.arrow((right, 210), (right, 116), (x + 8, 116))
    canvas.circle(x, 116, 8, "box c1")
    canvas.circle(x, 116, 2.2, "dot c1")
    canvas.arrow((x, 108), (x, 82))
    _last(canvas, x, GATED)


def _last(canvas: Canvas, x: float, link: str) -> None:
    canvas.box(x - 60, 56, 120, 26, "Linear *V*", link=link)
    canvas.arrow((x, 56), (x, 32))
