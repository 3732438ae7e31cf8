"""What the chapters' runs share: the corpus, the training loop, and a clock for fair comparisons."""

from labml_primer.training.corpus import Corpus, load_corpus
from labml_primer.training.loop import History, train
from labml_primer.training.timing import median_seconds

__all__ = ["Corpus", "History", "load_corpus", "median_seconds", "train"]
