"""Byte pair encoding on a short text: three times, the most frequent pair of neighbours is joined."""

from drawing.canvas import Canvas

BOOK = "labml_primer.transformer.tokens."
WORDS = ["the", " soil", ",", " the", " land", ",", " the", " earth", "."]
MERGES = [("t", "h"), ("th", "e"), (" ", "the")]
CELL, GAP, TALL = (
    11.6,
    4.5,
    22,
)  # width of a character, between words; height of a token
LEFT, TOP, ROW = 8, 60, 60  # of the first row's tokens; from row to row


def joined(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    """Return a word's tokens with each occurrence of a pair as one."""
    result: list[str] = []
    for token in tokens:
        if result and (result[-1], token) == pair:
            result[-1] += token
        else:
            result.append(token)
    return result


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        264,
        "Byte pair encoding",
        "The text the soil, the land, the earth. in four rows of cells, one for each token, with gaps "
        "between its words. In the first row each of 30 characters is a token. In the second, t and h, "
        "which are next to each other four times, are one token, th. In the third, th and e, three times, "
        "are the. In the last, a space and the, twice, are one token. So 26, 23 and 21 tokens remain.",
    )
    with canvas.link(BOOK + "learn_merges"):
        canvas.words(
            LEFT, 16, "Join the most frequent pair, again", "strong", side="left"
        )
    words = [list(word) for word in WORDS]
    _row(canvas, TOP, words, "Characters", "pretokens", "")
    for i, pair in enumerate(MERGES, 1):
        before = sum(map(len, words))
        words = [joined(word, pair) for word in words]
        times = before - sum(map(len, words))
        left, right = map(shown, pair)
        label = f"{left} + {right}, {times} times"
        _row(canvas, TOP + ROW * i, words, label, "join_pair", "".join(pair))
    return canvas.svg()


def _row(
    canvas: Canvas, y: float, words: list[list[str]], label: str, link: str, new: str
) -> None:
    """Draw a row of tokens below its label, and tint those that were joined."""
    with canvas.link(BOOK + link):
        canvas.words(LEFT, y - 15, label, "c1" if new else "", side="left")
    right = LEFT + CELL * sum(map(len, WORDS)) + GAP * (len(WORDS) - 1)
    canvas.words(right, y - 15, f"{sum(map(len, words))} tokens", "soft", side="right")
    x: float = LEFT
    for word in words:
        for token in word:
            wide = CELL * len(token)
            shade = 0.6 if token == new else 0.25 if len(token) > 1 else None
            canvas.cell(x, y, wide, TALL, shade, "c1")
            canvas.words(x + wide / 2, y + TALL / 2, shown(token))
            x += wide
        x += GAP


def shown(token: str) -> str:
    """Return a token, with a sign for its space."""
    return token.replace(" ", "␣")
