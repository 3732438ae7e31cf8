r"""
# Residuals and normalization

Two things keep a deep stack of layers trainable: a direct path through the stack, to which layers only add,
and a norm that limits the size of features.

A {term}`Transformer` has dozens of layers, one after another. How does a signal get through all of them, and
how does the gradient get back to the first?

A {term}`residual connection` adds a layer's output to its input. The sum that runs through all layers is the
{term}`residual stream`. Because such a sum grows, a *norm* scales every position's features to a common size.
There are two places for the norm:

$$\begin{aligned}
  &\text{post-norm:} & x &\leftarrow \operatorname{LN}\big(x + \operatorname{sub}(x)\big) \\
  &\text{pre-norm:} & x &\leftarrow x + \operatorname{sub}\big(\operatorname{LN}(x)\big)
\end{aligned}$$

Here $x$ is the residual stream, `[batch, seq, d_model]`, the sub-layer $\operatorname{sub}$ is attention or
the feed-forward layer, and $\operatorname{LN}$ is layer norm, below. All keep that shape. The paper of 2017
describes {term}`post-norm`. The slides, this book and most models since use {term}`pre-norm`, because deep
models then depend less on {term}`warm-up`: in this chapter, a model of 12 blocks trains without it only with
pre-norm.

:::{picture} residual
:::

Source: {cite:t}`he2016deep` for residuals, {cite:t}`ba2016layer` and {cite:t}`zhang2019root` for the norms,
{cite:t}`xiong2020layer` for their position.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

if __name__ == "__main__":
    # ## The gradient in a deep stack
    #
    # Stack linear layers, each with a ReLU, and measure the gradient that reaches the weights of the first
    # layer. Compare a plain stack with one in which each layer *adds* to its input, and with one that also
    # normalizes that input.
    def plain(layer: nn.Linear, x: Tensor) -> Tensor:
        return F.relu(layer(x))

    def residual(layer: nn.Linear, x: Tensor) -> Tensor:
        return x + F.relu(layer(x))

    def residual_and_norm(layer: nn.Linear, x: Tensor) -> Tensor:
        return x + F.relu(layer(F.layer_norm(x, (64,))))

    def first_gradient(
        depth: int, step: Callable[[nn.Linear, Tensor], Tensor], he: bool = False
    ) -> float:
        torch.manual_seed(0)
        stack = [nn.Linear(64, 64, bias=False) for _ in range(depth)]
        x = torch.randn(256, 64)
        for layer in stack:
            if he:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            x = step(layer, x)
        error = (x * torch.randn_like(x)).sum()
        return float(torch.autograd.grad(error, stack[0].weight)[0].norm())

    # The gradient at the first layer by the number of layers, divided by its value at depth 1. Both scales
    # are logarithmic. In a plain stack (orange) the gradient vanishes as layers are added. With residuals
    # alone (blue) it explodes, because the features grow. With residuals and a norm (teal) it grows less than
    # five times in 64 layers. The fourth curve is explained below.
    depths = [1, 2, 4, 8, 16, 32, 64]
    curves = {
        "plain": [first_gradient(n, plain) for n in depths],
        "plain, He's weights": [first_gradient(n, plain, he=True) for n in depths],
        "residual": [first_gradient(n, residual) for n in depths],
        "residual and norm": [first_gradient(n, residual_and_norm) for n in depths],
    }
    curves = {name: [g / curve[0] for g in curve] for name, curve in curves.items()}

    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for name, color, x_label, y_label in (
        ("plain", "C1", 20, 1e-7),
        ("plain, He's weights", "C3", 17, 3e-3),
        ("residual", "C2", 17, 1e4),
        ("residual and norm", "C0", 1, 1e1),
    ):
        ax.plot(depths, curves[name], color=color, marker="o", markersize=3)
        ax.text(x_label, y_label, name, color=color)
    ax.set(xscale="log", yscale="log", ylim=(1e-14, 1e7))
    ax.set_xticks(depths, [str(depth) for depth in depths])
    ax.minorticks_off()
    ax.set(xlabel="layers", ylabel="gradient at the first layer")
    plt.show()

    # :::{deviation} the slides, residual connection
    # They blame the derivative of ReLU alone. It is one of two factors.
    # :::
    #
    # Why does the gradient vanish in a plain stack? The backward pass through a layer of width $n$ multiplies
    # the *squared* gradient by $\tfrac12$, because ReLU's derivative is zero in about half of the cases, and
    # by $n \operatorname{Var}(w)$ for the weights $w$. PyTorch's linear layers start with
    # $n \operatorname{Var}(w) = \tfrac13$, so the gradient shrinks by $\sqrt{1/6}$ per layer.
    # {cite:t}`he2015delving` start with 2, which cancels the $\tfrac12$ exactly:
    for name, gain in (("plain", 1 / 3), ("plain, He's weights", 2.0)):
        expected = (gain / 2) ** 0.5
        measured = (curves[name][5] / curves[name][4]) ** (1 / 16)
        print(f"{name:19s} per layer: {expected:.2f} expected, {measured:.2f} measured")
    # So a plain stack can start with a healthy gradient, but that does not make it train well. The plain
    # networks of {cite:t}`he2016deep` had batch normalization and healthy gradients, and still the deeper
    # ones fitted the training data worse. A residual layer only has to learn a change to its input. A change
    # of zero is easy to learn, so more depth need not do harm.


def check_features(x: Tensor, weight: Tensor) -> None:
    """Raise `ValueError` unless `x` has floating-point features, as many as `weight`."""
    if x.size(-1) != len(weight) or not x.is_floating_point():
        raise ValueError(
            f"{x.dtype} {list(x.shape)} is not floating point [..., {len(weight)}]"
        )


class LayerNorm(nn.Module):
    r"""
    ## Layer norm

    {term}`Layer norm` shifts and scales the features of one position to mean zero and variance one. Then it
    multiplies each feature by a trained gain $\gamma$ and adds a trained bias $\beta$ ($\odot$ multiplies
    feature by feature):

    $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot \gamma + \beta$$

    Mean $\mu$ and variance $\sigma^2$ are over the last dimension alone, so no position affects another. The
    shape, `[batch, seq, d_model]`, stays the same. The layer equals `nn.LayerNorm`, which the other chapters
    use because it is one fused operation.

    :::{picture} layer_norm
    :::

    Source: {cite:t}`ba2016layer`.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        check_features(x, self.weight)
        # The largest number in half precision is 65,504, so even the square of 256 is infinite. Mean and
        # variance are therefore computed in single precision at least.
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centered = wide - wide.mean(dim=-1, keepdim=True)
        # Divide by $d_\text{model}$, not by $d_\text{model} - 1$: this is the variance of these numbers, not
        # an estimate from a sample.
        variance = centered.square().mean(dim=-1, keepdim=True)
        # $\varepsilon$ prevents a division by zero if all features of a position are equal.
        normalized = centered * torch.rsqrt(variance + self.eps)
        return (normalized * self.weight + self.bias).to(x.dtype)


