"""# The Transformer"""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.decoder import Decoder
from labml_primer.transformer.embedding import Embedding
from labml_primer.transformer.encoder import Encoder, EncoderBlock
from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
)


class Transformer(nn.Module):
    """The encoder-decoder: `source` `[batch, source]`, `target` `[batch, target]` to logits `[batch, target, target_vocab]`."""

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int = 512,
        heads: int = 8,
        d_ff: int = 2048,
        layers: int = 6,
        max_seq: int = 512,
        dropout: float = 0.1,
        padding: int = 0,
    ):
        super().__init__()
        self.padding = padding
        self.source_embedding = Embedding(source_vocab, d_model)
        self.target_embedding = Embedding(target_vocab, d_model)
        self.positions = PositionalEncoding(d_model, max_seq, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout)
        self.decoder = Decoder(layers, d_model, heads, d_ff, dropout)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The memory `[batch, source, d_model]` and its mask `[batch, 1, 1, source]`."""
        mask = (source != self.padding)[:, None, None, :]
        return self.encoder(self.positions(self.source_embedding(source)), mask), mask

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        x = self.decoder(
            self.positions(self.target_embedding(target)), memory, memory_mask
        )
        return F.linear(x, self.target_embedding.table.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.decode(target, *self.encode(source))


@dataclass(frozen=True)
class Config:
    """What a language model is made of."""

    vocab_size: int
    d_model: int = 128
    heads: int = 4
    d_ff: int = 512
    layers: int = 4
    max_seq: int = 128
    dropout: float = 0.0
    attention: type[MultiHeadAttention] = MultiHeadAttention
    activation: type[nn.Module] = nn.ReLU


class LanguageModel(nn.Module):
    """`tokens` `[batch, seq]` to logits `[batch, seq, vocab_size]`."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = LearnedPositionalEncoding(
            config.d_model, config.max_seq, config.dropout
        )
        self.blocks = nn.ModuleList(
            EncoderBlock(
                config.d_model,
                config.heads,
                config.d_ff,
                config.dropout,
                config.attention,
                config.activation,
            )
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.positions(self.embedding(tokens))
        for block in self.blocks:
            x = block(x, causal=True)
        return F.linear(self.norm(x), self.embedding.weight)
