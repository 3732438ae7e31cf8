"""One step of training: batch, forward pass, loss, backward pass, change of the parameters."""

from itertools import pairwise

from drawing.canvas import Canvas

BOOK = "labml_primer.training.loop."
LEFT, RIGHT, WIDE, TALL = 40, 254, 138, 50  # left ends of the boxes, and their size
ROWS = (8, 112, 216)  # their tops


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        276,
        "The loop",
        "A circle of boxes. A batch of windows of text is split into input and target. In the forward pass "
        "the model turns the input into logits. Cross-entropy compares them with the target, the same text "
        "shifted by one: that is the loss. The backward pass gives the gradient of the loss for each "
        "parameter, and the optimizer changes the parameters by it. Then comes the next batch.",
    )
    _box(canvas, LEFT, 0, "batch of windows", "`[batch, seq + 1]`", "draw_windows")
    _box(canvas, LEFT, 1, "forward pass", "`model(input)`", "next_character_loss", "c1")
    _box(canvas, LEFT, 2, "cross-entropy", "logits and target", "next_character_loss")
    _box(canvas, RIGHT, 2, "loss", "a number", "next_character_loss")
    _box(canvas, RIGHT, 1, "backward pass", "gradients", "train", "c1")
    _box(canvas, RIGHT, 0, "optimizer", "new parameters", "warmed_up_rate")
    left, right = LEFT + WIDE / 2, RIGHT + WIDE / 2
    for upper, lower in pairwise(ROWS):
        canvas.arrow((left, upper + TALL), (left, lower))
        canvas.arrow((right, lower), (right, upper + TALL))
    for y, text in (
        (84, "input\n`[batch, seq]`"),
        (188, "logits\n`[batch, seq, vocab_size]`"),
    ):
        canvas.words(left + 10, y, text, "soft", side="left")
    middle = ROWS[0] + TALL / 2
    canvas.arrow((LEFT, middle), (9, middle), (9, 241), (LEFT, 241))
    canvas.words(24, 137, "target `[batch, seq]`", "soft", upward=True)
    middle = ROWS[2] + TALL / 2
    canvas.arrow((LEFT + WIDE, middle), (RIGHT, middle))
    middle = ROWS[0] + TALL / 2
    canvas.arrow((RIGHT, middle), (LEFT + WIDE, middle))
    canvas.words(216, middle - 14, "repeat", "soft")
    return canvas.svg()


def _box(
    canvas: Canvas,
    x: float,
    row: int,
    name: str,
    detail: str,
    link: str,
    kind: str = "",
) -> None:
    y = ROWS[row]
    canvas.box(x, y, WIDE, TALL, "", kind, BOOK + link)
    canvas.words(x + WIDE / 2, y + 17, name, "strong")
    canvas.words(x + WIDE / 2, y + 34, detail)
