"""The language model whole: tokens, embedding, N blocks, norm, logits."""

from drawing.blocks import TALL, norm, sublayer
from drawing.canvas import Canvas
from drawing.links import EMBEDDING, FEED_FORWARD, MULTI_HEAD, TRANSFORMER

MODEL = f"{TRANSFORMER}.language_model"
LAYERS = [
    ("Causal attention", MULTI_HEAD),
    ("Feed-forward", FEED_FORWARD),
]
READ, PREDICTED = ["to", "be", "or", "not"], ["be", "or", "not", "to"]
MIDDLE, WIDE, PITCH = 110, 148, 106
LEFT, SHAPE = MIDDLE - WIDE / 2, 222
FIRST = 342  # bottom of the first sub-layer's norm


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        504,
        "The language model",
        "From the bottom up. Tokens, to be or not, go through the embedding and get positions. N blocks "
        "follow, each with causal attention and a feed-forward layer, both after a norm and added to the "
        "residual stream. A last norm and a linear layer, whose matrix is the embedding's table, give logits "
        "for the next token at each position: be or not to.",
    )
    _tokens(canvas, 480, READ)
    _shape(canvas, 480, "tokens\n`[batch, seq]`")
    canvas.arrow((MIDDLE, 466), (MIDDLE, 450))
    canvas.box(LEFT, 426, WIDE, TALL, "Embedding", link=EMBEDDING)
    canvas.arrow((MIDDLE, 426), (MIDDLE, 414))
    positions = f"{TRANSFORMER}.positional_encoding.LearnedPositionalEncoding"
    canvas.box(LEFT, 390, WIDE, TALL, "Positions", link=positions)
    canvas.line((MIDDLE, 390), (MIDDLE, FIRST + 10))
    _shape(canvas, 402, "`[batch, seq, d_model]`")
    top = _block(canvas)
    canvas.arrow((MIDDLE, top + 10), (MIDDLE, top - 12))
    norm(canvas, MIDDLE, top - 36, WIDE)
    canvas.arrow((MIDDLE, top - 36), (MIDDLE, top - 48))
    canvas.box(
        LEFT, top - 72, WIDE, TALL, "Linear", link=f"{MODEL}.LanguageModel.forward"
    )
    _shape(canvas, top - 24, "`[batch, seq, d_model]`")
    canvas.arrow((MIDDLE, top - 72), (MIDDLE, top - 88))
    _tokens(canvas, top - 104, PREDICTED)
    _shape(canvas, top - 104, "logits\n`[batch, seq, vocab_size]`")
    # the table at both ends
    x, low, high = 10, 438, top - 60
    middle = (low + high) / 2
    for end, near in ((low, middle + 36), (high, middle - 36)):
        canvas.line((LEFT, end), (x, end), (x, near), kind="c1 dashed")
    canvas.words(x, middle, "one table", "c1", upward=True)
    return canvas.svg()


def _block(canvas: Canvas) -> float:
    """Draw the block. Return the height of its top."""
    bottom = FIRST + 26
    top = bottom - PITCH * len(LAYERS) - 16
    canvas.box(LEFT - 16, top, WIDE + 48, bottom - top, kind="area", round=10)
    with canvas.link(f"{MODEL}.Block"):
        canvas.words(SHAPE, (top + bottom) / 2, "*N* blocks", "strong", side="left")
    for i, (text, link) in enumerate(LAYERS):
        y = FIRST - PITCH * i
        sublayer(canvas, MIDDLE, y, WIDE, LEFT + WIDE + 16, text, link)
    return top


def _tokens(canvas: Canvas, y: float, words: list[str]) -> None:
    for i, word in enumerate(words):
        canvas.words(MIDDLE + 36 * (i - 1.5), y, f"*{word}*")


def _shape(canvas: Canvas, y: float, text: str) -> None:
    canvas.words(SHAPE, y, text, "soft", side="left")
