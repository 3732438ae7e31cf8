"""What the pictures of several models share: a layer with its norm and its sum."""

from drawing.canvas import Canvas
from drawing.links import NORM

TALL = 24  # height of a box


def norm(canvas: Canvas, x: float, y: float, width: float) -> None:
    """Draw a norm whose middle is at `x` and whose top is at `y`."""
    canvas.box(x - width / 2, y, width, TALL, "Layer norm", link=NORM)


def sublayer(
    canvas: Canvas,
    x: float,
    y: float,
    width: float,
    side: float,
    text: str,
    link: str,
    kind: str = "",
) -> None:
    """Draw a norm above `y`, a layer, and their sum with what went around along `side`."""
    canvas.arrow((x, y + 20), (x, y))
    norm(canvas, x, y - TALL, width)
    canvas.arrow((x, y - 24), (x, y - 36))
    canvas.box(x - width / 2, y - 60, width, TALL, text, kind, link)
    canvas.arrow((x, y - 60), (x, y - 70))
    canvas.around(x, y + 15, y - 78, side)
