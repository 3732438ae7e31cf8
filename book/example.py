r"""
# A chapter to copy

The mean of the last few tokens: a chapter as small as a chapter can be, with each device in it
once.

How does a stream of tokens look when one steps back? Put the mean of the last few in each one's
place:

$$y_t = \frac{1}{K} \sum_{i=0}^{K-1} x_{t-i}$$

In the code `width` and `x` are $K$ and $x$. What stands at which place in the module, and why it
comes out as it does, is on the page {doc}`author`.

Source: {cite:t}`so2021primer`, section 3; their convolution learns its weights, and here each is
$1/K$.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MovingAverage(nn.Module):
    """
    ## The mean of the last few

    `[batch, seq, d_model]` to the same. Before the beginning there are zeros.

    Raises `ValueError` where `width` is below one.
    """

    def __init__(self, width: int = 3):
        super().__init__()
        if width < 1:
            raise ValueError(f"width {width} is below 1")
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        """`x` is `[batch, seq, d_model]`."""
        # All that came up to $t$, less all that came up to $t - K$.
        #
        # :::{deviation} the formula
        # It adds $K$ numbers for each token. The difference of two running sums takes one
        # subtraction, however large $K$ is.
        # :::
        total = x.cumsum(dim=1)  # [batch, seq, d_model]
        before = F.pad(total, (0, 0, self.width, 0))[:, : x.size(1)]
        return (total - before) / self.width


class Novelty(MovingAverage):
    """
    ## What is new

    How far each token is from that mean, on a scale that is learned: a
    {py:class}`~book.example.MovingAverage`, changed.

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
    # The means of a longer stream, for three widths: the wider, the smoother and the later.
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
    # The first $K - 1$ means are small, because the zeros before the beginning are counted.
    #
    # The difference between the two classes is one parameter.
    added = sum(parameter.numel() for parameter in Novelty().parameters())
    cost = f"+ {added} parameter"


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} The mean of ones
    # What comes out for six tokens that are all one, at $K = 3$?
    # :::
    # :::{solution}
    # One, but for the first two tokens: before them there are zeros, which count.
    # :::
    means = MovingAverage(width=3)(torch.ones(1, 6, 1)).flatten()
    print(*(f"{number:.2f}" for number in means))
    torch.testing.assert_close(means, torch.tensor([1 / 3, 2 / 3, 1, 1, 1, 1]))

    # So much for a chapter. To write one, see {doc}`author`.
