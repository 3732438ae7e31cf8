"""The training of a run: its optimizer, its step, its evaluation, and what a checkpoint has of it."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn
from torch.distributed.checkpoint import state_dict as states

from experiments.harness.checkpoint import write_atomically
from experiments.harness.configuration import REAL_SCALE, Run
from experiments.harness.provenance import surroundings
from experiments.harness.tasks import task_of, whole_loss
from experiments.harness.texts import Texts, load_texts
from labml_primer.compared.t5 import t5_rate
from labml_primer.primer.faster import faster
from labml_primer.training.loop import draw_windows, seed_of_step, warmed_up_rate

ASKED_TO_STOP = threading.Event()
"""Set by SIGTERM. A run then finishes its step, saves a checkpoint, and raises `StoppedError`."""

WHOLE = states.StateDictOptions(full_state_dict=True, cpu_offload=True)


class StoppedError(RuntimeError):
    """A run was asked to stop, and has saved a checkpoint."""


class DivergedError(FloatingPointError):
    """A run diverged. `step` is the step at which it did."""

    def __init__(self, message: str, step: int):
        super().__init__(message, step)
        self.step = step

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass
class Curve:
    """Parallel lists, one entry per evaluation: what the run had cost, and its losses.

    `train_loss` is the mean since the previous evaluation, in nats per token. `held_out` has a list per
    play, in nats per character, or for an encoder-decoder in nats per target token. `seconds` covers
    training only: CPU time, or at real scale wall-clock time with compilation.
    """

    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    multiply_adds: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    held_out: dict[str, list[float]] = field(default_factory=dict)


class Training:
    """A run in one process on a CPU, which is all that a plan needs.

    Inside `with`, its folder is locked. `begin` builds the model; until then nothing is computed. A subclass
    may spread a run over several processes or put it on a GPU (`experiments.real_scale`).
    """

    rank = 0
    """The number of this process among those of the run. The first one writes the files."""
    device = torch.device("cpu")
    comparable = True
    """Whether the rounding of this machine is that of the recorded fingerprints: on a CPU, in one process."""

    def __init__(self, run: Run, folder: Path):
        self.run, self.folder = run, folder
        self.opened = ExitStack()

    def __enter__(self) -> Self:
        """Lock the folder. Raises `OSError` if another process trains in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.opened.enter_context(FileLock(self.folder / "lock", timeout=0))
        except Timeout:
            raise OSError(f"another process trains in {self.folder}") from None
        return self

    def __exit__(self, *error: object) -> None:
        self.opened.close()

    @cached_property
    def texts(self) -> Texts:
        """The texts of the run. Raises `ValueError` if one is shorter than a window."""
        texts = self.read_texts()
        texts.refuse_short(self.run.data, self.run.seq)
        return texts

    def begin(self) -> Self:
        """Build the model and its optimizer, and return the run before its first step.

        Raises `ValueError` for settings that this model or these texts cannot have.
        """
        run = self.run
        self.model = faster(run.build(self.texts.vocab_size))
        self.task = task_of(self.model, run.seq)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        # The backward pass has two products for each product of the forward pass.
        self.step_multiply_adds = 3 * run.batch * self.task.multiply_adds(self.model)
        self.here = self.surroundings()
        self.earlier: list[dict[str, Any]] = []
        self.prepare()
        self.optimizer, self.clip = optimizer_of(run, self.model)
        self.curve, self.done, self.seconds = Curve(), 0, 0.0
        self.losses: list[float] = []  # since the last evaluation
        self.stopping = False
        return self

    # What real scale does in another way

    def read_texts(self) -> Texts:
        return load_texts(self.run.data)

    def surroundings(self) -> dict[str, Any]:
        return surroundings()

    def prepare(self) -> None:
        """Make the model ready to be trained. Raises `ValueError` for settings of real scale."""
        if self.run != self.run.plain():
            raise ValueError(
                f"{', '.join(REAL_SCALE)} are settings of real scale; start this run with: "
                "python -m experiments.real_scale.run RUN.toml FOLDER"
            )
        self.model.train()

    def now(self) -> float:
        """Return the seconds of CPU time that this process has used."""
        return time.process_time()

    def agree_on(self, path: Path, found: object) -> None:
        """Do nothing: several processes check that all of them `found` the same at `path`."""

    def part(self, batch: Tensor) -> Tensor:
        """Return the rows `[rows, ...]` of a batch that this process reads: all of them."""
        return batch

    def gradients(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Compute the gradients of a batch, and return its mean loss."""
        loss = self.task.loss(self.model, *inputs)
        loss.backward()
        return loss.detach()

    def numbers(self, loss: Tensor, norm: Tensor) -> tuple[float, float, bool]:
        """Return the mean loss, the norm of the gradient, and whether the run was asked to stop."""
        return loss.item(), norm.item(), ASKED_TO_STOP.is_set()

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint has of the model and the optimizer."""
        weights, moments = states.get_state_dict(
            self.model, self.optimizer, options=WHOLE
        )
        return {"model": weights, "optimizer": moments}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Load what `state` returned."""
        # PyTorch initializes an optimizer's state by taking a step, so load the weights afterwards.
        states.set_optimizer_state_dict(
            self.model, self.optimizer, saved["optimizer"], options=WHOLE
        )
        states.set_model_state_dict(self.model, saved["model"], options=WHOLE)

    def forget_parts(self, but: str = "") -> None:
        """Do nothing: a sharded run removes the parts of its older checkpoints."""

    # A step and an evaluation

    def step(self) -> dict[str, float]:
        """Take a step, and return what is logged of it.

        Raises `DivergedError` instead if the loss or the gradient shows divergence.
        """
        start, began = self.now(), time.perf_counter()
        run, step = self.run, self.done + 1
        number = seed_of_step(run.seed, step)
        torch.manual_seed(number + self.rank * 10**12)
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(run, step)
        # The batch depends on seed and step only.
        windows = draw_windows(self.texts.train, run.batch, run.seq, run.seed, step)
        generator = torch.Generator().manual_seed(number)
        inputs = [self.part(x) for x in self.task.inputs(windows, generator)]
        self.optimizer.zero_grad()
        loss = self.gradients(tuple(inputs))
        clipped = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        value, norm, self.stopping = self.numbers(loss, clipped)
        uniform = math.log(self.texts.vocab_size)
        if not (value <= 2 * uniform and math.isfinite(norm)):
            raise self.diverged(step, value, norm, windows)
        self.optimizer.step()
        self.losses.append(value)
        self.done = step
        self.seconds += self.now() - start
        # CPU time adds up over threads, so it is no measure of speed.
        seconds = max(time.perf_counter() - began, 1e-9)
        speed = run.batch * run.seq / seconds
        return {"loss": value, "gradient.norm": norm, "tokens.per.second": speed}

    def diverged(
        self, step: int, loss: float, norm: float, windows: Tensor
    ) -> DivergedError:
        """Save the batch that the run diverged on, and return the error."""
        kept = self.folder / "diverged.pt"
        contents = {"run": asdict(self.run), "step": step, "loss": loss, "norm": norm}
        if self.rank == 0:
            write_atomically(kept, contents | {"windows": windows})
        return DivergedError(
            f"{self.folder.name}: at step {step} the loss is {loss:.4g} and the norm of "
            f"its gradient {norm:.4g}; the batch is saved in {kept}",
            step,
        )

    def evaluate(self) -> None:
        """Add a point to the curve."""
        curve, run = self.curve, self.run
        curve.steps.append(self.done)
        curve.seconds.append(self.seconds)
        curve.multiply_adds.append(self.done * self.step_multiply_adds)
        curve.train_loss.append(sum(self.losses) / len(self.losses))
        for play, text in self.texts.held_out.items():
            nats = self.task.held_out(self.model, text, run.batch, run.seq)
            if self.task.per_character:
                nats /= self.texts.characters[play]
            curve.held_out.setdefault(play, []).append(nats)
        self.losses.clear()

    def whole(self) -> dict[str, float]:
        """Return the loss on each whole play, in nats per character."""
        texts, run = self.texts, self.run
        return {
            play: whole_loss(self.model, text, run.batch, run.seq)
            / texts.characters[play]
            for play, text in texts.held_out.items()
        }


Kind = Callable[[Run, Path], Training]
"""A class of training: the plain one, or one that trains in another way."""


# The optimizer


def rate_at(run: Run, step: int) -> float:
    """Return the learning rate of a step; steps count from 1."""
    if run.optimizer == "adafactor":
        return t5_rate(step, warmup=round(run.rate**-2))
    if run.schedule == "linear":
        left = (run.steps + 1 - step) / max(1, run.steps + 1 - run.warmup)
        return run.rate * min(step / run.warmup, left)
    return warmed_up_rate(step, run.rate, run.warmup)


def optimizer_of(run: Run, model: nn.Module) -> tuple[torch.optim.Optimizer, float]:
    """Return the optimizer and the norm to clip gradients at; Adafactor clips updates itself."""
    if run.optimizer == "adafactor":
        return torch.optim.Adafactor(model.parameters(), lr=run.rate), math.inf
    spared = not_matrices(model) if run.decay == "matrices" else set[str]()
    named = list(model.named_parameters())
    groups: list[dict[str, Any]] = [
        {"params": [p for n, p in named if n not in spared]}
    ]
    if spared:
        others = [p for n, p in named if n in spared]
        groups.append({"params": others, "weight_decay": 0.0})
    on_gpu = named[0][1].device.type == "cuda"
    adamw = torch.optim.AdamW(
        groups,
        lr=run.rate,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        fused=on_gpu or None,
    )
    return adamw, 1.0


def not_matrices(model: nn.Module) -> set[str]:
    """Return the names of norms, biases, embeddings and positions."""
    tables = {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding)
    }
    return tables | {
        name
        for name, weight in model.named_parameters()
        if weight.dim() < 2 or name.endswith("bias") or "positions" in name
    }
