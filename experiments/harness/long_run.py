"""Train a model for long: the run can be stopped and resumed at any moment, and writes a record.

    .venv/bin/python -m experiments.harness.long_run RUN.toml FOLDER

Stopped by Ctrl-C, by SIGTERM or by a crash, the same command continues. A finished run can be prolonged:
raise `steps` in RUN.toml and give the same command again. For several processes or machines, a GPU, and texts
of your own, see `experiments/real_scale/README.md`.
"""

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from experiments.harness.checkpoint import read_checkpoint, write_atomically
from experiments.harness.command import positive_integer
from experiments.harness.configuration import Run, changes
from experiments.harness.fingerprint import fingerprint, is_current
from experiments.harness.tracking import tracked
from experiments.harness.training import (
    ASKED_TO_STOP,
    WHOLE,
    Curve,
    DivergedError,
    Kind,
    StoppedError,
    Training,
    states,
)
from experiments.records.runs import RunRecord, read_record, write_record

CHECKPOINT = "checkpoint.pt"


def long_run(
    run: Run,
    folder: Path,
    record: Path | None = None,
    save_every: int = 100,
    keep: bool = False,
    kind: Kind = Training,
) -> RunRecord:
    """Start or resume `run`; write its record to `record`, and return it.

    A checkpoint is saved in `folder` every `save_every` steps. The same call resumes from it, and on
    a CPU the result is the same to the bit as without the stop. At the end `folder` has the weights, and with
    `keep` still the checkpoint: from it a run with more steps, and otherwise equal, continues. `kind` is the
    class that trains it.
    A run that is already recorded is not run again, unless the code computes something else now. A checkpoint
    of such other code is refused, and kept. So is one that was trained on other texts in the folder `data`.

    A run diverges if its loss or gradient is not finite, or if its loss is more than twice that of a
    uniform prediction. It is recorded too, because it would diverge again.

    Raises:
        DivergedError: it says at which step, and where the batch is saved.
        StoppedError: the process was asked to stop, and a checkpoint is saved.
        ValueError: a record or a checkpoint cannot be continued, or processes find different ones.
        OSError: another process trains in `folder`, or it cannot be written.
    """
    record = record or folder / "record.json"
    with kind(run, folder) as training:
        finished = read_record(record, run.digest)
        refuse_other_texts(training, finished or {}, record)
        if finished and training.comparable and not is_current(finished, kind):
            finished = None
        training.agree_on(record, finished is not None)
        if finished:
            return finished
        resume(training.begin())
        error: DivergedError | None = None
        try:
            take_remaining_steps(training, save_every)
        except DivergedError as diverged:
            error = diverged
        # Every process must gather the weights; only the first one gets them.
        weights = states.get_model_state_dict(training.model, options=WHOLE)
        written = record_of(training, error.step if error else None)
        if training.rank == 0:
            contents = {"run": asdict(run), "model": weights}
            write_atomically(folder / "weights.pt", contents)
            write_record(record, written)
            if not keep:
                (folder / CHECKPOINT).unlink(missing_ok=True)
                training.forget_parts()
    if error:
        raise error
    return written


