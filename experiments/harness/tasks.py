"""The tasks of long runs: predict the next character, fill gaps as T5 does, or tokens as BERT does."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from experiments.harness.parts import EncoderBlock
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
    """Return a model's task: T5 fills gaps, an encoder predicts masked tokens, others the next character."""
    if isinstance(model, T5):
        return span_corruption(model.config.vocab_size - SENTINELS, seq)
    if isinstance(model, LanguageModel) and issubclass(
        model.config.block, EncoderBlock
    ):
        return masked_language_modeling(model.config.vocab_size - 1)
    return LANGUAGE_MODELING


def whole_places(text: Tensor, seq: int) -> Tensor:
    """Return the places `[windows, seq + 1]` of windows that follow one another.

    What is left after the last full window is not read.
    """
    return torch.arange(0, len(text) - seq, seq)[:, None] + torch.arange(seq + 1)


@torch.no_grad()
def whole_loss(model: nn.Module, text: Tensor, batch: int, seq: int) -> float:
    """Return the mean loss over a whole text, read in windows that follow one another."""
    device = next(model.parameters()).device
    places = whole_places(text, seq)
    model.eval()
    total = 0.0
    for part in places.split(batch):
        windows = text[part].to(device)
        total += next_character_loss(model, windows).item() * len(windows)
    model.train()
    return total / len(places)


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


MASKED = 0.15
"""The share of tokens to mask."""

NOT_PREDICTED = -100
"""The target of a token that was not masked; `F.cross_entropy` leaves it out."""


def masked_language_modeling(mask: int) -> Task:
    """Return BERT's task: predict the tokens that the token `mask` has replaced.

    Of each window the same number of tokens is masked, at random places. BERT replaces a tenth of them by
    another token and leaves a tenth as it is, for the sake of texts without masks. Here all are replaced.
    """

    def inputs(windows: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        text = windows[:, :-1]
        noise = torch.rand(text.shape, generator=generator).to(text.device)
        at = noise.argsort(dim=1)[:, : max(1, round(MASKED * text.size(1)))]
        hidden = torch.zeros_like(text, dtype=torch.bool).scatter(1, at, True)
        target = text.masked_fill(~hidden, NOT_PREDICTED)
        return text.masked_fill(hidden, mask), target

    def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        logits = model(source)
        return F.cross_entropy(
            logits.float().flatten(0, 1),
            target.flatten(),
            ignore_index=NOT_PREDICTED,
        )

    def multiply_adds(model: nn.Module) -> int:
        # A language model's query attends to half of all keys, this one to all of them.
        _, half = costs(model)["scores and sums"]
        assert isinstance(model, LanguageModel)
        return language_model_multiply_adds(model) + half * model.config.max_seq

    return Task(inputs, loss, same_examples(inputs, loss), multiply_adds, False)


def same_examples(
    inputs: Callable[[Tensor, torch.Generator], tuple[Tensor, ...]],
    loss: Callable[..., Tensor],
) -> Callable[[nn.Module, Tensor, int, int], float]:
    """Return the evaluation of a task with random inputs: they are the same each time."""

    @torch.no_grad()
    def held_out(model: nn.Module, text: Tensor, batch: int, seq: int) -> float:
        device = next(model.parameters()).device
        windows = held_out_windows(text, seq)
        examples = inputs(windows, torch.Generator().manual_seed(0))
        model.eval()
        parts = zip(*(each.to(device).split(batch) for each in examples), strict=True)
        total = sum(loss(model, *part).item() * len(part[0]) for part in parts)
        model.train()
        return total / len(windows)

    return held_out


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

    return Task(inputs, loss, same_examples(inputs, loss), multiply_adds, False)
