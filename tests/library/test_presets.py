"""What the paper's models promise, each of them."""

import io
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from labml_primer import PRESETS, Config, LanguageModel
from labml_primer.primer.primer import (
    SearchedAttention,
    SearchedBlock,
    SeparableConvolutionAttention,
)
from labml_primer.transformer.attention import MultiHeadAttention

NAMES = [
    "transformer",
    "transformer-gelu",
    "transformer-pp",
    "transformer-squared-relu",
    "transformer-mdha",
    "transformer-sep-conv",
    "primer-ez",
    "primer",
    "evolved-transformer",
    "synthesizer-dense",
    "synthesizer-factorized-dense",
    "synthesizer-random",
    "synthesizer-factorized-random",
    "switch-transformer",
    "switch-primer",
]
every = pytest.mark.parametrize("name", NAMES)


def small(name: str, **sizes: int) -> Config:
    config = replace(
        PRESETS[name], vocab_size=11, d_model=12, heads=3, d_ff=20, layers=2, max_seq=9
    )
    return replace(config, **sizes)  # type: ignore[arg-type]


def model_of(name: str, **sizes: int) -> LanguageModel:
    torch.manual_seed(0)
    model = LanguageModel(small(name, **sizes)).double().eval()
    # Fresh weights are too tidy: gains are one, biases zero, kernels alike.
    for weight in model.parameters():
        weight.data += 0.2 * torch.randn_like(weight)
    return model


def tokens_of(batch: int = 3, seq: int = 9) -> Tensor:
    return torch.randint(
        0, 11, (batch, seq), generator=torch.Generator().manual_seed(1)
    )


def parameters(config: Config) -> int:
    with torch.device("meta"):
        return sum(weight.numel() for weight in LanguageModel(config).parameters())


def test_there_is_a_preset_for_each_of_the_papers_models() -> None:
    assert list(PRESETS) == NAMES


def test_the_package_is_imported_without_its_models_and_without_a_warning() -> None:
    code = "import sys, labml_primer; assert 'torch' not in sys.modules; labml_primer.PRESETS"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_primers_presets_do_without_what_primer_is_compared_with() -> None:
    code = "import sys, labml_primer.primer.presets; assert 'labml_primer.compared' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(ImportError):
        from labml_primer import Nothing  # type: ignore[attr-defined] # noqa: F401


@every
def test_a_preset_cannot_be_changed_and_is_resized_by_a_copy(name: str) -> None:
    with pytest.raises(FrozenInstanceError):
        PRESETS[name].layers = 3  # type: ignore[misc]
    config = replace(PRESETS[name], vocab_size=7, d_model=8, heads=2, d_ff=12, layers=1)
    assert LanguageModel(config)(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 5, 7)


# Table 4, sections 4.2 and 4.3: in millions, rounded. The vocabularies are ours to guess, 32,000 and 32,128;
# biases and positions come to 0.1 million at the size of the search, and to 0.9 at the largest.


@pytest.mark.parametrize(
    "name",
    [n for n in NAMES if n != "transformer-squared-relu" and not n.startswith("s")],
)
def test_at_the_size_of_the_search_they_have_the_parameters_of_table_4(
    name: str,
) -> None:
    told = 38 if name == "evolved-transformer" else 35
    assert round(parameters(PRESETS[name]) / 1e6) == told


def test_with_queries_made_head_by_head_primer_has_the_34_million_of_table_4() -> None:
    config = replace(PRESETS["primer"], attention=SearchedAttention)
    assert round(parameters(config) / 1e6) == 34


def test_with_the_searched_widths_it_lies_within_the_limits_of_the_search() -> None:
    config = replace(
        PRESETS["primer"],
        d_model=384,
        d_ff=4608,
        attention=SearchedAttention,
        block=SearchedBlock,
    )
    assert 32e6 < parameters(config) < 38e6


@pytest.mark.parametrize(
    "name", ["transformer", "transformer-pp", "primer-ez", "primer"]
)
@pytest.mark.parametrize(
    ("millions", "d_model", "heads", "d_ff", "layers"),
    [(110, 768, 12, 3072, 12), (537, 1024, 16, 8192, 24)],
)
def test_the_sizes_of_sections_4_2_and_4_3(
    name: str, millions: int, d_model: int, heads: int, d_ff: int, layers: int
) -> None:
    config = replace(
        PRESETS[name],
        vocab_size=32_128,
        d_model=d_model,
        heads=heads,
        d_ff=d_ff,
        layers=layers,
        max_seq=512,
    )
    assert round(parameters(config) / 1e6) == millions


@every
def test_printing_a_model_tells_its_parameters_and_products(name: str) -> None:
    model = LanguageModel(small(name))
    text = str(model)
    total = sum(p.numel() for p in model.parameters())
    assert f"{total:,}" in text
    assert "d_model 12, heads 3, d_ff 20, layers 2" in text
    assert model.config.attention.__name__ in text
    assert sum(own for own, _ in model.costs().values()) == total


def test_multiply_adds_are_those_counted_by_hand() -> None:
    costs = LanguageModel(small("primer-ez")).costs()
    assert costs["embedding"][1] == 11 * 12
    assert costs["positions"][1] == costs["norms"][1] == 0
    assert costs["attention"][1] == 2 * (4 * 12 * 12 + 3 * 3 * 12)
    assert costs["feed_forward"][1] == 2 * 2 * 12 * 20
    # Each of 9 positions looks at itself and those before it: 5 in the mean, with two products each.
    assert costs["scores and sums"][1] == 2 * 2 * 5 * 12


