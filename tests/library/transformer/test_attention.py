from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from twins import copy_attention

from labml_primer.since.modern import GroupedQueryAttention
from labml_primer.transformer.attention import (
    MultiHeadAttention,
    attention,
    attention_weights,
    causal_mask,
)


def ours(
    layer: MultiHeadAttention, x: Tensor, y: Tensor, mask: Tensor | None
) -> Tensor:
    """The layer, out of the chapter's pure function."""
    query, key, value = (t.transpose(1, 2) for t in layer.project(x, y))
    heads = attention(query, key, value, mask)
    return layer.output(heads.transpose(1, 2).flatten(2))


def padding_mask() -> Tensor:
    """Three sentences of 7 keys: whole, padded, and empty. `[3, 1, 1, 7]`"""
    return (torch.arange(7) < torch.tensor([[7], [4], [0]]))[:, None, None, :]


@pytest.fixture
def layer() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(d_model=24, heads=3).double()


def inputs(seq: int = 7) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(3, seq, 24, dtype=torch.float64)


@settings(max_examples=30)
@given(
    queries=st.integers(1, 6),
    keys=st.integers(1, 6),
    d_k=st.integers(1, 9),
    seed=st.integers(0, 1000),
    share=st.floats(0, 1),
)
def test_weights_sum_to_one_or_to_nothing(queries, keys, d_k, seed, share):
    torch.manual_seed(seed)
    mask = torch.rand(queries, keys) < share
    query, key = torch.randn(queries, d_k), torch.randn(keys, d_k)
    weights = attention_weights(query, key, mask)
    torch.testing.assert_close(weights.sum(-1), mask.any(dim=-1).float())
    assert (weights[~mask] == 0).all()


@pytest.mark.parametrize("masked", [False, True])
def test_the_function_is_pytorchs(masked):
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    value = torch.randn(2, 3, 7, 8)
    mask = torch.rand(2, 1, 5, 7) > 0.3 if masked else None
    if mask is not None:
        mask[..., 0] = True
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(attention(query, key, value, mask), expected)


def test_half_precision_holds_large_scores():
    query, key = torch.full((1, 64), 40.0), torch.tensor([[40.0], [20.0]]).expand(2, 64)
    weights = attention_weights(query.half(), key.half())
    torch.testing.assert_close(weights, torch.tensor([[1.0, 0.0]]).half())


def test_values_may_be_wider_than_keys():
    query, key, value = torch.randn(2, 4), torch.randn(3, 4), torch.randn(3, 11)
    assert attention(query, key, value).shape == (2, 11)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_layer_is_the_function(layer, causal, masked):
    x = inputs()
    mask = padding_mask() if masked else torch.ones(7, 7, dtype=torch.bool)
    expected = ours(layer, x, x, mask & causal_mask(7, 7) if causal else mask)
    result = layer(x, x, padding_mask() if masked else None, causal)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("kind", [MultiHeadAttention, GroupedQueryAttention])
def test_a_causal_layer_needs_no_mask_so_that_flash_attention_can_run(kind):
    layer, x = kind(24, 2), torch.randn(2, 7, 24)
    fused = F.scaled_dot_product_attention
    with patch.object(F, "scaled_dot_product_attention", wraps=fused) as called:
        layer(x, x, causal=True)
        layer(x[:, :3], x, causal=True)
    (*_, mask, _, is_causal), last = (call.args for call in called.call_args_list)
    assert mask is None and is_causal
    # PyTorch would take the three queries to be the first of the seven tokens; they are the last.
    assert torch.equal(last[3], causal_mask(3, 7)) and not last[5]


def test_the_layer_is_pytorchs_multihead_attention(layer):
    theirs = nn.MultiheadAttention(24, 3, batch_first=True).double()
    copy_attention(layer, theirs)
    x, y = inputs(4)[:2], inputs()[:2]
    mask = padding_mask()[:2]
    expected, _ = theirs(x, y, y, key_padding_mask=~mask[:, 0, 0])
    torch.testing.assert_close(layer(x, y, mask), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_query_that_may_look_nowhere_gets_zeros_from_the_heads(layer, dtype):
    layer, x = layer.to(dtype), inputs().to(dtype)
    result = layer(x, x, padding_mask())
    assert result.isfinite().all()
    torch.testing.assert_close(result[2], layer.output.bias.expand(7, 24))
    heads = attention(x, x, x, padding_mask()[:, 0])
    assert (heads[2] == 0).all()


@pytest.mark.parametrize("fused", [False, True])
def test_looking_nowhere_leaves_the_gradients_finite(layer, fused):
    x = inputs().requires_grad_()
    forward = layer if fused else lambda *arguments: ours(layer, *arguments)
    forward(x, x, padding_mask()).square().sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in layer.parameters())
    assert (x.grad[2] == 0).all()


@pytest.mark.parametrize(
    ("batch", "queries", "keys"),
    [(0, 3, 3), (2, 1, 1), (2, 1, 5), (2, 5, 3), (2, 0, 4)],
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_odd_shapes(layer, batch, queries, keys, causal, masked):
    x = torch.randn(batch, queries, 24, dtype=torch.float64)
    y = torch.randn(batch, keys, 24, dtype=torch.float64)
    mask = torch.ones(batch, 1, 1, keys, dtype=torch.bool) if masked else None
    result = layer(x, y, mask, causal)
    assert result.shape == x.shape
    allowed = causal_mask(queries, keys) if causal else None
    torch.testing.assert_close(result, ours(layer, x, y, allowed))


def test_no_keys_at_all_is_looking_nowhere(layer):
    x, y = inputs(), torch.empty(3, 0, 24, dtype=torch.float64)
    result = layer(x, y, torch.ones(3, 1, 1, 0, dtype=torch.bool))
    torch.testing.assert_close(result, layer.output.bias.expand_as(x))


def test_a_mask_may_differ_between_heads(layer):
    x = inputs()
    mask = torch.ones(3, 3, 7, 7, dtype=torch.bool)
    mask[:, 1] = causal_mask(7, 7)
    torch.testing.assert_close(layer(x, x, mask), ours(layer, x, x, mask))


def test_dropout_drops_weights_in_training_alone():
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, 2, dropout=0.5)
    x = torch.randn(2, 5, 12)
    assert not torch.equal(layer(x, x), layer(x, x))
    layer.eval()
    assert torch.equal(layer(x, x), layer(x, x))
    # Of one key alone the weight is 0 or 1 / (1 - 0.5) = 2, for each head and query.
    layer.train()
    layer.value.weight.data.zero_()
    layer.value.bias.data.fill_(1.0)
    layer.output = nn.Identity()  # type: ignore[assignment]
    assert set(
        layer(torch.randn(50, 1, 12), torch.randn(50, 1, 12)).unique().tolist()
    ) == {
        0.0,
        2.0,
    }
