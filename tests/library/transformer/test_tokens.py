import json
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as TheirTokenizer
from tokenizers import models, pre_tokenizers, trainers

from labml_primer.training.corpus import load_plays
from labml_primer.transformer.tokens import (
    BYTES,
    Pair,
    Tokenizer,
    learn_merges,
    pretokens,
)

SIZE = 600
KNOWN = st.text("the them.THE, 'll's 12-34 é\n\t", max_size=60)


@cache
def play() -> str:
    return load_plays()["macbeth"]


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer(learn_merges(play(), SIZE))


def theirs() -> TheirTokenizer:
    found = TheirTokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return found


@cache
def learned_by_others() -> TheirTokenizer:
    found = theirs()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    found.train_from_iterator([play()], trainer)
    return found


@given(text=st.text())
def test_decoding_gives_back_every_text(text: str):
    assert "".join(pretokens(text)) == text
    tokens = tokenizer().encode(text)
    assert tokenizer().decode(tokens) == text
    assert all(0 <= token < SIZE for token in tokens)


def test_the_library_tokenizers_learns_the_same_tokens_from_a_play():
    model = json.loads(learned_by_others().to_str())["model"]
    names = sorted(model["vocab"], key=model["vocab"].__getitem__)
    assert len(names) == len(tokenizer().tokens) == SIZE
    assert names[: len(BYTES)] == sorted(pre_tokenizers.ByteLevel.alphabet())
    byte_of = dict(zip(names, BYTES, strict=False))
    assert tokenizer().tokens == [bytes(byte_of[c] for c in name) for name in names]


@given(text=KNOWN)
def test_the_library_tokenizers_has_the_same_words(text: str):
    found = theirs().pre_tokenizer.pre_tokenize_str(text)
    assert pretokens(text) == [text[start:end] for _, (start, end) in found]


@settings(deadline=None)
@given(text=KNOWN)
def test_the_library_tokenizers_cuts_texts_alike(text: str):
    assert tokenizer().encode(text) == learned_by_others().encode(text).ids


def test_the_library_tokenizers_cuts_another_play_alike():
    other = load_plays()["richard-ii"]
    assert tokenizer().encode(other) == learned_by_others().encode(other).ids


def recounted(text: str, size: int) -> list[Pair]:
    """Byte pair encoding that counts all pairs again for each merge, of all words one by one."""
    words = [[BYTES.index(byte) for byte in word.encode()] for word in pretokens(text)]
    merges: list[Pair] = []
    for number in range(256, size):
        counts = Counter(pair for word in words for pair in pairwise(word))
        best = max(sorted(counts), key=counts.__getitem__)
        merges.append(best)
        for word in words:
            for i in range(len(word) - 1):
                if tuple(word[i : i + 2]) == best:
                    word[i : i + 2] = [number]
    return merges


@settings(max_examples=50, deadline=None)
@given(text=st.text("abc d", min_size=12, max_size=80))
def test_each_merge_is_the_most_frequent_pair_and_of_several_the_smallest(text: str):
    size = 256
    while True:  # as many as the text has
        try:
            merges = learn_merges(text, size)
        except ValueError:
            break
        assert merges == recounted(text, size)
        size += 1


def test_a_smaller_vocabulary_is_the_beginning_of_a_larger_one():
    merges = learn_merges(play(), SIZE)
    assert learn_merges(play(), SIZE - 100) == merges[:-100]


def test_no_token_reaches_from_one_word_into_the_next():
    for token in tokenizer().tokens:
        assert b" " not in token[1:] or token.isspace()


def test_a_text_without_enough_pairs_is_refused():
    assert len(learn_merges("abab", 258)) == 2
    with pytest.raises(ValueError, match="pairs for 258 tokens, not for 300"):
        learn_merges("abab", 300)
    with pytest.raises(ValueError, match="pairs for 256 tokens, not for 257"):
        learn_merges("", 257)


@pytest.mark.parametrize("number", [-1, SIZE])
def test_a_number_that_is_no_token_is_refused(number: int):
    with pytest.raises(ValueError, match=f"{number} is not in 0 to {SIZE - 1}"):
        tokenizer().decode([0, number])


def test_part_of_a_character_is_shown_as_unknown():
    tokens = tokenizer().encode("☕")
    assert tokenizer().decode(tokens[:-1]) == "�"