@pytest.mark.parametrize("name", ["transformer", "transformer-pp"])
def test_multiply_adds_are_those_that_pytorch_counts(name: str) -> None:
    model = LanguageModel(small(name))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(tokens_of(1, 9))
    costs = model.costs()
    looking = costs.pop("scores and sums")[1]
    # PyTorch counts two operations for each, and attention as if nothing were masked: 9 keys, not 5.
    expected = sum(products for _, products in costs.values()) + looking * 9 / 5
    assert counter.get_total_flops() == 2 * 9 * expected


@every
@given(place=st.integers(1, 8))
@settings(max_examples=4)
def test_the_future_changes_nothing_before_it(name: str, place: int) -> None:
    model, tokens = model_of(name), tokens_of()
    other = tokens.clone()
    other[:, place:] = (other[:, place:] + 1) % 11
    moved = (model(other) - model(tokens)).abs().amax(dim=(0, 2))
    assert (moved[:place] < 1e-12).all()
    assert (moved[place:] > 1e-9).all()


@every
@pytest.mark.parametrize("seq", [1, 2, 5])
def test_a_prefix_gives_what_it_gives_within_the_whole(name: str, seq: int) -> None:
    model, tokens = model_of(name), tokens_of()
    torch.testing.assert_close(model(tokens[:, :seq]), model(tokens)[:, :seq])


@every
def test_a_sequence_gives_what_it_gives_alone(name: str) -> None:
    model, tokens = model_of(name), tokens_of()
    torch.testing.assert_close(model(tokens[1:2]), model(tokens)[1:2])


@every
def test_padding_behind_a_text_changes_nothing(name: str) -> None:
    model, tokens = model_of(name), tokens_of()
    padded = tokens.clone()
    padded[0, 6:] = 0
    torch.testing.assert_close(model(padded)[0, :6], model(tokens[:1, :6])[0])


@every
def test_tokens_need_not_lie_side_by_side_in_memory(name: str) -> None:
    model, tokens = model_of(name), tokens_of()
    turned = tokens.T.contiguous().T
    assert not turned.is_contiguous()
    torch.testing.assert_close(model(turned), model(tokens), rtol=0, atol=0)


@every
def test_a_batch_of_none_gives_none(name: str) -> None:
    model = model_of(name)
    assert model(tokens_of(0)).shape == (0, 9, 11)
    assert model.generate(tokens_of(0, 2), 3).shape == (0, 5)


@every
@given(
    heads=st.integers(1, 3),
    d_k=st.integers(1, 5),
    d_ff=st.integers(1, 9),
    layers=st.integers(0, 2),
    seq=st.integers(1, 5),
)
@settings(max_examples=6)
def test_odd_sizes(
    name: str, heads: int, d_k: int, d_ff: int, layers: int, seq: int
) -> None:
    # One of the Evolved Transformer's attentions has twice as many heads.
    d_k *= 2 if name == "evolved-transformer" else 1
    sizes = {"heads": heads, "d_model": heads * d_k, "d_ff": d_ff, "layers": layers}
    logits = model_of(name, **sizes)(tokens_of(2, seq))
    assert logits.shape == (2, seq, 11)
    assert logits.isfinite().all()


@every
def test_heads_that_do_not_divide_d_model_are_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"12.*5"):
        LanguageModel(small(name, heads=5))


@every
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_and_stays_close(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model, tokens = LanguageModel(small(name)).double().eval(), tokens_of()
    exact = model(tokens)
    rounded = model.to(dtype)(tokens)
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded.double(), exact, atol=0.05, rtol=0)


@every
def test_every_parameter_learns(name: str) -> None:
    model, tokens = model_of(name), tokens_of()
    torch.nn.functional.cross_entropy(model(tokens).mT, tokens.roll(-1, 1)).backward()
    for label, weight in model.named_parameters():
        assert weight.grad is not None, label
        # A bias of all keys adds the same to all scores of a query, and softmax does not see it. It does
        # where a convolution with zeros before its beginning stands behind, or queries are made of keys.
        last = (MultiHeadAttention, SeparableConvolutionAttention)
        if not (model.config.attention in last and label.endswith("key.bias")):
            assert weight.grad.abs().max() > 1e-9, label


@every
def test_gradients_are_those_of_the_function(name: str) -> None:
    model, tokens = model_of(name, layers=1, d_model=6, d_ff=5), tokens_of(1, 3)
    names = [n for n, _ in model.named_parameters()]
    weights = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def function(*weights: Tensor) -> Tensor:
        state = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(model, state, (tokens,))

    assert torch.autograd.gradcheck(function, weights, fast_mode=True)


@pytest.mark.slow
@every
def test_it_is_exported_for_any_batch_and_length(name: str) -> None:
    model = model_of(name)
    batch = torch.export.Dim("batch", min=1, max=64)
    seq = torch.export.Dim("seq", min=2, max=9)
    shapes = {"tokens": {0: batch, 1: seq}}
    program = torch.export.export(model, (tokens_of(2, 5),), dynamic_shapes=shapes)
    for tokens in (tokens_of(2, 5), tokens_of(7, 9)):
        torch.testing.assert_close(program.module()(tokens), model(tokens))


@pytest.mark.slow
@every
def test_it_is_compiled_without_a_graph_break(name: str) -> None:
    torch.compiler.reset()
    model, tokens = model_of(name), tokens_of(2, 5)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    result, expected = compiled(tokens), model(tokens)
    torch.testing.assert_close(result, expected)
    ours = torch.autograd.grad(expected.logsumexp(-1).sum(), [*model.parameters()])
    theirs = torch.autograd.grad(result.logsumexp(-1).sum(), [*model.parameters()])
    torch.testing.assert_close(theirs, ours)


@every
def test_a_saved_model_loads_as_weights_alone_and_gives_the_same(name: str) -> None:
    model, tokens = model_of(name), tokens_of()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = LanguageModel(model.config).double().eval()
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(tokens), model(tokens))
