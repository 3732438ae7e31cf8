"""What every chapter's runs share: a corpus, a training loop, and text out of a model."""

from labml_primer.training.corpus import Corpus, load_corpus
from labml_primer.training.loop import History, train
from labml_primer.training.sampling import sample
from labml_primer.training.timing import added_cost, median_seconds

__all__ = [
    "Corpus",
    "History",
    "added_cost",
    "load_corpus",
    "median_seconds",
    "sample",
    "train",
]
