"""The Transformer and Primer: `LanguageModel(PRESETS["primer-ez"])` is one of the paper's models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labml_primer.presets import PRESETS, SIZES, Config, LanguageModel
    from labml_primer.saving import load_model, save_model

    __version__: str

__all__ = ["PRESETS", "SIZES", "Config", "LanguageModel", "load_model", "save_model"]


def __getattr__(name: str) -> Any:
    # When they are asked for, and no sooner: `python -m labml_primer.transformer.attention` imports this file
    # first, and Python warns when the chapter it is about to run has been imported already.
    if name == "__version__":
        return import_module("labml_primer.version").installed_version()
    if name in __all__:
        home = "saving" if name.endswith("_model") else "presets"
        return getattr(import_module(f"labml_primer.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
