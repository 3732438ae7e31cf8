"""# Encoder"""

from torch import Tensor, nn

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


class EncoderBlock(nn.Module):
    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        attention: type[MultiHeadAttention] = MultiHeadAttention,
        activation: type[nn.Module] = nn.ReLU,
    ):
        super().__init__()
        self.attention = attention(d_model, heads, dropout)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout, activation)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y, mask, causal))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Encoder(nn.Module):
    def __init__(
        self, layers: int, d_model: int, heads: int, d_ff: int, dropout: float = 0.0
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, heads, d_ff, dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)
