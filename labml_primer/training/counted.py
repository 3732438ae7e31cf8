"""What counting makes of the text that a run reads: the line of counts in figures of losses."""

from typing import Any

import torch
from torch import Tensor

from labml_primer.training.corpus import Corpus
from labml_primer.training.counting import KneserNey, losses
from labml_primer.training.loop import draw_windows, held_out_windows

HIGHEST = 7
"""The highest order that is tried."""


def places_read(
    length: int, *, steps: int, batch: int, seq: int, seed: int = 0
) -> Tensor:
    """Return the places of a text of `length` tokens that a run reads, sorted, each of them once."""
    places = torch.arange(length)
    windows = [
        draw_windows(places, batch, seq, seed, step) for step in range(1, steps + 1)
    ]
    read: Tensor = torch.unique(torch.cat(windows))
    return read


class CountsOfRead(KneserNey):
    """Kneser and Ney's counts of the `places` of a text `[seq]` that a run has read.

    Windows overlap, and what a run has read in several of them is counted once. Otherwise frequent n-grams
    would seem more frequent than they are, and new ones too rare. An n-gram counts if its places follow one
    another. Raises `ValueError` where `KneserNey` does.
    """

    def __init__(self, text: Tensor, places: Tensor, order: int, vocab_size: int):
        self.places = torch.unique(places)
        super().__init__(text[self.places], order, vocab_size)

    def count(self, grams: Tensor) -> tuple[Tensor, Tensor]:
        n = len(self.places) - len(grams) + 1
        first, last = self.places[: len(grams)], self.places[n - 1 :]
        return super().count(grams[last - first == n - 1])


def longest(vocab_size: int) -> int:
    """Return the highest order that counts can number."""
    return next(n for n in range(63, 0, -1) if vocab_size**n < 2**63)


def counted_loss(
    corpus: Corpus, *, steps: int, batch: int = 16, seq: int = 128, seed: int = 0
) -> tuple[int, float]:
    """Return the best order of n-grams and its loss, for a run of `train` with the same settings.

    The counts are those of the text that the run reads, and the loss is that on the windows it is evaluated
    on.
    """
    text, order = corpus.train, min(HIGHEST, seq, longest(corpus.vocab_size))
    places = places_read(len(text), steps=steps, batch=batch, seq=seq, seed=seed)
    counts = CountsOfRead(text, places, order, corpus.vocab_size)
    by_order = losses(counts, held_out_windows(corpus.validation, seq)).tolist()
    best = min(range(len(by_order)), key=by_order.__getitem__)
    return best, by_order[best]


def draw_counted(ax: Any, order: int, loss: float, x: float = 0.01) -> None:
    """Draw a thin line with a name at the loss of counts. The name begins at `x` of the width."""
    ax.axhline(loss, color="C5", linewidth=0.8)
    ax.text(
        x,
        loss,
        f"Kneser-Ney, {order}-gram",
        color="C5",
        fontsize="small",
        va="bottom",
        transform=ax.get_yaxis_transform(),
    )
