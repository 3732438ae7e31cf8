"""Heads with keys and values of their own, shared by groups, and shared by all."""

from drawing.canvas import Canvas
from drawing.links import PROJECT

HEADS, CELL, TALL = 8, 13, 22
PLANS = [("Multi-head", 8, 8), ("Grouped-query", 2, 140), ("Multi-query", 1, 272)]
VALUES, KEYS, QUERIES = 44, 74, 150  # tops of the rows


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        206,
        "Multi-head, grouped-query and multi-query attention",
        "Three layers with eight heads of queries each. In multi-head attention every head has keys and "
        "values of its own: eight of each. In grouped-query attention four heads share one: two of each. In "
        "multi-query attention all eight heads share one. The KV cache shrinks to a quarter and an eighth.",
    )
    for title, groups, x in PLANS:
        _layer(canvas, x, title, groups)
    return canvas.svg()


def _layer(canvas: Canvas, x: float, title: str, groups: int) -> None:
    """Draw the heads of a layer, with a key and a value for each of its groups."""
    pitch, share = 15, HEADS // groups
    middle = x + pitch * HEADS / 2
    canvas.words(middle, 16, title, "strong")
    for group in range(groups):
        center = x + pitch * share * (group + 0.5)
        with canvas.link(PROJECT):
            canvas.cell(center - CELL / 2, VALUES, CELL, TALL, 0.6, "c4")
            canvas.cell(center - CELL / 2, KEYS, CELL, TALL, 0.6, "c3")
        for i in range(share):
            at = x + pitch * (share * group + i + 0.5)
            canvas.line((at, QUERIES), (center, KEYS + TALL), round=0)
    for head in range(HEADS):
        at = x + pitch * (head + 0.5)
        canvas.cell(at - CELL / 2, QUERIES, CELL, TALL, 0.6, "c0")
    names = [(VALUES, "value", "c4"), (KEYS, "key", "c3"), (QUERIES, "query", "c0")]
    if groups == 1:
        for y, name, kind in names[:2]:
            canvas.words(middle + 14, y + TALL / 2, name, kind, side="left")
    if groups == HEADS:
        text = f"{HEADS} heads of queries"
        canvas.words(x, QUERIES + TALL + 18, text, "c0", side="left")
    else:
        size = f"cache ÷ {HEADS // groups}"
        canvas.words(middle, QUERIES + TALL + 18, size, "soft")
