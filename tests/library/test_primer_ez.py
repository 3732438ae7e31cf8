"""What the chapter on Primer-EZ promises."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F
from twins import reals

from labml_primer.primer.primer_ez import (
    CausalSum,
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
    SquaredReLU,
    speedup_factor,
)
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.generation import Past


def walk_through(x: Tensor, convolution: nn.Conv1d) -> Tensor:
    """The walk-through's way, on `[seq, batch, heads, d_k]`: pad both ends, crop the right."""
    seq, batch, heads, d_k = x.shape
    rows = x.permute(1, 2, 3, 0).reshape(batch * heads, d_k, seq)
    rows = convolution(rows)[:, :, :seq]
    return rows.view(batch, heads, d_k, seq).permute(3, 0, 1, 2)


def twin(layer: SpatialDepthWiseConvolution) -> nn.Conv1d:
    """`nn.Conv1d` with the weights of `layer`."""
    kernel_size, d_k = layer.weight.shape
    convolution = nn.Conv1d(
        d_k, d_k, kernel_size, padding=kernel_size - 1, groups=d_k, dtype=torch.float64
    )
    state = {"weight": layer.weight.T[:, None], "bias": layer.bias}
    convolution.load_state_dict(state)
    return convolution


@given(st.floats(-1e3, 1e3), st.booleans())
def test_squared_relu_is_the_formula(x: float, wanted: bool) -> None:
    with torch.set_grad_enabled(wanted):
        y = SquaredReLU()(torch.tensor(x, dtype=torch.float64))
    assert y.item() == pytest.approx(max(x, 0.0) ** 2)


@given(st.floats(-1e3, 1e3), st.floats(0, 10))
def test_squared_relu_grows_with_the_square_of_its_scale(
    x: float, scale: float
) -> None:
    xs = torch.tensor([x, scale * x], dtype=torch.float64)
    y, scaled = SquaredReLU()(xs).tolist()
    assert scaled == pytest.approx(scale**2 * y)


def test_squared_relu_has_a_gradient_without_a_jump() -> None:
    x = torch.tensor([-1.0, -1e-6, 0.0, 1e-6, 1.5], requires_grad=True)
    SquaredReLU()(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.0, 0.0, 0.0, 2e-6, 3.0]))
    assert gradcheck(SquaredReLU(), reals(3, 5).requires_grad_())


def test_the_gradient_by_hand_is_that_of_the_plain_square() -> None:
    x, upstream = reals(4, 7).requires_grad_(), reals(4, 7)
    ours = torch.autograd.grad(SquaredReLU()(x), x, upstream)
    torch.testing.assert_close(ours, torch.autograd.grad(F.relu(x) ** 2, x, upstream))


def test_squared_relu_has_a_gradient_of_its_gradient() -> None:
    assert gradgradcheck(SquaredReLU(), reals(3, 5).requires_grad_())


def test_squared_relu_leaves_what_it_is_given_as_it_is() -> None:
    x = torch.randn(4, 7)
    before = x.clone()
    SquaredReLU()(x)
    assert torch.equal(x, before)
    with torch.no_grad():
        SquaredReLU()(x)
    assert torch.equal(x, before)


def test_squared_relu_is_reglu_with_one_matrix_for_both() -> None:
    x, u = reals(4, 8), reals(8, 16)
    torch.testing.assert_close(SquaredReLU()(x @ u), (x @ u) * F.relu(x @ u))


def test_squared_relu_has_nothing_to_learn() -> None:
    assert list(SquaredReLU().parameters()) == []


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "shape", [(2, 7, 3, 5), (1, 1, 1, 1), (3, 2, 2, 4), (1, 16, 8, 64)]
)
def test_the_convolution_is_the_walk_throughs_with_the_batch_first(
    kernel_size: int, shape: tuple[int, ...]
) -> None:
    layer = SpatialDepthWiseConvolution(shape[-1], kernel_size).double()
    x = reals(*shape)
    expected = walk_through(x.transpose(0, 1), twin(layer)).transpose(0, 1)
    torch.testing.assert_close(layer(x), expected)


def test_the_convolution_is_its_formula() -> None:
    layer, x = SpatialDepthWiseConvolution(2).double(), reals(1, 4, 3, 2)
    w0, w1, w2 = layer.weight
    by_hand = torch.stack(
        [
            w2 * x[0, 0],
            w2 * x[0, 1] + w1 * x[0, 0],
            w2 * x[0, 2] + w1 * x[0, 1] + w0 * x[0, 0],
            w2 * x[0, 3] + w1 * x[0, 2] + w0 * x[0, 1],
        ]
    )
    torch.testing.assert_close(layer(x)[0], by_hand + layer.bias)


