"""What the chapter on the choice of a convolution promises."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn import functional as F
from twins import reals, stirred

from labml_primer.compared.convolutions import (
    ConvolvedAttention,
    StandardConvolution,
    StandardConvolutionAttention,
    WideConvolutionAttention,
)
from labml_primer.primer.primer import (
    PaperConvolution,
    PaperMultiDConvHeadAttention,
)
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.generation import Past
from labml_primer.transformer.model import Config, LanguageModel


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
    """Either convolution, `[batch, seq, heads, d_k]`, a position and a head at a time."""
    weight, (_, seq, heads, d_k) = layer.get_parameter("weight"), x.shape
    if weight.dim() == 2:
        weight = weight.view(-1, heads, d_k).diag_embed()
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


def test_a_standard_convolution_is_pytorchs_with_a_group_a_head() -> None:
    layer, x = stirred(StandardConvolution(3, 4)), reals(2, 7, 3, 4)
    weight = layer.weight.permute(1, 3, 2, 0).flatten(0, 1)  # [heads * d_k, d_k, K]
    padded = F.pad(x.flatten(2).mT, (2, 0))
    expected = F.conv1d(padded, weight, groups=3).mT.unflatten(-1, (3, 4))
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("width", [1, 3, 7])
def test_a_fresh_standard_convolution_is_a_fresh_one_of_the_paper(width: int) -> None:
    fresh, paper = StandardConvolution(3, 4, width), PaperConvolution(3, 4, width)
    x = torch.randn(2, 9, 3, 4)
    torch.testing.assert_close(fresh(x), paper(x))


def test_as_it_is_the_attention_is_the_papers() -> None:
    ours, paper = (
        stirred(ConvolvedAttention(12, 3)),
        PaperMultiDConvHeadAttention(12, 3),
    )
    paper.double().load_state_dict(
        {
            n.replace("convolutions.query", "query_conv")
            .replace("convolutions.key", "key_conv")
            .replace("convolutions.value", "value_conv"): w
            for n, w in ours.state_dict().items()
        }
    )
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
            theirs = by_hand(layer.convolutions[place], theirs)
        torch.testing.assert_close(ours, theirs)


@every
@given(place=st.integers(0, 8))
@settings(max_examples=6)
def test_the_future_changes_nothing_before_it(
    kind: type[ConvolvedAttention], place: int
) -> None:
    torch.manual_seed(0)
    layer, x = stirred(kind(12, 3)), reals(2, 9, 12)
    other = x.clone()
    other[:, place:] += reals(2, 9 - place, 12)
    before, after = layer(x, x, causal=True), layer(other, other, causal=True)
    moved = (after - before).abs().amax(dim=(0, 2))
    assert (moved[:place] < 1e-12).all()
    assert (moved[place:] > 1e-9).all()


@every
def test_padding_behind_a_text_changes_nothing(kind: type[ConvolvedAttention]) -> None:
    layer, x = stirred(kind(12, 3)), reals(2, 9, 12)
    mask = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    mask[0, ..., 6:] = False
    padded = x.clone()
    padded[0, 6:] = 100.0
    result = layer(padded, padded, mask)
    torch.testing.assert_close(result[0, :6], layer(x[:1, :6], x[:1, :6])[0])
    torch.testing.assert_close(result[1], layer(x[1:], x[1:])[0])


@every
@given(cuts=st.sets(st.integers(1, 8)))
@settings(max_examples=8)
def test_in_pieces_with_a_past_it_gives_the_whole(
    kind: type[ConvolvedAttention], cuts: set[int]
) -> None:
    layer, x, past = stirred(kind(12, 3)), reals(2, 9, 12), Past(9)
    ends, start, pieces = [*sorted(cuts), 9], 0, []
    for end in ends:
        part = x[:, start:end]
        pieces.append(layer(part, part, causal=True, past=past))
        past.length = start = end
    torch.testing.assert_close(torch.cat(pieces, dim=1), layer(x, x, causal=True))


@every
def test_gradients_are_those_of_the_function(kind: type[ConvolvedAttention]) -> None:
    layer = stirred(kind(4, 2))
    names = [name for name, _ in layer.named_parameters()]
    weights = [w.detach().clone().requires_grad_() for w in layer.parameters()]
    x = reals(1, 3, 4).requires_grad_()

    def function(x: Tensor, *weights: Tensor) -> Tensor:
        state = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(layer, state, (x, x, None, True))

    assert gradcheck(function, (x, *weights), fast_mode=True)


@every
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_and_stays_close(
    kind: type[ConvolvedAttention], dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    layer, x = kind(12, 3).double(), reals(2, 5, 12)
    exact = layer(x, x, causal=True)
    rounded = layer.to(dtype)(x.to(dtype), x.to(dtype), causal=True)
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded.double(), exact, atol=0.03, rtol=0)


@pytest.mark.slow
@every
def test_it_is_compiled_without_a_graph_break(kind: type[ConvolvedAttention]) -> None:
    torch.compiler.reset()
    layer, x = stirred(kind(12, 3)), reals(2, 5, 12)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, x), layer(x, x))


def test_what_does_not_fit_is_a_clear_error() -> None:
    class Elsewhere(ConvolvedAttention):
        places = ("query", "output")

    with pytest.raises(ValueError, match="'output' is not query, key or value"):
        Elsewhere(12, 3)
    with pytest.raises(ValueError, match="kernel_size 0"):
        StandardConvolution(2, 3, 0)


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
        costs = LanguageModel(replace(config, attention=kind)).costs()
        assert costs["attention"][1] == 2 * (4 * 12 * 12 + products), kind
