"""What the chapter on the Transformer and the language model promises."""

import math
from dataclasses import FrozenInstanceError, replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
from labml_primer.transformer.model import (
    Config,
    LanguageModel,
    Transformer,
    beam_search,
    greedy_decode,
    learning_rate,
    length_penalty,
)

START, END = 1, 2
SMALL = Config(vocab_size=11, d_model=12, heads=3, d_ff=20, layers=2, max_seq=9)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def transformer(target_vocab: int = 5, std: float = 0.5) -> Transformer:
    """Random, with large weights, so that its choices are definite and differ."""
    model = Transformer(9, target_vocab, 12, 3, 20, layers=2, max_seq=16, dropout=0.0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model.double().eval()


def sources(batch: int = 6) -> Tensor:
    source = torch.randint(1, 9, (batch, 7))
    source[1:, 5:] = 0
    return source


def log_probability(model: Transformer, source: Tensor, tokens: list[int]) -> float:
    """By teacher forcing, in one pass."""
    target = torch.tensor([[START, *tokens]])
    with torch.no_grad():
        log_p = model(source, target[:, :-1]).log_softmax(dim=-1)
    return log_p.gather(2, target[:, 1:, None]).sum().item()


def cut(tokens: Tensor) -> list[int]:
    """Up to the end, which is included."""
    row = tokens.tolist()
    return row[: row.index(END) + 1] if END in row else row


# The Transformer


def test_each_sequence_of_a_batch_is_as_if_it_were_alone() -> None:
    model = transformer()
    source, target = sources(), torch.randint(0, 5, (6, 4))
    result = model(source, target)
    torch.testing.assert_close(result[0], model(source[:1], target[:1])[0])
    torch.testing.assert_close(result[1], model(source[1:2, :5], target[1:2])[0])


def test_a_logit_depends_on_no_later_target() -> None:
    model = transformer()
    source, target = sources(), torch.randint(0, 5, (6, 4))
    other = target.clone()
    other[:, 2:] = (other[:, 2:] + 1) % 5
    assert torch.equal(model(source, other)[:, :2], model(source, target)[:, :2])


def test_a_logit_depends_on_every_source_token() -> None:
    model = transformer()
    source, target = torch.randint(1, 9, (1, 7)), torch.randint(0, 5, (1, 4))
    for i in range(7):
        other = source.clone()
        other[:, i] = other[:, i] % 8 + 1
        assert (model(other, target) != model(source, target)).all()


def test_the_output_matrix_is_the_targets_embedding() -> None:
    model = transformer()
    memory, mask = model.encode(sources())
    target = torch.randint(0, 5, (6, 4))
    x = model.decoder(model.positions(model.target_embedding(target)), memory, mask)
    table = model.target_embedding.table.weight
    expected = torch.einsum("btd,vd->btv", x, table)
    torch.testing.assert_close(model.decode(target, memory, mask), expected)


def test_the_papers_base_model_has_63_million_parameters() -> None:
    with torch.device("meta"):
        model = Transformer(37_000, 37_000)
    d, d_ff = 512, 2048
    encoder = 4 * (d**2 + d) + 2 * d * d_ff + d_ff + d + 4 * d
    decoder = 8 * (d**2 + d) + 2 * d * d_ff + d_ff + d + 6 * d
    expected = 6 * (encoder + decoder) + 4 * d + 2 * 37_000 * d
    assert sum(p.numel() for p in model.parameters()) == expected
    assert round((expected - 37_000 * d) / 1e6) == 63


def test_it_learns_to_reverse() -> None:
    model = Transformer(9, 9, 32, 2, 64, layers=1, max_seq=8, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(120):
        source = torch.randint(3, 9, (64, 3))
        start = torch.full((64, 1), START)
        target = torch.cat([start, source.flip(1)], dim=1)
        loss = F.cross_entropy(model(source, target[:, :-1]).mT, target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


@pytest.mark.parametrize(
    ("batch", "source", "target"), [(0, 5, 3), (1, 1, 1), (3, 2, 7)]
)
def test_any_batch_and_any_length(batch: int, source: int, target: int) -> None:
    model = transformer()
    tokens = torch.randint(1, 9, (batch, source)), torch.randint(0, 5, (batch, target))
    assert model(*tokens).shape == (batch, target, 5)


def test_a_source_longer_than_max_seq_is_an_error() -> None:
    with pytest.raises(ValueError, match="16"):
        transformer().encode(torch.ones(1, 17, dtype=torch.long))


# The learning rate


def test_the_rate_climbs_in_a_line_then_falls_with_the_root() -> None:
    peak = learning_rate(4000, 512)
    assert peak == pytest.approx((512 * 4000) ** -0.5)
    assert learning_rate(1000, 512) == pytest.approx(peak / 4)
    assert learning_rate(16_000, 512) == pytest.approx(peak / 2)
    assert max(learning_rate(s, 512) for s in range(1, 20_000)) == pytest.approx(peak)


def test_a_rate_before_the_first_step_is_an_error() -> None:
    with pytest.raises(ValueError, match="step 0"):
        learning_rate(0, 512)


# Decoding


def test_greedy_takes_the_most_probable_token_each_time() -> None:
    model, source = transformer(), sources()
    for row, answer in zip(
        source, greedy_decode(model, source, START, END, 6), strict=True
    ):
        tokens: list[int] = []
        while len(tokens) < 6 and END not in tokens:
            with torch.no_grad():
                logits = model(row[None], torch.tensor([[START, *tokens]]))
            tokens.append(int(logits[0, -1].argmax()))
        assert cut(answer) == tokens


def test_a_beam_of_one_is_greedy() -> None:
    for _ in range(5):
        model, source = transformer(), sources()
        answers, _ = beam_search(model, source, START, END, 6, beams=1)
        assert torch.equal(answers[:, 0], greedy_decode(model, source, START, END, 6))


def test_after_the_end_there_is_padding() -> None:
    lengths = set()
    for _ in range(5):
        model, source = transformer(), sources()
        found, _ = beam_search(model, source, START, END, 6, beams=3)
        for rows in (greedy_decode(model, source, START, END, 6), found.flatten(0, 1)):
            for row in rows:
                lengths.add(len(cut(row)))
                assert (row[len(cut(row)) :] == model.padding).all()
    assert len(lengths) > 2


def brute_force(
    model: Transformer, source: Tensor, alpha: float
) -> list[tuple[float, list[int]]]:
    """Every sequence of at most three tokens that ends, or was cut off at three."""
    sequences = [
        list(tokens)
        for length in (1, 2, 3)
        for tokens in product(range(5), repeat=length)
        if END not in tokens[:-1] and (tokens[-1] == END or length == 3)
    ]
    scored = []
    for tokens in sequences:
        penalty = length_penalty(torch.tensor(float(len(tokens))), alpha).item()
        scored.append((log_probability(model, source, tokens) / penalty, tokens))
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_wide_beam_finds_what_trying_everything_finds(alpha: float) -> None:
    model, source = transformer(std=0.3), sources(2)
    answers, log_p = beam_search(model, source, START, END, 3, beams=100, alpha=alpha)
    for row in range(2):
        expected = brute_force(model, source[row : row + 1], alpha)
        found = [cut(answer) for answer in answers[row]][: len(expected)]
        assert found == [tokens for _, tokens in expected]
        # All of the probability, and nothing twice.
        assert log_p[row].exp().sum().item() == pytest.approx(1.0, abs=1e-5)
        assert (log_p[row, len(expected) :] == -math.inf).all()


def test_a_beam_tells_the_log_probability_of_what_it_found() -> None:
    model, source = transformer(), sources()
    answers, log_p = beam_search(model, source, START, END, 5, beams=3)
    for row in range(6):
        for answer, value in zip(answers[row], log_p[row], strict=True):
            expected = log_probability(model, source[row : row + 1], cut(answer))
            assert value.item() == pytest.approx(expected, abs=1e-4)


def test_a_beam_treats_each_source_as_if_it_were_alone() -> None:
    model, source = transformer(), sources()
    answers, log_p = beam_search(model, source, START, END, 5, beams=3)
    for row in range(6):
        alone, value = beam_search(model, source[row : row + 1], START, END, 5, beams=3)
        assert torch.equal(answers[row, :, : alone.size(2)], alone[0])
        torch.testing.assert_close(log_p[row], value[0])


def test_a_length_penalty_prefers_longer_answers() -> None:
    short = long = 0
    for _ in range(5):
        model, source = transformer(), sources()
        for alpha in (0.0, 3.0):
            answers, _ = beam_search(model, source, START, END, 6, beams=8, alpha=alpha)
            length = sum(len(cut(answer)) for answer in answers[:, 0])
            short, long = (
                (short + length, long) if alpha == 0 else (short, long + length)
            )
    assert long > short


def test_a_beam_of_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="beams 0"):
        beam_search(transformer(), sources(), START, END, 5, beams=0)


def test_an_empty_batch_is_decoded_to_nothing() -> None:
    source = torch.empty(0, 7, dtype=torch.long)
    assert greedy_decode(transformer(), source, START, END, 5).size(0) == 0
    answers, log_p = beam_search(transformer(), source, START, END, 5, beams=3)
    assert answers.shape[:2] == log_p.shape == (0, 3)


# The language model


def test_the_future_changes_nothing_before_it() -> None:
    model = LanguageModel(SMALL)
    tokens = torch.randint(0, 11, (3, 9))
    other = tokens.clone()
    other[:, 5:] = (other[:, 5:] + 1) % 11
    moved = (model(other) - model(tokens)).abs().amax(dim=(0, 2))
    assert (moved[:5] == 0).all()
    assert (moved[5:] > 0).all()


def test_a_prefix_gives_what_it_gives_within_the_whole() -> None:
    model = LanguageModel(SMALL).double()
    tokens = torch.randint(0, 11, (3, 9))
    torch.testing.assert_close(model(tokens[:, :4]), model(tokens)[:, :4])


@pytest.mark.parametrize("tokens", [[3, 3, 3], [3, 4, 4]])
def test_it_knows_the_order_of_what_it_has_read(tokens: list[int]) -> None:
    model = LanguageModel(SMALL)
    logits = model(torch.tensor([tokens]))[0]
    assert (logits[1] != logits[2]).any()


def test_the_loss_before_the_first_step_is_log_of_the_vocabulary() -> None:
    model = LanguageModel(Config(vocab_size=80))
    tokens = torch.randint(0, 80, (8, 128))
    loss = F.cross_entropy(model(tokens)[:, :-1].mT, tokens[:, 1:])
    assert abs(loss.item() - math.log(80)) < 0.1


def test_large_tied_rows_would_foretell_repetition() -> None:
    model = LanguageModel(Config(vocab_size=80))
    nn.init.normal_(model.embedding.weight)
    tokens = torch.randint(0, 80, (8, 128))
    assert torch.equal(model(tokens).argmax(dim=-1), tokens)


@pytest.mark.parametrize(
    "config", [SMALL, Config(vocab_size=80), replace(SMALL, d_ff=7, layers=1)]
)
def test_it_has_as_many_parameters_as_the_formula(config: Config) -> None:
    d, d_ff = config.d_model, config.d_ff
    expected = (config.vocab_size + config.max_seq) * d + 2 * d
    expected += config.layers * (4 * d**2 + 2 * d * d_ff + 9 * d + d_ff)
    model = LanguageModel(config)
    assert sum(p.numel() for p in model.parameters()) == expected


def test_one_matrix_stands_at_both_ends() -> None:
    model = LanguageModel(SMALL)
    model(torch.tensor([[3]])).logsumexp(-1).sum().backward()
    gradient = model.embedding.weight.grad
    assert gradient is not None
    # Token 3 was read; every other was only predicted, and learns nonetheless.
    assert (gradient.abs().amax(dim=1) > 0).all()


def test_attention_and_activation_are_values_of_the_configuration() -> None:
    config = replace(SMALL, attention=MultiDConvHeadAttention, activation=SquaredReLU)
    model = LanguageModel(config)
    kinds = [type(module) for module in model.modules()]
    assert kinds.count(MultiDConvHeadAttention) == kinds.count(SquaredReLU) == 2
    assert nn.ReLU not in kinds
    assert model(torch.randint(0, 11, (2, 9))).shape == (2, 9, 11)


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        SMALL.layers = 3  # type: ignore[misc]


def test_more_tokens_than_max_seq_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"10.*9"):
        LanguageModel(SMALL)(torch.zeros(1, 10, dtype=torch.long))


def test_heads_that_do_not_divide_d_model_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"12.*5"):
        LanguageModel(replace(SMALL, heads=5))


@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 9)])
def test_any_batch_and_any_length_to_max_seq(shape: tuple[int, int]) -> None:
    tokens = torch.randint(0, 11, shape)
    assert LanguageModel(SMALL)(tokens).shape == (*shape, 11)


def test_bfloat16_stays_near_float32() -> None:
    model = LanguageModel(SMALL)
    tokens = torch.randint(0, 11, (2, 9))
    expected = model(tokens)
    result = model.bfloat16()(tokens)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result.float(), expected, atol=0.05, rtol=0)


def test_a_saved_model_comes_back_the_same() -> None:
    model, other = LanguageModel(SMALL), LanguageModel(SMALL)
    other.load_state_dict(model.state_dict())
    tokens = torch.randint(0, 11, (2, 9))
    assert torch.equal(other(tokens), model(tokens))
