r"""
# Which convolution?

The alternatives to Primer's depthwise convolution, with their costs and their effects: before or after the
projection, wider, or full.

Primer-EZ has a {term}`depthwise convolution` after the projections to queries, keys and values, with a kernel
of width 3 for each channel. Why there, why 3, and why so few parameters?

In short: neither order can imitate the other. A full convolution costs $d_k$ times as much as a depthwise
one, and was no better in our short runs. In our longer runs ({doc}`/experiments/chapters/mdha`), widths 5 and
7 do not hurt, three seeds show no effect of the order, and values gain most from a convolution.

The search had alternatives. Its primitives include convolutions of width 3, 7, 15 and 31, both depthwise and
full (Table 2), and it could put them anywhere. The paper says about the others:

| choice | the paper |
|---|---|
| before the projection | helps less: 1.54 ± 0.05 times instead of 1.76 ± 0.06 |
| wider | no gain, "in several cases" a loss |
| standard, that is, full | no gain, "in several cases" a loss |
| on q, k or v alone | not reported |

The speed-up factors are those of "Transformer+Sep Conv" and "Transformer+MDHA" over the Transformer (Table
4). For the second and third row the paper has one sentence and no number.

:::{picture} convolutions
:::

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
    # With kernels $w_i$ and a matrix $W$, either order is equivalent to one matrix $W_i$ per position,
    # $y_t = \sum_i x_{t-(K-1)+i}\, W_i$:
    #
    # $$\begin{aligned}
    #   \text{before, separable} &: & W_i &= \operatorname{diag}(w_i)\, W \\
    #   \text{after, as in MDHA} &: & W_i &= W \operatorname{diag}(w_i)
    # \end{aligned}$$
    #
    # The first scales rows: each *feature of the residual stream* has its own kernel, and all heads get the
    # same result. The second scales columns: each *channel of a head* has its own kernel, so one head may
    # read the previous token and another the current one.
    #
    # The table shows how well each order can imitate three given matrices: the share of the sum of their
    # squares that the best fit keeps. With the convolution after, the columns of one channel in all $W_i$ are
    # parallel, so the best fit has rank one for each channel. Each order keeps 100% of its own kind, but not
    # of the other.
    from IPython.display import display

    from labml_primer.training.table import Table

    def kept(targets: Tensor, channel: int) -> float:
        values = torch.linalg.svdvals(targets.movedim(channel, 0)).square()
        return float(values[:, 0].sum() / values.sum())

    torch.manual_seed(0)
    matrix, kernels = torch.randn(64, 64), torch.randn(3, 64)
    cases = {
        "a kernel for each feature": kernels[:, :, None] * matrix,
        "a kernel for each channel": matrix * kernels[:, None, :],
        "nothing in common": torch.randn(3, 64, 64),
    }
    rows = [
        (c, *(f"{kept(m, channel):.0%}" for channel in (1, 2)))
        for c, m in cases.items()
    ]
    display(Table(("three matrices with", "before", "after"), rows))
    # Neither order is more expressive, so measurements must decide.
    # {py:class}`~labml_primer.primer.primer.SeparableConvolutionAttention` has the order that the paper found
    # less effective.


class StandardConvolution(nn.Module):
    r"""
    ## A standard convolution

    It has a matrix for each position, while a depthwise convolution has a number for each channel. After the
    projection to a head $h$, it mixes the channels of that head:

    $$y_{t,h} = \sum_{i=0}^{K-1} x_{t-(K-1)+i,\,h}\; W_{i,h}$$

    with $W_{i,h} \in \mathbb{R}^{d_k \times d_k}$. `[batch, seq, heads, d_k]` to the same. It has $d_k$ times
    as many parameters and multiply-adds as
    {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution`. If it also mixed the heads, it
    would have $d_\text{model}$ times as many.

    :::{deviation} the paper, section 3
    It only says "standard convolution", so the place, the heads and the initialization are our choice.
    :::
    """

    def __init__(self, heads: int, d_k: int, kernel_size: int = 3):
        super().__init__()
        self.kernel_size = kernel_size
        # A new layer computes the same as a new depthwise one, whose kernels are on the diagonals; everything
        # that would mix channels is zero. So any difference between two runs is learned.
        kernels = SpatialDepthWiseConvolution(heads, d_k, kernel_size).weight
        self.weight = nn.Parameter(kernels.detach().diag_embed())

    def forward(self, x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, 0, 0, self.kernel_size - 1, 0))
        windows = padded.unfold(1, self.kernel_size, 1)  # [batch, seq, heads, d_k, K]
        return torch.einsum("bshck, khcd -> bshd", windows, self.weight)


class ConvolvedAttention(MultiDConvHeadAttention):
    """
    ## Attention with a choice

    {py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention` with three class attributes: the
    `convolution`, its `width` and its `places`. With these values it is the paper's layer.
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

    Three wide, as in the paper, and full.
    """

    convolution = StandardConvolution


if __name__ == "__main__":
    # ## Costs
    #
    # The Transformer with one of five other attentions, at the paper's size of 35 million parameters and 64
    # tokens: parameters and multiply-adds per token, in millions, and the paper's speed-up factors (Table 4).
    from dataclasses import replace

    from labml_primer.primer.primer import SeparableConvolutionAttention
    from labml_primer.training import load_corpus, train
    from labml_primer.training.costs import costs
    from labml_primer.training.counted import counted_loss
    from labml_primer.transformer.attention import MultiHeadAttention
    from labml_primer.transformer.language_model import Config, LanguageModel

    class Wide15(ConvolvedAttention):
        width = 15

    entrants: dict[str, type[MultiHeadAttention]] = {
        "no convolution": MultiHeadAttention,
        "after, 3 wide": ConvolvedAttention,
        "before, 3 wide": SeparableConvolutionAttention,
        "after, 7 wide": WideConvolutionAttention,
        "after, 15 wide": Wide15,
        "standard, 3 wide": StandardConvolutionAttention,
    }
    transformer = Config(
        vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=64
    )
    paper = {"no convolution": "1", "after, 3 wide": "1.76", "before, 3 wide": "1.54"}
    sizes = []
    for name, attention in entrants.items():
        with torch.device("meta"):
            model = LanguageModel(replace(transformer, attention=attention))
        columns = zip(*costs(model).values(), strict=True)
        millions = [f"{sum(column) / 1e6:.2f}" for column in columns]
        sizes.append((name, *millions, paper.get(name, "")))
    display(Table(("attention", "parameters", "multiply-adds", "speed-up"), sizes))
    # Only the standard convolution has many more parameters and multiply-adds. The others still take time,
    # because they read and write every element for very little arithmetic ({doc}`../primer/faster`).


if __name__ == "__main__":
    # ## Results in one block
    #
    # Each dot is the final loss of a run, each line the mean of three random seeds. The models have a single
    # block, so that no second block can compensate for a weak attention. Every convolution helps; the
    # standard one, with 8 times as many weights, is not better than the depthwise one. The thin line is the
    # loss of counting the same characters ({doc}`../training/counting`): no model gets near it in 160 steps,
    # so the figure says which of them begins faster.
    import matplotlib.pyplot as plt

    corpus = load_corpus()
    small = Config(
        corpus.vocab_size, d_model=32, heads=4, d_ff=128, layers=1, max_seq=64
    )
    final: dict[str, Tensor] = {}
    for name, attention in entrants.items():
        ends = torch.zeros(3)
        for seed in range(3):
            torch.manual_seed(seed)
            history = train(
                LanguageModel(replace(small, attention=attention)),
                corpus,
                name=name,
                steps=160,
                batch=8,
                seq=64,
                seed=seed,
                warmup=50,
                evaluations=1,
            )
            ends[seed] = history.validation_loss[-1]
        final[name] = ends

    order, counted = counted_loss(corpus, steps=160, batch=8, seq=64)
    fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    ax.axvline(counted, color="C5", lw=0.8, label=f"Kneser-Ney, {order}-gram")
    for row, (name, ends) in enumerate(final.items()):
        color = {"no convolution": "C5", "after, 3 wide": "C0"}.get(name, "C2")
        ax.plot(ends, [row] * 3, "o", color=color, ms=4, label=f"{name}, one seed")
        ax.plot([ends.mean()] * 2, [row - 0.3, row + 0.3], color=color)
    ax.set_yticks(range(len(final)), list(final))
    ax.invert_yaxis()
    ax.set_xlabel("final loss, nats per character")
    plt.show()
    # The wide kernels are slightly ahead in these short runs of a narrow block. A possible reason: previous
    # characters say much about the next, and a wide kernel reads more of them. The paper reports no gain
    # from width, but does not say for which models or data.
    #
    # {doc}`/experiments/chapters/mdha` has five times as many steps, four blocks, and more variations:
    # convolutions on queries, keys or values alone, with other biases and initial weights.


if __name__ == "__main__":
    # ## In short
    #
    # - Convolving before or after the projection costs the same. Neither order can imitate the other; the
    #   paper found the one after, MDHA, more effective.
    # - A standard convolution costs $d_k$ times as much as a depthwise one, and was no better here.
    # - In one small block a wider kernel gains a little. The paper reports no gain.
    #
    # ## Exercise
    #
    # :::{exercise} One matrix for three
    # A projection followed by a depthwise convolution is linear, so three matrices, one for each position,
    # can replace both. Compute them. How many multiply-adds per token do they cost, and at which positions of
    # a text is the result different?
    # :::
    # :::{solution}
    # $W_i = W \operatorname{diag}(w_i)$: each kernel scales the columns. That takes nearly three times as
    # many multiply-adds, so the two are better kept apart, after training too. The first two positions
    # differ: the convolution pads with zeros after the projection, so these zeros lack its bias.
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

    # Convolutions can also be layers of their own, next to attention instead of inside it:
    # {doc}`evolved_transformer`.