@given(seq=st.integers(1, 9), kernel_size=st.integers(1, 5), place=st.integers(0, 8))
def test_a_token_reaches_itself_and_the_next_and_none_before(
    seq: int, kernel_size: int, place: int
) -> None:
    place %= seq
    layer, x = SpatialDepthWiseConvolution(3, kernel_size).double(), reals(2, seq, 2, 3)
    nudged = x.clone()
    nudged[:, place] += 1
    moved = (layer(nudged) - layer(x)).abs().amax(dim=(0, 2, 3)).nonzero().flatten()
    assert moved.tolist() == list(range(place, min(place + kernel_size, seq)))


def test_no_channel_and_no_head_sees_another() -> None:
    layer, x = SpatialDepthWiseConvolution(5), torch.randn(2, 6, 3, 5)
    nudged = x.clone()
    nudged[:, :, 1, 2] += 1
    moved = (layer(nudged) - layer(x)).abs().amax(dim=(0, 1))
    assert moved.nonzero().tolist() == [[1, 2]]


def test_the_heads_share_their_kernels() -> None:
    layer, x = SpatialDepthWiseConvolution(5), torch.randn(2, 6, 1, 5)
    y = layer(x.expand(2, 6, 3, 5))
    assert torch.equal(y, layer(x).expand_as(y))


@given(st.integers(1, 6), st.integers(1, 6))
def test_the_convolution_is_linear_up_to_its_bias(seq: int, kernel_size: int) -> None:
    layer = SpatialDepthWiseConvolution(4, kernel_size).double()
    a, b = reals(2, 1, seq, 2, 4)
    torch.testing.assert_close(layer(a + b) + layer.bias, layer(a) + layer(b))


def test_what_is_convolved_does_not_depend_on_what_comes_later() -> None:
    layer, x = SpatialDepthWiseConvolution(4), torch.randn(2, 9, 2, 4)
    for seq in (1, 2, 5):
        torch.testing.assert_close(layer(x[:, :seq]), layer(x)[:, :seq])


def test_gradients_of_the_convolution_are_right() -> None:
    layer = SpatialDepthWiseConvolution(3).double()

    def function(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, x)

    weights = [p.detach().requires_grad_() for p in (layer.weight, layer.bias)]
    for seq in (1, 2, 5):
        assert gradcheck(function, (reals(2, seq, 2, 3).requires_grad_(), *weights))


def plain_sum(x: Tensor, weight: Tensor) -> Tensor:
    """The formula as it stands."""
    padded = F.pad(x, (0, 0) * (x.dim() - 2) + (len(weight) - 1, 0))
    return sum(padded[:, i : i + x.size(1)] * w for i, w in enumerate(weight))


@given(
    batch=st.integers(0, 3),
    seq=st.integers(1, 6),
    kernel_size=st.integers(1, 5),
    channels=st.sampled_from([1, 4]),
)
def test_the_sum_by_hand_is_the_plain_sum_and_so_are_its_gradients(
    batch: int, seq: int, kernel_size: int, channels: int
) -> None:
    x = reals(batch, 2, seq, 4).transpose(1, 2).requires_grad_()
    weight = reals(kernel_size, channels).requires_grad_()
    ours, plain = CausalSum.apply(x, weight), plain_sum(x, weight)
    torch.testing.assert_close(ours, plain)
    upstream = torch.randn_like(plain)
    torch.testing.assert_close(
        torch.autograd.grad(ours, (x, weight), upstream),
        torch.autograd.grad(plain, (x, weight), upstream),
    )


@pytest.mark.parametrize("seq", [1, 2, 4])
def test_the_sum_by_hand_has_gradients_of_its_gradients(seq: int) -> None:
    x, weight = reals(2, seq, 2, 3).requires_grad_(), reals(3, 3).requires_grad_()
    assert gradgradcheck(CausalSum.apply, (x, weight))


def test_compiled_the_convolution_is_what_it_is_otherwise() -> None:
    layer, x = SpatialDepthWiseConvolution(4).double(), reals(2, 5, 3, 4)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), layer(x))


def test_under_autocast_nothing_is_widened() -> None:
    layer, x = MultiDConvHeadAttention(16, 4), torch.randn(2, 6, 16)
    exact = layer(x, x, causal=True)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = layer(x, x, causal=True)
        past = Past(6)
        kinds = {t.dtype for t in (*layer.project(x, x), *layer.project(x, x, past))}
    assert kinds == {torch.bfloat16}
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)
    rounded.sum().backward()
    assert {p.grad.dtype for p in layer.parameters() if p.grad is not None} == {
        torch.float32
    }


@pytest.mark.parametrize("seq", [1, 2, 5])
def test_side_by_side_the_three_convolutions_are_what_they_are_alone(seq: int) -> None:
    layer, x = MultiDConvHeadAttention(12, 3).double(), reals(2, seq, 12)
    together, alone = layer.project(x, x, Past(9)), layer.project(x, x)
    torch.testing.assert_close(together, alone)


