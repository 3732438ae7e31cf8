"""How commands write files: whole, and with one line for the reader if the machine does not let them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sphinx_annotated.ends import is_refused


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give the name under which to write what is then this file, so that it never has a part alone."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, and its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as part:
        part.write_bytes(content)


@contextmanager
def said_if_refused(folder: Path) -> Iterator[None]:
    """End the command with one line if a file cannot be written, which may be in this folder."""
    try:
        yield
    except OSError as error:
        if not is_refused(error):
            raise
        path = error.filename2 or error.filename or folder
        sys.exit(
            f"{path}: {error.strerror}. Make room or change its rights, and repeat."
        )
