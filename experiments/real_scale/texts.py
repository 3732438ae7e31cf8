"""Texts of your own: read by byte, from files that stay on disk."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.harness.texts import Texts, load_texts
from experiments.records.runs import HELD_OUT


@cache
def texts_of(data: str) -> Texts:
    """Return a plan's texts, or those of the folder `data`. Raises `ValueError` as `own_texts` does."""
    return load_texts(data) if data in HELD_OUT else own_texts(Path(data))


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
