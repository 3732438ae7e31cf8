r"""
# Position-wise feed-forward

Two linear maps with a bend between them, which every position goes through alone.

Attention moves what is known from one position to another. What does a position do with what it got?

Attention's answer is a mean of values: the weights bend with the input, but what they weigh is only ever
a linear map of it. The feed-forward layer is where each position's features meet a nonlinearity of their
own. It widens them, bends them, and narrows them again:

$$\operatorname{FFN}(x) = \max(0,\; xW_1 + b_1)\,W_2 + b_2$$

with $W_1 \in \mathbb{R}^{d_\text{model} \times d_\text{ff}}$ and
$W_2 \in \mathbb{R}^{d_\text{ff} \times d_\text{model}}$. The paper has $d_\text{model} = 512$ and
$d_\text{ff} = 2048$: each of the $d_\text{ff}$ columns of $W_1$ looks for one direction in $x$, and the row
of $W_2$ beside it says what to add when that direction is found.

Source: {cite:t}`vaswani2017attention`, section 3.3.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PositionwiseFeedForward(nn.Module):
    """
    ## The layer

    `[batch, seq, d_model]` to the same; more dimensions in front are welcome. `activation` is the class of
    the bend, made without arguments. `dropout` applies to the `d_ff` features while training.

    :::{deviation} the slides, position-wise feed-forward
    They end with a second dropout. {doc}`The block <encoder>` drops out what every sub-layer returns, so
    here it would happen twice.
    :::
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.ReLU,
    ):
        super().__init__()
        # A linear layer acts on the last dimension and leaves those before it alone. That is all that
        # "position-wise" takes. `expand` and `contract` are $W_1$ and $W_2$, with their biases.
        self.expand = nn.Linear(d_model, d_ff)
        # A parameter, because {doc}`../primer/primer_ez` changes this one thing.
        #
        # :::{deviation} the slides, position-wise feed-forward
        # They use `nn.ReLU(inplace=True)`, which writes over the features before the bend to save their
        # memory. ReLU's gradient can be told from its output, so that is right for ReLU. For GELU or
        # Swish it is not, so we leave the input as it is.
        # :::
        self.activation = activation()
        self.dropout = nn.Dropout(dropout)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        # Wide for a moment: `[batch, seq, d_ff]`.
        hidden = self.dropout(self.activation(self.expand(x)))
        return self.contract(hidden)


if __name__ == "__main__":
    # ## Each position alone
    #
    # Shuffle the positions, and the results are shuffled alike. Change one position, and no other result
    # moves. Attention passes the first of these tests as well; the second is what sets this layer apart.
    torch.manual_seed(0)
    layer = PositionwiseFeedForward(d_model=512, d_ff=2048)
    x = torch.randn(1, 10, 512)
    order = torch.randperm(10)
    with torch.no_grad():
        shuffled = (layer(x[:, order]) - layer(x)[:, order]).abs().max()
        changed = x.clone()
        changed[:, 4] += 1.0
        moved = (layer(changed) - layer(x)).abs().amax(dim=-1)[0]
    print(f"shuffled before against after: largest difference {shuffled:.1e}")
    print("changed position 4; moved:", moved.nonzero().flatten().tolist())
    # **Two convolutions of kernel size one**, the paper calls it. The same weights in two `nn.Conv1d`,
    # which want features before positions, give the same.
    first, second = nn.Conv1d(512, 2048, 1), nn.Conv1d(2048, 512, 1)
    first.weight.data = layer.expand.weight.data[:, :, None]
    first.bias = layer.expand.bias
    second.weight.data = layer.contract.weight.data[:, :, None]
    second.bias = layer.contract.bias
    with torch.no_grad():
        convolved = second(F.relu(first(x.transpose(1, 2)))).transpose(1, 2)
        difference = (convolved - layer(x)).abs().max()
    print(f"as convolutions: largest difference {difference:.1e}")
    # **Without the bend** there would be no second layer. Two linear maps are one:
    # $(xW_1 + b_1)W_2 + b_2 = x\,(W_1W_2) + (b_1W_2 + b_2)$.
    with torch.no_grad():
        straight = PositionwiseFeedForward(512, 2048, activation=nn.Identity)
        weight = straight.contract.weight @ straight.expand.weight
        bias = straight.contract.weight @ straight.expand.bias + straight.contract.bias
        collapsed = F.linear(x, weight, bias)
        difference = (collapsed - straight(x)).abs().max()
    print(f"one map for two: largest difference {difference:.1e}")
    parameters = sum(p.numel() for p in straight.parameters())
    print(f"{parameters:,} parameters do the work of {weight.numel() + bias.numel():,}")


