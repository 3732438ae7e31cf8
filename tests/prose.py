"""Helpers of chapter tests: a chapter's prose, and which of two models ends with the lower loss."""

import re
from pathlib import Path
from types import ModuleType

from experiments.records import Runs


def said_in(chapter: ModuleType) -> str:
    """Return a chapter's prose and code as one line."""
    source = Path(str(chapter.__file__)).read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*(# )?", " ", source)


def ahead(runs: Runs, better: str, worse: str) -> list[bool]:
    """Return for each seed whether `better` ends with a lower loss than `worse`."""
    pairs = zip(runs[better], runs[worse], strict=True)
    return [first["loss"][-1] < second["loss"][-1] for first, second in pairs]
