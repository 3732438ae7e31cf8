"""Promises of the counts: they are Witten and Bell's or Kneser and Ney's, and predict what is new."""

import math
from collections import Counter
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures.training import counting as picture
from torch import Tensor

from labml_primer.training.corpus import Corpus, encode_text
from labml_primer.training.counted import (
    CountsOfRead,
    counted_loss,
    longest,
    places_read,
)
from labml_primer.training.counting import (
    Counts,
    KneserNey,
    discounts,
    losses,
    ngrams,
    probability,
    with_window,
    write,
)
from labml_primer.training.loop import draw_windows, held_out_windows

V = 4
TEXTS = st.lists(st.integers(0, V - 1), min_size=4, max_size=40)


def by_recursion(pieces: list[list[int]], context: list[int], token: int) -> float:
    """The probability of a token, from dictionaries of lists, with no table of numbers."""
    shorter = by_recursion(pieces, context[1:], token) if context else 1 / V
    n = len(context) + 1
    followed = Counter(
        piece[i + n - 1]
        for piece in pieces
        for i in range(len(piece) - n + 1)
        if piece[i : i + n - 1] == context
    )
    if not followed:
        return shorter
    mixed = followed[token] + len(followed) * shorter
    return mixed / (followed.total() + len(followed))


@settings(max_examples=30, deadline=None)
@given(TEXTS, TEXTS, st.integers(1, 4))
def test_probabilities_are_those_of_counting_with_dictionaries(
    counted: list[int], read: list[int], order: int
) -> None:
    found = Counts(torch.tensor(counted), order, V).probabilities(torch.tensor(read))
    for n in range(order + 1):
        expected = [
            by_recursion([counted], read[max(0, i - n + 1) : i], token) if n else 1 / V
            for i, token in enumerate(read)
        ]
        assert found[n].tolist() == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 3))
def test_the_plain_function_and_the_tables_give_the_same_probabilities(
    counted: list[int], read: list[int], n: int
) -> None:
    order = min(n + 1, len(counted))
    found = Counts(torch.tensor(counted), order, V).probabilities(torch.tensor(read))
    for i in range(order - 1, len(read)):
        plain = probability(counted, read[i - order + 1 : i], read[i], V)
        assert found[order, i].item() == pytest.approx(plain)


def test_words_are_counted_as_the_formula_is_written_out() -> None:
    ten = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"]
    alone = (1 + 8 * 1 / 8) / (10 + 8)
    assert probability(ten, [], "or", 8) == pytest.approx(alone)
    after_be = (1 + 2 * alone) / (2 + 2)
    assert probability(ten, ["be"], "or", 8) == pytest.approx(after_be)
    assert probability(ten, ["question"], "or", 8) == pytest.approx(alone)


def test_pieces_are_counted_without_what_crosses_their_borders() -> None:
    pieces = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 2, 2]]
    found = Counts(torch.tensor(pieces), 3, V).probabilities(torch.tensor([3, 3, 2]))
    assert found[3, 2].item() == pytest.approx(by_recursion(pieces, [3, 3], 2))
    joined = Counts(torch.tensor(pieces).flatten(), 3, V)
    assert joined.probabilities(torch.tensor([3, 3, 2]))[3, 2] != found[3, 2]


def kneser_ney(
    pieces: list[list[int]], context: list[int], token: int, *, kinds: bool = False
) -> float:
    """The probability of a token by Chen and Goodman's formulas, of lists; `kinds` for short orders."""
    n = len(context) + 1

    def times(gram: list[int]) -> int:
        before = [
            piece[i - 1] if i else None
            for piece in pieces
            for i in range(len(piece) - n + 1)
            if piece[i : i + n] == gram
        ]
        return len({*before} - {None}) if kinds else len(before)

    every = Counter(times([*gram]) for gram in product(range(V), repeat=n))
    n1, n2, n3, n4 = (every[i] for i in range(1, 5))
    d = {1: 0.5, 2: 1.0, 3: 1.5}
    if n1 and n2 and n3 and n4:
        y = n1 / (n1 + 2 * n2)
        by_formula = {1: 1 - 2 * y * n2 / n1, 2: 2 - 3 * y * n3 / n2}
        by_formula[3] = 3 - 4 * y * n4 / n3
        d = by_formula if min(by_formula.values()) >= 0 else d
    shorter = 1 / V if n == 1 else kneser_ney(pieces, context[1:], token, kinds=True)
    after = {c: times([*context, c]) for c in range(V)}
    total = sum(after.values())
    if not total:
        return shorter
    seen = {c: count for c, count in after.items() if count}
    taken = sum(d[min(count, 3)] for count in seen.values())
    own = seen[token] - d[min(seen[token], 3)] if token in seen else 0
    return own / total + taken / total * shorter


