"""What the chapter on the whole of Primer promises."""

from dataclasses import replace

import pytest
import torch
from catalogue import CONFIGS
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from twins import conv1d, reals, stirred

from labml_primer.primer.primer import (
    PrimerAttention,
    PrimerBlock,
    PrimerNorm,
    SearchedActivation,
    SearchedAttention,
    SeparableConvolutionAttention,
    SharedQueryAttention,
)
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Block, LanguageModel


class Ungated(SearchedAttention):
    length = None


# The order of projection and convolution


def test_separable_attention_convolves_and_then_projects() -> None:
    layer, x = stirred(SeparableConvolutionAttention(12, 3)), reals(2, 5, 12)
    for result, linear, convolution in zip(
        layer.project(x, x),
        (layer.query, layer.key, layer.value),
        (layer.query_conv, layer.key_conv, layer.value_conv),
        strict=True,
    ):
        expected = linear(conv1d(x, convolution.weight))
        torch.testing.assert_close(result.flatten(2), expected)


def test_both_orders_have_equally_many_parameters() -> None:
    before, after = (
        sum(p.numel() for p in kind(512, 8).parameters())
        for kind in (SeparableConvolutionAttention, MultiDConvHeadAttention)
    )
    assert before == after


# Queries computed from keys


def test_queries_are_keys_times_w() -> None:
    layer, x = stirred(PrimerAttention(12, 3)), reals(2, 5, 12)
    query, key, value = layer.project(x, x)
    expected = conv1d(layer.key(x), layer.key_conv.weight)
    torch.testing.assert_close(key.flatten(2), expected)
    torch.testing.assert_close(query.flatten(2), layer.query(expected))
    expected = conv1d(layer.value(x), layer.value_conv.weight)
    torch.testing.assert_close(value.flatten(2), expected)


def test_without_convolutions_it_is_plain_attention_with_another_query_matrix() -> None:
    shared, x = stirred(SharedQueryAttention(12, 3)), reals(2, 5, 12)
    plain = MultiHeadAttention(12, 3).double()
    plain.load_state_dict(shared.state_dict())
    plain.query.weight.data = shared.query.weight @ shared.key.weight
    plain.query.bias.data = shared.query(shared.key.bias)
    torch.testing.assert_close(shared(x, x, causal=True), plain(x, x, causal=True))


@pytest.mark.parametrize(
    "kind", [SharedQueryAttention, PrimerAttention, SearchedAttention]
)
def test_queries_of_another_sequence_are_an_error(
    kind: type[MultiHeadAttention],
) -> None:
    with pytest.raises(ValueError, match="must be the same"):
        kind(12, 3)(torch.randn(1, 2, 12), torch.randn(1, 2, 12))


# The norm


@given(st.integers(2, 40), st.floats(-30, 30), st.floats(0.1, 30))
def test_norm_is_layer_norm(d: int, mean: float, size: float) -> None:
    norm, x = stirred(PrimerNorm(d)), mean + size * reals(3, d)
    expected = F.layer_norm(x, (d,), norm.weight, norm.bias, norm.eps)
    torch.testing.assert_close(norm(x), expected, rtol=1e-6, atol=1e-6)


def test_norm_of_equal_features_is_the_bias() -> None:
    norm = PrimerNorm(5)
    for value in (0.0, 3.3, 1e4):
        assert torch.equal(norm(torch.full((2, 5), value)), norm.bias.expand(2, 5))


def test_norm_computes_statistics_in_float32() -> None:
    x = 300 + 5 * torch.randn(4, 64)
    result = PrimerNorm(64).half()(x.half())
    assert result.dtype == torch.float16
    expected = F.layer_norm(x.half().float(), (64,))
    torch.testing.assert_close(result.float(), expected, atol=0.01, rtol=0)


# The block, and the program


def test_a_primer_block_normalizes_before_attention_and_after_feed_forward() -> None:
    block, x = stirred(PrimerBlock(CONFIGS["primer"])), reals(2, 5, 12)
    normed = block.attention_norm(x)
    y = x + block.attention(normed, normed, causal=True)
    z = y + block.feed_forward_norm(block.feed_forward(y))
    torch.testing.assert_close(block(x), z)


def test_only_the_gate_limits_the_length() -> None:
    layer, x = SearchedAttention(12, 3), torch.randn(1, 65, 12)
    fitting = x[:, :64]
    assert layer(fitting, fitting).shape == (1, 64, 12)
    with pytest.raises(ValueError, match=r"65.*64"):
        layer(x, x)
    assert Ungated(12, 3)(x, x).shape == (1, 65, 12)


@pytest.mark.parametrize("x", [-3.0, -0.57, -0.2, 0.0, 1.5])
def test_the_searched_activation_is_its_formula(x: float) -> None:
    y = SearchedActivation()(torch.tensor(x, dtype=torch.float64))
    assert y.item() == pytest.approx(max(x, -0.57) ** 2)


# Changes and their inverses


@pytest.mark.parametrize(
    "change",
    [
        {"activation": nn.ReLU},
        {"attention": SharedQueryAttention},
        {"attention": MultiDConvHeadAttention},
        {"norm": nn.LayerNorm},
        {"block": Block},
    ],
    ids=str,
)
def test_each_change_of_primer_can_be_undone_in_the_config(change: dict) -> None:
    config = CONFIGS["primer"]
    with_it, without = LanguageModel(config), LanguageModel(replace(config, **change))
    assert type(with_it.blocks[0]) is PrimerBlock
    kinds = {type(module) for module in without.modules()}
    assert set(change.values()) <= kinds
    tokens = torch.randint(0, 7, (2, 5))
    assert without(tokens).shape == (2, 5, config.vocab_size)
