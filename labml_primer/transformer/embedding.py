"""# Embedding"""

import math

from torch import Tensor, nn


class Embedding(nn.Module):
    """`tokens` `[batch, seq]` of integers to `[batch, seq, d_model]`, scaled by the root of `d_model`."""

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table(tokens) * self.scale
