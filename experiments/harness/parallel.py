"""The processes of a run: one, or as many as `torchrun` started."""

import os
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

WHOLE = states.StateDictOptions(full_state_dict=True, cpu_offload=True)


class Workers:
    """The workers of a run. Each has an equal part of every batch, and all take the same step.

    `torchrun` sets their number and ranks in the environment. Without it there is one worker.
    """

    def __init__(self) -> None:
        self.together = "RANK" in os.environ
        self.rank = int(os.environ.get("RANK", 0))
        self.count = int(os.environ.get("WORLD_SIZE", 1))
        self.first = self.rank == 0
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
            torch.cuda.set_device(self.device)

    def __enter__(self) -> "Workers":
        if self.together:
            distributed.init_process_group(
                "nccl" if self.device.type == "cuda" else "gloo"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.together:
            distributed.destroy_process_group()

    @property
    def one_on_cpu(self) -> bool:
        """Whether one process does all the work, on a CPU. Only such fingerprints are comparable."""
        return self.count == 1 and self.device.type == "cpu"

    def now(self) -> float:
        """Return seconds: processor time with one worker on a CPU, else wall-clock time.

        It does not wait for a GPU; `numbers` does, once in each step.
        """
        if self.one_on_cpu:
            return time.process_time()
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

    def share(self, model: nn.Module, sharded: bool) -> nn.Module:
        """Return the module to call in a training step. Evaluate and save `model` itself.

        With `sharded` each worker keeps a part of every weight; each block is one unit, and the other
        weights are another. Raises `ValueError` without torchrun.
        """
        if sharded:
            if not self.together:
                raise ValueError(
                    "start a sharded run with torchrun: torchrun --nproc-per-node 2 -m "
                    "experiments.harness.long_run RUN.toml FOLDER"
                )
            stacks = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
            for stack in stacks:
                for block in stack:
                    fully_shard(block)
            fully_shard(model)
            return model
        return DistributedDataParallel(model) if self.count > 1 else model

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

    def alone(self, model: nn.Module) -> AbstractContextManager[None]:
        """Return a context in which the workers of DDP add up their own gradients and do not exchange them.

        FSDP still exchanges them, because each worker keeps the gradient of its own part only.
        """
        if isinstance(model, DistributedDataParallel):
            return model.no_sync()
        return nullcontext()

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


def whole_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return both states, unsharded. Every worker must call it; only the first gets them."""
    weights, moments = states.get_state_dict(model, optimizer, options=WHOLE)
    return {"model": weights, "optimizer": moments}


def whole_weights(model: nn.Module) -> dict[str, Any]:
    """Return the weights, unsharded. Every worker must call it; only the first gets them."""
    return states.get_model_state_dict(model, options=WHOLE)


def set_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, saved: dict[str, Any]
) -> None:
    """Load both from `whole_state`'s result, which may be from another number of workers."""
    # PyTorch initializes an optimizer's state by taking a step, so load the weights afterwards.
    states.set_optimizer_state_dict(model, optimizer, saved["optimizer"], options=WHOLE)
    states.set_model_state_dict(model, saved["model"], options=WHOLE)


def save_shards(
    model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path
) -> None:
    """Write both states to `folder`. Each worker writes its own parts, so none needs the whole."""
    weights, moments = states.get_state_dict(model, optimizer)
    checkpoint.save({"model": weights, "optimizer": moments}, checkpoint_id=folder)


def load_shards(
    model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path
) -> None:
    """Load what `save_shards` wrote, also if the number of workers has changed."""
    weights, moments = states.get_state_dict(model, optimizer)
    state: dict[str, Any] = {"model": weights, "optimizer": moments}
    checkpoint.load(state, checkpoint_id=folder)
    states.set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )
