r"""
# The family tree

Every model of this book: what each changed, in which other one, and what it costs and brings.

Which of these models is a change of which, and what does the change cost?

All of them are one Transformer with something exchanged. Where the paper names a model as another one with
an addition, the tree below says so; the changes are in the chapters that the names lead to. Then come all
presets of `LanguageModel` in one table, to be sorted by what matters to you.

:::{picture} family
:::

Source: {cite:t}`so2021primer`, sections 3 and 4, and the papers that each chapter names.
"""

from dataclasses import dataclass, replace
from functools import partial

import torch

from experiments.tables import Table
from labml_primer.presets import PRESETS, Config, LanguageModel


@dataclass(frozen=True)
class Relative:
    """A model: what it is a change of, what was changed, the page that says how, and its colour."""

    parent: str
    change: str
    page: str
    colour: str = "C5"


FAMILY = {
    "transformer": Relative(
        "", "attention and a feed-forward layer", "transformer/model"
    ),
    "transformer-gelu": Relative("transformer", "GELU", "primer/baselines", "C1"),
    "transformer-pp": Relative(
        "transformer", "RMSNorm, SwiGLU", "primer/baselines", "C2"
    ),
    "transformer-squared-relu": Relative(
        "transformer", "squared ReLU", "primer/primer_ez", "C0"
    ),
    "transformer-sep-conv": Relative(
        "transformer", "convolutions before the projections", "primer/primer", "C0"
    ),
    "transformer-mdha": Relative(
        "transformer", "convolutions after the projections", "primer/primer_ez", "C0"
    ),
    "primer-ez": Relative("transformer-mdha", "squared ReLU", "primer/primer_ez", "C0"),
    "primer": Relative(
        "primer-ez", "queries of keys, its own norms and order", "primer/primer", "C3"
    ),
    "evolved-transformer": Relative(
        "transformer",
        "branches of convolutions, a second attention",
        "compared/evolved_transformer",
        "C4",
    ),
    "synthesizer-dense": Relative(
        "transformer", "weights from one token", "compared/synthesizer"
    ),
    "synthesizer-factorized-dense": Relative(
        "synthesizer-dense", "two factors", "compared/synthesizer"
    ),
    "synthesizer-random": Relative(
        "synthesizer-dense", "weights from no token", "compared/synthesizer"
    ),
    "synthesizer-factorized-random": Relative(
        "synthesizer-random", "two factors", "compared/synthesizer"
    ),
    "switch-transformer": Relative(
        "transformer", "many feed-forward layers, one per token", "compared/switch"
    ),
    "switch-primer": Relative(
        "switch-transformer", "Primer-EZ's two changes", "compared/switch", "C0"
    ),
    "t5": Relative("transformer", "an encoder, distances, Adafactor", "compared/t5"),
    "t5-gelu": Relative("t5", "GELU", "compared/t5", "C1"),
    "t5-pp": Relative("t5", "RMSNorm, SwiGLU", "compared/t5", "C2"),
    "t5-primer-ez-decoder": Relative(
        "t5-pp", "Primer-EZ's decoder", "compared/t5", "C0"
    ),
}


def small(config: Config, vocab_size: int) -> Config:
    """A preset at the size of this page: two blocks of width 64."""
    return replace(
        config, vocab_size=vocab_size, d_model=64, heads=4, d_ff=256, layers=2
    )


if __name__ == "__main__":
    # ## All of them in one table
    #
    # Parameters and multiply-adds are of the paper's size: 32,000 tokens, width 512, sequences of 64. Time
    # and loss are of small ones, two blocks of width 64: a step there and back, over the Transformer's, and
    # the loss on held-out plays after 150 steps, in nats a character. A click on a head sorts.
    from IPython.display import display

    from labml_primer.training import load_corpus, median_seconds, train
    from labml_primer.training.costs import costs

    corpus = load_corpus()

    def step(model: LanguageModel, tokens: torch.Tensor) -> None:
        model(tokens).logsumexp(dim=-1).sum().backward()

    models, losses = {}, {}
    for name, config in PRESETS.items():
        torch.manual_seed(0)
        models[name] = LanguageModel(small(config, corpus.vocab_size))
        history = train(
            models[name], corpus, name=name, steps=150, seq=64, evaluations=1
        )
        losses[name] = history.validation_loss[-1]
    tokens = corpus.validation[: 16 * 64].view(16, 64)
    seconds = median_seconds(
        {n: partial(step, m, tokens) for n, m in models.items()}, 9
    )

    rows = []
    for name, config in PRESETS.items():
        with torch.device("meta"):
            parts = costs(LanguageModel(config)).values()
        parameters, products = (sum(column) for column in zip(*parts, strict=True))
        rows.append(
            [
                name,
                f"{parameters / 1e6:.2f}",
                f"{products / 1e6:.2f}",
                f"{seconds[name] / seconds['transformer']:.2f}",
                f"{losses[name]:.3f}",
            ]
        )
    columns = {
        "model": "",
        "parameters": "millions",
        "multiply-adds": "millions a token",
        "time": "x Transformer",
        "loss": "nats",
    }
    display(Table("All presets", "Measured when this page was built", columns, rows))
    # One seed, 150 steps of 16 sequences of 64, and one learning rate for all, tuned for none: what is apart
    # by less than a tenth may be luck. In {doc}`ours` each model has its own rate, and there Transformer++ is
    # ahead of the Transformer. The Evolved Transformer has fewer blocks than the others at the paper's size,
    # and as many here.
