"""One step of training a table: a window, the forward pass, the loss, the gradients, the update."""

import math

from drawing.canvas import Canvas

from pictures.transformer.attention import softmax

BOOK = "labml_primer.training.loop."
LETTERS = "␣beot"
WINDOW = "to␣be"
RATE = 4.0  # large, so that one step can be seen
# A logit for each next character, in a row for each character.
TABLE = [
    [-0.4, 0.2, -0.1, 0.5, 0.0],
    [0.3, -0.5, 0.1, -0.2, 0.4],
    [0.1, 0.4, -0.3, 0.0, -0.5],
    [-0.2, 0.3, 0.5, -0.4, 0.1],
    [0.5, -0.1, 0.2, -0.3, -0.2],
]
CAPTIONS = [
    "1. A window of the text: each character predicts the next.",
    "2. Forward pass: each input's row gives probabilities.",
    "3. Loss: the mean of −log *p* of the characters that do come.",
    "4. Backward pass: how the loss grows with each parameter.",
    "5. Update: each moves against its gradient. Then again.",
]
LAST = len(CAPTIONS)
CELL = 17
LEFT, MIDDLE, RIGHT = (
    34,
    190,
    352,
)  # left ends of the matrices, and the middle of the loss
UPPER, LOWER = 118, 284  # their tops
WIDE = CELL * len(LETTERS)

Matrix = list[list[float]]


def step(table: Matrix) -> tuple[Matrix, list[float], Matrix]:
    """Return the probabilities of a window, the loss of each of its targets, and the table's gradients."""
    inputs, targets = (
        [LETTERS.index(c) for c in part] for part in (WINDOW[:-1], WINDOW[1:])
    )
    probabilities = [softmax(table[i]) for i in inputs]
    pairs = list(zip(probabilities, targets, strict=True))
    losses = [-math.log(p[target]) for p, target in pairs]
    gradients = [[0.0] * len(LETTERS) for _ in LETTERS]
    for i, (p, target) in zip(inputs, pairs, strict=True):
        for j, each in enumerate(p):
            gradients[i][j] += (each - (j == target)) / len(inputs)
    return probabilities, losses, gradients


def updated(table: Matrix, gradients: Matrix) -> Matrix:
    """Return the table after a step against its gradients."""
    return [
        [number - RATE * slope for number, slope in zip(row, slopes, strict=True)]
        for row, slopes in zip(table, gradients, strict=True)
    ]


