"""How fast a text grows: tokens a second at a length, with what was read before kept, or read anew."""

from functools import partial

import torch

from benchmarks.measure import command, compared, in_turns
from benchmarks.step import LAYERS, VOCAB_SIZE, sized
from labml_primer import LanguageModel
from labml_primer.transformer.generation import Past

LENGTHS = (64, 128, 256, 512, 1024)
IN_A_ROW = 16
"""Kept tokens measured at a time: as when a text grows, no other model has had the caches in between."""
NAMES = {"Transformer": "transformer", "Primer-EZ": "primer-ez", "Primer": "primer"}
PAIRS = (
    *((f"{name}, kept", f"{name}, anew") for name in NAMES),
    *(
        (f"{name}, kept", "Transformer, kept")
        for name in NAMES
        if name != "Transformer"
    ),
)


def anew(model: LanguageModel, text: torch.Tensor) -> None:
    """The best token behind `text`."""
    model(text)[:, -1].argmax(dim=-1)


def kept(model: LanguageModel, text: torch.Tensor, past: Past) -> None:
    """The best token behind what `past` has read and then `text`, `IN_A_ROW` times."""
    length = past.length
    for _ in range(IN_A_ROW):
        model(text, past)[:, -1].argmax(dim=-1)
        past.length = length  # the length is what is measured


@torch.no_grad()
def measure(d_model: int, length: int) -> dict[str, object]:
    functions = {}
    text = torch.randint(VOCAB_SIZE, (1, length))
    for name, preset in NAMES.items():
        model = LanguageModel(sized(preset, d_model, max(LENGTHS))).eval()
        past = Past(length)
        model(text[:, :-1], past)
        functions[f"{name}, kept"] = partial(kept, model, text[:, -1:], past)
        functions[f"{name}, anew"] = partial(anew, model, text)
    taken = in_turns(functions, seconds=6, rounds=15)
    tokens = {name: IN_A_ROW if name.endswith("kept") else 1 for name in taken}
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
