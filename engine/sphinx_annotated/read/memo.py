"""Results that follow from the texts of modules, kept in a file from one build to the next.

Each is kept with a digest of all that it follows from, and is computed again when that changes. So a file's
time, which may be wrong, makes no result old.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Results = dict[
    str, tuple[str, Any]
]  # by name: a digest of what it follows from, and it


class Memo:
    """The results of a book's modules, in a file if there is a path for it."""

    def __init__(self, path: Path | None = None):
        self.path = path
        self.before: dict[str, Results] = _read(path) if path else {}
        self.now: dict[str, Results] = {}

    def once(self, place: str, name: str, given: str, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, now or when it was last called for the same ``given``."""
        results = self.now.get(place)
        if results is None:
            results = self.now[place] = dict(self.before.get(place, {}))
        known = results.get(name)
        if known is None or known[0] != given:
            known = results[name] = given, work()
        result: T = known[1]
        return result

    def save(self) -> None:
        """Write the results of the places that were asked for, completely or not at all."""
        if self.path is None or self.now == self.before:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps([engine(), self.now])
        part = self.path.with_suffix(f".{os.getpid()}.part")
        try:
            with suppress(OSError):  # the next build computes them again
                part.write_text(f"{digest_of([content])}\n{content}", encoding="utf-8")
                part.replace(self.path)
        finally:
            part.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Results]:
    """Return the results in a file, which are none if it is damaged or another engine's."""
    try:
        seal, _, content = path.read_text(encoding="utf-8").partition("\n")
        if seal != digest_of([content]):
            return {}
        version, found = json.loads(content)
        if version != engine():
            return {}
    except (OSError, ValueError):
        return {}
    return {
        place: {name: (given, result) for name, (given, result) in results.items()}
        for place, results in found.items()
    }


@cache
def engine() -> str:
    """Return a digest of what computes the results: this engine's code, and Python."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return digest_of([sys.version, *(path.read_text("utf-8") for path in files)])


def digest_of(parts: Iterable[str]) -> str:
    """Return a digest of several texts."""
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:24]
