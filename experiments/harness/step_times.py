"""Measure a training step of each model of a plan, in turns, and record the seconds.

The time that a run itself took depends on the machine's load and on the code of that day. So a run's
recorded time is its number of steps times the step time measured here.

The file of step times has the `seconds` of a step by plan and model, and the commit, versions and machine
that measured them. `models` has the beginning of the digest of each measured model, by plan and name, and
`later` lists the measurements that were added, each with its own commit, versions and machine. A digest
covers the configuration, not the code: whether the code still computes the same is what the fingerprints of
the runs show, and a faster way to compute it does not change the recorded times.
"""

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from experiments.harness.configuration import Run
from experiments.harness.plan import Plan
from experiments.harness.provenance import surroundings
from experiments.harness.training import Training
from experiments.records.lines import write_json
from experiments.records.runs import RESULTS, STEP_TIMES, RunRecord
from labml_primer.training import median_seconds


def stand_in(run: Run) -> Run:
    """Return one run for all with the same step time: it does not depend on seed, rate or length."""
    return replace(run, seed=0, rate=1e-3, steps=100, evaluations=1, whole=False)


def key(run: Run) -> str:
    """Return a text that two runs share if their steps take the same time."""
    return stand_in(run).digest[:8]


def measure_missing(
    plans: Collection[Plan], built: Path, results: Path = RESULTS
) -> None:
    """Measure those models of these plans that have no step time, and add them to the recorded ones.

    No recorded number changes. Seconds of two machines cannot be compared, so the first recorded model of a
    plan is measured again, next to the missing ones, and theirs are scaled by the ratio of its recorded
    seconds to those of today; without one, they are as measured here. A model that several of the plans share
    is measured once.
    """
    known = read(results)
    lacking = {plan.name: missing_models(plan, known) for plan in plans if plan.timed}
    plans = [plan for plan in plans if lacking.get(plan.name)]
    if not plans:
        return
    rulers = {
        plan.name: next((m for m in plan.models if m not in lacking[plan.name]), None)
        for plan in plans
    }
    models = {
        key(run): stand_in(run)
        for plan in plans
        for name, run in plan.models.items()
        if name in lacking[plan.name] or name == rulers[plan.name]
    }
    print(f"measuring a step of {len(models)} models, in turns")
    taken = median_seconds(
        {each: Training(run, built).begin().step for each, run in models.items()}
    )
    seconds, digests = known.setdefault("seconds", {}), known.setdefault("models", {})
    for plan in plans:
        times, scale = seconds.setdefault(plan.name, {}), 1.0
        if (name := rulers[plan.name]) is not None:
            scale = times[name] / taken[key(plan.models[name])]
        for name in lacking[plan.name]:
            digest = key(plan.models[name])
            times[name] = scale * taken[digest]
            digests.setdefault(plan.name, {})[name] = digest
    here = surroundings()
    if "machine" in known:
        added = {plan.name: lacking[plan.name] for plan in plans}
        known.setdefault("later", []).append({"models": added, **here})
    else:
        known = here | known
    write_json(results / STEP_TIMES, known)


def read(results: Path) -> RunRecord:
    """Return the whole file of step times, or nothing if there is none."""
    path = results / STEP_TIMES
    found: RunRecord = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def missing_models(plan: Plan, known: RunRecord) -> list[str]:
    """Return the names of a plan's models without seconds, or whose seconds are those of another model."""
    seconds = known.get("seconds", {}).get(plan.name, {})
    digests = known.get("models", {}).get(plan.name, {})
    return [
        name
        for name, run in plan.models.items()
        if name not in seconds or digests.get(name) != key(run)
    ]
