r"""
# Short convolutions since Primer

Token shift, smear and Canon layers: three ways to let a token see the tokens before it, next to Primer's.

Which of them are the same layer in other words?

In short: all but smear, whose weight depends on the token, are causal {term}`depthwise convolutions
<depthwise convolution>`. They differ in their place, their width and their initial weights:

| name | where | width | starts as |
|---|---|---|---|
| {term}`MDHA` | after the projections | 3 | 1/2 of the token, 1/6 of each of the two before |
| {term}`token shift` | before the projections | 2 | a mixture of both tokens |
| {term}`smear` | once, after the embedding | 2 | the token alone |
| {term}`Canon-A <Canon layer>` | before attention | 4 | the token plus a random mixture |
| Canon-B | after the projections | 4 | the same |
| Canon-C | before the feed-forward layer | 4 | the same |
| Canon-D | within the feed-forward layer | 4 | the same |

Primer's convolution lets queries, keys and values look two tokens back. Since then, others have found similar
layers in other places of a model, and have given them other names. As in MDHA, no mask hides padding before a
text from any of them. Token shift is a convolution of width 2 before the projections, and Canon-B is MDHA
with a kernel of width 4 and 1 added to the weight of the current token. The demonstrations below show both in
numbers.

:::{picture} short_convolutions
:::

Source: {cite:t}`peng2023rwkv` and the code of RWKV-4; {cite:t}`allenzhu2025canon` and its released code
(PhysicsLM4, `modeling_llama_canon.py`); [modded-nanogpt, pull request
130](https://github.com/KellerJordan/modded-nanogpt/pull/130).
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from labml_primer.primer.primer import SeparableConvolutionAttention
from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
)
from labml_primer.since.modern import GroupedQueryAttention
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.language_model import Block, Config


class TokenShift(nn.Module):
    r"""
    ## Token shift

    Mix each feature of a token with the same feature of the token before it, in a learned proportion $\mu$:

    $$y_{t,c} = \mu_c\, x_{t,c} + (1 - \mu_c)\, x_{t-1,c}$$

    The token before the first is zero. Maps `[batch, seq, d_model]` to the same shape.

    :::{deviation} RWKV-4
    There $\mu$ starts differently for each feature and layer, from 0 to 1. Here it starts at 0.5 everywhere.
    :::
    """

    window = 2  # how many tokens an output depends on

    def __init__(self, d_model: int):
        super().__init__()
        self.mu = nn.Parameter(torch.full((d_model,), 0.5))

    def forward(self, x: Tensor) -> Tensor:
        previous = nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        return torch.lerp(previous, x, self.mu)


class TokenShiftAttention(MultiHeadAttention):
    """
    ## Attention with token shift

    Each projection reads a mixture of its own. In RWKV the layers after it are not attention, but its author
    also tried token shift on queries, keys and values, and saw in the weights that values use it much, and
    queries less. In our runs, too, values gain most from a convolution. Queries gain about as
    much as keys with a learned table of positions, and nothing with rotary ones
    ({doc}`/experiments/chapters/mdha`).

    :::{variant} TokenShiftAttention
    :of: labml_primer.transformer.attention.MultiHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_shift = TokenShift(d_model)
        self.key_shift = TokenShift(d_model)
        self.value_shift = TokenShift(d_model)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        each = (-1, self.d_k)
        return (
            self.query(self.query_shift(x)).unflatten(-1, each),
            self.key(self.key_shift(y)).unflatten(-1, each),
            self.value(self.value_shift(y)).unflatten(-1, each),
        )


if __name__ == "__main__":
    # ### A separable convolution of width 2
    #
    # Token shift is a depthwise convolution whose two weights sum to one, before a projection. So it is the
    # layer of {py:class}`~labml_primer.primer.primer.SeparableConvolutionAttention`, with a narrower kernel.
    # Give both the same weights, with random mixtures:
    torch.manual_seed(0)
    shifted = TokenShiftAttention(d_model=64, heads=4)
    separable = SeparableConvolutionAttention(d_model=64, heads=4)
    separable.load_state_dict(shifted.state_dict(), strict=False)
    for name in ("query", "key", "value"):
        mu = shifted.get_parameter(f"{name}_shift.mu")
        nn.init.uniform_(mu)
        convolution = SpatialDepthWiseConvolution(1, 64, kernel_size=2)
        convolution.weight.data = torch.stack([1 - mu, mu])[:, None].detach()
        setattr(separable, f"{name}_conv", convolution)
    x = torch.randn(2, 20, 64)
    difference = shifted(x, x, causal=True) - separable(x, x, causal=True)
    print(f"largest difference {difference.abs().max():.1e}")


