"""Train a program for a fixed time, or reject it with a reason.

The time is CPU time of one core, in units of the Transformer's training step. The unit is measured
again and again while the program is trained, because the same step takes more CPU time on a busy
machine, whose cores share caches and execution units: two times as much, or more. So a search can be resumed
at another hour, or on another machine, and its losses remain comparable.
"""

import math
import resource
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Any, cast

import torch
from torch import Tensor, nn

from experiments.harness.texts import load_texts
from experiments.records.runs import REPORTED_PLAYS, TUNING_PLAY
from labml_primer.search.evolution import shares, train_over_hurdles
from labml_primer.search.programs import DNA, TRANSFORMER, parse
from labml_primer.search.running import Program, sees_the_future
from labml_primer.training.loop import (
    next_character_loss,
    warmed_up_rate,
)
from labml_primer.transformer.language_model import Block, Config, LanguageModel

SEARCH_PLAY = TUNING_PLAY
"""The comedy. No result is reported on it."""

WIDTHS = range(8, 257, 8)
FURTHEST = 4 / 3
"""A model may have this many times its budget of parameters, or less by the same factor."""
MOST_BYTES = 2**30
"""For all values of a forward pass that the backward pass may need."""
FEWEST_STEPS = 5
"""A program that takes fewer in its whole training is too slow."""
UNIT_EVERY = 60
"""After so many steps of a program, a step of the Transformer is measured."""
MOST_SECONDS = 900.0
"""Of CPU time for a program, after which its process ends. Few need more than 60."""
MOST_WALL_SECONDS = 4 * 3600.0
"""The same of wall-clock time, for a program that hangs. A busy machine may need hours."""
WINDOWS = 256
"""The windows of the play that a loss is measured on."""

Clock = Callable[[], float]


class RejectedError(Exception):
    """A program that cannot be a model, with the reason."""


@dataclass(frozen=True)
class Task:
    """How a program is trained. `budget` is a time: that of as many training steps of the Transformer."""

    budget: float = 600.0
    parameters: int = 100_000
    layers: int = 2
    seq: int = 32
    batch: int = 16
    rate: float = 4e-3
    warmup: int = 50
    hurdles: int = 1


def build(dna: DNA, task: Task, d_model: int, vocab_size: int) -> LanguageModel:
    """Return a language model whose blocks are `dna`. Raises `RejectedError` beyond a program's limits."""

    def block(config: Config) -> Program:
        return Program(dna, config.d_model, config.max_seq)

    config = Config(
        vocab_size,
        d_model=d_model,
        layers=task.layers,
        max_seq=task.seq,
        block=cast(type[Block], block),
    )
    try:
        return LanguageModel(config)
    except ValueError as error:
        raise RejectedError(f"too large: {error}") from error


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def fitting_width(dna: DNA, task: Task, vocab_size: int) -> int:
    """Return the width with which the model's size is nearest to its budget.

    The paper's models all have 32 to 38 million parameters, and it does not say how. Here the width is
    adapted, and with it all of the program's dimensions. The number of layers stays.

    Raises `RejectedError` if no width fits.
    """
    sizes: dict[int, int] = {}
    for d_model in WIDTHS:
        sizes[d_model] = parameters(build(dna, task, d_model, vocab_size))
        if sizes[d_model] > task.parameters:
            break

    def distance(d_model: int) -> float:
        return abs(math.log(sizes[d_model] / task.parameters))

    best = min(sizes, key=distance)
    if distance(best) > math.log(FURTHEST):
        raise RejectedError(
            f"no width: {sizes[best]:,} parameters at d_model {best}, "
            f"not {task.parameters:,}"
        )
    return best


