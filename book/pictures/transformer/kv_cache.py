"""The KV cache grows by one token, step by step."""

from drawing.canvas import Canvas
from drawing.links import GENERATION, WEIGHTS

from pictures.transformer.attention import softmax

CACHE = f"{GENERATION}.CachedAttention"
TOKENS = ["to", "be", "or", "not", "to"]
QUERY = [1, 2, 0]
KEYS = [[1, 0, 2], [2, 1, 1], [0, 0, 2], [1, 2, 0]]
VALUES = [[2, 1, 0], [0, 2, 1], [1, 0, 2], [2, 0, 1]]
CAPTIONS = [
    "1. The cache has the keys and values of all tokens so far.",
    "2. A new token alone is read: one query, key and value.",
    "3. Its key and value are appended to the cache.",
    "4. Its query attends to all cached keys and values.",
    "5. The result gives the next token, which is read in turn.",
]
LAST = len(CAPTIONS)
COLUMNS = [96 + 64 * i for i in range(len(TOKENS))]
NEW = COLUMNS[3]
CELL, TALL = 20, 12  # cells of a vector
Q, K, WEIGHT, V, RESULT = 58, 130, 184, 206, 274  # tops of the rows


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        358,
        "The KV cache grows by one token",
        "The tokens to be or have been read, and their keys and values are in the cache. The new token not "
        "gives one query, one key and one value. Key and value are appended to the cache, the query is "
        "compared with all four keys, and the weighted sum of the four values is the result for the new "
        "token. From it the rest of the model predicts the next token, to. Nothing else is computed again.",
        steps=LAST,
    )
    canvas.captions(CAPTIONS, 8, 344)
    for steps, width in (((1, 2), 184), ((3, 4, 5), 248)):
        with canvas.at(*steps):
            canvas.box(64, K - 12, width, V + 48 - K + 12, kind="area c1", round=10)
    _labels(canvas)
    with canvas.link(f"{GENERATION}.CachedModel"):
        canvas.words(72, V + 70, "KV cache", "c1 strong", side="left")
    for i, x in enumerate(COLUMNS[:3]):
        canvas.box(x - 24, 8, 48, 26, f"*{TOKENS[i]}*")
        _pair(canvas, i, x)
    with canvas.at(*range(2, LAST + 1)):
        canvas.box(NEW - 24, 8, 48, 26, f"*{TOKENS[3]}*", "c1")
        canvas.arrow((NEW, 34), (NEW, Q - 2))
        _vector(canvas, NEW, Q, QUERY, "c0")
        _pair(canvas, 3, NEW)
        side = NEW + 20
        canvas.line((NEW, 44), (side, 44), (side, V + 18), (NEW + 16, V + 18))
        for y in (K, V):
            canvas.arrow((side, y + 18), (NEW + 11, y + 18))
    with canvas.at(*range(4, LAST + 1)):
        _attend(canvas)
    with canvas.at(LAST):
        x = COLUMNS[4]
        canvas.arrow((NEW + 12, RESULT + 18), (x, RESULT + 18), (x, 36))
        canvas.words(x + 14, 160, "rest of the model", "soft", upward=True)
        canvas.box(x - 24, 8, 48, 26, f"*{TOKENS[4]}*", "dashed")
    return canvas.svg()


def _labels(canvas: Canvas) -> None:
    canvas.words(8, 21, "tokens", "soft", side="left")
    canvas.words(8, Q + 18, "query", "c0", side="left")
    with canvas.link(CACHE):
        canvas.words(8, K + 18, "keys", "c3", side="left")
        canvas.words(8, V + 18, "values", "c4", side="left")


def _pair(canvas: Canvas, i: int, x: float) -> None:
    """Draw the key and the value of a token."""
    _vector(canvas, x, K, KEYS[i], "c3")
    _vector(canvas, x, V, VALUES[i], "c4")


def _attend(canvas: Canvas) -> None:
    """Draw the query's look-up in all keys, the weights, and the sum of the values."""
    scores = [
        sum(a * b for a, b in zip(QUERY, key, strict=True)) / len(QUERY) ** 0.5
        for key in KEYS
    ]
    weights = softmax(scores)
    result = [
        sum(w * v for w, v in zip(weights, column, strict=True))
        for column in zip(*VALUES, strict=True)
    ]
    with canvas.link(WEIGHTS):
        canvas.words(8, WEIGHT, "weights", side="left")
    canvas.words(8, RESULT + 18, "result", "c1", side="left")
    canvas.line((NEW, Q + 36), (NEW, K - 22))
    for x, weight in zip(COLUMNS, weights, strict=False):
        canvas.arrow((NEW, K - 22), (x, K - 22), (x, K - 2), round=5 * (x != NEW))
        canvas.words(x, WEIGHT, f"{weight:.2f}")
        canvas.line((x, V + 36), (x, V + 54), (NEW, V + 54), round=5 * (x != NEW))
    canvas.arrow((NEW, V + 36), (NEW, RESULT - 2))
    _vector(canvas, NEW, RESULT, result, "c1")


def _vector(
    canvas: Canvas, x: float, y: float, numbers: list[int] | list[float], kind: str
) -> None:
    canvas.matrix(
        x - CELL / 2, y, [[0.4 * number] for number in numbers], CELL, TALL, kind
    )
