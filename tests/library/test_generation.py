"""What the chapter on generating text promises."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from labml_primer.presets import PRESETS
from labml_primer.primer.primer import SearchedAttention
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.primer.variations import (
    MultiDPHConvHeadAttention,
    MultiDSharedConvHeadAttention,
)
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.generation import (
    Past,
    draw_token,
    keep_top_k,
    keep_top_p,
)
from labml_primer.transformer.model import Config, LanguageModel

SMALL = Config(11, d_model=12, heads=3, d_ff=20, layers=2, max_seq=9)
CONFIGS = {
    name: replace(
        preset, vocab_size=11, d_model=12, heads=3, d_ff=20, layers=2, max_seq=9
    )
    for name, preset in PRESETS.items()
} | {
    attention.__name__: replace(SMALL, attention=attention)
    for attention in (
        MultiDConvHeadAttention,
        MultiDSharedConvHeadAttention,
        MultiDPHConvHeadAttention,
        SearchedAttention,
    )
}
every = pytest.mark.parametrize("name", CONFIGS)


def model_of(config: Config) -> LanguageModel:
    torch.manual_seed(0)
    model = LanguageModel(config).double().eval()
    for weight in model.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    return model


def tokens_of(batch: int = 3, seq: int = 9) -> Tensor:
    return torch.randint(
        0, 11, (batch, seq), generator=torch.Generator().manual_seed(1)
    )


def dice(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


logits_lists = st.lists(st.floats(-20, 20), min_size=1, max_size=12)


@given(logits_lists, st.integers(1, 15))
def test_top_k_keeps_the_k_best_as_they_are(values: list[float], k: int) -> None:
    logits = torch.tensor(values)
    kept = keep_top_k(logits, k)
    bar = sorted(logits.tolist(), reverse=True)[min(k, len(values)) - 1]
    expected = [v if v >= bar else -math.inf for v in logits.tolist()]
    assert kept.tolist() == expected


@given(logits_lists, st.floats(0.01, 1.0))
def test_top_p_keeps_the_fewest_that_reach_p(values: list[float], p: float) -> None:
    logits = torch.tensor(values, dtype=torch.float64)
    odds = logits.float().softmax(-1).double()
    kept = keep_top_p(logits, p) > -math.inf
    assert kept.any()
    assert torch.equal(keep_top_p(logits, p)[kept], logits[kept])
    # Enough together; and without the smallest of them too few.
    assert odds[kept].sum() >= p - 1e-5
    assert odds[kept].sum() - odds[kept].min() < p + 1e-5
    # None that is left out is likelier than one that is kept.
    assert kept.all() or odds[~kept].max() <= odds[kept].min()


def test_top_p_treats_each_row_alone() -> None:
    logits = torch.randn(4, 11)
    rows = torch.stack([keep_top_p(row, 0.7) for row in logits])
    assert torch.equal(keep_top_p(logits, 0.7), rows)


def test_top_p_of_one_keeps_everything() -> None:
    # So many that a running sum in `float32` is one before its end.
    logits = 3 * torch.randn(5, 50_000)
    assert torch.equal(keep_top_p(logits, 1.0), logits)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_have_the_odds_of_the_formula(temperature: float) -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    drawn = draw_token(logits.expand(40_000, 4), temperature, generator=dice())
    shares = torch.bincount(drawn, minlength=4) / 40_000
    weights = torch.tensor([math.exp(z / temperature) for z in logits.tolist()])
    torch.testing.assert_close(shares, weights / weights.sum(), atol=0.015, rtol=0)


def test_what_is_cut_is_never_drawn() -> None:
    logits = torch.zeros(5000, 6)
    logits[:, :2] = 1.0
    assert draw_token(logits, 5.0, top_k=2, generator=dice()).max() == 1
    assert draw_token(logits, 1.0, top_p=0.4, generator=dice()).max() == 1


def test_top_p_sees_the_odds_after_temperature() -> None:
    # 0.8 and 0.2; at temperature 0.5 they are 0.94 and 0.06.
    logits = torch.tensor([[0.8, 0.2]]).log().expand(500, 2)
    assert draw_token(logits, 1.0, top_p=0.9, generator=dice()).max() == 1
    assert draw_token(logits, 0.5, top_p=0.9, generator=dice()).max() == 0


def test_temperature_zero_is_the_best_token_and_draws_nothing() -> None:
    logits, generator = torch.randn(6, 11), dice()
    before = generator.get_state()
    assert torch.equal(draw_token(logits, 0.0, generator=generator), logits.argmax(-1))
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"temperature": -1.0}, "temperature -1"),
        ({"top_k": 0}, "top_k 0"),
        ({"top_p": 0.0}, "top_p 0"),
        ({"top_p": 1.5}, r"top_p 1\.5"),
    ],
)
def test_choices_that_make_no_sense_are_named(choice: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        draw_token(torch.zeros(1, 3), **choice)


def test_a_past_gives_back_all_or_the_last() -> None:
    past, owner, other = Past(9), torch.nn.Identity(), torch.nn.Identity()
    x = torch.randn(2, 9, 3)
    for start, end in ((0, 4), (4, 5), (5, 9)):
        assert torch.equal(past.all(owner, x[:, start:end]), x[:, :end])
        zeros = torch.zeros(2, 2, 3)
        expected = torch.cat([zeros, x], dim=1)[:, start : end + 2]
        assert torch.equal(past.last(other, x[:, start:end], 2), expected)
        past.length = end
    assert past.kept[other].shape == (2, 2, 3)


def test_what_is_made_once_is_not_made_again() -> None:
    past, owner = Past(9), torch.nn.Identity()
    first = past.once(owner, lambda: [torch.ones(2)])
    assert past.once(owner, lambda: [torch.zeros(2)]) is first
    assert past.once(torch.nn.Identity(), list) == []


def test_a_convolution_of_width_one_keeps_nothing() -> None:
    past, owner = Past(9), torch.nn.Identity()
    for _ in range(3):
        assert past.last(owner, torch.randn(2, 1, 3), 0).shape == (2, 1, 3)
    assert past.kept[owner].shape == (2, 0, 3)


@every
@given(cuts=st.sets(st.integers(1, 8)))
@settings(max_examples=8)
def test_in_pieces_it_gives_the_logits_of_the_whole(name: str, cuts: set[int]) -> None:
    model, tokens, past = model_of(CONFIGS[name]), tokens_of(), Past(9)
    ends = [*sorted(cuts), 9]
    lengths = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    pieces = [model(piece, past) for piece in tokens.split(lengths, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))


@every
def test_cached_and_uncached_write_the_same_even_past_max_seq(name: str) -> None:
    model, start = model_of(CONFIGS[name]), tokens_of(2, 3)
    cached = model.generate(start, 12, generator=dice())
    anew = model.generate(start, 12, generator=dice(), cached=False)
    assert torch.equal(cached, anew)
    assert torch.equal(cached[:, :3], start)
    assert cached.shape == (2, 15)


def test_with_a_past_attention_takes_a_mask_as_well() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3).double(), torch.randn(2, 7, 12).double()
    mask = torch.rand(2, 1, 7, 7) < 0.6
    whole, past, parts = layer(x, x, mask, causal=True), Past(7), []
    for start, end in ((0, 3), (3, 4), (4, 7)):
        part = x[:, start:end]
        parts.append(layer(part, part, mask[:, :, start:end, :end], True, past))
        past.length = end
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


def test_greedy_is_the_best_token_each_time() -> None:
    model, tokens = model_of(SMALL), tokens_of(2, 3)
    written = model.generate(tokens, 5, temperature=0)
    for end in range(3, 8):
        best = model(written[:, :end])[:, -1].argmax(dim=-1)
        assert torch.equal(written[:, end], best)


def test_the_same_dice_write_the_same_and_leave_others_alone() -> None:
    model, tokens = model_of(SMALL), tokens_of(2, 3)
    state = torch.get_rng_state()
    first = model.generate(tokens, 6, generator=dice(1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model.generate(tokens, 6, generator=dice(1)), first)
    assert not torch.equal(model.generate(tokens, 6, generator=dice(2)), first)


def test_dropout_is_off_while_it_writes_and_on_again_after() -> None:
    model, tokens = model_of(replace(SMALL, dropout=0.5)), tokens_of(2, 3)
    model.train()
    written = model.generate(tokens, 5, temperature=0)
    assert all(module.training for module in model.modules())
    assert torch.equal(model.eval().generate(tokens, 5, temperature=0), written)


def test_a_model_that_fails_to_write_still_trains() -> None:
    model = model_of(SMALL).train()
    with pytest.raises(ValueError, match="temperature"):
        model.generate(tokens_of(2, 3), 5, temperature=-1)
    assert all(module.training for module in model.modules())


def test_a_full_past_takes_no_more() -> None:
    model, past = model_of(SMALL), Past(4)
    model(tokens_of(2, 4), past)
    with pytest.raises(ValueError, match="5 tokens are more than capacity 4"):
        model(tokens_of(2, 1), past)


def test_nothing_new_is_the_text_itself() -> None:
    tokens = tokens_of(2, 3)
    assert torch.equal(model_of(SMALL).generate(tokens, 0), tokens)


def test_nothing_to_go_on_from_is_an_error() -> None:
    with pytest.raises(ValueError, match="no tokens"):
        model_of(SMALL).generate(tokens_of(2, 0), 3)


def test_more_tokens_than_max_seq_in_pieces_are_an_error() -> None:
    model, past = model_of(SMALL), Past(12)
    model(tokens_of(2, 6), past)
    with pytest.raises(ValueError, match=r"10.*9"):
        model(tokens_of(2, 4), past)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_kept_in_half_precision(dtype: torch.dtype) -> None:
    model, past = LanguageModel(CONFIGS["primer"]).to(dtype), Past(9)
    model(tokens_of(2, 4), past)
    assert {kept.dtype for kept in past.kept.values()} == {dtype}
    assert model.generate(tokens_of(2, 4), 3, temperature=0).shape == (2, 7)
