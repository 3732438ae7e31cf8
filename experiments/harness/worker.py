"""The process that trains a run: one, on a CPU. That is all that a plan needs."""

import time
from pathlib import Path
from typing import Self

import torch
from torch import Tensor


class Worker:
    """The one process of a run. `real_scale.workers.Workers` are several processes, or use a GPU."""

    rank, count = 0, 1
    device = torch.device("cpu")
    gpu: str | None = None  # its name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    @property
    def first(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.rank == 0

    @property
    def one_on_cpu(self) -> bool:
        """Whether one process does all the work, on a CPU. Only such fingerprints are comparable."""
        return self.count == 1 and self.device.type == "cpu"

    def now(self) -> float:
        """Return the seconds of CPU time that this process has used."""
        return time.process_time()

    def agree_on(self, path: Path, found: object) -> None:
        """Do nothing: several workers check that all of them `found` the same at `path`."""

    def part(self, batch: Tensor) -> Tensor:
        """Return the rows `[rows, ...]` of a batch that this process reads: all of them."""
        return batch

    def numbers(
        self, loss: Tensor, norm: Tensor, asked: bool
    ) -> tuple[float, float, bool]:
        """Return the mean loss, the norm of the gradient, and whether any worker was asked to stop."""
        return loss.item(), norm.item(), asked
