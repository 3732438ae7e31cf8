r"""
# Evolved Transformer

What an earlier search made of the Transformer: convolutions in two branches, before a block that stays as it
was. It learns more from each step, and its steps take longer.

Primer was not the first Transformer that a search found. Two years before, some of the same authors had
found another. What was it, and why did they search again?

That search put models together from large pieces: attention, convolutions of several widths, a gated linear
unit. It graded each by what it had learned after a fixed number of steps, whatever a step cost. The best one
was made for translation, with an encoder and a decoder. A language model is the decoder alone, and there the
search put two layers before the usual two:

$$
\begin{aligned}
X_1 &= X + \operatorname{MultiHead}_{2H}(\operatorname{LN}(X)) \\
X_2 &= X_1 + \operatorname{Branches}(\operatorname{LN}(X_1)) \\
X_3 &= X_2 + \operatorname{MultiHead}_{H}(\operatorname{LN}(X_2)) \\
X_4 &= X_3 + \operatorname{FFN}(\operatorname{LN}(X_3))
\end{aligned}
$$

The third line and the fourth are {py:class}`~labml_primer.transformer.encoder.EncoderBlock`. The first is
attention with twice as many heads $H$, the second is two convolutions side by side, and both are made below.
All convolutions are causal, so the block can write. What a translator's decoder has for looking at the
source, beside the first attention and behind the second, is left out.

Source: {cite:t}`so2019evolved`, Figure 3 and released code (tensor2tensor, `evolved_transformer.py`); what
{cite:t}`so2021primer` ran, Tables 4, 5 and 8, appendix A.14 and released code (google-research,
`primer/gin`).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.encoder import EncoderBlock
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.generation import Past


class SeparableConvolution(nn.Module):
    r"""
    ## A separable convolution

    A full convolution has a matrix for each of the $K$ positions it sees. A *separable* one first runs a
    kernel along each channel, then mixes the channels with a single matrix:

    $$y_t = b + \Big(\sum_{i=0}^{K-1} w_i \odot x_{t-(K-1)+i}\Big)\,W$$

    with $w_i$ for the kernel's numbers at position $i$, one a channel, and $W$ for the matrix. So width is
    cheap: one more position is $d_\text{in}$ numbers, and not $d_\text{in}\,d_\text{out}$.
    `[batch, seq, d_in]` to `[batch, seq, d_out]`, and before the beginning there are zeros.

    Raises `ValueError` where `kernel_size` is below one.
    """

    def __init__(self, d_in: int, d_out: int, kernel_size: int):
        super().__init__()
        # Primer-EZ's convolution, as it is: to it, all channels are one wide head. A bias here would only be
        # added to that of the matrix.
        self.depthwise = SpatialDepthWiseConvolution(d_in, kernel_size)
        self.depthwise.register_parameter("bias", None)
        self.pointwise = nn.Linear(d_in, d_out)

    def forward(self, x: Tensor, past: Past | None = None) -> Tensor:
        """With a `past`, `x` goes on where the last call ended: see {doc}`../transformer/generation`."""
        return self.pointwise(self.depthwise(x.unsqueeze(2), past).squeeze(2))


if __name__ == "__main__":
    # ## What is saved
    #
    # The three convolutions of a block at `d_model` 512, and what each would have as a full one. Parameters
    # in thousands, without biases; a token is multiplied with each of them once.
    print("channels        width  separable     full")
    for d_in, d_out, width in ((512, 1024, 11), (512, 256, 7), (1024, 512, 7)):
        separable = SeparableConvolution(d_in, d_out, width)
        weights = sum(p.numel() for p in separable.parameters() if p.dim() > 1)
        print(
            f"{d_in:4d} to {d_out:4d}{width:9d}{weights / 1e3:10.0f}k"
            f"{width * d_in * d_out / 1e3:8.0f}k"
        )


class BranchedConvolution(nn.Module):
    r"""
    ## Two branches

    One branch is wide in both senses, it sees eleven positions and has $2d$ channels, and a ReLU follows.
    The other is narrow, seven positions and $d/2$ channels, and stays linear. Their sum goes through a norm,
    and a third convolution brings it back to $d$ channels:

    $$
    \begin{aligned}
    X_\text{wide} &= \max(0,\; \operatorname{sep}_{11}(X)) \\
    X_\text{narrow} &= [\operatorname{sep}_{7}(X);\; 0] \\
    Y &= \operatorname{sep}_{7}(\operatorname{LN}(X_\text{wide} + X_\text{narrow}))
    \end{aligned}
    $$

    `[batch, seq, d_model]` to the same. Source: Figure 3, where $d = 512$, so that the channels are 1024 and
    256.
    """

    def __init__(
        self, d_model: int, dropout: float = 0.0, norm: type[nn.Module] = nn.LayerNorm
    ):
        super().__init__()
        self.left = SeparableConvolution(d_model, 2 * d_model, kernel_size=11)
        self.right = SeparableConvolution(d_model, d_model // 2, kernel_size=7)
        self.norm = norm(2 * d_model)
        self.joined = SeparableConvolution(2 * d_model, d_model, kernel_size=7)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, past: Past | None = None) -> Tensor:
        left = self.dropout(F.relu(self.left(x, past)))
        right = self.dropout(self.right(x, past))
        # The narrow branch fills up with zeros to be as wide as the other. So it reaches the first quarter of
        # the channels, and the others are the wide branch's alone.
        right = F.pad(right, (0, left.size(-1) - right.size(-1)))
        return self.joined(self.norm(left + right), past)


if __name__ == "__main__":
    # ## How far back it sees
    #
    # Nudge the token at position 8 and see how far each later output moves. Behind the widest way, through
    # eleven positions and then seven, lie $11 + 7 - 1 = 17$ positions; through the narrow branch, $13$.
    import matplotlib.pyplot as plt

    torch.manual_seed(0)
    branches = BranchedConvolution(d_model=64).double()
    x = torch.randn(256, 32, 64, dtype=torch.float64)
    nudged = x.clone()
    nudged[:, 8] = torch.randn(256, 64, dtype=torch.float64)
    with torch.no_grad():
        moved = (branches(nudged) - branches(x)).square().mean(dim=(0, 2)).sqrt()
    print("outputs that moved:", moved.nonzero().flatten().tolist())
    fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
    ax.bar(range(32), moved, color="C0")
    ax.axvline(8, color="C5", ls=":", lw=1)
    ax.set(xlabel="position of the output", ylabel="how far it moved")
    plt.show()
    # Nothing before the token moves: zeros stand at the left of each convolution alone. The first of the
    # two attentions has all positions in view already. What the convolutions add to it is order: for each
    # step back there is another weight.


class EvolvedBlock(EncoderBlock):
    r"""
    ## The block

    {py:class}`~labml_primer.transformer.encoder.EncoderBlock` with two layers before its own. `[batch, seq,
    d_model]` to the same. With `nn.SiLU` as the activation, also called Swish, it is the paper's.

    The convolutions never look ahead, even where `causal` is off. No mask hides a token from them, so padding
    belongs at the end of a text, under `causal`.

    :::{deviation} the first released code
    Tensor2tensor has one more norm, between the two matrices of the feed-forward layer. What Primer's
    authors ran on T5 has none there (`medium_evolved_transformer.gin`). Theirs is the comparison that this
    part of the book is about, so ours has none.
    :::

    Raises `ValueError` where `2 * heads` does not divide `d_model`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        attention: type[MultiHeadAttention] = MultiHeadAttention,
        activation: type[nn.Module] = nn.SiLU,
        feed_forward: type[PositionwiseFeedForward] = PositionwiseFeedForward,
        norm: type[nn.Module] = nn.LayerNorm,
    ):
        super().__init__(
            d_model, heads, d_ff, dropout, attention, activation, feed_forward, norm
        )
        # Figure 3 has 16 heads here and 8 in the second attention. Each is half as wide, so the parameters
        # are the same.
        #
        # :::{deviation} the released code
        # Tensor2tensor first had at least 16 heads, later twice as many as elsewhere and at most 16. Primer's
        # `DoubleHeadsAttentionLayer` has twice as many, whatever their number, and so do we.
        # :::
        if d_model % (2 * heads):
            raise ValueError(
                f"d_model {d_model} is not a multiple of 2 * heads {heads}"
            )
        self.wide_attention = attention(d_model, 2 * heads, dropout)
        self.wide_attention_norm = norm(d_model)
        self.branches = BranchedConvolution(d_model, dropout, norm)
        self.branches_norm = norm(d_model)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        past: Past | None = None,
    ) -> Tensor:
        """As in {py:class}`~labml_primer.transformer.encoder.EncoderBlock`."""
        y = self.wide_attention_norm(x)
        x = x + self.dropout(self.wide_attention(y, y, mask, causal, past))
        x = x + self.dropout(self.branches(self.branches_norm(x), past))
        # What is left is the Transformer.
        return super().forward(x, mask, causal, past)


