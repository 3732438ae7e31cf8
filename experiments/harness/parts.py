"""The parts that a run's configuration can name, and layers that only experiments use.

Those are MDHA with one detail changed, activation functions, a block, and an input. Each attention differs in
one thing from the walk-through's, `MultiDConvSharedByHeadsAttention`.
"""

import math
from dataclasses import replace

from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer import (
    PrimerBlock,
    PrimerNorm,
    SharedQueryAttention,
)
from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
    SquaredReLU,
)
from labml_primer.primer.variations import (
    BiasedConvolution,
    MultiDConvSharedByHeadsAttention,
    MultiDPHConvHeadAttention,
    MultiDSharedConvHeadAttention,
)
from labml_primer.since.modern import GroupedMultiDConvHeadAttention
from labml_primer.since.rotary import NoPositions, rotary
from labml_primer.since.short_convolutions import (
    GroupedCanonAttention,
    GroupedTokenShiftAttention,
)
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.language_model import Block, Config

CONVOLUTIONS = ("query_conv", "key_conv", "value_conv")


class Width1(MultiDConvSharedByHeadsAttention):
    """Kernels of width 1: a factor and a bias for each channel, with no access to other tokens."""

    width = 1

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for name in CONVOLUTIONS:
            setattr(self, name, BiasedConvolution(1, self.d_k, self.width))


class Width2(Width1):
    width = 2


class Width5(Width1):
    width = 5


class Width7(Width1):
    width = 7


class NoBias(MultiDConvSharedByHeadsAttention):
    """Kernels without a bias, with PyTorch's initialization."""

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for name in CONVOLUTIONS:
            conv = SpatialDepthWiseConvolution(1, self.d_k)
            bound = conv.kernel_size**-0.5
            nn.init.uniform_(conv.weight, -bound, bound)
            setattr(self, name, conv)


class ReleasedStart(MultiDConvSharedByHeadsAttention):
    """Kernels that start as in the released code: 0.5 for the current token, 0.5/3 for each earlier one."""

    earlier, current = 0.5 / 3, 0.5

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for name in CONVOLUTIONS:
            conv = self.get_submodule(name)
            nn.init.constant_(conv.get_parameter("weight"), self.earlier)
            nn.init.constant_(conv.get_parameter("weight")[-1], self.current)
            nn.init.zeros_(conv.get_parameter("bias"))


class IdentityStart(ReleasedStart):
    """Kernels that start as the identity: the new layer computes plain attention."""

    earlier, current = 0.0, 1.0


class OnlyQueries(MultiDConvSharedByHeadsAttention):
    """Queries are convolved, keys and values are not."""

    convolved = "query_conv"

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for name in CONVOLUTIONS:
            if name != self.convolved:
                setattr(self, name, nn.Identity())


class OnlyKeys(OnlyQueries):
    convolved = "key_conv"


class OnlyValues(OnlyQueries):
    convolved = "value_conv"


class CubedReLU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).pow(3)


class SquaredLeakyReLU(nn.Module):
    """The square of a leaky ReLU, which is positive on both sides of zero."""

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, 0.01).square()


class EncoderBlock(Block):
    """The block of a language model without the causal mask: each position attends to all of them.

    It computes what `labml_primer.transformer.encoder.EncoderBlock` does, with parts of a configuration.
    """

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class ScaledInput(NoPositions):
    """Nothing is added to the tokens. They are multiplied by the root of their width.

    The Transformer's paper does so, section 3.4.
    """

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(math.sqrt(x.shape[-1]) * x)


def rotary_scaled(config: Config) -> Config:
    """Return `config` with rotary positions and a scaled input."""
    return replace(rotary(config), positions=ScaledInput)


PARTS: dict[str, type[nn.Module]] = {
    # Attention. "mdha" is the paper's layer, "mdha-shared-by-heads" the walk-through's; each one
    # below changes one thing of the walk-through's.
    "shared-query": SharedQueryAttention,
    "mdha": MultiDConvHeadAttention,
    "mdha-shared-by-heads": MultiDConvSharedByHeadsAttention,
    "mdha-one-kernel": MultiDSharedConvHeadAttention,
    "mdha-per-head-biased": MultiDPHConvHeadAttention,
    "mdha-width-1": Width1,
    "mdha-width-2": Width2,
    "mdha-width-5": Width5,
    "mdha-width-7": Width7,
    "mdha-no-bias": NoBias,
    "mdha-released-start": ReleasedStart,
    "mdha-identity-start": IdentityStart,
    "mdha-only-queries": OnlyQueries,
    "mdha-only-keys": OnlyKeys,
    "mdha-only-values": OnlyValues,
    # Grouped-query attention, with short convolutions of several kinds.
    "grouped-mdha": GroupedMultiDConvHeadAttention,
    "grouped-canon-b": GroupedCanonAttention,
    "grouped-token-shift": GroupedTokenShiftAttention,
    # Activation functions.
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "squared-relu": SquaredReLU,
    "cubed-relu": CubedReLU,
    "squared-leaky-relu": SquaredLeakyReLU,
    # Feed-forward layers.
    "plain": PositionwiseFeedForward,
    "gated": GatedFeedForward,
    # Normalization.
    "primer-norm": PrimerNorm,
    "layer-norm": nn.LayerNorm,
    # Blocks.
    "primer-block": PrimerBlock,
    "pre-norm-block": Block,
    "encoder-block": EncoderBlock,
}
"""Records of finished runs contain these names, and the digest of a run covers them. A class may move or be
renamed; its name here stays."""


def part(name: str) -> type[nn.Module]:
    """Return the class registered under `name`. Raises `ValueError` for an unknown name."""
    if name not in PARTS:
        raise ValueError(
            f"unknown part {name!r}; known parts: {', '.join(PARTS)}. A new one is added to PARTS in "
            "experiments/harness/parts.py"
        )
    return PARTS[name]
