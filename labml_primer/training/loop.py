"""The training loop: one recipe for every model of the book, so that only the models differ."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.training.corpus import Corpus
from labml_primer.training.progress import Progress

VALIDATION_WINDOWS = 64
"""How many windows of the held-out plays an evaluation reads, always the same ones."""


@dataclass
class History:
    """What a run was seen to do: parallel lists, one entry an evaluation.

    `train_loss` is the mean over the steps since the evaluation before. `seconds` is the time
    spent in training alone, without the evaluations: on a CPU its own processor time, all
    cores added, which a busy machine does not falsify; elsewhere the wall clock's. Losses are
    in nats a character.
    `json.dumps(dataclasses.asdict(history))` records it.
    """

    steps: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def warmed_up_rate(step: int, rate: float, warmup: int) -> float:
    """From zero to `rate` in a line over `warmup` steps, then down with one over the root.

    Steps count from 1.
    """
    return rate * min(step / warmup, math.sqrt(warmup / step))


def draw_windows(text: Tensor, batch: int, seq: int, seed: int, step: int) -> Tensor:
    """`batch` windows of `seq + 1` characters, `[batch, seq + 1]`.

    They depend on `seed` and `step` and on nothing else, so a run that goes on after a stop
    sees the batches that it would have seen.
    """
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    starts = torch.randint(len(text) - seq, (batch, 1), generator=generator)
    return text[starts + torch.arange(seq + 1)]


def next_character_loss(model: nn.Module, windows: Tensor) -> Tensor:
    """The mean cross-entropy of each character of `windows`, given those before it."""
    logits = model(windows[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())


@contextmanager
def auxiliary_losses(model: nn.Module) -> Iterator[list[Tensor]]:
    """What layers ask for besides the loss, in a list that fills while `model` is called.

    A layer asks by a method `auxiliary_loss`, and is given what it was called with.
    """
    asked: list[Tensor] = []
    hooks = [
        module.register_forward_hook(
            lambda module, inputs, _: asked.append(module.auxiliary_loss(*inputs))
        )
        for module in model.modules()
        if hasattr(module, "auxiliary_loss")
    ]
    try:
        yield asked
    finally:
        for hook in hooks:
            hook.remove()


def held_out_windows(text: Tensor, seq: int) -> Tensor:
    """`VALIDATION_WINDOWS` windows, spread evenly over `text`: `[windows, seq + 1]`."""
    starts = torch.linspace(0, len(text) - seq - 1, VALIDATION_WINDOWS).long()
    return text[starts[:, None] + torch.arange(seq + 1)]


@torch.no_grad()
def held_out_loss(model: nn.Module, text: Tensor, batch: int, seq: int) -> float:
    """The loss over the `held_out_windows`, in float32."""
    windows = held_out_windows(text, seq).to(next(model.parameters()).device)
    was_training = model.training
    model.eval()
    total = sum(
        next_character_loss(model, part).item() * len(part)
        for part in windows.split(batch)
    )
    model.train(was_training)
    return total / len(windows)


def write_atomically(path: Path, contents: dict[str, Any]) -> None:
    """Saves `contents` so that `path` is never half written, whenever the run is stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    torch.save(contents, partial)
    partial.replace(path)


def train(
    model: nn.Module,
    corpus: Corpus,
    *,
    name: str,
    steps: int = 400,
    batch: int = 16,
    seq: int = 128,
    rate: float = 4e-3,
    warmup: int = 100,
    seed: int = 0,
    evaluations: int = 10,
    folder: str | Path | None = None,
) -> History:
    """Trains `model` in place to foretell the next character, and returns what it did.

    `model` takes tokens `[batch, seq]` to logits `[batch, seq, vocab_size]`. AdamW with
    decay 0.01 and momenta 0.9 and 0.98, gradients clipped at norm 1, `rate` reached after
    `warmup` steps, all in float32: on a processor bfloat16 is no gain at the book's sizes.

    The run depends on `model`, `seed` and the numbers given, and not on the global random
    state, which it leaves as it was. With `folder`, each evaluation is also a save, as
    `name` with the ending `.pt`: the same call takes up a stopped run from there, to the same
    numbers. Without, nothing is written.

    Raises `FloatingPointError` at a loss that is not finite, and `ValueError` where `folder`
    holds a run of that name with other settings.
    """
    for label, number in (("steps", steps), ("batch", batch), ("warmup", warmup)):
        if number < 1:
            raise ValueError(f"{label} {number} is not positive")
    if not 1 <= evaluations <= steps:
        raise ValueError(f"{evaluations} evaluations do not fit {steps} steps")
    shortest = min(len(corpus.train), len(corpus.validation))
    if not 1 <= seq < shortest:
        raise ValueError(f"seq {seq} does not fit a text of {shortest} characters")

    settings = {
        "name": name,
        "steps": steps,
        "batch": batch,
        "seq": seq,
        "rate": rate,
        "warmup": warmup,
        "seed": seed,
        "evaluations": evaluations,
        "symbols": corpus.symbols,
    }
    device = next(model.parameters()).device
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    history, done = History(), 0
    saved = None if folder is None else Path(folder) / f"{name}.pt"
    if saved is not None and saved.exists():
        run = torch.load(saved, map_location=device, weights_only=True)
        if run["settings"] != settings:
            raise ValueError(
                f"{saved} is a run with other settings: {run['settings']}; "
                f"asked for {settings}"
            )
        model.load_state_dict(run["model"])
        optimizer.load_state_dict(run["optimizer"])
        history, done = History(**run["history"]), run["done"]

    reports = {steps * i // evaluations for i in range(1, evaluations + 1)}
    losses: list[float] = []
    seconds = history.seconds[-1] if history.seconds else 0.0
    was_training = model.training
    model.train()
    # Dropout draws from the global generator: it is seeded at each step, and given back.
    borrowed = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with borrowed, Progress(name) as progress:
        for step in progress.steps(range(done + 1, steps + 1)):
            start = clock()
            torch.manual_seed(seed * 1_000_003 + step)
            for group in optimizer.param_groups:
                group["lr"] = warmed_up_rate(step, rate, warmup)
            windows = draw_windows(corpus.train, batch, seq, seed, step).to(device)
            with auxiliary_losses(model) as asked:
                loss = next_character_loss(model, windows)
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                raise FloatingPointError(
                    f"{name}: the loss is {losses[-1]} at step {step}"
                )
            optimizer.zero_grad()
            sum(asked, loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            seconds += clock() - start
            progress.report(step, losses[-1])
            if step not in reports:
                continue
            history.steps.append(step)
            history.train_loss.append(sum(losses) / len(losses))
            history.validation_loss.append(
                held_out_loss(model, corpus.validation, batch, seq)
            )
            history.seconds.append(seconds)
            losses.clear()
            if saved is not None:
                contents = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "done": step,
                    "history": asdict(history),
                    "settings": settings,
                }
                write_atomically(saved, contents)
    model.train(was_training)
    return history
