"""Texts for long runs: the plays, by character or by subword, and code by character."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from experiments.records.runs import HELD_OUT
from labml_primer.training.corpus import (
    encode_text,
    load_plays,
)

SUBWORDS = 2048
"""Vocabulary size of the subwords. In the held-out plays, one has 2.6 to 2.8 characters on average."""

SYMPY = "1.14.0"
"""The version that `requirements.lock` has."""
NOT_READ = {"tests", "benchmarks", "_antlr"}
"""Folders that are left out: what tests the code, and what a program wrote."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts of tokens below `vocab_size`: one to learn from, and the held-out ones.

    `characters` has the mean number of characters per token of each play. Dividing by it turns a loss
    per token into a loss per character. `digest` is a hash of own texts.
    """

    train: Tensor  # own texts are `experiments.real_scale.texts.Files`, which are indexed in the same way
    held_out: dict[str, Tensor]
    characters: dict[str, float]
    vocab_size: int
    digest: str = ""

    def refuse_short(self, data: str, seq: int) -> None:
        """Raise `ValueError` if a text, which is of `data`, is shorter than a window of `seq + 1` tokens."""
        held_out = {f"held-out text {name!r}": x for name, x in self.held_out.items()}
        for name, text in {"text to learn from": self.train, **held_out}.items():
            if len(text) <= seq:
                raise ValueError(
                    f"{data}: the {name} has {len(text)} tokens, and a window has seq + 1 = "
                    f"{seq + 1}; lower seq, or take a longer text"
                )


@cache
def load_texts(data: str) -> Texts:
    """Return the plays as `"characters"` or as `"subwords"`, or the characters of `"code"`.

    Raises `ValueError` for anything else.
    """
    if data not in HELD_OUT:
        raise ValueError(
            f"data {data!r} is not one of {', '.join(HELD_OUT)}. For texts of your own start the run with: "
            "python -m experiments.real_scale.run RUN.toml FOLDER"
        )
    texts = load_sources() if data == "code" else load_plays()
    read = by_subword if data == "subwords" else by_character
    return read(texts, HELD_OUT[data])


def by_subword(texts: Mapping[str, str], held_out: Sequence[str]) -> Texts:
    """Return texts by subword, with those of these names held out."""
    # Its threads would use a second core, and warn whenever a process is forked.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    training = "\n".join(text for name, text in texts.items() if name not in held_out)
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

    others = {name: encode(texts[name]) for name in held_out}
    characters = {name: len(texts[name]) / len(others[name]) for name in held_out}
    return Texts(encode(training), others, characters, subwords.get_vocab_size())


def by_character(texts: Mapping[str, str], held_out: Sequence[str]) -> Texts:
    """Return texts by character, with those of these names held out."""
    symbols = "".join(sorted(set().union(*texts.values())))
    training = "\n".join(text for name, text in texts.items() if name not in held_out)
    others = {name: encode_text(texts[name], symbols) for name in held_out}
    ones = dict.fromkeys(held_out, 1.0)
    return Texts(encode_text(training, symbols), others, ones, len(symbols))


def load_sources() -> dict[str, str]:
    """Return the code of each package of SymPy by name, sorted; the name of the modules outside is `sympy`.

    PyTorch requires SymPy, so it is there wherever a model can be trained. It is read, and never imported.
    The few files with characters that are not ASCII are left out. Raises `ValueError` for another version.
    """
    spec = find_spec("sympy")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            f"the text `code` is in SymPy; install it: pip install sympy=={SYMPY}"
        )
    root = Path(spec.origin).parent
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        first, *others = path.relative_to(root).parts
        text = path.read_text(encoding="utf-8")
        if text.isascii() and not NOT_READ & {first, *others}:
            found.setdefault(first if others else "sympy", []).append(text)
    release = (root / "release.py").read_text(encoding="utf-8")
    if SYMPY not in release or not {*HELD_OUT["code"]} <= found.keys():
        raise ValueError(f"{root} is not SymPy {SYMPY}, with which runs are recorded")
    return {name: "".join(texts) for name, texts in sorted(found.items())}
