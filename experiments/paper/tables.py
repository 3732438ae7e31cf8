"""The tables of the Primer paper, as printed, and what figures take from them."""

import json
from collections.abc import Sequence
from pathlib import Path

from experiments.measured.analysis import extent
from experiments.measured.figures import WHOLE_MODELS
from experiments.measured.tables import SourcedTable

Paper = dict[str, SourcedTable]
"""The tables by the names of their files. Entries stay text, as printed."""

# The paper's set-ups, a library on a kind of hardware each: a short name and a marker.
SETUPS = {
    "Tensor2Tensor, TPUv2": ("T2T, TPUv2", "o"),
    "Tensor2Tensor, V100": ("T2T, V100", "s"),
    "T5, TPUv2": ("T5, TPUv2", "^"),
}

# The colours of the models in the paper's tables, as in the family tree.
COLOURS = {
    model: colour
    for colour, models in {
        "C0": (
            *("Transformer+MDHA", "Transformer+Sep Conv"),
            *("Primer-EZ", "Primer-EZ Decoder"),
            *("Switch Primer", "Synthesizer + Squared ReLU"),
        ),
        "C2": ("Transformer++", "T5++"),
        "C3": ("Primer",),
        "C4": ("Evolved Transformer",),
        "C5": (
            *("Vanilla Transformer", "Vanilla Transformer*", "Original T5"),
            *("Transformer+GELU", "Transformer+GeLU*"),
            *("Switch Transformer", "Synthesizer"),
        ),
    }.items()
    for model in models
}


def read_table(path: str) -> SourcedTable:
    """Return a table of the paper."""
    return SourcedTable(**json.loads(Path(path).read_text(encoding="utf-8")))


def read_paper(paths: Sequence[str]) -> Paper:
    """Return the tables at these paths, and the numbers of the running text."""
    return {Path(path).stem: read_table(path) for path in paths}


def theirs(model: str, path: str) -> dict[str, str]:
    """Return the paper's speed-up factors of a model by set-up, as printed in Table 4 at `path`."""
    table = read_table(path)
    return {
        setup: printed
        for setup in SETUPS
        for printed in table.column(
            "speedup", setup=setup, model=WHOLE_MODELS[model][0]
        )
        if printed != "-"
    }


def paper_range(model: str, path: str) -> str:
    """Return the lowest and the highest speed-up factor of a model in the paper's set-ups."""
    printed = [float(each.split(" ± ")[0]) for each in theirs(model, path).values()]
    return extent(printed, ".2f")
