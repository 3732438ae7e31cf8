"""Tests of configurations: read from a file, refused with a reason, identified by a digest."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import SIZES, TINY, same_bits, toml
from torch import nn

from experiments.harness.configuration import Run
from labml_primer.presets import PRESETS
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.since.rotary import NoPositions, RotaryAttention


def test_configuration_read_from_its_file_has_the_same_digest(
    tmp_path: Path,
) -> None:
    (tmp_path / "run.toml").write_text(toml(TINY))
    read = Run.read(tmp_path / "run.toml")
    assert read == TINY and read.digest == TINY.digest


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"model": {"d_model": 32}}, {"rate": 0.0041}]
)
def test_different_configurations_have_different_digests(
    change: dict[str, Any],
) -> None:
    assert replace(TINY, **change).digest != TINY.digest


def test_digest_covers_only_what_differs_from_the_defaults() -> None:
    explicit = replace(TINY, optimizer="adamw", data="characters")
    assert explicit.digest == TINY.digest
    # A changed default would give every record another configuration.
    assert Run().digest.startswith("44136fa355b3678a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('preset = "trnsformer"', "preset 'trnsformer' is not one of transformer, "),
        ('optimizer = "sgd"', "optimizer 'sgd' is not one of adamw, adafactor"),
        ("batch = 0", "batch 0 is not positive"),
        ("rate = nan", "rate nan is not positive and finite"),
        ("evaluations = 9999", "9999 evaluations do not fit 1200 steps"),
        (
            "steps = 20",
            "24 evaluations do not fit 20 steps; give evaluations, from 1 to 20",
        ),
        ("learning_rate = 1", "unknown settings: learning_rate; known: preset, model"),
        ("steps = 2e4", "steps 20000.0 is not a whole number, such as 20000"),
        ('steps = "20000"', "steps '20000' is not a whole number, such as 20000"),
        ("batch = true", "batch True is not a whole number, such as 20000"),
        ('rate = "1e-3"', "rate '1e-3' is not a number, such as 0.001"),
        ("bfloat16 = 1", "bfloat16 1 is not true or false"),
        ("data = 3", "data 3 is not a text in quotes"),
        ('model = "primer"', "model 'primer' is not a table, such as "),
        ("model.heads = 0", "model: heads 0 is not positive"),
        ("model.heads = 3", "model: .*heads"),
        ("model.d_model = -16", "model: d_model -16 is not positive"),
        ('model.d_model = "16"', "model: d_model '16' is not a whole number"),
        (
            "model.d_modle = 16",
            "model: unknown setting d_modle; known for transformer: d_model, heads, ",
        ),
        ("model.layers = -1", "model: layers -1 is not positive"),
        ("model.vocab_size = 5", "model: unknown setting vocab_size; known for"),
        ("model.max_seq = 5", "model: unknown setting max_seq; known for"),
        ("model.dropout = 1.0", "model: dropout 1.0 is not at least 0 and below 1"),
        ("model.dropout = nan", "model: dropout nan is not at least 0"),
        ("model.attention = 3", "model: attention 3 is not a text in quotes"),
        ('model.attention = "mhda"', "model: unknown part 'mhda'; known parts: "),
        ('model.activation = "mdha"', "model: .*missing"),
        (
            'preset = "t5"\nmodel.positions = "rotary"',
            "model: unknown setting positions; known for t5: d_model, heads, d_ff, la",
        ),
        ('preset = "t5"\nmodel.encoder = "mdha"', "model: unknown setting encoder"),
    ],
)
def test_error_of_an_invalid_file_names_it_and_the_setting(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(ValueError, match=rf"odd\.toml: {message}"):
        Run.read(tmp_path / "odd.toml")


def test_rate_may_be_a_whole_number() -> None:
    assert Run.of({"rate": 1}).rate == 1


def test_named_part_replaces_that_of_the_preset() -> None:
    run = replace(TINY, model=SIZES | {"activation": "silu"})
    config = run.build(vocab_size=9).config
    assert config.activation is nn.SiLU and config.max_seq == TINY.seq
    assert config.attention is PRESETS["primer-ez"].attention


def test_seed_determines_the_initial_weights() -> None:
    first, again, other = (
        replace(TINY, seed=seed).build(9).state_dict() for seed in (1, 1, 2)
    )
    assert same_bits(first, again) and not same_bits(first, other)


def test_positions_are_chosen_by_name() -> None:
    def first(**model: Any) -> nn.Module:
        return Run("primer-ez", SIZES | model).build(83)

    rotary = first(positions="rotary")
    assert isinstance(rotary.get_submodule("positions"), NoPositions)
    scaled = first(positions="rotary-scaled").get_submodule("positions")
    assert torch.equal(scaled(torch.ones(1, 1, 64)), torch.full((1, 1, 64), 8.0))
    attention = rotary.get_submodule("blocks.0.attention")
    assert isinstance(attention, RotaryAttention)
    assert isinstance(attention, MultiDConvHeadAttention)
    learned = first(positions="learned").state_dict()
    assert all(torch.equal(a, learned[k]) for k, a in first().state_dict().items())
    with pytest.raises(ValueError, match="'rotory' is not one of learned, sin"):
        first(positions="rotory")


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.toml: there is no such file"):
        Run.read(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("preset", "positions", "message"),
    [
        ("modern", "learned", "this preset is rotary: leave positions out"),
        ("modern-primer-ez", "t5", "this preset is rotary: leave positions out"),
        ("synthesizer-dense", "rotary", "and a Synthesizer has none"),
    ],
)
def test_positions_that_a_preset_cannot_have_are_refused(
    preset: str, positions: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Run(preset, {"positions": positions}).build(83)
