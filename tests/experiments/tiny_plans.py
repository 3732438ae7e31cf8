"""Small plans of small models, and records of their runs."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from runs import SIZES

from experiments.harness.configuration import Run
from experiments.harness.plan import Plan
from experiments.records.runs import REPORTED_PLAYS, TUNING_PLAY, evaluated, write_run

TINY = Run(model=SIZES, steps=4, batch=4, seq=16, warmup=4, evaluations=2)
PLAN = Plan("tiny", "A small one", 1, 2, (1e-3, 1e9), 2, {"plain": TINY})
WIDER = replace(TINY, model=SIZES | {"d_ff": 64})
OTHER = replace(PLAN, name="other", seeds=3, models={"same": TINY, "wider": WIDER})


def record_of(run: Run, tuning: float = 1.0, reported: float = 1.0) -> dict[str, Any]:
    losses = {TUNING_PLAY: tuning} | dict.fromkeys(REPORTED_PLAYS, reported)
    steps = evaluated(run.steps, run.evaluations)
    held_out = {play: [9.0] * (len(steps) - 1) + [end] for play, end in losses.items()}
    costs = dict.fromkeys(("steps", "multiply_adds", "seconds"), steps)
    return {
        "configuration": asdict(run),
        "digest": run.digest,
        "diverged_at_step": None,
        "parameters": 1,
        "curve": {"held_out": held_out} | costs,
    }


def found(*records: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["digest"]: each for each in records}


def write_plan(plan: Plan, folder: Path) -> None:
    """Record all runs of a plan."""
    trials = {name: record_of(run) for name, run in plan.tuning().items()}
    runs = plan.runs(found(*trials.values())).items()
    for name, each in (trials | {name: record_of(run) for name, run in runs}).items():
        write_run(plan.name, name, each, folder)


def as_toml(plan: Plan) -> str:
    """Return the file of a plan."""
    lines = [f'title = "{plan.title}"', f"turn = {plan.turn}", f"seeds = {plan.seeds}"]
    lines += ["[tuning]", f"rates = {list(plan.rates)}", f"steps = {plan.tuning_steps}"]
    lines += ["[shared]"]
    for name, run in plan.models.items():
        lines += [f"[models.{name}]"]
        lines += [
            f"{key} = {json.dumps(value)}"
            for key, value in asdict(run).items()
            if key != "model" and value != getattr(Run(), key)
        ]
        lines += [f"[models.{name}.model]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in run.model.items()]
    return "\n".join(lines)
