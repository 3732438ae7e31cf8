"""Find recorded runs that their plan does not have any more, because its file was changed."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from experiments.harness.configuration import Run, changes
from experiments.harness.plan import PLANS, Plan
from experiments.records.runs import RESULTS, file_of, read_plan

SHOWN = 3
"""So many names of a group are listed, and the number of the others."""


def orphaned(
    plans: Iterable[Plan], results: Path = RESULTS, folder: Path = PLANS
) -> str:
    """Return what to tell an author whose plans lost recorded runs: files, changes, and what to do.

    The text is empty if no record is lost. A run that was only given another name is not lost.
    """
    return "\n".join(
        message(lost, file_of(plan.name, results), folder / f"{plan.name}.toml")
        for plan in plans
        if (lost := lost_runs(plan, results))
    )


def lost_runs(plan: Plan, results: Path) -> dict[str, list[str]]:
    """Return the names of lost runs, by what has changed."""
    planned, lost = plan.digests(), defaultdict[str, list[str]](list)
    for name, record in read_plan(plan.name, results).items():
        if record["digest"] not in planned:
            before = Run.of(record["configuration"])
            lost[change(plan, name, before)].append(name)
    return lost


def change(plan: Plan, name: str, before: Run) -> str:
    """Return what a plan has instead of a recorded run."""
    if name in (tuning := plan.tuning()):
        return changes(before, tuning[name])
    model, _, seed = name.rpartition("-")
    if model not in plan.models or int(seed) >= plan.seeds:
        return "the plan has no run of this name"
    now = replace(plan.models[model], seed=before.seed, rate=before.rate)
    if changed := changes(before, now):
        return changed
    return f"the rate {before.rate:g} is not in tuning.rates"


def message(lost: dict[str, list[str]], recorded: Path, file: Path) -> str:
    """Return the text for one plan."""
    count = sum(map(len, lost.values()))
    runs = "1 run" if count == 1 else f"{count} runs"
    lines = [f"{file} has changed, and {recorded} has {runs} of before:"]
    for changed, names in lost.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        lines.append(f"  {', '.join(names[:SHOWN])}{more}: {changed}")
    lines += [
        f"Keep them: restore the plan (git checkout {file}), or give the changed one a name of its own.",
        f"Replace them: delete their lines in {recorded}, and give this command again.",
    ]
    return "\n".join(lines)
