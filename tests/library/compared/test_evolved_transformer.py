"""Promises of the chapter on the Evolved Transformer."""

from dataclasses import replace

import pytest
import torch
from catalogue import CONFIGS
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from twins import reals, stirred

from labml_primer.compared.evolved_transformer import (
    BranchedConvolution,
    EvolvedBlock,
    GatedEvolvedBlock,
    SeparableConvolution,
)
from labml_primer.presets import PRESETS
from labml_primer.training.costs import costs
from labml_primer.transformer.attention import attention, causal_mask
from labml_primer.transformer.language_model import Config, LanguageModel

BLOCKS = [EvolvedBlock, GatedEvolvedBlock]
every = pytest.mark.parametrize("kind", BLOCKS)


CONFIG = CONFIGS["evolved-transformer"]


def block(kind: type[EvolvedBlock] = EvolvedBlock) -> EvolvedBlock:
    torch.manual_seed(0)
    return stirred(kind(CONFIG))


# The formulas of the chapter, one position at a time


def separable(layer: SeparableConvolution, x: Tensor) -> Tensor:
    kernel, rows = layer.depthwise.weight.squeeze(1), []
    for t in range(x.size(1)):
        row = torch.zeros_like(x[:, 0])
        for back in range(min(t + 1, len(kernel))):
            row = row + kernel[len(kernel) - 1 - back] * x[:, t - back]
        rows.append(row @ layer.pointwise.weight.T + layer.pointwise.bias)
    return torch.stack(rows, dim=1)


def norm(layer: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(layer, nn.LayerNorm)
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
    return (x - mean) / (variance + layer.eps).sqrt() * layer.weight + layer.bias


def branches(layer: BranchedConvolution, x: Tensor) -> Tensor:
    y = separable(layer.wide, x).clamp(min=0)
    y[..., : x.size(-1) // 2] += separable(layer.narrow, x)
    return separable(layer.join, norm(layer.norm, y))


def heads_apart(layer: nn.Module, heads: int, x: Tensor) -> Tensor:
    query, key, value = (
        layer.get_submodule(name)(x).chunk(heads, dim=-1)
        for name in ("query", "key", "value")
    )
    mask = causal_mask(x.size(1), x.size(1))
    answers = [
        attention(q, k, v, mask) for q, k, v in zip(query, key, value, strict=True)
    ]
    return layer.get_submodule("output")(torch.cat(answers, dim=-1))


def written_out(layer: EvolvedBlock, x: Tensor) -> Tensor:
    """A block of width 12 with 3 heads, and 6 in the first attention."""
    if isinstance(layer, GatedEvolvedBlock):
        value, gate = layer.gated(norm(layer.gated_norm, x)).chunk(2, dim=-1)
        x = x + value / (1 + torch.exp(-gate))
    x = x + heads_apart(layer.wide_attention, 6, norm(layer.wide_attention_norm, x))
    x = x + branches(layer.branches, norm(layer.branches_norm, x))
    x = x + heads_apart(layer.attention, 3, norm(layer.attention_norm, x))
    hidden = layer.feed_forward.expand(norm(layer.feed_forward_norm, x))
    return x + layer.feed_forward.contract(hidden / (1 + torch.exp(-hidden)))


@given(
    d_in=st.integers(1, 4),
    d_out=st.integers(1, 4),
    width=st.integers(1, 12),
    seq=st.integers(1, 9),
)
@settings(max_examples=40)
def test_a_separable_convolution_is_its_formula(
    d_in: int, d_out: int, width: int, seq: int
) -> None:
    layer, x = stirred(SeparableConvolution(d_in, d_out, width)), reals(2, seq, d_in)
    torch.testing.assert_close(layer(x), separable(layer, x))


@pytest.mark.parametrize("shape", [(5, 8), (1, 2, 5, 8)])
def test_a_text_without_a_batch_is_refused(shape: tuple[int, ...]) -> None:
    for layer in (SeparableConvolution(8, 8, 3), BranchedConvolution(8)):
        with pytest.raises(ValueError, match="batch, seq, d_in"):
            layer(torch.zeros(shape))


@every
@pytest.mark.parametrize("seq", [1, 5, 13])
def test_the_block_is_its_formula(kind: type[EvolvedBlock], seq: int) -> None:
    layer, x = block(kind), reals(2, seq, 12)
    torch.testing.assert_close(layer(x), written_out(layer, x))


def test_at_the_papers_width_the_channels_are_those_of_figure_3() -> None:
    with torch.device("meta"):
        layer = EvolvedBlock(PRESETS["evolved-transformer"])
    assert layer.wide_attention.heads == 16
    assert layer.attention.heads == 8
    shapes = [
        (conv.depthwise.kernel_size, conv.pointwise.out_features)
        for conv in (layer.branches.wide, layer.branches.narrow, layer.branches.join)
    ]
    assert shapes == [(11, 1024), (7, 256), (7, 512)]
    assert isinstance(layer.feed_forward.activation, nn.SiLU)


# Reach


# Dropout, errors


def test_dropout_reaches_every_layer_and_only_in_training() -> None:
    torch.manual_seed(0)
    layer, x = GatedEvolvedBlock(replace(CONFIG, dropout=1.0)), torch.randn(2, 5, 12)
    assert torch.equal(layer(x), x)
    layer.eval()
    assert not torch.equal(layer(x), x)
    assert torch.equal(layer(x), layer(x))


def test_twice_the_heads_must_divide_d_model() -> None:
    with pytest.raises(ValueError, match="d_model 12 is not a multiple of heads 8"):
        EvolvedBlock(replace(CONFIG, heads=4))


# Sizes and products


def count(config: Config) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in LanguageModel(config).parameters())


def test_seven_blocks_have_the_110_million_of_table_5() -> None:
    config = replace(
        PRESETS["evolved-transformer"],
        vocab_size=32_128,
        d_model=768,
        heads=12,
        d_ff=3072,
        layers=7,
        max_seq=512,
    )
    assert round(count(config) / 1e6) == 110


def test_multiply_adds_are_those_counted_by_hand() -> None:
    counted = costs(LanguageModel(CONFIG))
    assert counted["wide_attention"][1] == counted["attention"][1] == 2 * 4 * 12 * 12
    depthwise = 11 * 12 + 7 * 12 + 7 * 24
    pointwise = 12 * 24 + 12 * 6 + 24 * 12
    assert counted["branches"][1] == 2 * (depthwise + pointwise)
    assert counted["feed_forward"][1] == 2 * 2 * 12 * 20
    # Two attentions per block; a position attends to 5 of 9 on average, with two products each.
    assert counted["scores and sums"][1] == 2 * 2 * 2 * 5 * 12


def test_products_of_matrices_are_those_that_pytorch_counts() -> None:
    layer, x = BranchedConvolution(12), torch.randn(1, 9, 12)
    with FlopCounterMode(display=False) as counter:
        layer(x)
    # Shifts and sums are no matrix products, and PyTorch leaves them out.
    assert counter.get_total_flops() == 2 * 9 * (12 * 24 + 12 * 6 + 24 * 12)
