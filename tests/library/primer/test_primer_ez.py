"""What the chapter on Primer-EZ promises."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn import functional as F
from twins import conv1d, reals, stirred

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
    SquaredReLU,
    speedup_factor,
)
from labml_primer.transformer.attention import MultiHeadAttention

# Squared ReLU


@given(st.floats(-1e3, 1e3))
def test_squared_relu_is_the_formula(x: float) -> None:
    y = SquaredReLU()(torch.tensor(x, dtype=torch.float64))
    assert y.item() == pytest.approx(max(x, 0.0) ** 2)


@given(st.floats(-1e3, 1e3), st.floats(0, 10))
def test_squared_relu_scales_with_the_square_of_its_input(
    x: float, scale: float
) -> None:
    xs = torch.tensor([x, scale * x], dtype=torch.float64)
    y, scaled = SquaredReLU()(xs).tolist()
    assert scaled == pytest.approx(scale**2 * y)


def test_gradient_of_squared_relu_has_no_jump_at_zero() -> None:
    x = torch.tensor([-1.0, -1e-6, 0.0, 1e-6, 1.5], requires_grad=True)
    SquaredReLU()(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.0, 0.0, 0.0, 2e-6, 3.0]))
    assert gradcheck(SquaredReLU(), torch.zeros(3, 5).double().requires_grad_())


def test_squared_relu_is_reglu_with_one_matrix_for_both() -> None:
    x, u = reals(4, 8), reals(8, 16)
    torch.testing.assert_close(SquaredReLU()(x @ u), (x @ u) * F.relu(x @ u))


def test_squared_relu_has_no_parameters() -> None:
    assert list(SquaredReLU().parameters()) == []


# The convolution


@given(
    kernel_size=st.integers(1, 5),
    batch=st.integers(1, 3),
    seq=st.integers(1, 8),
    heads=st.integers(1, 3),
    d_k=st.integers(1, 5),
)
def test_the_convolution_is_a_grouped_conv1d(
    kernel_size: int, batch: int, seq: int, heads: int, d_k: int
) -> None:
    layer = stirred(SpatialDepthWiseConvolution(heads, d_k, kernel_size))
    x = reals(batch, seq, heads, d_k)
    torch.testing.assert_close(layer(x).flatten(2), conv1d(x.flatten(2), layer.weight))


def test_the_convolution_is_its_formula() -> None:
    layer, x = stirred(SpatialDepthWiseConvolution(3, 2)), reals(1, 4, 3, 2)
    w0, w1, w2 = layer.weight
    by_hand = torch.stack(
        [
            w2 * x[0, 0],
            w2 * x[0, 1] + w1 * x[0, 0],
            w2 * x[0, 2] + w1 * x[0, 1] + w0 * x[0, 0],
            w2 * x[0, 3] + w1 * x[0, 2] + w0 * x[0, 1],
        ]
    )
    torch.testing.assert_close(layer(x)[0], by_hand)


@given(seq=st.integers(1, 9), kernel_size=st.integers(1, 5), place=st.integers(0, 8))
def test_a_token_reaches_itself_and_the_next_kernel_size_minus_one(
    seq: int, kernel_size: int, place: int
) -> None:
    place %= seq
    layer, x = SpatialDepthWiseConvolution(2, 3, kernel_size), reals(2, seq, 2, 3)
    other = x.clone()
    other[:, place] += 1
    moved = (layer(other) - layer(x)).abs().amax(dim=(0, 2, 3)).nonzero().flatten()
    assert moved.tolist() == list(range(place, min(place + kernel_size, seq)))


def test_no_channel_and_no_head_sees_another() -> None:
    layer, x = SpatialDepthWiseConvolution(3, 5), torch.randn(2, 6, 3, 5)
    other = x.clone()
    other[:, :, 1, 2] += 1
    moved = (layer(other) - layer(x)).abs().amax(dim=(0, 1))
    assert moved.nonzero().tolist() == [[1, 2]]


def test_each_channel_of_each_head_has_a_kernel_of_its_own() -> None:
    layer, row = stirred(SpatialDepthWiseConvolution(3, 4)), reals(1, 6, 1, 1)
    y = layer(row.expand(1, 6, 3, 4)).flatten(2)[0].T  # [channels, seq]
    assert torch.cdist(y, y).add(torch.eye(12)).min() > 1e-3


def test_with_one_head_of_kernels_all_heads_share_them() -> None:
    layer, x = stirred(SpatialDepthWiseConvolution(1, 5)), reals(2, 6, 1, 5)
    y = layer(x.expand(2, 6, 3, 5))
    assert torch.equal(y, layer(x).expand_as(y))


@given(st.integers(1, 6), st.integers(1, 6))
def test_the_convolution_is_linear(seq: int, kernel_size: int) -> None:
    layer = stirred(SpatialDepthWiseConvolution(2, 4, kernel_size))
    a, b = reals(2, 1, seq, 2, 4)
    torch.testing.assert_close(layer(a + 2 * b), layer(a) + 2 * layer(b))


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_a_fresh_kernel_is_that_of_the_released_code(kernel_size: int) -> None:
    layer = SpatialDepthWiseConvolution(2, 4, kernel_size)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert layer.weight.shape == (kernel_size, 2, 4)
    assert (layer.weight[-1] == 0.5).all()
    torch.testing.assert_close(
        layer.weight[:-1], torch.full((kernel_size - 1, 2, 4), 0.5 / kernel_size)
    )


# Attention


def released(x: Tensor, proj: nn.Linear, d_conv: Tensor, head: int, d_k: int) -> Tensor:
    """Pseudo-code of the paper's Figure 4 for one head, a position and a channel at a time."""
    channels = slice(head * d_k, (head + 1) * d_k)
    x = x @ proj.weight[channels].T + proj.bias[channels]
    result = torch.zeros_like(x)
    for b in range(x.size(0)):
        for t in range(x.size(1)):
            for c in range(d_k):
                for back in range(min(3, t + 1)):
                    result[b, t, c] += d_conv[2 - back, head, c] * x[b, t - back, c]
    return result