def take_remaining_steps(training: Training, save_every: int) -> None:
    """Take all steps that are left, with evaluations and checkpoints between them.

    Raises `DivergedError` and `StoppedError` as `long_run` does.
    """
    run, folder = training.run, training.folder
    reports = {run.steps * i // run.evaluations for i in range(1, run.evaluations + 1)}
    if training.losses and training.done in reports:
        training.evaluate()  # the run stopped before it
    remaining = range(training.done + 1, run.steps + 1)
    gpus = [each for each in (training.device,) if each.type == "cuda"]
    silent = training.rank > 0
    with (
        torch.random.fork_rng(gpus),
        tracked(folder, remaining, silent) as (steps, report),
    ):
        for step in steps:
            report(step, training.step())
            if training.stopping:
                save(training)  # before an evaluation, because there may be little time
                if step < run.steps:
                    raise StoppedError(
                        f"{folder.name}: stopped after step {step}; the same command continues"
                    )
            if step in reports:
                training.evaluate()
            if step % save_every == 0 or step == run.steps:
                save(training)


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
    if training.rank == 0:
        write_atomically(training.folder / CHECKPOINT, state)
        training.forget_parts(but=f"checkpoint-{training.done}")


def resume(training: Training) -> None:
    """Continue from the checkpoint in the run's folder, if there is one.

    Raises `ValueError` if it is damaged, of another run, of other texts, or of code that computes
    something else, or if processes find different ones.
    """
    path, kind = training.folder / CHECKPOINT, type(training)
    state = read_checkpoint(path)
    training.agree_on(path, state.get("done"))
    if not state:
        return
    refuse_another_run(training.run, state, path)
    refuse_other_texts(training, state, path)
    before = state.get("surroundings", [])  # absent in older checkpoints
    trained = {"configuration": state["run"]} | state
    if training.comparable and not is_current(trained, kind):
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


def refuse_other_texts(
    training: Training, begun: Mapping[str, Any], path: Path
) -> None:
    """Raise `ValueError` if the record or checkpoint at `path` was `begun` with other texts."""
    if "texts" in begun and begun["texts"] != training.texts.digest:
        raise ValueError(
            f"the texts in {training.run.data} have changed since {path} was written; restore them, or "
            "train in another folder"
        )


def identity(training: Training) -> dict[str, Any]:
    """Return what shows later whether the code still computes the same, and from the same texts."""
    texts, run = training.texts.digest, training.run
    own: dict[str, Any] = {"texts": texts} if texts else {}
    if training.comparable:
        own["fingerprint"] = fingerprint(run, type(training))
    return own


def record_of(training: Training, diverged_at: int | None) -> RunRecord:
    """Return the run's record. `earlier` lists other machines and commits that took part of its steps."""
    whole = training.run.whole and diverged_at is None
    return {
        "configuration": asdict(training.run),
        "digest": training.run.digest,
        **training.here,
        "earlier": training.earlier,
        "parameters": training.parameters,
        "diverged_at_step": diverged_at,
        "curve": asdict(training.curve),
        **({"whole": training.whole()} if whole else {}),
        **identity(training),
    }


def last_losses(record: RunRecord) -> str:
    """Return the losses of the last evaluation, one per line."""
    curve, run = record["curve"], Run.of(record["configuration"])
    losses: dict[str, Any] = {"training, per token": curve["train_loss"]}
    lines = [
        f"  {last[-1]:.4f}  {name}"
        for name, last in (losses | curve["held_out"]).items()
    ]
    unit = "character" if run.predicts_next else "target token"
    title = f"losses after step {curve['steps'][-1]}, in nats per {unit}:"
    return "\n".join([title, *lines])


def main(kind: Kind = Training, arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train one model for long.")
    parser.add_argument("run", type=Path, help="configuration, a TOML file")
    parser.add_argument(
        "folder", type=Path, help="folder for checkpoints and the record"
    )
    parser.add_argument(
        "--save-every", type=positive_integer, default=100, metavar="STEPS"
    )
    chosen = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: ASKED_TO_STOP.set())
    folder, path = chosen.folder, chosen.folder / "record.json"
    try:
        run = Run.read(chosen.run)
        before = read_record(path, run.digest)
        every = chosen.save_every
        record = long_run(run, folder, save_every=every, keep=True, kind=kind)
    except (FloatingPointError, ValueError, OSError, StoppedError) as error:
        sys.exit(str(error))
    if step := record["diverged_at_step"]:
        sys.exit(f"{folder.name}: diverged at step {step}, as recorded in {path}")
    if kind(run, folder).rank == 0:
        print(last_losses(record))
        print("already recorded in" if record == before else "recorded in", path)


if __name__ == "__main__":
    main()
