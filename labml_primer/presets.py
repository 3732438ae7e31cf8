"""Every model of the paper by name, at the size of its search task, and a modern baseline."""

from dataclasses import replace
from typing import Any

from torch import nn

from labml_primer.compared.evolved_transformer import EvolvedBlock
from labml_primer.compared.switch import SwitchFeedForward
from labml_primer.compared.synthesizer import (
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
    SynthesizerBlock,
)
from labml_primer.named import Named
from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer import (
    PrimerAttention,
    PrimerBlock,
    PrimerNorm,
    SeparableConvolutionAttention,
)
from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
from labml_primer.since.modern import modern, modern_primer_ez
from labml_primer.transformer.language_model import Config, LanguageModel

__all__ = ["PRESETS", "SIZES", "Config", "LanguageModel"]

SIZES: dict[str, dict[str, Any]] = Named(
    {
        # That of the book's short runs, which take minutes on a CPU, but for longer texts.
        "small": {"d_model": 128, "heads": 4, "d_ff": 512, "layers": 4, "max_seq": 256},
        # Sections 4.1 to 4.3: about 35, 110 and 537 million parameters.
        "search": {
            "d_model": 512,
            "heads": 8,
            "d_ff": 2048,
            "layers": 6,
            "max_seq": 64,
        },
        "medium": {
            "d_model": 768,
            "heads": 12,
            "d_ff": 3072,
            "layers": 12,
            "max_seq": 512,
        },
        "large": {
            "d_model": 1024,
            "heads": 16,
            "d_ff": 8192,
            "layers": 24,
            "max_seq": 512,
        },
    }
)
"""Sizes for any preset: `replace(PRESETS["primer-ez"], **SIZES["small"])`."""

# Section 4.1: about 35 million parameters, sequences of 64. The widths are those of Figures 13 to 15. The
# paper does not state the size of its vocabulary; the 385 million parameters of its largest model in section
# 4.1 leave 31,400 to 32,400 tokens.
VANILLA: Config = Config(vocab_size=32_000, **SIZES["search"])
PRIMER_EZ: Config = replace(
    VANILLA, attention=MultiDConvHeadAttention, activation=SquaredReLU
)
SYNTHESIZER: Config = replace(VANILLA, block=SynthesizerBlock)

# The names follow Tables 4 and 5.
PRESETS: dict[str, Config] = Named(
    {
        "transformer": VANILLA,
        "transformer-gelu": replace(VANILLA, activation=nn.GELU),
        "transformer-pp": replace(
            VANILLA,
            activation=nn.SiLU,
            feed_forward=GatedFeedForward,
            norm=nn.RMSNorm,
        ),
        "transformer-squared-relu": replace(VANILLA, activation=SquaredReLU),
        "transformer-mdha": replace(VANILLA, attention=MultiDConvHeadAttention),
        "transformer-sep-conv": replace(
            VANILLA, attention=SeparableConvolutionAttention
        ),
        "primer-ez": PRIMER_EZ,
        "primer": replace(
            VANILLA,
            attention=PrimerAttention,
            activation=SquaredReLU,
            norm=PrimerNorm,
            block=PrimerBlock,
        ),
        # Four blocks instead of six, as in the released code.
        "evolved-transformer": replace(
            VANILLA, layers=4, activation=nn.SiLU, block=EvolvedBlock
        ),
        "synthesizer-dense": replace(SYNTHESIZER, attention=DenseSynthesizer),
        "synthesizer-factorized-dense": replace(
            SYNTHESIZER, attention=FactorizedDenseSynthesizer
        ),
        "synthesizer-random": replace(SYNTHESIZER, attention=RandomSynthesizer),
        "synthesizer-factorized-random": replace(
            SYNTHESIZER, attention=FactorizedRandomSynthesizer
        ),
        "switch-transformer": replace(VANILLA, feed_forward=SwitchFeedForward),
        "switch-primer": replace(PRIMER_EZ, feed_forward=SwitchFeedForward),
        # Not in the paper.
        "modern": modern(VANILLA),
        "modern-primer-ez": modern_primer_ez(VANILLA),
    }
)