if __name__ == "__main__":
    # ## Where the parameters are
    #
    # With $d_\text{ff} = 4\,d_\text{model}$ the two matrices hold $8\,d_\text{model}^2$ numbers, and the four
    # of attention hold $4\,d_\text{model}^2$. So two thirds of a block stand here, at any width.
    from labml_primer.transformer.attention import MultiHeadAttention

    parts = {
        "attention": MultiHeadAttention(512, 8),
        "feed-forward": layer,
        "two norms": nn.ModuleList([nn.LayerNorm(512), nn.LayerNorm(512)]),
    }
    sizes = {name: sum(p.numel() for p in m.parameters()) for name, m in parts.items()}
    for name, size in sizes.items():
        print(f"{name:13s}{size:10,}  {size / sum(sizes.values()):5.1%}")


if __name__ == "__main__":
    # ## The bends this book meets
    #
    # $$\begin{aligned}
    # \operatorname{ReLU}(x) &= \max(0, x) \\
    # \operatorname{GELU}(x) &= x\,\Phi(x) \\
    # \operatorname{Swish}(x) &= x\,\sigma(x) \\
    # \operatorname{ReLU}^2(x) &= \max(0, x)^2
    # \end{aligned}$$
    #
    # $\Phi$ is the normal distribution function and $\sigma$ the logistic one. PyTorch calls Swish `SiLU`.
    # The last is {doc}`Primer's <../primer/primer_ez>`.
    from collections.abc import Callable

    import matplotlib.pyplot as plt

    bends: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
        "ReLU": (F.relu, "C5"),
        "GELU": (F.gelu, "C1"),
        "Swish": (F.silu, "C2"),
        "squared ReLU": (lambda x: F.relu(x).square(), "C0"),
    }
    # The four bends, and at the right their slopes, which come from autograd.
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
    for bend, color in bends.values():
        grid = torch.linspace(-3, 2, 501, requires_grad=True)
        heights = bend(grid)
        (slopes,) = torch.autograd.grad(heights.sum(), grid)
        left.plot(grid.detach(), heights.detach(), color=color)
        right.plot(grid.detach(), slopes, color=color)
    places = {
        "ReLU": (-2.2, 0.08, -2.2, 0.08),
        "GELU": (-0.3, -0.48, 1.4, 1.2),
        "Swish": (-1.6, -0.52, -0.9, -0.4),
        "squared ReLU": (1.45, 2.6, 0.95, 2.2),
    }
    for name, (x1, y1, x2, y2) in places.items():
        left.text(x1, y1, name, color=bends[name][1], ha="right")
        right.text(x2, y2, name, color=bends[name][1], ha="right")
    left.set(xlabel="x", ylabel="value", ylim=(-0.7, 4))
    right.set(xlabel="x", ylabel="slope", ylim=(-0.7, 4))
    plt.show()
    # ReLU's slope jumps from 0 to 1. GELU and Swish round the corner off, dip below zero and let a little
    # slope through at the left. Squared ReLU is silent at the left as ReLU is, and at the right its slope
    # grows with the input: what is strong becomes stronger.


if __name__ == "__main__":
    # ## How many are silent?
    #
    # Before training, inputs are as often positive as negative, and a ReLU silences about half of the
    # $d_\text{ff}$ features. Which half differs from position to position. Few features are silent
    # everywhere.
    torch.manual_seed(0)
    with torch.no_grad():
        hidden = layer.activation(layer.expand(torch.randn(64, 128, 512)))
    silent = (hidden == 0).flatten(0, 1)  # [positions, d_ff]
    print(f"zeros in all: {silent.float().mean():.1%}")
    least, most = silent.float().mean(dim=1).aminmax()
    print(f"at one position: from {least:.1%} to {most:.1%}")
    print(
        f"features silent at all {len(silent):,} positions: {silent.all(dim=0).sum()}"
    )


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} Large, then small
    # Multiply $W_1$ by ten, with $b_1 = 0$, and divide $W_2$ by ten. What becomes of the layer's output with
    # a ReLU? And with a squared ReLU, what must $W_2$ be divided by?
    # :::
    # :::{solution}
    # Nothing changes with a ReLU, as $\max(0, 10z) = 10 \max(0, z)$. Squared it gives a hundred times as
    # much, and $W_2$ must be divided by 100. So with the squared ReLU the size of what comes in counts twice.
    # :::
    x, w1, w2 = torch.randn(8, 64), torch.randn(64, 256), torch.randn(256, 64)
    for name, divisor in (("ReLU", 10), ("squared ReLU", 100)):
        bend = bends[name][0]
        before, after = bend(x @ w1) @ w2, bend(x @ (10 * w1)) @ (w2 / divisor)
        torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-2)
        print(f"{name}: the same, divided by {divisor}")

    # The two sub-layers of a block are complete: one that moves, one that digests. What remains is how to
    # stack dozens of them so that they still learn: {doc}`normalization`.