class Smear(nn.Module):
    r"""
    ## Smear

    Add a little of the previous token's embedding to each token's, once, before the first block:

    $$y_t = x_t + \lambda\,\sigma(w \cdot x_{t,:12})\; x_{t-1}$$

    The gate $\sigma(\dots)$ is one number per token, computed from its first 12 features. The factor
    $\lambda$ and the weights $w$ start at zero, so a new model does not smear. Maps `[batch, seq, d_model]`
    to the same shape. It takes the place of the positions at the input
    (`replace(config, positions=Smear)`), for models whose attention has positions of its own.

    The gate makes it more than a convolution, because the weight of the previous token depends on the current
    one. It became part of modded-nanogpt's speed record in September 2025, because several heads of the
    trained models attended to the previous token. Its author estimates that the layer saves about 5 steps.
    """

    window = 2

    def __init__(self, d_model: int, max_seq: int, dropout: float = 0.0):
        super().__init__()
        self.gate = nn.Linear(min(12, d_model), 1, bias=False)
        self.factor = nn.Parameter(torch.zeros(()))
        self.dropout = nn.Dropout(dropout)
        nn.init.zeros_(self.gate.weight)

    def forward(self, x: Tensor) -> Tensor:
        previous = nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        gate = self.gate(x[..., : self.gate.in_features]).sigmoid()
        smeared: Tensor = self.dropout(x + self.factor * gate * previous)
        return smeared


class CanonLayer(nn.Module):
    r"""
    ## Canon layers

    A causal depthwise convolution of width $K = 4$, added to its input:

    $$y_{t,c} = x_{t,c} + \sum_{i=0}^{3} w_{i,c}\; x_{t-3+i,\,c}$$

    No bias and no activation function, by the released code's default. The weights start as PyTorch
    initializes them, uniformly between $-1/2$ and $1/2$. For `[batch, seq, heads, d_k]`, or with one head for
    `[batch, seq, features]`.

    The name is from music: in a canon the same melody enters again a little later. The layer can be in four
    places of a block, which its authors call A, B, C and D.
    """

    def __init__(self, heads: int, d_k: int):
        super().__init__()
        self.canon_conv = SpatialDepthWiseConvolution(heads, d_k, kernel_size=4)
        nn.init.uniform_(self.canon_conv.weight, -0.5, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        heads = x.unsqueeze(2) if x.dim() == 3 else x
        y: Tensor = x + self.canon_conv(heads).view_as(x)
        return y


class CanonAttention(MultiHeadAttention):
    """
    ## Canon-B: MDHA in other words

    A Canon layer after each projection.

    :::{variant} CanonAttention
    :of: labml_primer.primer.primer_ez.MultiDConvHeadAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = CanonLayer(heads, self.d_k)
        self.key_conv = CanonLayer(heads, self.d_k)
        self.value_conv = CanonLayer(heads, self.d_k)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        return self.query_conv(query), self.key_conv(key), self.value_conv(value)


if __name__ == "__main__":
    # ### The same weights, the same results
    #
    # Copy the weights of a Canon-B into an MDHA of width 4, and add 1 to the weight of the current token. The
    # two layers then compute the same. So the only differences are the width, 4 instead of 3, the initial
    # weights, and what {term}`weight decay` pulls the weights to: plain attention here, and zero in MDHA.
    torch.manual_seed(0)
    canon = CanonAttention(d_model=64, heads=4)
    mdha = MultiDConvHeadAttention(d_model=64, heads=4)
    mdha.load_state_dict(canon.state_dict(), strict=False)
    for name in ("query_conv", "key_conv", "value_conv"):
        convolution = SpatialDepthWiseConvolution(4, 16, kernel_size=4)
        weight = canon.get_submodule(name).get_parameter("canon_conv.weight")
        convolution.weight.data = weight.detach().clone()
        convolution.weight.data[-1] += 1
        setattr(mdha, name, convolution)
    x = torch.randn(2, 20, 64)
    difference = mdha(x, x, causal=True) - canon(x, x, causal=True)
    print(f"largest difference {difference.abs().max():.1e}")


class CanonFeedForward(PositionwiseFeedForward):
    """
    ## Canon-D: within the feed-forward layer

    After the first linear map, before the activation function. It costs most of the four, because it reads
    `d_ff` features. (In a gated layer the released code has one for each of the two linear maps.)

    :::{variant} CanonFeedForward
    :of: labml_primer.transformer.feed_forward.PositionwiseFeedForward
    :::
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.ReLU,
    ):
        super().__init__(d_model, d_ff, dropout, activation)
        self.activation = nn.Sequential(CanonLayer(1, d_ff), self.activation)


