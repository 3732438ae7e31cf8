r"""
# Primer-EZ

Two changes to the Transformer that a search over programs found: square the ReLU, and let queries, keys and
values look two tokens back.

Suppose you may change two lines of a Transformer. Which two? {cite:t}`so2021primer` let a search answer: it
rewrote the program of a language model again and again, and kept what learned most in a fixed time. The model
that won, Primer, differs from its ancestor in many places. Most of the gain comes from two of them, and a
Transformer with those two alone is Primer-EZ.

The first is in the feed-forward layer, whose activation is squared:

$$y = \max(x, 0)^2$$

The second is in attention. After the projections to queries, keys and values comes a causal convolution along
the sequence, three wide, in each channel of each head separately:

$$y_t = w_0\,x_{t-2} + w_1\,x_{t-1} + w_2\,x_t$$

Both make a step slower. The claim is that so many fewer steps are needed that the total compute falls. At the
end of this chapter a Transformer and a Primer-EZ race each other.

:::{picture} primer_ez
:::

Source: {cite:t}`so2021primer`, sections 3 and 4, and released code (google-research, `primer/t5_models.py`);
the annotated walk-through of {cite:t}`jayasiri2020annotated`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Config, LanguageModel


class SquaredReLU(nn.Module):
    r"""
    ## Squared ReLU

    $$\operatorname{SquaredReLU}(x) = \max(x, 0)^2$$

    It takes the place of the ReLU between the two linear maps of the feed-forward layer. It has no parameters
    and works on any shape. The paper calls it the most effective of Primer's changes (section 3); in our own
    runs the convolution was more effective ({doc}`/experiments/chapters/ours`).

    :::{variant} labml_primer.transformer.feed_forward.PositionwiseFeedForward
    :with: activation=SquaredReLU
    :::
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


if __name__ == "__main__":
    # ## The effect of the square
    #
    # Next to the usual activations, as in the paper's Figure 5. On the left, near zero: the squared ReLU
    # leaves it as flat as it came, as its slope $2\max(x, 0)$ has no jump. On the right, far out, with both
    # axes logarithmic: the others all approach the line $y = x$, and the squared ReLU rises twice as steeply.
    # Twice the input is four times the output.
    import matplotlib.pyplot as plt

    activations: dict[str, tuple[nn.Module, str]] = {
        "ReLU": (nn.ReLU(), "C5"),
        "GELU": (nn.GELU(), "C1"),
        "Swish": (nn.SiLU(), "C2"),
        "squared ReLU": (SquaredReLU(), "C0"),
    }
    fig, (near, far) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    x_near, x_far = torch.linspace(-2, 2, 201), torch.logspace(0, 2, 50)
    for name, (activation, color) in activations.items():
        near.plot(x_near, activation(x_near), color=color, label=name)
        far.loglog(x_far, activation(x_far), color=color)
    near.set(xlabel="x", ylabel="y")
    near.legend(frameon=False)
    far.set(xlabel="x", ylabel="y")
    far.annotate("squared ReLU", (12, 300), ha="right", color="C0")
    far.annotate("ReLU, GELU, Swish", (8, 1.5), color="C5")
    plt.show()
    # ### It is a gate that opens itself
    #
    # Gated units multiply two projections of the same input; ReGLU {cite:p}`shazeer2020glu` is
    # $xU \odot \max(xV, 0)$. With $U = V$ the gate and what it lets through are one, and as
    # $u \cdot \max(u, 0) = \max(u, 0)^2$, the result is the squared ReLU, without the second matrix.
    torch.manual_seed(0)
    x, u = torch.randn(16, 64), torch.randn(64, 256) / 8
    reglu = (x @ u) * F.relu(x @ u)
    difference = (reglu - SquaredReLU()(x @ u)).abs().max()
    print(f"largest difference from ReGLU with U = V: {difference:.1e}")


