"""Training with several processes, on a GPU, in less memory, or on texts of one's own."""

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, distributed, nn
from torch.distributed import checkpoint as shards
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from experiments.harness.checkpoint import not_written
from experiments.harness.configuration import Run
from experiments.harness.texts import Texts
from experiments.harness.training import ASKED_TO_STOP, Training, states
from experiments.real_scale.texts import texts_of


class ScaledTraining(Training):
    """A run whose batch is split between processes or read in pieces, or whose model is sharded or compiled.

    Each process has an equal part of every batch, and all take the same step. `torchrun` sets their number
    and ranks in the environment; without it there is one. `shared` is the module to call in a training step,
    and `model` itself is evaluated and saved.
    """

    shared: nn.Module

    def __init__(self, run: Run, folder: Path):
        super().__init__(run, folder)
        self.together = "RANK" in os.environ
        self.rank = int(os.environ.get("RANK", 0))
        self.count = int(os.environ.get("WORLD_SIZE", 1))
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
            torch.cuda.set_device(self.device)
        self.comparable = self.count == 1 and self.device.type == "cpu"

    def __enter__(self) -> Self:
        if self.together:
            distributed.init_process_group(
                "nccl" if self.device.type == "cuda" else "gloo"
            )
            self.opened.callback(distributed.destroy_process_group)
            self.opened.callback(self.leave)
        if self.rank == 0:
            super().__enter__()
        return self

    def leave(self) -> None:
        """Drop the shared model before its group.

        As the last to hold the group, it would hold Python's lock while it waits for a thread of the group
        that needs the lock.
        """
        self.__dict__.pop("shared", None)

    def read_texts(self) -> Texts:
        return texts_of(self.run.data)

    def surroundings(self) -> dict[str, Any]:
        on_gpu = self.device.type == "cuda"
        gpu = torch.cuda.get_device_name() if on_gpu else None
        here = super().surroundings()
        here["machine"] |= {"gpu": gpu, "workers": self.count}
        return here

    def prepare(self) -> None:
        """Put the model on its device, and share it. Raises `ValueError` for settings that do not fit."""
        self.refuse_impossible_settings()
        run, device = self.run, self.device
        if device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
        if run.recomputed:
            recompute(self.model)
        self.model.to(device).train()
        if run.compiled:
            self.model.compile()
        if run.sharded:
            shard(self.model)
        self.shared = self.model
        if self.count > 1 and not run.sharded:
            self.shared = DistributedDataParallel(self.model)

    def refuse_impossible_settings(self) -> None:
        run = self.run
        # No test checks the gradients of auxiliary losses in these two cases.
        has_own_losses = any(
            hasattr(each, "auxiliary_loss") for each in self.model.modules()
        )
        for what in ("compiled", "recomputed"):
            if getattr(run, what) and has_own_losses:
                raise ValueError(
                    f"{run.preset} has auxiliary losses and cannot be {what}"
                )
        if run.batch % (run.pieces * self.count):
            raise ValueError(
                f"batch {run.batch} cannot be split between {self.count} workers in {run.pieces} pieces"
            )
        if run.compiled and self.device.type != "cuda":
            raise ValueError("compiled needs a GPU")
        if run.sharded and run.optimizer == "adafactor":
            raise ValueError("Adafactor needs whole matrices and cannot be sharded")
        if run.sharded and not distributed.is_initialized():
            raise ValueError(
                "start a sharded run with torchrun: torchrun --nproc-per-node 2 -m "
                "experiments.real_scale.run RUN.toml FOLDER"
            )

    def now(self) -> float:
        """Return seconds: CPU time with one process on a CPU, else wall-clock time.

        It does not wait for a GPU; `numbers` does, once in each step.
        """
        return super().now() if self.comparable else time.perf_counter()

    def agree_on(self, path: Path, found: object) -> None:
        """Raise `ValueError` unless all processes `found` the same at `path`. Each of them must call it."""
        if self.count > 1:
            all_found: list[object] = [None] * self.count
            distributed.all_gather_object(all_found, found)
            if all_found != [found] * self.count:
                raise ValueError(
                    f"{path} is not the same for all workers: "
                    "put it on a disk that they share"
                )

    def part(self, batch: Tensor) -> Tensor:
        """Return this process's rows."""
        own = batch.chunk(self.count)[self.rank]
        if self.device.type == "cuda":
            # The copy goes on while the GPU finishes the step before.
            return own.contiguous().pin_memory().to(self.device, non_blocking=True)
        return own

    def gradients(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Add up the gradients of the pieces of a batch, and return the mean loss."""
        run, mean = self.run, torch.zeros((), device=self.device)
        pieces = list(zip(*(each.chunk(run.pieces) for each in inputs), strict=True))
        for number, piece in enumerate(pieces, 1):
            last = number == run.pieces
            with nullcontext() if last else self.without_exchange():
                kind = self.device.type
                with torch.autocast(kind, torch.bfloat16, enabled=run.bfloat16):
                    loss = self.task.loss(self.shared, *piece)
                loss.backward()
            mean = mean + loss.detach() / run.pieces
        # The gradients are divided, not the losses, so that those of auxiliary losses are divided too.
        for weight in self.model.parameters():
            if weight.grad is not None:
                weight.grad /= run.pieces
        return mean

    def without_exchange(self) -> AbstractContextManager[None]:
        """Return a context in which the processes of DDP add up their own gradients and do not exchange them.

        FSDP still exchanges them, because each process keeps the gradient of its own part only.
        """
        if isinstance(self.shared, DistributedDataParallel):
            return self.shared.no_sync()
        return nullcontext()

    def numbers(self, loss: Tensor, norm: Tensor) -> tuple[float, float, bool]:
        """Return the mean loss, the norm, which may be sharded, and whether any process was asked to stop.

        This is the only place of a step that waits for a GPU.
        """
        if isinstance(norm, DTensor):
            norm = norm.full_tensor()
        asked = loss.new_full((), float(ASKED_TO_STOP.is_set()))
        both = torch.stack([loss.detach(), asked])
        if self.count > 1:
            distributed.all_reduce(both)
        total, wanted, whole = torch.cat([both, norm.to(both)[None]]).tolist()
        return total / self.count, whole, wanted > 0

    def state(self) -> dict[str, Any]:
        """Return both states, or of a sharded run the folder to which each process wrote its own part."""
        if not self.run.sharded:
            return super().state()
        name = f"checkpoint-{self.done}"
        self.save_parts(self.folder / name)
        return {"shards": name}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Load what `state` returned, also if the number of processes has changed."""
        if "shards" not in saved:
            return super().set_state(saved)
        parts = self.parts()
        shards.load(parts, checkpoint_id=self.folder / saved["shards"])
        states.set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=parts["model"],
            optim_state_dict=parts["optimizer"],
        )

    def parts(self) -> dict[str, Any]:
        """Return this process's part of the weights and the optimizer."""
        weights, moments = states.get_state_dict(self.model, self.optimizer)
        return {"model": weights, "optimizer": moments}

    def save_parts(self, folder: Path) -> None:
        """Write this process's part of the weights and the optimizer. Raises `OSError` on failure."""
        try:
            shards.save(self.parts(), checkpoint_id=folder)
        except CheckpointException as failed:
            shutil.rmtree(folder, ignore_errors=True)
            (error, _), *_ = failed.failures.values()
            raise not_written(folder, error) from failed

    def forget_parts(self, but: str = "") -> None:
        """Remove the parts of older checkpoints, and nothing that `save_parts` has not written."""
        if self.run.sharded:
            for old in self.folder.glob("checkpoint-*"):
                step = old.name.removeprefix("checkpoint-")
                if step.isdecimal() and old.name != but:
                    shutil.rmtree(old)


def recompute(model: nn.Module) -> None:
    """Let each block keep its input only, and compute the rest again in the backward pass."""
    for name, blocks in model.named_modules():
        if name.endswith("blocks"):
            for block in blocks.children():
                again = partial(checkpoint, block.forward, use_reentrant=False)
                block.forward = again


def shard(model: nn.Module) -> None:
    """Let each process keep a part of every weight (FSDP).

    Each block is one unit, and the other weights are another.
    """
    stacks = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    for stack in stacks:
        for block in stack:
            fully_shard(block)
    fully_shard(model)
