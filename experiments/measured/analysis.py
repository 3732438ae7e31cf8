"""Statistics of recorded runs: means over seeds, speed-up factors, and how much of a difference is noise.

The chapter "How it was measured" explains the formulas.
"""

import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.records.query import Measured, Runs


@dataclass(frozen=True)
class Spread:
    """A mean over seeds, with their standard deviation."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of one or more values. The deviation of a single value is nan."""
        deviation = statistics.stdev(values) if len(values) > 1 else math.nan
        return cls(statistics.fmean(values), deviation, len(values))

    def __format__(self, spec: str) -> str:
        mean = format(self.mean, spec)
        deviation = format(self.deviation, spec.removeprefix("+"))
        return mean if self.count == 1 else f"{mean} ± {deviation}"


@dataclass(frozen=True)
class Difference:
    """By how many nats a model ends below another: the mean over seeds, and what noise explains of it.

    It is `shown` if it is larger than the limit, in either direction.
    """

    nats: float
    limit: float
    seeds: tuple[float, ...]

    @property
    def shown(self) -> bool:
        """Whether the difference is more than noise explains."""
        return abs(self.nats) > self.limit

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the 95% confidence interval."""
        return self.nats - self.limit, self.nats + self.limit

    def __format__(self, spec: str) -> str:
        return f"{self.nats:{spec}} ± {self.limit:{spec.removeprefix('+')}}"


def over_seeds(
    runs: Sequence[Measured], combine: Callable[[Sequence[float]], float]
) -> list[float]:
    """Return one curve for all seeds: `combine` reduces the losses of an evaluation to one number."""
    return [combine(each) for each in zip(*(run["loss"] for run in runs), strict=True)]


def last_loss(run: Measured) -> float:
    """Return the final loss: on the whole reported plays, where it was measured."""
    loss: float = run["whole"] if "whole" in run else run["loss"][-1]
    return loss


def final_loss(runs: Sequence[Measured]) -> Spread:
    """Return the spread of the runs' final losses."""
    return Spread.of(list(map(last_loss, runs)))


def check_seeds(first: Sequence[Measured], second: Sequence[Measured]) -> None:
    """Raise `ValueError` unless two models have runs with the same seeds, in the same order."""
    seeds = [[run["seed"] for run in runs] for runs in (first, second)]
    if seeds[0] != seeds[1]:
        raise ValueError(f"the models differ in their seeds, {seeds[0]} and {seeds[1]}")


def gain(runs: Runs, model: str, baseline: str) -> float:
    """Return by how many nats a model's mean final loss is below a baseline's.

    Raises `ValueError` if they differ in their seeds.
    """
    check_seeds(runs[model], runs[baseline])
    return final_loss(runs[baseline]).mean - final_loss(runs[model]).mean


def every_seed(runs: Runs, model: str, other: str) -> bool:
    """Return whether a model ends with a lower loss than another, with every seed.

    Raises `ValueError` if they differ in their seeds.
    """
    check_seeds(runs[model], runs[other])
    pairs = zip(runs[model], runs[other], strict=True)
    return all(last_loss(first) < last_loss(second) for first, second in pairs)


def setting(models: Collection[Sequence[Measured]]) -> str:
    """Describe the runs behind a figure: number of seeds, data and compute."""
    seeds = list(map(len, models))
    every = [run for runs in models for run in runs]
    *some, last = sorted({run["data"] for run in every})
    data = f"{', '.join(some)} and {last}" if some else last
    spent = [run["multiply_adds"][-1] / 1e12 for run in every]
    return f"{extent(seeds)} seeds, {data}, {extent(spent, '.1f')} trillion multiply-adds each"


def extent(values: Sequence[float], spec: str = "") -> str:
    """Return "minimum to maximum", or the value itself if all values are equal."""
    return " to ".join(dict.fromkeys(format(end(values), spec) for end in (min, max)))


def until(run: Measured, end: int) -> Measured:
    """Return the run, cut off after its first `end` evaluations. They are on parts of the plays."""
    return {
        name: value[:end] if isinstance(value, list) else value
        for name, value in run.items()
        if name != "whole"
    }


def relative_perplexity(
    baseline: Sequence[Measured], runs: Sequence[Measured]
) -> list[float]:
    """Return each run's final perplexity, in percent of that of the baseline with the same seed."""
    ends = {run["seed"]: last_loss(run) for run in baseline}
    return [
        100 * math.exp(last_loss(run) - ends[run["seed"]])
        for run in runs
        if run["seed"] in ends
    ]