def bytes_of_values(model: LanguageModel, task: Task) -> int:
    """Return the bytes of all values of a forward pass, at most."""
    floats = 0
    for block in cast("list[Program]", list(model.blocks)):
        for value in block.live:
            line = block.lines[value - 2]
            floats += line.copies * block.widths[value]
            if line.operation.startswith("CONV"):
                kernel_size = int(
                    line.operation.removeprefix("CONV ").partition("X")[0]
                )
                floats += line.copies * kernel_size * block.widths[line.first]
    return 4 * task.batch * task.seq * floats


def check_causality(model: LanguageModel) -> None:
    """Raise `RejectedError` if a block uses later positions."""
    for block in cast("list[Program]", list(model.blocks)):
        x = torch.randn(1, block.seq, 8 * block.base)
        if sees_the_future(block, x):
            raise RejectedError("sees the future")


@cache
def windows_of(play: str, seq: int) -> Tensor:
    """Return windows spread evenly over a held-out play."""
    text = load_texts("characters").held_out[play]
    starts = torch.linspace(0, len(text) - seq - 1, WINDOWS).long()
    return text[starts[:, None] + torch.arange(seq + 1)]


@torch.no_grad()
def loss_on(model: nn.Module, play: str, task: Task) -> float:
    """Return the mean loss on a play, in nats per character."""
    parts = windows_of(play, task.seq).split(4 * task.batch)
    return sum(next_character_loss(model, p).item() for p in parts) / len(parts)


class Steps:
    """A model with its optimizer, and the CPU time of its steps."""

    def __init__(self, model: LanguageModel, task: Task, clock: Clock):
        self.model, self.task, self.clock = model, task, clock
        self.count, self.seconds = 0, 0.0
        self.optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=task.rate,
            betas=(0.9, 0.98),
            weight_decay=0.01,
            fused=True,
        )

    def step(self, seed: int) -> None:
        """Take a step. Raises `RejectedError` if loss or gradient are not finite."""
        start, task = self.clock(), self.task
        self.count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = warmed_up_rate(self.count, task.rate, task.warmup)
        text = load_texts("characters").train
        # `draw_windows` for the small seeds of a run. The recorded searches have a million and more.
        generator = torch.Generator().manual_seed(seed * 1_000_003 + self.count)
        places = len(text) - task.seq
        starts = torch.randint(places, (task.batch, 1), generator=generator)
        windows = text[starts + torch.arange(task.seq + 1)]
        loss = next_character_loss(self.model, windows)
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if not math.isfinite(norm.item() + loss.item()):
            raise RejectedError(f"not finite: step {self.count}")
        self.optimizer.step()
        self.seconds += self.clock() - start


class Unit:
    """The time of a training step of the Transformer: the median of the latest measurements."""

    def __init__(self, task: Task, clock: Clock):
        vocab_size = load_texts("characters").vocab_size
        d_model = fitting_width(TRANSFORMER, task, vocab_size)
        # At a rate of 0 it never diverges.
        still = replace(task, rate=0.0)
        model = build(TRANSFORMER, task, d_model, vocab_size)
        self.steps = Steps(model, still, clock)
        self.latest: deque[float] = deque(maxlen=9)
        while len(self.latest) < 9:
            self.measure()

    def measure(self) -> None:
        """Measure a step. The step before it fills the CPU's caches, as a program's own do."""
        self.steps.step(seed=0)
        before = self.steps.seconds
        self.steps.step(seed=0)
        self.latest.append(self.steps.seconds - before)

    @property
    def seconds(self) -> float:
        return median(self.latest)


@cache
def unit_of(task: Task, clock: Clock) -> Unit:
    """Return the unit of time. A worker keeps it for all programs."""
    return Unit(task, clock)


