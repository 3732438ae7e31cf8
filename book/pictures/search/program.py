"""Attention as a program, the Transformer's and then Primer's: new instructions, and dead ones."""

from drawing.canvas import Canvas, Point
from drawing.links import primitive

WIDE, TALL, PITCH, BOTTOM = 84, 24, 39, 528
DEAD, QUERIES, KEYS, VALUES = 52, 118, 214, 344

# Each instruction of a head, by its number in the paper's Figure 24 or 25: the operation, its inputs, the
# middle of its box and its row, from the bottom. Value 10 is the head's input.
Node = tuple[str, tuple[int, ...], float, int]
TRANSFORMER: dict[int, Node] = {
    12: ("CONV 1X1", (10,), KEYS, 1),
    13: ("CONV 1X1", (10,), QUERIES, 1),
    14: ("C MUL", (13,), QUERIES, 2),
    15: ("CONV 1X1", (10,), VALUES, 1),
    16: ("T-MAT MUL", (14, 12), KEYS, 5),
    17: ("EXP", (16,), KEYS, 6),
    18: ("MASK", (17,), KEYS, 7),
    19: ("RED SUM", (18,), KEYS, 8),
    20: ("DIVIDE", (18, 19), KEYS, 9),
    21: ("MAT MUL", (20, 15), KEYS, 12),
}
PRIMER: dict[int, Node] = {
    13: ("CONV 1X1", (10,), DEAD, 1),
    14: ("DCONV 3X1", (13,), DEAD, 2),
    15: ("C MUL", (14,), DEAD, 3),
    17: ("CONV 1X1", (10,), KEYS, 1),
    18: ("DCONV 3X1", (17,), KEYS, 2),
    19: ("C MUL", (18,), KEYS, 3),
    20: ("CONV 1X1", (19,), KEYS - 60, 4),
    22: ("CONV 1X1", (10,), VALUES, 1),
    23: ("DCONV 3X1", (22,), VALUES, 2),
    24: ("C MUL", (23,), VALUES, 3),
    25: ("T-MAT MUL", (20, 19), KEYS, 5),
    26: ("EXP", (25,), KEYS, 6),
    27: ("MASK", (26,), KEYS, 7),
    28: ("RED SUM", (27,), KEYS, 8),
    29: ("DIVIDE", (27, 28), KEYS, 9),
    30: ("TANH", (29,), KEYS, 10),
    31: ("SCALE", (30,), KEYS, 11),
    32: ("MAT MUL", (31, 24), KEYS, 12),
}
NEW = {18, 19, 20, 23, 24, 30, 31}
DEAD_VALUES = {13, 14, 15}
ROLES = ((VALUES, "values"), (KEYS, "keys"))


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        568,
        "Attention as a program",
        "One head of attention, each box an instruction, from the bottom up. First the Transformer's: three "
        "dense layers make queries, keys and values; a matrix product, EXP, MASK, a sum and a division make "
        "attention weights; a matrix product with the values ends it. Then Primer's: keys and values have a "
        "depthwise convolution and a constant factor, queries are computed from keys, and TANH and SCALE "
        "follow the softmax. A third projection is left over as dead code, drawn pale. Three "
        "MAX, dead too, are left out.",
        steps=2,
    )
    with canvas.at(1):
        canvas.words(8, 20, "The Transformer, Figure 24", "strong", side="left")
        _program(canvas, TRANSFORMER, set(), set())
        canvas.words(QUERIES - 8, _y(2) - 21, "queries", "soft", side="right")
    with canvas.at(2):
        canvas.words(8, 20, "Primer, Figure 25", "strong", side="left")
        _program(canvas, PRIMER, NEW, DEAD_VALUES)
        canvas.words(KEYS - 60 - 50, _y(4), "queries", "soft", side="right")
        canvas.words(8, _y(5), "orange: new", "c1", side="left")
        canvas.words(8, _y(5) + 18, "pale: dead code", "soft", side="left")
    return canvas.svg()


def _y(row: int) -> float:
    """Return the middle of a row."""
    return BOTTOM - PITCH * row


def _program(
    canvas: Canvas, nodes: dict[int, Node], new: set[int], dead: set[int]
) -> None:
    """Draw a program: its edges, then its boxes over them."""
    places: dict[int, Point] = {10: (KEYS, _y(0))}
    places |= {value: (x, _y(row)) for value, (_, _, x, row) in nodes.items()}
    for value, (operation, inputs, x, row) in nodes.items():
        if value in dead:
            with canvas.faint():
                for source in inputs:
                    _edge(canvas, places[source], (x, _y(row)))
                _box(canvas, (x, _y(row)), operation)
            continue
        for source in inputs:
            _edge(canvas, places[source], (x, _y(row)))
        _box(canvas, (x, _y(row)), operation, "c1" if value in new else "")
    canvas.words(KEYS, _y(0) + 8, "input of the head", "soft")
    last = places[max(places)]
    canvas.arrow((last[0], last[1] - TALL / 2), (last[0], last[1] - TALL / 2 - 16))
    for x, role in ROLES:
        rows = [row for _, _, middle, row in nodes.values() if middle == x and row < 4]
        canvas.words(x + 8, _y(max(rows)) - 21, role, "soft", side="left")


def _box(canvas: Canvas, middle: Point, text: str, kind: str = "") -> None:
    x, y = middle
    canvas.box(x - WIDE / 2, y - TALL / 2, WIDE, TALL, text, kind, primitive(text))


def _edge(canvas: Canvas, start: Point, end: Point) -> None:
    """Draw an arrow from one box up to another: straight, around a box in between, or from the side."""
    (x0, y0), (x, y) = start, end
    low, high = y0 - TALL / 2, y + TALL / 2
    if y0 == _y(0):
        fork = y0 - 14
        canvas.arrow((x0, y0 - 2), (x0, fork), (x, fork), (x, high))
    elif x0 == x and y0 - y < 1.5 * PITCH:
        canvas.arrow((x, low), (x, high))
    elif x0 == x and y0 - y < 2.5 * PITCH:
        side = x + WIDE / 2 + 14
        canvas.arrow((x + WIDE / 2, y0), (side, y0), (side, y), (x + WIDE / 2, y))
    elif x0 == x:
        canvas.arrow((x, low), (x, high))
    elif x0 > x:
        if y0 - y < 1.5 * PITCH:
            middle = (low + high) / 2
            canvas.arrow((x0, low), (x0, middle), (x, middle), (x, high))
        else:
            canvas.arrow((x0, low), (x0, y), (x + WIDE / 2, y))
    else:
        canvas.arrow((x0, low), (x0, y), (x - WIDE / 2, y))
