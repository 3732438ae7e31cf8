"""The counts of a short text, and the probabilities that they give after an "o"."""

from drawing.canvas import Canvas

BOOK = "labml_primer.training.counting."
TEXT = "to be or not to be"
LETTERS = " otbenr"
CELL, LEFT, TOP = 20, 20, 40  # the text's cells
BAR, GAP, HIGH = (
    12,
    15,
    80,
)  # a bar's width, from bar to bar, the height of probability 1
BASE = 200
PANELS = (14, 146, 278)


def mixed(counts: list[int], shorter: list[float]) -> list[float]:
    """Return counts mixed with the probabilities of a shorter context, as Witten and Bell do."""
    total, kinds = sum(counts), sum(count > 0 for count in counts)
    return [
        (count + kinds * p) / (total + kinds)
        for count, p in zip(counts, shorter, strict=True)
    ]


ALL = [TEXT.count(letter) for letter in LETTERS]
AFTER_O = [TEXT.count(f"o{letter}") for letter in LETTERS]
UNIGRAM = mixed(ALL, [1 / len(LETTERS)] * len(LETTERS))
BIGRAM = mixed(AFTER_O, UNIGRAM)


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        270,
        "From counts to probabilities",
        "The text to be or not to be, in 18 cells. Its four o are marked, and what follows them: two "
        "spaces, an r and a t. Three bar charts for seven characters. On the left, how often each occurs at "
        "all, as a probability, from 0.24 for the space to 0.08. In the middle, how often each came after an "
        "o: 2, 1 and 1. On the right, both mixed: 0.39 for the space, and something for every character.",
    )
    canvas.words(LEFT, 18, "What comes after an *o*?", "strong", side="left")
    for i, letter in enumerate(TEXT):
        x = LEFT + CELL * i
        kind, shade = "c5", None
        if letter == "o":
            kind, shade = "c0", 0.6
        elif i and TEXT[i - 1] == "o":
            kind, shade = "c1", 0.6
        canvas.cell(x, TOP, CELL, CELL, shade, kind)
        canvas.words(x + CELL / 2, TOP + CELL / 2, shown(letter))
    charts = (
        ("anywhere", UNIGRAM, "c5", "probability"),
        ("after *o*", [float(count) for count in AFTER_O], "c1", "probability"),
        ("mixed", BIGRAM, "c0", "probability"),
    )
    for x, (title, bars, kind, link) in zip(PANELS, charts, strict=True):
        counted = kind == "c1"
        with canvas.link(BOOK + link):
            canvas.words(x + GAP * len(LETTERS) / 2, 88, title, "strong")
        for i, (letter, bar) in enumerate(zip(LETTERS, bars, strict=True)):
            tall = HIGH * (bar / 2.2 if counted else bar / 0.42)
            left = x + GAP * i
            if tall:
                canvas.cell(left, BASE - tall, BAR, tall, 0.7, kind)
            canvas.words(left + BAR / 2, BASE + 12, shown(letter), "soft")
        canvas.line((x - 3, BASE), (x + GAP * len(LETTERS), BASE))
        top = f"{bars[0]:.0f}" if counted else f"{bars[0]:.2f}"
        tall = HIGH * (bars[0] / 2.2 if counted else bars[0] / 0.42)
        canvas.words(x + BAR / 2 + 2, BASE - tall - 9, top)
    for x, sign in ((133, "+"), (265, "=")):
        canvas.words(x, BASE - HIGH / 2, sign)
    canvas.words(
        LEFT,
        BASE + 44,
        "Four *o*, followed by three kinds of characters:\nthe mix is 4 parts counts and 3 parts *anywhere*.",
        "soft",
        side="left",
    )
    return canvas.svg()


def shown(letter: str) -> str:
    """Return a letter, or a sign for the space."""
    return letter if letter != " " else "␣"
