r"""
# Position-wise feed-forward

Two linear maps with an activation function between them, applied to each position separately.

Attention moves information from one position to another. How does a position process the information it has
received?

Attention only averages values, and the values are a linear map of the input. The feed-forward layer adds an
{term}`activation function`: a nonlinear function applied to each number separately. The layer widens the
features of each position, applies the function, and narrows them again:

$$\operatorname{FFN}(x) = \max(0,\; xW_1 + b_1)\,W_2 + b_2$$

Here $x$ is the vector of one position, `[d_model]`, and the matrices $W_1$ and $W_2$ are `[d_model, d_ff]`
and `[d_ff, d_model]`, so the result has the shape of $x$. The activation function is {term}`ReLU`,
$\max(0, x)$. The paper has $d_\text{model} = 512$ and $d_\text{ff} = 2048$. Each of the $d_\text{ff}$ columns
of $W_1$ detects one direction in $x$. The more of it there is, the more of the matching row of $W_2$ is added
to the output.

:::{picture} feed_forward
:::

Source: {cite:t}`vaswani2017attention`, section 3.3.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PositionwiseFeedForward(nn.Module):
    """
    ## The layer

    Map `[batch, seq, d_model]` to the same shape. There may be any dimensions before the last. `activation`
    is the class of the activation function, constructed without arguments. During training {term}`dropout`
    sets a random share of the `d_ff` features to zero and scales up the others.

    :::{deviation} the slides, position-wise feed-forward
    They end with a second dropout. {doc}`The block <encoder>` applies dropout to the output of every
    sub-layer, so here it would happen twice.
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
        # A linear layer acts on the last dimension only, which is all that "position-wise" requires. `expand`
        # and `contract` are $W_1$ and $W_2$, with their biases.
        self.expand = nn.Linear(d_model, d_ff)
        # The activation function is an argument because {doc}`../primer/primer_ez` changes it.
        #
        # :::{deviation} the slides, position-wise feed-forward
        # They use `nn.ReLU(inplace=True)`, which overwrites its input to save memory. This works for ReLU,
        # because its gradient can be computed from its output. For GELU or Swish it cannot, so we keep the
        # input.
        # :::
        self.activation = activation()
        self.dropout = nn.Dropout(dropout)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.activation(self.expand(x)))  # [batch, seq, d_ff]
        y: Tensor = self.contract(hidden)
        return y


if __name__ == "__main__":
    # ## Each position separately
    #
    # If the positions are shuffled, the results are shuffled in the same way. If one position changes, no
    # other result changes. Attention passes the first of these tests as well, but fails the second.
    torch.manual_seed(0)
    layer = PositionwiseFeedForward(d_model=512, d_ff=2048)
    x = torch.randn(1, 10, 512)
    order = torch.randperm(10)
    with torch.no_grad():
        shuffled = (layer(x[:, order]) - layer(x)[:, order]).abs().max()
        changed = x.clone()
        changed[:, 4] += 1.0
        moved = (layer(changed) - layer(x)).abs().amax(dim=-1)[0]
    print(f"shuffled before and shuffled after: largest difference {shuffled:.1e}")
    print("position 4 changed; results changed:", moved.nonzero().flatten().tolist())

    # The paper also describes the layer as **two convolutions with kernel size 1**. Two `nn.Conv1d` with the
    # same weights, which expect features before positions, give the same result.
    first, second = nn.Conv1d(512, 2048, 1), nn.Conv1d(2048, 512, 1)
    first.weight.data = layer.expand.weight.data[:, :, None]
    first.bias = layer.expand.bias
    second.weight.data = layer.contract.weight.data[:, :, None]
    second.bias = layer.contract.bias
    with torch.no_grad():
        convolved = second(F.relu(first(x.transpose(1, 2)))).transpose(1, 2)
        difference = (convolved - layer(x)).abs().max()
    print(f"as convolutions: largest difference {difference:.1e}")

    # **Without the activation function** the two linear maps would be one, with an eighth of the parameters:
    # $(xW_1 + b_1)W_2 + b_2 = x\,(W_1W_2) + (b_1W_2 + b_2)$.
    with torch.no_grad():
        straight = PositionwiseFeedForward(512, 2048, activation=nn.Identity)
        weight = straight.contract.weight @ straight.expand.weight
        bias = straight.contract.weight @ straight.expand.bias + straight.contract.bias
        collapsed = F.linear(x, weight, bias)
        difference = (collapsed - straight(x)).abs().max()
    parameters = sum(p.numel() for p in straight.parameters())
    print(f"one map instead of two: largest difference {difference:.1e}")
    print(f"{weight.numel() + bias.numel():,} parameters instead of {parameters:,}")


