"""Measure a training step of each model: all models of all plans in one process, in turns.

The time that a run itself took depends on the machine's load and on the code of that day. So a run's
recorded time is its number of steps times the step time measured here.
"""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from experiments.harness.configuration import Run
from experiments.harness.long_run import Training, surroundings
from experiments.harness.parallel import Workers
from experiments.harness.plan import Plan
from experiments.records.lines import write_json
from experiments.records.runs import (
    RESULTS,
    STEP_TIMES,
    RunRecord,
    read_step_times,
)
from labml_primer.training import median_seconds


def stand_in(run: Run) -> Run:
    """Return one run for all with the same step time: it does not depend on seed, rate or length."""
    return replace(run, seed=0, rate=1e-3, steps=100, evaluations=1, whole=False)


def measure(plans: Collection[Plan], built: Path) -> RunRecord:
    """Return the seconds of a step by plan and model, with the commit, versions and machine.

    A model that several plans share is measured once.
    """
    workers = Workers()
    runs = [stand_in(run) for plan in plans for run in plan.models.values()]
    known = {run.digest: run for run in runs}
    print(f"measuring a step of {len(known)} models, in turns")
    taken = median_seconds(
        {digest: Training(run, built, workers).step for digest, run in known.items()}
    )
    seconds = {
        plan.name: {
            name: taken[stand_in(run).digest] for name, run in plan.models.items()
        }
        for plan in plans
    }
    return surroundings(workers) | {"seconds": seconds}


def measure_missing(
    plans: Collection[Plan], built: Path, results: Path = RESULTS
) -> None:
    """Measure all timed plans again if one has a model without a step time."""
    plans = [plan for plan in plans if plan.timed]
    known = read_step_times(results)
    if any(known.get(plan.name, {}).keys() != plan.models.keys() for plan in plans):
        write_json(results / STEP_TIMES, measure(plans, built))
