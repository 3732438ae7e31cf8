r"""
# Variations on Primer-EZ

Should heads, or even channels, share the kernels of the convolution? Three variations of the layer, and which
of Primer-EZ's two changes does the work.

The convolution of {doc}`primer_ez` has a {term}`kernel` for each channel of each head. Are so many needed?
With $K$ weights in a kernel, there are four ways:

| kernels | parameters for each of q, k and v |
|---|---|
| one per channel and head (Primer-EZ) | $K\,d_{\text{model}}$ |
| one per channel and head, with a bias | $(K + 1)\,d_{\text{model}}$ |
| one per channel, shared by the heads | $(K + 1)\,d_k$ |
| one for everything | $K + 1$ |

The last three are from the annotated implementation of {cite:t}`jayasiri2020annotated`, the *walk-through*:
its per-head variation, its main class, and its shared variation. All three have a bias and PyTorch's
initialization.

In short: all four take about the same time. With a learned table of positions, our runs of three seeds each
show no difference in loss; with rotary positions, one kernel for everything is worse than one per channel
shared by the heads ({doc}`/experiments/chapters/mdha`).

:::{picture} kernels
:::

Source: {cite:t}`jayasiri2020annotated`, pages on Primer-EZ and on variations; {cite:t}`so2021primer`,
section 3.
"""

import torch
from torch import Tensor, nn

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
)
from labml_primer.transformer.attention import MultiHeadAttention


class BiasedConvolution(SpatialDepthWiseConvolution):
    r"""
    ## With a bias and PyTorch's initialization

    {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution` with the parameters of `nn.Conv1d`:
    it has a bias, and all parameters are drawn uniformly between $-1/\sqrt{K}$ and $1/\sqrt{K}$. So an
    untrained layer mixes three tokens with random weights. Maps `[batch, seq, heads, d_k]` to the same shape.
    """

    def __init__(self, heads: int, d_k: int, kernel_size: int = 3):
        super().__init__(heads, d_k, kernel_size)
        self.bias = nn.Parameter(torch.empty(heads, d_k))
        bound = kernel_size**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.bias.to(x.dtype)


class MultiDConvSharedByHeadsAttention(MultiDConvHeadAttention):
    r"""
    ## Kernels shared by the heads

    A kernel for each of the $d_k$ channels, the same in all heads:

    $$y_{t,h,c} = b_c + \sum_{i=0}^{K-1} w_{i,c}\; x_{t-(K-1)+i,\,h,\,c}$$

    :::{deviation} the walk-through of Primer-EZ
    There this is the main class, `MultiDConvHeadAttention`, with the convolution
    `SpatialDepthWiseConvolution`. In this book those names mean the layer that the paper describes and
    measured, in which each head has kernels of its own.
    :::

    :::{variant} MultiDConvSharedByHeadsAttention
    :of: labml_primer.primer.primer_ez.MultiDConvHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        # The kernels of one head, broadcast to all heads.
        self.query_conv = BiasedConvolution(1, self.d_k)
        self.key_conv = BiasedConvolution(1, self.d_k)
        self.value_conv = BiasedConvolution(1, self.d_k)


class SpatialDepthWiseSharedConvolution(BiasedConvolution):
    r"""
    ## One kernel for everything

    The same three weights and one bias for every channel of every head:

    $$y_{t,h,c} = b + \sum_{i=0}^{K-1} w_i\; x_{t-(K-1)+i,\,h,\,c}$$

    It can blur, sharpen or shift a sequence, but all channels in the same way. Maps
    `[batch, seq, heads, d_k]` to the same shape.
    """

    def __init__(self, kernel_size: int = 3):
        super().__init__(heads=1, d_k=1, kernel_size=kernel_size)


class MultiDSharedConvHeadAttention(MultiDConvHeadAttention):
    """
    ## Attention with one kernel for everything

    One kernel for all queries, one for all keys, one for all values.

    :::{variant} MultiDSharedConvHeadAttention
    :of: labml_primer.primer.primer_ez.MultiDConvHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = SpatialDepthWiseSharedConvolution()
        self.key_conv = SpatialDepthWiseSharedConvolution()
        self.value_conv = SpatialDepthWiseSharedConvolution()


class SpatialDepthWisePerHeadConvolution(BiasedConvolution):
    r"""
    ## A kernel for each channel of each head

    $$y_{t,h,c} = b_{h,c} + \sum_{i=0}^{K-1} w_{i,h,c}\; x_{t-(K-1)+i,\,h,\,c}$$

    One head may read the current token, another the one before. Maps `[batch, seq, heads, d_k]` to the same
    shape.

    :::{deviation} the paper's released code
    Of the walk-through's three convolutions this is the closest to the paper's, which has no bias and starts
    at 0.5 for the current token and 0.5/3 for each earlier one.
    :::
    """


