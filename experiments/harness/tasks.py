"""What a model is asked: to go on with a text, or to fill its gaps, as T5 is."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from labml_primer.compared.t5 import T5, corrupt_spans
from labml_primer.training.loop import (
    held_out_loss,
    held_out_windows,
    next_character_loss,
)
from labml_primer.transformer.model import LanguageModel

SENTINELS = 32
"""How many numbers above the vocabulary stand for gaps: enough for sequences of 500."""


@dataclass(frozen=True)
class Task:
    """What is made of a batch of windows, the loss on it, and the loss on a whole play.

    `inputs` takes windows `[batch, seq + 1]` and dice. `multiply_adds` are those of a forward pass, for
    a sequence: of a language model half of what its causal attention could see, of T5 all of it.
    `per_character` says whether the loss on a play is per character, and not per token.
    """

    inputs: Callable[[Tensor, torch.Generator], tuple[Tensor, ...]]
    loss: Callable[..., Tensor]
    held_out: Callable[[nn.Module, Tensor, int, int], float]
    multiply_adds: Callable[[nn.Module], int]
    per_character: bool


def task_of(model: nn.Module, seq: int) -> Task:
    """A language model goes on, T5 fills gaps."""
    if isinstance(model, T5):
        return filling(model.config.vocab_size - SENTINELS, seq)
    return GOING_ON


def products_of(model: nn.Module) -> int:
    assert isinstance(model, LanguageModel)
    return sum(each for _, each in model.costs().values()) * model.config.max_seq


GOING_ON = Task(
    lambda windows, dice: (windows,),
    next_character_loss,
    held_out_loss,
    products_of,
    per_character=True,
)


def filling(first_sentinel: int, seq: int) -> Task:
    """Spans are cut out of the text, and the model writes them. Raises `ValueError` for too many spans."""
    _, target = corrupt_spans(torch.zeros(1, seq, dtype=torch.long), 0)
    if (last := int(target.max())) >= SENTINELS:
        message = f"seq {seq} has {last} gaps, and sentinels are for {SENTINELS - 1}"
        raise ValueError(message)

    def inputs(windows: Tensor, dice: torch.Generator) -> tuple[Tensor, ...]:
        return corrupt_spans(windows[:, :-1], first_sentinel, dice)

    def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        logits = model(source, target[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), target[:, 1:].flatten())

    @torch.no_grad()
    def held_out(model: nn.Module, text: Tensor, batch: int, seq: int) -> float:
        device = next(model.parameters()).device
        windows = held_out_windows(text, seq)
        # The same gaps each time.
        cut = inputs(windows, torch.Generator().manual_seed(0))
        model.eval()
        parts = zip(*(each.to(device).split(batch) for each in cut), strict=True)
        total = sum(loss(model, *part).item() * len(part[0]) for part in parts)
        model.train()
        return total / len(windows)

    def multiply_adds(model: nn.Module) -> int:
        text = torch.zeros(1, seq + 1, dtype=torch.long)
        dice = torch.Generator().manual_seed(0)
        source, target = inputs(text, dice)
        # Counted are the products of plain attention. Not every fast one is known to the counter.
        with (
            sdpa_kernel(SDPBackend.MATH),
            FlopCounterMode(display=False) as counter,
            torch.no_grad(),
        ):
            model(source, target[:, :-1])
        return counter.get_total_flops() // 2

    return Task(inputs, loss, held_out, multiply_adds, per_character=False)
