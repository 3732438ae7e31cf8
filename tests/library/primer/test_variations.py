"""What the chapter on the variations of Primer-EZ promises."""

import pytest
import torch
from torch import Tensor, nn
from twins import reals

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
)
from labml_primer.primer.variations import (
    BiasedConvolution,
    MultiDConvSharedByHeadsAttention,
    MultiDPHConvHeadAttention,
    MultiDSharedConvHeadAttention,
    SpatialDepthWisePerHeadConvolution,
    SpatialDepthWiseSharedConvolution,
)
from labml_primer.transformer.attention import MultiHeadAttention

HEADS, D_K = 3, 4
KINDS = ["shared by heads", "shared by all", "per head"]
LAYERS = dict(
    zip(
        KINDS,
        (
            MultiDConvSharedByHeadsAttention,
            MultiDSharedConvHeadAttention,
            MultiDPHConvHeadAttention,
        ),
        strict=True,
    )
)
every = pytest.mark.parametrize("kind", KINDS)


def make(kind: str, kernel_size: int = 3) -> BiasedConvolution:
    if kind == "shared by heads":
        return BiasedConvolution(1, D_K, kernel_size).double()
    if kind == "shared by all":
        return SpatialDepthWiseSharedConvolution(kernel_size).double()
    return SpatialDepthWisePerHeadConvolution(HEADS, D_K, kernel_size).double()


def walk_through(kind: str, x: Tensor, layer: BiasedConvolution) -> Tensor:
    """The walk-through's formulation on `[seq, batch, heads, d_k]`: pad both ends, crop the right one.

    The channels of `nn.Conv1d` are those that have kernels of their own; the others join the batch.
    """
    seq, batch, heads, d_k = x.shape
    kernel_size = layer.kernel_size
    channels = {"shared by heads": d_k, "shared by all": 1, "per head": heads * d_k}
    convolution = nn.Conv1d(
        channels[kind],
        channels[kind],
        kernel_size,
        padding=kernel_size - 1,
        groups=channels[kind],
        dtype=torch.float64,
    )
    weight = layer.weight.flatten(1).T[:, None]
    convolution.load_state_dict({"weight": weight, "bias": layer.bias.flatten()})
    rows = x.permute(1, 2, 3, 0).reshape(-1, channels[kind], seq)
    cropped = convolution(rows)[:, :, :seq]
    return cropped.reshape(batch, heads, d_k, seq).permute(3, 0, 1, 2)


@every
@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4])
def test_the_convolution_is_that_of_the_walk_through(
    kind: str, kernel_size: int
) -> None:
    layer = make(kind, kernel_size)
    for batch, seq in ((2, 7), (1, 1), (3, 2)):
        x = reals(batch, seq, HEADS, D_K)
        expected = walk_through(kind, x.transpose(0, 1), layer).transpose(0, 1)
        torch.testing.assert_close(layer(x), expected)


@every
def test_attention_convolves_queries_keys_and_values(kind: str) -> None:
    layer = LAYERS[kind](HEADS * D_K, HEADS).double()
    x, y = reals(2, 5, HEADS * D_K), reals(2, 7, HEADS * D_K)
    for result, name in zip(
        layer.project(x, y), ("query", "key", "value"), strict=True
    ):
        linear, convolution = (
            layer.get_submodule(name),
            layer.get_submodule(f"{name}_conv"),
        )
        heads = linear(x if name == "query" else y).unflatten(-1, (HEADS, D_K))
        expected = walk_through(kind, heads.transpose(0, 1), convolution)
        torch.testing.assert_close(result, expected.transpose(0, 1))


def test_a_fresh_kernel_is_initialized_as_pytorchs() -> None:
    torch.manual_seed(0)
    layer = BiasedConvolution(8, 512, kernel_size=5)
    bound = 5**-0.5
    for parameter in layer.parameters():
        assert 0.99 * bound < parameter.abs().max() <= bound
        assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        (MultiDSharedConvHeadAttention, 12),
        (MultiDConvSharedByHeadsAttention, 768),
        (MultiDConvHeadAttention, 4608),
        (MultiDPHConvHeadAttention, 6144),
    ],
)
def test_parameters_added_at_512_and_8_heads(
    kind: type[MultiHeadAttention], added: int
) -> None:
    sizes = [
        sum(parameter.numel() for parameter in layer(512, 8).parameters())
        for layer in (kind, MultiHeadAttention)
    ]
    assert sizes[0] - sizes[1] == added
