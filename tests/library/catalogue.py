"""Every layer of the library, by name: how to make it, what it reads, and how far a position reaches.

A test asks for an input of `[batch, seq, *position]` and gives the layer that alone. Layers that need a
second input get it from one of the wrappers below.
"""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from twins import stirred

from labml_primer.compared.convolutions import (
    ConvolvedAttention,
    StandardConvolution,
    StandardConvolutionAttention,
    WideConvolutionAttention,
)
from labml_primer.compared.evolved_transformer import (
    BranchedConvolution,
    EvolvedBlock,
    GatedEvolvedBlock,
    SeparableConvolution,
)
from labml_primer.compared.switch import SwitchFeedForward
from labml_primer.compared.synthesizer import (
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
)
from labml_primer.compared.t5 import T5, T5_PRESETS, T5Config
from labml_primer.presets import PRESETS
from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer import (
    PrimerAttention,
    PrimerBlock,
    PrimerNorm,
    SearchedActivation,
    SearchedAttention,
    SearchedBlock,
    SeparableConvolutionAttention,
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
    SpatialDepthWisePerHeadConvolution,
    SpatialDepthWiseSharedConvolution,
)
from labml_primer.search.programs import DNA, PRIMER, TRANSFORMER
from labml_primer.search.running import Program
from labml_primer.since.modern import (
    BlockWithoutBiases,
    GroupedMultiDConvHeadAttention,
    GroupedQueryAttention,
    modern,
)
from labml_primer.since.rotary import (
    POSITIONS,
    BucketedAttention,
    RotaryAttention,
    RotaryMultiDConvHeadAttention,
    rotary,
)
from labml_primer.since.short_convolutions import (
    CanonAttention,
    CanonBlock,
    CanonFeedForward,
    CanonLayer,
    GroupedCanonAttention,
    GroupedTokenShiftAttention,
    Smear,
    TokenShift,
    TokenShiftAttention,
)
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.decoder import Decoder, DecoderBlock
from labml_primer.transformer.embedding import Embedding
from labml_primer.transformer.encoder import Encoder, EncoderBlock
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.language_model import Config, LanguageModel
from labml_primer.transformer.model import Transformer
from labml_primer.transformer.normalization import LayerNorm, PostNorm, PreNorm, RMSNorm
from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
)

VOCAB, D_MODEL, HEADS, D_K, D_FF, MAX_SEQ = 11, 12, 3, 4, 20, 9
SMALL = Config(VOCAB, D_MODEL, HEADS, D_FF, layers=2, max_seq=MAX_SEQ)


class BucketedMultiDConvHeadAttention(BucketedAttention, MultiDConvHeadAttention):
    """MDHA with T5's buckets."""


class RotaryPrimerAttention(RotaryAttention, PrimerAttention):
    """Primer's attention with rotary positions."""


ATTENTIONS: dict[str, type[MultiHeadAttention]] = {
    kind.__name__: kind
    for kind in (
        MultiHeadAttention,
        MultiDConvHeadAttention,
        MultiDConvSharedByHeadsAttention,
        MultiDSharedConvHeadAttention,
        MultiDPHConvHeadAttention,
        SeparableConvolutionAttention,
        SharedQueryAttention,
        PrimerAttention,
        SearchedAttention,
        ConvolvedAttention,
        WideConvolutionAttention,
        StandardConvolutionAttention,
        DenseSynthesizer,
        FactorizedDenseSynthesizer,
        RandomSynthesizer,
        FactorizedRandomSynthesizer,
        RotaryAttention,
        RotaryMultiDConvHeadAttention,
        BucketedAttention,
        BucketedMultiDConvHeadAttention,
        RotaryPrimerAttention,
        TokenShiftAttention,
        CanonAttention,
        GroupedQueryAttention,
        GroupedMultiDConvHeadAttention,
        GroupedTokenShiftAttention,
        GroupedCanonAttention,
    )
}


class Causal(nn.Module):
    """Attention of a sequence to itself and its past."""

    def __init__(self, attention: MultiHeadAttention):
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, causal=True)


class AroundATanh(nn.Module):
    """A norm around a sub-layer."""

    def __init__(self, norm: PreNorm):
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x, torch.tanh)


class WithMemory(nn.Module):
    """A decoder that reads one fixed memory."""

    def __init__(self, decoder: nn.Module):
        super().__init__()
        self.decoder = decoder
        self.register_buffer("memory", torch.randn(1, 5, D_MODEL))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(x, self.memory.expand(x.size(0), -1, -1))


