"""The runs that several measured chapters compare, with the models' names, and tables of them.

Factors are in multiply-adds, and averaged as logarithms.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.measured.analysis import (
    Difference,
    difference,
    final_loss,
    last_loss,
    times_less,
)
from experiments.measured.tables import SourcedTable
from experiments.records.counts import best_counts
from experiments.records.query import Measured, Runs, read_runs

MODELS = {
    "transformer": "Transformer",
    "squared-relu": "squared ReLU alone",
    "mdha": "MDHA alone",
    "primer-ez": "Primer-EZ",
    "pp": "Transformer++",
}
WITH_PRIMER = MODELS | {"primer": "Primer"}

SETTINGS = {
    ("characters", "learned"): 1200,
    ("characters", "rotary"): 1200,
    ("subwords", "learned"): 1200,
    ("subwords", "rotary"): 1200,
    ("code", "rotary"): 2400,
}
"""Texts and positions, with the steps of their runs."""

SHORT = (300, 400, 600)
"""The steps of the runs in which the rates of these settings were chosen."""

KINDS = {
    "learned": "learned table",
    "sinusoidal": "sines",
    "t5": "T5's buckets",
    "rotary": "rotary",
}

MODERN = {
    "modern": "none",
    "squared-relu": "squared ReLU for SwiGLU",
    "mdha": "MDHA",
    "mdha-same-rate": "MDHA, the others' rate",
    "primer-ez": "both, Primer-EZ",
    "canon-b": "Canon-B",
    "token-shift": "token shift",
}


def read_setting(text: str, positions: str) -> Runs:
    """Return the runs of a setting, of the models that it has."""
    steps = SETTINGS[text, positions]
    return read_runs(
        model=MODELS, text=text, positions=positions, steps=steps, tuned=SHORT
    )


def read_modern() -> Runs:
    """Return the runs of the modern baseline and of its changes, of MDHA with a second rate as well."""
    changes = read_runs(plan="today-modern") | {
        "mdha-same-rate": read_runs(model="modern-mdha", rate=0.004)["modern-mdha"]
    }
    return {model.removeprefix("modern-"): runs for model, runs in changes.items()}


def read_rates() -> dict[int, Runs]:
    """Return the runs with rates chosen in so many steps, on characters with rotary positions.

    Four of the six models chose the same rate in both, so their runs are the same.
    """
    shorter = read_runs(plan="today-characters", model=WITH_PRIMER)
    changed = read_runs(plan="today-rates", model=["squared-relu", "primer-ez"])
    return {300: shorter, 1200: shorter | changed}


def read_lengths() -> dict[int, Runs]:
    """Return the runs with rotary positions on characters by number of steps, with the same rates in both."""

    def trained(steps: int, rate: float, models: Iterable[str]) -> Runs:
        return read_runs(
            model=models,
            text="characters",
            positions="rotary",
            steps=steps,
            schedule="inverse square root",
            rate=rate,
        )

    return {
        steps: trained(steps, 0.002, MODELS) | trained(steps, 0.004, ["primer"])
        for steps in (1200, 4800)
    }


def read_annealed(text: str = "characters") -> Runs:
    """Return the ends of the runs whose rate falls to zero: of Primer-EZ also those of half as many steps."""
    full, half = (
        read_runs(text=text, schedule="linear", steps=steps, ends=True)
        for steps in (4800, 2400)
    )
    return full | {"primer-ez-half": half["primer-ez"]}


@dataclass(frozen=True)
class Ground:
    """Models that were trained in the same way, with the same seeds.

    If their rate falls to zero, a learning curve does not say how a shorter run would have ended. `half` are
    Primer-EZ's runs of half as many steps then.
    """

    runs: Runs
    half: Sequence[Measured] = ()

    def factor(self, model: str, over: str, nats: float) -> float:
        """Return how many times fewer multiply-adds a model needs, if it ends `nats` below another.

        It is nan if only the ends of the runs say something, and none had half as many steps.
        """
        spent = self.runs[over][0], self.runs[model][0]
        if len(spent[1]["loss"]) > 1:
            return times_less(self.runs, model, over, nats, "multiply_adds")
        if not self.half or model != "primer-ez":
            return math.nan
        full = self.runs[model][: len(self.half)]
        halving = final_loss(self.half).mean - final_loss(full).mean
        other, own = (run["multiply_adds"][-1] for run in spent)
        ratio: float = other / own * 2 ** (nats / halving)
        return ratio

    def below_counts(self, model: str) -> float:
        """Return by how many nats a model ends below the counts of what it read."""
        return below_counts(self.runs[model])


LEADING = ("transformer", "pp", "primer-ez")

BEYOND = ("characters, annealed", "Python code", "subwords, annealed")
"""The grounds on which Primer-EZ predicts better than the strongest counts of what it read."""


def read_grounds() -> dict[str, Ground]:
    """Return all grounds with rotary positions on which the leading models were trained, with five seeds."""
    annealed = {text: read_annealed(text) for text in ("characters", "subwords")}
    grounds = {
        f"{text}, annealed": Ground(
            {model: runs[model] for model in LEADING}, runs["primer-ez-half"]
        )
        for text, runs in annealed.items()
    }
    grounds["Python code"] = Ground(read_setting("code", "rotary"))
    grounds["characters, 4,800 steps"] = Ground(read_lengths()[4800])
    grounds["subwords, 1,200 steps"] = Ground(
        read_runs(model=WITH_PRIMER, text="subwords", positions="rotary", steps=1200)
    )
    grounds["characters, 1,200 steps"] = Ground(read_rates()[1200])
    return grounds


def together(grounds: Iterable[Ground]) -> Runs:
    """Return the leading models' final losses as the mean of several grounds, seed by seed."""
    each = [ground.runs for ground in grounds]
    return {
        model: [
            {"seed": runs[0]["seed"], "whole": statistics.fmean(map(last_loss, runs))}
            for runs in zip(*(found[model] for found in each), strict=True)
        ]
        for model in LEADING
    }


@dataclass(frozen=True)
class Pair:
    """Two models that a page compares on a ground."""

    what: str
    ground: Ground
    model: str
    over: str = "transformer"

    def found(self, comparisons: int) -> Difference:
        """Return by how many nats the model ends below the other."""
        return difference(self.ground.runs, self.model, self.over, comparisons)

    def cells(self, comparisons: int) -> list[str]:
        """Write the difference, and its worth in compute if it is more than noise explains."""
        found = self.found(comparisons)
        worth = self.ground.factor(self.model, self.over, found.nats)
        known = found.shown and not math.isnan(worth)
        return [f"{found:.3f}", f"{worth:.2f}" if known else "-"]


def pair_table(title: str, pairs: Iterable[Pair], comparisons: int) -> SourcedTable:
    """Return a table of differences. `comparisons` is the number that the page makes."""
    rows = [[pair.what, *pair.cells(comparisons)] for pair in pairs]
    heads = {"comparison": "", "ends lower by": "nats", "times less": "compute"}
    return SourcedTable(title, "Our runs", heads, rows)


def loss_of_counts(run: Measured) -> float:
    """Return the loss of the best counts of what a run read, on what its final loss was measured on."""
    reading = "whole" if "whole" in run else "windows"
    return best_counts(run["data"], run["steps"][-1], reading)[1]


def below_counts(runs: Sequence[Measured]) -> float:
    """Return by how many nats the mean final loss of runs is below the counts; negative if it is above."""
    return loss_of_counts(runs[0]) - statistics.fmean(map(last_loss, runs))
