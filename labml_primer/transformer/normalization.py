r"""
# Residuals and normalization

Two things keep a deep stack of layers trainable: a path on which layers only add, and a norm that limits the
size of features.

A block has two sub-layers, and a Transformer has dozens of them, one after another. How does a signal get
through all of them, and how does the gradient get back?

Two devices do this together. A *residual connection* adds a sub-layer's output to its input, so that a path
leads from end to end that no sub-layer interrupts. Because such a sum grows, a *norm* scales every position's
features to a common size. The position of the norm makes two kinds of Transformer:

$$\begin{aligned}
  &\text{post-norm:} & x &\leftarrow \operatorname{LN}\big(x + \operatorname{sub}(x)\big) \\
  &\text{pre-norm:} & x &\leftarrow x + \operatorname{sub}\big(\operatorname{LN}(x)\big)
\end{aligned}$$

The paper of 2017 is post-norm in its text. The slides, this book and most models since are pre-norm.
This chapter measures why.

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
    # Stack linear layers, each with a ReLU, send a batch through, and measure the gradient that reaches the
    # weights of the first. With residuals each layer *adds* to its input.
    import matplotlib.pyplot as plt

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
        return torch.autograd.grad(error, stack[0].weight)[0].norm().item()

    # Each curve is divided by its own value at depth 1.
    depths = [1, 2, 4, 8, 16, 32, 64]
    curves = {
        "plain": [first_gradient(depth, plain) for depth in depths],
        "plain, He's weights": [
            first_gradient(depth, plain, he=True) for depth in depths
        ],
        "residual": [first_gradient(depth, residual) for depth in depths],
        "residual and norm": [
            first_gradient(depth, residual_and_norm) for depth in depths
        ],
    }
    curves = {name: [g / curve[0] for g in curve] for name, curve in curves.items()}
    print(f"{'depth':19s}", *(f"{depth:7d}" for depth in depths))
    for name, curve in curves.items():
        print(f"{name:19s}", *(f"{gradient:7.0e}" for gradient in curve))

    labels = {
        "plain": ("C1", 20, 1e-7),
        "plain, He's weights": ("C3", 17, 3e-3),
        "residual": ("C2", 17, 1e4),
        "residual and norm": ("C0", 1, 1e1),
    }
    fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for name, (color, x_label, y_label) in labels.items():
        ax.plot(depths, curves[name], color=color, marker="o", markersize=3)
        ax.text(x_label, y_label, name, color=color)
    ax.set(xscale="log", yscale="log", ylim=(1e-14, 1e7))
    ax.set_xticks(depths, [str(depth) for depth in depths])
    ax.minorticks_off()
    ax.set(xlabel="layers", ylabel="gradient at the first layer")
    plt.show()
    # :::{deviation} the slides, residual connection
    # They blame the derivative of ReLU, which is zero in about half of the cases. That is right, but only one
    # of two factors. The backward pass through a layer of width $n$ multiplies the *squared* gradient by
    # $\tfrac12$ for the ReLU and by $n \operatorname{Var}(w)$ for the weights.
    # :::
    #
    # PyTorch's linear layers start with $n \operatorname{Var}(w) = \tfrac13$, and the gradient shrinks by
    # $\sqrt{1/6}$ per layer. {cite:t}`he2015delving` start with 2, which cancels the $\tfrac12$ exactly:
    for name, gain in (("plain", 1 / 3), ("plain, He's weights", 2.0)):
        expected = (gain / 2) ** 0.5
        measured = (curves[name][5] / curves[name][4]) ** (1 / 16)
        print(f"{name:19s} per layer: {expected:.2f} expected, {measured:.2f} measured")
    # So a plain stack can be made to start well. {cite:t}`he2016deep` say themselves that vanishing gradients
    # are an unlikely reason for the trouble they saw. Their plain networks had batch normalization and
    # healthy gradients, yet the deeper ones fitted the training data worse. A residual layer only has to
    # learn a change of its input, and no change is easy to learn, so more depth need not do harm.
    #
    # But with residuals alone, features and gradients grow with depth. Hence the norm.


class LayerNorm(nn.Module):
    r"""
    ## Layer norm

    Shift and scale the features of one position to mean zero and variance one, then apply a learned gain
    $\gamma$ and bias $\beta$ for each feature:

    $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot \gamma + \beta$$

    Mean $\mu$ and variance $\sigma^2$ are over the last dimension alone. So `[batch, seq, d_model]` keeps its
    shape, and no position sees another. It equals `nn.LayerNorm`, which the other chapters use because it is
    one fused operation.

    Source: {cite:t}`ba2016layer`.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        # The largest number of half precision is 65,504, so the square of 256 is already infinite.
        # Statistics are taken in single precision at least.
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centered = wide - wide.mean(dim=-1, keepdim=True)
        # Divided by $d_\text{model}$, not by $d_\text{model} - 1$: this is a size, not an estimate.
        variance = centered.square().mean(dim=-1, keepdim=True)
        # $\varepsilon$ prevents a division by zero if all features of a position are equal.
        normalized = centered * torch.rsqrt(variance + self.eps)
        return normalized.to(x.dtype) * self.weight + self.bias


