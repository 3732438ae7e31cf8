"""The training of a run: its step, and its evaluation."""

import math
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from experiments.harness.checkpoint import set_state, state_of, write_atomically
from experiments.harness.configuration import Run
from experiments.harness.optimizer import optimizer_of, rate_at
from experiments.harness.provenance import surroundings
from experiments.harness.tasks import task_of, whole_loss
from experiments.harness.texts import Texts, load_texts, refuse_short_texts
from experiments.harness.worker import Worker
from labml_primer.primer.faster import faster
from labml_primer.training.loop import draw_windows

ASKED_TO_STOP = threading.Event()
"""Set by SIGTERM. A run then finishes its step, saves a checkpoint, and raises `StoppedError`."""


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
    training only: CPU time with one worker on a CPU, else wall-clock time with compilation.
    """

    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    multiply_adds: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    held_out: dict[str, list[float]] = field(default_factory=dict)


class Training:
    """The state of a run between two steps, for a run in one process on a CPU.

    It ignores the settings of real scale: `experiments.harness.start` chooses `ScaledTraining` for them.
    """

    def __init__(self, run: Run, folder: Path, worker: Worker | None = None):
        self.run, self.folder, self.worker = run, folder, worker or Worker()
        self.texts = self.read_texts()
        refuse_short_texts(self.texts, run.data, run.seq)
        self.model = faster(run.build(self.texts.vocab_size))
        self.task = task_of(self.model, run.seq)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        # The backward pass has two products for each product of the forward pass.
        self.step_multiply_adds = 3 * run.batch * self.task.multiply_adds(self.model)
        self.here = surroundings(self.worker.gpu, self.worker.count)
        self.earlier: list[dict[str, Any]] = []
        self.prepare()
        self.optimizer, self.clip = optimizer_of(run, self.model)
        self.curve, self.done, self.seconds = Curve(), 0, 0.0
        self.losses: list[float] = []  # since the last evaluation
        self.norm, self.step_seconds, self.stopping = 0.0, math.inf, False

    def read_texts(self) -> Texts:
        """Return the texts of the run."""
        return load_texts(self.run.data)

    def prepare(self) -> None:
        """Make the model ready to be trained."""
        self.model.train()

    def step(self) -> None:
        """Take a step. Raises `DivergedError` instead if the loss or the gradient shows divergence."""
        start, began = self.worker.now(), time.perf_counter()
        run, step = self.run, self.done + 1
        torch.manual_seed(run.seed * 1_000_003 + step + self.worker.rank * 10**12)
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(run, step)
        windows, inputs = self.batch(step)
        self.optimizer.zero_grad()
        loss = self.gradients(inputs)
        clipped = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        value, norm, self.stopping = self.worker.numbers(
            loss, clipped, ASKED_TO_STOP.is_set()
        )
        uniform = math.log(self.texts.vocab_size)
        if not (value <= 2 * uniform and math.isfinite(norm)):
            raise self.diverged(step, value, norm, windows)
        self.optimizer.step()
        self.losses.append(value)
        self.done, self.norm = step, norm
        # CPU time adds up over threads, so it is no measure of speed.
        self.step_seconds = time.perf_counter() - began
        self.seconds += self.worker.now() - start

    def batch(self, step: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return a step's windows and this worker's inputs. They depend on seed and step only.

        Windows are `[batch, seq + 1]` tokens.
        """
        run = self.run
        windows = draw_windows(self.texts.train, run.batch, run.seq, run.seed, step)
        generator = torch.Generator().manual_seed(run.seed * 1_000_003 + step)
        inputs = self.task.inputs(windows, generator)
        return windows, tuple(self.worker.part(each) for each in inputs)

    def gradients(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Compute the gradients of a batch, and return its mean loss."""
        loss = self.task.loss(self.model, *inputs)
        loss.backward()
        return loss.detach()

    def diverged(
        self, step: int, loss: float, norm: float, windows: Tensor
    ) -> DivergedError:
        """Save the batch that the run diverged on, and return the error."""
        kept = self.folder / "diverged.pt"
        contents = {"run": asdict(self.run), "step": step, "loss": loss, "norm": norm}
        if self.worker.first:
            write_atomically(kept, contents | {"windows": windows})
        return DivergedError(
            f"{self.folder.name}: at step {step} the loss is {loss:.4g} and the norm of "
            f"its gradient {norm:.4g}; the batch is saved in {kept}",
            step,
        )

    def measured(self) -> dict[str, float]:
        """Return what is logged at each step."""
        tokens = self.run.batch * self.run.seq
        return {
            "loss": self.losses[-1],
            "gradient.norm": self.norm,
            "tokens.per.second": tokens / max(self.step_seconds, 1e-9),
        }

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

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint has of the model and the optimizer."""
        return state_of(self.model, self.optimizer)

    def set_state(self, state: dict[str, Any]) -> None:
        """Load what `state` returned."""
        set_state(self.model, self.optimizer, state)

    def forget_parts(self, but: str = "") -> None:
        """Do nothing: a sharded run removes the parts of its older checkpoints."""
