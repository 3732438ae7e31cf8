"""Beam search with two beams: the most probable first token need not begin the best sequence."""

from drawing.canvas import Canvas
from drawing.links import GENERATION

BEAM_SEARCH = f"{GENERATION}.beam_search"
BEAMS = 2
FIRST = {"the": 0.5, "a": 0.4, "one": 0.1}
NEXT = {
    "the": {"dog": 0.4, "man": 0.35, "cat": 0.25},
    "a": {"dog": 0.9, "man": 0.06, "cat": 0.04},
    "one": {"dog": 0.5, "man": 0.3, "cat": 0.2},
}
START, MIDDLE, END = 8, 124, 272  # left ends of the three columns
WIDE, TALL, PITCH = 56, 24, 32


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        334,
        "Beam search with two beams",
        "A tree from the start to three first tokens and on to three second tokens each. The two most "
        "probable first tokens, the with 0.50 and a with 0.40, are kept; one is dropped. Of their six "
        "extensions the two best are kept: a dog with 0.36 and the dog with 0.20. So the best sequence "
        "begins with the second-best token.",
    )
    ends = {(a, b): p * NEXT[a][b] for a, p in FIRST.items() for b in NEXT[a]}
    first = sorted(FIRST, key=lambda a: -FIRST[a])[:BEAMS]
    alive = [pair for pair in ends if pair[0] in first]
    last = sorted(alive, key=lambda pair: -ends[pair])[:BEAMS]
    for x, text in ((MIDDLE, "first token"), (END, "second token")):
        canvas.words(x, 12, text, "soft", side="left")
    middle = _row(1, 1)
    canvas.box(START, middle, WIDE, TALL, "⟨start⟩", link=BEAM_SEARCH)
    for i, (a, p) in enumerate(FIRST.items()):
        y, keep = _row(i, 1), a in first
        _step(canvas, START + WIDE, middle, MIDDLE, y, a, p, keep)
        for j, b in enumerate(NEXT[a]):
            if keep:
                at = _row(i, j)
                _step(canvas, MIDDLE + WIDE, y, END, at, b, ends[a, b], (a, b) in last)
    canvas.words(
        8, 322, "Orange: kept, with the probability so far.", "soft", side="left"
    )
    return canvas.svg()


def _row(group: int, place: int) -> float:
    return 28 + (PITCH * 3 + 6) * group + PITCH * place


def _step(
    canvas: Canvas,
    x: float,
    y: float,
    left: float,
    top: float,
    token: str,
    p: float,
    keep: bool,
) -> None:
    """Draw a token, the line that leads to it, and the probability up to it."""
    kind = "c1" if keep else ""
    start = x + (34 if left == END else 0)
    canvas.arrow((start, y + TALL / 2), (left, top + TALL / 2), kind=kind, round=0)
    canvas.box(left, top, WIDE, TALL, f"*{token}*", kind)
    canvas.words(
        left + WIDE + 6, top + TALL / 2, f"{p:.2f}", kind or "soft", side="left"
    )
