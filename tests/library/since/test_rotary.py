"""What the chapter on positions inside attention promises."""

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from catalogue import CONFIGS, D_MODEL, HEADS, MAX_SEQ, SMALL, VOCAB
from torch import Tensor
from twins import reals, stirred

from labml_primer.compared.t5 import relative_position_bucket
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.since.rotary import (
    POSITIONS,
    BucketedAttention,
    NoPositions,
    RotaryAttention,
    RotaryMultiDConvHeadAttention,
    Rotation,
    SmallPositionalEncoding,
    bucketed,
    positioned,
    rotary,
)
from labml_primer.transformer.attention import MultiHeadAttention, causal_mask
from labml_primer.transformer.language_model import Config, LanguageModel
from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    positional_encoding,
    rotate,
)

ROOT = Path(__file__).parents[3]
IN_ATTENTION = {
    "rotary": RotaryAttention,
    "rotary, convolved": RotaryMultiDConvHeadAttention,
    "buckets": BucketedAttention,
}
in_attention = pytest.mark.parametrize("kind", IN_ATTENTION.values(), ids=IN_ATTENTION)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@in_attention
def test_moving_a_text_changes_nothing(kind: type[MultiHeadAttention]) -> None:
    # Positions count from the first token, so all of them move if a layer begins elsewhere.
    layer, x = stirred(kind(D_MODEL, HEADS)), reals(2, 7, D_MODEL)
    here = layer(x, x, causal=True)
    if isinstance(layer, RotaryAttention):
        layer.rotation.tokens_before = 5000
        torch.testing.assert_close(layer(x, x, causal=True), here)
    # Behind other tokens that a mask hides, the text is the same as alone.
    padded = torch.cat([reals(2, 3, D_MODEL), x], dim=1)
    if kind is not RotaryMultiDConvHeadAttention:  # its convolution reads them
        real = (torch.arange(10) >= 3)[None, None, None]
        layer = layer.train(False)
        if isinstance(layer, RotaryAttention):
            layer.rotation.tokens_before = 0
        there = layer(padded, padded, real, causal=True)
        torch.testing.assert_close(there[:, 3:], here)


def test_rotation_turns_each_token_by_its_position_and_queries_as_the_last() -> None:
    rotation, query, key = Rotation(), reals(2, 3, HEADS, 4), reals(2, 5, HEADS, 4)
    turned_query, turned_key = rotation(query, key)
    for head in range(HEADS):
        expected = rotate(key[:, :, head], torch.arange(5))
        torch.testing.assert_close(turned_key[:, :, head], expected)
        expected = rotate(query[:, :, head], torch.arange(2, 5))
        torch.testing.assert_close(turned_query[:, :, head], expected)


