"""Layers used only in experiments: MDHA with one detail changed, and two more activation functions."""

from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
)


class Width1(MultiDConvHeadAttention):
    """Kernels of width 1: a factor and a bias for each channel, with no access to other tokens."""

    kernel_size = 1

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for name in ("query_conv", "key_conv", "value_conv"):
            setattr(self, name, SpatialDepthWiseConvolution(self.d_k, self.kernel_size))


class Width2(Width1):
    kernel_size = 2


class Width5(Width1):
    kernel_size = 5


class Width7(Width1):
    kernel_size = 7


class NoBias(MultiDConvHeadAttention):
    """Kernels without a bias, with PyTorch's initialization."""

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for conv in (self.query_conv, self.key_conv, self.value_conv):
            conv.register_parameter("bias", None)


class ReleasedStart(MultiDConvHeadAttention):
    """Kernels that start as in the released code: 1/2 for the token, 1/6 for each before it."""

    before, now = 0.5 / 3, 0.5

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for conv in (self.query_conv, self.key_conv, self.value_conv):
            nn.init.constant_(conv.weight, self.before)
            nn.init.constant_(conv.weight[-1], self.now)
            nn.init.zeros_(conv.bias)


class IdentityStart(ReleasedStart):
    """Kernels that start as the identity, so that the layer starts as plain attention."""

    before, now = 0.0, 1.0


class OnlyQueries(MultiDConvHeadAttention):
    """MDHA that convolves queries, but not keys and values."""

    convolved = "query_conv"

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        for name in {"query_conv", "key_conv", "value_conv"} - {self.convolved}:
            setattr(self, name, nn.Identity())


class OnlyKeys(OnlyQueries):
    convolved = "key_conv"


class OnlyValues(OnlyQueries):
    convolved = "value_conv"


class CubedReLU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).pow(3)


class SquaredLeakyReLU(nn.Module):
    """The square of a leaky ReLU; it is positive on both sides of zero."""

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, 0.01).square()
