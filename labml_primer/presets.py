"""Every model of the paper, by name: Primer's family, and what it is compared with at the same size."""

from dataclasses import replace

from torch import nn

from labml_primer.compared.evolved_transformer import EvolvedBlock
from labml_primer.compared.switch import SwitchFeedForward
from labml_primer.compared.synthesizer import (
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
)
from labml_primer.primer.presets import PRIMER_PRESETS, TRANSFORMER
from labml_primer.transformer.model import Config, LanguageModel

__all__ = ["PRESETS", "Config", "LanguageModel"]

PRESETS: dict[str, Config] = PRIMER_PRESETS | {
    # Four blocks for six, as in the released code: one more than half as many.
    "evolved-transformer": replace(
        TRANSFORMER, layers=4, activation=nn.SiLU, block=EvolvedBlock
    ),
    "synthesizer-dense": replace(TRANSFORMER, attention=DenseSynthesizer),
    "synthesizer-factorized-dense": replace(
        TRANSFORMER, attention=FactorizedDenseSynthesizer
    ),
    "synthesizer-random": replace(TRANSFORMER, attention=RandomSynthesizer),
    "synthesizer-factorized-random": replace(
        TRANSFORMER, attention=FactorizedRandomSynthesizer
    ),
    "switch-transformer": replace(TRANSFORMER, feed_forward=SwitchFeedForward),
    "switch-primer": replace(
        PRIMER_PRESETS["primer-ez"], feed_forward=SwitchFeedForward
    ),
}
