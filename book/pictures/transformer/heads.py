"""Multi-head attention as shapes: from `[batch, seq, d_model]` to heads and back."""

from drawing.canvas import Canvas
from drawing.links import ATTENTION, MULTI_HEAD, PROJECT

HEADS, D_K, SEQ = 4, 2, 3  # small enough to count
CELL = 8
MIDDLE, SHAPE = 104, 216  # middle of the drawing, left end of the shapes
THREE = [("query", "c0", 36), ("key", "c3", 104), ("value", "c4", 172)]
CARDS = [4 + 51.5 * h for h in range(HEADS)]  # left ends, each 45 wide


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        484,
        "Multi-head attention as shapes",
        "From the top down. The input of shape batch, seq, d_model goes through three linear layers, to "
        "queries, keys and values of the same shape. Each is split along its features into heads, and the "
        "heads move in front: batch, heads, seq, d_k. Every head attends on its own. The results are put "
        "side by side again, batch, seq, d_model, and one more linear layer combines them.",
    )
    _grid(canvas, MIDDLE, 8, "c5", stripes=False)
    _shape(canvas, 20, "[batch, seq, d_model]")
    # projections
    canvas.line((MIDDLE, 32), (MIDDLE, 46))
    for name, kind, x in THREE:
        canvas.arrow((MIDDLE, 46), (x, 46), (x, 60), round=5)
        canvas.box(x - 32, 60, 64, 24, f"`{name}`", kind, PROJECT)
        canvas.arrow((x, 84), (x, 100))
        _grid(canvas, x, 102, kind)
    _shape(canvas, 114, "[batch, seq, d_model]", "\neach")
    # heads
    canvas.arrow((MIDDLE, 130), (MIDDLE, 158))
    canvas.words(MIDDLE + 10, 143, "`unflatten`, `transpose`", side="left")
    for h, left in enumerate(CARDS):
        canvas.box(left, 162, 45, 52)
        canvas.words(left + 22.5, 174, f"head {h + 1}")
        for i, (_, kind, _) in enumerate(THREE):
            canvas.matrix(
                left + 4 + 13 * i, 186, [[_tone(h)] * D_K] * SEQ, 5.5, 7, kind
            )
        canvas.arrow((left + 22.5, 214), (left + 22.5, 232))
    _shape(canvas, 188, "[batch, heads, seq, d_k]", "\neach")
    canvas.box(4, 232, 200, 28, "Attention, in each head", "c1", ATTENTION)
    # results
    for h, left in enumerate(CARDS):
        canvas.arrow((left + 22.5, 260), (left + 22.5, 278))
        canvas.matrix(left + 14.5, 280, [[_tone(h)] * D_K] * SEQ, CELL, CELL, "c1")
    _shape(canvas, 292, "[batch, heads, seq, d_k]")
    canvas.arrow((MIDDLE, 308), (MIDDLE, 336))
    canvas.words(MIDDLE + 10, 321, "`transpose`, `flatten`", side="left")
    _grid(canvas, MIDDLE, 338, "c1")
    _shape(canvas, 350, "[batch, seq, d_model]")
    canvas.arrow((MIDDLE, 362), (MIDDLE, 380))
    canvas.box(MIDDLE - 32, 380, 64, 24, "`output`", link=f"{MULTI_HEAD}.forward")
    canvas.arrow((MIDDLE, 404), (MIDDLE, 422))
    _grid(canvas, MIDDLE, 424, "c5", stripes=False)
    _shape(canvas, 436, "[batch, seq, d_model]")
    text = f"drawn: {HEADS} heads, `d_k` {D_K}, `d_model` {HEADS * D_K}, `seq` {SEQ}"
    canvas.words(4, 470, text, "soft", side="left")
    return canvas.svg()


def _grid(canvas: Canvas, x: float, y: float, kind: str, stripes: bool = True) -> None:
    """Draw `[seq, d_model]`, its middle at `x`, striped by heads."""
    left = x - CELL * HEADS * D_K / 2
    shade = [[_tone(j // D_K if stripes else 0) for j in range(HEADS * D_K)]] * SEQ
    canvas.matrix(left, y, shade, CELL, CELL, kind)


def _tone(head: int) -> float:
    return 0.7 if head % 2 else 0.35


def _shape(canvas: Canvas, y: float, shape: str, each: str = "") -> None:
    canvas.words(SHAPE, y, f"`{shape}`{each}", "soft", side="left")
