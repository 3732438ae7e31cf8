"""The best width for a budget, and what a model saves if each architecture has its best.

The chapter "How it was measured" explains the formulas.
"""

import math
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.records.query import Measured, read_runs
from labml_primer.primer.primer_ez import speedup_factor

WIDTHS = (32, 48, 64, 96, 128)

Sizes = Mapping[int, list[Measured]]
"""The runs of an architecture, one per seed, by width."""


def read_sizes(models: Iterable[str], **wanted: Any) -> dict[str, Sizes]:
    """Return the runs of each model at each width, as `read_runs` finds them."""
    return {
        model: {
            width: read_runs(model=model, width=width, **wanted)[model]
            for width in WIDTHS
        }
        for model in models
    }


def loss_at(run: Measured, budget: float, cost: str) -> float:
    """Return a run's loss at a budget of `cost`, interpolated linearly between evaluations.

    Each point of a curve is the end of a shorter run, because the learning rate falls without knowing
    when a run will end. Outside the evaluated budgets the loss is infinite.
    """
    spent: list[float] = run[cost]
    loss: list[float] = run["loss"]
    if not spent[0] <= budget <= spent[-1]:
        return math.inf
    i = max(1, bisect_left(spent, budget))
    share = (budget - spent[i - 1]) / (spent[i] - spent[i - 1])
    return loss[i - 1] + share * (loss[i] - loss[i - 1])


def best_width(sizes: Sizes, budget: float, cost: str) -> int:
    """Return the width with the lowest loss at a budget, averaged over its seeds."""

    def mean(width: int) -> float:
        return statistics.fmean(loss_at(run, budget, cost) for run in sizes[width])

    return min(sizes, key=mean)


def frontier(sizes: Sizes, budgets: Sequence[float], cost: str) -> list[Measured]:
    """Return a curve for each seed: at each budget, its loss with the width that is best there.

    All seeds have the same width at a budget, the best in their mean. If each took its own best, noise
    would pass for quality. Raises `ValueError` if the widths differ in their seeds.
    """
    if len({tuple(run["seed"] for run in runs) for runs in sizes.values()}) != 1:
        raise ValueError("the widths differ in their seeds")
    best = [sizes[best_width(sizes, budget, cost)] for budget in budgets]
    return [
        {
            "cost": list(budgets),
            "loss": [
                loss_at(runs[seed], budget, cost)
                for runs, budget in zip(best, budgets, strict=True)
            ],
        }
        for seed in range(len(best[0]))
    ]


def full_budget(sweep: Mapping[str, Sizes], cost: str) -> float:
    """Return the budget that the runs of all widths except one have spent."""
    widths = next(iter(sweep.values()))
    ends = (
        min(run[cost][-1] for sizes in sweep.values() for run in sizes[width])
        for width in widths
    )
    return sorted(ends)[1]


def budgets_up_to(end: float, doublings: float) -> list[float]:
    """Return six budgets for each doubling; the last one is `end`."""
    return [end * 2 ** (n / 6 - doublings) for n in range(round(6 * doublings) + 1)]


def saved(budget: float, loss: float, better: Measured) -> float:
    """Return how many times less than `budget` another frontier needs for the loss that it reached.

    Raises `ValueError` for a loss outside the measured range.
    """
    begin, least = better["loss"][0], min(better["loss"])
    if not least <= loss < begin < math.inf:
        raise ValueError(
            f"a loss of {loss:.3f} is not within {least:.3f} to {begin:.3f}"
        )
    return speedup_factor([budget], [loss], better["cost"], better["loss"])


def over_budgets(factors: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of the factors at all budgets, for each seed."""
    return [*map(statistics.geometric_mean, zip(*factors, strict=True))]


def savings_at_budgets(
    worse: Sequence[Measured], better: Sequence[Measured]
) -> list[list[float]]:
    """Return the factors at each budget of the worse frontiers, seed by seed."""
    return [
        [
            saved(first["cost"][at], first["loss"][at], second)
            for first, second in zip(worse, better, strict=True)
        ]
        for at in range(len(worse[0]["loss"]))
    ]
