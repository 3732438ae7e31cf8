"""Tokens per second while a text is generated, at several lengths, with a KV cache and without."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from benchmarks.measure import command, compared, in_turns
from benchmarks.step import LAYERS, VOCAB_SIZE, sized
from labml_primer import LanguageModel
from labml_primer.primer.faster import faster
from labml_primer.transformer.generation import cached

LENGTHS = (64, 128, 256, 512, 1024)
IN_A_ROW = 16
"""Cached tokens timed together, because in a growing text no other model uses the caches meanwhile."""
NAMES = {"Transformer": "transformer", "Primer-EZ": "primer-ez", "Primer": "primer"}
FASTER = "Primer-EZ, faster"
PAIRS = (
    *((f"{name}, cached", f"{name}, uncached") for name in NAMES),
    *((f"{name}, cached", "Transformer, cached") for name in ("Primer-EZ", "Primer")),
    (f"{FASTER}, cached", "Transformer, cached"),
)


class Writer:
    """A model that is `IN_A_ROW` tokens short of a length, again and again.

    `remembering(model)` returns a reader of new tokens with a cache.
    """

    def __init__(
        self,
        model: nn.Module,
        text: torch.Tensor,
        remembering: Callable[[Any], Any] = cached,
    ):
        self.model, self.text, self.remembering = model, text, remembering

    def begin(self) -> None:
        """Read the text except for the last tokens."""
        self.reader = self.remembering(self.model)
        self.reader(self.text[:, :-IN_A_ROW])

    def write(self) -> None:
        """Read those one by one, and choose the best next token after each."""
        for token in self.text[:, -IN_A_ROW:].split(1, dim=1):
            self.reader(token)[:, -1].argmax(dim=-1)


def uncached(model: LanguageModel, text: torch.Tensor) -> None:
    """Choose the best next token after `text`."""
    model(text)[:, -1].argmax(dim=-1)


@torch.no_grad()
def measure(d_model: int, length: int) -> dict[str, object]:
    text = torch.randint(VOCAB_SIZE, (1, length))
    presets = NAMES | {FASTER: "primer-ez"}
    writers, functions = {}, {}
    for name, preset in presets.items():
        model = LanguageModel(sized(preset, d_model, max(LENGTHS))).eval()
        if name == FASTER:
            faster(model)
        writers[f"{name}, cached"] = Writer(model, text)
        functions[f"{name}, cached"] = writers[f"{name}, cached"].write
    for name in NAMES:
        model = LanguageModel(sized(NAMES[name], d_model, max(LENGTHS))).eval()
        functions[f"{name}, uncached"] = partial(uncached, model, text)

    def before(name: str) -> None:
        if name in writers:
            writers[name].begin()

    taken = in_turns(functions, seconds=6, rounds=15, before=before)
    tokens = {name: IN_A_ROW if name in writers else 1 for name in taken}
    speeds = {name: [tokens[name] / each for each in taken[name]] for name in taken}
    return compared({"d_model": d_model, "length": length}, speeds, PAIRS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    command(
        "generation",
        "tokens/s",
        [{"d_model": d, "length": n} for d in (128, 256) for n in LENGTHS],
        measure,
        layers=LAYERS,
        vocab_size=VOCAB_SIZE,
        batch=1,
        tokens_in_a_row=IN_A_ROW,
    )