class SpatialDepthWiseConvolution(nn.Module):
    r"""
    ## A causal convolution for each channel

    Each channel $c$ of each head $h$ has a kernel of its own, $K$ = `kernel_size` long, which runs along the
    sequence and sees no later token:

    $$y_{t,h,c} = \sum_{i=0}^{K-1} w_{i,h,c}\; x_{t-(K-1)+i,\,h,\,c}$$

    In the code `weight` is $w$ and `kernel_size` is $K$. The last weight, $w_{K-1}$, is for the current
    token. Before the first token there are zeros. The paper calls it *spatial*, as positions are its space,
    and *depth-wise*, as no channel sees another; the projection before it has already mixed them.

    :::{picture} convolution
    :::

    :::{deviation} the walk-through of Primer-EZ
    Its main class has the same `d_k` kernels for **all heads**, with a bias and PyTorch's initialization, and
    its constructor takes `d_k` alone. Here as in the paper's released code (`causal_depthwise_conv`), each
    head has its own kernels, without a bias. The walk-through's layer is
    {py:class}`~labml_primer.primer.variations.MultiDConvSharedByHeadsAttention`. Its tensors are
    sequence-first, ours are batch-first.
    :::
    """

    def __init__(self, heads: int, d_k: int, kernel_size: int = 3):
        super().__init__()
        self.kernel_size = kernel_size
        # As in the released code, a new layer looks mostly at the current token: its weight is 0.5, that of
        # each earlier token 0.5/3. With `heads=1` all heads share their kernels, by broadcasting.
        self.weight = nn.Parameter(
            torch.full((kernel_size, heads, d_k), 0.5 / kernel_size)
        )
        nn.init.constant_(self.weight[-1], 0.5)

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, seq, heads, d_k]` to the same shape, for any `seq`."""
        y = x * self.weight[-1]
        # Token $t$ gets its share of the token `back` places earlier. The first `back` tokens have none.
        for back in range(1, self.kernel_size):
            y[:, back:] += x[:, :-back] * self.weight[-1 - back]
        return y


if __name__ == "__main__":
    # ## Three positions wide, and causal
    #
    # Change the token at position 5 and see which outputs change: its own and the two after it.
    torch.manual_seed(0)
    convolution = SpatialDepthWiseConvolution(heads=4, d_k=32)
    x = torch.randn(1, 10, 4, 32)
    changed = x.clone()
    changed[:, 5] += 1.0
    moved = (convolution(changed) - convolution(x)).abs().amax(dim=(0, 2, 3))
    print("outputs that changed:", moved.nonzero().flatten().tolist())
    # ### The same as `nn.Conv1d`
    #
    # PyTorch's convolution, with as many groups as channels, computes the same, and is what the
    # walk-through uses. It expects the sequence last, and pads both ends, so the last two outputs are
    # cropped.
    reference = nn.Conv1d(128, 128, kernel_size=3, padding=2, groups=128, bias=False)
    reference.load_state_dict({"weight": convolution.weight.flatten(1).T[:, None]})
    channels = x.flatten(2).transpose(1, 2)  # [batch, heads * d_k, seq]
    expected = reference(channels)[:, :, :10].transpose(1, 2).view_as(x)
    difference = (convolution(x) - expected).abs().max()
    print(f"largest difference: {difference:.1e}")


class MultiDConvHeadAttention(MultiHeadAttention):
    r"""
    ## Multi-DConv-head attention

    {py:class}`~labml_primer.transformer.attention.MultiHeadAttention` with a convolution after each
    of its three projections, and nothing else changed. The pseudo-code of the paper's Figure 4 makes
    each head of queries, keys and values so: project to the head's size, then convolve along the
    sequence, three wide, with a causal mask.

    Now a key can mean "a *t* and an *h* before me", and a query can ask for it. A plain head sees single
    tokens, and needs a layer below it that combines them with their neighbours.

    The order is the reverse of a separable convolution, which the paper found less effective
    (appendix A.6): first every channel is mixed at each position, then every position in each channel.

    :::{variant} MultiDConvHeadAttention
    :of: MultiHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = SpatialDepthWiseConvolution(heads, self.d_k)
        self.key_conv = SpatialDepthWiseConvolution(heads, self.d_k)
        self.value_conv = SpatialDepthWiseConvolution(heads, self.d_k)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        return self.query_conv(query), self.key_conv(key), self.value_conv(value)


if __name__ == "__main__":
    # ## How much is there to learn?
    #
    # At `d_model` 512 with 8 heads, the size of the first Transformer, for queries, keys and values together:
    # very little next to the four projections.
    layer = MultiDConvHeadAttention(d_model=512, heads=8)
    plain = MultiHeadAttention(d_model=512, heads=8)
    projections, total = (
        sum(parameter.numel() for parameter in module.parameters())
        for module in (plain, layer)
    )
    print(f"kernels:              {total - projections:9,d}")
    print(f"the four projections: {projections:9,d}")
    # ### It contains plain attention
    #
    # With the kernel (0, 0, 1) the convolution changes nothing, and the layer is plain attention. So whatever
    # plain attention can compute, this can.
    layer.load_state_dict(plain.state_dict(), strict=False)
    for conv in (layer.query_conv, layer.key_conv, layer.value_conv):
        nn.init.zeros_(conv.weight)
        nn.init.ones_(conv.weight[-1])
    x = torch.randn(2, 20, 512)
    difference = (layer(x, x, causal=True) - plain(x, x, causal=True)).abs().max()
    print(f"largest difference from plain attention: {difference:.1e}")
    # From width 256 on a step of Primer-EZ takes about a tenth more time than the Transformer's, and more in
    # narrower models ({doc}`/benchmarks/speed`). {doc}`faster` shows where the time goes and wins most of it
    # back.


def speedup_factor(
    baseline_cost: Sequence[float],
    baseline_loss: Sequence[float],
    cost: Sequence[float],
    loss: Sequence[float],
) -> float:
    r"""
    ## The speed-up factor

    The paper's measure (section 4.1): the compute that the baseline has spent at its end, divided by the
    compute after which the model first reaches the same loss.

    $$F = \frac{C_{\text{baseline}}}
               {\min\{\,C : L(C) \le L_{\text{baseline}}\}}$$

    Compute is any cost that grows along a run: steps, seconds. Each run is a list of costs and a list of
    losses, one of each per evaluation, and the loss is interpolated linearly between evaluations. Returns
    `nan` if the model never reaches the baseline's loss.
    """
    target = baseline_loss[-1]
    # The first evaluation at or below the target, and where the line to it crosses.
    for i, reached in enumerate(loss):
        if reached <= target:
            if i == 0:
                return baseline_cost[-1] / cost[0]
            share = (loss[i - 1] - target) / (loss[i - 1] - reached)
            crossing = cost[i - 1] + share * (cost[i] - cost[i - 1])
            return baseline_cost[-1] / crossing
    return math.nan


if __name__ == "__main__":
    # ## The race
    #
    # A Transformer and a Primer-EZ, each with the same seed, the same characters of Shakespeare in the
    # same order, and the same number of steps. They differ in the two changes of this chapter.
    from labml_primer.training import load_corpus, train
    from labml_primer.transformer.generation import generate

    corpus = load_corpus()
    transformer = Config(corpus.vocab_size, max_seq=64)
    configs = {
        "Transformer": transformer,
        "Primer-EZ": replace(
            transformer, attention=MultiDConvHeadAttention, activation=SquaredReLU
        ),
    }
    models, histories = {}, {}
    for name, config in configs.items():
        torch.manual_seed(0)
        models[name] = LanguageModel(config)
        histories[name] = train(
            models[name], corpus, name=name, steps=450, seq=64, evaluations=15
        )
    # On the left, the loss on plays that neither has read, by step; on the right by seconds of processor
    # time, where Primer-EZ pays for its slower steps. The dotted line is the Transformer's final loss.
    vanilla, primer_ez = histories["Transformer"], histories["Primer-EZ"]
    colors = {"Transformer": "C5", "Primer-EZ": "C0"}
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7, 2.6), sharey=True, layout="constrained"
    )
    for name, history in histories.items():
        left.plot(history.steps, history.validation_loss, color=colors[name])
        right.plot(history.seconds, history.validation_loss, color=colors[name])
    middle = len(vanilla.steps) // 2
    for name, offset, side in (
        ("Transformer", (4, 6), "left"),
        ("Primer-EZ", (-4, -12), "right"),
    ):
        left.annotate(
            name,
            (vanilla.steps[middle], histories[name].validation_loss[middle]),
            xytext=offset,
            textcoords="offset points",
            ha=side,
            color=colors[name],
        )
    for ax in (left, right):
        ax.axhline(vanilla.validation_loss[-1], color="C5", ls=":", lw=1)
    left.set(xlabel="step", ylabel="loss, nats per character")
    right.set(xlabel="seconds of processor time")
    plt.show()
    # ### Who won, and by how much
    #
    # The paper's factor, once with steps as the compute and once with seconds.
    factors = {
        cost: speedup_factor(
            getattr(vanilla, cost),
            vanilla.validation_loss,
            getattr(primer_ez, cost),
            primer_ez.validation_loss,
        )
        for cost in ("steps", "seconds")
    }
    print(
        f"Final loss: Transformer {vanilla.validation_loss[-1]:.3f}, "
        f"Primer-EZ {primer_ez.validation_loss[-1]:.3f}.\n"
        f"Speed-up factor: {factors['steps']:.1f} in steps, "
        f"{factors['seconds']:.1f} in seconds."
    )
    # This is one seed and a short run. Much of what there is to learn this early is in the one or two
    # characters before the current one. A convolution sees them directly, and plain attention must first
    # learn to find them, which may be why Primer-EZ leads so early. {doc}`/experiments/chapters/ours` has
    # longer runs with five seeds.
    #
    # The walk-through says that Primer-EZ trains "a lot faster". The paper, with runs of many hours, reports
    # factors from 1.75 to 2.34 for Primer-EZ on the task of its search, by code base and hardware (Table 4),
    # and from 1.71 to 1.98 on larger data with 110 million parameters (Table 5). Its often quoted 4.2 is the
    # whole Primer's, at 537 million parameters (Table 1, section 4.3).
    #
    # What do the two write by now? Both continue the same prompt with the same random seed.
    prompt = corpus.encode("ROMEO.\n")[None]
    for name, model in models.items():
        generator = torch.Generator().manual_seed(0)
        written = generate(model, prompt, 160, temperature=0.8, generator=generator)
        print(f"--- {name}\n{corpus.decode(written[0])}\n")


if __name__ == "__main__":
    # ## In short
    #
    # - Primer-EZ is a Transformer with two changes: a squared ReLU, and a causal convolution, three wide,
    #   after the projections to queries, keys and values.
    # - Each head has its own kernels, without a bias. They add a fraction of a percent of parameters.
    # - In our short race Primer-EZ needs far fewer steps for the same loss; how many depends on data, size
    #   and positions, and one seed cannot say.
    #
    # ## Exercise
    #
    # :::{exercise} Three in a row
    # One convolution looks two tokens back. Apply three of them, one after another, and change the token at
    # position 5 of twenty. Which outputs change?
    # :::
    # :::{solution}
    # Those from 5 to 11. Each convolution passes on what reached it, two positions further, so $n$ of width
    # $K$ look $n\,(K - 1)$ back. So after three layers Primer-EZ sees tokens six positions back through its
    # convolutions alone, without attention.
    # :::
    three = nn.Sequential(*(SpatialDepthWiseConvolution(4, 32) for _ in range(3)))
    stream = torch.randn(1, 20, 4, 32)
    changed = stream.clone()
    changed[:, 5] += 1.0
    difference = (three(changed) - three(stream)).abs().amax(dim=(0, 2, 3))
    moved = difference.nonzero().flatten().tolist()
    print("outputs that changed:", moved)
    assert moved == [5, 6, 7, 8, 9, 10, 11]

    # Which of the two changes does the work? {doc}`variations` takes them apart.
