"""What temperature, top-k and top-p do to the probabilities of six tokens."""

import math

from drawing.canvas import Canvas
from drawing.links import GENERATION

from pictures.transformer.attention import softmax

ODDS = [0.40, 0.25, 0.15, 0.10, 0.06, 0.04]
BAR, HIGH, GAP = 16, 84, 19  # width and full height of a bar, from bar to bar
PANELS = [(18, 40), (148, 40), (278, 40), (18, 192), (148, 192), (278, 192)]


def tempered(temperature: float) -> list[float]:
    return softmax([math.log(odd) / temperature for odd in ODDS])


def kept(count: int) -> list[float]:
    """Return the probabilities if only the first `count` tokens are kept."""
    return [odd / sum(ODDS[:count]) * (i < count) for i, odd in enumerate(ODDS)]


def nucleus(p: float) -> list[float]:
    """Return the probabilities of the smallest set of tokens that has at least `p`."""
    return kept(sum(sum(ODDS[:i]) < p for i in range(len(ODDS))))


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        312,
        "Temperature, top-k and top-p",
        "Six bar charts of the probabilities of six tokens. Unchanged they fall from 0.40 to 0.04. A "
        "temperature of 0.5 makes the probable tokens more probable, a temperature of 2 evens them out. "
        "Top-k with 2 keeps two tokens. Top-p with 0.75 keeps three, the first whose probabilities sum to "
        "0.75. Greedy decoding takes the most probable one.",
    )
    charts = [
        ("unchanged", ODDS, "sample_token"),
        ("temperature 0.5", tempered(0.5), "sample_token"),
        ("temperature 2", tempered(2.0), "sample_token"),
        ("top-k 2", kept(2), "keep_top_k"),
        ("top-p 0.75", nucleus(0.75), "keep_top_p"),
        ("greedy", kept(1), "sample_token"),
    ]
    for (x, y), (title, shares, link) in zip(PANELS, charts, strict=True):
        with canvas.link(f"{GENERATION}.{link}"):
            canvas.words(x + 56, y - 26, title, "strong")
        kind = "c5" if title == "unchanged" else "c1"
        for i, share in enumerate(shares):
            if share:
                tall = HIGH * share
                canvas.cell(x + GAP * i, y + HIGH - tall, BAR, tall, 0.7, kind)
        canvas.line((x - 4, y + HIGH), (x + GAP * 6, y + HIGH))
        canvas.words(x + BAR / 2, y + HIGH * (1 - shares[0]) - 9, f"{shares[0]:.2f}")
        for i in range(len(ODDS)):
            canvas.words(x + GAP * i + BAR / 2, y + HIGH + 12, str(i), "soft")
    return canvas.svg()
