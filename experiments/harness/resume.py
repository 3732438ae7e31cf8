"""Save a run as a checkpoint, and resume it if it is still the same run."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from experiments.harness.checkpoint import read_checkpoint, write_atomically
from experiments.harness.configuration import Run, changes
from experiments.harness.fingerprint import identity, is_current
from experiments.harness.real_scale.texts import texts_of
from experiments.harness.training import Curve, Training

CHECKPOINT = "checkpoint.pt"


def save(training: Training) -> None:
    """Write the checkpoint of a run: all of its state between two steps. Raises `OSError` on failure."""
    state = training.state() | {
        "run": asdict(training.run),
        "surroundings": [*training.earlier, training.here],
        "curve": asdict(training.curve),
        "losses": training.losses,
        "done": training.done,
        "seconds": training.seconds,
        **identity(training),
    }
    if training.worker.first:
        write_atomically(training.folder / CHECKPOINT, state)
        training.forget_parts(but=f"checkpoint-{training.done}")


def resume(training: Training) -> None:
    """Continue from the checkpoint in the run's folder, if there is one.

    Raises `ValueError` if it is damaged, of another run, of other texts, or of code that computes
    something else, or if workers find different ones.
    """
    path, run = training.folder / CHECKPOINT, training.run
    state = read_checkpoint(path) if path.exists() else {}
    training.worker.agree_on(path, state.get("done"))
    if not state:
        return
    refuse_another_run(run, state, path)
    refuse_other_texts(run, state, path)
    before = state.get("surroundings", [])  # absent in older checkpoints
    trained = {"configuration": state["run"]} | state
    if training.worker.one_on_cpu and not is_current(trained):
        raise ValueError(
            f"{path} was trained at commit {before[-1]['commit']}, and the code computes something "
            "else now; continue at that commit, or delete the checkpoint to start from the first step"
        )
    training.set_state(state)
    training.curve, training.losses = Curve(**state["curve"]), state["losses"]
    training.done, training.seconds = state["done"], state["seconds"]
    training.earlier = [each for each in before if each != training.here]


def refuse_another_run(run: Run, state: Mapping[str, Any], path: Path) -> None:
    """Raise `ValueError` if a checkpoint is of another run.

    Up to its last step, a longer run is the same, unless its learning rates depend on its length.
    """
    begun = Run.of(state["run"])
    if state["done"] <= run.steps and run.schedule != "linear":
        begun = replace(begun, steps=run.steps, evaluations=run.evaluations)
    if begun.digest != run.digest:
        raise ValueError(
            f"{path} belongs to another run ({changes(begun, run)}); use another folder, or delete "
            "the checkpoint"
        )


def refuse_other_texts(run: Run, begun: Mapping[str, Any], path: Path) -> None:
    """Raise `ValueError` if the record or checkpoint at `path` was `begun` with other texts."""
    if "texts" in begun and begun["texts"] != texts_of(run.data).digest:
        raise ValueError(
            f"the texts in {run.data} have changed since {path} was written; restore them, or train in "
            "another folder"
        )
