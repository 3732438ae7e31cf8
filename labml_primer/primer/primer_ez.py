r"""
# Primer-EZ

Two changes to the Transformer that a search over programs found: square the ReLU, and let queries, keys and
values look two tokens back.

Suppose you may change two lines of a Transformer. Which two? {cite:t}`so2021primer` let a search answer. It
repeatedly changed the program of a language model at random, and continued from the programs that predicted
best after a fixed training time. The winner differs from the Transformer in nine ways. Five of them make the
model that the paper calls Primer ({doc}`primer`). Two of them give most of the gain, and a Transformer with
those two alone is Primer-EZ.

In short: the first change squares the {term}`activation function` of the {term}`feed-forward layer`:

$$y = \max(x, 0)^2$$

The second adds a {term}`causal convolution` of width 3 to attention, after the projections to queries, keys
and values. Each channel (one of the `d_k` features) of each head is convolved separately. With $x_t$ and
$y_t$ its values at position $t$ before and after:

$$y_t = w_0\,x_{t-2} + w_1\,x_{t-1} + w_2\,x_t$$

In the paper, with 35 million parameters, Primer-EZ reaches the Transformer's loss 1.75 to 2.34 times faster.
What our runs say at one million parameters: {doc}`/experiments/chapters/results`.

:::{picture} primer_ez
:::

Source: {cite:t}`so2021primer`, sections 3 and 4, and released code (google-research, `primer/t5_models.py`);
the walk-through is that of {cite:t}`jayasiri2020annotated`.
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

    It replaces the {term}`ReLU` between the two linear maps of the feed-forward layer. It has no parameters
    and works on any shape. In `float16`, squares of a few hundred and more are infinite; `bfloat16` has room
    for them. Powers of the ReLU, *rectified polynomials*, were studied before {cite:p}`krotov2016dense`. The
    paper believes that it is the first to show one to be useful in Transformers.

    The paper (section 3) and the *walk-through*, an annotated implementation of Primer-EZ
    {cite:p}`jayasiri2020annotated`, call it the most effective of Primer's changes. In our small
    runs this depends on the positions ({doc}`/experiments/chapters/parts`). *Why might the square help?*, at
    the end of this chapter, looks at it in a trained model.

    :::{variant} labml_primer.transformer.feed_forward.PositionwiseFeedForward
    :with: activation=SquaredReLU
    :::
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


if __name__ == "__main__":
    # ## The effect of the square
    #
    # The squared ReLU next to common activation functions, as in the paper's Figure 5. On the left, near
    # zero: its slope, $2\max(x, 0)$, has no jump, unlike that of ReLU. On the right, with both axes
    # logarithmic: the others approach $y = x$, while the squared ReLU rises twice as steeply, because twice
    # the input gives four times the output.
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
    # ### The squared ReLU is a gated unit with shared weights
    #
    # A {term}`gated linear unit` multiplies two projections of the same input. One of this kind, ReGLU
    # {cite:p}`shazeer2020glu`, is $xU \odot \max(xV, 0)$. With $U = V$ it is the squared ReLU, because
    # $u \cdot \max(u, 0) = \max(u, 0)^2$, and needs one matrix less.
    torch.manual_seed(0)
    x, u = torch.randn(16, 64), torch.randn(64, 256) / 8
    reglu = (x @ u) * F.relu(x @ u)
    difference = (reglu - SquaredReLU()(x @ u)).abs().max()
    print(f"largest difference from ReGLU with U = V: {difference:.1e}")


class SpatialDepthWiseConvolution(nn.Module):
    r"""
    ## A causal depthwise convolution

    A *convolution* computes each output from the inputs near its position, with the same weights, the
    {term}`kernel`, at every position. This one is a *causal* {term}`depthwise convolution`. Causal means that
    it reads no later token, and depthwise that each channel $c$ of each head $h$ has a kernel of its own and
    reads no other channel. In the code `weight` is $w$ and `kernel_size` is $K$:

    $$y_{t,h,c} = \sum_{i=0}^{K-1} w_{i,h,c}\; x_{t-(K-1)+i,\,h,\,c}$$

    The last weight, $w_{K-1}$, is for the current token. Inputs before the first token count as zero. The
    paper calls it *spatial* because it runs over positions.

    :::{picture} convolution
    :::

    :::{deviation} the walk-through of Primer-EZ
    In its main class **all heads share** `d_k` kernels, with a bias and PyTorch's initialization, and the
    constructor takes `d_k` alone. Here, as in the paper's released code (`causal_depthwise_conv`), each head
    has its own kernels, without a bias. The walk-through's layer is here, too:
    {py:class}`~labml_primer.primer.variations.MultiDConvSharedByHeadsAttention`.
    :::
    """

    def __init__(self, heads: int, d_k: int, kernel_size: int = 3):
        super().__init__()
        self.kernel_size = kernel_size
        # As in the released code, the weight of the current token starts at 0.5, and that of each earlier
        # token at 0.5/3 (for a kernel of size 3). With `heads=1`, broadcasting gives all heads of the input
        # the same kernels.
        start = torch.full((kernel_size, heads, d_k), 0.5 / kernel_size)
        start[-1] = 0.5
        self.weight = nn.Parameter(start)

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, seq, heads, d_k]` to the same shape, for any `seq`."""
        weight = self.weight.to(x.dtype)  # if x is in half precision, so is the result
        y = x * weight[-1]
        # Add the input `back` positions earlier, times its weight. The first `back` positions have none.
        for back in range(1, self.kernel_size):
            y[:, back:] += x[:, :-back] * weight[-1 - back]
        return y


