"""A causal convolution, three wide, as it slides along the positions of one channel."""

from drawing.canvas import Canvas
from drawing.links import CONVOLUTION, PROJECT

INPUT = (0.6, 1.2, 0.0, 0.6, 1.8, 1.2)  # an example
WEIGHTS = (0.5 / 3, 0.5 / 3, 0.5)  # those of a new layer
NAMES = ("0.5/3", "0.5/3", "0.5")
STEPS = 5  # the last position is always in the future
LEFT, CELL, TALL = 52, 42, 30
OUT, SUM, KERNEL, IN = 12, 70, 104, 172  # tops of the rows, and the height of the sum


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        288,
        "A causal convolution, three wide",
        "A row of inputs, one for each position, with two zeros before the first. Three weights slide along "
        "it. At each position they multiply the input there and the two before it, and the sum of the three "
        "products is the output of that position. Later inputs are not seen.",
        steps=STEPS,
    )
    canvas.words(28, IN + 15, "*x*")
    canvas.words(28, KERNEL + 14, "*w*")
    canvas.words(28, OUT + 15, "*y*")
    for place in range(-2, 0):
        canvas.box(_left(place), IN, CELL, TALL, "0", "dashed", round=0)
    canvas.words(_left(-2) + CELL, IN + 46, "zeros", "soft")
    canvas.words(28, IN + 46, "*t*", "soft")
    for place in range(len(INPUT)):
        canvas.words(_middle(place), IN + 46, str(place), "soft")
    for place, x in enumerate(INPUT):
        seen = tuple(step for step in range(1, STEPS + 1) if step > place)
        unseen = tuple(step for step in range(1, STEPS + 1) if step <= place)
        if seen:
            with canvas.at(*seen), canvas.link(PROJECT):
                _number(canvas, place, IN, x)
        if unseen:
            with canvas.at(*unseen), canvas.faint():
                _number(canvas, place, IN, x)
        canvas.box(_left(place), OUT, CELL, TALL, "", "dashed", round=0)
        if seen:
            with canvas.at(*seen):
                _number(canvas, place, OUT, output(place))
    canvas.words(200, IN + 102, "in one channel of *q*, *k* or *v*", "soft")
    for place in range(STEPS):
        with canvas.at(place + 1):
            _window(canvas, place)
    return canvas.svg()


def output(place: int) -> float:
    """Return the sum of the products at a position."""
    padded = (0.0, 0.0, *INPUT)
    return sum(w * padded[place + i] for i, w in enumerate(WEIGHTS))


def _window(canvas: Canvas, place: int) -> None:
    """Draw the weights over their inputs, and the sum that becomes the output."""
    padded = (0.0, 0.0, *INPUT)
    end = _middle(place)
    for i, name in enumerate(NAMES):
        x = _middle(place - 2 + i)
        canvas.arrow((x, IN), (x, KERNEL + 28), kind="c1")
        canvas.box(x - CELL / 2 + 1, KERNEL, CELL - 2, 28, name, "c1", CONVOLUTION)
        if i < 2:
            canvas.line((x, KERNEL), (x, SUM), (end - 16, SUM), kind="c1")
    canvas.arrow((end - 18, SUM), (end - 8, SUM), kind="c1")
    canvas.arrow((end, KERNEL), (end, SUM + 8), kind="c1")
    canvas.arrow((end, SUM - 8), (end, OUT + TALL), kind="c1")
    canvas.plus(end, SUM, "c1")
    terms = " + ".join(
        f"{name} · {padded[place + i]:.1f}" for i, name in enumerate(NAMES)
    )
    text = f"*y*_{{{place}}} = {terms} = {output(place):.1f}"
    canvas.words(200, IN + 82, text, "caption soft")


def _number(canvas: Canvas, place: int, y: float, number: float) -> None:
    canvas.cell(_left(place), y, CELL, TALL, number / 4, "c5")
    canvas.words(_middle(place), y + TALL / 2, f"{number:.1f}")


def _left(place: int) -> float:
    return LEFT + CELL * (place + 2)


def _middle(place: int) -> float:
    return _left(place) + CELL / 2
