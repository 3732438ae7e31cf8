"""Buckets of distances between a query and a key, as in T5."""

from math import log

from drawing.canvas import Canvas
from drawing.links import T5

BUCKET = f"{T5}.relative_position_bucket"
BIAS = f"{T5}.RelativePositionBias"
SEQ, WIDE, TALL = 12, 27, 21
LEFT, TOP = 60, 30
STRIP, START, UNIT, FAR = (
    322,
    20,
    2.5,
    145,
)  # first strip, width of a distance, last one


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        452,
        "Buckets of distances",
        "A matrix of the buckets of twelve queries and twelve keys: 0 on the diagonal, 1 to 7 for the seven "
        "keys before, and one bucket for several distances beyond; 17 and up for later keys. Below, two "
        "lines of distances, for an encoder and for a decoder, whose buckets grow from one distance to many.",
    )
    canvas.words(LEFT - 8, TOP + TALL / 2, "query 0", "right soft")
    canvas.words(LEFT - 8, TOP + TALL * (SEQ - 0.5), str(SEQ - 1), "right soft")
    canvas.words(LEFT + WIDE / 2, TOP - 13, "key 0", "soft")
    canvas.words(LEFT + WIDE * (SEQ - 0.5), TOP - 13, str(SEQ - 1), "soft")
    with canvas.link(BIAS):
        for query in range(SEQ):
            for key in range(SEQ):
                _cell(canvas, query, key)
    _strip(canvas, STRIP, "encoder, each direction (later keys: + 16)", True)
    _strip(canvas, STRIP + 60, "decoder", False)
    for distance in (0, 16, 32, 64, 96, 128):
        x, y = START + UNIT * distance, STRIP + 84
        canvas.line((x, y), (x, y + 5))
        canvas.words(x, y + 15, str(distance), "soft")
    canvas.words(
        START + UNIT * 80, STRIP + 120, "distance between query and key", "soft"
    )
    return canvas.svg()


def _cell(canvas: Canvas, query: int, key: int) -> None:
    number = bucket(query - key, bidirectional=True)
    x, y = LEFT + WIDE * key, TOP + TALL * query
    shade, kind = 0.75 - 0.08 * (number % 16), "c1" if key <= query else "c5"
    canvas.cell(x, y, WIDE, TALL, shade, kind)
    canvas.words(x + WIDE / 2, y + TALL / 2, str(number))


def _strip(canvas: Canvas, y: float, name: str, bidirectional: bool) -> None:
    """Draw the distances from 0 on, divided into buckets."""
    canvas.words(START, y - 12, name, "left soft")
    ends = [
        n
        for n in range(1, FAR)
        if bucket(n, bidirectional) != bucket(n - 1, bidirectional)
    ]
    with canvas.link(BUCKET):
        for start, end in zip([0, *ends], [*ends, FAR], strict=True):
            number, wide = bucket(start, bidirectional), UNIT * (end - start)
            x = START + UNIT * start
            canvas.cell(x, y, wide, 24, 0.2 + 0.3 * (number % 2), "c1")
            if wide > 18:
                canvas.words(x + wide / 2, y + 12, str(number))


def bucket(
    distance: int, bidirectional: bool, buckets: int = 32, max_distance: int = 128
) -> int:
    """Return the bucket of a distance, the query's position minus the key's."""
    one_way = buckets // 2 if bidirectional else buckets
    exact = one_way // 2
    near = abs(distance) if bidirectional else max(distance, 0)
    ahead = one_way if bidirectional and distance < 0 else 0
    if near < exact:
        return ahead + near
    share = log(near / exact) / log(max_distance / exact)
    return ahead + min(one_way - 1, int(exact + share * (one_way - exact)))
