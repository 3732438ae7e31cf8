r"""
# Which convolution?

Before or after the projection, wider, or full; on queries, on keys or on values. The alternatives to Primer's
choice, their cost, and their effect.

Primer-EZ has a convolution after the projections to queries, keys and values. It is three positions wide and
has a kernel for each channel. Why there, why three, and why so few parameters?

The search had alternatives. Among its primitives were convolutions of width 3, 7, 15 and 31, each of them
depth-wise and full (Table 2), and it could put them anywhere. The paper says of the others:

| choice | the paper on it |
|---|---|
| before the projection | helps less: 1.54 times instead of 1.76 |
| wider | no gain, "in several cases" a loss |
| standard, that is, full | the same |
| on q, k or v alone | not reported |

The speed-ups are those of "Transformer+Sep Conv" and "Transformer+MDHA" in Table 4, over the Transformer.
For the second and third row the paper has one sentence and no number. So we measure them, in small models.

Source: {cite:t}`so2021primer`, section 3, appendices A.1 and A.6.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
)

if __name__ == "__main__":
    # ## Before or after
    #
    # With kernels $w_i$ and a matrix $W$, either order amounts to one matrix $W_i$ for each position in view,
    # $y_t = \sum_i x_{t-(K-1)+i}\, W_i$:
    #
    # $$\begin{aligned}
    #   \text{before, separable} &: & W_i &= \operatorname{diag}(w_i)\, W \\
    #   \text{after, as in MDHA} &: & W_i &= W \operatorname{diag}(w_i)
    # \end{aligned}$$
    #
    # The first scales rows: each *feature of the residual stream* has its own kernel, and all heads see the
    # same result. The second scales columns: each *channel of a head* has its own kernel, so one head may
    # look at the previous token and another at the current one. How well can one order imitate the other?
    # With the convolution after, the columns of one channel in all $W_i$ are parallel. So the best fit has
    # rank one, channel by channel, and the largest singular value says how much of the whole it keeps.
    def kept(targets: Tensor, channel: int) -> float:
        values = torch.linalg.svdvals(targets.movedim(channel, 0)).square()
        return (values[:, 0].sum() / values.sum()).item()

    torch.manual_seed(0)
    matrix, kernels = torch.randn(64, 64), torch.randn(3, 64)
    print(f"{'three matrices with':33s}{'before':>8s}{'after':>8s}")
    for name, targets in (
        ("a kernel for each feature", kernels[:, :, None] * matrix),
        ("a kernel for each channel", matrix * kernels[:, None, :]),
        ("nothing in common", torch.randn(3, 64, 64)),
    ):
        print(f"{name:33s}{kept(targets, 1):8.0%}{kept(targets, 2):8.0%}")
    # Neither is more expressive. The better order is the one whose kernels a head has more use for.
    # {py:class}`~labml_primer.primer.primer.SeparableConvolutionAttention` is the order that the paper found
    # less effective.


class StandardConvolution(nn.Module):
    r"""
    ## A standard convolution

    It has a matrix for each position in view, and the depth-wise one has a number for each channel. After the
    projection to a head $h$, it mixes the channels of that head:

    $$y_{t,h} = \sum_{i=0}^{K-1} x_{t-(K-1)+i,\,h}\; W_{i,h}$$

    with $W_{i,h} \in \mathbb{R}^{d_k \times d_k}$. `[batch, seq, heads, d_k]` to the same. It has $d_k$ times
    as many parameters and multiply-adds as
    {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution`. If it also mixed the heads, it
    would have $d_\text{model}$ times as many.

    :::{deviation} the paper, section 3
    "Standard convolution" is all that it says, so the place, the heads and the initialization are ours.
    :::
    """

    def __init__(self, heads: int, d_k: int, kernel_size: int = 3):
        super().__init__()
        self.kernel_size = kernel_size
        # A new layer computes the same as a new depth-wise one: the kernels of that are on the diagonals, and
        # everything that would mix channels is zero. So any difference between two runs is learned.
        kernels = SpatialDepthWiseConvolution(heads, d_k, kernel_size).weight
        self.weight = nn.Parameter(kernels.detach().diag_embed())

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, 0, 0, self.kernel_size - 1, 0))
        windows = padded.unfold(1, self.kernel_size, 1)  # [batch, seq, heads, d_k, K]
        return torch.einsum("bshck, khcd -> bshd", windows, self.weight)


class ConvolvedAttention(MultiDConvHeadAttention):
    """
    ## Attention with a choice

    {py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention` with three class attributes to choose:
    the `convolution`, its `width` and its `places`. As they are here, it is the paper's layer.
    """

    convolution: type[nn.Module] = SpatialDepthWiseConvolution
    width: int = 3
    places: tuple[str, ...] = ("query", "key", "value")

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for place in ("query", "key", "value"):
            layer: nn.Module = nn.Identity()
            if place in self.places:
                layer = self.convolution(heads, self.d_k, self.width)
            setattr(self, f"{place}_conv", layer)


class WideConvolutionAttention(ConvolvedAttention):
    """
    ## Wider

    The next width that the search could choose. Source: Table 2.
    """

    width = 7


class StandardConvolutionAttention(ConvolvedAttention):
    """
    ## Full

    As wide as the paper's, and full.
    """

    convolution = StandardConvolution


if __name__ == "__main__":
    # ## Costs
    #
    # The Transformer, and the Transformer with one of eight other attentions. It keeps its ReLU, so that
    # nothing else differs.
    from dataclasses import replace

    from labml_primer.primer.primer import SeparableConvolutionAttention
    from labml_primer.training import load_corpus, train
    from labml_primer.training.costs import costs
    from labml_primer.transformer.attention import MultiHeadAttention
    from labml_primer.transformer.language_model import Config, LanguageModel

    class Wide15(ConvolvedAttention):
        width = 15

    class OnQueries(ConvolvedAttention):
        places = ("query",)

    class OnKeys(ConvolvedAttention):
        places = ("key",)

    class OnValues(ConvolvedAttention):
        places = ("value",)

    entrants: dict[str, type[MultiHeadAttention]] = {
        "no convolution": MultiHeadAttention,
        "after, 3 wide": ConvolvedAttention,
        "before, 3 wide": SeparableConvolutionAttention,
        "after, 7 wide": WideConvolutionAttention,
        "after, 15 wide": Wide15,
        "standard, 3 wide": StandardConvolutionAttention,
        "queries alone": OnQueries,
        "keys alone": OnKeys,
        "values alone": OnValues,
    }
    # In the paper's model of 35 million parameters, at 64 tokens: parameters and multiply-adds per token. The
    # last two columns are the paper's: steps per second, and speed-up (Table 4).
    transformer = Config(
        vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=64
    )
    paper = {
        "no convolution": "22.4",
        "after, 3 wide": "21.0  1.76",
        "before, 3 wide": "21.0  1.54",
    }
    print(f"{'':18s}{'params':>8s}{'mul-adds':>10s}   paper")
    for name, attention in entrants.items():
        with torch.device("meta"):
            model = LanguageModel(replace(transformer, attention=attention))
        columns = zip(*costs(model).values(), strict=True)
        size, products = (sum(column) / 1e6 for column in columns)
        print(f"{name:18s}{size:7.2f}M{products:9.2f}M   {paper.get(name, '')}")
    # All except the standard one add almost no parameters and multiply-adds. They do take time, because every
    # element has to be read and written for very little arithmetic.


if __name__ == "__main__":
    # ## Results
    #
    # One block, trained on the plays, so that no second block can make up for what the first cannot do. Each
    # attention has three random seeds, which set the initial weights and the order of the text. A dot is the
    # final loss of a run, a line the mean of three.
    import matplotlib.pyplot as plt

    corpus = load_corpus()
    small = Config(
        corpus.vocab_size, d_model=32, heads=4, d_ff=128, layers=1, max_seq=64
    )
    losses: dict[str, Tensor] = {}
    for name, attention in entrants.items():
        ends = torch.zeros(3)
        for seed in range(3):
            torch.manual_seed(seed)
            history = train(
                LanguageModel(replace(small, attention=attention)),
                corpus,
                name=name,
                steps=240,
                batch=8,
                seq=64,
                seed=seed,
                warmup=50,
                evaluations=1,
            )
            ends[seed] = history.validation_loss[-1]
        losses[name] = ends

    fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for row, (name, ends) in enumerate(losses.items()):
        color = {"no convolution": "C5", "after, 3 wide": "C0"}.get(name, "C2")
        ax.plot(ends, [row] * 3, "o", color=color, ms=4, label=f"{name}, one seed")
        ax.plot([ends.mean()] * 2, [row - 0.3, row + 0.3], color=color)
    ax.set_yticks(range(len(losses)), list(losses))
    ax.invert_yaxis()
    ax.set_xlabel("final loss, nats per character")
    plt.show()
    # ### Is it noise?
    #
    # Compare each with the paper's choice seed by seed: both have read the same text in the same order, so
    # their difference has less noise than the two means. Its mean over the three seeds, the lowest and the
    # highest of them. Below zero is better than the paper's choice.
    print(f"{'':18s}{'loss':>7s}{'difference':>12s}{'lowest':>9s}{'highest':>9s}")
    signs: dict[str, list[str]] = {"worse": [], "better": []}
    for name, ends in losses.items():
        gap = ends - losses["after, 3 wide"]
        print(
            f"{name:18s}{ends.mean():7.3f}"
            f"{gap.mean():+12.3f}{gap.min():+9.3f}{gap.max():+9.3f}"
        )
        if gap.min() > 0:
            signs["worse"].append(name)
        if gap.max() < 0:
            signs["better"].append(name)
    for sign, names in signs.items():
        print(f"{sign} with every seed: {'; '.join(names) or 'none'}")
    # Three seeds agree by chance one time in four, so of eight attentions two would be in these lists without
    # any real difference. A difference of 0.1 is more than that; those of the wide kernels may be noise.
    #
    # The paper found no gain from wide kernels in a larger setting: subwords, six blocks and 24 hours of a
    # TPU. Ours is one narrow block that reads characters for some seconds. Previous characters say much about
    # the next. A wide kernel uses them at once; attention and a second block first have to learn it.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} One matrix for three
    # A projection followed by a depth-wise convolution is linear, so three matrices, one for each position in
    # view, can replace both. Compute them. How many multiply-adds per token does that cost, and at which
    # positions of a text is the result different?
    # :::
    # :::{solution}
    # $W_i = W \operatorname{diag}(w_i)$: each kernel scales the columns. That is nearly three times as many
    # multiply-adds, so the factors are best kept apart after training too. The first two positions differ:
    # the zeros before the text come after the projection, so they lack its bias.
    # :::
    torch.manual_seed(0)
    layer, x = MultiDConvHeadAttention(64, 4), torch.randn(2, 20, 64)
    query, kernels = layer.query, layer.query_conv.weight.flatten(1)
    with torch.no_grad():
        convolved = layer.project(x, x)[0].flatten(2)
        matrices = kernels[:, None] * query.weight.T  # [3, d_model, d_model]
        padded = F.pad(x, (0, 0, 2, 0))
        folded = kernels.sum(dim=0) * query.bias
        for i, matrix in enumerate(matrices):
            folded = folded + padded[:, i : i + x.size(1)] @ matrix
    differ = (convolved - folded).abs().amax(dim=(0, 2)) > 1e-5
    print(f"{query.weight.numel() + kernels.numel():,} or {matrices.numel():,}")
    print("positions that differ:", differ.nonzero().flatten().tolist())
    assert differ[:2].all() and not differ[2:].any()

    # Convolutions can also have branches of their own, next to attention instead of inside it:
    # {doc}`evolved_transformer`.
