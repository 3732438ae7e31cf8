"""Write and read files of torch: a file is whole or it is not there."""

import os
from pathlib import Path
from typing import Any

import torch


def write_atomically(path: Path, contents: dict[str, Any]) -> None:
    """Save `contents` with torch. `path` never holds a partly written file. Raises `OSError` on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            torch.save(contents, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, RuntimeError) as error:
        partial.unlink(missing_ok=True)
        raise not_written(path, error) from error


def not_written(path: Path, error: BaseException) -> OSError:
    """Return the error to raise if `path` cannot be written."""
    # torch's own error does not name the cause, such as a full disk.
    return OSError(
        f"{path} cannot be written ({error.__context__ or error}). If the disk is full, make room; the last "
        "checkpoint is kept, and the same command continues from it"
    )


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint; it is empty if there is none. Raises `ValueError` if it cannot be read."""
    if not path.exists():
        return {}
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return state
    except Exception as error:  # torch has many kinds for damaged files
        raise ValueError(
            f"{path} cannot be read ({error}). If it is damaged, delete it: then the run starts from its "
            "first step."
        ) from None
