"""Two programs as a difference: from the Transformer's to Primer's, subprogram by subprogram."""

from drawing.canvas import Canvas
from drawing.instructions import changes, chapter_text, difference, read

TITLES = {
    0: "S0 the block",
    1: "S1 attention",
    2: "S2 feed-forward",
    3: "S3 projection",
    4: "S4 softmax",
    6: "S6 norm",
    8: "S8 residual",
    9: "S9 ReLU",
}
COLUMNS = (2, (0, 6)), (136, (1, 2)), (274, (3, 4, 9, 8))


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        660,
        "From the Transformer to Primer",
        "The eight subprograms that differ, each a column of instructions from the top down. Orange "
        "instructions are new in Primer, blue ones have another operation, value or number of branches, "
        "dashed ones are gone. An orange arrow is an input that the instruction did not have. "
        "S3, the projection, has a depthwise convolution and a factor more, S9 a square.",
    )
    old, new = read(chapter_text("TRANSFORMER")), read(chapter_text("PRIMER"))
    for x, numbers in COLUMNS:
        y = 16.0
        for s in numbers:
            found = changes(old[s], new[s])
            y = difference(canvas, x, y, TITLES[s], found, links=True) + 12
    for y, kind, text in (
        (600, "c1", "new"),
        (620, "c2", "changed"),
        (640, "dashed", "gone"),
    ):
        canvas.box(8, y - 7, 22, 14, kind=kind, round=3)
        canvas.words(38, y, text, "soft", side="left")
    return canvas.svg()
