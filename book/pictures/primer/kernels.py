"""Kernels of a convolution shared by nothing, by the heads, or by everything."""

from drawing.canvas import Canvas
from drawing.links import CONVOLUTION

VARIATIONS = "labml_primer.primer.variations"
HEADS, CHANNELS, CELL, TOP = 3, 3, 34, 62


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        222,
        "Kernels of their own, or shared",
        "Three grids of heads by channels. In Primer-EZ each channel of each head has a kernel of its own. "
        "If the heads share kernels, there is one for each channel. In the last grid one kernel does it all.",
    )
    canvas.words(48, TOP + HEADS * CELL / 2, "heads", "soft right")
    _panel(
        canvas,
        60,
        "Primer-EZ",
        "*K d*_{model}",
        [
            (h, c, 1, 1, f"*w*_{{{h}{c}}}")
            for h in range(HEADS)
            for c in range(CHANNELS)
        ],
        CONVOLUTION,
    )
    _panel(
        canvas,
        174,
        "Shared by heads",
        "(*K* + 1) *d*_{k}",
        [(0, c, HEADS, 1, f"*w*_{{{c}}}") for c in range(CHANNELS)],
        f"{VARIATIONS}.MultiDConvSharedByHeadsAttention",
    )
    _panel(
        canvas,
        288,
        "One for all",
        "*K* + 1",
        [(0, 0, HEADS, CHANNELS, "*w*")],
        f"{VARIATIONS}.MultiDSharedConvHeadAttention",
    )
    canvas.words(225, 212, "parameters for *q*, as many for *k* and for *v*", "soft")
    return canvas.svg()


def _panel(
    canvas: Canvas,
    x: float,
    title: str,
    size: str,
    kernels: list[tuple[int, int, int, int, str]],
    link: str,
) -> None:
    """Draw a box for each kernel, over all channels and heads that it is for."""
    middle = x + CHANNELS * CELL / 2
    canvas.words(middle, 18, title, "strong")
    canvas.words(middle, TOP - 14, "channels", "soft")
    for head, channel, tall, wide, name in kernels:
        left, top = x + channel * CELL, TOP + head * CELL
        canvas.box(
            left + 1.5,
            top + 1.5,
            wide * CELL - 3,
            tall * CELL - 3,
            name,
            "c1",
            link,
            round=4,
        )
    canvas.words(middle, TOP + HEADS * CELL + 20, size)