# Random letters seldom have all counts from 1 to 4, so half of the texts are squares, where few are frequent.
SKEWED = st.lists(
    st.integers(0, 99).map(lambda x: x * x * V // 10_000), min_size=40, max_size=150
)


@settings(max_examples=10, deadline=None)
@given(TEXTS | SKEWED, TEXTS)
def test_kneser_ney_is_the_formulas_of_chen_and_goodman(
    counted: list[int], read: list[int]
) -> None:
    found = KneserNey(torch.tensor(counted), 3, V).probabilities(torch.tensor(read))
    for n in range(4):
        expected = [
            kneser_ney([counted], read[max(0, i - n + 1) : i], token) if n else 1 / V
            for i, token in enumerate(read)
        ]
        assert found[n].tolist() == pytest.approx(expected)


def test_discounts_come_from_counts_of_counts_and_are_fixed_where_one_is_missing() -> (
    None
):
    count = torch.tensor([1] * 8 + [2] * 4 + [3] * 2 + [4] + [9])
    y = 8 / 16
    expected = [0, 1 - 2 * y * 4 / 8, 2 - 3 * y * 2 / 4, 3 - 4 * y * 1 / 2]
    assert discounts(count).tolist() == pytest.approx(expected)
    for missing in (1, 2, 3, 4):
        assert discounts(count[count != missing]).tolist() == [0, 0.5, 1, 1.5]
    many_threes = torch.tensor([1, 1, 2, 4] + [3] * 20)  # D2 would be below 0
    assert discounts(many_threes).tolist() == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize("kind", [Counts, KneserNey])
@settings(max_examples=30, deadline=None)
@given(TEXTS | SKEWED, TEXTS)
def test_probabilities_after_any_context_sum_to_one_and_none_is_zero(
    kind: type[Counts], counted: list[int], context: list[int]
) -> None:
    counts = kind(torch.tensor(counted), 4, V)
    rows = torch.tensor([[*context, token] for token in range(V)])
    p = counts.probabilities(rows)[..., -1]
    torch.testing.assert_close(p.sum(dim=1), torch.ones(5).double())
    assert p.min() > 0


@pytest.mark.parametrize("kind", [Counts, KneserNey])
def test_a_context_that_was_never_counted_predicts_as_the_shorter_one(
    kind: type[Counts],
) -> None:
    counts = kind(torch.tensor([0, 1, 2, 0, 1, 2, 0, 2, 1]), 3, V)
    never = counts.probabilities(torch.tensor([[3, 0, 1], [1, 0, 1]]))[3, :, 2]
    assert never[0] == never[1] > 0  # neither "30" nor "10" was counted, "01" was
    known = counts.probabilities(torch.tensor([1, 2, 0]))[3, 2]
    assert known != counts.probabilities(torch.tensor([0, 2, 0]))[3, 2]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, V - 1), min_size=2, max_size=30), st.integers(1, 4))
def test_a_cache_adds_what_came_before_in_the_same_window(
    window: list[int], n: int
) -> None:
    p = torch.rand(len(window), dtype=torch.float64)
    found = with_window(p[None], torch.tensor([window]), n, 3, V)[0]
    for at in range(len(window)):
        context = window[at - n + 1 : at] if at >= n - 1 else None
        followed = [
            window[i + n - 1]
            for i in range(at - n + 1)
            if window[i : i + n - 1] == context
        ]
        hits = followed.count(window[at])
        expected = (hits + 3 * p[at].item()) / (len(followed) + 3)
        assert found[at].item() == pytest.approx(expected)


def test_a_number_of_an_ngram_has_its_tokens_as_digits() -> None:
    assert ngrams(torch.tensor([1, 2, 3, 4]), 3, 10).tolist() == [123, 234]
    assert ngrams(torch.tensor([1, 2]), 3, 10).tolist() == []


def test_loss_is_the_mean_of_minus_log_p_without_the_first_token_of_each_piece() -> (
    None
):
    counts = Counts(torch.tensor([0, 1, 0, 2, 0, 1]), 2, V)
    text = torch.tensor([[0, 1, 2], [3, 0, 1]])
    p = counts.probabilities(text)
    expected = -p[..., 1:].log().mean(dim=(1, 2))
    torch.testing.assert_close(losses(counts, text), expected)
    assert losses(counts, text)[0].item() == pytest.approx(math.log(V))


