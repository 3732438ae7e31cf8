"""What the records of long runs come to: functions on what `gathered.json` has of each run."""

import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from experiments.records import Gathered
from labml_primer.primer.primer_ez import speedup_factor


@dataclass(frozen=True)
class Spread:
    """A mean over seeds, and how far single seeds are from it: their standard deviation."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of one value or more. One says nothing of the deviation, which is then not a number."""
        deviation = statistics.stdev(values) if len(values) > 1 else math.nan
        return cls(statistics.fmean(values), deviation, len(values))

    def __format__(self, spec: str) -> str:
        mean, deviation = format(self.mean, spec), format(self.deviation, spec)
        return mean if self.count == 1 else f"{mean} ± {deviation}"


def over_seeds(
    runs: Sequence[Gathered], told: Callable[[Sequence[float]], float]
) -> list[float]:
    """The losses of a model's seeds as one curve: `told` makes one number of those of an evaluation."""
    return [told(each) for each in zip(*(run["loss"] for run in runs), strict=True)]


def final_loss(runs: Sequence[Gathered]) -> Spread:
    """What the runs of a model ended with."""
    return Spread.of([run["loss"][-1] for run in runs])


def setting(models: Collection[Sequence[Gathered]]) -> str:
    """What a figure of these models rests on, in a few words: seeds, data and compute."""
    seeds = list(map(len, models))
    every = [run for runs in models for run in runs]
    data = " and ".join(sorted({run["data"] for run in every}))
    spent = [run["multiply_adds"][-1] / 1e12 for run in every]
    return f"{extent(seeds)} seeds, {data}, {extent(spent, '.1f')} trillion multiply-adds each"


def extent(values: Sequence[float], spec: str = "") -> str:
    """The least and the most of them, or what all of them are."""
    return " to ".join(dict.fromkeys(format(end(values), spec) for end in (min, max)))


def factor(baseline: Gathered, run: Gathered, cost: str) -> float:
    """The speed-up factor of a run, counted in `cost`: `"steps"`, `"multiply_adds"` or `"seconds"`.

    A run that never gets as good as the baseline has no such factor. Then the question is turned round:
    one over how much faster the baseline was as good as the run.
    """
    faster = speedup_factor(baseline[cost], baseline["loss"], run[cost], run["loss"])
    if math.isnan(faster):
        slower = speedup_factor(
            run[cost], run["loss"], baseline[cost], baseline["loss"]
        )
        return 1 / slower
    return faster


def until(run: Gathered, end: int) -> Gathered:
    """The run as it was after its first `end` evaluations."""
    return {
        name: value[:end] if isinstance(value, list) else value
        for name, value in run.items()
    }


def speedup(
    baseline: Sequence[Gathered], runs: Sequence[Gathered], cost: str
) -> Spread:
    """The factors of all seeds that both have, each against the baseline of its own seed."""
    vanilla = {each["seed"]: each for each in baseline}
    return Spread.of(
        [
            factor(vanilla[run["seed"]], run, cost)
            for run in runs
            if run["seed"] in vanilla
        ]
    )
