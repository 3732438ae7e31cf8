"""Start a run: in this process on a CPU, or at real scale."""

import os
from pathlib import Path

import torch

from experiments.harness.configuration import Run
from experiments.harness.real_scale.training import ScaledTraining
from experiments.harness.real_scale.workers import Workers
from experiments.harness.training import Training
from experiments.harness.worker import Worker
from experiments.records.runs import HELD_OUT


def this_worker() -> Worker:
    """Return this process's worker: a plain one, unless torchrun started it or there is a GPU."""
    if "RANK" in os.environ or torch.cuda.is_available():
        return Workers()
    return Worker()


def training_of(run: Run, folder: Path, worker: Worker) -> Training:
    """Return a run before its first step.

    Raises `ValueError` for settings that this model, this worker or these texts cannot have.
    """
    if run.is_plain and run.data in HELD_OUT and worker.one_on_cpu:
        return Training(run, folder, worker)
    return ScaledTraining(run, folder, worker)
