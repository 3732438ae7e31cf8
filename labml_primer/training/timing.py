"""How long things take, side by side."""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn


def median_seconds(
    functions: Mapping[str, Callable[[], object]], rounds: int = 15
) -> dict[str, float]:
    """The median processor time of each of `functions` over `rounds` calls.

    They take turns, so that a machine that slows down slows all of them, and each has one
    call beforehand that does not count.
    """
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if turn:
                taken[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def there_and_back_again(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """A forward pass and its gradients."""
    module(*inputs).sum().backward()


def added_cost(base: nn.Module, variant: nn.Module, *inputs: Tensor) -> str:
    """What `variant` costs more than `base` on `inputs`: parameters, and time there and back."""
    before, after = (
        sum(parameter.numel() for parameter in module.parameters())
        for module in (base, variant)
    )
    taken = median_seconds(
        {
            "base": partial(there_and_back_again, base, inputs),
            "variant": partial(there_and_back_again, variant, inputs),
        }
    )
    return (
        f"{before:,} {'+' if after >= before else '-'} {abs(after - before):,} parameters, "
        f"{taken['variant'] / taken['base']:.2f} times the time"
    )
