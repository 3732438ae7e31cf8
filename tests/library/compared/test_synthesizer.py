"""Promises of the chapter on Synthesizers."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from labml_primer.compared.synthesizer import (
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
    SynthesizerBlock,
    SyntheticAttention,
)
from labml_primer.presets import PRESETS
from labml_primer.training.costs import costs
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Config, LanguageModel

KINDS: list[type[SyntheticAttention]] = [
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    RandomSynthesizer,
    FactorizedRandomSynthesizer,
]
every = pytest.mark.parametrize("kind", KINDS)


def layer_of(kind: type[SyntheticAttention], max_seq: int = 9) -> SyntheticAttention:
    torch.manual_seed(0)
    return kind(12, 3, max_seq=max_seq).double()


def text(batch: int = 2, seq: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, seq, 12, generator=generator, dtype=torch.float64)


def score(layer: SyntheticAttention, token: Tensor, head: int, i: int, j: int) -> float:
    """One number of $B$, by the formulas."""
    if isinstance(layer, RandomSynthesizer):
        return layer.positions[head, i, j].item()
    if isinstance(layer, FactorizedRandomSynthesizer):
        first, second = layer.query_positions[head, i], layer.key_positions[head, j]
        return sum((a * b).item() for a, b in zip(first, second, strict=True))
    assert isinstance(layer, DenseSynthesizer)
    hidden = layer.query.weight @ token + layer.query.bias
    hidden = hidden.clamp(min=0)[4 * head : 4 * head + 4]
    if isinstance(layer, FactorizedDenseSynthesizer):
        side = math.ceil(math.sqrt(layer.max_seq))
        row = hidden @ layer.rows[head, :, j // side]
        return (row * (hidden @ layer.columns[head, :, j % side])).item()
    return (hidden @ layer.targets[head, :, j]).item()


def by_formula(layer: SyntheticAttention, x: Tensor, allowed: Tensor) -> Tensor:
    """`allowed` is `[batch, queries, keys]`."""
    result = torch.zeros_like(x)
    value = layer.value(x)
    for b, i in torch.cartesian_prod(torch.arange(x.size(0)), torch.arange(x.size(1))):
        heads = []
        for h in range(3):
            keys = [j for j in range(x.size(1)) if allowed[b, i, j]]
            raised = [math.exp(score(layer, x[b, i], h, int(i), j)) for j in keys]
            mean = torch.zeros(4, dtype=x.dtype)
            for weight, j in zip(raised, keys, strict=True):
                mean += weight / sum(raised) * value[b, j, 4 * h : 4 * h + 4]
            heads.append(mean)
        result[b, i] = layer.output(torch.cat(heads))
    return result


def test_a_subclass_without_scores_is_an_error() -> None:
    with pytest.raises(TypeError, match="scores"):
        SyntheticAttention(12, 3)  # type: ignore[abstract]


@every
@torch.no_grad()
def test_it_computes_the_formula(kind: type[SyntheticAttention]) -> None:
    layer, x = layer_of(kind), text()
    everywhere = torch.ones(2, 7, 7, dtype=torch.bool)
    torch.testing.assert_close(layer(x, x), by_formula(layer, x, everywhere))
    torch.testing.assert_close(
        layer(x, x, causal=True), by_formula(layer, x, everywhere.tril())
    )


@every
@torch.no_grad()
def test_it_takes_a_mask_and_a_query_without_keys_gets_zeros(
    kind: type[SyntheticAttention],
) -> None:
    layer, x = layer_of(kind), text()
    mask = torch.rand(2, 7, 7, generator=torch.Generator().manual_seed(2)) < 0.5
    mask[0, 3] = False
    result = layer(x, x, mask[:, None], causal=True)
    torch.testing.assert_close(result, by_formula(layer, x, mask.tril()))
    torch.testing.assert_close(result[0, 3], layer.output.bias)


@every
@given(queries=st.integers(1, 7))
@settings(max_examples=7)
@torch.no_grad()
def test_the_queries_are_the_last_of_the_keys(
    kind: type[SyntheticAttention], queries: int
) -> None:
    layer, x = layer_of(kind), text()
    last = layer(x[:, -queries:], x, causal=True)
    torch.testing.assert_close(last, layer(x, x, causal=True)[:, -queries:])


@every
def test_more_queries_than_keys_are_an_error(kind: type[SyntheticAttention]) -> None:
    with pytest.raises(ValueError, match="7 queries are more than 6 keys"):
        layer_of(kind)(text(), text()[:, :6])


@every
def test_keys_have_no_features_so_a_cache_keeps_values_alone(
    kind: type[SyntheticAttention],
) -> None:
    _, key, value = layer_of(kind).project(text(), text())
    assert key.shape == (2, 7, 3, 0)
    assert value.shape == (2, 7, 3, 4)


@given(max_seq=st.integers(1, 200))
@settings(max_examples=40)
def test_factorized_scores_cover_every_position_at_any_length(max_seq: int) -> None:
    layer = FactorizedDenseSynthesizer(4, 1, max_seq=max_seq)
    rows, columns = layer.rows.size(-1), layer.columns.size(-1)
    # Big enough, and without a row that no position uses.
    assert (rows - 1) * columns < max_seq <= rows * columns
    assert columns == math.ceil(math.sqrt(max_seq))
    scores = layer.scores(torch.randn(1, 1, 4), max_seq)
    assert scores.shape == (1, 1, 1, max_seq)


def numbers(kind: type[SyntheticAttention], n: int, d: int, heads: int) -> int:
    """Parameters besides values, output and biases: Table 1, with those of positions once per head."""
    side = math.ceil(math.sqrt(n))
    return {
        DenseSynthesizer: d * d + d * n,
        FactorizedDenseSynthesizer: d * d + d * (side + math.ceil(n / side)),
        RandomSynthesizer: heads * n * n,
        FactorizedRandomSynthesizer: heads * 2 * n * 8,
    }[kind]


@every
@pytest.mark.parametrize("n", [1, 7, 64])
def test_it_has_as_many_parameters_as_table_1_says(
    kind: type[SyntheticAttention], n: int
) -> None:
    named = kind(12, 3, max_seq=n).named_parameters()
    counted = sum(
        weight.numel()
        for name, weight in named
        if not name.startswith(("value", "output")) and not name.endswith("bias")
    )
    assert counted == numbers(kind, n, 12, 3)


def config_with(kind: type[SyntheticAttention], max_seq: int = 9) -> Config:
    return Config(
        11,
        d_model=12,
        heads=3,
        d_ff=20,
        layers=2,
        max_seq=max_seq,
        attention=kind,
        block=SynthesizerBlock,
    )


@every
def test_multiply_adds_are_those_counted_by_hand(
    kind: type[SyntheticAttention],
) -> None:
    counted = costs(LanguageModel(config_with(kind)))
    # Values and output; and the layer that makes scores, if a token makes them.
    scoring = numbers(kind, 9, 12, 3) if issubclass(kind, DenseSynthesizer) else 0
    assert counted["attention"][1] == 2 * (2 * 12 * 12 + scoring)
    # Half of what dot products take: no score is a product with a key.
    assert counted["scores and sums"][1] == 2 * 5 * 12


@every
@pytest.mark.parametrize("max_seq", [3, 200])
def test_a_model_passes_max_seq_to_its_attention(
    kind: type[SyntheticAttention], max_seq: int
) -> None:
    model = LanguageModel(config_with(kind, max_seq))
    tokens = torch.zeros(2, max_seq, dtype=torch.long)
    assert model(tokens).shape == (2, max_seq, 11)


def test_the_block_takes_attention_of_other_kinds() -> None:
    config = replace(PRESETS["synthesizer-dense"], attention=MultiHeadAttention)
    small = replace(config, vocab_size=7, d_model=8, heads=2, d_ff=12, layers=1)
    assert LanguageModel(small)(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 5, 7)


def test_the_block_passes_dropout_to_its_attention() -> None:
    config = replace(config_with(DenseSynthesizer), dropout=0.25)
    assert SynthesizerBlock(config).attention.dropout == 0.25


@every
def test_more_tokens_than_max_seq_are_an_error(kind: type[SyntheticAttention]) -> None:
    layer = layer_of(kind, max_seq=6)
    with pytest.raises(ValueError, match=r"7.*max_seq 6"):
        layer(text(), text())
