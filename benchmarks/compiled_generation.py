"""Tokens per second with a KV cache: eager, and compiled with a cache of fixed length."""

import os
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.generation import IN_A_ROW, Writer, uncached
from benchmarks.measure import command, compared, in_turns
from benchmarks.step import LAYERS, VOCAB_SIZE, sized
from labml_primer import LanguageModel
from labml_primer.primer.compiled_generation import (
    Text,
    add_fixed_caches,
    compiled,
    last_logits,
)
from labml_primer.primer.faster import faster
from labml_primer.transformer.generation import share_weights

NAMES = {"Transformer": "transformer", "Primer-EZ": "primer-ez"}
PAIRS = (
    *((f"{name}, compiled", f"{name}, cached") for name in NAMES),
    *((f"{name}, cached", f"{name}, uncached") for name in NAMES),
    *((f"Primer-EZ, {way}", f"Transformer, {way}") for way in ("cached", "compiled")),
    ("Primer-EZ, faster, cached", "Transformer, cached"),
)


class CompiledWriter(Writer):
    """The same with a cache of fixed length, in compiled steps."""

    def begin(self) -> None:
        place = Text(self.text.size(1), self.text.device)
        copy = share_weights(self.model, training=False)
        self.fixed = add_fixed_caches(copy, place)
        last_logits(self.fixed, self.text[:, :-IN_A_ROW])

    def write(self) -> None:
        for token in self.text[:, -IN_A_ROW:].split(1, dim=1):
            compiled()(self.fixed, token).argmax(dim=-1)


@torch.no_grad()
def measure(d_model: int, length: int) -> dict[str, object]:
    torch.compiler.reset()  # so that no size of an earlier model counts as one that varies
    text = torch.randint(VOCAB_SIZE, (1, length))
    writers: dict[str, Writer] = {}
    functions: dict[str, Callable[[], None]] = {}
    for name, preset in NAMES.items():
        model = LanguageModel(sized(preset, d_model, length)).eval()
        writers[f"{name}, cached"] = Writer(model, text)
        writers[f"{name}, compiled"] = CompiledWriter(model, text)

        def alone(model: LanguageModel = model, text: Tensor = text) -> None:
            uncached(model, text)

        functions[f"{name}, uncached"] = alone
    swapped = faster(LanguageModel(sized("primer-ez", d_model, length)).eval())
    writers["Primer-EZ, faster, cached"] = Writer(swapped, text)
    functions |= {name: writer.write for name, writer in writers.items()}

    def before(name: str) -> None:
        if name in writers:
            writers[name].begin()

    taken = in_turns(functions, seconds=10, rounds=15, before=before)
    tokens = {name: IN_A_ROW if name in writers else 1 for name in taken}
    speeds = {name: [tokens[name] / each for each in taken[name]] for name in taken}
    return compared({"d_model": d_model, "length": length}, speeds, PAIRS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    command(
        "compiled_generation",
        "tokens/s",
        [{"d_model": d, "length": 512} for d in (128, 256)],
        measure,
        layers=LAYERS,
        vocab_size=VOCAB_SIZE,
        batch=1,
        tokens_in_a_row=IN_A_ROW,
        load=round(os.getloadavg()[0]),
    )
