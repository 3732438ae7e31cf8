"""Estimate how long the missing runs of plans will take on this machine."""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from statistics import median

import torch

from experiments.harness.command import hours
from experiments.harness.configuration import Run
from experiments.harness.fingerprint import is_current
from experiments.harness.plan import Plan
from experiments.harness.start import this_worker, training_of
from experiments.harness.step_times import read, stand_in
from experiments.records.runs import RESULTS, RunRecord, read_results

EVALUATION = 4
"""Cost of an evaluation in training steps: it has twelve forward passes, and a step costs about three."""

WHOLE = 50
"""Cost of reading all held-out plays once, in training steps."""


@cache
def step_seconds(run: Run) -> float:
    """Measure the CPU time of a training step on this machine, in seconds."""
    training = training_of(run, Path(), this_worker())
    training.step()
    before = training.seconds
    for _ in range(3):
        training.step()
    return (training.seconds - before) / 3


def in_steps(run: Run) -> int:
    """Return the steps of a run, with its evaluations as the steps that take as long."""
    return run.steps + EVALUATION * run.evaluations + WHOLE * run.whole


def expected_seconds(run: Run) -> float:
    """Estimate the seconds that a run will take on one core of this machine, by measuring a step."""
    return in_steps(run) * step_seconds(stand_in(run))


@cache
def size(run: Run) -> int:
    """Return what the time of a step grows with: the weights of a model times the tokens of a step."""
    vocab_size = 2048 if run.data == "subwords" else 256
    with torch.device("meta"):
        model = run.build(vocab_size)
    return sum(p.numel() for p in model.parameters()) * run.batch * run.seq


def by_size(plans: Iterable[Plan], results: Path) -> Callable[[Run], float]:
    """Return a function that estimates the seconds of a run from recorded steps, or by measuring."""
    seconds = read(results).get("seconds", {})
    paces = [
        seconds[plan.name][name] / size(stand_in(run))
        for plan in plans
        for name, run in plan.models.items()
        if name in seconds.get(plan.name, {})
    ]
    if not paces:
        return expected_seconds
    pace = median(paces)
    return lambda run: in_steps(run) * size(stand_in(run)) * pace


def recorded(plan: Plan, results: Path = RESULTS) -> dict[str, RunRecord]:
    """Return the records of a plan's runs that the code of today would repeat, by digest."""
    found = unchecked(plan, results)
    return {digest: each for digest, each in found.items() if is_current(each)}


def unchecked(plan: Plan, results: Path = RESULTS) -> dict[str, RunRecord]:
    """Return the records of a plan's runs by digest, whatever the code of today computes."""
    planned = plan.digests()
    return {d: each for d, each in read_results(results).items() if d in planned}


def announce(
    plans: Iterable[Plan], number: int, results: Path = RESULTS, check: bool = True
) -> float:
    """Print how long the missing runs of each plan will take, and return the seconds on one core.

    Without `check`, records are taken as they are, and no step is measured: that takes minutes.
    """
    plans = list(plans)
    found = recorded if check else unchecked
    cost_of = expected_seconds if check else by_size(plans, results)
    whole, seen = 0.0, set[str]()
    for plan in plans:
        cost, counts = 0.0, []
        for part in plan.missing(found(plan, results)):
            # A run that two plans share counts once.
            runs = {run.digest: run for run in part.values() if run.digest not in seen}
            seen |= runs.keys()
            counts.append(len(runs))
            cost += sum(map(cost_of, runs.values()))
        whole += cost
        print(
            f"{plan.name:12s}{counts[0]:4d} short runs for rates {counts[1]:4d} runs "
            f"{hours(cost):>8s} on a core  {plan.title}"
        )
    print(f"Missing: {hours(whole)} on a core, {hours(whole / number)} on {number}")
    return whole
