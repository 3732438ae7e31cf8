r"""
# Residuals and normalization

What keeps a deep stack of layers trainable: a path that only adds, and a norm that keeps sizes in check.

A block is two sub-layers, and a Transformer is dozens of them, one behind another. How does a signal get
through all of them, and how does the gradient get back?

Two devices see to it, and they belong together. A *residual connection* adds a sub-layer's output to its
input, so that there is a way from end to end that no sub-layer interrupts. A *norm* brings every
position's features back to a common size, because what is added up grows. Where the norm stands makes
two kinds of Transformer:

$$\begin{aligned}
  &\text{post-norm:} & x &\leftarrow \operatorname{LN}\big(x + \operatorname{sub}(x)\big) \\
  &\text{pre-norm:} & x &\leftarrow x + \operatorname{sub}\big(\operatorname{LN}(x)\big)
\end{aligned}$$

The paper of 2017 is post-norm in its text. The slides, this book and most models since are pre-norm.
This chapter measures why.

Source: {cite:t}`he2016deep` for residuals, {cite:t}`ba2016layer` and {cite:t}`zhang2019root` for the
norms, {cite:t}`xiong2020layer` for their place.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

if __name__ == "__main__":
    # ## The way back through a deep stack
    #
    # Stack linear layers with a ReLU behind each, send a batch through, and measure the gradient that
    # reaches the weights of the first. With residuals each layer *adds* to what it read.
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
    # They blame the derivative of ReLU, zero in about half of the cases. The half is right, and it is half
    # of the account. Going back through a layer of width $n$ multiplies the *squared* gradient by
    # $\tfrac12$ for the ReLU and by $n \operatorname{Var}(w)$ for the weights.
    # :::
    #
    # PyTorch's linear layers start with $n \operatorname{Var}(w) = \tfrac13$, and the gradient shrinks with
    # $\sqrt{1/6}$ a layer. {cite:t}`he2015delving` start with 2, which undoes the half exactly:
    for name, gain in (("plain", 1 / 3), ("plain, He's weights", 2.0)):
        expected = (gain / 2) ** 0.5
        measured = (curves[name][5] / curves[name][4]) ** (1 / 16)
        print(f"{name:19s} per layer: {expected:.2f} expected, {measured:.2f} measured")
    # So a plain stack can be made to start well. {cite:t}`he2016deep` say themselves that vanishing gradients
    # are an unlikely reason for the trouble they saw. Their plain networks had batch normalization and
    # healthy gradients, and still the deeper ones fitted the training data worse. A residual layer need only
    # learn what to add to its input, and to add nothing is easy, so more depth need not do harm.
    #
    # But residuals alone let everything grow. Hence the norm.


class LayerNorm(nn.Module):
    r"""
    ## Layer norm

    The features of one position, moved to mean zero and scaled to variance one, then given a gain
    $\gamma$ and a bias $\beta$ that are learned, one of each for every feature:

    $$y = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot \gamma + \beta$$

    Mean $\mu$ and variance $\sigma^2$ are over the last dimension alone. So `[batch, seq, d_model]` goes to
    the same, and no position sees another. It equals `nn.LayerNorm`, which the other chapters use because
    it does all this in one step.

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
        # Divided by $d_\text{model}$, and not by $d_\text{model} - 1$: this is a size, not an estimate.
        variance = centered.square().mean(dim=-1, keepdim=True)
        # $\varepsilon$ is for a position whose features are all equal.
        normalized = centered * torch.rsqrt(variance + self.eps)
        return normalized.to(x.dtype) * self.weight + self.bias


