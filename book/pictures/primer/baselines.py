"""Feed-forward layers compared: ReLU, GELU, and SwiGLU with its two branches."""

from collections.abc import Callable
from math import erf, exp, sqrt

from drawing.canvas import Canvas
from drawing.links import BASELINES, FEED_FORWARD

GATED = f"{BASELINES}.GatedFeedForward"
WIDE, TALL, PLOT = 86, 24, 58
IN, LINEAR, ACTIVATION, OUT, TOP = 322, 270, 176, 72, 44


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        340,
        "Three feed-forward layers",
        "The Transformer's has a linear layer, a ReLU and a second linear layer. Transformer+GELU has "
        "GELU, a smooth function like it. Transformer++ has two linear layers side by side, each two "
        "thirds as wide. One goes through Swish, and the two are multiplied before the last layer.",
    )
    _plain(canvas, 53, "Transformer", "ReLU", lambda x: max(x, 0.0))
    _plain(canvas, 158, "+GELU", "GELU", _gelu)
    _gated(canvas, 303, 47)
    return canvas.svg()


def _plain(
    canvas: Canvas, x: float, title: str, name: str, function: Callable[[float], float]
) -> None:
    """Draw a layer with one branch."""
    kind = "" if name == "ReLU" else "c1"
    canvas.words(x, 14, title, "strong")
    _ends(canvas, x, FEED_FORWARD)
    canvas.arrow((x, IN - 10), (x, LINEAR + TALL))
    canvas.box(x - WIDE / 2, LINEAR, WIDE, TALL, "Linear, *d*_{ff}", link=FEED_FORWARD)
    canvas.arrow((x, LINEAR), (x, ACTIVATION + PLOT))
    _plot(canvas, x, name, function, kind, FEED_FORWARD)
    canvas.arrow((x, ACTIVATION), (x, OUT + TALL))


def _gated(canvas: Canvas, x: float, apart: float) -> None:
    """Draw SwiGLU: two branches, one through Swish, and their product."""
    left, right, product = x - apart, x + apart, 136
    canvas.words(x, 14, "Transformer++: SwiGLU", "strong")
    _ends(canvas, x, GATED)
    canvas.line((x, IN - 10), (x, IN - 18))
    for middle in (left, right):
        canvas.arrow((x, IN - 18), (middle, IN - 18), (middle, LINEAR + TALL))
        canvas.box(
            middle - WIDE / 2, LINEAR, WIDE, TALL, "Linear, ⅔*d*_{ff}", "c1", GATED
        )
    canvas.arrow((left, LINEAR), (left, ACTIVATION + PLOT))
    _plot(canvas, left, "Swish", _swish, "c1", GATED)
    canvas.arrow((left, ACTIVATION), (left, product), (x - 9, product))
    canvas.arrow((right, LINEAR), (right, product), (x + 9, product))
    with canvas.link(GATED):
        canvas.circle(x, product, 9, "box c1")
        canvas.circle(x, product, 1.8, "dot c1")
    canvas.arrow((x, product - 9), (x, OUT + TALL))


def _ends(canvas: Canvas, x: float, link: str) -> None:
    """Draw the input, the last linear layer and the output."""
    canvas.words(x, IN, "*x*")
    canvas.box(x - WIDE / 2, OUT, WIDE, TALL, "Linear, *d*", link=link)
    canvas.arrow((x, OUT), (x, TOP))


def _plot(
    canvas: Canvas,
    x: float,
    name: str,
    function: Callable[[float], float],
    kind: str,
    link: str,
) -> None:
    """Draw an activation function from -3 to 3 in a box with its name."""
    left, scale = x - WIDE / 2, 11.0
    zero = ACTIVATION + PLOT - 14
    canvas.box(left, ACTIVATION, WIDE, PLOT, kind=kind, link=link)
    canvas.line((x - 3 * scale, zero), (x + 3 * scale, zero))
    grid = [n / 20 for n in range(-60, 61)]
    points = [(x + scale * n, zero - scale * function(n)) for n in grid]
    canvas.curve(points, f"{kind or 'c5'} thick")
    canvas.words(left + 8, ACTIVATION + 14, name, "left")


def _gelu(x: float) -> float:
    return x * (1 + erf(x / sqrt(2))) / 2


def _swish(x: float) -> float:
    return x / (1 + exp(-x))
