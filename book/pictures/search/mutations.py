"""The six mutations, each applied to the Transformer's feed-forward subprogram."""

from drawing.canvas import Canvas
from drawing.instructions import Node, changes, difference

CHAPTER = "labml_primer.search.mutations."
# The subprogram, and what each mutation made of it.
FEED_FORWARD = [
    Node("CONV 1X1", "32", (0,)),
    Node("SHIFT", "", (2,)),
    Node("S9", "", (3,)),
    Node("CONV 1X1", "8", (4,)),
    Node("SHIFT", "", (5,)),
]
CHILDREN = {
    "delete": [
        Node("CONV 1X1", "32", (0,)),
        Node("S9", "", (2,)),
        Node("CONV 1X1", "8", (3,)),
        Node("SHIFT", "", (4,)),
    ],
    "insert": [
        Node("CONV 1X1", "32", (0,)),
        Node("SHIFT", "", (2,)),
        Node("S9", "", (3,)),
        Node("SQUARE", "", (4,)),
        Node("CONV 1X1", "8", (5,)),
        Node("SHIFT", "", (6,)),
    ],
    "delete and insert": [
        Node("CONV 1X1", "32", (0,)),
        Node("S9", "", (2,)),
        Node("CONV 1X1", "8", (3,)),
        Node("SHIFT", "", (4,)),
        Node("TANH", "", (5,)),
    ],
    "mutate field": [
        Node("CONV 1X1", "32", (0,)),
        Node("SHIFT", "", (2,)),
        Node("S9", "", (2,)),
        Node("CONV 1X1", "8", (4,)),
        Node("SHIFT", "", (5,)),
    ],
    "swap": [
        Node("S9", "", (0,)),
        Node("SHIFT", "", (2,)),
        Node("CONV 1X1", "32", (3,)),
        Node("CONV 1X1", "8", (4,)),
        Node("SHIFT", "", (5,)),
    ],
    "mutate bank": [
        Node("CONV 1X1", "48", (0,)),
        Node("SHIFT", "", (2,)),
        Node("S9", "", (3,)),
        Node("CONV 1X1", "8", (4,)),
        Node("SHIFT", "", (5,)),
    ],
}


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        428,
        "The six mutations",
        "The feed-forward subprogram after each mutation, from the top down. Delete: the instruction after "
        "the one that is gone reads its input. Insert: a SQUARE follows the activation function, and the "
        "dense layer reads the square. Delete and insert does both, in two places. Mutate field: the "
        "activation function reads another value. Swap: two instructions have exchanged places. Mutate "
        "bank: the value 32 of the bank became 48, which widens a dense layer. New is orange, changed blue, "
        "gone dashed.",
    )
    for number, (title, child) in enumerate(CHILDREN.items()):
        x, y = 8 + 136 * (number % 3), 16 + 232 * (number // 3)
        with canvas.link(CHAPTER + title.replace(" ", "_")):
            difference(canvas, x, y, title, changes(FEED_FORWARD, child))
    return canvas.svg()
