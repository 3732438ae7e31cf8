"""# Primer-EZ"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention


class SquaredReLU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x).square()


class SpatialDepthWiseConvolution(nn.Module):
    """`[batch, seq, heads, d_k]` to the same: one causal kernel a channel, shared by the heads."""

    def __init__(self, d_k: int, kernel_size: int = 3):
        super().__init__()
        self.kernel_size = kernel_size
        bound = kernel_size**-0.5
        self.weight = nn.Parameter(
            torch.empty(kernel_size, d_k).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.empty(d_k).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        seq = x.size(1)
        padded = F.pad(x, (0, 0, 0, 0, self.kernel_size - 1, 0))
        y = self.bias.expand_as(x)
        for i in range(self.kernel_size):
            y = torch.addcmul(y, padded[:, i : i + seq], self.weight[i])
        return y


class MultiDConvHeadAttention(MultiHeadAttention):
    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = SpatialDepthWiseConvolution(self.d_k)
        self.key_conv = SpatialDepthWiseConvolution(self.d_k)
        self.value_conv = SpatialDepthWiseConvolution(self.d_k)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        return self.query_conv(query), self.key_conv(key), self.value_conv(value)
