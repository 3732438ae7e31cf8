r"""
# Positions inside attention

Rotary positions turn queries and keys, so that every layer knows how far apart two tokens are.

How much easier is it for a language model if attention is given the distance?

In short: rotary positions have no parameters. Below, a small Transformer with them ends
{value}`f"{end('learned') - end('rotary'):.2f}"` nats per character lower than with a learned table, with one
seed.

:::{picture} rotary
:::

The language models of this book so far learn a table of positions and add it to the tokens once, at the input
({doc}`../transformer/language_model`). Each row starts as noise, and the model first has to find out that row
8 comes after row 7.

The paper's models in the libraries T5 and Lingvo are given the distance: they use {term}`relative positions`,
as nearly every language model since does. This chapter puts {ref}`the rotation <rotary>` of
{doc}`../transformer/positional_encoding` into attention, and makes the positions of a language model a choice
between four: a learned table, sines and cosines, T5's buckets of distances, and rotary positions
({term}`RoPE`).

Source: {cite:t}`su2021roformer`; {cite:t}`raffel2020exploring` for the buckets.
"""

import copyreg
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from labml_primer.compared.t5 import RelativePositionBias
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.transformer.attention import (
    MultiHeadAttention,
    causal_mask,
    check_mask,
)
from labml_primer.transformer.language_model import Config
from labml_primer.transformer.positional_encoding import (
    PositionalEncoding,
    cos_and_sin,
    rotate_pairs,
)


class Rotation(nn.Module):
    r"""
    ## Rotate queries and keys

    Map queries and keys, each `[batch, seq, heads, d_k]`, to the same shapes: features $2k$ and $2k + 1$ of
    the token at position $t$ are rotated by the angle $\omega_k t$, with $\omega_k = 10000^{-2k/d_k}$.

    `tokens_before` is the position of the first key. It is zero, except while text is generated: a
    {py:func}`~labml_primer.transformer.generation.cached` model moves it past the tokens that were read. If
    there are fewer queries than keys, they are at the last positions, as for the {term}`causal mask`; if
    there are more, it raises `ValueError`.
    """

    tokens_before = 0

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        if query.size(1) > key.size(1):
            raise ValueError(f"{query.size(1)} queries, more than {key.size(1)} keys")
        positions = self.tokens_before + torch.arange(key.size(1), device=key.device)
        cos, sin = cos_and_sin(positions, key.size(-1), key.dtype)
        first = key.size(1) - query.size(1)
        # `rotate_pairs` expects positions next to the features, `[batch, heads, seq, d_k]`.
        query = rotate_pairs(query.transpose(1, 2), cos[first:], sin[first:])
        key = rotate_pairs(key.transpose(1, 2), cos, sin)
        return query.transpose(1, 2), key.transpose(1, 2)