def test_more_queries_than_keys_have_no_positions() -> None:
    with pytest.raises(ValueError, match="3 queries, more than 2 keys"):
        Rotation()(reals(2, 3, HEADS, 4), reals(2, 2, HEADS, 4))


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        (RotaryAttention, MultiHeadAttention),
        (RotaryMultiDConvHeadAttention, MultiDConvHeadAttention),
    ],
)
def test_rotary_attention_rotates_what_the_plain_one_projects_and_convolves(
    kind: type[RotaryAttention], plain: type[MultiHeadAttention]
) -> None:
    layer, x = stirred(kind(D_MODEL, HEADS)), reals(2, 7, D_MODEL)
    query, key, value = plain.project(layer, x, x)
    expected = *Rotation()(query, key), value
    for ours, theirs in zip(layer.project(x, x), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_buckets_are_added_to_the_scores() -> None:
    layer, x = stirred(BucketedAttention(D_MODEL, HEADS)), reals(2, 7, D_MODEL)
    table = layer.bias.relative_positions.table.weight
    query, key, value = (t.transpose(1, 2) for t in layer.project(x, x))
    scores = query @ key.mT / query.size(-1) ** 0.5
    for i in range(7):
        for j in range(i + 1):
            bucket = relative_position_bucket(torch.tensor(i - j), bidirectional=False)
            scores[:, :, i, j] += table[bucket]
    scores = scores.masked_fill(~causal_mask(7, 7), -torch.inf)
    expected = layer.output((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x, x, causal=True), expected)


@pytest.mark.parametrize("queries", [1, 2, 6, 7])
def test_fewer_queries_than_keys_are_the_last_of_them(queries: int) -> None:
    for kind in (RotaryAttention, BucketedAttention):
        layer, x = stirred(kind(D_MODEL, HEADS)), reals(2, 7, D_MODEL)
        expected = layer(x, x, causal=True)[:, -queries:]
        result = layer(x[:, -queries:], x, causal=True)
        torch.testing.assert_close(result, expected)


def test_a_query_that_may_attend_to_nothing_gets_zeros_despite_its_buckets() -> None:
    layer, x = stirred(BucketedAttention(D_MODEL, HEADS)), reals(1, 4, D_MODEL)
    nothing = torch.zeros(1, 1, 1, 4, dtype=torch.bool)
    expected = layer.output(torch.zeros_like(x))
    torch.testing.assert_close(layer(x, x, nothing), expected)


@pytest.mark.parametrize(("d_model", "times"), [(64, 4.4), (128, 3.1)])
def test_small_sines_start_so_many_times_as_large_as_tokens(
    d_model: int, times: float
) -> None:
    config = Config(1000, d_model, positions=SmallPositionalEncoding)
    model = LanguageModel(config)
    positions = model.positions(torch.zeros(1, 128, d_model)).square().mean().sqrt()
    tokens = model.embedding.weight.square().mean().sqrt()
    assert (positions / tokens).item() == pytest.approx(times, rel=0.03)
    expected = positional_encoding(128, d_model) / d_model**0.5
    torch.testing.assert_close(model.positions.encoding[:128], expected)


def test_a_config_has_learned_positions_unless_it_names_others() -> None:
    kinds = {
        name: type(LanguageModel(way(SMALL)).positions)
        for name, way in POSITIONS.items()
    }
    assert kinds == {
        "learned": LearnedPositionalEncoding,
        "sinusoidal": SmallPositionalEncoding,
        "t5": NoPositions,
        "rotary": NoPositions,
    }
    assert POSITIONS["learned"](SMALL) == SMALL


@pytest.mark.parametrize("name", ["t5", "rotary"])
def test_positions_in_attention_have_no_end(name: str) -> None:
    config = POSITIONS[name](CONFIGS["primer-ez"])
    tokens = torch.randint(VOCAB, (2, 3 * MAX_SEQ))
    assert LanguageModel(config)(tokens).isfinite().all()
    with pytest.raises(ValueError, match="longer than max_seq"):
        LanguageModel(CONFIGS["primer-ez"])(tokens)


def test_rotary_positions_have_no_parameters() -> None:
    def names(config: Config) -> set[str]:
        return {name for name, _ in LanguageModel(config).named_parameters()}

    for config in (SMALL, CONFIGS["primer-ez"], CONFIGS["primer"]):
        assert names(config) - names(rotary(config)) == {"positions.encoding"}
        assert names(rotary(config)) <= names(config)


def test_positioned_attention_is_made_once() -> None:
    assert positioned(RotaryAttention, MultiHeadAttention) is RotaryAttention
    convolved = positioned(RotaryAttention, MultiDConvHeadAttention)
    assert convolved.__bases__ == RotaryMultiDConvHeadAttention.__bases__
    assert positioned(RotaryAttention, convolved) is convolved
    assert rotary(rotary(SMALL)) == rotary(SMALL)

    class Own(MultiHeadAttention):
        pass

    first = positioned(RotaryAttention, Own)
    assert issubclass(first, RotaryAttention) and issubclass(first, Own)
    assert positioned(RotaryAttention, Own) is first

    class MultiHead(MultiHeadAttention):
        pass

    # Another class of the same name is another attention.
    MultiHead.__name__ = "Own"
    assert issubclass(positioned(RotaryAttention, MultiHead), MultiHead)


def test_attention_made_of_a_second_definition_of_its_base_is_refused() -> None:
    """As after copies of two chapters were pasted into one file."""
    body = dict(vars(MultiHeadAttention))
    second: Any = type("MultiHeadAttention", MultiHeadAttention.__bases__, body)
    pasted = type("Pasted", (second,), {})
    with pytest.raises(TypeError, match=r"Pasted is no .* was defined twice"):
        rotary(replace(SMALL, attention=pasted))


def test_a_model_with_positioned_attention_can_be_pickled_and_read_elsewhere(
    tmp_path: Path,
) -> None:
    # No class is written for this pair, so another process has to make it.
    config = bucketed(replace(CONFIGS["primer"], layers=1))
    model, tokens = LanguageModel(config), torch.arange(5)[None]
    torch.save((model, config, tokens, model(tokens)), tmp_path / "model")
    code = (
        "import sys, torch\n"
        "model, config, tokens, expected = torch.load(sys.argv[1], weights_only=False)\n"
        "assert isinstance(model.blocks[0].attention, config.attention)\n"
        "assert torch.equal(model(tokens), expected)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model"], cwd=ROOT, check=True
    )
    again = pickle.loads(pickle.dumps(config))
    assert again == config


def test_dropout_at_the_input_stays() -> None:
    model = LanguageModel(rotary(replace(SMALL, dropout=0.5))).train()
    x: Tensor = model.positions(torch.ones(50, 9, D_MODEL))
    assert 0.4 < (x == 0).float().mean() < 0.6
