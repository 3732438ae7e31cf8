"""# Decoder"""

from torch import Tensor, nn

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


class DecoderBlock(nn.Module):
    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads, dropout)
        self.attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, heads, dropout)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None
    ) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y, causal=True))
        x = x + self.dropout(
            self.cross_attention(self.cross_attention_norm(x), memory, memory_mask)
        )
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Decoder(nn.Module):
    def __init__(
        self, layers: int, d_model: int, heads: int, d_ff: int, dropout: float = 0.0
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            DecoderBlock(d_model, heads, d_ff, dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(
        self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None
    ) -> Tensor:
        for block in self.blocks:
            x = block(x, memory, memory_mask)
        return self.norm(x)
