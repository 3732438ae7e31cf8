"""The time of a training step, forward, backward and optimizer: ours in three forms, and other libraries'."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import peers
from benchmarks.measure import command, compared, in_turns
from labml_primer import PRESETS, Config, LanguageModel
from labml_primer.primer.faster import faster
from labml_primer.primer.variations import MultiDConvSharedByHeadsAttention

TOKENS, LAYERS, VOCAB_SIZE = 1024, 4, 256
PAIRS = (
    ("Primer-EZ", "Transformer"),
    ("Primer-EZ, faster", "Transformer"),
    ("Primer-EZ, compiled", "Transformer, compiled"),
    ("Transformer, compiled", "Transformer"),
    ("squared ReLU", "Transformer"),
    ("nn.Conv1d", "Primer-EZ"),
    ("labml-nn", "Primer-EZ, shared kernels"),
    ("PyTorch", "squared ReLU"),
    ("x-transformers", "squared ReLU"),
)


def sized(preset: str, d_model: int, seq: int) -> Config:
    """One of the paper's models at a size of the benchmarks."""
    return replace(
        PRESETS[preset],
        vocab_size=VOCAB_SIZE,
        d_model=d_model,
        heads=d_model // 64,
        d_ff=4 * d_model,
        layers=LAYERS,
        max_seq=seq,
    )


def models(d_model: int, seq: int) -> dict[str, nn.Module]:
    """Ours, and each twin under the name of where it comes from."""
    transformer = LanguageModel(sized("transformer", d_model, seq))
    squared = LanguageModel(sized("transformer-squared-relu", d_model, seq))
    primer_ez = LanguageModel(sized("primer-ez", d_model, seq))
    shared = LanguageModel(
        replace(primer_ez.config, attention=MultiDConvSharedByHeadsAttention)
    )
    peers.without_biases_it_lacks(squared)
    twins: dict[str, tuple[nn.Module, nn.Module]] = {
        "nn.Conv1d": (primer_ez, peers.conv1d_model(primer_ez)),
        "labml-nn": (shared, peers.labml_model(shared)),
        "PyTorch": (squared, peers.torch_model(squared)),
        "x-transformers": (squared, peers.x_model(squared, ff_relu_squared=True)),
    }
    tokens = torch.randint(VOCAB_SIZE, (2, seq))
    for ours, theirs in twins.values():
        peers.agree(ours, theirs, tokens)
    return {
        "Transformer": transformer,
        "squared ReLU": squared,
        "Primer-EZ": primer_ez,
        "Primer-EZ, faster": faster(deepcopy(primer_ez)),
        "Primer-EZ, shared kernels": shared,
    } | {name: theirs for name, (_, theirs) in twins.items()}


def training_step(
    model: nn.Module,
    seq: int,
    context: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Callable[[], None]:
    """A step of training on `TOKENS` tokens; the forward pass runs in `context`."""
    text = torch.randint(VOCAB_SIZE, (TOKENS // seq, seq + 1))
    tokens, targets = text[:, :-1].contiguous(), text[:, 1:].flatten()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        with context():
            logits = model(tokens)
        F.cross_entropy(logits.float().flatten(0, 1), targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def measure(d_model: int, seq: int) -> dict[str, object]:
    trained = models(d_model, seq)
    functions = {name: training_step(model, seq) for name, model in trained.items()}
    for name in ("Transformer", "Primer-EZ"):
        compiled: nn.Module = torch.compile(deepcopy(trained[name]))  # type: ignore[assignment]
        functions[f"{name}, compiled"] = training_step(compiled, seq)
    cell = compared(
        {"d_model": d_model, "seq": seq}, in_turns(functions, seconds=25), PAIRS
    )
    parameters = {
        name: sum(parameter.numel() for parameter in model.parameters())
        for name, model in trained.items()
    }
    return cell | {"parameters": parameters}


if __name__ == "__main__":
    torch.set_num_threads(1)  # CPU time, which other programs hardly affect
    grid = [{"d_model": d, "seq": s} for d in (128, 256, 512) for s in (64, 256, 512)]
    command(
        "step",
        "seconds",
        grid,
        measure,
        ("labml-nn", "x-transformers"),
        tokens=TOKENS,
        layers=LAYERS,
        d_k=64,
        vocab_size=VOCAB_SIZE,
        optimizer="AdamW, fused",
    )
