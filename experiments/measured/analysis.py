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
from labml_primer.primer.primer_ez import speedup_factor


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
class MeanFactor:
    """The geometric mean of factors, one per seed, with its 95% confidence interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, factors: Sequence[float], looks: int = 1) -> "MeanFactor":
        """Return the mean of one to five factors. The interval of a single one is nan."""
        mean = statistics.geometric_mean(factors)
        if len(factors) == 1:
            return cls(mean, math.nan, math.nan)
        low, high = interval(list(map(math.log, factors)), looks)
        return cls(mean, math.exp(low), math.exp(high))

    @property
    def includes_one(self) -> bool:
        """Whether the interval includes 1, so that neither a saving nor a loss is shown."""
        return self.low < 1 < self.high

    def between(self, spec: str = ".2f") -> str:
        """Write the interval alone."""
        return f"{self.low:{spec}} to {self.high:{spec}}"

    def __format__(self, spec: str) -> str:
        mean = format(self.mean, spec)
        return mean if math.isnan(self.low) else f"{mean} ({self.between(spec)})"


def over_seeds(
    runs: Sequence[Measured], combine: Callable[[Sequence[float]], float]
) -> list[float]:
    """Return one curve for all seeds: `combine` reduces the losses of an evaluation to one number."""
    return [combine(each) for each in zip(*(run["loss"] for run in runs), strict=True)]


def last_loss(run: Measured) -> float:
    """Return the final loss: on the whole reported plays, where it was measured."""
    loss: float = run.get("whole", run["loss"][-1])
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


def ahead(runs: Runs, model: str, baseline: str) -> list[bool]:
    """Return for each seed whether a model ends with a lower loss than a baseline.

    Raises `ValueError` if they differ in their seeds.
    """
    check_seeds(runs[model], runs[baseline])
    pairs = zip(runs[model], runs[baseline], strict=True)
    return [last_loss(first) < last_loss(second) for first, second in pairs]


def every_seed(runs: Runs, model: str, *others: str) -> bool:
    """Return whether a model ends with a lower loss than each of others, with every seed."""
    return all(all(ahead(runs, model, other)) for other in others)


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


def factor(baseline: Measured, run: Measured, cost: str) -> float:
    """Return the speed-up factor of a run in `cost`: `"steps"`, `"multiply_adds"` or `"seconds"`.

    A run that never reaches the baseline's final loss has no such factor. Its factor is then the inverse
    of the baseline's speed-up over the run, which is below one.
    """
    faster = speedup_factor(baseline[cost], baseline["loss"], run[cost], run["loss"])
    if math.isnan(faster):
        slower = speedup_factor(
            run[cost], run["loss"], baseline[cost], baseline["loss"]
        )
        return 1 / slower
    return faster


def until(run: Measured, end: int) -> Measured:
    """Return the run, cut off after its first `end` evaluations. They are on parts of the plays."""
    return {
        name: value[:end] if isinstance(value, list) else value
        for name, value in run.items()
        if name != "whole"
    }


def decreasing(curve: Sequence[float]) -> list[float]:
    """Return the curve that never rises and is closest to a noisy one, in least squares.

    Source: the pool-adjacent-violators algorithm of isotonic regression.
    """
    blocks: list[tuple[float, int]] = []  # the mean of so many losses
    for loss in curve:
        mean, number = loss, 1
        while blocks and blocks[-1][0] < mean:
            before, count = blocks.pop()
            mean = (mean * number + before * count) / (number + count)
            number += count
        blocks.append((mean, number))
    return [mean for mean, number in blocks for _ in range(number)]


def fitted(runs: Runs) -> Runs:
    """Return the runs with the decreasing fits of their curves."""
    return {
        model: [run | {"loss": decreasing(run["loss"])} for run in seeds]
        for model, seeds in runs.items()
    }


def seed_factors(
    baseline: Sequence[Measured], runs: Sequence[Measured], cost: str
) -> list[float]:
    """Return the factors of the seeds that both have, each over the baseline of its seed."""
    vanilla = {each["seed"]: each for each in baseline}
    return [
        factor(vanilla[run["seed"]], run, cost)
        for run in runs
        if run["seed"] in vanilla
    ]


def speedup(
    baseline: Sequence[Measured], runs: Sequence[Measured], cost: str
) -> MeanFactor:
    """Return the mean of the factors of the seeds that both have."""
    return MeanFactor.of(seed_factors(baseline, runs, cost))


def times_as_large(more: Sequence[float], less: Sequence[float]) -> MeanFactor:
    """Return how many times larger factors are than others, seed by seed."""
    return MeanFactor.of([a / b for a, b in zip(more, less, strict=True)])


def factors(runs: Runs, cost: str) -> dict[str, MeanFactor]:
    """Return the speed-up factors over the Transformer of all other models of a plan, in `cost`."""
    return {
        model: speedup(runs["transformer"], seeds, cost)
        for model, seeds in runs.items()
        if model != "transformer"
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


STUDENT = {
    1: {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776},
    4: {2: 50.923, 3: 8.860, 4: 5.392, 5: 4.315},
    5: {2: 63.657, 3: 9.925, 4: 5.841, 5: 4.604},
}
"""Student's t for a 95% confidence interval of the mean of so many values, by the number of looks."""


def interval(values: Sequence[float], looks: int = 1) -> tuple[float, float]:
    """Return the 95% confidence interval of the mean of two to five values.

    If one question was asked of several sets of runs, `looks` makes each interval wide enough that all of
    them together are right in 95% of cases (Bonferroni).
    """
    known = STUDENT[looks]
    if len(values) not in known:
        raise ValueError(
            f"t is known for two to five seeds, and here are {len(values)}"
        )
    spread = Spread.of(values)
    reach = known[len(values)] * spread.deviation / math.sqrt(len(values))
    return spread.mean - reach, spread.mean + reach


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


def widest(losses: Tensor) -> Tensor:
    """Return the range of the models' means, as a multiple of the noise.

    Losses `[..., models, seeds]` give `[...]`.
    """
    means = losses.mean(-1)
    return (means.amax(-1) - means.amin(-1)) / noise(losses)


def critical_difference(losses: Tensor) -> Tensor:
    """Return the largest difference between two models' means that noise alone explains, at 95%.

    It is the 95% quantile of `widest` in 20,000 simulated tables of pure noise, scaled by the noise of
    `losses` `[models, seeds]`.
    """
    generator = torch.Generator().manual_seed(0)
    tables = torch.randn(20_000, *losses.shape, generator=generator)
    return widest(tables).quantile(0.95) * noise(losses)
