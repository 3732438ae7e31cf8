"""The promises that every layer of the library keeps, for every layer in the catalogue."""

import copy
import importlib
import inspect
import io
import math
import pickle
import pkgutil
from collections.abc import Iterable
from dataclasses import replace

import pytest
import torch
from catalogue import (
    ATTENTIONS,
    CONFIGS,
    D_MODEL,
    LAYERS,
    MAX_SEQ,
    VOCAB,
    Layer,
    heads_of,
    is_written,
)
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode
from twins import reals, stirred

import labml_primer
from labml_primer.primer.faster import faster
from labml_primer.transformer.attention import MultiHeadAttention, causal_mask
from labml_primer.transformer.generation import CachedModel, cached
from labml_primer.transformer.language_model import LanguageModel

every = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)


def those(condition) -> pytest.MarkDecorator:
    """Layers of the catalogue that meet a condition."""
    chosen = {name: layer for name, layer in LAYERS.items() if condition(layer)}
    return pytest.mark.parametrize("layer", chosen.values(), ids=chosen)


real = those(lambda layer: layer.position)


def parameters(module: nn.Module) -> list[Tensor]:
    return [weight.detach().clone().requires_grad_() for weight in module.parameters()]


def as_function(module: nn.Module, x: Tensor):
    """The module as a function of its weights, and of its input if that is real."""
    names = [name for name, _ in module.named_parameters()]

    def function(*tensors: Tensor) -> Tensor:
        weights = dict(zip(names, tensors, strict=False))
        own = tensors[len(names)] if x.is_floating_point() else x
        return torch.func.functional_call(module, weights, (own,))

    own = [x.requires_grad_()] if x.is_floating_point() else []
    return function, (*parameters(module), *own)


def changed(x: Tensor, place: int) -> Tensor:
    """`x` with another token or vector at one position."""
    x = x.clone()
    new = x[:, place].roll(1, -1) if x.is_floating_point() else x[:, place] + 1
    x[:, place] = new if x.is_floating_point() else new % VOCAB
    return x


def test_every_layer_of_the_library_is_in_the_catalogue() -> None:
    listed = {
        type(module)
        for layer in LAYERS.values()
        for made in (layer.make(), faster(layer.make()))
        for module in made.modules()
    }
    for found in pkgutil.walk_packages(labml_primer.__path__, "labml_primer."):
        for kind in vars(importlib.import_module(found.name)).values():
            if (
                inspect.isclass(kind)
                and issubclass(kind, nn.Module)
                and kind.__module__.startswith("labml_primer.")
                and not inspect.isabstract(kind)
                and kind is not CachedModel  # a copy of any model
            ):
                place = (
                    f"{inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]}"
                )
                assert kind in listed, (
                    f"{place}: {kind.__name__} is not in the catalogue of layers: "
                    "add it to LAYERS in tests/library/catalogue.py"
                )


# Shapes and types


@every
def test_any_batch_and_any_length(layer: Layer) -> None:
    module = layer.stirred()
    for batch, seq in ((2, 7), (1, 1), (3, 2), (2, MAX_SEQ), (0, 5)):
        output = module(layer.input(batch, seq))
        assert output.shape[:2] == (batch, seq)
        assert output.dtype == torch.float64
        assert output.isfinite().all()


@every
def test_input_is_left_unchanged(layer: Layer) -> None:
    x = layer.input(2, 7)
    before = x.clone()
    layer.make().double()(x)
    assert torch.equal(x, before)


@every
def test_memory_order_of_input_does_not_matter(layer: Layer) -> None:
    module, x = layer.stirred(), layer.input(3, 7)
    turned = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert not turned.is_contiguous()
    torch.testing.assert_close(module(turned), module(x))


@every
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_half_and_close(layer: Layer, dtype: torch.dtype) -> None:
    module, x = layer.make().double(), layer.input(3, 7)
    if any(isinstance(part, nn.RMSNorm) for part in module.modules()):
        small = torch.full((1,), 1e-2, dtype=dtype)
        if nn.RMSNorm(1).to(dtype)(small) < 0.9:
            pytest.skip("an early PyTorch: in half precision its RMSNorm is another")
    x = x.to(dtype) if x.is_floating_point() else x
    exact = module(x.double() if x.is_floating_point() else x)
    rounded = module.to(dtype)(x)
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded.double(), exact, atol=0.05, rtol=0.05)


