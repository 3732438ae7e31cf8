"""The processes of a run at real scale: as many as torchrun started, on CPUs or on GPUs."""

import os
import time
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, distributed
from torch.distributed.tensor import DTensor

from experiments.harness.worker import Worker


class Workers(Worker):
    """The workers of a run. Each has an equal part of every batch, and all take the same step.

    `torchrun` sets their number and ranks in the environment. Without it there is one worker.
    """

    def __init__(self) -> None:
        self.together = "RANK" in os.environ
        self.rank = int(os.environ.get("RANK", 0))
        self.count = int(os.environ.get("WORLD_SIZE", 1))
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
            torch.cuda.set_device(self.device)
            self.gpu = torch.cuda.get_device_name()

    def __enter__(self) -> Self:
        if self.together:
            distributed.init_process_group(
                "nccl" if self.device.type == "cuda" else "gloo"
            )
        return self

    def __exit__(self, *error: object) -> None:
        if self.together:
            distributed.destroy_process_group()

    def now(self) -> float:
        """Return seconds: CPU time with one worker on a CPU, else wall-clock time.

        It does not wait for a GPU; `numbers` does, once in each step.
        """
        if self.one_on_cpu:
            return super().now()
        return time.perf_counter()

    def agree_on(self, path: Path, found: object) -> None:
        """Raise `ValueError` unless all workers `found` the same at `path`. Every worker must call it."""
        if self.count > 1:
            all_found: list[object] = [None] * self.count
            distributed.all_gather_object(all_found, found)
            if all_found != [found] * self.count:
                raise ValueError(
                    f"{path} is not the same for all workers: "
                    "put it on a disk that they share"
                )

    def part(self, batch: Tensor) -> Tensor:
        """Return this worker's rows. Raises `ValueError` if the batch cannot be split equally."""
        if len(batch) % self.count:
            raise ValueError(
                f"batch {len(batch)} cannot be split between {self.count} workers"
            )
        own = batch.chunk(self.count)[self.rank]
        if self.device.type == "cuda":
            # The copy goes on while the GPU finishes the step before.
            return own.contiguous().pin_memory().to(self.device, non_blocking=True)
        return own

    def numbers(
        self, loss: Tensor, norm: Tensor, asked: bool
    ) -> tuple[float, float, bool]:
        """Return the mean loss, the norm, which may be sharded, and whether any worker was asked to stop.

        This is the only place of a step that waits for a GPU.
        """
        if isinstance(norm, DTensor):
            norm = norm.full_tensor()
        both = torch.stack([loss.detach(), loss.new_full((), float(asked))])
        if self.count > 1:
            distributed.all_reduce(both)
        total, wanted, whole = torch.cat([both, norm.to(both)[None]]).tolist()
        return total / self.count, whole, wanted > 0