@pytest.mark.parametrize("seq", [1, 2, 5])
def test_each_head_is_the_pseudo_code_of_figure_4(seq: int) -> None:
    layer = stirred(MultiDConvHeadAttention(6, 3))
    x, y = reals(2, seq, 6), reals(2, seq + 1, 6)
    projected = layer.project(x, y)
    for result, name in zip(projected, ("query", "key", "value"), strict=True):
        proj, kernel = layer.get_submodule(name), layer.get_submodule(f"{name}_conv")
        for head in range(3):
            source = x if name == "query" else y
            expected = released(source, proj, kernel.weight, head, 2)
            torch.testing.assert_close(result[:, :, head], expected)


def test_attention_is_the_textbook_formula_on_convolved_heads() -> None:
    layer, x = stirred(MultiDConvHeadAttention(12, 3)), reals(2, 5, 12)
    query, key, value = (t.transpose(1, 2) for t in layer.project(x, x))
    scores = query @ key.transpose(-2, -1) / 2.0
    scores += torch.full((5, 5), -math.inf, dtype=torch.float64).triu(1)
    heads = (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer(x, x, causal=True), layer.output(heads))


def test_with_kernels_0_0_1_it_is_plain_attention() -> None:
    plain, layer = MultiHeadAttention(16, 4), MultiDConvHeadAttention(16, 4)
    layer.load_state_dict(plain.state_dict(), strict=False)
    for convolution in (layer.query_conv, layer.key_conv, layer.value_conv):
        nn.init.zeros_(convolution.weight)
        nn.init.ones_(convolution.weight[-1])
    x = torch.randn(2, 6, 16)
    torch.testing.assert_close(layer(x, x, causal=True), plain(x, x, causal=True))


def test_it_adds_4608_parameters_at_512_and_8_heads() -> None:
    sizes = [
        sum(parameter.numel() for parameter in kind(512, 8).parameters())
        for kind in (MultiDConvHeadAttention, MultiHeadAttention)
    ]
    assert sizes[0] - sizes[1] == 4608


# The speed-up factor


def test_half_the_steps_are_a_factor_of_two() -> None:
    assert speedup_factor([1, 2, 4], [3, 2, 1], [1, 2, 4], [2, 1, 0.5]) == 2.0


def test_loss_is_interpolated_linearly_between_evaluations() -> None:
    assert speedup_factor([10], [1.5], [2, 4], [2.0, 1.0]) == pytest.approx(10 / 3)


def test_factor_of_a_model_against_itself_is_one() -> None:
    costs, losses = [1.0, 2.0, 5.0], [3.0, 2.5, 2.1]
    assert speedup_factor(costs, losses, costs, losses) == 1.0


@given(st.floats(0.1, 10))
def test_factor_is_inversely_proportional_to_the_cost_of_a_step(
    costlier: float,
) -> None:
    costs, losses, better = [1.0, 2.0, 5.0], [3.0, 2.5, 2.1], [2.6, 2.0, 1.9]
    steps = speedup_factor(costs, losses, costs, better)
    slower = speedup_factor(costs, losses, [costlier * c for c in costs], better)
    assert slower == pytest.approx(steps / costlier)


def test_a_model_below_the_target_at_once_counts_from_its_first_evaluation() -> None:
    assert speedup_factor([1, 2], [3, 2], [1, 2], [1.5, 1.0]) == 2.0


def test_factor_is_nan_if_the_target_is_never_reached() -> None:
    assert math.isnan(speedup_factor([1, 2], [3, 2], [1, 2], [4, 3]))