@pytest.mark.parametrize(
    "length, order, vocab_size, message",
    [(3, 4, 10, "3 tokens have no n-gram of 4"), (99, 7, 2048, "do not fit into 64")],
)
def test_impossible_counts_are_refused(
    length: int, order: int, vocab_size: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Counts(torch.zeros(length, dtype=torch.long), order, vocab_size)


def test_the_longest_order_is_counted_and_the_next_one_refused() -> None:
    for vocab_size in (2, 96, 2048):
        order = longest(vocab_size)
        Counts(torch.zeros(99, dtype=torch.long), order, vocab_size)
        with pytest.raises(ValueError, match="do not fit into 64"):
            Counts(torch.zeros(99, dtype=torch.long), order + 1, vocab_size)


def test_tokens_whose_number_does_not_fit_and_tokens_that_are_no_integers_are_refused() -> (
    None
):
    with pytest.raises(ValueError, match="65 tokens of 2 kinds do not fit into 64"):
        ngrams(torch.zeros(65, dtype=torch.long), 65, 2)
    with pytest.raises(TypeError, match="float32, not integers"):
        ngrams(torch.tensor([0.9, 1.7]), 1, 2)


@pytest.mark.parametrize("token", [-1, 3])
def test_tokens_beyond_the_vocabulary_are_refused(token: int) -> None:
    counts = Counts(torch.tensor([0, 1, 2]), 2, 3)
    with pytest.raises(ValueError, match="not in 0 to 2"):
        counts.probabilities(torch.tensor([0, token]))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_tokens_of_a_narrow_type_are_counted_as_wide_ones(dtype: torch.dtype) -> None:
    text = torch.randint(83, (500,), generator=torch.Generator().manual_seed(0))
    expected = losses(Counts(text, 5, 83), text)
    assert torch.equal(losses(Counts(text.to(dtype), 5, 83), text.to(dtype)), expected)


def test_writing_continues_a_prompt_with_tokens_in_proportion_to_their_probability() -> (
    None
):
    counts = Counts(torch.tensor([0, 1] * 50), 2, 2)
    torch.manual_seed(0)
    text = write(counts, 2, torch.tensor([0]), 1000)
    assert text[0] == 0 and len(text) == 1001
    repeats = (text[1:] == text[:-1]).double().mean().item()
    both = torch.tensor([[0, 0], [1, 1]])
    assert repeats == pytest.approx(
        counts.probabilities(both)[2, :, 1].mean().item(), abs=0.03
    )


def a_corpus() -> Corpus:
    torch.manual_seed(0)
    text = torch.randint(V, (2000,)).cumsum(0) % V
    return Corpus(text[:1500], text[1500:], "abcd")


@settings(max_examples=10, deadline=None)
@given(
    TEXTS,
    st.lists(st.integers(0, 39), min_size=1, max_size=6),
)
def test_what_was_read_several_times_counts_once_and_nothing_across_a_gap(
    text: list[int], starts: list[int]
) -> None:
    starts = [start % (len(text) - 3) for start in starts]  # of windows of four
    read = sorted({start + i for start in starts for i in range(4)})
    pieces: list[list[int]] = []
    for place in read:
        if place - 1 in read:
            pieces[-1].append(text[place])
        else:
            pieces.append([text[place]])
    counts = CountsOfRead(torch.tensor(text), torch.tensor(read), 4, V)
    for n in (1, 2, 3):
        grams = [list(gram) for gram in product(range(V), repeat=n)]
        found = counts.probabilities(torch.tensor(grams))[n, :, -1]
        expected = [kneser_ney(pieces, gram[:-1], gram[-1]) for gram in grams]
        assert found.tolist() == pytest.approx(expected)


def test_counts_of_read_text_take_places_in_any_order_and_refuse_what_counts_refuse() -> (
    None
):
    text, wanted = torch.arange(40) % V, torch.tensor([0, 1, 2, 3, 3])
    places = torch.tensor([7, 3, 4, 5, 6, 5])
    found, same = (CountsOfRead(text, at, 4, V) for at in (places, places.unique()))
    assert torch.equal(found.probabilities(wanted), same.probabilities(wanted))
    with pytest.raises(ValueError, match="do not fit into 64 bits"):
        CountsOfRead(text, torch.arange(40), 7, 600)
    with pytest.raises(ValueError, match="have no n-gram of 4"):
        CountsOfRead(text, places[:2], 4, V)


def test_counted_loss_is_of_the_text_that_a_run_reads_and_is_evaluated_on() -> None:
    corpus = a_corpus()
    order, loss = counted_loss(corpus, steps=25, batch=4, seq=16, seed=3)
    places = places_read(1500, steps=25, batch=4, seq=16, seed=3)
    different = 7 * torch.arange(1500)  # each token once, so it says its place
    drawn: list[Tensor] = [draw_windows(different, 4, 16, 3, s) for s in range(1, 26)]
    assert different[places].tolist() == sorted({*torch.cat(drawn).flatten().tolist()})
    counts = CountsOfRead(corpus.train, places, 7, V)
    by_order = losses(counts, held_out_windows(corpus.validation, 16))
    assert loss == by_order.min().item() and order == by_order.argmin().item()


def test_pictured_probabilities_are_the_chapters() -> None:
    letters = "".join(sorted(picture.LETTERS))
    counts = Counts(encode_text(picture.TEXT, letters), 2, len(letters))
    after = [encode_text(f"o{letter}", letters) for letter in picture.LETTERS]
    p = counts.probabilities(torch.stack(after))[..., 1]
    assert pytest.approx(p[1].tolist()) == picture.UNIGRAM
    assert pytest.approx(p[2].tolist()) == picture.BIGRAM
