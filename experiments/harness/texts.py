"""The plays for long runs: by character or by subword, with each held-out play separate."""

import os
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from labml_primer.training.corpus import VALIDATION_PLAYS, load_corpus, load_plays

TUNING_PLAY, *REPORTED_PLAYS = VALIDATION_PLAYS
"""The comedy selects learning rates; the tragedy and the history are reported. Whole plays have no
scene in common, so the text that selected a rate is not part of what is reported."""

SUBWORDS = 2048
"""Vocabulary size of the subwords. Each is about three characters long."""


@dataclass(frozen=True, eq=False)
class Texts:
    """1-D tensors of tokens below `vocab_size`: a training text, and the held-out plays.

    `characters` has the mean number of characters per token of each play. Dividing by it turns a loss
    per token into a loss per character.
    """

    train: Tensor
    held_out: dict[str, Tensor]
    characters: dict[str, float]
    vocab_size: int


@cache
def load_texts(data: str) -> Texts:
    """Return the plays as `"characters"` or as `"subwords"`."""
    plays = load_plays()
    if data == "characters":
        corpus = load_corpus()
        held_out = {play: corpus.encode(plays[play]) for play in VALIDATION_PLAYS}
        ones = dict.fromkeys(VALIDATION_PLAYS, 1.0)
        return Texts(corpus.train, held_out, ones, corpus.vocab_size)

    # Its threads would use a second core, and warn whenever a process is forked.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    training = "\n".join(
        text for play, text in plays.items() if play not in VALIDATION_PLAYS
    )
    # The alphabet is all bytes, so every text can be encoded.
    subwords = Tokenizer(models.BPE())
    subwords.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=SUBWORDS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    subwords.train_from_iterator(training.splitlines(keepends=True), trainer)

    def encode(text: str) -> Tensor:
        return torch.tensor(subwords.encode(text).ids)

    held_out = {play: encode(plays[play]) for play in VALIDATION_PLAYS}
    characters = {play: len(plays[play]) / len(held_out[play]) for play in held_out}
    return Texts(encode(training), held_out, characters, subwords.get_vocab_size())
