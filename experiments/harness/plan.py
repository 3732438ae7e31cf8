"""Plans of experiments: which runs a plan has, and which of them are recorded.

A plan is a file in `plans`. It has two parts: a short run for each model and learning rate, which selects
the rate on a play reserved for it, and then a run for each model and seed with that rate. Each run is
recorded on a line of the plan's file in `results`. A family of plans has a name in common:
"today-characters" is of the family "today". A run is identified by the digest of its configuration, so a run
that two plans share is run once. The time of a training step of each model is recorded next to them.
"""

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from experiments.harness.configuration import (
    WRITTEN,
    Run,
    changes,
    is_of_type,
    try_to_build,
)
from experiments.records.runs import (
    HELD_OUT,
    RESULTS,
    TUNING,
    RunRecord,
    file_of,
    read_plan,
    tuning_loss,
)

PLANS = Path(__file__).parent.parent / "plans"
NEEDED = {
    "title": str,
    "turn": int,
    "seeds": int,
    "tuning": Mapping,
    "shared": Mapping,
    "models": Mapping,
    "tuning.rates": list,
    "tuning.steps": int,
}
"""What a plan needs, with its type."""
KNOWN = {**NEEDED, "tuning.seed": int, "unfinished": bool, "timed": bool}


@dataclass(frozen=True)
class Plan:
    """`models` maps the name of each model to its run, still without rate and seed.

    A test requires that all runs of a plan are recorded, unless it is `unfinished`. If a plan is not `timed`,
    steps of its models are not, and its runs are compared in multiply-adds alone.
    """

    name: str
    title: str
    turn: int
    seeds: int
    rates: tuple[float, ...]
    tuning_steps: int
    models: Mapping[str, Run]
    tuning_seed: int = 0
    unfinished: bool = False
    timed: bool = True

    @classmethod
    def read(cls, path: Path) -> "Plan":
        """Read a plan from a TOML file. A `ValueError` names the file, and the model if it is one's."""
        try:
            return cls.of(path.stem, tomllib.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def of(cls, name: str, plan: Mapping[str, Any]) -> "Plan":
        """Return the plan with these settings. Raises `ValueError` where `check` does."""
        check(plan)
        tuning, shared, models = plan["tuning"], plan["shared"], {}
        sizes = table("shared.model", shared.get("model", {}))
        for model, settings in plan["models"].items():
            try:
                own = table(f"models.{model}", settings)
                both = sizes | table("model", own.get("model", {}))
                models[model] = run_of(shared | own | {"model": both})
            except ValueError as error:
                raise ValueError(f"{model}: {error}") from error
        tables = ("tuning", "shared", "models")
        return cls(
            name,
            rates=tuple(tuning["rates"]),
            tuning_steps=tuning["steps"],
            tuning_seed=tuning.get("seed", 0),
            models=models,
            **{key: value for key, value in plan.items() if key not in tables},
        )

    def belongs_to(self, family: str) -> bool:
        """Return whether the plan has this name, or is of this family."""
        return self.name == family or self.name.startswith(f"{family}-")

    def tuning(self) -> dict[str, Run]:
        """Return the short runs by name."""
        return {
            f"{TUNING}{name}-{rate:g}": self.trial(model, rate)
            for name, model in self.models.items()
            for rate in self.rates
        }

    def trial(self, model: Run, rate: float) -> Run:
        """Return the short run of a model with a rate."""
        return replace(
            model,
            steps=self.tuning_steps,
            rate=rate,
            seed=self.tuning_seed,
            evaluations=1,
            whole=False,
        )

    def rate(self, model: Run, found: Mapping[str, RunRecord]) -> float:
        """Return the tried rate with the lowest loss on the tuning play."""

        def loss(rate: float) -> float:
            record = found.get(self.trial(model, rate).digest)
            return tuning_loss(record) if record else math.inf

        return min(self.rates, key=loss)

    def runs(self, found: Mapping[str, RunRecord]) -> dict[str, Run]:
        """Return the reported runs by name: all models with seed 0, then with seed 1, and so on."""
        rates = {name: self.rate(model, found) for name, model in self.models.items()}
        return {
            f"{name}-{seed}": replace(model, rate=rates[name], seed=seed)
            for seed in range(self.seeds)
            for name, model in self.models.items()
        }

    def lines(self, found: Mapping[str, RunRecord]) -> dict[str, str]:
        """Return the names of the runs, in the order of their lines, with their digests.

        The reported runs of a model are known once it has been tried with every rate.
        """
        tuned = [
            name
            for name, model in self.models.items()
            if all(self.trial(model, rate).digest in found for rate in self.rates)
        ]
        reported = {
            name: run
            for name, run in self.runs(found).items()
            if name.removesuffix(f"-{run.seed}") in tuned
        }
        runs = self.tuning() | reported
        return {name: run.digest for name, run in runs.items()}

    def digests(self) -> set[str]:
        """Return the digests of all runs that the plan can have: the reported ones with each of its rates."""
        reported = (
            replace(model, rate=rate, seed=seed)
            for model in self.models.values()
            for rate in self.rates
            for seed in range(self.seeds)
        )
        return {run.digest for run in (*self.tuning().values(), *reported)}

    def missing(self, found: Mapping[str, RunRecord]) -> list[dict[str, Run]]:
        """Return the unrecorded runs of both parts. Rates in the second are final once the first is empty."""
        return [
            {name: run for name, run in part.items() if run.digest not in found}
            for part in (self.tuning(), self.runs(found))
        ]


def table(name: str, value: Any) -> dict[str, Any]:
    """Return a table of a plan. Raises `ValueError` if `value` is none."""
    if not is_of_type(value, Mapping):
        raise ValueError(f"{name} {value!r} is not {WRITTEN[Mapping]}")
    return dict(value)


def run_of(settings: Mapping[str, Any]) -> Run:
    """Return a run of a plan. Raises `ValueError` if it cannot be built, or has no plays to tune on."""
    run = Run.of(settings)
    if run.data not in HELD_OUT:
        raise ValueError(f"data of a plan is one of {', '.join(HELD_OUT)}")
    try_to_build(run)
    return run


def check(plan: Mapping[str, Any]) -> None:
    """Raise `ValueError` if a plan lacks a setting, or has an unknown or an impossible one."""
    settings = dict(plan)
    if is_of_type(tuning := plan.get("tuning", {}), Mapping):
        settings |= {f"tuning.{name}": value for name, value in tuning.items()}
    for name, value in settings.items():
        if name not in KNOWN:
            raise ValueError(f"unknown setting {name}; known: {', '.join(KNOWN)}")
        if not is_of_type(value, KNOWN[name]):
            raise ValueError(f"{name} {value!r} is not {WRITTEN[KNOWN[name]]}")
    if missing := NEEDED.keys() - settings:
        names = ", ".join(name for name in NEEDED if name in missing)
        raise ValueError(f"add what a plan needs: {names}")
    for name in ("seeds", "tuning.steps"):
        if settings[name] <= 0:
            raise ValueError(f"{name} {settings[name]} is not positive")
    rates = settings["tuning.rates"]
    if not rates or not all(is_of_type(r, float) and 0 < r < math.inf for r in rates):
        raise ValueError(f"tuning.rates {rates} is not a list of positive numbers")


def read_plans(folder: Path = PLANS) -> dict[str, Plan]:
    """Return all plans by name, in the order of their turns."""
    plans = sorted(map(Plan.read, folder.glob("*.toml")), key=attrgetter("turn"))
    return {plan.name: plan for plan in plans}


# Recorded runs that a plan does not have any more, because its file was changed

SHOWN = 3
"""So many names of a group are listed, and the number of the others."""


def orphaned(
    plans: Iterable[Plan], results: Path = RESULTS, folder: Path = PLANS
) -> str:
    """Return what to tell an author whose plans lost recorded runs: files, changes, and what to do.

    The text is empty if no record is lost. A run that was only given another name is not lost.
    """
    lines = []
    for plan in plans:
        file, recorded = folder / f"{plan.name}.toml", file_of(plan.name, results)
        if not (lost := lost_runs(plan, results)):
            continue
        count = sum(map(len, lost.values()))
        runs = "1 run" if count == 1 else f"{count} runs"
        lines.append(f"{file} has changed, and {recorded} has {runs} of before:")
        for changed, names in lost.items():
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            lines.append(f"  {', '.join(names[:SHOWN])}{more}: {changed}")
        lines += [
            f"Keep them: restore the plan (git checkout {file}), or give the changed one a name of its own.",
            f"Replace them: delete their lines in {recorded}, and give this command again.",
        ]
    return "\n".join(lines)


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
