"""What the chapter on the faster forms promises: the same outputs, gradients and weights for every model."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from catalogue import CONFIGS, D_MODEL, HEADS, LAYERS, MAX_SEQ, is_written
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from twins import reals, stirred

from labml_primer.primer.faster import (
    FasterConvolution,
    FasterSquaredReLU,
    MergedConvolution,
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
from labml_primer.transformer.generation import generate_cached
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
    for batch, seq in ((2, 1), (2, 2), (3, 7), (0, 5)):
        x = LAYERS[name].input(batch, seq)
        turned = x.transpose(0, 1).contiguous().transpose(0, 1)
        for given in (x, turned):
            torch.testing.assert_close(fast(given), plain(x))
            with torch.no_grad():
                torch.testing.assert_close(fast(given), plain(x))


@every_layer
@pytest.mark.parametrize("seq", [1, 2, MAX_SEQ])
def test_gradients_are_the_same(name: str, seq: int) -> None:
    (plain, fast), x = both(name), LAYERS[name].input(3, seq)
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
            generate_cached(
                model,
                tokens,
                12,
                temperature=temperature,
                generator=torch.Generator().manual_seed(seed),
            )
            for model in (plain, fast)
        ]
        assert torch.equal(*written)


@every_preset
def test_a_faster_model_can_be_copied_and_made_faster_again(name: str) -> None:
    plain, fast = both(name)
    tokens = LAYERS[name].input(2, 7)
    twins = [faster(copy.deepcopy(fast))]
    if is_written(fast):
        twins.append(faster(pickle.loads(pickle.dumps(fast))))
    with torch.no_grad():
        for twin in twins:
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


def test_second_gradients_of_squared_relu_at_zero_are_the_plain_ones() -> None:
    found = []
    for layer in (SquaredReLU(), FasterSquaredReLU()):
        x = torch.zeros(3, requires_grad=True)
        (slope,) = torch.autograd.grad(layer(x).sum(), x, create_graph=True)
        found.append(torch.autograd.grad(slope.sum(), x)[0])
    assert torch.equal(*found)


@pytest.mark.parametrize("training", [True, False])
def test_a_convolution_that_is_patched_afterwards_computes_what_it_is_told(
    training: bool,
) -> None:
    plain = MultiDConvHeadAttention(D_MODEL, HEADS).double().train(training)
    fast, x = faster(copy.deepcopy(plain)), reals(2, 7, D_MODEL)
    for layer in (plain, fast):
        layer.key_conv.forward = torch.zeros_like
    torch.testing.assert_close(fast(x, x), plain(x, x))


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
def test_cross_attention_is_the_same(kind: type[MultiDConvHeadAttention]) -> None:
    plain = stirred(kind(D_MODEL, HEADS))
    fast = faster(copy.deepcopy(plain))
    x, y = reals(2, 3, D_MODEL), reals(2, 7, D_MODEL)
    with torch.no_grad():
        torch.testing.assert_close(fast(x, y), plain(x, y))


# What it leaves as it is


class Doubled(SpatialDepthWiseConvolution):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Leaky(SquaredReLU):
    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, 0.5) ** 2


class Normalized(SpatialDepthWiseConvolution):
    """Inherits `forward`, and computes something else all the same."""

    def __getattr__(self, name: str):
        found = super().__getattr__(name)
        return found.softmax(0) if name == "weight" else found


class Lifted(MultiDConvHeadAttention):
    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        return query + 1, key, value


def with_own_forward(layer: nn.Module) -> nn.Module:
    plain = layer.forward
    layer.forward = lambda *inputs: 2 * plain(*inputs)  # type: ignore[method-assign]
    return layer


UNKNOWN = {
    "subclass of the activation": Leaky,
    "subclass of the convolution": lambda: Doubled(HEADS, 4),
    "subclass with another kernel": lambda: Normalized(HEADS, 4),
    "subclass of the attention": lambda: Lifted(D_MODEL, HEADS),
    "activation with its own forward": lambda: with_own_forward(SquaredReLU()),
    "weight norm": lambda: parametrizations.weight_norm(
        SpatialDepthWiseConvolution(HEADS, 4)
    ),
}


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (SquaredReLU, "forward"),
        (SpatialDepthWiseConvolution, "forward"),
        (MultiDConvHeadAttention, "project"),
    ],
)
def test_a_method_that_was_replaced_on_a_class_is_the_one_that_counts(
    kind: type[nn.Module], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plain, _), tokens = both("primer-ez"), LAYERS["primer-ez"].input(2, 5)
    original = getattr(kind, method)

    def negated(self: nn.Module, *inputs: Tensor) -> object:
        found = original(self, *inputs)
        return -found if method == "forward" else (-found[0], *found[1:])

    monkeypatch.setattr(kind, method, negated)
    expected = plain.eval()(tokens)
    fast = faster(plain)
    torch.testing.assert_close(fast(tokens), expected)
    with torch.no_grad():
        torch.testing.assert_close(fast(tokens), expected)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_exactly_a_known_layer_stays_and_computes_the_same(
    name: str,
) -> None:
    layer = stirred(UNKNOWN[name]())
    attends = isinstance(layer, MultiDConvHeadAttention)
    x = reals(2, 5, D_MODEL) if attends else reals(2, 5, HEADS, 4)
    inputs = (x, x) if attends else (x,)
    for mode in (True, False):
        layer.train(mode)
        expected = layer(*inputs)
        model = faster(nn.ModuleList([layer]))
        assert model[0] is layer
        torch.testing.assert_close(layer(*inputs), expected)
        with torch.no_grad():
            torch.testing.assert_close(layer(*inputs), expected)


@pytest.mark.filterwarnings("ignore:.*weight_norm` is deprecated")
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_norms_of_weights_that_are_hooks_are_kept(norm: str) -> None:
    def normed() -> MultiDConvHeadAttention:
        torch.manual_seed(0)
        layer = MultiDConvHeadAttention(D_MODEL, HEADS)
        getattr(nn.utils, norm)(layer.query_conv, "weight")
        return stirred(layer).eval()

    plain, fast, x = normed(), faster(normed()), reals(2, 5, D_MODEL)
    with torch.no_grad():
        for layer in (plain, fast):
            for weight in layer.query_conv.parameters():
                weight.mul_(2)
        torch.testing.assert_close(fast(x, x), plain(x, x))


def exchanged(layer: MultiDConvHeadAttention, how: str) -> None:
    """Change the kernel of the keys."""
    torch.manual_seed(3)
    if how == "layer":
        layer.key_conv = stirred(SpatialDepthWiseConvolution(HEADS, 4))
    elif how == "parameter":
        layer.key_conv.weight = nn.Parameter(reals(3, HEADS, 4))
    elif how == "data":
        layer.key_conv.weight.data = reals(3, HEADS, 4)
    else:
        parametrizations.weight_norm(layer.key_conv, "weight")
        layer.key_conv.parametrizations.weight.original0.data *= 2


@pytest.mark.parametrize("how", ["layer", "parameter", "data", "parametrization"])
def test_a_kernel_exchanged_afterwards_is_the_one_that_counts(how: str) -> None:
    plain = stirred(MultiDConvHeadAttention(D_MODEL, HEADS)).eval()
    fast, x = faster(copy.deepcopy(plain)), reals(2, 5, D_MODEL)
    before = plain(x, x)
    for layer in (plain, fast):
        exchanged(layer, how)
    assert not torch.allclose(plain(x, x), before)
    with torch.no_grad():
        torch.testing.assert_close(fast(x, x), plain(x, x))
    again = faster(fast)
    with torch.no_grad():
        torch.testing.assert_close(again(x, x), plain(x, x))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_hooks_are_called_whether_set_before_or_afterwards(
    training: bool, first: bool
) -> None:
    model = LanguageModel(CONFIGS["primer-ez"]).train(training)
    called: list[str] = []

    def hook(name: str) -> Callable[..., None]:
        return lambda *_: called.append(name)

    fast = model if first else faster(model)
    for name, layer in fast.named_modules():
        if name.endswith(("_conv", "activation")):
            layer.register_forward_pre_hook(hook(f"{name}, before"))
            layer.register_forward_hook(hook(f"{name}, after"))
            layer.register_full_backward_hook(hook(f"{name}, backward"))
    fast = faster(fast)
    tokens = LAYERS["primer-ez"].input(2, 7)
    with torch.no_grad():
        fast(tokens)
    assert len(called) == len(set(called)) == 2 * CONFIGS["primer-ez"].layers * 4
    called.clear()
    fast(tokens).sum().backward()
    assert len(called) == len(set(called)) == 3 * CONFIGS["primer-ez"].layers * 4


def test_a_layer_in_two_places_is_replaced_in_both_by_one() -> None:
    shared = SquaredReLU()
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 3), shared), shared)
    first, second = faster(model)[0][1], model[1]
    assert type(first) is FasterSquaredReLU and first is second


def test_gradients_reach_the_parameters_that_an_optimizer_holds() -> None:
    model = LanguageModel(CONFIGS["primer-ez"])
    held = list(model.parameters())
    faster(model)(LAYERS["primer-ez"].input(2, 7)).sum().backward()
    assert all(a is b for a, b in zip(held, model.parameters(), strict=True))
    assert all(weight.grad is not None for weight in held)


def test_in_evaluation_one_convolution_does_the_work_of_three() -> None:
    model = faster(LanguageModel(CONFIGS["primer-ez"]))
    kinds: list[str] = []
    for layer in model.modules():
        if isinstance(layer, MergedConvolution):
            layer.register_forward_hook(
                lambda layer, *_: kinds.append(type(layer).__name__)
            )
    tokens = LAYERS["primer-ez"].input(2, 3)
    model.train()(tokens)
    assert not kinds
    model.eval()
    generate_cached(model, tokens, 2)
    assert kinds == ["MergedConvolution"] * (2 * CONFIGS["primer-ez"].layers)


# Transforms of functions

TRANSFORMED = {
    "squared ReLU": (SquaredReLU, (2, 3, 4)),
    "convolution": (lambda: SpatialDepthWiseConvolution(2, 3), (2, 4, 2, 3)),
    "with a bias": (lambda: BiasedConvolution(2, 3), (2, 4, 2, 3)),
    "attention": (lambda: MultiDConvHeadAttention(4, 2), (2, 3, 4)),
}
Function = Callable[[Tensor], Tensor]
TRANSFORMS: dict[str, Callable[[Function, Tensor], object]] = {
    "vmap": lambda f, x: vmap(lambda v: f(v[None]))(x),
    "grad": lambda f, x: grad(lambda v: f(v).square().sum())(x),
    "a gradient per example": lambda f, x: vmap(
        grad(lambda v: f(v[None]).square().sum())
    )(x),
    "jvp": lambda f, x: jvp(f, (x,), (x.cos(),)),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(lambda v: f(v).square().sum())(x),
    "forward twice": lambda f, x: jacfwd(jacfwd(lambda v: f(v).square().sum()))(x),
    "forward mode": lambda f, x: in_forward_mode(f, x),
    "a batch of gradients": lambda f, x: torch.autograd.functional.jacobian(
        f, x, vectorize=True
    ),
}


def in_forward_mode(f: Function, x: Tensor) -> tuple[Tensor, ...]:
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(f(forward_ad.make_dual(x, x.cos()))))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_function_transforms_give_what_they_give_of_the_plain_layer(
    name: str, transform: str
) -> None:
    build, shape = TRANSFORMED[name]
    plain = stirred(build()).train(transform != "vmap")
    fast, x = faster(copy.deepcopy(plain)), reals(*shape)

    def as_function(layer: nn.Module) -> Function:
        attends = isinstance(layer, MultiDConvHeadAttention)
        # PyTorch's fused attention has no derivative of a derivative; its projections have.
        return lambda v: torch.cat(layer.project(v, v), 1) if attends else layer(v)

    if transform == "forward twice" and "convolution" in type(plain).__name__.lower():
        return  # an error in the plain layer, too: PyTorch has no such derivative of `+=`
    expected, found = (
        TRANSFORMS[transform](as_function(layer), x) for layer in (plain, fast)
    )
    torch.testing.assert_close(found, expected)


def test_gradients_per_example_of_all_weights_are_those_of_the_plain_model() -> None:
    (plain, fast), tokens = both("primer-ez"), LAYERS["primer-ez"].input(3, 7)

    def gradients(model: nn.Module) -> dict[str, Tensor]:
        def loss(weights: dict[str, Tensor], text: Tensor) -> Tensor:
            return functional_call(model, weights, (text[None],)).logsumexp(-1).sum()

        return vmap(grad(loss), (None, 0))(dict(model.named_parameters()), tokens)

    for mode in (True, False):
        torch.testing.assert_close(
            gradients(fast.train(mode)), gradients(plain.train(mode))
        )


@pytest.mark.parametrize(
    "other",
    [
        nn.Identity(),
        SpatialDepthWiseConvolution(HEADS, 4, kernel_size=2),
        SpatialDepthWiseConvolution(1, 4),
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


def test_a_bias_exchanged_afterwards_is_the_one_that_counts() -> None:
    plain = stirred(MultiDConvSharedByHeadsAttention(D_MODEL, HEADS)).eval()
    fast, x = faster(copy.deepcopy(plain)), reals(2, 5, D_MODEL)
    for layer in (plain, fast):  # with the kernel it had
        kernel = layer.value_conv.weight
        layer.value_conv = copy.deepcopy(layer.value_conv)
        layer.value_conv.weight = kernel
        with torch.no_grad():
            layer.value_conv.bias += 1
    with torch.no_grad():
        torch.testing.assert_close(fast(x, x), plain(x, x))
