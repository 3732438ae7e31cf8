"""Save a language model to one file, and load it from there.

The file has the weights, the symbols of the model's text, and the configuration as JSON: sizes as
numbers, and the classes of the parts by name. It also has tables that are computed, such as the sines
and cosines of positions, so that they keep their type. It is read with `weights_only`, so loading runs
no code from the file. A model whose layers are not those of its configuration is refused: loaded again,
it would be another one.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor
from torch.func import functional_call

from labml_primer.named import Named
from labml_primer.presets import PRESETS
from labml_primer.training.corpus import check_symbols
from labml_primer.transformer.generation import share_weights
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
    `load_model` needs them, too. An earlier file stays until the new one is complete.

    Raises `TypeError` for another model than a `LanguageModel`, and if a method of a layer was replaced, such
    as its `forward`. Raises `ValueError` for a part that is not a class or is neither in a preset nor in
    `parts`, for layers that the configuration does not describe, such as compiled or wrapped ones, for
    tensors without numbers, and for symbols that are not sorted or not as many as the model's tokens.
    """
    if type(model) is not LanguageModel:
        raise TypeError(
            f"save_model needs a LanguageModel, not a {type(model).__name__}; "
            "of a compiled or wrapped model, pass the one inside"
        )
    check_symbols(symbols)
    if symbols and len(symbols) != model.config.vocab_size:
        raise ValueError(
            f"{len(symbols)} symbols are not those of a model with a vocab_size of {model.config.vocab_size}"
        )
    parts = tuple(parts)
    config = named(model.config, known_parts(parts))
    weights = model.state_dict()
    saved = {
        "config": json.dumps(config),
        "symbols": symbols,
        "weights": weights,
        "buffers": {n: x for n, x in model.named_buffers() if n not in weights},
    }
    check_saved(model, saved, parts)
    unfinished = Path(f"{path}.{uuid4().hex}.part")
    try:
        torch.save(saved, unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def named(config: Config, known: dict[str, type]) -> dict[str, Any]:
    """Return the values of `config`, with the names of classes instead of the classes."""
    for name, value in vars(config).items():
        if isinstance(value, type):
            kind = value.__name__
            if known.get(kind) is not value:
                raise ValueError(
                    f"no preset uses the part {kind}; add it here and when loading: parts=[{kind}]"
                )
        elif not isinstance(value, int | float | None):
            raise ValueError(
                f"{name}={value!r} cannot be saved by name; make it a class of its own"
            )
    return {
        name: value.__name__ if isinstance(value, type) else value
        for name, value in vars(config).items()
    }


@torch.no_grad()
def check_saved(
    model: LanguageModel, saved: dict[str, Any], parts: Iterable[type]
) -> None:
    """Raise `ValueError` unless what is saved gives a model with the logits of `model`, up to rounding."""
    copy, weights = share_weights(model, training=False), model.embedding.weight
    for name, x in (saved["weights"] | saved["buffers"]).items():
        if isinstance(x, Tensor) and x.is_meta:  # quantized layers have others
            raise ValueError(f"{name} is on the device meta, so it has no numbers")
    try:
        again = made(saved, parts).to(weights.device)
        computed = dict(made({**saved, "buffers": {}}, parts).named_buffers())
    except RuntimeError as error:
        raise ValueError(
            "the model has other layers than its configuration says, as compiled or wrapped ones, so it "
            f"could not be loaded; save it as it was made: {' '.join(str(error).split())[:200]}"
        ) from None
    if len(list(again.parameters())) != len(list(model.parameters())):
        raise ValueError(
            "layers of the model share parameters that its configuration does not share, so a loaded "
            "model would train them differently; save its state_dict() instead"
        )
    for name, table in computed.items():
        kept = saved["buffers"].get(name, table).to(table)
        same = kept.shape == table.shape
        if not (same and (kept - table).abs().max() <= 0.01 * table.abs().max()):
            raise ValueError(f"{name} is not the table that the configuration computes")
    length = min(model.config.max_seq, 512)  # logits of more tokens may not fit
    tokens = torch.arange(length, device=weights.device)[None]
    tokens %= model.config.vocab_size
    logits, others = (
        functional_call(each, in_single_precision(each), (tokens,))
        for each in (copy, again)
    )
    limit = torch.finfo(torch.float32).eps ** 0.5 * logits.abs().max()
    apart = (others - logits).abs().max()
    if apart > limit:  # not if a training that failed made them `nan`
        raise ValueError(
            "a layer is not that of the model's configuration, or a hook changes it: loaded again, the model "
            "would give other logits; name its parts in the configuration"
        )


def in_single_precision(model: LanguageModel) -> dict[str, Tensor]:
    """Return parameters and buffers in single precision at least.

    The rounding of logits in half precision would hide a layer that computes something else.
    """
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return {
        name: x.to(torch.promote_types(x.dtype, torch.float32))
        for name, x in tensors
        if x.is_floating_point()
    }


def made(saved: dict[str, Any], parts: Iterable[type]) -> LanguageModel:
    """Return the model of a file's content, in eval mode."""
    known, values = known_parts(parts), json.loads(saved["config"])
    for name, value in values.items():
        if isinstance(value, str):
            values[name] = known[value]
    # The new weights are replaced at once.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        model = LanguageModel(Config(**values))
    model.load_state_dict(saved["weights"], assign=True)
    tables = saved.get("buffers", {})
    for name in tables.keys() & dict(model.named_buffers()).keys():
        layer, _, own = name.rpartition(".")
        setattr(model.get_submodule(layer), own, tables[name])
    return model.eval()


def load_model(
    path: str | Path, *, parts: Iterable[type] = ()
) -> tuple[LanguageModel, str]:
    """Return the model that `save_model` saved, on the CPU and in eval mode, and its symbols.

    Raises `ValueError` if the file is of another kind, or names a part that is neither in a preset nor
    in `parts`.
    """
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, KeyError, EOFError, RuntimeError):
        saved = None
    needed = {"config", "symbols", "weights"}
    if not isinstance(saved, dict) or set(saved) - {"buffers"} != needed:
        raise ValueError(f"{path} was not written by save_model, or is damaged")
    parts = tuple(parts)
    known = known_parts(parts)
    for value in json.loads(saved["config"]).values():
        if isinstance(value, str) and value not in known:
            raise ValueError(
                f"{path}: no preset uses the part {value}; import it and add parts=[{value}]"
            )
    return made(saved, parts), saved["symbols"]
