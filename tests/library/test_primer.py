"""What the chapter on the whole of Primer promises."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from twins import reals, stirred

from labml_primer.presets import PRESETS
from labml_primer.primer.primer import (
    PaperConvolution,
    PaperMultiDConvHeadAttention,
    PrimerAttention,
    PrimerBlock,
    PrimerNorm,
    SearchedActivation,
    SearchedAttention,
    SearchedBlock,
    SeparableConvolutionAttention,
    SharedQueryAttention,
)
from labml_primer.primer.primer_ez import SquaredReLU
from labml_primer.primer.variations import MultiDPHConvHeadAttention
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.encoder import EncoderBlock
from labml_primer.transformer.model import LanguageModel


class Ungated(SearchedAttention):
    length = None


ATTENTIONS: list[type[MultiHeadAttention]] = [
    PaperMultiDConvHeadAttention,
    SeparableConvolutionAttention,
    SharedQueryAttention,
    PrimerAttention,
    SearchedAttention,
    Ungated,
]
every = pytest.mark.parametrize("kind", ATTENTIONS)


# Convolutions, against the paper's pseudo-code and PyTorch


def mdha_projection(
    x: Tensor, proj: nn.Linear, d_conv: Tensor, head: int, hs: int
) -> Tensor:
    """Figure 4's pseudo-code for one head of size `hs`, a position and a channel at a time."""
    channels = slice(head * hs, (head + 1) * hs)
    x = x @ proj.weight[channels].T + proj.bias[channels]
    kernel = d_conv[:, channels]
    result = torch.zeros_like(x)
    for b in range(x.size(0)):
        for t in range(x.size(1)):
            for c in range(hs):
                for back in range(3):
                    if t - back >= 0:
                        result[b, t, c] += kernel[2 - back, c] * x[b, t - back, c]
    return result


@pytest.mark.parametrize("seq", [1, 2, 5])
def test_each_head_is_the_pseudo_code_of_figure_4(seq: int) -> None:
    layer, x = stirred(PaperMultiDConvHeadAttention(6, 3)), reals(2, seq, 6)
    projected = layer.project(x, x)
    for result, name in zip(projected, ("query", "key", "value"), strict=True):
        proj = layer.get_submodule(name)
        assert isinstance(proj, nn.Linear)
        kernel = layer.get_submodule(f"{name}_conv").weight
        assert isinstance(kernel, Tensor)
        for head in range(3):
            expected = mdha_projection(x, proj, kernel, head, 2)
            torch.testing.assert_close(result[:, :, head], expected)


def conv1d(x: Tensor, weight: Tensor) -> Tensor:
    """`[batch, seq, channels]` through PyTorch's convolution: padded left, a group per channel."""
    padded = F.pad(x.mT, (weight.size(0) - 1, 0))
    return F.conv1d(padded, weight.flatten(1).T[:, None], groups=x.size(-1)).mT


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 4))
@settings()
def test_the_convolution_is_pytorchs(
    heads: int, d_k: int, seq: int, width: int
) -> None:
    layer, x = stirred(PaperConvolution(heads, d_k, width)), reals(2, seq, heads, d_k)
    torch.testing.assert_close(layer(x).flatten(2), conv1d(x.flatten(2), layer.weight))


def test_a_fresh_kernel_is_that_of_the_released_code() -> None:
    layer = PaperConvolution(2, 3)
    expected = torch.tensor([0.5 / 3, 0.5 / 3, 0.5])[:, None].expand(3, 6)
    assert torch.equal(layer.weight, expected)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_with_biases_at_zero_it_is_the_variation_with_kernels_for_each_head() -> None:
    layer, x = stirred(PaperMultiDConvHeadAttention(12, 3)), reals(2, 5, 12)
    other = MultiDPHConvHeadAttention(12, 3).double()
    missing = other.load_state_dict(layer.state_dict(), strict=False)[0]
    assert sorted(missing) == ["key_conv.bias", "query_conv.bias", "value_conv.bias"]
    for name in missing:
        nn.init.zeros_(other.get_parameter(name))
    torch.testing.assert_close(layer(x, x, causal=True), other(x, x, causal=True))


def test_the_separable_one_convolves_the_stream_and_then_projects() -> None:
    layer, x = stirred(SeparableConvolutionAttention(12, 3)), reals(2, 5, 12)
    for result, linear, convolution in zip(
        layer.project(x, x),
        (layer.query, layer.key, layer.value),
        (layer.query_conv, layer.key_conv, layer.value_conv),
        strict=True,
    ):
        expected = linear(conv1d(x, convolution.weight))
        torch.testing.assert_close(result.flatten(2), expected)


def test_the_two_orders_have_the_same_parameters() -> None:
    sizes = {
        kind: sum(p.numel() for p in kind(512, 8).parameters())
        for kind in (MultiHeadAttention, *ATTENTIONS[:2])
    }
    plain = sizes.pop(MultiHeadAttention)
    assert {size - plain for size in sizes.values()} == {4608}


# Queries made of keys


def test_queries_are_keys_times_w() -> None:
    layer, x = stirred(PrimerAttention(12, 3)), reals(2, 5, 12)
    query, key, value = layer.project(x, x)
    expected = conv1d(layer.key(x), layer.key_conv.weight)
    torch.testing.assert_close(key.flatten(2), expected)
    torch.testing.assert_close(query.flatten(2), layer.query(expected))
    expected = conv1d(layer.value(x), layer.value_conv.weight)
    torch.testing.assert_close(value.flatten(2), expected)