def final_losses(runs: Runs) -> Tensor:
    """Return the final losses `[models, seeds]`; raise `ValueError` if the models differ in their seeds."""
    for each in runs.values():
        check_seeds(each, next(iter(runs.values())))
    return torch.tensor([list(map(last_loss, each)) for each in runs.values()])


def noise(losses: Tensor) -> Tensor:
    """Return the standard deviation that remains after subtracting the means of models and of seeds.

    Losses `[..., models, seeds]` give `[...]`, in the same unit.
    """
    models, seeds = losses.shape[-2:]
    of_models, of_seeds = losses.mean(-1, keepdim=True), losses.mean(-2, keepdim=True)
    left = losses - of_models - of_seeds + losses.mean((-2, -1), keepdim=True)
    return (left.square().sum((-2, -1)) / ((models - 1) * (seeds - 1))).sqrt()


def student(confidence: float, freedom: int) -> float:
    """Return `t` such that Student's variable is within ±t with this probability.

    Source: Abramowitz and Stegun, 26.7.3 and 26.7.4, for a whole number of degrees of freedom.
    """

    def within(angle: float) -> float:
        odd = freedom % 2
        term = math.cos(angle) if odd else 1.0
        total = 0.0
        for k in range(2 + odd, freedom + 1, 2):
            total += term
            term *= math.cos(angle) ** 2 * (k - 1) / k
        total *= math.sin(angle)
        return 2 / math.pi * (angle + total) if odd else total

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < confidence else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


def limit(losses: Tensor, comparisons: int = 1) -> float:
    """Return the largest difference between two models' means that noise explains, at 95%.

    `losses` are `[models, seeds]`. The models share one standard deviation of the noise. With several
    `comparisons`, each limit is so wide that all of them together are right in 95% of cases (Bonferroni).
    """
    models, seeds = losses.shape
    t = student(1 - 0.05 / comparisons, (models - 1) * (seeds - 1))
    return t * float(noise(losses)) * math.sqrt(2 / seeds)


def difference(runs: Runs, model: str, over: str, comparisons: int = 1) -> Difference:
    """Return by how many nats a model ends below another, seed by seed.

    The noise is that of all `runs`, which have the same seeds. `comparisons` is the number that a page makes.
    """
    pairs = zip(runs[over], runs[model], strict=True)
    return Difference(
        gain(runs, model, over),
        limit(final_losses(runs), comparisons),
        tuple(last_loss(other) - last_loss(run) for other, run in pairs),
    )


def times_less(runs: Runs, model: str, over: str, nats: float, cost: str) -> float:
    """Return how many times less a model costs than another, if it ends `nats` below it.

    Its smooth learning curve says at which cost it is so many nats above its end. If it ends above the other,
    the other's curve says so, and the result is below 1. It is nan beyond the curve. `cost` is
    `"multiply_adds"` or `"seconds"`.
    """
    at_the_end = runs[over][0][cost][-1] / runs[model][0][cost][-1]
    if nats < 0:
        return at_the_end * share_of_cost(runs[over], -nats, cost)
    return at_the_end / share_of_cost(runs[model], nats, cost)


def share_of_cost(runs: Sequence[Measured], nats: float, cost: str) -> float:
    """Return the share of a run's cost after which its learning curve is `nats` above its end; nan if never.

    A cubic in the logarithm of the cost is fitted to the mean curve, without its first eighth. Unlike the
    first evaluation below a loss, it is not early if the curve is noisy.
    """
    curve = over_seeds(runs, statistics.fmean)
    eighth = len(curve) // 8
    spent = torch.tensor(runs[0][cost][eighth:], dtype=torch.float64)
    powers = (spent / spent[-1]).log()[:, None] ** torch.arange(4)
    loss = torch.tensor(curve[eighth:], dtype=torch.float64)[:, None]
    cubic = torch.linalg.lstsq(powers, loss).solution
    grid = torch.linspace(0, float(powers[0, 1]), 2000, dtype=torch.float64)
    above = (grid[:, None] ** torch.arange(4) @ cubic)[:, 0] - cubic[0, 0]
    (reached,) = torch.where(above >= nats)
    return float(grid[reached[0]].exp()) if len(reached) else math.nan
