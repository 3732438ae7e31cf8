"""The parts that a run's configuration can name: short names, and the class of each.

Records of finished runs contain these names, and the digest of a run covers them. A class may move or be
renamed; its name here stays.
"""

from torch import nn

from experiments.harness.variants import (
    CubedReLU,
    EncoderBlock,
    IdentityStart,
    NoBias,
    OnlyKeys,
    OnlyQueries,
    OnlyValues,
    ReleasedStart,
    SquaredLeakyReLU,
    Width1,
    Width2,
    Width5,
    Width7,
)
from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer import (
    PrimerBlock,
    PrimerNorm,
    SharedQueryAttention,
)
from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
from labml_primer.primer.variations import (
    MultiDConvSharedByHeadsAttention,
    MultiDPHConvHeadAttention,
    MultiDSharedConvHeadAttention,
)
from labml_primer.since.modern import GroupedMultiDConvHeadAttention
from labml_primer.since.short_convolutions import (
    GroupedCanonAttention,
    GroupedTokenShiftAttention,
)
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.language_model import Block

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


def part(name: str) -> type[nn.Module]:
    """Return the class registered under `name`. Raises `ValueError` for an unknown name."""
    if name not in PARTS:
        raise ValueError(f"unknown part {name!r}; known parts: {', '.join(PARTS)}")
    return PARTS[name]
