"""The family tree of the book's models. Each leads to its definition."""

from typing import NamedTuple

from drawing.canvas import Canvas
from drawing.links import (
    BASELINES,
    EVOLVED,
    EZ,
    MDHA,
    PRIMER,
    SEPARABLE_ATTENTION,
    SQUARED_RELU,
    SWITCH,
    SYNTHESIZER,
    T5,
    TRANSFORMER,
)

MODERN = "labml_primer.since.modern"


class Model(NamedTuple):
    """A model: its depth in the tree, its name, what was changed, its definition, its colour."""

    depth: int
    name: str
    change: str
    link: str
    colour: str = ""


MODELS = {
    "transformer": Model(
        0,
        "Transformer",
        "attention and feed-forward",
        f"{TRANSFORMER}.model.Transformer",
    ),
    "transformer-gelu": Model(1, "Transformer+GELU", "GELU for ReLU", BASELINES, "c5"),
    "transformer-pp": Model(
        1,
        "Transformer++",
        "RMSNorm, SwiGLU",
        f"{BASELINES}.GatedFeedForward",
        "c2",
    ),
    "transformer-squared-relu": Model(
        1, "+Squared ReLU", "squared ReLU", SQUARED_RELU, "c0"
    ),
    "transformer-sep-conv": Model(
        1,
        "+Sep Conv",
        "convolution, then projection",
        SEPARABLE_ATTENTION,
        "c0",
    ),
    "transformer-mdha": Model(
        1,
        "+MDHA",
        "projection, then convolution",
        MDHA,
        "c0",
    ),
    "primer-ez": Model(2, "Primer-EZ", "squared ReLU", EZ, "c0"),
    "primer": Model(3, "Primer", "queries from keys, norms", PRIMER, "c3"),
    "evolved-transformer": Model(
        1,
        "Evolved Transformer",
        "branches of convolutions",
        f"{EVOLVED}.EvolvedBlock",
        "c4",
    ),
    "synthesizer-dense": Model(
        1,
        "Dense Synthesizer",
        "weights from one token",
        f"{SYNTHESIZER}.DenseSynthesizer",
    ),
    "synthesizer-factorized-dense": Model(
        2,
        "Factorized dense",
        "two factors",
        f"{SYNTHESIZER}.FactorizedDenseSynthesizer",
    ),
    "synthesizer-random": Model(
        2,
        "Random Synthesizer",
        "weights from no token",
        f"{SYNTHESIZER}.RandomSynthesizer",
    ),
    "synthesizer-factorized-random": Model(
        3,
        "Factorized random",
        "two factors",
        f"{SYNTHESIZER}.FactorizedRandomSynthesizer",
    ),
    "switch-transformer": Model(
        1,
        "Switch Transformer",
        "one of many experts per token",
        f"{SWITCH}.SwitchFeedForward",
    ),
    "switch-primer": Model(2, "Switch Primer", "Primer-EZ’s two changes", SWITCH, "c0"),
    "modern": Model(
        1, "A modern baseline", "rotary, RMSNorm, SwiGLU, …", f"{MODERN}.modern", "c2"
    ),
    "modern-primer-ez": Model(
        2, "… with Primer-EZ", "its two changes", f"{MODERN}.modern_primer_ez", "c0"
    ),
    "t5": Model(1, "T5", "encoder, distances, Adafactor", f"{T5}.T5"),
    "t5-gelu": Model(2, "T5+GELU", "GELU for ReLU", f"{T5}.Parts", "c5"),
    "t5-pp": Model(2, "T5++", "RMSNorm, SwiGLU", f"{T5}.Parts", "c2"),
    "t5-primer-ez-decoder": Model(
        3, "Primer-EZ decoder", "Primer-EZ’s two changes", f"{T5}.Parts", "c0"
    ),
}
PITCH, WIDE, TALL, INDENT, TOP, NOTES = 28, 142, 22, 16, 6, 203


def draw() -> str:
    """Return the picture as SVG."""
    named = ", ".join(f"{m.name} ({m.change})" for m in MODELS.values())
    canvas = Canvas(
        TOP + PITCH * len(MODELS) - 2,
        "The family of models",
        f"A tree that grows from the Transformer. Each model is shown with its change: {named}.",
    )
    ends: list[float] = []  # for each depth, where a line to the next child begins
    for row, model in enumerate(MODELS.values()):
        x, y = 6 + INDENT * model.depth, TOP + PITCH * row
        del ends[model.depth :]
        if model.depth:
            side, middle = x - INDENT / 2, y + TALL / 2
            canvas.line((side, ends[-1]), (side, middle), (x, middle))
            ends[-1] = middle - 7
        ends.append(y + TALL)
        canvas.box(x, y, WIDE, TALL, model.name, model.colour, model.link)
        canvas.words(NOTES, y + TALL / 2, model.change, "left soft")
    return canvas.svg()
