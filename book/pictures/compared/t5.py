"""Span corruption: a text, the source with a sentinel for each gap, and the target that fills the gaps."""

from drawing.canvas import Canvas
from drawing.links import T5

CORRUPT = f"{T5}.corrupt_spans"
PIECES = (  # kept and cut in turn
    ("Thank", "you"),
    ("for", "inviting"),
    ("me", "to"),
    ("your", "party"),
)
SENTINELS = "XY"
WIDTHS = {
    "Thank": 46,
    "you": 34,
    "for": 32,
    "inviting": 56,
    "me": 32,
    "to": 28,
    "your": 38,
    "party": 42,
}
GAP, LEFT, TALL, MARK = 5, 12, 28, 28
TEXT, SOURCE, TARGET = 28, 98, 168  # tops of the rows


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        206,
        "Span corruption",
        "A text of eight words. Two spans of two words are cut out. The source is the rest, with a sentinel "
        "in the place of each span: X and Y. The target is the spans, each after its sentinel, and a last "
        "sentinel, Z.",
    )
    for y, name in ((TEXT, "text"), (SOURCE, "source"), (TARGET, "target")):
        canvas.words(LEFT, y - 15, name, "left soft")
    x = float(LEFT)
    for i, piece in enumerate(PIECES):
        x = _piece(canvas, x, i, piece)
    _sentinel(canvas, x, TARGET, "Z")
    return canvas.svg()


def _piece(canvas: Canvas, start: float, i: int, piece: tuple[str, ...]) -> float:
    """Draw a piece of the text and what becomes of it. Return where the next piece begins."""
    cut, x = i % 2 == 1, start
    kind, row = ("c1", TARGET) if cut else ("", SOURCE)
    for word in piece:
        canvas.box(x, TEXT, WIDTHS[word], TALL, word, kind)
        canvas.box(x, row, WIDTHS[word], TALL, word, kind, CORRUPT)
        x += WIDTHS[word] + GAP
    middle = (start + x - GAP) / 2
    if cut:
        name = SENTINELS[i // 2]
        canvas.arrow((middle, TEXT + TALL), (middle, SOURCE), kind=kind)
        canvas.arrow((middle, SOURCE + TALL), (middle, TARGET), kind=kind)
        _sentinel(canvas, middle - MARK / 2, SOURCE, name)
        _sentinel(canvas, start - GAP - MARK, TARGET, name)
    return x


def _sentinel(canvas: Canvas, x: float, y: float, name: str) -> None:
    canvas.box(x, y, MARK, TALL, f"*{name}*", "c1", CORRUPT, round=14)
