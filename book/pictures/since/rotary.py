"""Rotary positions: queries and keys turn with their positions, their angle stays."""

import math

from drawing.canvas import Canvas
from drawing.links import TRANSFORMER

ROTATE = f"{TRANSFORMER}.positional_encoding.rotate"
RADIUS, ANGLE = 46, 0.35  # of the circles; turn per position, in radians
QUERY, KEY = (
    0.3,
    -0.3,
)  # angles of a query and a key before they are turned, from the right
PLACES = [(3, 1), (5, 3), (3, 3)]  # positions of query and key
COLUMNS = (68, 200, 332)


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        200,
        "Rotary positions",
        "Three circles with two arrows each, one pair of features of a query and of a key. With the query at "
        "position 3 and the key at 1, and with both two positions later, the angle between the arrows is the "
        "same, because both are turned alike. With both at position 3 the angle is another one.",
    )
    for x, (query, key) in zip(COLUMNS, PLACES, strict=True):
        _circle(canvas, x, query, key)
    return canvas.svg()


def _circle(canvas: Canvas, x: float, query: int, key: int) -> None:
    """Draw a query and a key, turned by their positions, and the angle between them."""
    y = 64
    turned = QUERY + ANGLE * query, KEY + ANGLE * key
    with canvas.link(ROTATE):
        canvas.circle(x, y, RADIUS, "box")
    low, high = min(turned), max(turned)
    arc = [low + (high - low) * i / 20 for i in range(21)]
    canvas.curve([_at(x, y, 20, angle) for angle in arc], "c1 thick")
    for angle, kind in zip(turned, ("c0", "c3"), strict=True):
        canvas.arrow((x, y), _at(x, y, RADIUS, angle), kind=f"{kind} thick")
    canvas.words(x, 130, f"query at {query}", "c0")
    canvas.words(x, 148, f"key at {key}", "c3")
    canvas.words(x, 172, f"distance {query - key}", "c1")


def _at(x: float, y: float, radius: float, angle: float) -> tuple[float, float]:
    return x + radius * math.cos(angle), y - radius * math.sin(angle)
