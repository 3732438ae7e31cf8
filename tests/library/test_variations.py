"""What the chapter on the variations of Primer-EZ promises."""

import pytest
import torch
from torch import Tensor, nn
from twins import reals

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
)
from labml_primer.primer.variations import (
    MultiDPHConvHeadAttention,
    MultiDSharedConvHeadAttention,
    SpatialDepthWisePerHeadConvolution,
    SpatialDepthWiseSharedConvolution,
)
from labml_primer.transformer.attention import MultiHeadAttention

HEADS, D_K = 3, 4
LAYERS = [MultiDSharedConvHeadAttention, MultiDPHConvHeadAttention]
SHAPES = [(2, 7, HEADS, D_K), (1, 1, HEADS, D_K), (3, 2, HEADS, D_K)]


def make(kind: str, kernel_size: int = 3) -> SpatialDepthWiseConvolution:
    if kind == "shared":
        return SpatialDepthWiseSharedConvolution(kernel_size).double()
    return SpatialDepthWisePerHeadConvolution(HEADS, D_K, kernel_size).double()


def sequence_first(kind: str, x: Tensor, layer: SpatialDepthWiseConvolution) -> Tensor:
    """The walk-through's way on `[seq, batch, heads, d_k]`, by `nn.Conv1d`, cropped at the right.

    The shared kernel runs over every channel as a sequence of its own; kernels for each head
    run over all channels of all heads at once.
    """
    seq, batch, heads, d_k = x.shape
    kernel_size, channels = layer.weight.shape
    convolution = nn.Conv1d(
        channels,
        channels,
        kernel_size,
        padding=kernel_size - 1,
        groups=channels,
        dtype=torch.float64,
    )
    state = {"weight": layer.weight.T[:, None], "bias": layer.bias}
    convolution.load_state_dict(state)
    rows = x.permute(1, 2, 3, 0)  # [batch, heads, d_k, seq]
    if kind == "shared":
        rows = rows.reshape(batch * heads * d_k, 1, seq)
    else:
        rows = rows.reshape(batch, heads * d_k, seq)
    cropped = convolution(rows)[:, :, :seq]
    return cropped.reshape(batch, heads, d_k, seq).permute(3, 0, 1, 2)


@pytest.mark.parametrize("kind", ["shared", "per head"])
@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_convolution_is_the_walk_throughs_with_the_batch_first(
    kind: str, kernel_size: int, shape: tuple[int, ...]
) -> None:
    layer, x = make(kind, kernel_size), reals(*shape)
    expected = sequence_first(kind, x.transpose(0, 1), layer).transpose(0, 1)
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("kind", ["shared", "per head"])
def test_no_channel_and_no_head_sees_another(kind: str) -> None:
    layer, x = make(kind), reals(2, 6, HEADS, D_K)
    nudged = x.clone()
    nudged[:, :, 1, 2] += 1
    moved = (layer(nudged) - layer(x)).abs().amax(dim=(0, 1))
    assert moved.nonzero().tolist() == [[1, 2]]


def test_the_shared_kernel_is_the_same_for_all_channels() -> None:
    layer, row = make("shared"), reals(2, 6, 1, 1)
    y = layer(row.expand(2, 6, HEADS, D_K))
    assert torch.equal(y, y[:, :, :1, :1].expand_as(y))


def test_each_channel_of_each_head_has_a_kernel_of_its_own() -> None:
    layer, row = make("per head"), reals(1, 6, 1, 1)
    y = layer(row.expand(1, 6, HEADS, D_K)).flatten(2)[0].T  # [channels, seq]
    assert torch.cdist(y, y).add(torch.eye(HEADS * D_K)).min() > 1e-3


def test_equal_kernels_in_every_head_are_primer_ez() -> None:
    fine, coarse = make("per head"), SpatialDepthWiseConvolution(D_K).double()
    state = {k: v.tile(HEADS) for k, v in coarse.state_dict().items()}
    fine.load_state_dict(state)
    x = reals(2, 6, HEADS, D_K)
    torch.testing.assert_close(fine(x), coarse(x))


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        (MultiDSharedConvHeadAttention, 12),
        (MultiDConvHeadAttention, 768),
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


def test_without_biases_kernels_for_each_head_are_the_papers_4608() -> None:
    layer = MultiDPHConvHeadAttention(512, 8)
    weights = (layer.query_conv.weight, layer.key_conv.weight, layer.value_conv.weight)
    assert sum(weight.numel() for weight in weights) == 4608


@pytest.mark.parametrize("kind", LAYERS)
def test_attention_convolves_queries_keys_and_values(
    kind: type[MultiDConvHeadAttention],
) -> None:
    layer, x = kind(HEADS * D_K, HEADS).double(), reals(2, 5, HEADS * D_K)
    name = "shared" if kind is MultiDSharedConvHeadAttention else "per head"
    convolutions = (layer.query_conv, layer.key_conv, layer.value_conv)
    linears = (layer.query, layer.key, layer.value)
    for result, linear, convolution in zip(
        layer.project(x, x), linears, convolutions, strict=True
    ):
        heads = linear(x).view(2, 5, HEADS, D_K).transpose(0, 1)
        expected = sequence_first(name, heads, convolution).transpose(0, 1)
        torch.testing.assert_close(result, expected)
