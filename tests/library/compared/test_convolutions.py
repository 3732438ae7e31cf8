"""Promises of the chapter on the choice of a convolution."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from twins import reals, stirred

from labml_primer.compared.convolutions import (
    ConvolvedAttention,
    StandardConvolution,
    StandardConvolutionAttention,
    WideConvolutionAttention,
)
from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
)
from labml_primer.training.costs import costs
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Config, LanguageModel


class OnQueries(ConvolvedAttention):
    places = ("query",)


class OnKeys(ConvolvedAttention):
    places = ("key",)


class OnValues(ConvolvedAttention):
    places = ("value",)


ATTENTIONS: list[type[ConvolvedAttention]] = [
    ConvolvedAttention,
    WideConvolutionAttention,
    StandardConvolutionAttention,
    OnQueries,
    OnKeys,
    OnValues,
]
every = pytest.mark.parametrize("kind", ATTENTIONS)


def by_hand(layer: nn.Module, x: Tensor) -> Tensor:
    """Either convolution, `[batch, seq, heads, d_k]`, for one position and one head at a time."""
    weight, (_, seq, heads, _) = layer.get_parameter("weight"), x.shape
    if weight.dim() == 3:
        weight = weight.diag_embed()
    width, result = weight.size(0), torch.zeros_like(x)
    for t in range(seq):
        for back in range(min(t + 1, width)):
            for head in range(heads):
                matrix = weight[width - 1 - back, head]
                result[:, t, head] += x[:, t - back, head] @ matrix
    return result


@given(
    heads=st.integers(1, 3),
    d_k=st.integers(1, 3),
    width=st.integers(1, 8),
    seq=st.integers(1, 6),
)
@settings(max_examples=40)
def test_a_standard_convolution_is_its_formula(
    heads: int, d_k: int, width: int, seq: int
) -> None:
    layer = stirred(StandardConvolution(heads, d_k, width))
    x = reals(2, seq, heads, d_k)
    torch.testing.assert_close(layer(x), by_hand(layer, x))


@pytest.mark.parametrize("width", [1, 3, 7])
def test_a_new_standard_convolution_is_a_new_depth_wise_one(width: int) -> None:
    standard = StandardConvolution(3, 4, width)
    depth_wise = SpatialDepthWiseConvolution(3, 4, width)
    x = torch.randn(2, 9, 3, 4)
    torch.testing.assert_close(standard(x), depth_wise(x))


def test_unchanged_the_attention_is_the_papers() -> None:
    ours, paper = stirred(ConvolvedAttention(12, 3)), MultiDConvHeadAttention(12, 3)
    paper.double().load_state_dict(ours.state_dict())
    x = reals(2, 5, 12)
    torch.testing.assert_close(ours(x, x, causal=True), paper(x, x, causal=True))


@every
def test_only_the_places_named_are_convolved(kind: type[ConvolvedAttention]) -> None:
    layer, plain = stirred(kind(12, 3)), MultiHeadAttention(12, 3).double()
    plain.load_state_dict(layer.state_dict(), strict=False)
    x = reals(2, 9, 12)
    convolved, projected = layer.project(x, x), plain.project(x, x)
    for place, ours, theirs in zip(
        ("query", "key", "value"), convolved, projected, strict=True
    ):
        if place in kind.places:
            theirs = by_hand(layer.get_submodule(f"{place}_conv"), theirs)
        torch.testing.assert_close(ours, theirs)


def test_multiply_adds_are_those_counted_by_hand() -> None:
    config = Config(11, d_model=12, heads=3, d_ff=20, layers=2, max_seq=9)
    kernels = {
        ConvolvedAttention: 3 * 3 * 12,
        WideConvolutionAttention: 3 * 7 * 12,
        StandardConvolutionAttention: 3 * 3 * 3 * 4 * 4,
        OnQueries: 3 * 12,
        OnKeys: 3 * 12,
        OnValues: 3 * 12,
    }
    for kind, products in kernels.items():
        counted = costs(LanguageModel(replace(config, attention=kind)))
        assert counted["attention"][1] == 2 * (4 * 12 * 12 + products), kind
