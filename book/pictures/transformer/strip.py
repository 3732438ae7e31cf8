"""From a text to its next character: the steps of a Transformer, with what the live model computes.

The numbers are in `book/live/example.json`, which the export of the live models writes.
"""

import json
from pathlib import Path
from typing import Any

from drawing.canvas import Canvas
from drawing.links import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    GENERATION,
    TOKENS,
    TRANSFORMER,
)

__data__ = ("live/example.json",)
EXAMPLE = Path(__file__).parents[2] / __data__[0]
VISIBLE = {"\n": "↵", " ": "␣"}
LEFT, RIGHT = 104, 396  # ends of the drawings; the names of the steps are left of them
BAR = 190  # length of a bar for probability 1


def draw() -> str:
    """Return the picture as SVG."""
    found: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))["strip"]
    text, layers = found["text"], found["layers"]
    symbols = [VISIBLE.get(symbol, symbol) for symbol in text]
    wide = (RIGHT - LEFT) / len(text)
    (first, most), *_ = found["next"]
    names = {" ": "a blank", "\n": "a line break"}
    chances = ", ".join(f"{names.get(c, c)} {p:.0%}" for c, p in found["next"])
    canvas = Canvas(
        528,
        f"How a Transformer continues “{text}”",
        f"Six steps from the top down, computed by a small model of this book. The text “{text}” is cut into "
        f"{len(text)} tokens, here characters. Each becomes a vector of {found['d_model']} numbers. {layers} "
        "blocks change the vectors: in each, attention gathers information from earlier positions, and a "
        "feed-forward layer processes every position by itself. The last vector becomes a probability for "
        f"every possible next character: {chances}. One is chosen, {names.get(first, first)}, and appended, "
        f"and so on; the model continues with “{found['written']}”.",
    )

    def step(y: float, name: str, link: str) -> None:
        with canvas.link(link):
            canvas.words(2, y, name, "strong", side="left")

    middle = [LEFT + wide * (i + 0.5) for i in range(len(text))]
    step(14, "Text", "labml_primer.training.counting")
    canvas.words(LEFT, 14, text, "title", side="left")
    # tokens
    canvas.arrow((middle[0], 24), (middle[0], 40))
    step(52, "Tokens", TOKENS)
    with canvas.link(TOKENS):
        for x, symbol in zip(middle, symbols, strict=True):
            canvas.box(x - wide / 2 + 1, 41, wide - 2, 22, symbol, round=3)
    for x, number in zip(middle, found["tokens"], strict=True):
        canvas.words(x, 73, str(number), "soft")
    # vectors
    canvas.arrow((middle[0], 82), (middle[0], 98))
    step(113, "Vectors", EMBEDDING)
    numbers = [number for vector in found["vectors"] for number in vector]
    low, high = min(numbers), max(numbers)
    columns = [
        [(number - low) / (high - low) for number in vector]
        for vector in found["vectors"]
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    with canvas.link(EMBEDDING):
        canvas.matrix(LEFT, 100, rows, wide, 9)
    canvas.words(LEFT, 146, f"… {found['d_model']} numbers each,", "soft", side="left")
    with canvas.link(f"{TRANSFORMER}.positional_encoding"):
        canvas.words(RIGHT, 146, "the position added", "soft", side="right")
    # blocks
    canvas.arrow((middle[0], 156), (middle[0], 172))
    canvas.box(LEFT - 8, 173, RIGHT - LEFT + 12, 152, kind="area", round=8)
    step(249, f"{layers} blocks", f"{TRANSFORMER}.language_model.Block")
    canvas.box(LEFT, 182, RIGHT - LEFT - 4, 24, "Attention", "c0", ATTENTION)
    canvas.words(
        LEFT, 222, "weights of the last position, one head", "soft", side="left"
    )
    wide_in = (RIGHT - LEFT - 4) / len(text)
    weights = found["attention"]
    for i, (symbol, weight) in enumerate(zip(symbols, weights, strict=True)):
        x = LEFT + wide_in * i
        canvas.cell(x, 234, wide_in, 20, weight / max(weights), "c0")
        canvas.words(x + wide_in / 2, 244, symbol)
    canvas.arrow((middle[-1], 256), (middle[-1], 272))
    canvas.box(LEFT, 273, RIGHT - LEFT - 4, 24, "Feed-forward", "c0", FEED_FORWARD)
    canvas.words(LEFT, 312, "each position by itself", "soft", side="left")
    # probabilities
    canvas.arrow((middle[-1], 326), (middle[-1], 350))
    canvas.words(middle[-1] - 8, 338, "last position", "soft", side="right")
    step(389, "Probabilities", f"{TRANSFORMER}.language_model.LanguageModel")
    for i, (symbol, probability) in enumerate(found["next"]):
        y = 362 + 22 * i
        canvas.words(LEFT + 12, y, VISIBLE.get(symbol, symbol), "strong")
        canvas.bar(LEFT + 28, y - 8, BAR * probability, 16, "c0")
        canvas.words(
            LEFT + 34 + BAR * probability, y, f"{probability:.0%}", side="left"
        )
    # the next token
    canvas.arrow((LEFT + 12, 440), (LEFT + 12, 462))
    step(477, "Next token", GENERATION)
    with canvas.link(f"{GENERATION}.sample_token"):
        canvas.box(LEFT, 464, 24, 26, VISIBLE.get(first, first), "c0")
    canvas.words(
        LEFT + 34, 477, f"chosen with probability {most:.0%}", "soft", side="left"
    )
    canvas.words(2, 516, "Again", "strong", side="left")
    canvas.words(LEFT, 516, f"{text}*{found['written']}* …", "title", side="left")
    return canvas.svg()