class CanonBlock(Block):
    """
    ## Canon-A and Canon-C: before the sub-layers

    After each norm, so that everything in the sub-layer reads the mixture. With
    {py:class}`~labml_primer.since.short_convolutions.CanonAttention` and
    {py:class}`~labml_primer.since.short_convolutions.CanonFeedForward` in the configuration it is the whole
    set, Canon-ABCD.

    :::{variant} CanonBlock
    :of: labml_primer.transformer.language_model.Block
    :::
    """

    def __init__(self, config: Config):
        super().__init__(config)
        self.attention_norm = nn.Sequential(
            self.attention_norm, CanonLayer(1, config.d_model)
        )
        self.feed_forward_norm = nn.Sequential(
            self.feed_forward_norm, CanonLayer(1, config.d_model)
        )


if __name__ == "__main__":
    # ## What they cost
    #
    # The parameters that each adds to a block of width 512 with 8 heads. All are small: the block itself has
    # {value}`f"{size(Block(config)) / 1e6:.1f}"` million. The multiply-adds per token are about as many,
    # because each weight is used once per token.
    from IPython.display import display

    from labml_primer.training.table import Table

    config = Config(1, d_model=512, heads=8, d_ff=2048)
    changed = {
        "MDHA": (replace(config, attention=MultiDConvHeadAttention), 3),
        "token shift": (replace(config, attention=TokenShiftAttention), 2),
        "Canon-A and C": (replace(config, block=CanonBlock), 4),
        "Canon-B": (replace(config, attention=CanonAttention), 4),
        "Canon-D": (replace(config, feed_forward=CanonFeedForward), 4),
    }

    def size(layer: nn.Module) -> int:
        return sum(p.numel() for p in layer.parameters())

    rows = [
        [name, width, f"{size(other.block(other)) - size(Block(config)):,}"]
        for name, (other, width) in changed.items()
    ]
    rows.append(["smear, once for all blocks", 2, f"{size(Smear(512, 128))}"])
    display(Table(["layer", "tokens wide", "parameters"], rows))


class GroupedTokenShiftAttention(TokenShiftAttention, GroupedQueryAttention):
    """
    ## In a modern baseline

    Token shift and Canon-B with the shared keys and values of {doc}`modern`.
    """


class GroupedCanonAttention(GroupedQueryAttention):
    """Canon-B with a kernel for each channel of each head of queries and of each group of keys and values."""

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = CanonLayer(heads, self.d_k)
        self.key_conv = CanonLayer(self.groups, self.d_k)
        self.value_conv = CanonLayer(self.groups, self.d_k)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        return self.query_conv(query), self.key_conv(key), self.value_conv(value)


if __name__ == "__main__":
    # ## In short
    #
    # - Token shift, Canon layers and MDHA are causal depthwise convolutions, 2 to 4 tokens wide. Smear is one
    #   of width 2 with a gate that depends on the token.
    # - Token shift comes before the projections; MDHA and Canon-B come after them.
    # - Canon-B is MDHA of width 4, with 1 added to the weight of the current token.
    # - {doc}`/experiments/chapters/positions` has recorded runs of MDHA, Canon-B and token shift in a modern
    #   baseline on subwords.
    #
    # ## Exercise
    #
    # :::{exercise} How far back without attention?
    # A block has Canon-C before its feed-forward layer and Canon-D within it. Change the input of this part
    # of the block at position 5. Which of its outputs change?
    # :::
    # :::{solution}
    # Those from 5 to 11. Each Canon layer reads three positions back, so the two together pass information
    # six positions forward, without any attention.
    # :::
    torch.manual_seed(0)
    part = CanonBlock(replace(config, feed_forward=CanonFeedForward))
    layers = nn.Sequential(part.feed_forward_norm, part.feed_forward)
    x = torch.randn(1, 20, 512)
    other = x.clone()
    other[:, 5] += torch.randn(512)
    moved = (layers(other) - layers(x)).abs().amax(dim=(0, 2)) > 1e-6
    print("outputs that changed:", moved.nonzero().flatten().tolist())
    assert moved.nonzero().flatten().tolist() == list(range(5, 12))

    # Who uses these layers, and what do they report? {doc}`/book/pages/descendants`.