if __name__ == "__main__":
    # ## Where the parameters are
    #
    # :::{deeper}
    # Two thirds of the parameters of a block with one attention layer are in its feed-forward layer.
    # :::
    #
    # A {term}`block` consists of an attention layer and a feed-forward layer, each with a norm. With
    # $d_\text{ff} = 4\,d_\text{model}$ the two matrices of the feed-forward layer have $8\,d_\text{model}^2$
    # parameters, and the four of attention have $4\,d_\text{model}^2$. So two thirds of a block's parameters
    # are in the feed-forward layer, at any width.
    #
    # Each of these parameters takes one multiply-add per token. Attention also compares a token with the $n$
    # keys of the text, and averages as many values, which takes $2\,n\,d_\text{model}$ multiply-adds more. At
    # $n = 4\,d_\text{model}$ that is as much as the feed-forward layer. At length 4,096 and width 512 it is
    # twice as much. (With a causal mask half of it would do, because half of the pairs are hidden.)
    from IPython.display import display

    from labml_primer.training.table import Table
    from labml_primer.transformer.attention import MultiHeadAttention

    parts = {
        "attention": MultiHeadAttention(512, 8),
        "feed-forward": layer,
        "two norms": nn.ModuleList([nn.LayerNorm(512), nn.LayerNorm(512)]),
    }
    sizes = {name: sum(p.numel() for p in m.parameters()) for name, m in parts.items()}
    total = sum(sizes.values())
    display(
        Table(
            ["part of a block", "parameters", "share"],
            [
                [name, f"{size:,}", f"{size / total:.1%}"]
                for name, size in sizes.items()
            ],
        )
    )


if __name__ == "__main__":
    # ## Activation functions in this book
    #
    # $$\begin{aligned}
    # \operatorname{ReLU}(x) &= \max(0, x) \\
    # \operatorname{GELU}(x) &= x\,\Phi(x) \\
    # \operatorname{Swish}(x) &= x\,\sigma(x) \\
    # \operatorname{ReLU}^2(x) &= \max(0, x)^2
    # \end{aligned}$$
    #
    # $\Phi$ is the cumulative distribution function of the standard normal distribution, and $\sigma$ is the
    # logistic sigmoid, $\sigma(x) = 1 / (1 + e^{-x})$. PyTorch calls Swish `SiLU`. The {term}`squared ReLU`
    # is {doc}`Primer's <../primer/primer_ez>`.
    from collections.abc import Callable

    activations: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
        "ReLU": (F.relu, "C5"),
        "GELU": (F.gelu, "C1"),
        "Swish": (F.silu, "C2"),
        "squared ReLU": (lambda x: F.relu(x).square(), "C0"),
    }

    # On the left, the four functions; on the right, their slopes, computed by autograd. ReLU's slope jumps
    # from 0 to 1. {term}`GELU` and {term}`Swish` round off the corner, dip below zero and have a small slope
    # for negative inputs. Squared ReLU (teal) is zero for negative inputs, as ReLU is. For positive inputs
    # its slope grows with the input, so it amplifies large features.
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
    for function, color in activations.values():
        grid = torch.linspace(-3, 2, 501, requires_grad=True)
        heights = function(grid)
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
        left.text(x1, y1, name, color=activations[name][1], ha="right")
        right.text(x2, y2, name, color=activations[name][1], ha="right")
    left.set(xlabel="x", ylabel="value", ylim=(-0.7, 4))
    right.set(xlabel="x", ylabel="slope", ylim=(-0.7, 4))
    plt.show()


