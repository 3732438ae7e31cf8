"""Write and read checkpoints: a file is whole or it is not there."""

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint import state_dict as states

WHOLE = states.StateDictOptions(full_state_dict=True, cpu_offload=True)


def write_atomically(path: Path, contents: dict[str, Any]) -> None:
    """Save `contents` with torch. `path` never holds a partly written file. Raises `OSError` on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            torch.save(contents, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, RuntimeError) as error:
        partial.unlink(missing_ok=True)
        raise not_written(path, error) from error


def not_written(path: Path, error: BaseException) -> OSError:
    """Return the error to raise if `path` cannot be written."""
    # torch's own error does not name the cause, such as a full disk.
    return OSError(
        f"{path} cannot be written ({error.__context__ or error}). If the disk is full, make room; the last "
        "checkpoint is kept, and the same command continues from it"
    )


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint. Raises `ValueError` if it cannot be read."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return state
    except Exception as error:  # torch has many kinds for damaged files
        raise ValueError(
            f"{path} cannot be read ({error}). If it is damaged, delete it: then the run starts from its "
            "first step."
        ) from None


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return both states, whole even of a sharded model.

    Every worker must call it; only the first gets them.
    """
    weights, moments = states.get_state_dict(model, optimizer, options=WHOLE)
    return {"model": weights, "optimizer": moments}


def weights_of(model: nn.Module) -> dict[str, Any]:
    """Return the weights, whole even of a sharded model.

    Every worker must call it; only the first gets them.
    """
    return states.get_model_state_dict(model, options=WHOLE)


def set_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, saved: dict[str, Any]
) -> None:
    """Load both from the result of `state_of`, which may be from another number of workers."""
    # PyTorch initializes an optimizer's state by taking a step, so load the weights afterwards.
    states.set_optimizer_state_dict(model, optimizer, saved["optimizer"], options=WHOLE)
    states.set_model_state_dict(model, saved["model"], options=WHOLE)
