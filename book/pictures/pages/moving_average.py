"""Six tokens, and the mean of the last three at each."""

from drawing.canvas import Canvas

AVERAGE = "book.pages.example.MovingAverage"
TOKENS, WIDTH = (3, 0, 0, 6, 6, 6), 3
LEFT, PITCH, UNIT, BAR = 88, 50, 9, 30
ABOVE, BELOW = 84, 196  # where the bars of tokens, and those of means, start
SHOWN = 3  # the mean whose tokens are marked


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        232,
        "The mean of the last three tokens",
        "Six tokens as bars: 3, 0, 0, 6, 6 and 6. Below them the means of the last three: 1, 1, 1, 2, 4 and "
        "6. Three arrows lead from the second, third and fourth token to the fourth mean.",
    )
    padded = [0] * (WIDTH - 1) + list(TOKENS)
    means = [sum(padded[at : at + WIDTH]) / WIDTH for at in range(len(TOKENS))]
    for y, name in ((ABOVE, "tokens"), (BELOW, "means")):
        canvas.words(8, y - 8, name, "soft", side="left")
    for at, token in enumerate(TOKENS):
        _bar(canvas, at, ABOVE, token, "c5")
    with canvas.link(AVERAGE):
        for at, mean in enumerate(means):
            _bar(canvas, at, BELOW, mean, "c1" if at == SHOWN else "c0")
    end = _x(SHOWN), BELOW - UNIT * means[SHOWN] - 22
    for at in range(SHOWN - WIDTH + 1, SHOWN + 1):
        canvas.arrow((_x(at), ABOVE + 22), end, kind="c1")
    return canvas.svg()


def _x(at: int) -> float:
    """Return the middle of a token's place."""
    return LEFT + PITCH * at + BAR / 2


def _bar(canvas: Canvas, at: int, y: float, number: float, kind: str) -> None:
    """Draw a bar that stands on a line, and its number below."""
    high = UNIT * number
    canvas.line((_x(at) - BAR / 2 - 4, y), (_x(at) + BAR / 2 + 4, y))
    canvas.bar(_x(at) - BAR / 2, y - high, BAR, high, kind)
    canvas.words(_x(at), y + 12, f"{number:g}")