class RMSNorm(nn.Module):
    r"""
    ## RMSNorm

    Is it worth subtracting the mean? {term}`RMSNorm` does not subtract it, has no bias, and divides by the
    root of the mean square:

    $$y = \frac{x}{\sqrt{\tfrac1d \sum_i x_i^2 + \varepsilon}} \odot \gamma$$

    So it needs one statistic of each position instead of two. In its authors' experiments it was about as
    good, and most large models now use it. If the features have mean zero, the two norms agree. The
    layer equals `nn.RMSNorm` with the same `eps`.

    Source: {cite:t}`zhang2019root`.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        check_features(x, self.weight)
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        mean_square = wide.square().mean(dim=-1, keepdim=True)
        normalized = wide * torch.rsqrt(mean_square + self.eps)
        return (normalized * self.weight).to(x.dtype)


if __name__ == "__main__":
    # ## What is normalized together?
    #
    # Multiply all features by 10, or add 10 to them, and print how much the result of each norm changes.
    # Layer norm undoes both, RMSNorm only the scaling.
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    norms: dict[str, nn.Module] = {"layer norm": LayerNorm(8), "RMSNorm": RMSNorm(8)}
    with torch.no_grad():
        for name, norm in norms.items():
            scaled, shifted = norm(10 * x) - norm(x), norm(x + 10) - norm(x)
            print(
                f"{name:10s}  scaled by 10: {scaled.abs().max():.4f}  "
                f"shifted by 10: {shifted.abs().max():.4f}"
            )

    # In the figure a row is a position and a column a feature, and numbers of one colour are normalized
    # together. *Batch norm* {cite:p}`ioffe2015batch` (left) takes each feature over all positions of all
    # sentences. Layer norm and RMSNorm (right) take each position by itself. The first sentence has four
    # words, the second two, and the rest is padding.
    words = ["first 1", "first 2", "first 3", "first 4", "second 1", "second 2", "", ""]
    rows, columns = torch.meshgrid(torch.arange(8), torch.arange(6), indexing="ij")
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    for ax, groups, name in zip(
        axes, (columns, rows), ("batch norm", "layer norm and RMSNorm"), strict=True
    ):
        ax.pcolormesh(groups, cmap="viridis", edgecolors="white", linewidth=2)
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.set_yticks([row + 0.5 for row in range(8)], [w or "padding" for w in words])
        ax.tick_params(length=0)
        ax.set_xlabel(f"features: {name}")
    plt.show()

    # So with batch norm a sentence's result depends on the other sentences in its batch, and on the amount of
    # padding. The table shows how much the results of one sentence change at most if another sentence
    # replaces its neighbour, and if five positions of zeros are added. Only batch norm's change.
    from IPython.display import display

    from labml_primer.training.table import Table

    norms["batch norm"] = nn.BatchNorm1d(8)
    sentence, other, third = torch.randn(3, 5, 8).unbind()
    batches = {
        "one": torch.stack([sentence, other]),
        "another": torch.stack([sentence, third]),
        "padded": F.pad(torch.stack([sentence, other]), (0, 0, 0, 5)),
    }
    changes = []
    with torch.no_grad():
        for name, norm in norms.items():
            result = {
                case: norm(batch.flatten(0, 1)).view(batch.shape)[0, :5]
                for case, batch in batches.items()
            }
            moved, padded = (
                (result[case] - result["one"]).abs().max()
                for case in ("another", "padded")
            )
            changes.append([name, f"{moved:.2f}", f"{padded:.2f}"])
    display(Table(["norm", "other sentence", "more padding"], changes))
    # Padding can be left out of the statistics, but the other sentences cannot. A model that generates text
    # may also have a batch of one and a single new position. Batch norm then has to use averages saved from
    # training, so it computes a different function than in training. Layer norm always computes the same one.
    #
    # The slides also name *PowerNorm* {cite:p}`shen2020powernorm`, which repairs batch norm for Transformers
    # with running averages in training, too. Hardly any language model has it.


class PreNorm(nn.Module):
    r"""
    ## Pre-norm

    Return $x + \operatorname{dropout}(\operatorname{sublayer}(\operatorname{LN}(x)))$. Sub-layers only add to
    the residual stream `x`, which is never normalized itself. So a stack of them needs one more norm at its
    end. `sublayer` is any function from `[batch, seq, d_model]` to the same shape.

    Source: {cite:t}`xiong2020layer`, section 3.
    """

    def __init__(self, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        x = x + self.dropout(sublayer(self.norm(x)))
        return x


class PostNorm(PreNorm):
    r"""
    ## Post-norm

    Return $\operatorname{LN}(x + \operatorname{dropout}(\operatorname{sublayer}(x)))$, as in the original
    paper. The norm is in the stream, so every path from input to output passes through all norms.

    Source: {cite:t}`vaswani2017attention`, section 3.1.
    """

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        x = self.norm(x + self.dropout(sublayer(x)))
        return x


if __name__ == "__main__":
    # ## Gradients before the first step
    #
    # :::{deeper}
    # In post-norm, gradients shrink towards the input; in pre-norm, towards the output.
    # :::
    #
    # {cite:t}`xiong2020layer` compute the gradients at initialization, with Xavier's initial weights, which
    # keep the variance of features about equal from layer to layer. In post-norm, gradients shrink towards
    # the input: each norm divides the sum of two terms of about equal size by about $\sqrt2$. In pre-norm the
    # stream grows as $\sqrt N$ with the number of blocks $N$. The last norm divides by its size, so the
    # gradient of the last block falls as $1/\sqrt N$.
    #
    # A small language model tests this. The pre-norm and the post-norm model differ only in the wrapper and
    # in the last norm, which only pre-norm needs.
    from labml_primer.training import load_corpus
    from labml_primer.transformer.attention import MultiHeadAttention
    from labml_primer.transformer.feed_forward import PositionwiseFeedForward

    class Block(nn.Module):
        def __init__(self, wrapper: type[PreNorm], d_model: int):
            super().__init__()
            self.attention = MultiHeadAttention(d_model, heads=4)
            self.feed_forward = PositionwiseFeedForward(d_model, 4 * d_model)
            self.first, self.second = wrapper(d_model), wrapper(d_model)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x, lambda y: self.attention(y, y, causal=True))
            x = self.second(x, self.feed_forward)
            return x

    class Model(nn.Module):
        def __init__(self, wrapper: type[PreNorm], layers: int, d_model: int = 32):
            super().__init__()
            self.embedding = nn.Embedding(corpus.vocab_size, d_model)
            self.positions = nn.Parameter(torch.randn(32, d_model) * 0.02)
            self.blocks = nn.Sequential(
                *(Block(wrapper, d_model) for _ in range(layers))
            )
            self.norm = nn.Identity() if wrapper is PostNorm else LayerNorm(d_model)
            self.logits = nn.Linear(d_model, corpus.vocab_size)

        def forward(self, tokens: Tensor) -> Tensor:
            x = self.blocks(self.embedding(tokens) + self.positions)
            logits: Tensor = self.logits(self.norm(x))
            return logits

    corpus = load_corpus()

    def draw_loss(model: Model) -> Tensor:
        starts = torch.randint(len(corpus.train) - 32, (16, 1))
        window = corpus.train[starts + torch.arange(33)]
        return F.cross_entropy(model(window[:, :-1]).transpose(1, 2), window[:, 1:])

    # `gradients` returns, for each block, the norm (here: the length) of the gradient of the feed-forward
    # layer's second matrix, averaged over three seeds.
    def gradients(wrapper: type[PreNorm], layers: int, xavier: bool = True) -> Tensor:
        found = []
        for seed in range(3):
            torch.manual_seed(seed)
            model = Model(wrapper, layers)
            for weight in model.blocks.parameters():
                if xavier and weight.dim() == 2:
                    nn.init.xavier_normal_(weight)
            named = model.named_parameters()
            last = [weight for name, weight in named if "contract.weight" in name]
            slopes = torch.autograd.grad(draw_loss(model), last)
            found.append([slope.norm() for slope in slopes])
        return torch.tensor(found).mean(dim=0)

    # On the left, the gradient in each of 12 blocks. Post-norm's (orange) grows towards the last block.
    # Pre-norm's (teal) shrinks: in the backward pass each block adds its share, so the first block has most.
    # On the right, the gradient of the last block by depth. Pre-norm's falls, post-norm's does not.
    depths = [2, 4, 8, 16, 32]
    kinds = {"pre-norm": PreNorm, "post-norm": PostNorm}
    profiles = {name: gradients(kind, 12) for name, kind in kinds.items()}
    by_depth = {
        name: torch.stack([gradients(kind, depth)[-1] for depth in depths])
        for name, kind in kinds.items()
    }
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    for name, color, shift in (("pre-norm", "C0", -0.1), ("post-norm", "C1", 0.05)):
        left.plot(range(1, 13), profiles[name], color=color)
        left.text(12, profiles[name][11] + shift, name, color=color, ha="right")
        right.plot(depths, by_depth[name], color=color, marker="o", markersize=3)
    left.set(xlabel="block, of 12", ylabel="norm of gradient", ylim=(0, 1))
    left.set_xticks([1, 4, 8, 12])
    right.set(xlabel="number of blocks", ylabel="norm at the last block", ylim=(0, 1))
    right.set(xscale="log")
    right.set_xticks(depths, [str(depth) for depth in depths])
    right.minorticks_off()
    plt.show()

    # The same as ratios. The first column is from the right of the figure: $1/\sqrt N$ predicts 0.25 for
    # pre-norm with 16 times as many blocks; the measured ratio is larger, so the gradient falls more slowly
    # here. The second column is from the left of the figure. The third is like the second, but with PyTorch's
    # own initial weights. They are smaller, so each sub-layer adds little at first, and post-norm's gradients
    # are much more even. Should post-norm then train well?
    default = {name: gradients(kind, 12, xavier=False) for name, kind in kinds.items()}
    display(
        Table(
            ["kind", "32 blocks / 2 blocks", "last / first of 12", "PyTorch's weights"],
            [
                [
                    name,
                    *(
                        f"{g[-1] / g[0]:.2f}"
                        for g in (by_depth[name], profiles[name], g0)
                    ),
                ]
                for name, g0 in default.items()
            ],
        )
    )


if __name__ == "__main__":
    # ## Training with and without warm-up
    #
    # {term}`Warm-up` ({doc}`../training/loop`) starts with a learning rate near zero and raises it over the
    # first steps. Here the rate rises for half of the run, or is constant from the first step. The models
    # have 12 narrow blocks with PyTorch's own initial weights. Adam trains them, without clipping or weight
    # decay, with two seeds of each kind.
    layers, rate, steps, warmup = 12, 5e-3, 100, 50

    def losses(wrapper: type[PreNorm], warmup: int, seed: int) -> Tensor:
        torch.manual_seed(seed)
        model = Model(wrapper, layers)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        history = []
        for step in range(1, steps + 1):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, step / max(warmup, 1))
            loss = draw_loss(model)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        return torch.tensor(history).unfold(0, 10, 1).mean(dim=-1)

    # The loss by step, as the mean of 10 steps: on the left without warm-up, on the right with it. The
    # horizontal line is the unigram guess ({doc}`../training/counting`), which knows only how frequent each
    # character is. Without warm-up post-norm (orange) gets no further than that line; with it, both kinds
    # pass it.
    runs = {
        (name, ramp): torch.stack([losses(kind, ramp, seed) for seed in (0, 1)])
        for ramp in (0, warmup)
        for name, kind in kinds.items()
    }
    frequency = torch.bincount(corpus.train).double() / len(corpus.train)
    unigram = -torch.special.xlogy(frequency, frequency).sum().item()
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained", sharey=True)
    for ax, ramp in zip(axes, (0, warmup), strict=True):
        for name, color, shift in (("pre-norm", "C0", -0.3), ("post-norm", "C1", 0.2)):
            smooth = runs[name, ramp]
            ax.plot(range(10, steps + 1), smooth.T, color=color)
            end = smooth[:, -1].mean() + shift
            ax.text(steps, end, name, color=color, ha="right")
        ax.set_xlabel(f"step, {'with' if ramp else 'without'} warm-up")
        ax.axhline(unigram, color="C5", linewidth=0.8)
    axes[0].set(ylabel="loss, nats per character", ylim=(2.1, 4.2))
    plt.show()

    # At this depth and rate, post-norm needs its warm-up and pre-norm does not.
    display(
        Table(
            ["final loss, nats per character", "seed 0", "seed 1"],
            [
                [
                    f"{name}, {'with' if ramp else 'without'} warm-up",
                    *(f"{loss:.2f}" for loss in smooth[:, -1]),
                ]
                for (name, ramp), smooth in runs.items()
            ],
            f"The unigram guess has {unigram:.2f}",
        )
    )
    # With these initial weights, post-norm's gradients are nearly even at the start (*Gradients before the
    # first step*), so uneven gradients cannot be the whole explanation. {cite:t}`liu2020understanding` reach
    # the same conclusion. They find that in post-norm each sub-layer contributes more to the output, so a
    # small change of all weights changes the output more. And Adam's first steps have full size, however
    # small the gradient. This is one small model in a short run, but {cite:t}`xiong2020layer` saw the same in
    # translation.


if __name__ == "__main__":
    # ## In short
    #
    # - A residual connection adds a sub-layer's output to its input, so that the gradient has a direct path
    #   around each sub-layer.
    # - Layer norm scales each position's features to mean zero and variance one; RMSNorm leaves the mean as
    #   it is. Both treat every position separately, unlike batch norm.
    # - Pre-norm normalizes the input of a sub-layer, post-norm the sum. At 12 blocks and a high learning
    #   rate, post-norm needs a warm-up and pre-norm does not.
    #
    # ## Exercise
    #
    # :::{exercise} What a norm forgets
    # A layer norm gives the same for $x$, for $10\,x$ and for $x + 10$. What does this say about the gradient
    # with respect to $x$, for any loss computed from the norm's output?
    # :::
    # :::{solution}
    # In a direction in which the output does not change, the slope is zero. So the gradient is orthogonal to
    # $x$ and to the vector of ones. And because an input 10 times as large has to move 10 times as far for
    # the same change, the gradient at $10\,x$ is 0.1 times that at $x$. The larger the stream, the less an
    # addition to it changes what the next sub-layer sees.
    # :::
    point, pull = torch.randn(2, 8, 64, dtype=torch.float64)
    found = []
    for factor in (1.0, 10.0):
        inputs = (factor * point).requires_grad_()
        pulled = (F.layer_norm(inputs, (64,), eps=0.0) * pull).sum()
        found.append(torch.autograd.grad(pulled, inputs)[0])
    along, level = (found[0] * point).sum(dim=-1), found[0].sum(dim=-1)
    print(f"along x {along.abs().max():.0e}, along the ones {level.abs().max():.0e}")
    print(f"gradient at ten times x: {found[1].norm() / found[0].norm():.3f} times")
    assert max(along.abs().max(), level.abs().max()) < 1e-12
    torch.testing.assert_close(found[1], found[0] / 10)

    # :::{exercise} Write it: layer norm
    # Write layer norm without gain and bias, for `x` of any shape. Each position is normalized by itself.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def normalize(x: Tensor, eps: float = 1e-5) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    cases: list[Case] = [
        (
            (torch.tensor([[1.0, 3.0], [0.0, -8.0]]),),
            torch.tensor([[-1.0, 1.0], [1.0, -1.0]]),
            "each row by itself: of 1 and 3, the mean is 2 and the variance 1",
        ),
        ((torch.full((2, 3), 7.0),), torch.zeros(2, 3), "eps is for equal features"),
        (
            (torch.tensor([[1.0, 3.0]]), 1.0),
            torch.tensor([[-0.70711, 0.70711]]),
            "eps is added to the variance: 1 / sqrt(1 + 1)",
        ),
        (
            (torch.tensor([[[0.0, 0.0, 3.0]]]),),
            torch.tensor([[[-0.70711, -0.70711, 1.41421]]]),
            "the mean is 1 and the variance 2, in a batch of one text",
        ),
    ]
    check_answer(normalize, cases)

    # :::{solution}
    # `var` divides by $d - 1$ by default, which is for samples. `unbiased=False` divides by $d$.
    # :::
    def solved(x: Tensor, eps: float = 1e-5) -> Tensor:
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, unbiased=False)
        return (x - mean) * torch.rsqrt(variance + eps)

    assert check_answer(solved, cases)

    # The blocks of this book are pre-norm: {doc}`encoder`.
