"""Scale a plan down, to see in about two minutes that each of its models trains, and how it is recorded.

All models keep their sizes and their text. Each has one learning rate, one seed, and as many steps as fit.
The losses say nothing of the models.
"""

from dataclasses import replace

from experiments.harness.estimate import EVALUATION, step_seconds
from experiments.harness.plan import Plan
from experiments.harness.step_times import stand_in

SECONDS = 120
START = 6
"""Seconds that a run takes on a core besides its steps: its process starts, and takes its fingerprint."""


def quick(plan: Plan, cores: int, seconds: float = SECONDS) -> Plan:
    """Return a plan of the same models whose runs take about `seconds` on this machine."""
    models = plan.models.values()
    one = sum(step_seconds(stand_in(run)) for run in models)  # a step of each
    left = seconds * cores - 2 * START * len(models)
    # A short run of `steps` steps, and a run of twice as many, each with one evaluation.
    steps = max(2, int((left / one - 2 * EVALUATION) / 3))
    steps = min(steps, plan.tuning_steps)
    return replace(
        plan,
        seeds=1,
        rates=plan.rates[len(plan.rates) // 2 :][:1],
        tuning_steps=steps,
        models={
            name: replace(run, steps=2 * steps, evaluations=1, whole=False)
            for name, run in plan.models.items()
        },
        timed=False,
    )
