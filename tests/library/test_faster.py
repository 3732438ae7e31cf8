"""What the chapter on the faster forms promises: the same outputs, gradients and weights for every model."""

import copy
from collections.abc import Callable

import pytest
import torch
from catalogue import CONFIGS, D_MODEL, HEADS, LAYERS, MAX_SEQ, VOCAB
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F
from twins import reals, stirred

from labml_primer.primer.faster import (
    CausalSum,
    FasterConvolution,
    FasterMultiDConvHeadAttention,
    FasterSquaredReLU,
    SquaredReLUFunction,
    faster,
)
from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
    SquaredReLU,
)
from labml_primer.primer.variations import (
    BiasedConvolution,
    MultiDConvSharedByHeadsAttention,
    MultiDPHConvHeadAttention,
    MultiDSharedConvHeadAttention,
)
from labml_primer.transformer.generation import generate, kv_cache
from labml_primer.transformer.language_model import LanguageModel

every_layer = pytest.mark.parametrize("name", LAYERS)
every_preset = pytest.mark.parametrize("name", CONFIGS)
attentions = pytest.mark.parametrize(
    "kind",
    [
        MultiDConvHeadAttention,
        MultiDConvSharedByHeadsAttention,
        MultiDSharedConvHeadAttention,
        MultiDPHConvHeadAttention,
    ],
)


def both(name: str) -> tuple[nn.Module, nn.Module]:
    """A layer of the catalogue and its faster copy."""
    plain = LAYERS[name].stirred()
    return plain, faster(copy.deepcopy(plain))


# Every layer and every model


@every_layer
def test_state_dict_is_the_same(name: str) -> None:
    plain, fast = both(name)
    before, after = plain.state_dict(), fast.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert [n for n, _ in plain.named_parameters()] == [
        n for n, _ in fast.named_parameters()
    ]


@every_layer
def test_outputs_are_the_same_with_and_without_gradients(name: str) -> None:
    plain, fast = both(name)
    for seq in (1, 2, 7):
        x = LAYERS[name].input(2, seq)
        torch.testing.assert_close(fast(x), plain(x))
        with torch.no_grad():
            torch.testing.assert_close(fast(x), plain(x))


@every_layer
def test_gradients_are_the_same(name: str) -> None:
    (plain, fast), x = both(name), LAYERS[name].input(3, MAX_SEQ)
    if x.is_floating_point():
        x.requires_grad_()
    upstream = torch.randn_like(plain(x))
    gradients = []
    for module in (plain, fast):
        sources = [t for t in (*module.parameters(), x) if t.requires_grad]
        output = (module(x) * upstream).sum()
        gradients.append(torch.autograd.grad(output, sources, allow_unused=True))
    torch.testing.assert_close(*gradients)


@every_preset
def test_no_plain_squared_relu_or_convolution_is_left(name: str) -> None:
    model = faster(LanguageModel(CONFIGS[name]))
    kinds = {type(module) for module in model.modules()}
    plain = {SquaredReLU, SpatialDepthWiseConvolution, MultiDConvHeadAttention}
    assert not kinds & plain


@every_preset
def test_generated_text_is_the_same(name: str) -> None:
    plain, fast = both(name)
    tokens = LAYERS[name].input(2, 3)
    for temperature, seed in ((0.0, 0), (1.0, 1)):
        written = [
            generate(
                model,
                tokens,
                12,
                temperature,
                generator=torch.Generator().manual_seed(seed),
            )
            for model in (plain, fast)
        ]
        assert torch.equal(*written)


@every_preset
def test_weights_of_one_form_load_into_the_other(name: str) -> None:
    plain, fast = both(name)
    tokens, fresh = LAYERS[name].input(2, 7), LAYERS[name].make(seed=5).double()
    fresh.load_state_dict(fast.state_dict())
    assert torch.equal(fresh(tokens), plain(tokens))
    refilled = faster(LAYERS[name].make(seed=5).double())
    refilled.load_state_dict(plain.state_dict())
    with torch.no_grad():
        assert torch.equal(refilled(tokens), fast(tokens))


@every_preset
def test_a_faster_model_can_be_copied_and_made_faster_again(name: str) -> None:
    plain, fast = both(name)
    tokens = LAYERS[name].input(2, 7)
    twin = faster(copy.deepcopy(fast))
    with torch.no_grad():
        torch.testing.assert_close(twin(tokens), plain(tokens))
        stirred(twin)
        torch.testing.assert_close(fast(tokens), plain(tokens))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["primer-ez", "primer"])
def test_compiled_without_a_graph_break_it_gives_the_same(name: str) -> None:
    torch.compiler.reset()
    plain, fast = both(name)
    tokens = LAYERS[name].input(2, 7)
    compiled = torch.compile(fast, backend="aot_eager", fullgraph=True)
    expected, result = plain(tokens), compiled(tokens)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(
        torch.autograd.grad(result.logsumexp(-1).sum(), [*fast.parameters()]),
        torch.autograd.grad(expected.logsumexp(-1).sum(), [*plain.parameters()]),
    )


# The two gradients by hand


