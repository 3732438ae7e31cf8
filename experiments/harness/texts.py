"""The plays as long runs read them: by character or by subword, and each held-out play alone."""

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
"""The size of the vocabulary of subwords. Each is about three characters."""


@dataclass(frozen=True, eq=False)
class Texts:
    """1-D tensors of numbers below `vocab_size`: one text to learn from, and the held-out plays.

    `characters` says how many characters a number stands for, in the mean of each play. It makes
    losses a number into losses a character.
    """

    train: Tensor
    held_out: dict[str, Tensor]
    characters: dict[str, float]
    vocab_size: int


@cache
def load_texts(data: str) -> Texts:
    """The plays as `"characters"` or as `"subwords"`."""
    plays = load_plays()
    if data == "characters":
        corpus = load_corpus()
        held_out = {play: corpus.encode(plays[play]) for play in VALIDATION_PLAYS}
        ones = dict.fromkeys(VALIDATION_PLAYS, 1.0)
        return Texts(corpus.train, held_out, ones, corpus.vocab_size)

    # Its threads would be a second core, and a warning wherever a process is forked.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    training = "\n".join(
        text for play, text in plays.items() if play not in VALIDATION_PLAYS
    )
    # Bytes are the alphabet, so there is no text that it cannot write.
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
