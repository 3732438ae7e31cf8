r"""
# A chapter to copy

The mean of the last few tokens: a small chapter that uses every device of the book once.

How do you smooth a stream of tokens? Replace each token by the mean of the last few:

$$y_t = \frac{1}{K} \sum_{i=0}^{K-1} x_{t-i}$$

:::{picture} moving_average
:::

In the code `width` and `x` are $K$ and $x$. The page {doc}`author` explains each part of the module.

Source: {cite:t}`so2021primer`, section 3; their convolution learns its weights, and here each is
$1/K$.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MovingAverage(nn.Module):
    """
    ## The mean of the last few

    Maps `[batch, seq, d_model]` to the same shape. Positions before the first token count as zeros.

    Raises `ValueError` if `width` is below 1.
    """

    def __init__(self, width: int = 3):
        super().__init__()
        if width < 1:
            raise ValueError(f"width {width} is below 1")
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        """`x` is `[batch, seq, d_model]`."""
        # The sum of all tokens up to $t$, minus the sum of all tokens up to $t - K$.
        #
        # :::{deviation} the formula
        # The formula adds $K$ numbers per token. The difference of two running sums needs one
        # subtraction, for any $K$.
        # :::
        total = x.cumsum(dim=1)  # [batch, seq, d_model]
        before = F.pad(total, (0, 0, self.width, 0))[:, : x.size(1)]
        return (total - before) / self.width


class Novelty(MovingAverage):
    """
    ## What is new

    The difference between each token and that mean, times a learned scale: a change of
    {py:class}`~book.pages.example.MovingAverage`.

    :::{variant} Novelty
    :of: MovingAverage
    :cost: cost
    :::
    """

    def __init__(self, width: int = 3):
        super().__init__(width)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        mean = super().forward(x)
        return self.scale * (x - mean)


if __name__ == "__main__":
    # ## It runs
    #
    # Six tokens with one feature each, to check by hand.
    x = torch.tensor([3.0, 0.0, 0.0, 6.0, 6.0, 6.0]).view(1, 6, 1)
    print("tokens", *(f"{number:5.1f}" for number in x.flatten()))
    print("means ", *(f"{number:5.1f}" for number in MovingAverage()(x).flatten()))
    # The means of a longer stream for three widths: a wider mean is smoother and lags more.
    import matplotlib.pyplot as plt

    torch.manual_seed(0)
    stream = torch.randn(1, 100, 1).cumsum(dim=1)
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for width, color in ((1, "C5"), (5, "C1"), (20, "C0")):
        ax.plot(
            MovingAverage(width)(stream).flatten(), color=color, label=f"K = {width}"
        )
    ax.set(xlabel="token", ylabel="mean")
    ax.legend(frameon=False)
    plt.show()
    # The difference between the two classes is one parameter.
    added = sum(parameter.numel() for parameter in Novelty().parameters())
    cost = f"+ {added} parameter"

    # ## At the start
    #
    # :::{deeper}
    # Why the first means are small.
    # :::
    #
    # The first $K - 1$ means are small, because the zeros before the first token are counted. The
    # last token is {value}`f"{stream[0, -1, 0]:.1f}"`, and the last mean at $K = 20$ is
    # {value}`f"{MovingAverage(20)(stream)[0, -1, 0]:.1f}"`.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} The mean of ones
    # Which means do six tokens have that are all 1, at $K = 3$?
    # :::
    # :::{solution}
    # 1, except for the first two tokens: the zeros before them are counted.
    # :::
    means = MovingAverage(width=3)(torch.ones(1, 6, 1)).flatten()
    print(*(f"{number:.2f}" for number in means))
    torch.testing.assert_close(means, torch.tensor([1 / 3, 2 / 3, 1, 1, 1, 1]))

    # :::{exercise} Write it: the mean of the last three
    # Write the last mean of a stream, `[seq]`, at $K = 3$.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def last_mean(stream: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    cases: list[Case] = [
        ((torch.tensor([9.0, 1.0, 2.0, 6.0]),), 3.0, "1, 2 and 6 are the last three"),
        ((torch.tensor([3.0]),), 1.0, "two zeros come before the first token"),
    ]
    check_answer(last_mean, cases)

    # :::{solution}
    # The sum is divided by three also if there are fewer tokens.
    # :::
    def solved(stream: Tensor) -> Tensor:
        return stream[-3:].sum() / 3

    assert check_answer(solved, cases)

    # To write a chapter, see {doc}`author`.