def test_without_a_convolution_sharing_is_another_matrix_for_queries() -> None:
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
@settings()
def test_primers_norm_is_layer_norm(d: int, mean: float, size: float) -> None:
    norm, x = stirred(PrimerNorm(d)), mean + size * reals(3, d)
    expected = F.layer_norm(x, (d,), norm.weight, norm.bias, norm.eps)
    torch.testing.assert_close(norm(x), expected, rtol=1e-6, atol=1e-6)


def test_primers_norm_has_layer_norms_gradient() -> None:
    norm, x, upstream = (
        stirred(PrimerNorm(7)),
        reals(4, 7).requires_grad_(),
        reals(4, 7),
    )
    ours = torch.autograd.grad((norm(x) * upstream).sum(), x)[0]
    usual = F.layer_norm(x, (7,), norm.weight, norm.bias, norm.eps)
    theirs = torch.autograd.grad((usual * upstream).sum(), x)[0]
    torch.testing.assert_close(ours, theirs)


def test_features_that_are_all_equal_give_the_bias_and_no_nan() -> None:
    norm = PrimerNorm(5)
    for value in (0.0, 3.3, 1e4):
        assert torch.equal(norm(torch.full((2, 5), value)), norm.bias.expand(2, 5))


def test_half_precision_has_statistics_in_single() -> None:
    x = 300 + 5 * torch.randn(4, 64)
    result = PrimerNorm(64).half()(x.half())
    assert result.dtype == torch.float16
    expected = F.layer_norm(x.half().float(), (64,))
    torch.testing.assert_close(result.float(), expected, atol=0.01, rtol=0)


# The block, and the program


def test_a_primer_block_has_one_norm_before_and_one_behind() -> None:
    block, x = stirred(PrimerBlock(12, 3, 20, activation=SquaredReLU)), reals(2, 5, 12)
    normed = block.attention_norm(x)
    y = x + block.attention(normed, normed, causal=True)
    z = y + block.feed_forward_norm(block.feed_forward(y))
    torch.testing.assert_close(block(x, causal=True), z)


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
        h18 = depthwise(h17, w["attention.key_conv.weight"][:, part])
        h19 = -1.12 * h18
        h20 = h19 @ w["attention.mixing"][head]
        h22 = h9 @ w["attention.value.weight"][part].T
        h23 = depthwise(h22, w["attention.value_conv.weight"][:, part])
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
        h31 = h30 * w["attention.gate"][:seq]
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
    block = stirred(
        SearchedBlock(
            12,
            3,
            144,
            attention=SearchedAttention,
            activation=activation,
            norm=PrimerNorm,
        )
    )
    for name in ("attention.key", "attention.value", "attention.output"):
        nn.init.zeros_(block.get_parameter(f"{name}.bias"))
    nn.init.zeros_(block.get_parameter("feed_forward.contract.bias"))
    x = reals(2, seq, 12)
    for module in (block.attention_norm, block.feed_forward_norm):
        module.eps = 0.0  # type: ignore[assignment]
    weights = {name: weight.detach() for name, weight in block.named_parameters()}
    expected = torch.stack([figure_25(row, weights, 3, floor) for row in x])
    torch.testing.assert_close(block(x, causal=True), expected)


def test_the_gate_is_all_that_knows_the_length() -> None:
    layer, x = SearchedAttention(12, 3), torch.randn(1, 65, 12)
    fitting = x[:, :64]
    assert layer(fitting, fitting).shape == (1, 64, 12)
    with pytest.raises(ValueError, match=r"65.*64"):
        layer(x, x)
    assert Ungated(12, 3)(x, x).shape == (1, 65, 12)


def test_a_gate_of_zero_hides_a_position_from_everyone() -> None:
    layer, x = SearchedAttention(12, 3).double(), reals(1, 6, 12)
    assert layer.gate is not None
    layer.gate.data[2:] = 0
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


# What all of them promise


@pytest.mark.parametrize(
    "change",
    [
        {"activation": nn.ReLU},
        {"attention": SharedQueryAttention},
        {"attention": PaperMultiDConvHeadAttention},
        {"norm": nn.LayerNorm},
        {"block": EncoderBlock},
    ],
    ids=str,
)
def test_primer_without_a_change_is_a_configuration(change: dict) -> None:
    config = replace(
        PRESETS["primer"], vocab_size=7, d_model=8, heads=2, d_ff=12, layers=2
    )
    with_it, without = LanguageModel(config), LanguageModel(replace(config, **change))
    assert type(with_it.blocks[0]) is PrimerBlock
    kinds = {type(module) for module in without.modules()}
    assert set(change.values()) <= kinds
    tokens = torch.randint(0, 7, (2, 5))
    assert without(tokens).shape == (2, 5, 7)


def test_factor_and_second_residual_can_be_undone() -> None:
    class Straight(SearchedAttention):
        tanh, length = False, None

    class Unscaled(Straight):
        factor = 1.0

    searched = stirred(SearchedBlock(12, 3, 20, attention=Straight, norm=PrimerNorm))
    undone = PrimerBlock(12, 3, 20, attention=Unscaled, norm=PrimerNorm).double()
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
    torch.testing.assert_close(undone(x, causal=True), searched(x, causal=True))


def test_without_the_root_w_takes_its_place() -> None:
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
