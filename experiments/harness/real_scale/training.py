"""Training with several processes, on a GPU, or in less memory."""

import shutil
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed import checkpoint as shards
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from experiments.harness.checkpoint import not_written
from experiments.harness.real_scale.texts import texts_of
from experiments.harness.texts import Texts
from experiments.harness.training import Training


class ScaledTraining(Training):
    """A run whose batch is split between workers or read in pieces, or whose model is sharded or compiled.

    `shared` is the module to call in a training step. `model` itself is evaluated and saved.
    """

    shared: nn.Module

    def read_texts(self) -> Texts:
        return texts_of(self.run.data)

    def prepare(self) -> None:
        """Put the model on its device, and share it. Raises `ValueError` for settings that do not fit."""
        self.refuse_impossible_settings()
        run, device = self.run, self.worker.device
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
        if self.worker.count > 1 and not run.sharded:
            self.shared = DistributedDataParallel(self.model)

    def refuse_impossible_settings(self) -> None:
        run, workers = self.run, self.worker
        # No test checks the gradients of auxiliary losses in these two cases.
        has_own_losses = any(
            hasattr(each, "auxiliary_loss") for each in self.model.modules()
        )
        for what in ("compiled", "recomputed"):
            if getattr(run, what) and has_own_losses:
                raise ValueError(
                    f"{run.preset} has auxiliary losses and cannot be {what}"
                )
        if run.batch % (run.pieces * workers.count):
            raise ValueError(
                f"batch {run.batch} cannot be split between {workers.count} workers in {run.pieces} pieces"
            )
        if run.compiled and workers.device.type != "cuda":
            raise ValueError("compiled needs a GPU")
        if run.sharded and not torch.distributed.is_initialized():
            raise ValueError(
                "start a sharded run with torchrun: torchrun --nproc-per-node 2 -m "
                "experiments.harness.long_run RUN.toml FOLDER"
            )

    def gradients(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Add up the gradients of the pieces of a batch, and return the mean loss."""
        run, mean = self.run, torch.zeros((), device=self.worker.device)
        device = self.worker.device.type
        pieces = list(zip(*(each.chunk(run.pieces) for each in inputs), strict=True))
        for number, piece in enumerate(pieces, 1):
            last = number == run.pieces
            with nullcontext() if last else self.without_exchange():
                with torch.autocast(device, torch.bfloat16, enabled=run.bfloat16):
                    loss = self.task.loss(self.shared, *piece)
                loss.backward()
            mean = mean + loss.detach() / run.pieces
        # The gradients are divided, not the losses, so that those of auxiliary losses are divided too.
        for weight in self.model.parameters():
            if weight.grad is not None:
                weight.grad /= run.pieces
        return mean

    def without_exchange(self) -> AbstractContextManager[None]:
        """Return a context in which the workers of DDP add up their own gradients and do not exchange them.

        FSDP still exchanges them, because each worker keeps the gradient of its own part only.
        """
        if isinstance(self.shared, DistributedDataParallel):
            return self.shared.no_sync()
        return nullcontext()

    def state(self) -> dict[str, Any]:
        """Return both states, or of a sharded run the folder to which each worker wrote its own part."""
        if not self.run.sharded:
            return super().state()
        name = f"checkpoint-{self.done}"
        self.save_parts(self.folder / name)
        return {"shards": name}

    def set_state(self, state: dict[str, Any]) -> None:
        if "shards" in state:
            self.load_parts(self.folder / state["shards"])
        else:
            super().set_state(state)

    def save_parts(self, folder: Path) -> None:
        """Write this worker's part of the weights and the optimizer. Raises `OSError` on failure."""
        weights, moments = states.get_state_dict(self.model, self.optimizer)
        state = {"model": weights, "optimizer": moments}
        try:
            shards.save(state, checkpoint_id=folder)
        except CheckpointException as failed:
            shutil.rmtree(folder, ignore_errors=True)
            (error, _), *_ = failed.failures.values()
            raise not_written(folder, error) from failed

    def load_parts(self, folder: Path) -> None:
        """Load what `save_parts` wrote, also if the number of workers has changed."""
        weights, moments = states.get_state_dict(self.model, self.optimizer)
        state: dict[str, Any] = {"model": weights, "optimizer": moments}
        shards.load(state, checkpoint_id=folder)
        states.set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

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
    """Let each worker keep a part of every weight (FSDP).

    Each block is one unit, and the other weights are another.
    """
    stacks = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    for stack in stacks:
        for block in stack:
            fully_shard(block)
    fully_shard(model)
