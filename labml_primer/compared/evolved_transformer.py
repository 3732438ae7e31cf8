r"""
# Evolved Transformer

The result of an earlier search: a second attention and two branches of convolutions before the usual block.
The model learns more per step, but its steps take longer.

Primer was not the first Transformer found by a search. Two years earlier, some of the same authors had found
another. What was it, and why did they search again?

In short: the first search graded a model by its loss after a fixed number of steps, no matter how long a step
took. It found a model with slow steps. In Primer's paper, at equal compute the {term}`Evolved Transformer`
keeps only part of its lead, or none. In our small runs on characters that depends on the positions: with a
learned table it keeps most of its lead, and with rotary positions it has none even after the same number of
steps ({doc}`/experiments/chapters/ours`).

The search combined large building blocks: attention, convolutions of several widths, a
{term}`gated linear unit`. The model is for translation, with an encoder and a decoder. A language model is
the decoder alone, where the search put two layers before the usual two:

$$
\begin{aligned}
X_1 &= X + \operatorname{MultiHead}_{2H}(\operatorname{LN}(X)) \\
X_2 &= X_1 + \operatorname{Branches}(\operatorname{LN}(X_1)) \\
X_3 &= X_2 + \operatorname{MultiHead}_{H}(\operatorname{LN}(X_2)) \\
X_4 &= X_3 + \operatorname{FFN}(\operatorname{LN}(X_3))
\end{aligned}
$$

The last two lines are the usual {py:class}`~labml_primer.transformer.language_model.Block`. The first is
attention with twice as many heads, and the second is two parallel branches of causal convolutions. The
translation model's decoder also has cross-attention, which a language model does not need.

:::{picture} evolved_transformer
:::

Source: {cite:t}`so2019evolved`, Figure 3 and released code (tensor2tensor, `evolved_transformer.py`); the
runs of {cite:t}`so2021primer`, Tables 4, 5 and 8, appendix A.14 and released code (google-research,
`primer/gin`).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.transformer.language_model import Block, Config, LanguageModel


class SeparableConvolution(nn.Module):
    r"""
    ## A separable convolution

    A full convolution has a matrix for each of the $K$ positions it reads. A {term}`separable convolution`
    first runs a kernel along each channel, then mixes the channels with a single matrix:

    $$y_t = b + \Big(\sum_{i=0}^{K-1} w_i \odot x_{t-(K-1)+i}\Big)\,W$$

    where $w_i$ has one number per channel, and $W$ is the matrix. So width is cheap: one more position adds
    $d_\text{in}$ parameters instead of $d_\text{in}\,d_\text{out}$.

    `[batch, seq, d_in]` to `[batch, seq, d_out]`, with zeros before the first token. Raises `ValueError` for
    a text without a batch.
    """

    def __init__(self, d_in: int, d_out: int, kernel_size: int):
        super().__init__()
        # Primer-EZ's convolution with a single wide head, initialized as `nn.Conv1d` is.
        self.depthwise = SpatialDepthWiseConvolution(1, d_in, kernel_size)
        nn.init.uniform_(self.depthwise.weight, -(kernel_size**-0.5), kernel_size**-0.5)
        self.pointwise = nn.Linear(d_in, d_out)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 3:
            raise ValueError(f"x is {list(x.shape)}, not [batch, seq, d_in]")
        y: Tensor = self.pointwise(self.depthwise(x.unsqueeze(2)).squeeze(2))
        return y


if __name__ == "__main__":
    # ## The saving
    #
    # Parameters of the three convolutions of a block at `d_model` 512, in thousands and without biases:
    # separable, and full. Each parameter costs one multiply-add per token.
    from IPython.display import display

    from labml_primer.training.table import Table

    rows = []
    for d_in, d_out, width in ((512, 1024, 11), (512, 256, 7), (1024, 512, 7)):
        separable = SeparableConvolution(d_in, d_out, width)
        weights = sum(p.numel() for p in separable.parameters() if p.dim() > 1)
        full = width * d_in * d_out
        rows.append((d_in, d_out, width, f"{weights / 1e3:.0f}", f"{full / 1e3:,.0f}"))
    display(Table(("d_in", "d_out", "width", "separable", "full"), rows))


class BranchedConvolution(nn.Module):
    r"""
    ## Two branches

    The wide branch reads 11 positions, has $2d$ channels, and ends with a ReLU. The narrow branch reads 7
    positions, has $d/2$ channels, and is linear. Their sum goes through a norm, and a third convolution
    reduces it to $d$ channels:

    $$
    \begin{aligned}
    X_\text{wide} &= \max(0,\; \operatorname{sep}_{11}(X)) \\
    X_\text{narrow} &= [\operatorname{sep}_{7}(X);\; 0] \\
    Y &= \operatorname{sep}_{7}(\operatorname{LN}(X_\text{wide} + X_\text{narrow}))
    \end{aligned}
    $$

    `[batch, seq, d_model]` to the same. Source: Figure 3, where $d = 512$, so the branches have 1024 and 256
    channels.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, norm: type[nn.Module] = nn.LayerNorm
    ):
        super().__init__()
        self.wide = SeparableConvolution(d_model, 2 * d_model, kernel_size=11)
        self.narrow = SeparableConvolution(d_model, d_model // 2, kernel_size=7)
        self.norm = norm(2 * d_model)
        self.join = SeparableConvolution(2 * d_model, d_model, kernel_size=7)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.dropout(F.relu(self.wide(x)))
        narrow = self.dropout(self.narrow(x))
        # The narrow branch is padded with zeros to the width of the other, so it contributes to the first
        # quarter of the channels only.
        narrow = F.pad(narrow, (0, wide.size(-1) - narrow.size(-1)))
        y: Tensor = self.join(self.norm(wide + narrow))
        return y


if __name__ == "__main__":
    # ## How far back it sees
    #
    # The bars show how much each output changes if the token at position 8 changes. No earlier output does,
    # because each convolution is causal, and 17 outputs do: the wide branch and the last convolution together
    # read $11 + 7 - 1 = 17$ positions, those through the narrow branch 13.
    import matplotlib.pyplot as plt

    torch.manual_seed(0)
    branches = BranchedConvolution(d_model=64).double()
    x = torch.randn(256, 32, 64, dtype=torch.float64)
    nudged = x.clone()
    nudged[:, 8] = torch.randn(256, 64, dtype=torch.float64)
    with torch.no_grad():
        moved = (branches(nudged) - branches(x)).square().mean(dim=(0, 2)).sqrt()
    print("outputs that changed:", moved.nonzero().flatten().tolist())
    fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
    ax.bar(range(32), moved, color="C0")
    ax.axvline(8, color="C5", ls=":", lw=1)
    ax.set(xlabel="position of the output", ylabel="change of the output")
    plt.show()
    # Attention reads all positions anyway. The convolutions distinguish them: each distance has its own
    # weight.


class EvolvedBlock(Block):
    r"""
    ## The block

    {py:class}`~labml_primer.transformer.language_model.Block` with two layers before its own,
    `[batch, seq, d_model]` to the same. With the activation function `nn.SiLU`, also called {term}`Swish`, it
    is the paper's block.

    :::{deviation} the first released code
    Tensor2tensor has one more norm, between the two matrices of the feed-forward layer. The model that
    Primer's authors ran in T5 has none there (`medium_evolved_transformer.gin`). This part of the book is
    about their comparison, so ours has none either.
    :::

    Raises `ValueError` if `2 * heads` does not divide `d_model`.
    """

    def __init__(self, config: Config):
        super().__init__(config)
        d_model, dropout = config.d_model, config.dropout
        # Figure 3 has 16 heads here and 8 in the second attention. Each is half as wide, so the number of
        # parameters is the same.
        #
        # :::{deviation} the released code
        # Tensor2tensor first had at least 16 heads, later twice as many as elsewhere but at most 16. Primer's
        # `DoubleHeadsAttentionLayer` always has twice as many, as here.
        # :::
        self.wide_attention = config.attention(d_model, 2 * config.heads, dropout)
        self.wide_attention_norm = config.norm(d_model)
        self.branches = BranchedConvolution(d_model, dropout, config.norm)
        self.branches_norm = config.norm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        y = self.wide_attention_norm(x)
        x = x + self.dropout(self.wide_attention(y, y, causal=True))
        x = x + self.dropout(self.branches(self.branches_norm(x)))
        # The rest is the usual block.
        return super().forward(x)


class GatedEvolvedBlock(EvolvedBlock):
    r"""
    ## The encoder's gate

    A *gated linear unit* multiplies a linear map of its input, feature by feature, by numbers between zero
    and one that a second linear map computes:

    $$\operatorname{GLU}(x) = (xW + b) \odot \sigma(xU + c)$$

    In Figure 3 and in all released code, only the *encoder's* block begins with one. The decoder has none, so
    the model that Primer is compared with has none either. This class adds the gate where the encoder has it,
    at the front.

    Source: {cite:t}`dauphin2017language`, section 2, equation 1; {cite:t}`so2019evolved` for the place.
    """

    def __init__(self, config: Config):
        super().__init__(config)
        # Both linear maps in one matrix.
        self.gated = nn.Linear(config.d_model, 2 * config.d_model)
        self.gated_norm = config.norm(config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        # PyTorch's `F.glu` splits the features into halves and multiplies the first by the sigmoid of the
        # second.
        x = x + self.dropout(F.glu(self.gated(self.gated_norm(x)), dim=-1))
        return super().forward(x)


if __name__ == "__main__":
    # ## How many blocks make a fair comparison?
    #
    # With $d_\text{ff} = 4d$, a block of the Transformer has about $12\,d^2$ parameters. This one has
    # $4\,d^2$ more in its additional attention and $4.5\,d^2$ in the branches. The table shows the sizes of
    # models of both, in millions, and the numbers of Primer's paper.
    from dataclasses import replace

    from labml_primer.training.costs import costs

    transformer = Config(
        vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=64
    )
    evolved = replace(transformer, layers=4, activation=nn.SiLU, block=EvolvedBlock)
    sizes = []
    for name, config, d_model, layers, paper in (
        ("Transformer", transformer, 512, 6, "35"),
        ("Evolved Transformer", evolved, 512, 3, ""),
        ("Evolved Transformer", evolved, 512, 4, "38"),
        ("Transformer", transformer, 768, 12, "110"),
        ("Evolved Transformer", evolved, 768, 6, ""),
        ("Evolved Transformer", evolved, 768, 7, "110"),
    ):
        config = replace(config, d_model=d_model, d_ff=4 * d_model, layers=layers)
        config = replace(config, heads=d_model // 64)
        with torch.device("meta"):
            parts = zip(*costs(LanguageModel(config)).values(), strict=True)
        millions = [f"{sum(part) / 1e6:.1f}" for part in parts]
        sizes.append((name, d_model, layers, *millions, paper))
    columns = ("model", "d_model", "blocks", "parameters", "multiply-adds", "paper")
    display(Table(columns, sizes))
    # Four blocks instead of six, and seven instead of twelve, give the paper's 38 and 110 million (Tables 4
    # and 5). The released code has these numbers of blocks: one more than half as many.
    #
    # :::{deviation} Primer's paper, appendix A.14
    # It says that a layer of the Evolved Transformer "has significantly less parameters than a standard
    # Transformer layer". It has more, though fewer than two of them.
    # :::
    #
    # A step takes longer all the same: 1.28 times as long in Table 4 (18.7 steps per second instead of 23.9).
    # {doc}`/benchmarks/speed` has our measurements. One reason is depth: four blocks of four layers are 16
    # layers in a row, and the Transformer has 12. Another is that convolutions move much memory for few
    # multiply-adds.


if __name__ == "__main__":
    # ## More per step, but slower steps
    #
    # The loss of five blocks of the Transformer, of three Evolved blocks with nearly as many parameters, and
    # of three with the gate, for two seeds each. On the left, by step, the Evolved Transformer ends ahead. On
    # the right, by seconds of CPU time, it loses some or all of its lead. The thin line is the loss of
    # counting the same characters ({doc}`../training/counting`), which no model reaches in 240 steps.
    from labml_primer.training import History, load_corpus, train
    from labml_primer.training.counted import counted_loss, draw_counted

    corpus = load_corpus()
    five = Config(
        corpus.vocab_size, d_model=48, heads=4, d_ff=192, layers=5, max_seq=64
    )
    three = replace(five, layers=3, activation=nn.SiLU, block=EvolvedBlock)
    entrants = {
        "Transformer": (five, "C5"),
        "Evolved": (three, "C4"),
        "Evolved, gate": (replace(three, block=GatedEvolvedBlock), "C4:"),
    }

    def race(name: str, seed: int) -> History:
        torch.manual_seed(seed)
        model = LanguageModel(entrants[name][0])
        return train(
            model, corpus, name=name, steps=240, batch=8, seq=64, seed=seed, warmup=50
        )

    histories = {name: [race(name, seed) for seed in (0, 1)] for name in entrants}
    order, counted = counted_loss(corpus, steps=240, batch=8, seq=64)
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7, 2.8), sharey=True, layout="constrained"
    )
    for name, runs in histories.items():
        line = entrants[name][1]
        for run, label in zip(runs, (name, None), strict=True):
            left.plot(run.steps, run.validation_loss, line, label=label)
            right.plot(run.seconds, run.validation_loss, line)
    for ax in (left, right):
        draw_counted(ax, order, counted)
    left.set(xlabel="step", ylabel="loss, nats per character")
    right.set(xlabel="seconds of CPU time")
    left.legend(frameon=False, loc="upper right")
    plt.show()
    # {doc}`/experiments/chapters/ours` has longer runs, with five seeds and a learning rate for each model.
    # The gate, with 10% more parameters, gains most in these short runs of two seeds.
    #
    # The paper found the same loss of the lead. At equal steps the Evolved Transformer is ahead of the
    # Transformer (Table 8): a {term}`perplexity` of 23.11 instead of 23.45 after 1.5 million steps on LM1B,
    # and 19.37 instead of 19.82 after a million on C4. At equal compute, a speed-up factor of 1.23 ± 0.02
    # remains on LM1B (Table 4). On C4 the factors are 0.89 and 0.98 (Table 5): the Transformer reaches the
    # same loss with less compute.
    #
    # A search finds what it is graded by. This one was graded by steps, and found a model whose steps are
    # long. The search for Primer gave each model the same time, at most seven hours on a TPU (section 2), so
    # a model with slow steps got fewer of them.


if __name__ == "__main__":
    # ## In short
    #
    # - The Evolved Transformer puts a second attention and two convolution branches before the usual block.
    # - In Primer's paper it learns more per step. But its steps take longer, and at equal compute less of the
    #   gain remains. In our small runs on characters it learns more per step with a learned table of
    #   positions only.
    # - Its search graded models after a fixed number of steps; the search for Primer, after a fixed time.
    #
    # ## Exercise
    #
    # :::{exercise} Without attention
    # Remove both attentions. How many blocks does it take until the last of 64 tokens depends on the first,
    # through the convolutions alone?
    # :::
    # :::{solution}
    # Four. The convolutions of a block reach 16 positions back, so those of $N$ blocks reach $16\,N$ back:
    # $1 + 16 \cdot 4 = 65$ positions. Attention reaches all of them in one block.
    # :::
    reaches = []
    for blocks in (1, 2, 3, 4):
        torch.manual_seed(0)
        x = torch.randn(64, 100, 16, dtype=torch.float64)
        y = torch.cat(
            [torch.randn_like(x[:, :1]), x[:, 1:]], dim=1
        )  # another first token
        with torch.no_grad():
            for _ in range(blocks):
                branches = BranchedConvolution(d_model=16).double()
                x, y = x + branches(x), y + branches(y)
        reaches.append(int((x != y).any(dim=2).any(dim=0).sum()))
    print("positions that see the first token:", *reaches)
    assert reaches == [17, 33, 49, 65]

    # The other models that Primer is compared with change one layer and keep the block. The first asks
    # whether attention has to compare queries with keys at all: {doc}`synthesizer`.
