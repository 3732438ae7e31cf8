import cmath
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    add_positions,
    positional_encoding,
    rotate,
)

LAYERS = [PositionalEncoding, LearnedPositionalEncoding]
even = st.integers(1, 40).map(lambda half: 2 * half)
layers = pytest.mark.parametrize("kind", LAYERS)


@pytest.fixture
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def by_formula(t: int, i: int, d_model: int) -> float:
    """The formula of the paper, one number at a time."""
    angle = t / 10_000 ** (2 * (i // 2) / d_model)
    return math.cos(angle) if i % 2 else math.sin(angle)


@settings(max_examples=25)
@given(seq=st.integers(0, 30), d_model=even)
def test_every_number_is_that_of_the_formula(seq: int, d_model: int):
    expected = [[by_formula(t, i, d_model) for i in range(d_model)] for t in range(seq)]
    encoding = positional_encoding(seq, d_model)
    assert encoding.shape == (seq, d_model)
    torch.testing.assert_close(encoding, torch.tensor(expected).view(seq, d_model))


@pytest.mark.parametrize("t", [4_999, 123_456])
def test_far_positions_lose_no_digits(t: int):
    row = positional_encoding(t + 1, 8)[t]
    expected = torch.tensor([by_formula(t, i, 8) for i in range(8)])
    torch.testing.assert_close(row, expected, rtol=0, atol=1e-7)


def test_the_type_is_the_default_one(float64: None):
    assert positional_encoding(2, 4).dtype == torch.float64


@pytest.mark.parametrize("d_model", [1, 63])
def test_an_odd_width_is_refused_by_number(d_model: int):
    with pytest.raises(ValueError, match=f"d_model {d_model} is odd"):
        positional_encoding(4, d_model)
    with pytest.raises(ValueError, match=f"d_model {d_model} is odd"):
        PositionalEncoding(d_model)


@settings(max_examples=25)
@given(seq=st.integers(0, 50), more=st.integers(0, 50), d_model=even)
def test_a_longer_table_begins_with_the_shorter_one(seq: int, more: int, d_model: int):
    longer = positional_encoding(seq + more, d_model)
    assert torch.equal(longer[:seq], positional_encoding(seq, d_model))


@pytest.mark.parametrize("d_model", [12, 64, 512])
def test_no_two_positions_are_closer_than_one_step(float64: None, d_model: int):
    encoding = positional_encoding(1500, d_model)
    step = (encoding[1] - encoding[0]).norm()
    assert torch.pdist(encoding).min() > step * (1 - 1e-9)


@settings(max_examples=25)
@given(d_model=even, offset=st.integers(-20, 20))
def test_an_offset_is_one_rotation_at_every_position(d_model: int, offset: int):
    encoding = positional_encoding(80, d_model)
    pairs = torch.view_as_complex(encoding.view(80, -1, 2))  # sine + i cosine
    omega = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    turned = pairs[20:60] * torch.polar(torch.ones_like(omega), -omega * offset)
    torch.testing.assert_close(
        turned, pairs[20 + offset : 60 + offset], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("offset", [1, 10, 100])
def test_sines_alone_have_no_matrix_for_an_offset(float64: None, offset: int):
    def unexplained(features: Tensor) -> float:
        now, then = features[:2000], features[offset : 2000 + offset]
        best = torch.linalg.lstsq(now, then).solution
        return ((now @ best - then).square().sum() / then.square().sum()).item()

    wave = positional_encoding(2100, 16)
    assert unexplained(wave) < 1e-12
    assert unexplained(wave[:, 0::2]) > 0.05


@settings(max_examples=25)
@given(d_model=even, t=st.integers(0, 200), u=st.integers(0, 200))
def test_the_product_of_two_positions_is_a_sum_of_cosines_of_their_offset(
    d_model: int, t: int, u: int
):
    encoding = positional_encoding(201, d_model)
    expected = sum(
        math.cos((u - t) / 10_000 ** (2 * k / d_model)) for k in range(d_model // 2)
    )
    assert (encoding[t] @ encoding[u]).item() == pytest.approx(expected, abs=1e-4)


def test_the_mean_square_is_one_half_at_every_position():
    squares = positional_encoding(300, 24).square().mean(1)
    torch.testing.assert_close(squares, torch.full((300,), 0.5))


def test_adding_is_joining_with_two_identities():
    x, places = torch.randn(2, 5, 6), torch.randn(9, 6)
    joined = torch.cat((x, places[:5].expand_as(x)), dim=-1)
    expected = joined @ torch.eye(6).repeat(2, 1)
    torch.testing.assert_close(add_positions(x, places), expected)


@layers
@pytest.mark.parametrize(("batch", "seq"), [(1, 1), (3, 7), (2, 9), (0, 4), (2, 0)])
def test_each_row_of_the_table_is_added_to_its_position(
    kind: type[nn.Module], batch: int, seq: int
):
    layer = kind(6, 9)
    x = torch.randn(batch, seq, 6)
    y = layer(x)
    assert y.shape == x.shape
    for t in range(seq):
        torch.testing.assert_close(y[:, t], x[:, t] + layer.encoding[t])


@layers
def test_a_sentence_beyond_the_table_is_refused_by_its_length(kind: type[nn.Module]):
    with pytest.raises(ValueError, match="seq 10 is longer than max_seq 9"):
        kind(6, 9)(torch.zeros(2, 10, 6))


@layers
def test_dropout_acts_on_the_sum_and_only_in_training(kind: type[nn.Module]):
    torch.manual_seed(0)
    layer, x = kind(64, 50, dropout=0.25), torch.ones(4, 50, 64)
    summed = x + layer.encoding
    y = layer(x)
    dropped = y == 0
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.02)
    torch.testing.assert_close(y[~dropped], (summed / 0.75)[~dropped])
    assert torch.equal(layer.eval()(x), summed)


def test_the_fixed_table_has_nothing_to_train_or_to_store():
    layer = PositionalEncoding(6, 9)
    assert list(layer.parameters()) == []
    assert layer.state_dict() == {}


def test_the_fixed_table_moves_with_the_model():
    assert PositionalEncoding(6, 9).to("meta").encoding.is_meta


def test_a_trained_model_loads_with_another_longest_sentence():
    trained, longer = (nn.Sequential(PositionalEncoding(6, n)) for n in (9, 20))
    longer.load_state_dict(trained.state_dict())
    x = torch.randn(1, 9, 6)
    assert torch.equal(longer(x), trained(x))


def test_trained_positions_learn_where_the_sentence_reaches():
    layer = LearnedPositionalEncoding(6, 9)
    layer(torch.randn(2, 5, 6)).square().sum().backward()
    assert layer.encoding.grad is not None
    assert (layer.encoding.grad != 0).all(1).tolist() == [True] * 5 + [False] * 4


def test_trained_positions_start_small():
    torch.manual_seed(0)
    assert LearnedPositionalEncoding(64, 500).encoding.std().item() == pytest.approx(
        0.02, rel=0.05
    )


@settings(max_examples=25)
@given(d_k=even, positions=st.lists(st.integers(0, 3000), min_size=1, max_size=5))
def test_rotary_positions_multiply_pairs_by_complex_numbers(
    d_k: int, positions: list[int]
):
    x = torch.randn(2, 3, len(positions), d_k, dtype=torch.float64)
    turned = rotate(x, torch.tensor(positions))
    assert turned.shape == x.shape
    for i, t in enumerate(positions):
        for k in range(d_k // 2):
            pair = torch.complex(x[..., i, 2 * k], x[..., i, 2 * k + 1])
            expected = pair * cmath.exp(1j * t / 10_000 ** (2 * k / d_k))
            torch.testing.assert_close(turned[..., i, 2 * k], expected.real)
            torch.testing.assert_close(turned[..., i, 2 * k + 1], expected.imag)


@settings(max_examples=25)
@given(t=st.integers(0, 500), s=st.integers(0, 500), shift=st.integers(0, 5000))
def test_rotary_scores_depend_on_the_distance_only(t: int, s: int, shift: int):
    def score(t: int, s: int) -> Tensor:
        q, k = rotate(query, torch.tensor([t])), rotate(key, torch.tensor([s]))
        return (q * k).sum()

    query, key = torch.randn(2, 1, 16, dtype=torch.float64)
    torch.testing.assert_close(score(t + shift, s + shift), score(t, s))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rotary_positions_use_double_precision_only_if_asked(dtype: torch.dtype):
    # Apple's GPUs do not have it.
    class OnAppleGPU(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            assert not (isinstance(result, Tensor) and result.dtype == torch.float64)
            return result

    x, positions = torch.randn(4, 8, dtype=dtype), torch.arange(4)
    with OnAppleGPU():
        turned = rotate(x, positions)
    assert turned.dtype == dtype
    exact = rotate(x.double(), positions)
    torch.testing.assert_close(turned.double(), exact, rtol=2e-2, atol=2e-2)


def test_rotary_positions_keep_the_length():
    x = torch.randn(4, 8, dtype=torch.float32)
    turned = rotate(x, torch.arange(4))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[0], x[0])


def test_rotary_positions_refuse_an_odd_width():
    with pytest.raises(ValueError, match="d_k 7 is odd"):
        rotate(torch.zeros(2, 7), torch.arange(2))
    for number in (1, 3):
        with pytest.raises(ValueError, match=f"{number} positions for 2 vectors"):
            rotate(torch.zeros(2, 8), torch.arange(number))
