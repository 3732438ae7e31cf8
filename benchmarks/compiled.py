"""The time of a training step with `torch.compile` and bfloat16."""

from functools import partial

import torch
from torch import nn

from benchmarks.measure import command, compared, in_turns
from benchmarks.step import LAYERS, TOKENS, VOCAB_SIZE, sized, training_step
from labml_primer import LanguageModel

NAMES = {"Transformer": "transformer", "Primer-EZ": "primer-ez"}
PAIRS = (
    ("Primer-EZ, compiled, bf16", "Transformer"),
    ("Transformer, compiled, bf16", "Transformer"),
    ("Primer-EZ, compiled, bf16", "Transformer, compiled, bf16"),
    ("Primer-EZ", "Transformer"),
)


def measure(d_model: int, seq: int) -> dict[str, object]:
    functions = {}
    half = partial(torch.autocast, "cpu", dtype=torch.bfloat16)
    for name, preset in NAMES.items():
        config = sized(preset, d_model, seq)
        functions[name] = training_step(LanguageModel(config), seq)
        compiled: nn.Module = torch.compile(LanguageModel(config))  # type: ignore[assignment]
        functions[f"{name}, compiled, bf16"] = training_step(compiled, seq, half)
    return compared(
        {"d_model": d_model, "seq": seq}, in_turns(functions, seconds=10), PAIRS
    )


if __name__ == "__main__":
    command(
        "compiled",
        "seconds",
        [{"d_model": d, "seq": 256} for d in (256, 512)],
        measure,
        tokens=TOKENS,
        layers=LAYERS,
        vocab_size=VOCAB_SIZE,
    )