@every
def test_autocast_stays_close_and_gives_gradients_in_float32(layer: Layer) -> None:
    module, x = layer.make(), layer.input(3, 7)
    x = x.float() if x.is_floating_point() else x
    exact = module(x)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = module(x)
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)
    if list(module.parameters()):
        rounded.float().square().sum().backward()
    assert all(
        weight.grad is None
        or (weight.grad.dtype == torch.float32 and weight.grad.isfinite().all())
        for weight in module.parameters()
    )


class NoDoubles(TorchDispatchMode):
    """A device without float64, such as Apple's GPUs; PyTorch's `meta` device takes its place."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        for tensor in output if isinstance(output, tuple | list) else [output]:
            if isinstance(tensor, Tensor) and tensor.is_meta:
                assert tensor.dtype != torch.float64, function
        return output


@every
def test_it_needs_no_float64_on_its_device(layer: Layer) -> None:
    x = layer.input(2, 7)
    x = (x.float() if x.is_floating_point() else x).to("meta")
    with NoDoubles(), torch.device("meta"):
        output = layer.make()(x)
    assert output.is_meta and output.dtype == torch.float32


@every
def test_its_device_need_not_be_the_default_one(layer: Layer) -> None:
    module, x = layer.stirred(), layer.input(2, 7)
    expected = module(x)
    with torch.device("meta"):
        torch.testing.assert_close(module(x), expected)


# Which positions see which


@every
def test_a_position_changes_exactly_the_outputs_it_reaches(layer: Layer) -> None:
    module, x = layer.stirred(), layer.input(2, 7)
    for place in (0, 3, 6):
        difference = (module(changed(x, place)) - module(x)).abs()
        moved = difference.flatten(2).amax(dim=(0, 2))
        first = place if layer.causal else 0
        assert (moved[:first] < 1e-12).all()
        reached = [first <= t < place + layer.reach for t in range(7)]
        assert (moved > 1e-9).tolist() == reached


@those(lambda layer: layer.causal)
def test_a_prefix_gives_what_it_gives_within_the_whole(layer: Layer) -> None:
    module, x = layer.stirred(), layer.input(2, 7)
    for seq in (1, 2, 5):
        torch.testing.assert_close(module(x[:, :seq]), module(x)[:, :seq])


@every
def test_a_sequence_gives_alone_what_it_gives_in_a_batch(layer: Layer) -> None:
    module, x = layer.stirred(), layer.input(3, 7)
    torch.testing.assert_close(module(x[1:2]), module(x)[1:2])


@those(lambda layer: layer.causal and layer.cached)
@pytest.mark.parametrize("lengths", [[1] * MAX_SEQ, [2, 1, 6], [MAX_SEQ]], ids=str)
@torch.no_grad()
def test_pieces_read_with_a_kv_cache_give_what_they_give_within_the_whole(
    layer: Layer, lengths: list[int]
) -> None:
    module, x = layer.stirred(), layer.input(2, MAX_SEQ)
    reader = cached(module)
    pieces = [reader(piece) for piece in x.split(lengths, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), module(x))


# Gradients


@every
def test_gradients_are_those_of_finite_differences(layer: Layer) -> None:
    function, inputs = as_function(layer.stirred(), layer.input(2, 3))
    if inputs:
        assert gradcheck(function, inputs, fast_mode=True)


@those(lambda layer: layer.reach < math.inf)
def test_gradients_have_gradients(layer: Layer) -> None:
    """PyTorch's fused attention has none, so layers with attention do not promise it."""
    function, inputs = as_function(layer.stirred(), layer.input(2, 3))
    if inputs:
        assert gradgradcheck(function, inputs, fast_mode=True)


@every
def test_every_parameter_learns(layer: Layer) -> None:
    module, x = layer.stirred(), layer.input(3, MAX_SEQ)
    weights = dict(module.named_parameters())
    if weights:
        output = module(x)
        (output * torch.randn_like(output)).sum().backward()
    for name, weight in weights.items():
        assert weight.grad is not None, name
        # A bias added last to all keys adds the same to all scores of a query, and softmax ignores it.
        if not name.endswith(("key.bias", "key_conv.bias")):
            assert weight.grad.abs().max() > 1e-9, name


# Training and evaluation


@those(lambda layer: layer.drops)
def test_dropout_acts_in_training_alone(layer: Layer) -> None:
    module, x = layer.make(dropout=0.5), layer.input(3, 7)
    x = x.float() if x.is_floating_point() else x
    assert not torch.equal(module(x), module(x))
    plain = layer.make()
    plain.load_state_dict(module.state_dict())
    torch.testing.assert_close(module.eval()(x), plain(x))


# Saving, copying, compiling


@every
def test_saved_weights_give_the_same_outputs_in_another_layer(layer: Layer) -> None:
    module, other, x = layer.stirred(), layer.make(seed=7).double(), layer.input(2, 7)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(x), module(x))


