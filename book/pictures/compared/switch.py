"""Six tokens on their way through a Switch Transformer's layer of three experts."""

from math import ceil, exp

from drawing.canvas import Canvas
from drawing.links import SWITCH

LAYER = f"{SWITCH}.SwitchFeedForward"
TOKENS = ("thank", "you", "for", "your", "help", ".")
LOGITS = (  # an example, of three experts
    (2.1, 0.2, 0.4),
    (1.6, 0.9, 0.1),
    (0.3, 1.9, 0.8),
    (0.1, 0.9, 1.8),
    (0.4, 0.2, 2.3),
    (1.4, 1.0, 0.2),
)
EXPERTS = len(LOGITS[0])
CAPACITY = ceil(len(TOKENS) / EXPERTS)  # with a capacity factor of 1
LEFT, CELL, LINE = 76, 50, 26
OUT, GATE, EXPERT, SLOT, ROUTER, IN = 8, 62, 120, 148, 222, 324  # tops of the rows
BOX = CELL - 6


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        358,
        "Routing tokens to experts",
        "Six tokens. A router gives each token a probability for each of three experts, and the largest "
        "decides. Every expert has room for two tokens, so the third token that chooses the first expert is "
        "dropped: its output is zero. The other outputs are multiplied by their probabilities.",
    )
    for y, name in (
        (IN + 14, "tokens"),
        (ROUTER + 39, "router’s\nsoftmax *p*"),
        (EXPERT + 32, "experts,\nroom for 2"),
        (GATE + 13, "times *p*"),
        (OUT + 14, "outputs"),
    ):
        canvas.words(66, y, name, "soft right")
    for expert in range(EXPERTS):
        _expert(canvas, expert)
    queues = [0] * EXPERTS
    for token in range(len(TOKENS)):
        probabilities = _softmax(LOGITS[token])
        expert = probabilities.index(max(probabilities))
        _router(canvas, token, probabilities, expert)
        slot = expert * CAPACITY + queues[expert]
        if queues[expert] < CAPACITY:
            queues[expert] += 1
            _sent(canvas, token, slot, probabilities[expert])
        else:
            _dropped(canvas, token)
    return canvas.svg()


def _expert(canvas: Canvas, expert: int) -> None:
    """Draw an expert with its places, all empty."""
    left = LEFT + CELL * CAPACITY * expert
    link = f"{SWITCH}.Experts"
    canvas.box(left + 1, EXPERT, CELL * CAPACITY - 2, 64, kind="c1", link=link)
    with canvas.link(link):
        canvas.words(left + CELL, EXPERT + 14, f"FFN_{{{expert}}}")
    for place in range(CAPACITY):
        x = left + CELL * place + 3
        canvas.box(x, SLOT, BOX, 28, kind="dashed", link=f"{SWITCH}.places")


def _router(
    canvas: Canvas, token: int, probabilities: list[float], expert: int
) -> None:
    """Draw a token and its probabilities. The largest is coloured."""
    x = _middle(token)
    canvas.box(x - BOX / 2, IN, BOX, 28, TOKENS[token])
    canvas.arrow((x, IN), (x, ROUTER + LINE * EXPERTS))
    for i, share in enumerate(probabilities):
        y, kind = ROUTER + LINE * i, "c1" if i == expert else "c5"
        with canvas.link(f"{LAYER}.probabilities"):
            canvas.cell(x - BOX / 2, y, BOX, LINE, share * 0.6, kind)
            canvas.words(x, y + LINE / 2, f"{share:.2f}")


def _sent(canvas: Canvas, token: int, slot: int, share: float) -> None:
    """Draw a token's way through its expert, and back to its column."""
    x, at = _middle(token), _middle(slot)
    canvas.arrow((x, ROUTER), (at, SLOT + 28), kind="c1")
    canvas.box(at - BOX / 2, SLOT, BOX, 28, TOKENS[token], link=f"{SWITCH}.places")
    canvas.arrow((at, EXPERT), (x, GATE + 26), kind="c1")
    canvas.box(x - BOX / 2, GATE, BOX, 26, f"× {share:.2f}", "c1", LAYER)
    canvas.arrow((x, GATE), (x, OUT + 28))
    canvas.box(x - BOX / 2, OUT, BOX, 28, f"*y*_{{{token}}}")


def _dropped(canvas: Canvas, token: int) -> None:
    """Draw a token that finds its expert full."""
    x = _middle(token)
    canvas.line((x, ROUTER), (x, ROUTER - 14))
    canvas.line((x - 4, ROUTER - 18), (x + 4, ROUTER - 10), kind="thick")
    canvas.line((x - 4, ROUTER - 10), (x + 4, ROUTER - 18), kind="thick")
    canvas.words(x + 5, GATE + 13, "dropped", "soft")
    canvas.box(x - BOX / 2, OUT, BOX, 28, "0", "dashed")


def _softmax(row: tuple[float, ...]) -> list[float]:
    total = sum(map(exp, row))
    return [exp(x) / total for x in row]


def _middle(column: int) -> float:
    return LEFT + CELL * (column + 0.5)
