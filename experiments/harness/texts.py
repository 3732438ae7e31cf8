"""Texts for long runs: the plays by character or by subword, or your own by byte."""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labml_primer.training.corpus import VALIDATION_PLAYS, load_corpus, load_plays

PLAYS = ("characters", "subwords")
"""The two ways to read the plays."""

SUBWORDS = 2048
"""Vocabulary size of the subwords. In the held-out plays, one has 2.6 to 2.8 characters on average."""


class Files:
    """The bytes of several files as one long text. It stays on disk; only what is asked for is read."""

    def __init__(self, paths: list[Path]):
        self.paths, self.sizes = paths, [path.stat().st_size for path in paths]
        self.ends = torch.tensor(self.sizes).cumsum(0)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, places: Tensor) -> Tensor:
        """Return the bytes at `places`, in the same shape, as a tensor would."""
        parts = torch.bucketize(places, self.ends, right=True)
        found = torch.empty_like(places)
        for number in parts.unique().tolist():
            here, size = parts == number, self.sizes[number]
            # Mapped only now, because a process can map about 65,000 files at a time.
            part = torch.from_file(
                str(self.paths[number]), size=size, dtype=torch.uint8
            )
            found[here] = part[places[here] - self.ends[number] + size].long()
        return found


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts of tokens below `vocab_size`: one to learn from, and the held-out ones.

    `characters` has the mean number of characters per token of each play. Dividing by it turns a loss
    per token into a loss per character. `digest` is a hash of own texts.
    """

    train: Tensor  # this and held-out texts can be `Files`, which are indexed in the same way
    held_out: dict[str, Tensor]
    characters: dict[str, float]
    vocab_size: int
    digest: str = ""


@cache
def load_texts(data: str) -> Texts:
    """Return the plays as `"characters"` or as `"subwords"`, or the texts of a folder."""
    if data not in PLAYS:
        return own_texts(Path(data))
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


def own_texts(folder: Path) -> Texts:
    """Return the texts of a folder: all of `train/**/*.txt` to learn from, and each of `held-out/**/*.txt`.

    A held-out text is named after its path: that of `held-out/plays/hamlet.txt` is "plays/hamlet". A token is
    a byte, so any language and any file will do. Empty files are left out. Raises `ValueError` if there are
    none.
    """
    paths = {
        part: [
            path
            for path in sorted((folder / part).rglob("*.txt"))
            if path.stat().st_size
        ]
        for part in ("train", "held-out")
    }
    for part, found in paths.items():
        if not found:
            raise ValueError(
                f"{folder / part} has no text, a file whose name ends in .txt"
            )
    held_out, characters = dict[str, Any](), {}
    for path in paths["held-out"]:
        name = path.relative_to(folder / "held-out").with_suffix("").as_posix()
        held_out[name] = Files([path])
        characters[name] = characters_in(path) / path.stat().st_size
    train: Any = Files(paths["train"])
    digest = digest_of(folder, [*paths["train"], *paths["held-out"]])
    return Texts(train, held_out, characters, vocab_size=256, digest=digest)


def characters_in(path: Path) -> int:
    """Return the number of characters of a text, read in parts."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return sum(map(len, iter(lambda: file.read(2**20), "")))


def digest_of(folder: Path, paths: list[Path]) -> str:
    """Return a hash of the files' names in `folder` and of their bytes."""
    whole = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            own = hashlib.file_digest(file, "sha256").hexdigest()
        name = path.relative_to(folder).as_posix()
        whole.update(f"{name}\0{own}\n".encode())
    return whole.hexdigest()
