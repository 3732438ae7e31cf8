"""How long a training step of each model takes: all models of all plans in one process, in turns.

What a run took depends on what else the machine did then, and on the code of that day. So a run's time is
its steps times what is measured here.
"""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from experiments.harness.configuration import Run
from experiments.harness.long_run import Training, surroundings
from experiments.harness.parallel import Workers
from experiments.harness.plan import Plan
from experiments.records import (
    RESULTS,
    STEP_TIMES,
    Record,
    read_step_times,
    write_record,
)
from labml_primer.training import median_seconds


def stand_in(run: Run) -> Run:
    """The run that stands for all whose steps take as long: seed, rate and length change nothing of that."""
    return replace(run, seed=0, rate=1e-3, steps=100, evaluations=1)


def measure(plans: Collection[Plan], built: Path) -> Record:
    """The seconds of a step, by plan and model, and where they were measured.

    What two plans have in common is measured once.
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
    """Measures all plans anew where one has a model whose step is not measured."""
    known = read_step_times(results)
    if any(known.get(plan.name, {}).keys() != plan.models.keys() for plan in plans):
        write_record(results / STEP_TIMES, measure(plans, built))