if __name__ == "__main__":
    # ## How many features are zero?
    #
    # :::{deeper}
    # About half of them, and none at every position.
    # :::
    #
    # Before training, the inputs of ReLU are as often positive as negative, so it sets about half of the
    # $d_\text{ff}$ features to zero, a different half at each position. A feature that is zero at every
    # position would get no gradient and never learn. The last line counts such features: there are none.
    torch.manual_seed(0)
    with torch.no_grad():
        hidden = layer.activation(layer.expand(torch.randn(64, 128, 512)))
    zero = (hidden == 0).flatten(0, 1)  # [positions, d_ff]
    print(f"zeros overall: {zero.float().mean():.1%}")
    least, most = zero.float().mean(dim=1).aminmax()
    print(f"at one position: from {least:.1%} to {most:.1%}")
    print(
        f"features that are zero at all {len(zero):,} positions: "
        f"{zero.all(dim=0).sum()}"
    )


if __name__ == "__main__":
    # ## In short
    #
    # - The layer widens each position's features to `d_ff`, applies an activation function, and narrows them
    #   again. Positions do not see each other.
    # - Without the activation function, the two linear maps would be one.
    # - The layer has two thirds of a block's parameters.
    # - With ReLU, about half of the `d_ff` features are zero before training.
    #
    # ## Exercise
    #
    # :::{exercise} Large, then small
    # Multiply $W_1$ by 10, with $b_1 = 0$, and divide $W_2$ by 10. How does the layer's output change with
    # ReLU? By which number must $W_2$ be divided with squared ReLU?
    # :::
    # :::{solution}
    # With ReLU it does not change, because $\max(0, 10z) = 10 \max(0, z)$. Squared ReLU gives 100 times as
    # much, so $W_2$ must be divided by 100.
    # :::
    x, w1, w2 = torch.randn(8, 64), torch.randn(64, 256), torch.randn(256, 64)
    for name, divisor in (("ReLU", 10), ("squared ReLU", 100)):
        function = activations[name][0]
        before, after = function(x @ w1) @ w2, function(x @ (10 * w1)) @ (w2 / divisor)
        torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-2)
        print(f"{name}: same output with W2 divided by {divisor}")

    # :::{exercise} Write it: the layer in one line
    # Write the layer with ReLU: `x` is `[batch, seq, d_model]`, `w1` is $W_1$, `[d_model, d_ff]`, and `w2` is
    # $W_2$, `[d_ff, d_model]`; `b1` and `b2` are the biases.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def transform(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    ones, both = torch.ones(1), torch.tensor([[1.0, -1.0]])
    cases: list[Case] = [
        (
            (torch.tensor([[[3.0], [-3.0]]]), both, torch.zeros(2), both.T, 0 * ones),
            torch.tensor([[[3.0], [-3.0]]]),
            "max(0, x) - max(0, -x) is x",
        ),
        (
            (torch.tensor([[[-3.0]]]), ones[None], 5 * ones, ones[None], 2 * ones),
            torch.tensor([[[4.0]]]),
            "the first bias is inside the ReLU, the second outside",
        ),
    ]
    check_answer(transform, cases)

    # :::{solution}
    # The product acts on the last dimension, for every sentence and every position.
    # :::
    def solved(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
        return F.relu(x @ w1 + b1) @ w2 + b2

    assert check_answer(solved, cases)

    # A block has two sub-layers: attention moves information, and the feed-forward layer processes it. The
    # next chapter shows how to stack dozens of them so that they still train: {doc}`normalization`.
