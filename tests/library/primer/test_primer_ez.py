"""What the chapter on Primer-EZ promises."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
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


def test_gradient_of_squared_relu_has_no_jump_at_zero() -> None:
    x = torch.tensor([-1.0, -1e-6, 0.0, 1e-6, 1.5], requires_grad=True)
    SquaredReLU()(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.0, 0.0, 0.0, 2e-6, 3.0]))
    assert gradcheck(SquaredReLU(), torch.zeros(3, 5).double().requires_grad_())


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


def test_with_one_head_of_kernels_all_heads_share_them() -> None:
    layer, x = stirred(SpatialDepthWiseConvolution(1, 5)), reals(2, 6, 1, 5)
    y = layer(x.expand(2, 6, 3, 5))
    assert torch.equal(y, layer(x).expand_as(y))


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


def test_with_kernels_0_0_1_it_is_plain_attention() -> None:
    plain, layer = MultiHeadAttention(16, 4), MultiDConvHeadAttention(16, 4)
    layer.load_state_dict(plain.state_dict(), strict=False)
    for convolution in (layer.query_conv, layer.key_conv, layer.value_conv):
        nn.init.zeros_(convolution.weight)
        nn.init.ones_(convolution.weight[-1])
    x = torch.randn(2, 6, 16)
    torch.testing.assert_close(layer(x, x, causal=True), plain(x, x, causal=True))


# The speed-up factor


def test_half_the_steps_are_a_factor_of_two() -> None:
    assert speedup_factor([1, 2, 4], [3, 2, 1], [1, 2, 4], [2, 1, 0.5]) == 2.0


def test_loss_is_interpolated_linearly_between_evaluations() -> None:
    assert speedup_factor([10], [1.5], [2, 4], [2.0, 1.0]) == pytest.approx(10 / 3)


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
