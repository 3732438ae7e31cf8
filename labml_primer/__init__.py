"""The Transformer and Primer: `LanguageModel(PRESETS["primer-ez"])` is one of the paper's models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labml_primer.presets import PRESETS, SIZES, Config, LanguageModel

__all__ = ["PRESETS", "SIZES", "Config", "LanguageModel"]


def __getattr__(name: str) -> Any:
    # When they are asked for, and no sooner: `python -m labml_primer.transformer.attention` imports this file
    # first, and Python warns when the chapter it is about to run has been imported already.
    if name in __all__:
        return getattr(import_module("labml_primer.presets"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
