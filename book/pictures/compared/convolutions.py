"""Where a convolution can be, how wide and how full: the choices that the chapter tries."""

from drawing.canvas import Canvas
from drawing.links import MDHA, PROJECT, SEPARABLE_ATTENTION

CONVOLUTIONS = "labml_primer.compared.convolutions"
COLUMNS = (  # name, width, channels that one output reads, before the projection, definition
    ("Before", 3, 1, True, SEPARABLE_ATTENTION),
    ("After", 3, 1, False, MDHA),
    ("Wider", 7, 1, False, f"{CONVOLUTIONS}.WideConvolutionAttention"),
    ("Full", 3, 4, False, f"{CONVOLUTIONS}.StandardConvolutionAttention"),
)
PLACES = ("qkv", "q", "k", "v")
CELL, POSITIONS, CHANNELS = 12, 7, 4
WIDE, LEFT, PITCH = CELL * POSITIONS, 12, 97
FLOW, GRID, PLACE = (
    150,
    176,
    306,
)  # bottom of the flow, top of the grids, top of the places


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        336,
        "Choices of a convolution",
        "Four columns. The convolution comes before the projection or after it; after it, it can be "
        "wider, or full. Grids of channels by positions show what one output of the convolution reads: "
        "three positions of its own channel, seven of them, or three of all channels of its head. At the "
        "bottom, it is on queries, keys and values, or on one of the three.",
    )
    for column, (name, width, channels, before, link) in enumerate(COLUMNS):
        x = LEFT + PITCH * column
        canvas.words(x + WIDE / 2, 14, name, "strong")
        text = f"{width}×1" if channels == 1 else f"{width}×1, full"
        _flow(canvas, x, text, link, before)
        _grid(canvas, x, width, channels, link)
        _places(canvas, x, PLACES[column])
    canvas.words(
        200, GRID + 66, "channels (rows) and positions that one output reads", "soft"
    )
    canvas.line((LEFT, GRID + 88), (LEFT + 3 * PITCH + WIDE, GRID + 88))
    canvas.words(200, GRID + 110, "On all three, or on one", "strong")
    return canvas.svg()


def _flow(canvas: Canvas, x: float, text: str, link: str, before: bool) -> None:
    """Draw the projection and the convolution, from the bottom up."""
    boxes = [("Linear", "", PROJECT), (text, "c1", link)]
    if before:
        boxes.reverse()
    middle = x + WIDE / 2
    canvas.words(middle, FLOW, "*x*")
    canvas.arrow((middle, FLOW - 8), (middle, FLOW - 22))
    for i, (name, kind, target) in enumerate(boxes):
        top = FLOW - 46 - 38 * i
        canvas.box(x, top, WIDE, 24, name, kind, target)
        canvas.arrow((middle, top), (middle, top - 14))
    canvas.words(middle, FLOW - 108, "*q*, *k* or *v*", "soft")


def _grid(canvas: Canvas, x: float, width: int, channels: int, link: str) -> None:
    """Mark what the last position of the second channel reads."""
    own = 1
    with canvas.link(link):
        for row in range(CHANNELS):
            for position in range(POSITIONS):
                read = position >= POSITIONS - width and (channels > 1 or row == own)
                at = x + CELL * position, GRID + CELL * row
                canvas.cell(*at, CELL, CELL, 0.6 if read else None, "c1")


def _places(canvas: Canvas, x: float, places: str) -> None:
    """Draw queries, keys and values, coloured if they are convolved."""
    for i, name in enumerate("qkv"):
        kind = "c1" if name in places else ""
        link = f"{CONVOLUTIONS}.ConvolvedAttention"
        canvas.box(x + 29 * i, PLACE, 26, 24, f"*{name}*", kind, link)
