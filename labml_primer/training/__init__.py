"""What every chapter's runs share: a corpus, a training loop, and text out of a model.

Corpus, samples and timing need torch alone. `train` draws its progress with labml, which
is therefore imported when `train` is first asked for, and not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from labml_primer.training.corpus import Corpus, load_corpus
from labml_primer.training.sampling import sample
from labml_primer.training.timing import median_seconds

if TYPE_CHECKING:
    from labml_primer.training.loop import History, train

__all__ = ["Corpus", "History", "load_corpus", "median_seconds", "sample", "train"]


def __getattr__(name: str) -> object:
    if name in ("History", "train"):
        return getattr(import_module("labml_primer.training.loop"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
