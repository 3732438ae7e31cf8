"""Train a model for long: the run can be stopped and resumed at any moment, and writes a record.

    .venv/bin/python -m experiments.harness.long_run RUN.toml FOLDER

Stopped by Ctrl-C, by SIGTERM or by a crash, the same command continues. A finished run can be prolonged:
raise `steps` in RUN.toml and give the same command again. For several processes or machines, a GPU, and texts
of your own, see `experiments/harness/real_scale/README.md`.
"""

import argparse
import signal
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from experiments.harness.checkpoint import weights_of, write_atomically
from experiments.harness.command import positive_integer
from experiments.harness.configuration import Run
from experiments.harness.fingerprint import identity, is_current
from experiments.harness.resume import CHECKPOINT, refuse_other_texts, resume, save
from experiments.harness.start import this_worker, training_of
from experiments.harness.tracking import Tracking
from experiments.harness.training import (
    ASKED_TO_STOP,
    DivergedError,
    StoppedError,
    Training,
)
from experiments.harness.worker import Worker
from experiments.records.runs import RunRecord, read_record, write_record


def long_run(
    run: Run,
    folder: Path,
    record: Path | None = None,
    save_every: int = 100,
    keep: bool = False,
) -> RunRecord:
    """Start or resume `run`; write its record to `record`, and return it.

    A checkpoint is saved in `folder` every `save_every` steps. The same call resumes from it, and on
    a CPU the result is the same to the bit as without the stop. At the end `folder` has the weights, and with
    `keep` still the checkpoint: from it a run with more steps, and otherwise equal, continues.
    A run that is already recorded is not run again, unless the code computes something else now. A checkpoint
    of such other code is refused, and kept. So is one that was trained on other texts in the folder `data`.

    A run diverges if its loss or gradient is not finite, or if its loss is more than twice that of a
    uniform prediction. It is recorded too, because it would diverge again.

    Raises:
        DivergedError: it says at which step, and where the batch is saved.
        StoppedError: the process was asked to stop, and a checkpoint is saved.
        ValueError: a record or a checkpoint cannot be continued, or one worker finds another than the others.
        OSError: another process trains in `folder`, or it cannot be written.
    """
    record = record or folder / "record.json"
    with this_worker() as worker, lock(folder, worker):
        finished = read_record(record, run.digest)
        refuse_other_texts(run, finished or {}, record)
        if finished and worker.one_on_cpu and not is_current(finished):
            finished = None
        worker.agree_on(record, finished is not None)
        if finished:
            return finished
        training = training_of(run, folder, worker)
        resume(training)
        error: DivergedError | None = None
        try:
            take_remaining_steps(training, save_every)
        except DivergedError as diverged:
            error = diverged
        weights = weights_of(training.model)
        if worker.first:
            contents = {"run": asdict(run), "model": weights}
            write_atomically(folder / "weights.pt", contents)
        written = record_of(training, error.step if error else None)
        if worker.first:
            write_record(record, written)
            if not keep:
                (folder / CHECKPOINT).unlink(missing_ok=True)
                training.forget_parts()
    if error:
        raise error
    return written


def lock(folder: Path, worker: Worker) -> AbstractContextManager[object]:
    """Lock a run's folder, for all workers. Raises `OSError` if another process trains in it."""
    if not worker.first:
        return nullcontext()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder / "lock").acquire(timeout=0)
    except Timeout:
        raise OSError(f"another process trains in {folder}") from None


def take_remaining_steps(training: Training, save_every: int) -> None:
    """Take all steps that are left, with evaluations and checkpoints between them.

    Raises `DivergedError` and `StoppedError` as `long_run` does.
    """
    run, worker = training.run, training.worker
    reports = {run.steps * i // run.evaluations for i in range(1, run.evaluations + 1)}
    if training.losses and training.done in reports:
        training.evaluate()  # the run stopped before it
    remaining = range(training.done + 1, run.steps + 1)
    gpus: Iterable[torch.device] = [d for d in (worker.device,) if d.type == "cuda"]
    with (
        torch.random.fork_rng(gpus),
        Tracking(training.folder, silent=not worker.first) as tracking,
    ):
        for step in tracking.steps(remaining):
            training.step()
            tracking.report(step, training.measured())
            if training.stopping:
                save(training)  # before an evaluation, because there may be little time
                if step < run.steps:
                    raise StoppedError(
                        f"{training.folder.name}: stopped after step {step}; the same command continues"
                    )
            if step in reports:
                training.evaluate()
            if step % save_every == 0 or step == run.steps:
                save(training)


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


def main() -> None:
    parser = argparse.ArgumentParser(description="Train one model for long.")
    parser.add_argument("run", type=Path, help="configuration, a TOML file")
    parser.add_argument(
        "folder", type=Path, help="folder for checkpoints and the record"
    )
    parser.add_argument(
        "--save-every", type=positive_integer, default=100, metavar="STEPS"
    )
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: ASKED_TO_STOP.set())
    folder, path = chosen.folder, chosen.folder / "record.json"
    try:
        run = Run.read(chosen.run)
        before = read_record(path, run.digest)
        record = long_run(run, folder, save_every=chosen.save_every, keep=True)
    except (FloatingPointError, ValueError, OSError, StoppedError) as error:
        sys.exit(str(error))
    if step := record["diverged_at_step"]:
        sys.exit(f"{folder.name}: diverged at step {step}, as recorded in {path}")
    if this_worker().first:
        print(last_losses(record))
        print("already recorded in" if record == before else "recorded in", path)


if __name__ == "__main__":
    main()