def test_a_fresh_kernel_starts_as_pytorchs_convolutions_do() -> None:
    torch.manual_seed(0)
    layer = SpatialDepthWiseConvolution(4096, 5)
    bound = 1 / math.sqrt(5)
    for parameter in layer.parameters():
        assert 0.99 * bound < parameter.abs().max() <= bound
        assert parameter.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_a_kernel_without_length_is_refused() -> None:
    with pytest.raises(ValueError, match="kernel_size 0"):
        SpatialDepthWiseConvolution(4, 0)


def test_attention_convolves_each_projection_by_itself() -> None:
    layer, x = MultiDConvHeadAttention(12, 3).double(), reals(2, 5, 12)
    y = reals(2, 7, 12)
    projected = zip(
        layer.project(x, y),
        (layer.query, layer.key, layer.value),
        (layer.query_conv, layer.key_conv, layer.value_conv),
        (x, y, y),
        strict=True,
    )
    for result, linear, convolution, source in projected:
        heads = linear(source).view(2, -1, 3, 4)
        expected = walk_through(heads.transpose(0, 1), twin(convolution))
        torch.testing.assert_close(result, expected.transpose(0, 1))


def test_attention_is_the_textbook_formula_on_convolved_heads() -> None:
    layer, x = MultiDConvHeadAttention(12, 3).double(), reals(2, 5, 12)
    query, key, value = (t.transpose(1, 2) for t in layer.project(x, x))
    scores = query @ key.transpose(-2, -1) / 2.0
    scores += torch.full((5, 5), -math.inf, dtype=torch.float64).triu(1)
    heads = (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer(x, x, causal=True), layer.output(heads))


@pytest.mark.parametrize("seq", [1, 2, 9])
def test_the_future_changes_nothing_before_it(seq: int) -> None:
    layer, x = MultiDConvHeadAttention(12, 3).double(), reals(2, seq, 12)
    whole = layer(x, x, causal=True)
    for place in range(1, seq):
        later = x.clone()
        later[:, place:] += 1
        changed = layer(later, later, causal=True)
        torch.testing.assert_close(changed[:, :place], whole[:, :place])
        assert not torch.allclose(changed[:, place], whole[:, place])


def test_with_an_idle_convolution_it_is_plain_attention() -> None:
    plain, layer = MultiHeadAttention(16, 4), MultiDConvHeadAttention(16, 4)
    layer.load_state_dict(plain.state_dict(), strict=False)
    for convolution in (layer.query_conv, layer.key_conv, layer.value_conv):
        nn.init.zeros_(convolution.bias)
        nn.init.zeros_(convolution.weight)
        nn.init.ones_(convolution.weight[-1])
    x = torch.randn(2, 6, 16)
    torch.testing.assert_close(layer(x, x, causal=True), plain(x, x, causal=True))


def test_gradients_of_the_layer_are_right() -> None:
    layer = MultiDConvHeadAttention(4, 2).double()
    x = reals(1, 3, 4).requires_grad_()
    assert gradcheck(lambda x: layer(x, x, causal=True), x)
    layer(x, x).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_it_adds_768_parameters_at_512_and_8_heads() -> None:
    sizes = [
        sum(parameter.numel() for parameter in kind(512, 8).parameters())
        for kind in (MultiDConvHeadAttention, MultiHeadAttention)
    ]
    assert sizes[0] - sizes[1] == 768


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_and_stays_close(dtype: torch.dtype) -> None:
    layer, x = MultiDConvHeadAttention(16, 4), torch.randn(2, 6, 16)
    exact = layer(x, x, causal=True)
    rounded = layer.to(dtype)(x.to(dtype), x.to(dtype), causal=True)
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)


# The speed-up factor


def test_a_model_that_needs_half_the_steps_is_twice_as_fast() -> None:
    assert speedup_factor([1, 2, 4], [3, 2, 1], [1, 2, 4], [2, 1, 0.5]) == 2.0


def test_between_two_evaluations_the_loss_is_a_line() -> None:
    assert speedup_factor([10], [1.5], [2, 4], [2.0, 1.0]) == pytest.approx(10 / 3)


def test_a_model_is_as_fast_as_itself() -> None:
    costs, losses = [1.0, 2.0, 5.0], [3.0, 2.5, 2.1]
    assert speedup_factor(costs, losses, costs, losses) == 1.0


@given(st.floats(0.1, 10))
def test_dearer_steps_lower_the_factor_in_proportion(dearer: float) -> None:
    costs, losses, better = [1.0, 2.0, 5.0], [3.0, 2.5, 2.1], [2.6, 2.0, 1.9]
    steps = speedup_factor(costs, losses, costs, better)
    slower = speedup_factor(costs, losses, [dearer * c for c in costs], better)
    assert slower == pytest.approx(steps / dearer)


def test_a_model_that_starts_better_is_counted_from_its_first_evaluation() -> None:
    assert speedup_factor([1, 2], [3, 2], [1, 2], [1.5, 1.0]) == 2.0


def test_a_model_that_never_gets_there_has_no_factor() -> None:
    assert math.isnan(speedup_factor([1, 2], [3, 2], [1, 2], [4, 3]))
