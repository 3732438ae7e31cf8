import cmath
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
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


def test_rotary_positions_refuse_an_odd_width():
    with pytest.raises(ValueError, match="d_k 7 is odd"):
        rotate(torch.zeros(2, 7), torch.arange(2))
    for number in (1, 3):
        with pytest.raises(ValueError, match=f"{number} positions for 2 vectors"):
            rotate(torch.zeros(2, 8), torch.arange(number))