if __name__ == "__main__":
    # ## Three positions wide, and causal
    #
    # Change the input at position 5. The outputs that change are its own and the two after it.
    torch.manual_seed(0)
    convolution = SpatialDepthWiseConvolution(heads=4, d_k=32)
    x = torch.randn(1, 10, 4, 32)
    changed = x.clone()
    changed[:, 5] += 1.0
    moved = (convolution(changed) - convolution(x)).abs().amax(dim=(0, 2, 3))
    print("outputs that changed:", moved.nonzero().flatten().tolist())
    # ### The same as `nn.Conv1d`
    #
    # The walk-through uses PyTorch's `nn.Conv1d` with as many groups as channels, which computes the same. It
    # expects the sequence in the last dimension and pads both ends, so the last two outputs are cropped.
    reference = nn.Conv1d(128, 128, kernel_size=3, padding=2, groups=128, bias=False)
    reference.load_state_dict({"weight": convolution.weight.flatten(1).T[:, None]})
    channels = x.flatten(2).transpose(1, 2)  # [batch, heads * d_k, seq]
    expected = reference(channels)[:, :, :10].transpose(1, 2).view_as(x)
    difference = (convolution(x) - expected).abs().max()
    print(f"largest difference: {difference:.1e}")


class MultiDConvHeadAttention(MultiHeadAttention):
    r"""
    ## Multi-DConv-head attention (MDHA)

    *MDHA* is {py:class}`~labml_primer.transformer.attention.MultiHeadAttention` with a depthwise convolution
    (*DConv*) after each of its three projections, to queries, keys and values, and nothing else changed (the
    paper's Figure 4).

    A mask hides keys from queries, but not tokens from the convolutions: the first two tokens after hidden
    {term}`padding` still read it. So pad texts at their end, not at their beginning.

    Now a key can stand for "a *t* and an *h* before me", and a query can ask for it. A head without the
    convolution compares single tokens, unless an earlier layer has combined them with their neighbours.

    The projection mixes channels at each position, then the convolution mixes positions in each channel. A
    {term}`separable convolution` has the reverse order, which the paper found less effective (appendix A.6;
    {doc}`primer` has the layer). According to the paper (section 3), the nearest earlier layer has that
    order: "Convolutional Attention", for example in CvT, a model of images {cite:p}`wu2021cvt`.

    :::{deviation} the paper's released code
    There the scores are not divided by $\sqrt{d_k}$. Instead, the weights of the queries' projection start
    smaller by that factor (`fold_scaling_into_initializer`). At initialization both give the same scores. In
    training they differ, unless the steps of the optimizer are proportional to the weights, as those of that
    code's are. Its projections also have no biases.
    :::

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
    # ## The extra parameters of MDHA
    #
    # At `d_model` 512 with 8 heads, all kernels for queries, keys and values together have less than 1% of
    # the parameters of the four projections.
    from IPython.display import display

    from labml_primer.training.table import Table

    layer = MultiDConvHeadAttention(d_model=512, heads=8)
    plain = MultiHeadAttention(d_model=512, heads=8)
    projections, total = (
        sum(parameter.numel() for parameter in module.parameters())
        for module in (plain, layer)
    )
    rows = (
        ("kernels", f"{total - projections:,}"),
        ("the four projections", f"{projections:,}"),
    )
    display(Table(("part", "parameters"), rows))
    # ### It contains plain attention
    #
    # With the kernel (0, 0, 1) the convolution changes nothing, so the layer can compute everything that
    # plain attention can.
    layer.load_state_dict(plain.state_dict(), strict=False)
    for conv in (layer.query_conv, layer.key_conv, layer.value_conv):
        nn.init.zeros_(conv.weight)
        nn.init.ones_(conv.weight[-1])
    x = torch.randn(2, 20, 512)
    difference = (layer(x, x, causal=True) - plain(x, x, causal=True)).abs().max()
    print(f"largest difference from plain attention: {difference:.1e}")
    # A training step of Primer-EZ takes longer than one of the Transformer, the more so the narrower the
    # model. {doc}`/benchmarks/speed` has the times, and {doc}`faster` shows where the time goes and how to
    # save most of it.


def speedup_factor(
    baseline_cost: Sequence[float],
    baseline_loss: Sequence[float],
    cost: Sequence[float],
    loss: Sequence[float],
) -> float:
    r"""
    ## The speed-up factor

    The paper's measure (section 4.1): the compute $C$ that the baseline has used at the end of its run,
    divided by the compute after which the model first reaches the same loss $L$.

    $$F = \frac{C_{\text{baseline}}}
               {\min\{\,C : L(C) \le L_{\text{baseline}}\}}$$

    Compute is any cost that grows during a run, such as steps or seconds. A run is a list of costs and a list
    of losses, one of each per evaluation; between evaluations the loss is interpolated linearly. Returns
    `nan` if the model never reaches the baseline's loss.

    :::{picture} speedup
    :::
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
    # Train a Transformer and a Primer-EZ with the same random seed, on the same characters of Shakespeare in
    # the same order. They differ in the two changes of this chapter alone.
    from labml_primer.training import load_corpus, train
    from labml_primer.training.counted import counted_loss, draw_counted
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
            models[name], corpus, name=name, steps=450, batch=8, seq=64, evaluations=15
        )
    order, counted = counted_loss(corpus, steps=450, batch=8, seq=64)
    # On the left, the loss on held-out plays, by step; on the right, by seconds of CPU time, which includes
    # the cost of Primer-EZ's slower steps. The dotted line is the Transformer's final loss: look where
    # Primer-EZ crosses it. The thin line is the loss of counting the same characters
    # ({doc}`../training/counting`), {value}`f"{counted:.2f}"`. Neither model reaches it in so short a run, so
    # this race is about how fast a model learns what counts know already.
    vanilla, primer_ez = histories["Transformer"], histories["Primer-EZ"]
    colors = {"Transformer": "C5", "Primer-EZ": "C0"}
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7, 2.6), sharey=True, layout="constrained"
    )
    for name, history in histories.items():
        line = {"color": colors[name], "label": name}
        left.plot(history.steps, history.validation_loss, **line)
        right.plot(history.seconds, history.validation_loss, **line)
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
        draw_counted(ax, order, counted)
    left.set(xlabel="step", ylabel="loss, nats per character")
    right.set(xlabel="seconds of CPU time")
    plt.show()
    # ### The speed-up
    #
    # The paper's factor, once with steps as the compute and once with seconds of CPU time.
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
    # This is one short run, and early in training the one or two previous characters help most. A convolution
    # reads them directly, while attention must first learn to find them. {doc}`/experiments/chapters/ours`
    # has longer runs with five seeds.
    #
    # The paper's 1.75 to 2.34 are for the task of its search and depend on code base and hardware (Table 4).
    # The often quoted 4.2 is for the whole Primer, with 537 million parameters (Table 1, section 4.3).
    #
    # ### A sample from each
    #
    # Both models continue the same prompt with the same random seed. After 450 steps neither writes English,
    # but the words of Primer-EZ can be pronounced. On the page {doc}`/book/pages/write`, two such
    # models continue your own text in the browser.
    prompt = corpus.encode("ROMEO.\n")[None]
    for name, model in models.items():
        generator = torch.Generator().manual_seed(0)
        written = generate(model, prompt, 160, temperature=0.8, generator=generator)
        print(f"--- {name}\n{corpus.decode(written[0])}\n")