def draw() -> str:
    """Return the picture as SVG."""
    probabilities, losses, gradients = step(TABLE)
    new = updated(TABLE, gradients)
    before, after = (sum(each) / len(each) for each in (losses, step(new)[1]))
    canvas = Canvas(
        424,
        "One step of training",
        "A window of five characters, to, a space, be. The first four are the input, the last four the "
        "target. The model is a table with a row for each character. The row of an input gives the "
        "probabilities of the next character, and that of the target is framed. The loss is the mean of "
        f"minus the logarithms of the four framed ones, {before:.2f}. The gradients have the shape of the "
        "table: negative where the target is, positive elsewhere in these rows, zero in the row of e, which "
        "was not read. The table moves against them. For the new one, the loss of the same window is "
        f"{after:.2f}.",
        steps=LAST,
    )
    canvas.captions(CAPTIONS, 8, 410)
    _window(canvas)
    with canvas.at(*range(2, LAST + 1)):
        _title(canvas, LEFT, UPPER, "parameters", "[V, V]", "train")
        _matrix(canvas, LEFT, UPPER, LETTERS, TABLE, "c5")
        _title(
            canvas, MIDDLE, UPPER, "probabilities", "[seq, V]", "next_character_loss"
        )
        _matrix(canvas, MIDDLE, UPPER, WINDOW[:-1], probabilities, "c2")
        for i, letter in enumerate(WINDOW[1:]):
            x = MIDDLE + CELL * LETTERS.index(letter)
            canvas.frame(x, UPPER + CELL * i, CELL, CELL, "c0")
        canvas.arrow(
            (LEFT + WIDE + 6, UPPER + 2 * CELL), (MIDDLE - 22, UPPER + 2 * CELL)
        )
        canvas.arrow((MIDDLE + WIDE / 2, 50), (MIDDLE + WIDE / 2, UPPER - 51))
    with canvas.at(*range(3, LAST + 1)):
        canvas.words(RIGHT, UPPER - 9, "−log *p*")
        for i, loss in enumerate(losses):
            canvas.words(RIGHT, UPPER + CELL * (i + 0.5), f"{loss:.2f}", "c0")
        canvas.arrow(
            (MIDDLE + WIDE + 6, UPPER + 2 * CELL), (RIGHT - 20, UPPER + 2 * CELL)
        )
        canvas.line((RIGHT - 16, UPPER + 4.4 * CELL), (RIGHT + 16, UPPER + 4.4 * CELL))
        with canvas.link(f"{BOOK}next_character_loss"):
            canvas.words(RIGHT, UPPER + 5.2 * CELL, f"loss {before:.2f}", "strong")
    with canvas.at(*range(4, LAST + 1)):
        _title(canvas, MIDDLE, LOWER, "gradients", "[V, V]", "train")
        _matrix(canvas, MIDDLE, LOWER, LETTERS, gradients, "")
        low = LOWER + 2.5 * CELL
        canvas.arrow(
            (RIGHT, UPPER + 5.9 * CELL), (RIGHT, low), (MIDDLE + WIDE + 6, low)
        )
        canvas.words(RIGHT - 22, low + 26, "teal: raise it\norange: lower it", "soft")
    with canvas.at(LAST):
        _title(canvas, LEFT, LOWER, "new parameters", "", "train")
        _matrix(canvas, LEFT, LOWER, LETTERS, new, "c5")
        low = LOWER + 2.5 * CELL
        canvas.words(LEFT + WIDE / 2, LOWER + WIDE + 14, f"loss {after:.2f}", "strong")
        canvas.arrow((MIDDLE - 22, low), (LEFT + WIDE + 6, low))
        canvas.arrow((LEFT + WIDE / 2, LOWER - 46), (LEFT + WIDE / 2, UPPER + WIDE + 4))
    return canvas.svg()


def _window(canvas: Canvas) -> None:
    """Draw the window, and what of it is input and target."""
    x = MIDDLE + WIDE / 2 - 2.5 * 22
    with canvas.link(f"{BOOK}draw_windows"):
        canvas.words(LEFT - 20, 20, "window", "strong", side="left")
    canvas.words(LEFT - 20, 38, "`[seq + 1]`", "soft", side="left")
    for i, letter in enumerate(WINDOW):
        canvas.cell(x + 22 * i, 10, 22, 22, None)
        canvas.words(x + 22 * i + 11, 21, letter)
    for left, y, kind in ((0, 38, "c2"), (1, 44, "c0")):
        start = x + 22 * left
        canvas.line((start + 2, y), (start + 22 * 4 - 2, y), kind=f"thick {kind}")
    canvas.words(x - 10, 38, "input", "c2", side="right")
    canvas.words(x + 22 * 5 + 10, 44, "target", "c0", side="left")


def _title(
    canvas: Canvas, x: float, y: float, name: str, shape: str, link: str
) -> None:
    with canvas.link(BOOK + link):
        canvas.words(x + WIDE / 2, y - (42 if shape else 26), name, "strong")
    if shape:
        canvas.words(x + WIDE / 2, y - 26, f"`{shape}`", "soft")


def _matrix(
    canvas: Canvas, x: float, y: float, rows: str, numbers: Matrix, kind: str
) -> None:
    """Draw a matrix with the characters of its rows and columns. Without a colour, it shows signs."""
    for i, (letter, row) in enumerate(zip(rows, numbers, strict=True)):
        canvas.words(x - 9, y + CELL * (i + 0.5), letter, "soft")
        for j, number in enumerate(row):
            shade, colour = number, kind
            if kind == "c5":
                shade = (number + 1) / 3
            elif not kind:
                shade, colour = 5 * abs(number), "c0" if number < 0 else "c1"
            canvas.cell(x + CELL * j, y + CELL * i, CELL, CELL, max(0.0, shade), colour)
    for j, letter in enumerate(LETTERS):
        canvas.words(x + CELL * (j + 0.5), y - 9, letter, "soft")
