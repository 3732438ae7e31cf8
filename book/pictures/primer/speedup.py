"""The speed-up factor: two runs, and the compute after which one reaches the other's final loss."""

from math import exp, log

from drawing.canvas import Canvas
from drawing.links import EZ

FACTOR = f"{EZ}.speedup_factor"
STEPS = 1000  # of both runs, an example
FLOOR, SPAN, POWER = 1.5, 3.0, 0.35  # loss = FLOOR + SPAN * (1 + step / 10) ** -POWER
BETTER = 0.43  # the power of the other run
LEFT, RIGHT, TOP, BOTTOM = 46, 312, 24, 212
FIRST, LOW, HIGH = 30, 1.45, 3.4  # the first step drawn, the least and the largest loss


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        272,
        "The speed-up factor",
        "Two curves of the loss by compute. The baseline ends at some compute with some loss. The other "
        "model reaches that loss after less compute. The speed-up factor is the first compute divided by "
        "the second.",
    )
    target = _loss(STEPS, POWER)
    crossing = 10 * (exp(-log((target - FLOOR) / SPAN) / BETTER) - 1)
    canvas.line((LEFT, TOP - 10), (LEFT, BOTTOM), (RIGHT + 54, BOTTOM), round=0)
    canvas.words(LEFT - 8, TOP + 4, "loss", "right soft")
    for power, kind, name in ((POWER, "c5", "baseline"), (BETTER, "c1", "model")):
        points = [
            _point(step, _loss(step, power)) for step in range(FIRST, STEPS + 1, 5)
        ]
        canvas.curve(points, f"{kind} thick")
        x, y = points[-1]
        canvas.words(x + 8, y, name, f"left {kind}")
    end, y = _point(STEPS, target)
    reached = _point(crossing, target)[0]
    canvas.line((LEFT, y), (end, y), kind="dashed")
    for x, kind in ((end, "c5"), (reached, "c1")):
        canvas.circle(x, y, 4, f"dot {kind}")
        canvas.line((x, y), (x, BOTTOM), kind="dashed")
    names = "*C*_{baseline}", "*C*"
    for x, name, kind in ((end, names[0], ""), (reached, names[1], "c1")):
        canvas.words(x, BOTTOM + 16, name, kind)
    canvas.words(LEFT, BOTTOM + 16, "compute", "left soft")
    factor = STEPS / crossing
    with canvas.link(FACTOR):
        canvas.words(200, BOTTOM + 48, f"*F* = *C*_{{baseline}} / *C* = {factor:.1f}")
    return canvas.svg()


def _loss(step: float, power: float) -> float:
    return FLOOR + SPAN * (1 + step / 10) ** -power


def _point(step: float, loss: float) -> tuple[float, float]:
    x = LEFT + (RIGHT - LEFT) * step / STEPS
    return x, BOTTOM - (BOTTOM - TOP) * (loss - LOW) / (HIGH - LOW)
