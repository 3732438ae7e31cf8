"""What counting makes of the text that a run reads: the line of counts in figures of losses."""

from typing import Any

import torch

from labml_primer.training.corpus import Corpus
from labml_primer.training.counting import Counts, losses
from labml_primer.training.loop import draw_windows, held_out_windows

HIGHEST = 7
"""The highest order that is tried."""


def counted_loss(
    corpus: Corpus, *, steps: int, batch: int = 16, seq: int = 128, seed: int = 0
) -> tuple[int, float]:
    """Return the best order of n-grams and its loss, for a run of `train` with the same settings.

    The counts are those of the windows that the run reads, and the loss is that on the windows it is
    evaluated on.
    """
    read = [
        draw_windows(corpus.train, batch, seq, seed, step)
        for step in range(1, steps + 1)
    ]
    counts = Counts(torch.cat(read), min(HIGHEST, seq), corpus.vocab_size)
    by_order = losses(counts, held_out_windows(corpus.validation, seq)).tolist()
    best = min(range(len(by_order)), key=by_order.__getitem__)
    return best, by_order[best]


def draw_counted(ax: Any, order: int, loss: float, x: float = 0.01) -> None:
    """Draw a thin line with a name at the loss of counts. The name begins at `x` of the width."""
    ax.axhline(loss, color="C5", linewidth=0.8)
    ax.text(
        x,
        loss,
        f"counts, {order}-gram",
        color="C5",
        fontsize="small",
        va="bottom",
        transform=ax.get_yaxis_transform(),
    )
