"""What the chapter on the Evolved Transformer promises."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode
from twins import reals, stirred

from labml_primer.compared.evolved_transformer import (
    BranchedConvolution,
    EvolvedBlock,
    GatedEvolvedBlock,
    SeparableConvolution,
)
from labml_primer.presets import PRESETS
from labml_primer.transformer.attention import attention, causal_mask
from labml_primer.transformer.encoder import EncoderBlock
from labml_primer.transformer.generation import Past
from labml_primer.transformer.model import Config, LanguageModel

BLOCKS = [EvolvedBlock, GatedEvolvedBlock]
every = pytest.mark.parametrize("kind", BLOCKS)


def block(kind: type[EvolvedBlock] = EvolvedBlock) -> EvolvedBlock:
    torch.manual_seed(0)
    return stirred(kind(12, 3, 20))


# The formulas of the chapter, written out a position at a time


def separable(layer: SeparableConvolution, x: Tensor) -> Tensor:
    kernel, rows = layer.depthwise.weight, []
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
    y = separable(layer.left, x).clamp(min=0)
    y[..., : x.size(-1) // 2] += separable(layer.right, x)
    return separable(layer.joined, norm(layer.norm, y))


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
    layer, x = (
        stirred(SeparableConvolution(d_in, d_out, width)),
        reals(2, seq, d_in),
    )
    torch.testing.assert_close(layer(x), separable(layer, x))


def test_a_separable_convolution_is_a_full_one_of_rank_one() -> None:
    layer, x = stirred(SeparableConvolution(5, 4, 7)), reals(2, 9, 5)
    full = layer.pointwise.weight[:, :, None] * layer.depthwise.weight.T
    expected = F.conv1d(F.pad(x.mT, (6, 0)), full, layer.pointwise.bias).mT
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("seq", [1, 4, 13])
def test_the_branches_are_their_formula(seq: int) -> None:
    layer, x = stirred(BranchedConvolution(6)), reals(2, seq, 6)
    torch.testing.assert_close(layer(x), branches(layer, x))


@every
@pytest.mark.parametrize("seq", [1, 5, 13])
def test_the_block_is_its_formula(kind: type[EvolvedBlock], seq: int) -> None:
    layer, x = block(kind), reals(2, seq, 12)
    torch.testing.assert_close(layer(x, causal=True), written_out(layer, x))


def test_at_the_papers_width_the_channels_are_those_of_figure_3() -> None:
    with torch.device("meta"):
        layer = EvolvedBlock(512, 8, 2048)
    assert layer.wide_attention.heads == 16
    assert layer.attention.heads == 8
    shapes = [
        (conv.depthwise.kernel_size, conv.pointwise.out_features)
        for conv in (layer.branches.left, layer.branches.right, layer.branches.joined)
    ]
    assert shapes == [(11, 1024), (7, 256), (7, 512)]
    assert isinstance(layer.feed_forward.activation, nn.SiLU)


def test_behind_its_two_layers_it_is_the_transformers_block() -> None:
    layer, x = block(), reals(2, 5, 12)
    plain = EncoderBlock(12, 3, 20, activation=nn.SiLU).double()
    plain.load_state_dict(layer.state_dict(), strict=False)
    for last in (layer.wide_attention.output, layer.branches.joined.pointwise):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    torch.testing.assert_close(layer(x, causal=True), plain(x, causal=True))


def test_a_closed_gate_lets_nothing_through() -> None:
    layer, plain, x = block(GatedEvolvedBlock), block(), reals(2, 5, 12)
    plain.load_state_dict(layer.state_dict(), strict=False)
    nn.init.constant_(layer.gated.bias[12:], -1000.0)
    torch.testing.assert_close(layer(x, causal=True), plain(x, causal=True))


# Causality, padding, pieces


@every
@given(place=st.integers(0, 12))
@settings(max_examples=6)
def test_the_future_changes_nothing_before_it(
    kind: type[EvolvedBlock], place: int
) -> None:
    layer, x = block(kind), reals(2, 13, 12)
    other = x.clone()
    other[:, place:] += reals(2, 13 - place, 12)
    moved = (layer(other, causal=True) - layer(x, causal=True)).abs().amax(dim=(0, 2))
    assert (moved[:place] < 1e-12).all()
    assert (moved[place:] > 1e-9).all()


def test_convolutions_look_back_17_positions_and_never_ahead() -> None:
    layer, x = stirred(BranchedConvolution(8)), reals(4, 40, 8)
    other = x.clone()
    other[:, 10] = reals(4, 8)
    moved = (layer(other) - layer(x)).abs().amax(dim=(0, 2)) > 0
    assert moved.nonzero().flatten().tolist() == list(range(10, 27))


@every
def test_padding_behind_a_text_changes_nothing(kind: type[EvolvedBlock]) -> None:
    layer, x = block(kind), reals(2, 9, 12)
    mask = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    mask[0, ..., 6:] = False
    padded = x.clone()
    padded[0, 6:] = 100.0
    for causal in (False, True):
        result = layer(padded, mask, causal)
        torch.testing.assert_close(result[0, :6], layer(x[:1, :6], causal=causal)[0])
        torch.testing.assert_close(result[1], layer(x[1:], causal=causal)[0])


@every
@given(cuts=st.sets(st.integers(1, 12)))
@settings(max_examples=8)
def test_in_pieces_with_a_past_it_gives_the_whole(
    kind: type[EvolvedBlock], cuts: set[int]
) -> None:
    layer, x, past = block(kind), reals(2, 13, 12), Past(13)
    ends, start, pieces = [*sorted(cuts), 13], 0, []
    for end in ends:
        pieces.append(layer(x[:, start:end], causal=True, past=past))
        past.length = start = end
    torch.testing.assert_close(torch.cat(pieces, dim=1), layer(x, causal=True))


def test_of_what_convolutions_read_the_past_keeps_what_can_still_be_seen() -> None:
    layer, past = block(), Past(30)
    layer(reals(2, 30, 12), causal=True, past=past)
    conv = layer.branches
    kept = [past.kept[c.depthwise].shape for c in (conv.left, conv.right, conv.joined)]
    assert kept == [(2, 10, 1, 12), (2, 6, 1, 12), (2, 6, 1, 24)]


# Gradients, dropout, errors


@every
def test_gradients_are_those_of_the_function(kind: type[EvolvedBlock]) -> None:
    torch.manual_seed(0)
    layer = stirred(kind(4, 1, 5))
    names = [name for name, _ in layer.named_parameters()]
    weights = [w.detach().clone().requires_grad_() for w in layer.parameters()]
    x = reals(1, 3, 4).requires_grad_()

    def function(x: Tensor, *weights: Tensor) -> Tensor:
        state = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(layer, state, (x, None, True))

    assert gradcheck(function, (x, *weights), fast_mode=True)


def test_dropout_reaches_every_layer_while_training_and_none_after() -> None:
    torch.manual_seed(0)
    layer, x = GatedEvolvedBlock(12, 3, 20, dropout=1.0), torch.randn(2, 5, 12)
    assert torch.equal(layer(x, causal=True), x)
    layer.eval()
    assert not torch.equal(layer(x, causal=True), x)
    assert torch.equal(layer(x, causal=True), layer(x, causal=True))


def test_what_does_not_fit_is_a_clear_error() -> None:
    with pytest.raises(
        ValueError, match=r"d_model 12 is not a multiple of 2 \* heads 4"
    ):
        EvolvedBlock(12, 4, 20)
    with pytest.raises(ValueError, match="kernel_size 0"):
        SeparableConvolution(4, 4, 0)


# Sizes and products


def count(config: Config) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in LanguageModel(config).parameters())


def test_four_blocks_have_the_38_million_of_table_4() -> None:
    assert round(count(PRESETS["evolved-transformer"]) / 1e6) == 38


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


SMALL = replace(
    PRESETS["evolved-transformer"],
    vocab_size=11,
    d_model=12,
    heads=3,
    d_ff=20,
    layers=2,
    max_seq=9,
)


def test_multiply_adds_are_those_counted_by_hand() -> None:
    costs = LanguageModel(SMALL).costs()
    assert costs["wide_attention"][1] == costs["attention"][1] == 2 * 4 * 12 * 12
    depthwise = 11 * 12 + 7 * 12 + 7 * 24
    pointwise = 12 * 24 + 12 * 6 + 24 * 12
    assert costs["branches"][1] == 2 * (depthwise + pointwise)
    assert costs["feed_forward"][1] == 2 * 2 * 12 * 20
    # Two attentions a block; a position looks at 5 of 9 in the mean, with two products each.
    assert costs["scores and sums"][1] == 2 * 2 * 2 * 5 * 12


def test_products_of_matrices_are_those_that_pytorch_counts() -> None:
    layer, x = BranchedConvolution(12), torch.randn(1, 9, 12)
    with FlopCounterMode(display=False) as counter:
        layer(x)
    # Shifts and sums are no matrix products, and PyTorch leaves them out.
    assert counter.get_total_flops() == 2 * 9 * (12 * 24 + 12 * 6 + 24 * 12)
