import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from labml_primer.transformer.embedding import Embedding


@settings(max_examples=25)
@given(
    vocab_size=st.integers(1, 40),
    d_model=st.integers(1, 33),
    batch=st.integers(0, 4),
    seq=st.integers(0, 9),
    seed=st.integers(0, 99),
)
def test_a_look_up_is_the_product_with_one_hot_rows(
    vocab_size: int, d_model: int, batch: int, seq: int, seed: int
):
    torch.manual_seed(seed)
    embedding = Embedding(vocab_size, d_model).double()
    tokens = torch.randint(vocab_size, (batch, seq))
    one_hot = F.one_hot(tokens, vocab_size).double()
    expected = math.sqrt(d_model) * one_hot @ embedding.table.weight
    assert embedding(tokens).shape == (batch, seq, d_model)
    torch.testing.assert_close(embedding(tokens), expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_tokens_may_be_of_any_integer_type(dtype: torch.dtype):
    embedding = Embedding(100, 8)
    tokens = torch.randint(100, (2, 6))
    assert torch.equal(embedding(tokens.to(dtype)), embedding(tokens))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool]
)
def test_tokens_that_are_no_integers_are_refused_by_type(dtype: torch.dtype):
    with pytest.raises(ValueError, match=str(dtype)):
        Embedding(5, 4)(torch.ones(1, 3, dtype=dtype))


@pytest.mark.parametrize("token", [-1, 5])
def test_a_token_outside_the_table_is_an_error(token: int):
    with pytest.raises(IndexError):
        Embedding(5, 4)(torch.tensor([[0, token]]))


@pytest.mark.parametrize("d_model", [16, 128, 1024])
def test_a_fresh_embedding_has_components_of_variance_one(d_model: int):
    torch.manual_seed(0)
    x = Embedding(2000, d_model)(torch.arange(2000)[None])
    assert x.square().mean().item() == pytest.approx(1, rel=0.03)
    assert x.mean().item() == pytest.approx(0, abs=0.03)


@pytest.mark.parametrize("d_model", [16, 128, 1024])
def test_as_an_output_a_fresh_table_gives_scores_of_variance_one(d_model: int):
    torch.manual_seed(0)
    final = F.layer_norm(torch.randn(500, d_model), (d_model,))
    scores = final @ Embedding(500, d_model).table.weight.T
    assert scores.var().item() == pytest.approx(1, rel=0.05)


def test_the_table_is_all_that_is_stored():
    assert {k: v.shape for k, v in Embedding(5, 4).state_dict().items()} == {
        "table.weight": (5, 4)
    }
