"""Teacher forcing with cross-attention: what the decoder reads, looks up and predicts."""

from drawing.canvas import Canvas
from drawing.links import FEED_FORWARD, MULTI_HEAD, TRANSFORMER

SOURCE = ["dog", "bites", "man"]
TARGET = ["Hund", "beißt", "Mann", "⟨end⟩"]
INNER, PITCH, WIDE = (
    178,
    58,
    50,
)  # first column of the decoder, its pitch, width of a token
COLUMNS = [INNER + PITCH * i for i in range(len(TARGET))]
MIDDLE = (COLUMNS[0] + COLUMNS[-1]) / 2


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        410,
        "Cross-attention and teacher forcing",
        "The encoder turns the source, dog bites man, into three vectors, the memory. The decoder reads the "
        "target shifted by one: start, Hund, beißt, Mann. In causal attention each position looks at itself "
        "and those before it; in cross-attention each asks the memory, which gives keys and values. After a "
        "feed-forward layer it predicts Hund, beißt, Mann, end: at each position the next word.",
    )
    _source(canvas)
    canvas.words(MIDDLE, 12, "predicts", "soft")
    canvas.words(MIDDLE, 400, "target, read shifted by one", "soft")
    for x, text, before in zip(COLUMNS, TARGET, ["⟨start⟩", *TARGET], strict=False):
        _token(canvas, x, 24, text)
        _token(canvas, x, 304, before)
        canvas.words(x, 380, f"*{text}*")
        for bottom, top in ((304, 246), (218, 182), (154, 120), (92, 52)):
            canvas.arrow((x, bottom), (x, top))
    for i, x in enumerate(COLUMNS):
        for earlier in COLUMNS[:i]:
            canvas.line((earlier, 304), (x, 252), round=0)
        if i:
            canvas.arrow((COLUMNS[i - 1] + 6, 368), (x - 6, 334))
    left, width = COLUMNS[0] - WIDE / 2, PITCH * 3 + WIDE
    canvas.box(left, 218, width, 28, "Causal attention", link=MULTI_HEAD)
    canvas.box(left, 154, width, 28, "Cross-attention", "c1", MULTI_HEAD)
    canvas.box(left, 92, width, 28, "Feed-forward", link=FEED_FORWARD)
    return canvas.svg()


def _source(canvas: Canvas) -> None:
    """Draw the encoder and the memory."""
    xs = [24 + 42 * i for i in range(3)]
    for x, word in zip(xs, SOURCE, strict=True):
        canvas.words(x, 380, f"*{word}*")
        canvas.arrow((x, 368), (x, 331))
        canvas.arrow((x, 303), (x, 216))
        canvas.matrix(x - 6, 148, [[0.6]] * 4, 12, 16, "c1")
    canvas.words(66, 400, "source", "soft")
    canvas.box(8, 303, 116, 28, "Encoder", link=f"{TRANSFORMER}.encoder.Encoder")
    canvas.words(66, 136, "memory", "c1")
    canvas.arrow((116, 168), (COLUMNS[0] - WIDE / 2, 168), kind="c1")


def _token(canvas: Canvas, x: float, y: float, text: str) -> None:
    canvas.box(x - WIDE / 2, y, WIDE, 26, f"*{text}*")
