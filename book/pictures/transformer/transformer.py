"""The Transformer in one picture: encoder and decoder, and the memory that joins them."""

from drawing.blocks import TALL, norm, sublayer
from drawing.canvas import Canvas
from drawing.links import EMBEDDING, FEED_FORWARD, MULTI_HEAD, TRANSFORMER

ENCODER, DECODER = 106, 294  # middles of the two stacks
WIDE = 132  # of a box
SUBLAYER = 106  # from a sub-layer to the next
FIRST = 444  # bottom of the first sub-layer's norm


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        588,
        "The Transformer",
        "Two stacks side by side, from the bottom up. The encoder turns the source into the memory: "
        "embedding, positions, N blocks of self-attention and feed-forward, a last norm. The decoder does "
        "the same with the target, but its attention is causal, and between it and the feed-forward layer "
        "each block has cross-attention to the memory. A last norm and a linear layer give logits. In both "
        "stacks a norm comes before each layer, and the result is added to what entered the norm.",
    )
    canvas.words(ENCODER, 134, "Encoder", "title")
    canvas.words(DECODER, 12, "Decoder", "title")
    layers = [
        ("Self-attention", MULTI_HEAD),
        ("Feed-forward", FEED_FORWARD),
    ]
    cross = ("Cross-attention", MULTI_HEAD)
    top = _stack(canvas, ENCODER, "source", "encoder.Encoder", layers)
    _memory(canvas, top)
    layers = [("Causal attention", MULTI_HEAD), cross, layers[1]]
    top = _stack(canvas, DECODER, "target", "decoder.Decoder", layers)
    # logits
    canvas.arrow((DECODER, top), (DECODER, top - 12))
    canvas.box(
        DECODER - WIDE / 2,
        top - 36,
        WIDE,
        TALL,
        "Linear",
        link=f"{TRANSFORMER}.model.Transformer.decode",
    )
    canvas.arrow((DECODER, top - 36), (DECODER, top - 51))
    canvas.words(DECODER, top - 60, "logits `[batch, target, vocab]`", "soft")
    return canvas.svg()


def _stack(
    canvas: Canvas, x: float, name: str, module: str, layers: list[tuple[str, str]]
) -> float:
    """Draw a stack, from its input at the bottom. Return the height of its top."""
    left, bottom = x - WIDE / 2, FIRST + 26
    outer = x - WIDE / 2 - 16 if x == ENCODER else x + WIDE / 2 + 14
    top = bottom - SUBLAYER * len(layers) - 16
    edge = left - (32 if x == ENCODER else 12)
    canvas.box(edge, top, WIDE + 44, bottom - top, kind="area", round=10)
    corner = (x + WIDE / 2, "right") if x == ENCODER else (left, "left")
    canvas.words(corner[0], top + 15, "*N* ×", "soft", side=corner[1])
    canvas.words(x, 578, f"{name} `[batch, {name}]`", "soft")
    canvas.arrow((x, 566), (x, 550))
    canvas.box(left, 526, WIDE, TALL, "Embedding", link=EMBEDDING)
    canvas.arrow((x, 526), (x, 514))
    positions = f"{TRANSFORMER}.positional_encoding.PositionalEncoding"
    canvas.box(left, 490, WIDE, TALL, "Positions", link=positions)
    canvas.line((x, 490), (x, FIRST + 10))
    for i, (text, link) in enumerate(layers):
        y = FIRST - SUBLAYER * i
        colour = "c1" if text.startswith("Cross") else ""
        sublayer(canvas, x, y, WIDE, outer, text, link, colour)
    canvas.arrow((x, top + 10), (x, top - 12))
    norm(canvas, x, top - 36, WIDE)
    return top - 36


def _memory(canvas: Canvas, top: float) -> None:
    """Lead the encoder's output to the decoder's second layer."""
    y, between = FIRST - SUBLAYER - 48, (ENCODER + DECODER) / 2
    canvas.arrow(
        (ENCODER, top),
        (ENCODER, top - 18),
        (between, top - 18),
        (between, y),
        (DECODER - WIDE / 2, y),
        kind="c1",
    )
    canvas.words(ENCODER, top - 47, "memory", "c1")
    canvas.words(ENCODER, top - 30, "`[batch, source, d_model]`", "soft")