class Training:
    """A program in training.

    Raises `RejectedError` for a program that cannot be a model of the right size. `scale` makes the model
    so many times as wide.
    """

    def __init__(self, dna: DNA, task: Task, seed: int, clock: Clock, scale: int = 1):
        self.task, self.seed = task, seed
        self.unit, self.used = unit_of(task, clock), 0.0
        vocab_size = load_texts("characters").vocab_size
        self.d_model = scale * fitting_width(dna, task, vocab_size)
        torch.manual_seed(seed)
        self.steps = Steps(build(dna, task, self.d_model, vocab_size), task, clock)
        self.model = self.steps.model
        size = bytes_of_values(self.model, task)
        if size > MOST_BYTES:
            raise RejectedError(f"memory: {size / 2**30:.1f} GiB of values")
        check_causality(self.model)
        self.unit.measure()

    def step(self) -> None:
        """Take a step, and add its time in units to `used`."""
        before = self.steps.seconds
        self.steps.step(self.seed)
        self.used += (self.steps.seconds - before) / self.unit.seconds
        if self.steps.count % UNIT_EVERY == 0:
            self.unit.measure()

    def curve(self) -> Iterator[float]:
        """Train, and yield the loss on the play of the search at each hurdle and at the end.

        Raises `RejectedError` for a program that is too slow, or that is not finite.
        """
        for share in shares(self.task.hurdles):
            while self.used < share * self.task.budget:
                self.step()
            if share == 1 and self.steps.count < FEWEST_STEPS:
                raise RejectedError(f"too slow: {self.steps.count} steps in all")
            yield self.loss(SEARCH_PLAY)

    def loss(self, play: str) -> float:
        """Return the loss on a play. Raises `RejectedError` if it is not finite."""
        found = loss_on(self.model, play, self.task)
        if not math.isfinite(found):
            raise RejectedError(f"not finite: after step {self.steps.count}")
        return found

    def reported(self) -> list[float]:
        """Return the losses on the reported plays. Raises `RejectedError` if one is not finite."""
        return [self.loss(play) for play in REPORTED_PLAYS]

    def costs(self) -> dict[str, Any]:
        """Return what is recorded besides losses. `used` is the time in steps of the Transformer."""
        return {
            "steps": self.steps.count,
            "seconds": round(self.steps.seconds, 3),
            "used": round(self.used, 2),
            "d_model": self.d_model,
            "parameters": parameters(self.model),
        }


@contextmanager
def time_limits(cpu: float, wall: float) -> Iterator[None]:
    """Let the system end this process after so many seconds of CPU time or wall-clock time.

    A single operation of a strange program may take hours, and Python cannot interrupt it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    for each in (signal.SIGXCPU, signal.SIGALRM):
        signal.signal(each, signal.SIG_DFL)  # end the process
    limit = math.ceil(time.process_time() + cpu)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))
    signal.setitimer(signal.ITIMER_REAL, wall)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def evaluate(
    dna: str,
    seed: int,
    bars: tuple[float, ...],
    task: Task,
    clock: Clock = time.process_time,
) -> dict[str, Any]:
    """Return what is recorded of a program: its losses, or the reason why it was rejected.

    `seconds` is the CPU time of training steps, `whole` that of everything.
    """
    start = clock()
    losses: tuple[float, ...] = ()
    training: Training | None = None
    rejected = ""
    try:
        training = Training(parse(dna), task, seed, clock)
        losses = train_over_hurdles(training.curve(), bars)
        check_causality(training.model)
    except RejectedError as error:
        losses, rejected = (), str(error)
    except RuntimeError as error:  # of PyTorch, such as no memory
        losses, rejected = (), f"error: {str(error).splitlines()[0]}"
    return {
        "losses": [round(loss, 5) for loss in losses],
        "rejected": rejected,
        **(training.costs() if training else {}),
        "whole": round(clock() - start, 3),
    }


def evaluate_in_worker(
    dna: str, seed: int, bars: tuple[float, ...], task: Task
) -> dict[str, Any]:
    """Evaluate in a process of its own, which ends if the program takes far too long."""
    torch.set_num_threads(1)
    load_texts("characters")
    unit_of(task, time.process_time)
    with time_limits(MOST_SECONDS, MOST_WALL_SECONDS):
        return evaluate(dna, seed, bars, task)
