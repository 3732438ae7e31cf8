"""The time of an attention layer, forward and backward: ours with and without convolutions, and others'."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import nn

from benchmarks import peers
from benchmarks.measure import command, compared, in_turns
from labml_primer.primer.faster import faster
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.primer.variations import MultiDConvSharedByHeadsAttention
from labml_primer.transformer.attention import MultiHeadAttention

TOKENS = 2048
PAIRS = (
    ("MDHA", "plain attention"),
    ("MDHA, faster", "plain attention"),
    ("nn.Conv1d", "MDHA"),
    ("labml-nn MDHA", "MDHA, shared kernels"),
    ("labml-nn", "plain attention"),
    ("PyTorch", "plain attention"),
    ("x-transformers", "plain attention"),
)


def layers(d_model: int, seq: int) -> dict[str, nn.Module]:
    """Ours, and each twin under the name of where it comes from."""
    heads = d_model // 64
    plain = MultiHeadAttention(d_model, heads)
    shared = MultiDConvSharedByHeadsAttention(d_model, heads)
    mdha = MultiDConvHeadAttention(d_model, heads)
    peers.without_biases_it_lacks(plain)
    twins: dict[str, dict[str, nn.Module]] = {
        "plain attention": {
            "labml-nn": peers.LabmlAttention(plain, seq),
            "PyTorch": peers.TorchAttention(plain, seq),
            "x-transformers": peers.XAttention(plain),
        },
        "MDHA, shared kernels": {"labml-nn MDHA": peers.LabmlAttention(shared, seq)},
        "MDHA": {
            "nn.Conv1d": peers.conv1d_attention(mdha),
            "MDHA, faster": peers.Causal(faster(deepcopy(mdha))),
        },
    }
    ours = {"plain attention": plain, "MDHA, shared kernels": shared, "MDHA": mdha}
    found: dict[str, nn.Module] = {}
    x = torch.randn(2, seq, d_model)
    for name, layer in ours.items():
        found[name] = peers.Causal(layer)
        for other, twin in twins[name].items():
            peers.agree(found[name], twin, x)
            found[other] = twin
    return found


def forward_and_backward(
    layer: nn.Module, d_model: int, seq: int
) -> Callable[[], None]:
    """A forward pass, and the gradients of weights and input."""
    x = torch.randn(TOKENS // seq, seq, d_model, requires_grad=True)
    gradient = torch.randn_like(x)

    def call() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x).backward(gradient)

    return call


def measure(d_model: int, seq: int) -> dict[str, object]:
    functions = {
        name: forward_and_backward(layer, d_model, seq)
        for name, layer in layers(d_model, seq).items()
    }
    taken = in_turns(functions, seconds=6, rounds=9)
    return compared({"d_model": d_model, "seq": seq}, taken, PAIRS)


if __name__ == "__main__":
    torch.set_num_threads(1)  # CPU time, which other programs hardly affect
    grid = [{"d_model": d, "seq": s} for d in (128, 256, 512) for s in (64, 256, 512)]
    command(
        "attention",
        "seconds",
        grid,
        measure,
        ("labml-nn", "x-transformers"),
        tokens=TOKENS,
        d_k=64,
    )
