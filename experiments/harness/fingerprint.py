"""The fingerprint of a run: a few losses that change whenever the code computes something else."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from experiments.harness.configuration import Run
from experiments.harness.tasks import whole_loss
from experiments.harness.training import Kind, Training
from experiments.records.runs import RunRecord


def fingerprint(run: Run, kind: Kind = Training) -> list[float]:
    """Return the losses of four small steps, and after them those on the beginning of a held-out text.

    They change with everything that a run's numbers depend on: model, initialization, text, loss, optimizer,
    learning rate, evaluation. They do not change with a rewriting that computes the same. `kind` knows where
    the texts are.
    """
    small = replace(run.plain(), batch=2, seed=0, steps=4, evaluations=1)
    return losses_of(replace(small, rate=1e-3, warmup=2), kind)


@cache
def losses_of(run: Run, kind: Kind) -> list[float]:
    """Return the losses of a run's steps, and of the model after them. Its result is kept.

    Weights are in double precision, so that the steps hardly amplify the rounding of a machine.
    """
    with torch.random.fork_rng(devices=[]):
        training = kind(run, Path()).begin()
        model, task = training.model.double(), training.task
        for _ in range(run.steps):
            training.step()
        text = next(iter(training.texts.held_out.values()))
        text, seq = text[torch.arange(run.seq + 1)], min(run.seq, 16)
        after = [task.held_out(model, text, 16, seq)]
        if run.whole:
            after.append(whole_loss(model, text, 16, seq))
    return training.losses + after


def is_current(record: RunRecord, kind: Kind = Training) -> bool:
    """Return whether the code still computes what a record's run computed, as far as can be told.

    Records from before there were fingerprints are taken as they are.
    """
    if "fingerprint" not in record:
        return True
    now = fingerprint(Run.of(record["configuration"]), kind)
    return len(now) == len(record["fingerprint"]) and all(
        math.isclose(new, old, rel_tol=1e-6)
        for new, old in zip(now, record["fingerprint"], strict=True)
    )