class RMSNorm(nn.Module):
    r"""
    ## RMS norm

    Is the mean worth taking away? {cite:t}`zhang2019root` leave it in, and the bias out, and divide by the
    root of the mean square:

    $$y = \frac{x}{\sqrt{\tfrac1d \sum_i x_i^2 + \varepsilon}} \odot \gamma$$

    One pass over the features instead of two, and in their experiments about as good. Where the features
    have mean zero the two norms agree. It equals `nn.RMSNorm` with the same `eps`.
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
    # Scale and shift one position's features. Layer norm undoes both, RMS norm the scale alone.
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
    # and variance. The first sentence has four words, the second two, and the rest is filling.
    words = ["first 1", "first 2", "first 3", "first 4", "second 1", "second 2", "", ""]
    rows, columns = torch.meshgrid(torch.arange(8), torch.arange(6), indexing="ij")
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    for ax, groups, name in zip(
        axes, (columns, rows), ("batch norm", "layer norm and RMS norm"), strict=True
    ):
        ax.pcolormesh(groups, cmap="viridis", edgecolors="white", linewidth=2)
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.set_yticks([row + 0.5 for row in range(8)], [w or "filling" for w in words])
        ax.tick_params(length=0)
        ax.set_xlabel(f"features: {name}")
    plt.show()
    # So with batch norm a sentence's result depends on its company, and on how far it was padded. Normalize
    # one sentence in three batches: beside another, beside a third, and beside the former again with five
    # more positions of zeros. How far do its numbers move?
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
            print(f"{name:10s}  other company: {moved:.2f}  more filling: {padded:.2f}")
    # Filling can be left out of the statistics, and company cannot. Text comes in sentences of every
    # length and in batches of a few, and a model that writes has a batch of one and a single new position.
    # Batch norm then falls back on averages kept from training, so it computes another function than it
    # learned with. Layer norm is the same function always.


class PreNorm(nn.Module):
    r"""
    ## Pre-norm

    $x + \operatorname{dropout}(\operatorname{sublayer}(\operatorname{LN}(x)))$. The stream `x` itself is only
    ever added to, so a stack of these wants one more norm at its end. `sublayer` is any function of
    `[batch, seq, d_model]` to the same.

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
    norm stands in the stream: nothing gets from end to end without passing every one of them.

    Source: {cite:t}`vaswani2017attention`, section 3.1.
    """

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


if __name__ == "__main__":
    # ## Gradients before the first step
    #
    # {cite:t}`xiong2020layer` work out what happens at initialization, with Xavier's weights. In post-norm
    # the gradient of the last block does not shrink with depth, and it fades towards the input: each norm
    # divides the sum of two things of about equal size by about $\sqrt2$. In pre-norm the stream grows with
    # the number of blocks $N$, the last norm divides by its size, and the gradient of the last block falls as
    # $1/\sqrt N$.
    #
    # A small language model, to try it. The two kinds differ in the wrapper, and in the last norm that
    # pre-norm wants.
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

    # The norm of the gradient for the feed-forward layer's second matrix, block by block, in the mean over
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
    # Pre-norm falls with depth, though less than by the root, which is 0.25 for 16 times the blocks. And it
    # is not even either: on the way back each block adds its share, so the first block gets about three times
    # what the last one does.
    #
    # Theirs is a statement about Xavier's weights. PyTorch's linear layers start smaller, each sub-layer adds
    # little at first, and post-norm's profile is much flatter. Then, by this theory, post-norm should train?


if __name__ == "__main__":
    # ## Pre against post, with and without warm-up
    #
    # *Warm-up* begins with a rate near zero and raises it over the first steps. Sixteen narrow blocks,
    # PyTorch's own weights, Adam without clipping or decay, two seeds of each kind. The rate rises for half
    # of the run, or is there from the first step.
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

    # What a model reaches that knows how frequent each letter is, and nothing of its neighbours, is the
    # entropy of the letters.
    share = torch.bincount(corpus.train).double() / len(corpus.train)
    entropy = -torch.special.xlogy(share, share).sum().item()
    print(f"{'frequencies of letters alone':29s}{entropy:.2f} nats")

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
    # The level line is the entropy of the letters. In numbers:
    for ramp in (0, warmup):
        gap = (final["post-norm", ramp] - final["pre-norm", ramp]).mean()
        print(
            f"{'with' if ramp else 'without'} warm-up post-norm ends "
            f"{abs(gap):.2f} nats {'above' if gap > 0 else 'below'} pre-norm"
        )
    stuck = int((final["post-norm", 0] > entropy - 0.15).sum())
    print(f"without warm-up {stuck} of 2 post-norm runs learned only the frequencies")
    # At this depth and rate, post-norm needs its warm-up and pre-norm does not. Yet post-norm's gradients
    # were nearly even to begin with, so they are not the whole story. {cite:t}`liu2020understanding` come
    # to the same end: in post-norm each sub-layer has more say in the output, so a small change of all
    # weights changes the output more. And Adam's first steps have full size, however small the gradient.
    # With few blocks there is little to amplify: try `layers = 8`.
    #
    # This is one small model, for a moment. {cite:t}`xiong2020layer` saw the same in translation.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} What a norm forgets
    # A layer norm gives the same for $x$, for $10\,x$ and for $x + 10$. What does this say of its gradient
    # with respect to $x$, whatever stands behind the norm?
    # :::
    # :::{solution}
    # Where a step changes nothing, the gradient has no share: it is orthogonal to $x$ and to the vector of
    # ones. And as ten times the input has to move ten times as far for the same result, the gradient at
    # $10\,x$ is a tenth. A sub-layer behind a norm hears the less of the stream, the larger the stream is.
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