@given(st.integers(0, 3), st.integers(1, 9))
def test_gradient_of_squared_relu_is_that_of_the_plain_form(
    batch: int, seq: int
) -> None:
    x, upstream = reals(batch, seq).requires_grad_(), reals(batch, seq)
    ours = torch.autograd.grad(SquaredReLUFunction.apply(x), x, upstream)
    theirs = torch.autograd.grad(F.relu(x).square(), x, upstream)
    torch.testing.assert_close(ours, theirs)


def test_squared_relu_has_second_gradients() -> None:
    assert gradgradcheck(FasterSquaredReLU(), reals(3, 5).requires_grad_())


def plain_sum(x: Tensor, weight: Tensor) -> Tensor:
    """The formula of the causal convolution, on a padded copy."""
    padded = F.pad(x, (0, 0) * (x.dim() - 2) + (len(weight) - 1, 0))
    return sum(padded[:, i : i + x.size(1)] * w for i, w in enumerate(weight))


@given(
    batch=st.integers(0, 3),
    seq=st.integers(0, 6),
    kernel_size=st.integers(1, 5),
    heads=st.sampled_from([1, 2]),
    channels=st.sampled_from([1, 4]),
)
def test_causal_sum_and_its_gradients_are_those_of_the_formula(
    batch: int, seq: int, kernel_size: int, heads: int, channels: int
) -> None:
    x = reals(batch, 2, seq, 4).transpose(1, 2).requires_grad_()
    weight = reals(kernel_size, heads, channels).requires_grad_()
    ours, plain = CausalSum.apply(x, weight), plain_sum(x, weight)
    torch.testing.assert_close(ours, plain)
    upstream = torch.randn_like(plain)
    torch.testing.assert_close(
        torch.autograd.grad(ours, (x, weight), upstream),
        torch.autograd.grad(plain, (x, weight), upstream),
    )


@pytest.mark.parametrize("seq", [1, 2, 4])
def test_causal_sum_has_first_and_second_gradients(seq: int) -> None:
    x, weight = reals(2, seq, 2, 3).requires_grad_(), reals(3, 2, 3).requires_grad_()
    assert gradcheck(CausalSum.apply, (x, weight))
    assert gradgradcheck(CausalSum.apply, (x, weight))


# Under autocast, and with other parts


@attentions
@pytest.mark.parametrize("swap", [faster, lambda layer: layer], ids=["faster", "plain"])
def test_under_autocast_projections_stay_in_bfloat16(
    kind: type[MultiDConvHeadAttention], swap: Callable[[nn.Module], nn.Module]
) -> None:
    layer, x = swap(kind(16, 4)), torch.randn(2, 6, 16)
    exact = layer(x, x, causal=True)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = layer(x, x, causal=True)
        kinds = {t.dtype for t in layer.project(x, x)}
        with torch.no_grad():
            kinds |= {t.dtype for t in layer.project(x, x)}
    assert kinds == {torch.bfloat16}
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)


@attentions
def test_merged_convolutions_give_what_the_three_give_alone(
    kind: type[MultiDConvHeadAttention],
) -> None:
    layer = faster(stirred(kind(D_MODEL, HEADS)))
    assert type(layer) is FasterMultiDConvHeadAttention
    for seq in (1, 2, 5):
        x = reals(2, seq, D_MODEL)
        with torch.no_grad():
            merged = layer.project(x, x)
        torch.testing.assert_close(merged, layer.project(x, x))


@attentions
def test_cross_attention_is_the_same(kind: type[MultiDConvHeadAttention]) -> None:
    plain = stirred(kind(D_MODEL, HEADS))
    fast = faster(copy.deepcopy(plain))
    x, y = reals(2, 3, D_MODEL), reals(2, 7, D_MODEL)
    with torch.no_grad():
        torch.testing.assert_close(fast(x, y), plain(x, y))


class Doubled(SpatialDepthWiseConvolution):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


@pytest.mark.parametrize(
    "other",
    [
        nn.Identity(),
        SpatialDepthWiseConvolution(HEADS, 4, kernel_size=2),
        BiasedConvolution(HEADS, 4),
        Doubled(HEADS, 4),
    ],
    ids=lambda layer: type(layer).__name__,
)
@pytest.mark.parametrize("place", ["query_conv", "key_conv", "value_conv"])
def test_convolutions_that_differ_or_are_gone_stay_separate(
    other: nn.Module, place: str
) -> None:
    plain = MultiDConvHeadAttention(D_MODEL, HEADS)
    setattr(plain, place, copy.deepcopy(other))
    stirred(plain)
    fast, x = faster(copy.deepcopy(plain)), reals(2, 7, D_MODEL)
    swapped = [type(conv) is FasterConvolution for conv in fast.children()]
    assert swapped.count(True) >= 2
    torch.testing.assert_close(fast(x, x), plain(x, x))
    with torch.no_grad():
        torch.testing.assert_close(fast(x, x), plain(x, x))


@given(cuts=st.sets(st.integers(1, MAX_SEQ - 1)))
@settings(max_examples=10)
def test_with_the_cache_in_pieces_it_is_the_same(cuts: set[int]) -> None:
    plain, fast = both("primer-ez")
    tokens = torch.arange(MAX_SEQ)[None] % VOCAB
    ends = [*sorted(cuts), MAX_SEQ]
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    with torch.no_grad(), kv_cache(fast):
        pieces = [fast(piece) for piece in tokens.split(lengths, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), plain(tokens))