class GatedEvolvedBlock(EvolvedBlock):
    r"""
    ## The gate of the encoder

    A *gated linear unit* multiplies, feature by feature, one linear map of its input with a number between
    zero and one, which another makes:

    $$\operatorname{GLU}(x) = (xW + b) \odot \sigma(xU + c)$$

    The Evolved Transformer is known for it. But in Figure 3 and in all the released code, only the block
    of the *encoder* begins with one. The decoder has none, and so there is none in the model that Primer is
    compared with. This class puts it in front, where the encoder has it, to see what it would bring.

    Source: {cite:t}`dauphin2017language`, section 2, equation 1; {cite:t}`so2019evolved` for the place.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        attention: type[MultiHeadAttention] = MultiHeadAttention,
        activation: type[nn.Module] = nn.SiLU,
        feed_forward: type[PositionwiseFeedForward] = PositionwiseFeedForward,
        norm: type[nn.Module] = nn.LayerNorm,
    ):
        super().__init__(
            d_model, heads, d_ff, dropout, attention, activation, feed_forward, norm
        )
        # Both maps at once, side by side.
        self.gated = nn.Linear(d_model, 2 * d_model)
        self.gated_norm = norm(d_model)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        past: Past | None = None,
    ) -> Tensor:
        # PyTorch's `F.glu` splits the features into halves, and multiplies the first with the sigmoid of the
        # second.
        x = x + self.dropout(F.glu(self.gated(self.gated_norm(x)), dim=-1))
        return super().forward(x, mask, causal, past)


if __name__ == "__main__":
    # ## How many blocks are fair?
    #
    # With $d_\text{ff} = 4d$, a block of the Transformer has $12\,d^2$ parameters and some biases. This one
    # has as many, and $4\,d^2$ more in its second attention and $4.5\,d^2$ in the branches. Here are the
    # sizes of both, in millions, with those of Primer's paper beside them; the vocabulary is a guess, as in
    # {doc}`../primer/primer`.
    from dataclasses import replace
    from functools import partial

    from labml_primer.primer.presets import TRANSFORMER
    from labml_primer.transformer.model import Config, LanguageModel

    vanilla = TRANSFORMER
    evolved = replace(vanilla, layers=4, activation=nn.SiLU, block=EvolvedBlock)

    def millions(config: Config) -> tuple[float, float]:
        with torch.device("meta"):
            costs = LanguageModel(config).costs().values()
        parameters, products = (
            sum(column) / 1e6 for column in zip(*costs, strict=True)
        )
        return parameters, products

    print(f"{'':20s}{'d':>4s}{'blocks':>8s}{'params':>9s}{'MACs':>8s}   paper")
    for name, config, d_model, layers, told in (
        ("Transformer", vanilla, 512, 6, "35"),
        ("Evolved Transformer", evolved, 512, 3, ""),
        ("Evolved Transformer", evolved, 512, 4, "38, Table 4"),
        ("Transformer", vanilla, 768, 12, "110"),
        ("Evolved Transformer", evolved, 768, 6, ""),
        ("Evolved Transformer", evolved, 768, 7, "110, Table 5"),
    ):
        config = replace(
            config,
            d_model=d_model,
            heads=d_model // 64,
            d_ff=4 * d_model,
            layers=layers,
        )
        parameters, products = millions(config)
        print(
            f"{name:20s}{config.d_model:4d}{layers:8d}{parameters:8.1f}M{products:7.1f}M"
            f"   {told}"
        )
    # Four blocks for six and seven for twelve give the paper's 38 and 110 million, and its released code has
    # these numbers. An Evolved block is as deep as two of the Transformer's, and has fewer parameters than
    # two. So there is one block more than half as many.
    #
    # :::{deviation} Primer's paper, appendix A.14
    # It says that a layer of the Evolved Transformer "has significantly less parameters than a standard
    # Transformer layer". It has more than one of them, and fewer than two.
    # :::

    # ### And how long a step takes
    #
    # At those 35 and 38 million, on two sequences of 64, there and back; the vocabulary, which is the same
    # for both, is left out.
    from labml_primer.training import median_seconds

    def step(model: LanguageModel, tokens: Tensor) -> None:
        model.zero_grad()
        model(tokens).logsumexp(dim=-1).sum().backward()

    tokens = torch.zeros(2, 64, dtype=torch.long)
    taken = median_seconds(
        {
            name: partial(step, LanguageModel(replace(config, vocab_size=1)), tokens)
            for name, config in (("Transformer", vanilla), ("Evolved", evolved))
        },
        rounds=5,
    )
    here = taken["Evolved"] / taken["Transformer"]
    print(
        f"A step takes {here:.2f} times as long here, and took {23.9 / 18.7:.2f} times "
        "as long\nin Table 4: 18.7 steps a second for 23.9."
    )
    # The model is deeper: four blocks of four layers make sixteen, one behind another, where the Transformer
    # has twelve. And a convolution moves much memory for the little that it multiplies.


if __name__ == "__main__":
    # ## More from a step, and fewer steps
    #
    # Five blocks of the Transformer against three of these, at nearly the same number of parameters, and
    # three with the gate. Each is trained from two seeds.
    from labml_primer.primer.primer_ez import speedup_factor
    from labml_primer.training import History, load_corpus, train

    corpus = load_corpus()

    def small(config: Config, layers: int) -> Config:
        return replace(
            config,
            vocab_size=corpus.vocab_size,
            d_model=48,
            heads=4,
            d_ff=192,
            layers=layers,
        )

    three = small(evolved, layers=3)
    entrants = {
        "Transformer": (small(vanilla, layers=5), "C5"),
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
    # The same runs twice: over steps at the left, over seconds of processor time at the right.
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7, 2.8), sharey=True, layout="constrained"
    )
    for name, runs in histories.items():
        line = entrants[name][1]
        for run, label in zip(runs, (name, None), strict=True):
            left.plot(run.steps, run.validation_loss, line, label=label)
            right.plot(run.seconds, run.validation_loss, line)
    left.set(xlabel="step", ylabel="loss, nats a character")
    right.set(xlabel="seconds of processor time")
    left.legend(frameon=False)
    plt.show()
    # ### What each costs, and what it brings
    #
    # Parameters and multiplications a token, in thousands; the seconds of a run over the Transformer's; then,
    # for each seed, the loss at the end, and the {py:func}`~labml_primer.primer.primer_ez.speedup_factor` in
    # steps and in seconds.
    print(
        f"{'':14s}{'params':>7s}{'MACs':>6s}{'time':>6s}{'loss':>14s}"
        f"{'x steps':>12s}{'x seconds':>12s}"
    )
    for name, runs in histories.items():
        size, products = (1e3 * number for number in millions(entrants[name][0]))
        cells = {"loss": "", "steps": "", "seconds": ""}
        for first, run in zip(histories["Transformer"], runs, strict=True):
            cells["loss"] += f"{run.validation_loss[-1]:7.3f}"
            for cost in ("steps", "seconds"):
                factor = speedup_factor(
                    getattr(first, cost),
                    first.validation_loss,
                    getattr(run, cost),
                    run.validation_loss,
                )
                cells[cost] += f"{factor:6.2f}"
        slower = runs[0].seconds[-1] / histories["Transformer"][0].seconds[-1]
        print(
            f"{name:14s}{size:6.0f}k{products:5.0f}k{slower:6.2f}"
            + "".join(cells.values())
        )
    # Two short races on letters, where convolutions have an easy game: see {doc}`../primer/variations`. What
    # a model gains in steps it loses again in seconds, in part or altogether, since its steps take longer.
    # How much depends on the run: in {doc}`/experiments/chapters/ours`, longer, with five seeds
    # and a rate of its own for each model, three quarters are left.
    #
    # The gate gains most in both runs, with a tenth more parameters. The search could have put one into the
    # decoder, and did not: it looked at translation, and at larger models.
    #
    # So it was in the paper. At equal steps the Evolved Transformer is ahead of the Transformer (Table 8):
    # a perplexity of 23.11 for 23.45 after 1.5 million steps on LM1B, and 19.37 for 19.82 after a million on
    # C4. At equal compute a factor of 1.23 is left of it on LM1B (Table 4), and none on C4, where the
    # Transformer was there earlier: 0.89 and 0.98 (Table 5).
    #
    # A search finds what it is graded by. This one was graded by steps, and found a model whose steps are
    # long. The one that found Primer gave each model the same time, seven hours of a TPU at most in place of
    # the 24 it aimed at (section 2), so that a slow step was the model's own loss.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} Without attention
    # Take both attentions out. How many blocks does it take until the convolutions alone show the last of 64
    # tokens the first one?
    # :::
    # :::{solution}
    # Four. A block's convolutions reach 16 positions back, and with the residual around them they reach
    # $16\,N$ through $N$ blocks: $1 + 16 \cdot 4 = 65$ positions. Attention reaches all of them in one.
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

    # The other models that Primer is compared with change a layer and leave the block as it is. First one
    # that doubts whether attention has to compare: {doc}`synthesizer`.
