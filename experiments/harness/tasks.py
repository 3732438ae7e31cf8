"""The tasks of long runs: predict the next character, or fill gaps in a text as T5 does."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from labml_primer.compared.t5 import T5, corrupt_spans
from labml_primer.training.costs import costs
from labml_primer.training.loop import (
    held_out_loss,
    held_out_windows,
    next_character_loss,
)
from labml_primer.transformer.language_model import LanguageModel

SENTINELS = 32
"""Number of tokens above the vocabulary that mark gaps: enough for sequences of 500."""


@dataclass(frozen=True)
class Task:
    """How to make a model's inputs, its loss on them, and its loss on a whole play.

    `inputs` takes windows `[batch, seq + 1]` and a random generator. `multiply_adds` counts those of a
    forward pass over one sequence; for a language model's causal attention it counts half of the score
    matrix, for T5 all of it. `per_character` says whether the loss on a play is per character or per token.
    """

    inputs: Callable[[Tensor, torch.Generator], tuple[Tensor, ...]]
    loss: Callable[..., Tensor]
    held_out: Callable[[nn.Module, Tensor, int, int], float]
    multiply_adds: Callable[[nn.Module], int]
    per_character: bool


def task_of(model: nn.Module, seq: int) -> Task:
    """Return the task of a model: T5 fills gaps, a language model predicts the next character."""
    if isinstance(model, T5):
        return span_corruption(model.config.vocab_size - SENTINELS, seq)
    return LANGUAGE_MODELING


@torch.no_grad()
def whole_loss(model: nn.Module, text: Tensor, batch: int, seq: int) -> float:
    """Return the mean loss over a whole text, read in windows that follow one another.

    What is left after the last full window is not read.
    """
    device = next(model.parameters()).device
    starts = torch.arange(0, len(text) - seq, seq)[:, None]
    model.eval()
    total = 0.0
    for part in starts.split(batch):
        windows = text[part + torch.arange(seq + 1)].to(device)
        total += next_character_loss(model, windows).item() * len(windows)
    model.train()
    return total / len(starts)


def language_model_multiply_adds(model: nn.Module) -> int:
    """Count the multiply-adds of a forward pass over one sequence."""
    assert isinstance(model, LanguageModel)
    return sum(each for _, each in costs(model).values()) * model.config.max_seq


LANGUAGE_MODELING = Task(
    lambda windows, generator: (windows,),
    next_character_loss,
    held_out_loss,
    language_model_multiply_adds,
    per_character=True,
)


def span_corruption(first_sentinel: int, seq: int) -> Task:
    """Return T5's task: predict spans cut out of the text. Raises `ValueError` for too many spans."""
    _, target = corrupt_spans(torch.zeros(1, seq, dtype=torch.long), 0)
    if (last := int(target.max())) >= SENTINELS:
        message = (
            f"seq {seq} has {last} gaps, but there are sentinels for {SENTINELS - 1}"
        )
        raise ValueError(message)

    def inputs(windows: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        return corrupt_spans(windows[:, :-1], first_sentinel, generator)

    def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        logits = model(source, target[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), target[:, 1:].flatten())

    @torch.no_grad()
    def held_out(model: nn.Module, text: Tensor, batch: int, seq: int) -> float:
        device = next(model.parameters()).device
        windows = held_out_windows(text, seq)
        # The same gaps at every evaluation.
        cut = inputs(windows, torch.Generator().manual_seed(0))
        model.eval()
        parts = zip(*(each.to(device).split(batch) for each in cut), strict=True)
        total = sum(loss(model, *part).item() * len(part[0]) for part in parts)
        model.train()
        return total / len(windows)

    def multiply_adds(model: nn.Module) -> int:
        text = torch.zeros(1, seq + 1, dtype=torch.long)
        generator = torch.Generator().manual_seed(0)
        source, target = inputs(text, generator)
        # The counter does not know every fused attention kernel, so use the plain one.
        with (
            sdpa_kernel(SDPBackend.MATH),
            FlopCounterMode(display=False) as counter,
            torch.no_grad(),
        ):
            model(source, target[:, :-1])
        return counter.get_total_flops() // 2

    return Task(inputs, loss, held_out, multiply_adds, per_character=False)