@every
def test_a_copy_gives_the_same_outputs_and_shares_no_weight(layer: Layer) -> None:
    module, x = layer.stirred(), layer.input(2, 7)
    before = module(x)
    twins = [copy.deepcopy(module)]
    if is_written(module):
        twins.append(pickle.loads(pickle.dumps(module)))
    for twin in twins:
        assert torch.equal(twin(x), before)
        stirred(twin)
        assert torch.equal(module(x), before)


def some(names: Iterable[str], chosen: set[str]) -> list[object]:
    """All names as parameters; those that are not chosen are for the night."""
    assert chosen <= set(names)
    night = pytest.mark.nightly
    return [
        name if name in chosen else pytest.param(name, marks=night) for name in names
    ]


# Models in which most kinds of layer are; the others are compiled at night.
COMPILED = {
    "primer",
    "synthesizer-dense",
    "switch-primer",
    "modern-primer-ez",
    "Program, Primer's",
}
EXPORTED = {"primer", "switch-primer", "modern-primer-ez"}


@pytest.mark.slow
@pytest.mark.parametrize("name", some(LAYERS, COMPILED))
def test_compiled_without_a_graph_break_it_gives_the_same(name: str) -> None:
    torch.compiler.reset()
    layer = LAYERS[name]
    module, x = layer.stirred(), layer.input(2, 5)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    expected, result = module(x), compiled(x)
    torch.testing.assert_close(result, expected)
    if weights := list(module.parameters()):
        torch.testing.assert_close(
            torch.autograd.grad(result.square().sum(), weights, allow_unused=True),
            torch.autograd.grad(expected.square().sum(), weights, allow_unused=True),
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", some(CONFIGS, EXPORTED))
def test_exported_it_takes_any_batch_and_length(name: str) -> None:
    """Any length beyond the widest kernel, 11, and below `max_seq`: PyTorch treats those two as special."""
    model = LanguageModel(replace(CONFIGS[name], layers=1, max_seq=32)).double().eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    seq = torch.export.Dim("seq", min=12, max=31)
    shapes = {"tokens": {0: batch, 1: seq}}
    layer = LAYERS[name]
    program = torch.export.export(model, (layer.input(2, 16),), dynamic_shapes=shapes)
    for x in (layer.input(1, 12), layer.input(7, 31)):
        torch.testing.assert_close(program.module()(x), model(x))


# Attention


attentions = pytest.mark.parametrize("kind", ATTENTIONS.values(), ids=ATTENTIONS)
REAL = torch.arange(7) < torch.tensor([[7], [4]])  # [batch, seq]


@attentions
@pytest.mark.parametrize("causal", [False, True])
def test_padding_keys_change_no_output_at_real_positions(
    kind: type[MultiHeadAttention], causal: bool
) -> None:
    torch.manual_seed(0)
    layer, x = stirred(kind(D_MODEL, heads_of(kind))), reals(2, 7, D_MODEL)
    mask = REAL[:, None, None, :]
    whole = layer(x, x, mask, causal)
    other = x.masked_fill(~REAL[..., None], 9.0)
    torch.testing.assert_close(layer(other, other, mask, causal)[REAL], whole[REAL])
    short = x[1:, :4]
    torch.testing.assert_close(whole[1:, :4], layer(short, short, causal=causal))


@attentions
def test_causal_mask_and_mask_argument_combine(kind: type[MultiHeadAttention]) -> None:
    torch.manual_seed(0)
    layer, x = stirred(kind(D_MODEL, heads_of(kind))), reals(2, 7, D_MODEL)
    both = REAL[:, None, None, :] & causal_mask(7, 7)
    result = layer(x, x, REAL[:, None, None, :], causal=True)
    torch.testing.assert_close(result, layer(x, x, both))
    assert not torch.allclose(result, layer(x, x, causal=True))
    assert not torch.allclose(result, layer(x, x, REAL[:, None, None, :]))


@attentions
@pytest.mark.parametrize("causal", [False, True])
def test_a_mask_of_integers_is_an_error(
    kind: type[MultiHeadAttention], causal: bool
) -> None:
    layer, x = kind(D_MODEL, heads_of(kind)).double(), reals(2, 7, D_MODEL)
    with pytest.raises((TypeError, RuntimeError), match=r"[Bb]ool|bitwise"):
        layer(x, x, REAL[:, None, None, :].long(), causal)


@attentions
def test_number_of_heads_must_divide_d_model(kind: type[MultiHeadAttention]) -> None:
    with pytest.raises(ValueError, match=r"12.*5"):
        kind(12, 5)
