r"""
# Variations on Primer-EZ

How finely should the kernels of the convolution be shared, and which of the two changes does the work? Three
variations, and a race of seven.

{doc}`primer_ez` made two changes at once: the squared ReLU, and a convolution on queries, keys and values.
Its convolution has a kernel for each channel of each head. Kernels can be shared more: by all heads, or by
everything.

| kernels | parameters for each of q, k and v |
|---|---|
| one per channel and head (Primer-EZ) | $K\,d_{\text{model}}$ |
| one per channel and head, with a bias | $(K + 1)\,d_{\text{model}}$ |
| one per channel, shared by the heads | $(K + 1)\,d_k$ |
| one for everything | $K + 1$ |

The second is the walk-through's per-head variation, the third its main class, the fourth its shared
variation. All three have a bias and PyTorch's initialization.

:::{picture} kernels
:::

Source: the annotated walk-through of {cite:t}`jayasiri2020annotated`, its pages on Primer-EZ and on
variations; {cite:t}`so2021primer`, section 3.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
    SquaredReLU,
    speedup_factor,
)
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Config, LanguageModel


class BiasedConvolution(SpatialDepthWiseConvolution):
    r"""
    ## With a bias and PyTorch's initialization

    {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution` as `nn.Conv1d` would have it: a
    bias is added, and all parameters start uniformly between $-1/\sqrt{K}$ and $1/\sqrt{K}$. So a new layer
    mixes three tokens at random. `[batch, seq, heads, d_k]` to the same.
    """

    def __init__(self, heads: int, d_k: int, kernel_size: int = 3):
        super().__init__(heads, d_k, kernel_size)
        self.bias = nn.Parameter(torch.empty(heads, d_k))
        bound = kernel_size**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.bias


class MultiDConvSharedByHeadsAttention(MultiDConvHeadAttention):
    r"""
    ## Kernels shared by the heads

    A kernel for each of the $d_k$ channels, the same in all heads:

    $$y_{t,h,c} = b_c + \sum_{i=0}^{K-1} w_{i,c}\; x_{t-(K-1)+i,\,h,\,c}$$

    :::{deviation} the walk-through of Primer-EZ
    There this is the main class, `MultiDConvHeadAttention`, and its convolution
    `SpatialDepthWiseConvolution`. In this book those names are the paper's layer, in which each head has
    kernels of its own, because that is what the paper calls Primer-EZ and measured.
    :::

    :::{variant} MultiDConvSharedByHeadsAttention
    :of: labml_primer.primer.primer_ez.MultiDConvHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        # The kernels of one head, which broadcasting lends to all.
        self.query_conv = BiasedConvolution(1, self.d_k)
        self.key_conv = BiasedConvolution(1, self.d_k)
        self.value_conv = BiasedConvolution(1, self.d_k)


class SpatialDepthWiseSharedConvolution(BiasedConvolution):
    r"""
    ## One kernel for everything

    The same three weights and one bias for every channel of every head:

    $$y_{t,h,c} = b + \sum_{i=0}^{K-1} w_i\; x_{t-(K-1)+i,\,h,\,c}$$

    It can blur a sequence, sharpen it or shift it, but all channels in the same way.
    `[batch, seq, heads, d_k]` to the same.
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

    One head may look at the current token, another at the one before. `[batch, seq, heads, d_k]` to the same.

    :::{deviation} the paper's released code
    Of the walk-through's three convolutions this is the closest to the paper's. The paper's has no bias, and
    starts at 0.5 for the current token and 0.5/3 for each earlier one.
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
    # To the parameters of one attention layer at `d_model` 512 with 8 heads. In time they hardly differ:
    # every element is multiplied three times in any case, whether its weights are its own or shared.
    layers: dict[str, type[MultiHeadAttention]] = {
        "one per channel and head": MultiDConvHeadAttention,
        "  with a bias": MultiDPHConvHeadAttention,
        "shared by the heads": MultiDConvSharedByHeadsAttention,
        "one for everything": MultiDSharedConvHeadAttention,
    }

    def size(layer: type[MultiHeadAttention]) -> int:
        return sum(p.numel() for p in layer(512, 8).parameters())

    for name, layer in layers.items():
        print(f"{name:25s} {size(layer) - size(MultiHeadAttention):6,d}")


if __name__ == "__main__":
    # ## The race of seven
    #
    # As in {doc}`primer_ez`, at half the width and for fewer steps. Each of the two changes runs alone too,
    # and the variations run with the squared ReLU, as Primer-EZ does.
    import matplotlib.pyplot as plt

    from labml_primer.training import History, load_corpus, train

    entrants: dict[str, tuple[type[MultiHeadAttention], type[nn.Module], str]] = {
        "Transformer": (MultiHeadAttention, nn.ReLU, "C5"),
        "squared ReLU alone": (MultiHeadAttention, SquaredReLU, "C0:"),
        "convolution alone": (MultiDConvHeadAttention, nn.ReLU, "C0--"),
        "Primer-EZ": (MultiDConvHeadAttention, SquaredReLU, "C0"),
        "per head, bias": (MultiDPHConvHeadAttention, SquaredReLU, "C2-."),
        "shared by heads": (MultiDConvSharedByHeadsAttention, SquaredReLU, "C4-."),
        "one kernel": (MultiDSharedConvHeadAttention, SquaredReLU, "C1-."),
    }
    corpus = load_corpus()
    small = Config(corpus.vocab_size, d_model=64, d_ff=256, max_seq=64)

    def run(name: str, seed: int) -> History:
        attention, activation, _ = entrants[name]
        torch.manual_seed(seed)
        model = LanguageModel(
            replace(small, attention=attention, activation=activation)
        )
        return train(model, corpus, name=name, steps=300, seq=64, seed=seed)

    histories = {name: run(name, seed=0) for name in entrants}
    # On the left, which change does the work; on the right, how the kernels are shared.
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7, 2.8), sharey=True, layout="constrained"
    )
    changes = ("Transformer", "squared ReLU alone", "convolution alone", "Primer-EZ")
    kernels = ("Primer-EZ", "per head, bias", "shared by heads", "one kernel")
    for ax, names in ((left, changes), (right, kernels)):
        for name in names:
            history, line = histories[name], entrants[name][2]
            ax.plot(history.steps, history.validation_loss, line, label=name)
        ax.set(xlabel="step")
        ax.legend(frameon=False)
    left.set(ylabel="loss, nats per character")
    plt.show()
    # ### The results
    #
    # The final loss, and the {py:func}`~labml_primer.primer.primer_ez.speedup_factor` over the Transformer in
    # steps. To see how much of a difference is noise, Primer-EZ runs once more with another seed, which
    # changes its initial weights and the text that it reads.
    vanilla = histories["Transformer"]
    print(f"{'':18s} {'loss':>6s} {'x steps':>8s}")
    for name, history in histories.items():
        factor = speedup_factor(
            vanilla.steps,
            vanilla.validation_loss,
            history.steps,
            history.validation_loss,
        )
        print(f"{name:18s} {history.validation_loss[-1]:6.3f} {factor:8.2f}")
    again = run("Primer-EZ", seed=1).validation_loss[-1]
    moved = abs(again - histories["Primer-EZ"].validation_loss[-1])
    losses = [histories[name].validation_loss[-1] for name in kernels]
    print(f"Another seed changes Primer-EZ by {moved:.3f}.")
    print(f"The four ways to share lie within {max(losses) - min(losses):.3f}.")
    # The walk-through and the paper both call the squared ReLU the more effective of the two changes (section
    # 3). Here the convolution is. In {doc}`/experiments/chapters/ours`, three times as long and with five
    # seeds, the convolution is still ahead, but by less than the spread of its seeds. These models read
    # characters, and a character says little without the one before it; the paper's models read subwords, and
    # were trained for 1.1 to 2.1 million steps of 4,096 tokens (Table 4, section 4.1), against 300 of 1,024
    # here.
    #
    # One seed each cannot rank the four ways to share. {doc}`/experiments/chapters/mdha` compares them with
    # three.


if __name__ == "__main__":
    # ## In short
    #
    # - The walk-through's convolution differs from the paper's: kernels shared by the heads, a bias, another
    #   start.
    # - Kernels can be shared by heads or by everything at next to no cost in parameters or time.
    # - On characters the convolution gains more than the squared ReLU; one seed cannot rank the ways to
    #   share.
    #
    # ## Exercise
    #
    # :::{exercise} From coarse to fine
    # Give a convolution with kernels for each channel of each head such weights that it computes what a
    # shared kernel computes. Why is the reverse impossible?
    # :::
    # :::{solution}
    # Copy the one kernel into every column. The finer layer can be everything that the coarser one can; it
    # only starts elsewhere. Conversely, 128 kernels that differ cannot be written as one.
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

    # And the Transformer, with what others had added to it by then? {doc}`baselines`.
