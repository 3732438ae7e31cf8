"""What is computed for each token of a text that is read with a KV cache: a row per step."""

from drawing.canvas import Canvas
from drawing.links import GENERATION

from pictures.transformer.attention import softmax
from pictures.transformer.kv_cache import KEYS, VALUES

BOOK = f"{GENERATION}.read_one_by_one"
TOKENS = ["to", "be", "or", "not"]
QUERIES = [[2, 0, 0], [0, 2, 0], [1, 0, 1], [1, 2, 0]]
ROW, TOP = 62, 36  # from step to step, and the first one's top
CELL = 14  # of a vector, which is drawn upright
KEPT, WEIGHT, RESULT = 78, 226, 372  # middles of the first column of each part
STEP = 30  # from column to column


def weights(step: int) -> list[float]:
    """Return the weights that the token of a step, from 0, gives to itself and those before it."""
    scores = [
        sum(q * k for q, k in zip(QUERIES[step], key, strict=True)) / 3**0.5
        for key in KEYS[: step + 1]
    ]
    return softmax(scores)


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        314,
        "One new row per token",
        "Four rows, one for each token of to be or not. In each, the new token gives one key and one value, "
        "in colour. Those of earlier tokens are kept, and are pale. Then come the weights of the new token's "
        "query for all tokens so far: one in the first row, four in the last. On the right is the result of "
        "the token, the sum of the values by these weights. The rows of weights together are a triangle, "
        "which is what causal attention computes for the whole text at once.",
    )
    with canvas.link(BOOK):
        for x, text, kind in (
            (KEPT + 0.4 * STEP, "keys", "c3"),
            (KEPT + 2.2 * STEP, "values", "c4"),
            (WEIGHT + 1.5 * STEP, "weights", ""),
            (RESULT, "result", "c1"),
        ):
            canvas.words(x, 14, text, f"strong {kind}")
    for step, token in enumerate(TOKENS):
        y = TOP + ROW * step
        canvas.box(8, y + 10, 40, 24, f"*{token}*", "c1")
        canvas.arrow((48, y + 22), (KEPT - 14, y + 22))
        for i in range(step + 1):
            if i < step:
                with canvas.faint():
                    _pair(canvas, i, y)
            else:
                _pair(canvas, i, y)
                canvas.frame(KEPT + STEP * i - 10, y - 2, 20, 2 * 3 * 8, "c1")
        _weigh(canvas, step, y)
    canvas.words(
        8,
        298,
        "Pale: kept. Framed: computed in this step. Nothing else is.",
        "soft",
        side="left",
    )
    return canvas.svg()


def _pair(canvas: Canvas, i: int, y: float) -> None:
    """Draw the key of a token, and its value below."""
    x = KEPT + STEP * i - CELL / 2
    canvas.matrix(x, y, [[0.4 * number] for number in KEYS[i]], CELL, 7, "c3")
    canvas.matrix(x, y + 23, [[0.4 * number] for number in VALUES[i]], CELL, 7, "c4")


def _weigh(canvas: Canvas, step: int, y: float) -> None:
    """Draw the new token's weights, and its result."""
    shares = weights(step)
    for i, share in enumerate(shares):
        x = WEIGHT + STEP * i - 15
        canvas.cell(x, y + 7, STEP, 30, share, "c1")
        canvas.words(x + STEP / 2, y + 22, f"{share:.1f}")
    for i in range(step + 1, len(TOKENS)):
        canvas.cell(WEIGHT + STEP * i - 15, y + 7, STEP, 30, None)
    canvas.frame(WEIGHT - 15, y + 7, STEP * (step + 1), 30, "c1")
    result = [
        sum(w * v for w, v in zip(shares, column, strict=False))
        for column in zip(*VALUES, strict=True)
    ]
    canvas.arrow((WEIGHT + 3.5 * STEP, y + 22), (RESULT - CELL, y + 22))
    canvas.matrix(
        RESULT - CELL / 2, y + 11, [[0.4 * n] for n in result], CELL, 7.5, "c1"
    )
