"""# Multi-head attention"""

import math

from torch import Tensor, nn
from torch.nn import functional as F


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """`[..., queries, d_k]` and `[..., keys, d_k]` to `[..., queries, keys]`."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    return attention_weights(query, key, mask) @ value


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model} is not a multiple of heads {heads}")
        self.heads = heads
        self.d_k = d_model // heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = dropout

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of `x`, keys and values of `y`, each `[batch, seq, heads, d_k]`."""
        split = (self.heads, self.d_k)
        return (
            self.query(x).unflatten(-1, split),
            self.key(y).unflatten(-1, split),
            self.value(y).unflatten(-1, split),
        )

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        query, key, value = (t.transpose(1, 2) for t in self.project(x, y))
        heads = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=causal,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.output(heads.transpose(1, 2).flatten(2))