class MultiDPHConvHeadAttention(MultiDConvHeadAttention):
    """
    ## Attention with biased kernels for each head

    The paper's layer, with the walk-through's bias and initialization.

    :::{variant} MultiDPHConvHeadAttention
    :of: labml_primer.primer.primer_ez.MultiDConvHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = SpatialDepthWisePerHeadConvolution(heads, self.d_k)
        self.key_conv = SpatialDepthWisePerHeadConvolution(heads, self.d_k)
        self.value_conv = SpatialDepthWisePerHeadConvolution(heads, self.d_k)


if __name__ == "__main__":
    # ## How many parameters each adds
    #
    # The parameters that each adds to an attention layer at `d_model` 512 with 8 heads. Their times hardly
    # differ, because every element is multiplied three times in any case, whether weights are shared or not.
    from IPython.display import display

    from labml_primer.training.table import Table

    layers: dict[str, type[MultiHeadAttention]] = {
        "one per channel and head": MultiDConvHeadAttention,
        "with a bias": MultiDPHConvHeadAttention,
        "shared by the heads": MultiDConvSharedByHeadsAttention,
        "one for everything": MultiDSharedConvHeadAttention,
    }

    def size(layer: type[MultiHeadAttention]) -> int:
        return sum(p.numel() for p in layer(512, 8).parameters())

    plain = size(MultiHeadAttention)
    rows = [(name, f"{size(layer) - plain:,}") for name, layer in layers.items()]
    display(Table(("kernels", "parameters"), rows))
    # ### Which of the two changes does the work?
    #
    # The walk-through and the paper (section 3) call the squared ReLU the more effective change. In our runs
    # with a learned table of positions it is the convolution: Primer without it is much worse than Primer
    # without the squared ReLU ({doc}`/experiments/chapters/parts`).
    #
    # The positions explain at least part of this difference from the paper: with rotary positions, on the
    # same characters, the convolution no longer leads. Two more differences may contribute. Our models read
    # characters, and a character says little without the one before it, while the paper's models read
    # subwords. And the paper trained for 1.1 to 2.1 million steps of 4,096 tokens (Table 4, section 4.1), but
    # our runs had 1,200 steps of 2,048.


if __name__ == "__main__":
    # ## In short
    #
    # - Kernels can be shared by the heads or by all channels. That saves few parameters and no time.
    # - The walk-through's main class differs from the paper's layer: its heads share kernels, it has a bias,
    #   and it starts with random weights.
    # - With a learned table of positions, the four differ by less than our runs can show. With rotary
    #   positions, one kernel for everything is worse than one per channel shared by the heads.
    # - In our runs with a learned table of positions, the convolution contributes more than the squared ReLU;
    #   with rotary positions it does not.
    #
    # ## Exercise
    #
    # :::{exercise} From coarse to fine
    # Set the weights of a convolution with a kernel for each channel of each head so that it computes the
    # same as one shared kernel. Why is the reverse impossible?
    # :::
    # :::{solution}
    # Copy the one kernel to every channel: the finer layer can compute everything that the coarser one can.
    # The reverse is impossible, because one kernel cannot equal 128 different ones.
    # :::
    coarse = SpatialDepthWiseSharedConvolution()
    fine = SpatialDepthWisePerHeadConvolution(heads=4, d_k=32)
    with torch.no_grad():
        for own, shared in zip(fine.parameters(), coarse.parameters(), strict=True):
            own.copy_(shared.expand_as(own))
    tokens = torch.randn(2, 20, 4, 32)
    torch.testing.assert_close(fine(tokens), coarse(tokens))
    numbers = [sum(p.numel() for p in conv.parameters()) for conv in (coarse, fine)]
    print(f"{numbers[0]} parameters and {numbers[1]}, and the same outputs")
    assert numbers == [4, 512]

    # :::{exercise} Write it: one kernel for everything
    # `x` is `[seq, heads, d_k]`, `weight` is `[3]`, and `bias` is a number. Write the convolution without the
    # classes above.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def convolve(x: Tensor, weight: Tensor, bias: float) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    kernel, first = torch.tensor([1.0, 2.0, 3.0]), torch.zeros(4, 2, 2)
    first[0] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    spread = torch.tensor([3.0, 2.0, 1.0, 0.0])[:, None, None] * first[0]
    cases: list[Case] = [
        (
            (first, kernel, 0.0),
            spread,
            "a token reaches the next two, in every channel",
        ),
        (
            (first, kernel, 0.5),
            spread + 0.5,
            "the bias is added once, also at the start",
        ),
        (
            (first.flip(0), kernel, 0.0),
            3 * first.flip(0),
            "the last token reaches no earlier one",
        ),
    ]
    check_answer(convolve, cases)

    # :::{solution}
    # Shift the sequence by zero, one and two positions, and add up.
    # :::
    def solved(x: Tensor, weight: Tensor, bias: float) -> Tensor:
        back = [x, x.roll(1, 0), x.roll(2, 0)]
        for shift in (1, 2):
            back[shift][:shift] = 0.0  # nothing comes before the first token
        terms = [w * y for w, y in zip(weight.flip(0), back, strict=True)]
        return torch.stack(terms).sum(0) + bias

    assert check_answer(solved, cases)

    # Is Primer-EZ also better than the improved Transformers of its time? {doc}`baselines`.
