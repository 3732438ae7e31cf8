"""The Transformer and Primer, by name: configurations at the size of the paper's search task."""

from dataclasses import replace

from torch import nn

from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer import (
    PaperMultiDConvHeadAttention,
    PrimerAttention,
    PrimerBlock,
    PrimerNorm,
    SeparableConvolutionAttention,
)
from labml_primer.primer.primer_ez import SquaredReLU
from labml_primer.transformer.model import Config

# Section 4.1: about 35 million parameters, sequences of 64. The widths are those of Figures 13 to 15. The
# paper does not say how many tokens its vocabulary has; 32,000 subwords were usual for this corpus.
TRANSFORMER: Config = Config(
    vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=64
)

# The names follow Table 4. Convolutions are the paper's: kernels for each head, no bias.
PRIMER_PRESETS: dict[str, Config] = {
    "transformer": TRANSFORMER,
    "transformer-gelu": replace(TRANSFORMER, activation=nn.GELU),
    "transformer-pp": replace(
        TRANSFORMER,
        activation=nn.SiLU,
        feed_forward=GatedFeedForward,
        norm=nn.RMSNorm,
    ),
    "transformer-squared-relu": replace(TRANSFORMER, activation=SquaredReLU),
    "transformer-mdha": replace(TRANSFORMER, attention=PaperMultiDConvHeadAttention),
    "transformer-sep-conv": replace(
        TRANSFORMER, attention=SeparableConvolutionAttention
    ),
    "primer-ez": replace(
        TRANSFORMER, attention=PaperMultiDConvHeadAttention, activation=SquaredReLU
    ),
    "primer": replace(
        TRANSFORMER,
        attention=PrimerAttention,
        activation=SquaredReLU,
        norm=PrimerNorm,
        block=PrimerBlock,
    ),
}