class WithSource(nn.Module):
    """An encoder-decoder that answers one fixed source."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.register_buffer("source", torch.tensor([[3, 1, 4, 1, 5]]))

    def forward(self, target: Tensor) -> Tensor:
        return self.model(self.source.expand(target.size(0), -1), target)


def is_written(module: nn.Module) -> bool:
    """Whether the classes of `module` are all in a file, none made by `rotary.positioned`."""
    kinds = {type(each) for each in module.modules()}
    return all(
        hasattr(importlib.import_module(kind.__module__), kind.__name__)
        for kind in kinds
    )


@dataclass(frozen=True)
class Layer:
    """How to make a layer with a given dropout, and what it does with positions."""

    build: Callable[[float], nn.Module]
    position: tuple[int, ...] = (D_MODEL,)  # a position's shape; () is a token
    reach: float = math.inf  # how many outputs an input changes: its own and later ones
    causal: bool = True
    drops: bool = True  # has dropout
    cached: bool = True  # takes a KV cache; layers that are not causal never do

    def make(self, dropout: float = 0.0, seed: int = 0) -> nn.Module:
        """A fresh layer in float32, in eval mode if nothing is to be dropped."""
        torch.manual_seed(seed)
        return self.build(dropout).train(dropout > 0)

    def stirred(self) -> nn.Module:
        """In float64, and no weight as regular as a fresh one."""
        return stirred(self.make())

    def input(self, batch: int, seq: int, seed: int = 1) -> Tensor:
        """`[batch, seq, *position]`, in float64 or of tokens."""
        generator = torch.Generator().manual_seed(seed)
        if not self.position:
            return torch.randint(VOCAB, (batch, seq), generator=generator)
        shape = (batch, seq, *self.position)
        return torch.randn(shape, generator=generator, dtype=torch.float64)


def heads_of(kind: type[MultiHeadAttention]) -> int:
    """Heads that share keys and values are four, in two groups."""
    return 4 if issubclass(kind, GroupedQueryAttention) else HEADS


def attention(kind: type[MultiHeadAttention]) -> Layer:
    return Layer(lambda dropout: Causal(kind(D_MODEL, heads_of(kind), dropout)))


def convolution(
    build: Callable[[], nn.Module], reach: int, position: tuple[int, ...] = (HEADS, D_K)
) -> Layer:
    return Layer(lambda _: build(), position, reach, drops=False)


def pointwise(build: Callable[[], nn.Module], *position: int) -> Layer:
    return Layer(lambda _: build(), position or (D_MODEL,), reach=1, drops=False)


def feed_forward(kind: type[PositionwiseFeedForward]) -> Layer:
    return Layer(lambda dropout: kind(D_MODEL, D_FF, dropout), reach=1)


def block(config: Config) -> Layer:
    return Layer(lambda dropout: config.block(replace(config, dropout=dropout)))


def program(dna: DNA) -> Layer:
    return Layer(lambda _: Program(dna, 16, MAX_SEQ), (16,), drops=False, cached=False)


def model(config: Config) -> Layer:
    return Layer(lambda dropout: LanguageModel(replace(config, dropout=dropout)), ())


def small(config: Config) -> Config:
    """The same parts in a small size."""
    heads = heads_of(config.attention)
    return replace(
        config,
        vocab_size=VOCAB,
        d_model=heads * D_K,
        heads=heads,
        d_ff=D_FF,
        layers=2,
        max_seq=MAX_SEQ,
    )


CONFIGS = {name: small(config) for name, config in PRESETS.items()}
# Every way to know positions, with and without Primer-EZ's convolutions.
CONFIGS |= {
    f"{name}, {place} positions": way(CONFIGS[name])
    for name in ("transformer", "primer-ez")
    for place, way in POSITIONS.items()
    if place != "learned"
}
CONFIGS |= {
    f"{name}, rotary positions": POSITIONS["rotary"](CONFIGS[name])
    for name in ("primer", "evolved-transformer")
}

_grouped = small(modern(SMALL))
CONFIGS |= {
    "modern with Canon-B": rotary(replace(_grouped, attention=GroupedCanonAttention)),
    "modern with token shift": rotary(
        replace(_grouped, attention=GroupedTokenShiftAttention)
    ),
    "modern with smear": replace(_grouped, positions=Smear),
    "Canon-ABCD": replace(
        SMALL,
        attention=CanonAttention,
        feed_forward=CanonFeedForward,
        block=CanonBlock,
    ),
}

_sizes = (D_MODEL, HEADS, D_FF)
_searched = replace(SMALL, attention=SearchedAttention, norm=PrimerNorm)


def t5(config: T5Config) -> Layer:
    sizes = {"d_model": D_MODEL, "heads": HEADS, "d_ff": D_FF, "layers": 1}
    small = replace(config, vocab_size=VOCAB, **sizes)
    return Layer(lambda _: WithSource(T5(small)), (), drops=False, cached=False)


LAYERS: dict[str, Layer] = {
    **{name: attention(kind) for name, kind in ATTENTIONS.items()},
    "SpatialDepthWiseConvolution": convolution(
        lambda: SpatialDepthWiseConvolution(HEADS, D_K), 3
    ),
    "SpatialDepthWiseConvolution, 1 wide": convolution(
        lambda: SpatialDepthWiseConvolution(HEADS, D_K, kernel_size=1), 1
    ),
    "SpatialDepthWiseConvolution, 5 wide": convolution(
        lambda: SpatialDepthWiseConvolution(HEADS, D_K, kernel_size=5), 5
    ),
    "BiasedConvolution": convolution(lambda: BiasedConvolution(1, D_K), 3),
    "SpatialDepthWiseSharedConvolution": convolution(
        lambda: SpatialDepthWiseSharedConvolution(kernel_size=2), 2
    ),
    "SpatialDepthWisePerHeadConvolution": convolution(
        lambda: SpatialDepthWisePerHeadConvolution(HEADS, D_K), 3
    ),
    "StandardConvolution": convolution(lambda: StandardConvolution(HEADS, D_K), 3),
    "SeparableConvolution": convolution(
        lambda: SeparableConvolution(D_MODEL, 8, kernel_size=4), 4, (D_MODEL,)
    ),
    "BranchedConvolution": Layer(lambda d: BranchedConvolution(D_MODEL, d), reach=17),
    "TokenShift": convolution(lambda: TokenShift(D_MODEL), 2, (D_MODEL,)),
    "Smear": Layer(lambda d: Smear(D_MODEL, MAX_SEQ, d), reach=2),
    "CanonLayer": convolution(lambda: CanonLayer(HEADS, D_K), 4),
    "CanonFeedForward": Layer(lambda d: CanonFeedForward(D_MODEL, D_FF, d), reach=4),
    "PositionwiseFeedForward": feed_forward(PositionwiseFeedForward),
    "GatedFeedForward": feed_forward(GatedFeedForward),
    "SwitchFeedForward": feed_forward(SwitchFeedForward),
    "SquaredReLU": pointwise(SquaredReLU),
    "SearchedActivation": pointwise(SearchedActivation),
    "LayerNorm": pointwise(partial(LayerNorm, D_MODEL)),
    "RMSNorm": pointwise(partial(RMSNorm, D_MODEL)),
    "PrimerNorm": pointwise(partial(PrimerNorm, D_MODEL)),
    "PreNorm": Layer(lambda d: AroundATanh(PreNorm(D_MODEL, d)), reach=1),
    "PostNorm": Layer(lambda d: AroundATanh(PostNorm(D_MODEL, d)), reach=1),
    "Embedding": Layer(lambda _: Embedding(VOCAB, D_MODEL), (), reach=1, drops=False),
    "PositionalEncoding": Layer(
        lambda d: PositionalEncoding(D_MODEL, MAX_SEQ, d), reach=1
    ),
    "LearnedPositionalEncoding": Layer(
        lambda d: LearnedPositionalEncoding(D_MODEL, MAX_SEQ, d), reach=1
    ),
    "EncoderBlock": Layer(lambda d: EncoderBlock(*_sizes, d), causal=False),
    "Encoder": Layer(lambda d: Encoder(2, *_sizes, d), causal=False),
    "DecoderBlock": Layer(lambda d: WithMemory(DecoderBlock(*_sizes, d)), cached=False),
    "Decoder": Layer(lambda d: WithMemory(Decoder(2, *_sizes, d)), cached=False),
    "Block": block(SMALL),
    "BlockWithoutBiases": block(replace(SMALL, block=BlockWithoutBiases)),
    "CanonBlock": block(replace(SMALL, block=CanonBlock)),
    "PrimerBlock": block(replace(CONFIGS["primer"], block=PrimerBlock)),
    "SearchedBlock": block(replace(_searched, block=SearchedBlock)),
    "EvolvedBlock": block(replace(SMALL, block=EvolvedBlock)),
    "GatedEvolvedBlock": block(replace(SMALL, block=GatedEvolvedBlock)),
    "Program, the Transformer's": program(TRANSFORMER),
    "Program, Primer's": program(PRIMER),
    "Transformer": Layer(
        lambda d: WithSource(
            Transformer(VOCAB, VOCAB, *_sizes, layers=1, max_seq=MAX_SEQ, dropout=d)
        ),
        (),
        cached=False,
    ),
    **{name: t5(config) for name, config in T5_PRESETS.items()},
    **{name: model(replace(config, layers=1)) for name, config in CONFIGS.items()},
}