class RotaryAttention(MultiHeadAttention):
    r"""
    ## Attention with rotary positions

    {py:class}`~labml_primer.transformer.attention.MultiHeadAttention` that rotates what it compares. Values
    are not rotated, because only scores should depend on positions.

    :::{variant} RotaryAttention
    :of: labml_primer.transformer.attention.MultiHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.rotation = Rotation()

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        return *self.rotation(query, key), value


class RotaryMultiDConvHeadAttention(RotaryAttention, MultiDConvHeadAttention):
    """
    ## MDHA with rotary positions

    Python looks methods up in the order of the base classes. So `super().project` in
    {py:class}`~labml_primer.since.rotary.RotaryAttention` is here that of
    {py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention`: project, convolve, then rotate. In
    this order the convolution mixes neighbours before they are turned by different angles.
    """


class NoPositions(nn.Module):
    """
    ## Nothing at the input

    Attention knows the distances, so nothing is added to the tokens. Maps `[batch, seq, d_model]` to itself,
    with {term}`dropout`, at any length.
    """

    def __init__(self, d_model: int, max_seq: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.dropout(x)
        return y


def rotary(config: Config) -> Config:
    """
    ## Rotary positions for any model

    Return `config` with rotary positions: its own attention, rotated, and no table. For attention that
    compares queries with keys, in any block of this book.
    """
    attention = positioned(RotaryAttention, config.attention)
    return replace(config, attention=attention, positions=NoPositions)


class Combined(type):
    """The type of the classes that `positioned` makes."""


MADE: dict[tuple[type, type], type[MultiHeadAttention]] = {}  # by `positioned`


def positioned(
    by: type[MultiHeadAttention], attention: type[MultiHeadAttention]
) -> type[MultiHeadAttention]:
    """
    Return a class that is both `by` and `attention`, as `RotaryMultiDConvHeadAttention` is, made once.

    Raises `TypeError` unless both are made of the same `MultiHeadAttention`. Copies pasted into one file may
    each have brought their own.
    """
    if attention is MultiHeadAttention:
        return by
    if issubclass(attention, by):
        return attention
    for kind in (by, attention):
        if not issubclass(kind, MultiHeadAttention):
            raise TypeError(
                f"{kind.__name__} is no subclass of MultiHeadAttention. If that was "
                "defined twice, as by two copies in one file, keep one definition."
            )
    bases = (by, attention)
    if bases not in MADE:
        name = by.__name__.removesuffix("Attention") + attention.__name__
        MADE[bases] = Combined(name, bases, {})  # type: ignore[assignment]
    return MADE[bases]


# `pickle` stores a class by its name in a module. These are in none, so it stores how to make them.
copyreg.pickle(Combined, lambda made: (positioned, made.__bases__))  # type: ignore


if __name__ == "__main__":
    # ## Relative by construction
    #
    # Move a text 1000 positions to the right. Every angle changes, but no difference of angles, so attention
    # must return the same. Here it does, up to rounding in double precision. A layer that gets the same text
    # with sines and cosines added, as in the first Transformer, does not.
    from IPython.display import display

    from labml_primer.training.table import Table
    from labml_primer.transformer.positional_encoding import positional_encoding

    torch.manual_seed(0)
    layer = RotaryMultiDConvHeadAttention(d_model=64, heads=4).double()
    plain = MultiDConvHeadAttention(d_model=64, heads=4).double()
    x = torch.randn(1, 20, 64).double()
    encoding = positional_encoding(1020, 64)

    def moved(start: int) -> tuple[Tensor, Tensor]:
        layer.rotation.tokens_before = start
        turned = layer(x, x, causal=True)
        layer.rotation.tokens_before = 0
        added = x + encoding[start : start + 20]
        return turned, plain(added, added, causal=True)

    with torch.no_grad():
        differences = [
            (far - near).abs().max().item()
            for near, far in zip(moved(0), moved(1000), strict=True)
        ]
    display(
        Table(
            ["positions", "largest difference after moving the text by 1000"],
            [
                ["rotary", f"{differences[0]:.0e}"],
                ["sines and cosines, added", f"{differences[1]:.0e}"],
            ],
        )
    )


class BucketBias(nn.Module):
    """
    ## T5's buckets

    Return a number for each head, query and key, `[heads, queries, keys]`, to be added to their score. It
    depends on the bucket of their distance only ({py:class}`~labml_primer.compared.t5.RelativePositionBias`).
    `x` are the queries' tokens, `[batch, queries, d_model]`, and `y` the keys'. The queries are the last of
    the keys, and there are `tokens_before` tokens before those of `y`.
    """

    tokens_before = 0

    def __init__(self, d_model: int, heads: int):
        super().__init__()
        self.relative_positions = RelativePositionBias(heads, bidirectional=False)
        # A score is about one in size. The table starts smaller, so that tokens count from the first step.
        nn.init.normal_(self.relative_positions.table.weight, std=d_model**-0.5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        keys = self.tokens_before + y.size(1)
        bias: Tensor = self.relative_positions(x.size(1), keys)
        return bias


class BucketedAttention(MultiHeadAttention):
    r"""
    ## Attention with T5's buckets

    PyTorch's fused attention adds a mask of numbers to the scores. So the bias is passed as the mask, with
    minus infinity where a key is hidden.

    :::{deviation} T5
    There all layers share one table, which starts with a standard deviation of $\sqrt{2 / (H + 32)}$ for $H$
    heads, 0.24 for four. Here each layer has its own, 32 numbers per head, which starts with $1 / \sqrt{d}$,
    0.09 for a width of 128.
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.bias = BucketBias(d_model, heads)

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        check_mask(mask)
        bias: Tensor = self.bias(x, y)
        if causal:
            earlier = causal_mask(bias.size(1), bias.size(2), x.device)
            mask = earlier if mask is None else mask & earlier
        if mask is not None:
            bias = bias.masked_fill(~mask, -torch.inf)
        return super().forward(x, y, bias)


class SmallPositionalEncoding(PositionalEncoding):
    r"""
    ## Sines and cosines, for small tokens

    The first Transformer multiplies tokens by $\sqrt{d}$, to match sines and cosines. Our
    {doc}`../transformer/language_model` does not, so here sines and cosines are divided by $\sqrt{d}$. With
    the widths of this book, 64 and 128, they still start $1 / (0.02 \sqrt{2d})$, 4.4 and 3.1, times as large
    as the tokens.
    """

    def __init__(self, d_model: int, max_seq: int, dropout: float = 0.0):
        super().__init__(d_model, max_seq, dropout)
        self.encoding /= d_model**0.5


def learned(config: Config) -> Config:
    """
    ## The four by name

    Each of {py:data}`~labml_primer.since.rotary.POSITIONS` maps a configuration to one with those positions.
    A learned table is what a configuration has without asking.
    """
    return config


def sinusoidal(config: Config) -> Config:
    return replace(config, positions=SmallPositionalEncoding)


def bucketed(config: Config) -> Config:
    attention = positioned(BucketedAttention, config.attention)
    return replace(config, attention=attention, positions=NoPositions)


POSITIONS: dict[str, Callable[[Config], Config]] = {
    "learned": learned,
    "sinusoidal": sinusoidal,
    "t5": bucketed,
    "rotary": rotary,
}


if __name__ == "__main__":
    # ## What positions are worth, and longer texts
    #
    # Four small Transformers differ in their positions only. Each is trained for a few seconds on windows of
    # 32 characters of Shakespeare, and then reads windows of 128 characters of the held-out plays.
    from labml_primer.training import load_corpus, train
    from labml_primer.training.counted import counted_loss, draw_counted
    from labml_primer.transformer.language_model import LanguageModel

    corpus = load_corpus()
    seq, longer = 32, 128
    windows = corpus.validation[: 512 * (longer + 1)].view(512, longer + 1)

    def by_position(name: str) -> Tensor:
        """Train a model and return its held-out loss at each position, as far as it can read."""
        torch.manual_seed(0)
        # Sines and cosines could be longer; a learned table could not.
        size = seq if name == "learned" else longer
        config = Config(corpus.vocab_size, 64, 4, 256, layers=2, max_seq=size)
        model = LanguageModel(POSITIONS[name](config))
        train(model, corpus, name=name, steps=400, seq=seq, evaluations=1)
        with torch.no_grad():
            logits = model(windows[:, :size])
        targets = windows[:, 1 : size + 1]
        loss = nn.functional.cross_entropy(logits.mT, targets, reduction="none")
        return loss.mean(0)

    by_name = {name: by_position(name) for name in POSITIONS}

    def end(name: str) -> float:
        """Return the mean loss in the second half of a window of the training length."""
        return by_name[name][seq // 2 : seq].mean().item()

    # The table has the mean loss in the second half of a window of the training length, and at the end of a
    # window four times as long. A learned table ends with the training length.
    display(
        Table(
            ["positions", "positions 16 to 31", "positions 96 to 127"],
            [
                [
                    name,
                    f"{end(name):.3f}",
                    f"{loss[96:].mean():.3f}" if len(loss) > seq else "cannot",
                ]
                for name, loss in by_name.items()
            ],
            "nats per character on held-out plays, one seed",
        )
    )

    # The loss by position, as a mean of 8 neighbours. The vertical line is the training length, the thin
    # horizontal one the loss of counting the same characters ({doc}`../training/counting`), in windows of the
    # training length. After 400 steps no model has reached it.
    order, counted = counted_loss(corpus, steps=400, seq=seq)
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    for (name, loss), color in zip(
        by_name.items(), ("C1", "C3", "C2", "C0"), strict=True
    ):
        smooth = loss.view(-1, 8).mean(1)
        ax.plot(8 * torch.arange(len(smooth)) + 4, smooth, color=color, label=name)
    ax.axvline(seq, color="C5", linewidth=1)
    draw_counted(ax, order, counted)
    ax.set(xlim=(0, 128), xlabel="position", ylabel="loss, nats per character")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()
    # Within the training length, rotary positions have the lowest loss. Beyond it they fail, like sines and
    # cosines: the model meets distances that it has never seen, and more tokens to ignore. T5's buckets fail
    # least. Far distances are in buckets that training has never reached, whose numbers are as small as at
    # the start; this may be why. Models for long texts are therefore trained on long texts, often with slower
    # rotations.


if __name__ == "__main__":
    # ## With a KV cache
    #
    # The {term}`KV cache` keeps keys as they were rotated. A key's angle depends on its own position only, so
    # it stays right when the text grows. A model reads a text in pieces of 1, 5 and 14 tokens, and then as
    # a whole. The logits agree up to rounding in double precision.
    from labml_primer.transformer.generation import cached

    for name in ("t5", "rotary"):
        torch.manual_seed(0)
        model = LanguageModel(POSITIONS[name](Config(vocab_size=83))).double()
        tokens, reader = torch.randint(83, (2, 20)), cached(model)
        with torch.no_grad():
            pieces = [reader(piece) for piece in tokens.split([1, 5, 14], dim=1)]
            difference = (torch.cat(pieces, dim=1) - model(tokens)).abs().max()
        print(f"{name:6s} largest difference {difference:.0e}")


if __name__ == "__main__":
    # ## In short
    #
    # - Rotary positions rotate queries and keys inside every attention layer. Scores then depend on distances
    #   only, which can be checked: moving the text changes nothing.
    # - They have no parameters, and any attention that compares queries with keys can have them. With MDHA
    #   the convolution comes first, then the rotation.
    # - Within the training length they are the best of the four choices in these runs, of one seed each.
    #   Beyond it they fail, and T5's buckets fail least.
    #
    # ## Exercise
    #
    # :::{exercise} No rotation at all
    # Which pairs of a head with 32 features turn by less than a tenth of a full turn within 128 positions?
    # What can they be used for?
    # :::
    # :::{solution}
    # The slow ones. They turn too little to tell positions apart, so they compare tokens by content alone. A
    # head can use fast pairs for "the token before" and slow pairs for "a name", at the same time.
    # :::
    omega = 10_000.0 ** (-torch.arange(0, 32, 2) / 32)
    slow = (128 * omega < 2 * torch.pi / 10).nonzero().flatten()
    print(f"pairs {slow[0]} to {slow[-1]} of 16")
    assert not (128 * omega[: slow[0]] < 2 * torch.pi / 10).any()

    # How much of Primer's gains is left if positions are rotary? {doc}`/experiments/chapters/positions`
    # measures it.
