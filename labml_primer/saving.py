"""Save a language model to one file, and load it from there.

The file has the weights, the symbols of the model's text, and the configuration as JSON: sizes as
numbers, and the classes of the parts by name. It is read with `weights_only`, so loading runs no
code from the file.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import torch

from labml_primer.named import Named
from labml_primer.presets import PRESETS
from labml_primer.transformer.language_model import Config, LanguageModel


def known_parts(parts: Iterable[type] = ()) -> dict[str, type]:
    """Return by name the classes that the presets use as parts, and those of `parts`."""
    found: dict[str, type] = Named()
    kinds = [kind for config in PRESETS.values() for kind in classes_of(config)]
    for kind in (*kinds, *parts):
        if found.setdefault(kind.__name__, kind) is not kind:
            raise ValueError(f"two parts are named {kind.__name__}; rename one of them")
    return found


def classes_of(config: Config) -> list[type]:
    """Return the classes of the parts of `config`."""
    return [kind for kind in vars(config).values() if isinstance(kind, type)]


def save_model(
    model: LanguageModel,
    path: str | Path,
    *,
    symbols: str = "",
    parts: Iterable[type] = (),
) -> None:
    """Save `model` to a file, with the `symbols` of its corpus if its tokens are characters.

    `parts` are the classes of its configuration that no preset uses. They are stored by name, and
    `load_model` needs them, too. Raises `ValueError` for a class that is neither in a preset nor in `parts`,
    and `TypeError` for another model than a `LanguageModel`.
    """
    if type(model) is not LanguageModel:
        raise TypeError(
            f"save_model needs a LanguageModel, not a {type(model).__name__}; "
            "of a compiled or wrapped model, pass the one inside"
        )
    known = known_parts(parts)
    for kind in classes_of(model.config):
        if known.get(kind.__name__) is not kind:
            name = kind.__name__
            raise ValueError(
                f"no preset uses the part {name}; add it here and when loading: parts=[{name}]"
            )
    config = {
        name: value.__name__ if isinstance(value, type) else value
        for name, value in vars(model.config).items()
    }
    saved = {"config": json.dumps(config), "symbols": symbols}
    torch.save(saved | {"weights": model.state_dict()}, path)


def load_model(
    path: str | Path, *, parts: Iterable[type] = ()
) -> tuple[LanguageModel, str]:
    """Return the model that `save_model` saved, on the CPU and in eval mode, and its symbols.

    Raises `ValueError` if the file is of another kind, or names a part that is neither in a preset nor
    in `parts`.
    """
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(saved, dict) or set(saved) != {"config", "symbols", "weights"}:
        raise ValueError(f"{path} was not written by save_model")
    known, values = known_parts(parts), json.loads(saved["config"])
    for name, value in values.items():
        if isinstance(value, str):
            if value not in known:
                raise ValueError(
                    f"{path}: no preset uses the part {value}; import it and add parts=[{value}]"
                )
            values[name] = known[value]
    with torch.random.fork_rng(devices=[]):  # the new weights are replaced at once
        model = LanguageModel(Config(**values))
    model.load_state_dict(saved["weights"], assign=True)
    return model.eval(), saved["symbols"]
