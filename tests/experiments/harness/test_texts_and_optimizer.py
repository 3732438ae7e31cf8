"""Tests of what a run learns from and how: texts, tasks, the optimizer and its rates."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from runs import SIZES, TINY, on_one_core, same_bits, weights
from torch import nn
from torch.nn import functional as F

from experiments.harness import tasks
from experiments.harness.configuration import Run
from experiments.harness.long_run import long_run
from experiments.harness.texts import load_texts
from experiments.harness.training import Training, not_matrices, optimizer_of, rate_at
from experiments.records.counts import LENGTHS
from experiments.records.runs import (
    HELD_OUT,
    REPORTED_PLAYS,
    TUNING_PLAY,
    RunRecord,
    reported_loss,
    tuning_loss,
)
from labml_primer.compared.t5 import T5_PRESETS
from labml_primer.presets import PRESETS
from labml_primer.primer.faster import faster
from labml_primer.training.corpus import VALIDATION_PLAYS, load_plays
from labml_primer.training.loop import draw_windows, next_character_loss
from labml_primer.transformer.encoder import EncoderBlock
from labml_primer.transformer.language_model import LanguageModel
from labml_primer.transformer.tokens import Tokenizer, learn_merges

__all__ = ["on_one_core"]  # a fixture that acts here too

# Texts


def test_tuning_play_is_not_reported() -> None:
    assert {TUNING_PLAY, *REPORTED_PLAYS} == set(VALIDATION_PLAYS)
    assert TUNING_PLAY not in REPORTED_PLAYS
    assert set(load_texts("characters").held_out) == set(VALIDATION_PLAYS)


@pytest.mark.slow
def test_code_is_reproducible_and_what_selects_rates_is_not_reported() -> None:
    texts = load_texts("code")
    sums = (texts.vocab_size, texts.train.sum().item(), len(texts.train))
    assert sums == (96, 641_438_470, 14_434_811)
    assert tuple(texts.held_out) == HELD_OUT["code"]
    assert {*texts.characters.values()} == {1.0}


def test_rates_and_losses_of_code_are_those_of_its_own_held_out_texts() -> None:
    losses = {"geometry": [3.0], "logic": [1.0], "stats": [2.0]}
    record: RunRecord = {"configuration": {"data": "code"}, "diverged_at_step": None}
    record["curve"] = {"held_out": losses}
    assert (tuning_loss(record), reported_loss(record)) == (3.0, 1.5)


@pytest.mark.slow
def test_subwords_are_reproducible_and_cover_the_whole_text() -> None:
    texts = load_texts("subwords")
    # The recorded runs have learned these tokens.
    sums = (texts.vocab_size, texts.train.sum().item(), len(texts.train))
    assert sums == (2048, 821_482_647, LENGTHS["subwords"])
    plays = load_texts("characters").held_out
    for play, text in texts.held_out.items():
        assert len(text) * texts.characters[play] == pytest.approx(len(plays[play]))
        assert 2.6 < texts.characters[play] < 2.85
        assert text.min() >= 0 and text.max() < texts.vocab_size


@pytest.mark.slow
@pytest.mark.nightly
def test_subwords_are_those_of_the_chapter_on_tokens() -> None:
    plays, texts = load_plays(), load_texts("subwords")
    training = "\n".join(t for name, t in plays.items() if name not in texts.held_out)
    tokenizer = Tokenizer(learn_merges(training, texts.vocab_size))
    assert texts.train.tolist() == tokenizer.encode(training)
    for name, held_out in texts.held_out.items():
        assert held_out.tolist() == tokenizer.encode(plays[name])


@pytest.mark.slow
def test_loss_is_per_character_also_with_subwords(tmp_path: Path) -> None:
    run = replace(TINY, data="subwords", steps=1, rate=1e-9, evaluations=1)
    (tuning, *_) = long_run(run, tmp_path)["curve"]["held_out"].values()
    texts = load_texts("subwords")
    # An untrained model predicts uniformly.
    uniform = math.log(texts.vocab_size) / texts.characters[TUNING_PLAY]
    assert tuning[0] == pytest.approx(uniform, rel=0.02)


@pytest.mark.slow
def test_loss_of_an_encoder_decoder_is_per_token(tmp_path: Path) -> None:
    run = replace(TINY, preset="t5", data="subwords", steps=1, rate=1e-9, evaluations=1)
    (tuning, *_) = long_run(run, tmp_path)["curve"]["held_out"].values()
    uniform = math.log(load_texts("subwords").vocab_size + tasks.SENTINELS)
    assert tuning[0] == pytest.approx(uniform, rel=0.1)


def test_adafactor_follows_the_papers_schedule() -> None:
    run = replace(TINY, optimizer="adafactor", rate=0.01)
    rates = [rate_at(run, step) for step in (1, 100, 10_000, 40_000)]
    assert rates == pytest.approx([0.01, 0.01, 0.01, 0.005])


ADAMW = partial(torch.optim.AdamW, betas=(0.9, 0.98), weight_decay=0.01)
STEPS = {
    # Up over four steps, then down with the inverse square root.
    "adamw": (ADAMW, 0.02, [0.005, 0.01, 0.015, 0.02, 0.04 / 5**0.5, 0.04 / 6**0.5]),
    "adafactor": (torch.optim.Adafactor, 0.5, [0.5, 0.5, 0.5, 0.5, 5**-0.5, 6**-0.5]),
}


@pytest.mark.parametrize("optimizer", STEPS)
def test_steps_are_those_of_a_plain_loop_to_the_bit_with_clipping_for_adamw(
    tmp_path: Path, optimizer: str
) -> None:
    """So no setting that has a default changes a step."""
    kind, peak, rates = STEPS[optimizer]
    # A small batch has large gradients, so that clipping matters.
    run = replace(TINY, optimizer=optimizer, rate=peak, batch=2, seq=4)
    training = Training(run, tmp_path).begin()
    texts = load_texts("characters")
    model = faster(run.build(texts.vocab_size))
    by_hand = kind(model.parameters())
    for step, rate in enumerate(rates, 1):
        training.step()
        windows = draw_windows(texts.train, 2, 4, run.seed, step)
        by_hand.param_groups[0]["lr"] = rate
        by_hand.zero_grad()
        next_character_loss(model, windows).backward()
        most = 1.0 if optimizer == "adamw" else math.inf
        assert nn.utils.clip_grad_norm_(model.parameters(), most) > 1.1
        by_hand.step()
    assert same_bits(training.model.state_dict(), model.state_dict())


def test_whole_play_is_read_from_beginning_to_end(tmp_path: Path) -> None:
    run = replace(TINY, whole=True, seq=128, batch=8)
    record = long_run(run, tmp_path)
    texts = load_texts(run.data)
    model = run.build(texts.vocab_size)
    model.load_state_dict(weights(tmp_path))
    for play, text in texts.held_out.items():
        full = (len(text) - 1) // run.seq * run.seq
        inputs = text[:full].view(-1, run.seq)
        targets = text[1 : full + 1].view(-1, run.seq)
        with torch.no_grad():
            logits = model(inputs)
        expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()
        assert record["whole"][play] == pytest.approx(expected, rel=1e-5)
    assert "whole" not in long_run(TINY, tmp_path / "parts")


def test_sequence_with_more_gaps_than_sentinels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seq 1024 has 51 gaps"):
        long_run(replace(TINY, preset="t5", seq=1024), tmp_path)


def test_an_encoder_decoder_learns_to_fill_gaps(tmp_path: Path) -> None:
    sizes = {"d_model": 16, "heads": 2, "d_ff": 32, "layers": 1}
    run = Run("t5", sizes, steps=60, batch=8, seq=32, rate=0.05, optimizer="adafactor")
    record = long_run(replace(run, evaluations=3), tmp_path)
    losses = record["curve"]["held_out"][TUNING_PLAY]
    vocab = load_texts("characters").vocab_size + 32
    assert losses[-1] < losses[0] < math.log(vocab)
    # Two spans cut 5 of 32 characters: the encoder reads 29 tokens, the decoder 7. Per sequence:
    d, reads, writes = 16, 32 - 5 + 2, 5 + 2
    encoder = reads * (4 * d * d + 2 * d * 32) + 2 * reads * reads * d
    own = writes * (4 * d * d + 2 * d * 32) + 2 * writes * writes * d
    across = 2 * (reads + writes) * d * d + 2 * reads * writes * d
    forward = encoder + own + across + writes * d * vocab
    assert record["curve"]["multiply_adds"][-1] == 60 * 8 * 3 * forward


MASKS = replace(
    TINY, model={**TINY.model, "positions": "rotary", "block": "encoder-block"}
)
"""A tiny encoder that predicts masked characters."""


def test_block_of_an_encoder_computes_what_the_books_encoder_does() -> None:
    plain = {**SIZES, "block": "encoder-block"}
    model = Run("transformer", plain, seq=16).build(vocab_size=83)
    assert isinstance(model, LanguageModel)
    config, block = model.config, model.blocks[0]
    book = EncoderBlock(config.d_model, config.heads, config.d_ff)
    book.load_state_dict(block.state_dict())
    x = torch.randn(2, 7, config.d_model)
    torch.testing.assert_close(block(x), book(x))


@pytest.mark.parametrize("preset", ["transformer", "primer-ez", "transformer-pp"])
def test_an_encoder_sees_both_sides_but_no_masked_character(preset: str) -> None:
    model = replace(MASKS, preset=preset).build(vocab_size=83)
    assert isinstance(model, LanguageModel)
    task, windows = tasks.task_of(model, 40), torch.arange(41).expand(2, 41)
    source, target = task.inputs(windows, torch.Generator().manual_seed(0))
    masked = source == model.config.vocab_size - 1
    assert masked.sum(dim=1).tolist() == [6, 6]
    # Input and target together are the text, and have no character in common.
    assert torch.equal(torch.where(masked, target, source), windows[:, :-1])
    assert (target[~masked] == tasks.NOT_PREDICTED).all()
    last, first = source.clone(), source.clone()
    last[:, -1], first[:, 0] = 50, 50
    for other in (last, first):
        changed = (model(other) - model(source)).abs().amax(dim=(0, 2)) > 0
        assert changed.all()


def test_an_encoder_reads_no_whole_play() -> None:
    with pytest.raises(ValueError, match="only a language model reads whole plays"):
        replace(MASKS, whole=True)


def test_linear_schedule_peaks_after_the_warm_up_and_ends_at_zero() -> None:
    run = Run(rate=0.01, steps=1000, warmup=100, schedule="linear")
    rates = [rate_at(run, step) for step in (1, 50, 100, 101, 550, 1000)]
    assert rates[:3] == pytest.approx([1e-4, 5e-3, 0.01])
    steps = [(1001 - step) / 901 for step in (101, 550, 1000)]
    assert rates[3:] == pytest.approx([0.01 * left for left in steps])
    assert rate_at(run, 1001) == 0
    assert (
        min(rate_at(replace(run, steps=5, evaluations=1), step) for step in range(1, 6))
        > 0
    )
    with pytest.raises(ValueError, match="leave schedule out, or use adamw"):
        Run(schedule="linear", optimizer="adafactor")


def test_a_run_whose_rates_depend_on_its_length_is_not_prolonged(
    tmp_path: Path,
) -> None:
    run = replace(TINY, schedule="linear")
    long_run(run, tmp_path, keep=True)
    with pytest.raises(ValueError, match=r"steps \d+ is now"):
        long_run(replace(run, steps=run.steps + 2), tmp_path)


# Weight decay


PLAIN = "query key value output expand contract"
KERNELS = "query_conv key_conv value_conv"
DECAYED = {
    "transformer": PLAIN,
    "transformer-gelu": PLAIN,
    "transformer-pp": f"{PLAIN} gate",
    "transformer-squared-relu": PLAIN,
    "transformer-mdha": f"{PLAIN} {KERNELS}",
    "transformer-sep-conv": f"{PLAIN} {KERNELS}",
    "primer-ez": f"{PLAIN} {KERNELS}",
    "primer": f"{PLAIN} key_conv value_conv",
    "evolved-transformer": f"{PLAIN} depthwise pointwise",
    "synthesizer-dense": "query targets value output expand contract",
    "synthesizer-factorized-dense": "query rows columns value output expand contract",
    "synthesizer-random": "value output expand contract",
    "synthesizer-factorized-random": "value output expand contract",
    "switch-transformer": f"{PLAIN} router",
    "switch-primer": f"{PLAIN} {KERNELS} router",
    "modern": f"{PLAIN} gate",
    "modern-primer-ez": f"{PLAIN} {KERNELS}",
    "t5": PLAIN,
    "t5-gelu": PLAIN,
    "t5-pp": f"{PLAIN} gate",
    "t5-primer-ez-decoder": f"{PLAIN} {KERNELS} gate",
}
"""The weights that decay with `decay = "matrices"`. Their biases, and all else, do not."""


@pytest.mark.parametrize("preset", [*PRESETS, *T5_PRESETS])
def test_weight_decay_on_matrices_spares_norms_biases_embeddings(preset: str) -> None:
    sizes = SIZES | ({"layers": 2} if preset == "evolved-transformer" else {})
    model = Run(preset, sizes, decay="matrices").build(83)
    spared = not_matrices(model)
    short = {
        name: name.removesuffix(".weight").rpartition(".")[2]
        for name, _ in model.named_parameters()
    }
    expected = set(DECAYED[preset].split())
    assert {part for name, part in short.items() if name not in spared} == expected
    assert not {short[name] for name in spared} & expected


def test_weight_decay_shrinks_matrices_only_if_asked() -> None:
    for decay in ("everything", "matrices"):
        run = replace(TINY, decay=decay)
        model = run.build(83)
        before = {name: w.detach().clone() for name, w in model.named_parameters()}
        optimizer, _ = optimizer_of(run, model)
        for weight in model.parameters():
            weight.grad = torch.zeros_like(weight)
        optimizer.step()
        spared = not_matrices(model) if decay == "matrices" else set[str]()
        for name, weight in model.named_parameters():
            factor = 1.0 if name in spared else 1 - 0.01 * run.rate
            torch.testing.assert_close(weight, factor * before[name])


def test_weight_decay_on_matrices_with_adafactor_which_has_none_is_refused() -> None:
    with pytest.raises(ValueError, match="leave decay out, or use adamw"):
        replace(TINY, decay="matrices", optimizer="adafactor")
