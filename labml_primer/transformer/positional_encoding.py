"""# Positional encoding"""

import math

import torch
from torch import Tensor, nn


def positional_encoding(seq: int, d_model: int) -> Tensor:
    """The encodings of positions 0 to seq - 1, `[seq, d_model]`."""
    if d_model % 2:
        raise ValueError(f"d_model {d_model} is odd; sines and cosines come in pairs")
    position = torch.arange(seq).unsqueeze(1)
    omega = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
    encoding = torch.empty(seq, d_model)
    encoding[:, 0::2] = torch.sin(position * omega)
    encoding[:, 1::2] = torch.cos(position * omega)
    return encoding


class PositionalEncoding(nn.Module):
    """Adds the fixed encodings, then drops out. `[batch, seq, d_model]` to the same."""

    encoding: Tensor

    def __init__(self, d_model: int, max_seq: int = 5000, dropout: float = 0.0):
        super().__init__()
        self.register_buffer(
            "encoding", positional_encoding(max_seq, d_model), persistent=False
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.encoding[: x.size(1)])


class LearnedPositionalEncoding(nn.Module):
    """Adds one trained vector a position, then drops out."""

    def __init__(self, d_model: int, max_seq: int, dropout: float = 0.0):
        super().__init__()
        self.encoding = nn.Parameter(torch.randn(max_seq, d_model) * 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.encoding[: x.size(1)])