class RMSNorm(nn.Module):
    r"""
    ## RMS norm

    Is it worth subtracting the mean? {cite:t}`zhang2019root` do not, have no bias, and divide by the root of
    the mean square:

    $$y = \frac{x}{\sqrt{\tfrac1d \sum_i x_i^2 + \varepsilon}} \odot \gamma$$

    One pass over the features instead of two, and in their experiments about as good. If the features have
    mean zero, the two norms agree. It equals `nn.RMSNorm` with the same `eps`.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        mean_square = wide.square().mean(dim=-1, keepdim=True)
        normalized = wide * torch.rsqrt(mean_square + self.eps)
        return normalized.to(x.dtype) * self.weight


if __name__ == "__main__":
    # ## Over which numbers?
    #
    # Scale and shift one position's features. Layer norm undoes both, RMS norm only the scale.
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    norms: dict[str, nn.Module] = {"layer norm": LayerNorm(8), "RMS norm": RMSNorm(8)}
    with torch.no_grad():
        for name, norm in norms.items():
            scaled, shifted = norm(10 * x) - norm(x), norm(x + 10) - norm(x)
            print(
                f"{name:10s}  scaled by 10: {scaled.abs().max():.4f}  "
                f"shifted by 10: {shifted.abs().max():.4f}"
            )
    # *Batch norm* {cite:p}`ioffe2015batch` takes mean and variance of each feature over all positions of all
    # sentences. Below, a row is a position, a column a feature, and numbers of one colour share their mean
    # and variance. The first sentence has four words, the second two, and the rest is padding.
    words = ["first 1", "first 2", "first 3", "first 4", "second 1", "second 2", "", ""]
    rows, columns = torch.meshgrid(torch.arange(8), torch.arange(6), indexing="ij")
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    for ax, groups, name in zip(
        axes, (columns, rows), ("batch norm", "layer norm and RMS norm"), strict=True
    ):
        ax.pcolormesh(groups, cmap="viridis", edgecolors="white", linewidth=2)
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.set_yticks([row + 0.5 for row in range(8)], [w or "padding" for w in words])
        ax.tick_params(length=0)
        ax.set_xlabel(f"features: {name}")
    plt.show()
    # So with batch norm a sentence's result depends on the other sentences, and on the amount of padding.
    # Normalize one sentence in three batches: with another sentence, with a third, and with the first of
    # these and five more positions of zeros. How much do its numbers change?
    norms["batch norm"] = nn.BatchNorm1d(8)
    sentence, other, third = torch.randn(3, 5, 8).unbind()
    company = {
        "one": torch.stack([sentence, other]),
        "another": torch.stack([sentence, third]),
        "padded": F.pad(torch.stack([sentence, other]), (0, 0, 0, 5)),
    }
    with torch.no_grad():
        for name, norm in norms.items():
            result = {
                case: norm(batch.flatten(0, 1)).view(batch.shape)[0, :5]
                for case, batch in company.items()
            }
            moved, padded = (
                (result[case] - result["one"]).abs().max()
                for case in ("another", "padded")
            )
            print(
                f"{name:10s}  other sentence: {moved:.2f}  more padding: {padded:.2f}"
            )
    # Padding can be left out of the statistics, the other sentences cannot. Text comes in sentences of every
    # length and in small batches, and a model that generates text has a batch of one and a single new
    # position. Batch norm then uses averages kept from training, so it computes a different function from the
    # one it was trained with. Layer norm is always the same function.


class PreNorm(nn.Module):
    r"""
    ## Pre-norm

    $x + \operatorname{dropout}(\operatorname{sublayer}(\operatorname{LN}(x)))$. Sub-layers only add to the
    stream `x`, so a stack of them needs one more norm at its end. `sublayer` is any function from
    `[batch, seq, d_model]` to the same shape.

    Source: {cite:t}`xiong2020layer`, section 3.
    """

    def __init__(self, d_model: int, dropout: float = 0.0):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.dropout(sublayer(self.norm(x)))


class PostNorm(PreNorm):
    r"""
    ## Post-norm

    $\operatorname{LN}(x + \operatorname{dropout}(\operatorname{sublayer}(x)))$, as in the paper of 2017. The
    norm is in the stream: every path from end to end passes through all norms.

    Source: {cite:t}`vaswani2017attention`, section 3.1.
    """

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


if __name__ == "__main__":
    # ## Gradients before the first step
    #
    # {cite:t}`xiong2020layer` work out what happens at initialization, with Xavier's weights. In post-norm
    # the gradient of the last block does not shrink with depth, but gradients shrink towards the input: each
    # norm divides the sum of two terms of about equal size by about $\sqrt2$. In pre-norm the stream grows
    # with the number of blocks $N$, the last norm divides by its size, and the gradient of the last block
    # falls as $1/\sqrt N$.
    #
    # Here is a small language model to test this. The two kinds differ in the wrapper and in the last norm,
    # which pre-norm needs.
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
            return self.second(x, self.feed_forward)

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
            return self.logits(
                self.norm(self.blocks(self.embedding(tokens) + self.positions))
            )

    corpus = load_corpus()

    def draw_loss(model: Model) -> Tensor:
        starts = torch.randint(len(corpus.train) - 32, (16, 1))
        window = corpus.train[starts + torch.arange(33)]
        return F.cross_entropy(model(window[:, :-1]).transpose(1, 2), window[:, 1:])

    # The norm of the gradient for the feed-forward layer's second matrix, for each block, as the mean over
    # three seeds.
    def gradients(wrapper: type[PreNorm], layers: int, xavier: bool = True) -> Tensor:
        found = []
        for seed in range(3):
            torch.manual_seed(seed)
            model = Model(wrapper, layers)
            for weight in model.blocks.parameters():
                if xavier and weight.dim() == 2:
                    nn.init.xavier_normal_(weight)
            last = [
                weight
                for name, weight in model.named_parameters()
                if name.endswith("contract.weight")
            ]
            found.append(
                [g.norm() for g in torch.autograd.grad(draw_loss(model), last)]
            )
        return torch.tensor(found).mean(dim=0)

    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    depths = [2, 4, 8, 16, 32]
    for wrapper, name, color, shift in (
        (PreNorm, "pre-norm", "C0", -0.1),
        (PostNorm, "post-norm", "C1", 0.05),
    ):
        profile = gradients(wrapper, 12)
        left.plot(range(1, 13), profile, color=color)
        left.text(12, profile[11] + shift, name, color=color, ha="right")
        by_depth = [gradients(wrapper, depth)[-1].item() for depth in depths]
        right.plot(depths, by_depth, color=color, marker="o", markersize=3)
        default = gradients(wrapper, 12, xavier=False)
        print(
            f"{name:9s} last block, {depths[-1]} blocks against {depths[0]}: "
            f"{by_depth[-1] / by_depth[0]:.2f}\n"
            f"{'':9s} 12 blocks, last against first: {profile[-1] / profile[0]:.2f}, "
            f"with PyTorch's own weights {default[-1] / default[0]:.2f}"
        )
    left.set(xlabel="block, of 12", ylabel="norm of gradient", ylim=(0, 1))
    left.set_xticks([1, 4, 8, 12])
    right.set(xlabel="number of blocks", ylabel="norm at the last block", ylim=(0, 1))
    right.set(xscale="log")
    right.set_xticks(depths, [str(depth) for depth in depths])
    right.minorticks_off()
    plt.show()
    # With pre-norm the last gradient falls with depth, though by less than the root, which is 0.25 for 16
    # times the blocks. It is not even over the blocks either: in the backward pass each block adds its share,
    # so the first block's gradient is about three times the last one's.
    #
    # Their statement is about Xavier's weights. PyTorch's linear layers start smaller, so each sub-layer adds
    # little at first, and post-norm's profile is much flatter. By this theory, should post-norm then train
    # well?


if __name__ == "__main__":
    # ## Pre against post, with and without warm-up
    #
    # *Warm-up* ({doc}`../training/loop`) starts with a learning rate near zero and raises it over the first
    # steps. The models have 16 narrow blocks with PyTorch's own weights and are trained by Adam without
    # clipping or decay, two seeds of each kind. The rate rises for half of the run, or is constant from the
    # first step.
    layers, rate, steps, warmup = 16, 5e-3, 120, 60

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
        return torch.tensor(history)

    # A model that knows only how frequent each character is reaches the entropy of these frequencies, the
    # unigram guess.
    share = torch.bincount(corpus.train).double() / len(corpus.train)
    entropy = -torch.special.xlogy(share, share).sum().item()
    print(f"{'unigram guess':29s}{entropy:.2f} nats")

    fig, axes = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained", sharey=True)
    final: dict[tuple[str, int], Tensor] = {}
    for ax, ramp in zip(axes, (0, warmup), strict=True):
        for wrapper, name, color, shift in (
            (PreNorm, "pre-norm", "C0", -0.3),
            (PostNorm, "post-norm", "C1", 0.2),
        ):
            runs = torch.stack([losses(wrapper, ramp, seed) for seed in (0, 1)])
            smooth = runs.unfold(1, 10, 1).mean(dim=-1)
            ax.plot(range(10, steps + 1), smooth.T, color=color)
            last = final[name, ramp] = smooth[:, -1]
            ax.text(steps, last.mean() + shift, name, color=color, ha="right")
            print(
                f"{name:9s} {'with' if ramp else 'without'} warm-up".ljust(29)
                + "  ".join(f"{loss:.2f}" for loss in last)
            )
        ax.set_xlabel(f"step, {'with' if ramp else 'without'} warm-up")
        ax.axhline(entropy, color="C5", linewidth=0.8)
    axes[0].set(ylabel="loss, mean of 10 steps", ylim=(2.1, 4.2))
    plt.show()
    # The horizontal line is the unigram guess. In numbers:
    for ramp in (0, warmup):
        gap = (final["post-norm", ramp] - final["pre-norm", ramp]).mean()
        print(
            f"{'with' if ramp else 'without'} warm-up post-norm ends "
            f"{abs(gap):.2f} nats {'above' if gap > 0 else 'below'} pre-norm"
        )
    stuck = int((final["post-norm", 0] > entropy - 0.15).sum())
    print(f"without warm-up {stuck} of 2 post-norm runs learned only the frequencies")
    # At this depth and rate, post-norm needs its warm-up and pre-norm does not. Yet post-norm's gradients
    # were nearly even at the start, so they are not the whole explanation. {cite:t}`liu2020understanding`
    # reach the same conclusion: in post-norm each sub-layer contributes more to the output, so a small change
    # of all weights changes the output more. And Adam's first steps have full size, however small the
    # gradient. With few blocks there is less to amplify: try `layers = 8`.
    #
    # This is one small model in a short run. {cite:t}`xiong2020layer` saw the same in translation.


if __name__ == "__main__":
    # ## In short
    #
    # - A residual connection adds a sub-layer's output to its input, so that the gradient has a path which no
    #   sub-layer interrupts.
    # - Layer norm scales each position's features to mean zero and variance one; RMS norm leaves the mean.
    #   Both   treat every position separately, unlike batch norm.
    # - Pre-norm normalizes the input of a sub-layer, post-norm the sum. At 16 blocks and a high rate,
    #   post-norm   needs a warm-up and pre-norm does not.
    #
    # ## Exercise
    #
    # :::{exercise} What a norm forgets
    # A layer norm gives the same for $x$, for $10\,x$ and for $x + 10$. Which properties of its gradient with
    # respect to $x$ follow, for any loss computed from the norm's output?
    # :::
    # :::{solution}
    # A step in a direction that changes nothing has slope zero: the gradient is orthogonal to $x$ and to the
    # vector of ones. And because ten times the input has to move ten times as far for the same change, the
    # gradient at $10\,x$ is a tenth of that at $x$. The larger the stream, the less a sub-layer after a norm
    # is changed by an addition to it.
    # :::
    point, pull = torch.randn(2, 8, 64, dtype=torch.float64)
    found = []
    for factor in (1.0, 10.0):
        inputs = (factor * point).requires_grad_()
        pulled = (F.layer_norm(inputs, (64,), eps=0.0) * pull).sum()
        found.append(torch.autograd.grad(pulled, inputs)[0])
    along, level = (found[0] * point).sum(dim=-1), found[0].sum(dim=-1)
    print(f"along x {along.abs().max():.0e}, along the ones {level.abs().max():.0e}")
    print(
        f"ten times the input: {found[1].norm() / found[0].norm():.3f} of the gradient"
    )
    assert max(along.abs().max(), level.abs().max()) < 1e-12
    torch.testing.assert_close(found[1], found[0] / 10)

    # The blocks of this book are pre-norm: {doc}`encoder`.