if __name__ == "__main__":
    # ## Why might the square help?
    #
    # The paper shows that it helps, not why: its authors believe that the square has the benefits of gated
    # units without their third matrix (section 3). What it does to a trained model can be computed. Take the
    # Transformer of the race, and the inputs of its activation functions on held-out text.
    from labml_primer.transformer.feed_forward import PositionwiseFeedForward

    def before_activation(model: nn.Module) -> Tensor:
        seen: list[Tensor] = []
        hooks = [
            module.expand.register_forward_hook(lambda *call: seen.append(call[2]))
            for module in model.modules()
            if isinstance(module, PositionwiseFeedForward)
        ]
        with torch.no_grad():
            model(corpus.validation[: 16 * 64].view(16, 64))
        for hook in hooks:
            hook.remove()
        return torch.cat(seen).flatten(0, 1)  # [positions, d_ff]

    # How many of a position's features have 90% of the sum of all, in absolute values?
    def strongest(y: Tensor) -> float:
        sizes = y.abs().sort(dim=-1, descending=True).values
        before = sizes.cumsum(dim=-1) - sizes
        share: Tensor = (before < 0.9 * sizes.sum(dim=-1, keepdim=True)).float().mean()
        return share.item()

    # The same inputs (grey: how frequent each value is) go through three functions, each with its output
    # (solid) and its slope (dashed), by which the backward pass multiplies a gradient.
    #
    # - **What fires.** With ReLU and its square the same features, {value}`f"{positive:.0%}"` of all; the
    #   others are 0. With GELU they are not, and as most inputs of this model are negative, they add up. It
    #   was trained with ReLU; one trained with GELU would have other inputs.
    # - **How sharply.** Of a position's features, {value}`f"{sharp['ReLU']:.0%}"` have 90% of the output with
    #   ReLU, and {value}`f"{sharp['squared ReLU']:.0%}"` with its square, which makes large outputs larger
    #   and small ones smaller. With GELU it is {value}`f"{sharp['GELU']:.0%}"`.
    # - **What a gradient sees.** ReLU passes it on unchanged to every feature that fires. The square
    #   multiplies it by $2x$: the more a feature fires, the larger its gradient, without a jump at 0.
    #
    # So each feature is its own gate. In the Primer-EZ of the race, which was trained with the square,
    # {value}`f"{sharp['own']:.0%}"` of the features have 90% of the output. This does not show that sharper
    # is better: {doc}`/experiments/chapters/parts` measures the gain of the square.
    x = before_activation(models["Transformer"])
    own = SquaredReLU()(before_activation(models["Primer-EZ"]))
    positive = (x > 0).float().mean().item()
    sharp, grid = {"own": strongest(own)}, torch.linspace(-4, 4, 401)

    def slope(function: nn.Module, x: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        gradient: Tensor = torch.autograd.grad(function(x).sum(), x)[0]
        return gradient

    fig, axes = plt.subplots(
        1, 3, figsize=(7, 3), layout="constrained", sharex=True, sharey=True
    )
    for ax, name in zip(axes, ("ReLU", "GELU", "squared ReLU"), strict=True):
        function, color = activations[name]
        sharp[name] = strongest(function(x))
        heights = torch.histc(x, 40, -4, 4) * 20 / x.numel()
        ax.bar(torch.linspace(-3.9, 3.9, 40), heights, 0.2, color="C5", alpha=0.3)
        ax.plot(grid, function(grid), color=color)
        ax.plot(grid, slope(function, grid), color=color, ls="--")
        shares = (
            f"output: {sharp[name]:.0%}\nslope: {strongest(slope(function, x)):.0%}"
        )
        ax.text(-3.8, 4, f"features with 90%\nof {shares}", va="top")
        ax.set(title=name, xlabel="x", ylim=(-0.3, 4.2))
    plt.show()


if __name__ == "__main__":
    # ## In short
    #
    # - Primer-EZ is a Transformer with two changes: a squared ReLU, and a causal depthwise convolution of
    #   width 3 after the projections to queries, keys and values (MDHA).
    # - Each channel of each head has its own kernel, without a bias. All kernels together add less than 1% to
    #   the parameters of attention.
    # - Steps are slower, but fewer are needed for the same loss. The paper reports speed-up factors of 1.75
    #   to 2.34 in time; {doc}`/experiments/chapters/results` has ours.
    # - The paper calls the squared ReLU the more effective of the two. In our small runs on characters that
    #   depends on the positions ({doc}`/experiments/chapters/parts`).
    #
    # ## Exercise
    #
    # :::{exercise} Three in a row
    # One convolution looks two positions back. Apply three of them, one after another, to twenty positions,
    # and change the input at position 5. Which outputs change?
    # :::
    # :::{solution}
    # Those from 5 to 11. Each convolution passes information two positions further, so $n$ of width $K$ look
    # $n\,(K - 1)$ positions back.
    # :::
    three = nn.Sequential(*(SpatialDepthWiseConvolution(4, 32) for _ in range(3)))
    stream = torch.randn(1, 20, 4, 32)
    changed = stream.clone()
    changed[:, 5] += 1.0
    difference = (three(changed) - three(stream)).abs().amax(dim=(0, 2, 3))
    moved = difference.nonzero().flatten().tolist()
    print("outputs that changed:", moved)
    assert moved == [5, 6, 7, 8, 9, 10, 11]

    # :::{exercise} Write it: a causal convolution
    # Write the convolution of one channel: `x` is `[seq]` and `weight` is `[K]`, the last of which is for the
    # current token. Inputs before the first count as zero.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def convolve(x: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    kernel = torch.tensor([1.0, 2.0, 3.0])
    cases: list[Case] = [
        (
            (torch.eye(4)[0], kernel),
            [3.0, 2.0, 1.0, 0.0],
            "a token reaches the next two",
        ),
        ((torch.ones(2), kernel), [3.0, 5.0], "a text may be shorter than the kernel"),
        ((torch.arange(3.0), kernel[2:]), [0.0, 3.0, 6.0], "here K is 1"),
    ]
    check_answer(convolve, cases)

    # :::{solution}
    # Zeros before the text make every window complete.
    # :::
    def solved(x: Tensor, weight: Tensor) -> Tensor:
        padded = F.pad(x, (len(weight) - 1, 0))
        return padded.unfold(0, len(weight), 1) @ weight

    assert check_answer(solved, cases)

    # How should the kernels be shared, and which of the two changes does the work? {doc}`variations`.
