"""What the chapter on the whole of Primer promises."""

import math
from dataclasses import replace

import pytest
import torch
from catalogue import CONFIGS, SMALL
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from twins import conv1d, reals, stirred

from labml_primer.primer.primer import (
    PrimerAttention,
    PrimerBlock,
    PrimerNorm,
    SearchedActivation,
    SearchedAttention,
    SearchedBlock,
    SeparableConvolutionAttention,
    SharedQueryAttention,
)
from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
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


def test_gradient_of_norm_is_that_of_layer_norm() -> None:
    norm, x, upstream = (
        stirred(PrimerNorm(7)),
        reals(4, 7).requires_grad_(),
        reals(4, 7),
    )
    ours = torch.autograd.grad((norm(x) * upstream).sum(), x)[0]
    usual = F.layer_norm(x, (7,), norm.weight, norm.bias, norm.eps)
    theirs = torch.autograd.grad((usual * upstream).sum(), x)[0]
    torch.testing.assert_close(ours, theirs)


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


def figure_25(x: Tensor, w: dict[str, Tensor], heads: int, floor: float) -> Tensor:
    """Instructions 0 to 54 of Figure 25 for one sequence `[seq, d]`; numbers in comments are theirs.

    Left out are 12, 16 and 21, whose results nothing reads, and 13 to 15, which make a projection that
    nothing reads either. DENSE has no bias. EMBEDDING_MASK hides the future.
    """
    seq, d = x.shape
    d_k = d // heads

    def norm(h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        mean = h.sum(-1, keepdim=True) / d  # 2
        difference = h - mean  # 3
        product = difference * h  # 4
        root = (product.sum(-1, keepdim=True) / d).abs().sqrt()  # 5, 6
        return difference / root * scale + shift  # 7, 8, 9

    def depthwise(h: Tensor, kernel: Tensor) -> Tensor:
        rows = []
        for t in range(seq):
            row = kernel[2] * h[t]
            if t >= 1:
                row = row + kernel[1] * h[t - 1]
            if t >= 2:
                row = row + kernel[0] * h[t - 2]
            rows.append(row)
        return torch.stack(rows)

    h9 = norm(x, w["attention_norm.weight"], w["attention_norm.bias"])
    branches = []
    for head in range(heads):  # 10, 11
        part = slice(head * d_k, (head + 1) * d_k)
        h17 = h9 @ w["attention.key.weight"][part].T
        h18 = depthwise(h17, w["attention.key_conv.weight"][:, head])
        h19 = -1.12 * h18
        h20 = h19 @ w["attention.mixing"][head]
        h22 = h9 @ w["attention.value.weight"][part].T
        h23 = depthwise(h22, w["attention.value_conv.weight"][:, head])
        h24 = -1.12 * h23
        h25 = h20 @ h19.T
        h26 = h25.exp()
        h27 = torch.stack(
            [
                torch.cat([h26[t, : t + 1], torch.zeros(seq - t - 1).double()])
                for t in range(seq)
            ]
        )
        h28 = h27.sum(-1, keepdim=True)
        h29 = h27 / h28
        h30 = h29.tanh()
        h31 = h30 * w["attention.gate"][head, :seq]
        branches.append(h31 @ h24)  # 32
    h33 = torch.cat(branches, dim=-1)
    h34 = h33 @ w["attention.output.weight"].T
    h35 = x + h34
    h36 = h35 + h34
    half = len(w["feed_forward.expand.weight"]) // 2
    h39 = [
        h36 @ w["feed_forward.expand.weight"][rows].T
        for rows in (slice(half), slice(half, None))
    ]
    h40 = torch.cat(h39, dim=-1)  # 37 to 40
    h41 = h40 + w["feed_forward.expand.bias"]
    h42 = h41.clamp(min=floor)
    h43 = h42 * h42
    h44 = h43 @ w["feed_forward.contract.weight"].T
    h52 = norm(
        h44, w["feed_forward_norm.weight"], w["feed_forward_norm.bias"]
    )  # 45 to 52
    h53 = h36 + h52
    return h53 + h52  # 54


@pytest.mark.parametrize(
    ("activation", "floor"), [(SearchedActivation, -0.57), (SquaredReLU, 0.0)]
)
@pytest.mark.parametrize("seq", [1, 2, 7])
def test_the_searched_block_is_the_program_of_figure_25(
    activation: type[nn.Module], floor: float, seq: int
) -> None:
    config = replace(
        SMALL,
        d_ff=144,
        attention=SearchedAttention,
        activation=activation,
        norm=PrimerNorm,
    )
    block = stirred(SearchedBlock(config))
    for name in ("attention.key", "attention.value", "attention.output"):
        nn.init.zeros_(block.get_parameter(f"{name}.bias"))
    nn.init.zeros_(block.get_parameter("feed_forward.contract.bias"))
    x = reals(2, seq, 12)
    for module in (block.attention_norm, block.feed_forward_norm):
        module.eps = 0.0  # type: ignore[assignment]
    weights = {name: weight.detach() for name, weight in block.named_parameters()}
    expected = torch.stack([figure_25(row, weights, 3, floor) for row in x])
    torch.testing.assert_close(block(x), expected)


def test_only_the_gate_limits_the_length() -> None:
    layer, x = SearchedAttention(12, 3), torch.randn(1, 65, 12)
    fitting = x[:, :64]
    assert layer(fitting, fitting).shape == (1, 64, 12)
    with pytest.raises(ValueError, match=r"65.*64"):
        layer(x, x)
    assert Ungated(12, 3)(x, x).shape == (1, 65, 12)


def test_a_gate_of_zero_hides_the_value_of_a_position() -> None:
    layer, x = SearchedAttention(12, 3).double(), reals(1, 6, 12)
    assert layer.gate is not None
    layer.gate.data[:, 2:] = 0
    # Where weights go still depends on all keys, so it is the values alone that change.
    query, key, values = layer.project(x, x)
    changed = values.clone()
    changed[:, 2:] += 1.0
    layer.project = lambda *_: (query, key, values)  # type: ignore[method-assign]
    before = layer(x, x)
    layer.project = lambda *_: (query, key, changed)  # type: ignore[method-assign]
    torch.testing.assert_close(layer(x, x), before)


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


def test_searched_block_without_its_extras_is_a_primer_block() -> None:
    class Straight(SearchedAttention):
        tanh, length = False, None

    class Unscaled(Straight):
        factor = 1.0

    config = replace(SMALL, attention=Straight, norm=PrimerNorm)
    searched = stirred(SearchedBlock(config))
    undone = PrimerBlock(replace(config, attention=Unscaled)).double()
    weights = searched.state_dict()
    weights["attention.mixing"] = weights["attention.mixing"] * 1.12**2
    weights["attention.output.weight"] = weights["attention.output.weight"] * -2.24
    for name in (
        "attention.output.bias",
        "feed_forward_norm.weight",
        "feed_forward_norm.bias",
    ):
        weights[name] = weights[name] * 2
    undone.load_state_dict(weights)
    x = reals(2, 5, 12)
    torch.testing.assert_close(undone(x), searched(x))


def test_mixing_without_the_root_is_a_block_diagonal_query_matrix() -> None:
    class Bare(SearchedAttention):
        factor, tanh, length = 1.0, False, None

    bare, x = stirred(Bare(12, 3)), reals(2, 5, 12)
    shared = PrimerAttention(12, 3).double()
    state = bare.state_dict()
    mixing = state.pop("mixing") * math.sqrt(bare.d_k)
    state["query.weight"] = torch.block_diag(*mixing).T
    state["query.bias"] = torch.zeros(12)
    shared.load_state_dict(state)
    torch.testing.assert_close(bare(x, x, causal=True), shared(x, x, causal=True))
