"""How long a training step of each model takes: all models of a plan in one process, in turns.

What a run took depends on what else the machine did then, and on the code of that day. So a run's time is
its steps times what is measured here.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.plan import RESULTS, STEP_TIMES, Plan, read_step_times
from labml_primer.training import median_seconds
from labml_primer.training.long_run import Training, surroundings, write_record
from labml_primer.training.parallel import Workers


def measure(plan: Plan, built: Path) -> dict[str, Any]:
    """The seconds of each model's step, forward, backward and optimizer, and where they were measured."""
    workers = Workers()
    # Rates cost nothing, and with the lowest nothing diverges.
    steps = {
        name: Training(replace(run, rate=min(plan.rates)), built, workers).step
        for name, run in plan.models.items()
    }
    return surroundings(workers) | {"seconds": median_seconds(steps)}


def measure_missing(
    plans: Iterable[Plan], built: Path, results: Path = RESULTS
) -> None:
    """Measures the plans that have a model whose step is not, and records each as it ends."""
    known = read_step_times(results)
    for plan in plans:
        measured = known.get(plan.name, {}).get("seconds", {})
        if measured.keys() != plan.models.keys():
            print(f"{plan.name}: measuring a step of {len(plan.models)} models")
            known[plan.name] = measure(plan, built)
            write_record(results / STEP_TIMES, known)
