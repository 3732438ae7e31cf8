"""The reported runs of all plans, asked for by what they are: `read_runs`.

A `Group` of runs says what they are, so a chapter need not know which plan has recorded it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.records.runs import (
    DECIMALS,
    HELD_OUT,
    RESULTS,
    TUNING,
    RunRecord,
    evaluated,
    read_plan,
    read_step_times,
    tuning_loss,
)

Measured = dict[str, Any]
"""What chapters read of a run: its seed, its rate, and a curve as parallel lists. `loss` is the mean
of the reported plays."""

Runs = dict[str, list[Measured]]
"""The runs of each model of a plan, one per seed."""

# A notebook has what these functions returned, not the files that they read.
__recorded__ = ("places_of", "curves_of", "ends_of", "whole_of", "tried_of")


FIELDS = (
    *("plan", "model", "text", "positions", "steps"),
    *("schedule", "width", "rate", "tuned"),
)
"""What `read_runs` can ask for."""


@dataclass(frozen=True)
class Group:
    """The runs of a model in a plan, one per seed, and what they have in common.

    - `plan` has recorded the runs, and compares their `model` with others. `name` is the model's name there.
    - `text` is "characters" or "subwords" of the plays, or "code".
    - `positions` are "learned", "rotary" and others; `schedule` is that of the learning rate.
    - `tuned` is the number of steps in the short runs that selected the rate.
    - `tried` has the loss of each of these short runs, by its rate.
    """

    plan: str
    name: str
    model: str
    text: str
    positions: str
    steps: int
    schedule: str
    width: int
    rate: float
    tuned: int
    tried: dict[float, float]
    records: list[RunRecord]


def reported(plan: str, folder: Path = RESULTS) -> list[Group]:
    """Return the models of a plan, each with the records that count, in the order of their seeds.

    They are those with the rate that the short runs select. A model does not count until it has been tried
    with every rate that any model of its plan was tried with. A run that diverged does not count.
    """
    records = read_plan(plan, folder)
    tried: dict[str, dict[float, float]] = {}
    tuned = 0
    for name, record in records.items():
        if name.startswith(TUNING):
            rate, tuned = (record["configuration"][each] for each in ("rate", "steps"))
            model = name.removeprefix(TUNING).removesuffix(f"-{rate:g}")
            tried.setdefault(model, {})[rate] = tuning_loss(record)
    rates = {rate for losses in tried.values() for rate in losses}
    found = []
    for model, losses in tried.items():
        runs = [
            record
            for name, record in records.items()
            if name == f"{model}-{record['configuration']['seed']}"
            and record["configuration"]["rate"] == min(losses, key=losses.__getitem__)
            and not record["diverged_at_step"]
        ]
        if losses.keys() == rates and runs:
            runs.sort(key=lambda run: run["configuration"]["seed"])
            found.append(grouped(plan, model, tuned, losses, runs))
    return found


def grouped(
    plan: str, name: str, tuned: int, tried: dict[float, float], runs: list[RunRecord]
) -> Group:
    """Return the runs of a model. A plan may name it by its positions and its width, too."""
    configuration = runs[0]["configuration"]
    model, preset = configuration["model"], configuration["preset"]
    # A plan with the default names no positions.
    default = "t5" if preset.startswith("t5") else "learned"
    positions, width = model.get("positions", default), model["d_model"]
    return Group(
        plan,
        name,
        name.removesuffix(f"-{positions}").removesuffix(f"-{width}"),
        configuration["data"],
        positions,
        configuration["steps"],
        configuration.get("schedule", "inverse square root"),
        width,
        configuration["rate"],
        tuned,
        tried,
        runs,
    )


def every_group(folder: Path) -> list[Group]:
    """Return the reported runs of all plans. Files are read again once they are replaced."""
    states = ((path, path.stat()) for path in sorted(folder.glob("*.jsonl")))
    return _every_group(tuple((path, s.st_mtime_ns, s.st_ino) for path, s in states))


@lru_cache(maxsize=1)
def _every_group(files: tuple[tuple[Path, int, int], ...]) -> list[Group]:
    return [group for path, *_ in files for group in reported(path.stem, path.parent)]


def group_of(plan: str, name: str) -> Group:
    """Return the runs of a model of a plan."""
    for group in every_group(RESULTS):
        if (group.plan, group.name) == (plan, name):
            return group
    raise ValueError(f"{plan} has no reported runs of {name}")


def places_of(wanted: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Return where the runs are that have one of the wanted values of each field.

    They are in plans, by the models' names there. If several plans have the same runs of a model, it is the
    one with the most seeds. Raises `ValueError` for an unknown field or value, if there are no such runs, and
    if the runs of a model differ in another field.
    """
    every = every_group(RESULTS)
    for field, values in wanted.items():
        if field not in FIELDS:
            raise ValueError(f"runs have no {field}; they have {', '.join(FIELDS)}")
        known = list(dict.fromkeys(getattr(group, field) for group in every))
        for value in values:
            if value not in known:
                listed = ", ".join(map(str, known))
                raise ValueError(f"no run has {field} {value!r}; known: {listed}")
    found: dict[str, list[Group]] = {}
    for group in every:
        if all(getattr(group, field) in values for field, values in wanted.items()):
            found.setdefault(group.model, []).append(group)
    if not found:
        raise ValueError(f"no run has all of {wanted}")
    places: dict[str, list[str]] = {}
    for group in map(_same_runs, found.values()):
        places.setdefault(group.plan, []).append(group.name)
    return places


def _same_runs(groups: list[Group]) -> Group:
    """Return the group with the most seeds. Raises `ValueError` unless the others have the same runs."""
    most = max(groups, key=lambda group: len(group.records))
    digests = [record["digest"] for record in most.records]
    for group in groups:
        own = [record["digest"] for record in group.records]
        if own != digests[: len(own)]:
            values = {
                field: list(dict.fromkeys(getattr(each, field) for each in groups))
                for field in FIELDS
            }
            differ = "; ".join(
                f"{field}: {', '.join(map(str, each))}"
                for field, each in values.items()
                if len(each) > 1
            )
            raise ValueError(f"runs of {most.model} differ, so ask for one {differ}")
    return most


def curves_of(plan: str, name: str) -> dict[str, Any]:
    """Return what a model's runs have in common, and the losses of each.

    The costs are those of a step. `loss` has a list for each of the `seeds`: the mean of the reported plays
    at evaluations that divide the `steps` into equal parts. `whole` has the loss on the whole plays after the
    last step, if they were read.
    """
    return _summary(plan, name)


def ends_of(plan: str, name: str) -> dict[str, Any]:
    """Return the same of the last evaluation only."""
    found = _summary(plan, name)
    ends = [losses[-1:] for losses in found["loss"]]
    return found | {"evaluations": 1, "loss": ends}


def whole_of(plan: str, name: str) -> dict[str, list[float]]:
    """Return the losses of a model's runs on each whole reported play."""
    records = group_of(plan, name).records
    return {
        text: [round(record["whole"][text], DECIMALS) for record in records]
        for text in HELD_OUT[records[0]["configuration"]["data"]][1:]
    }


def tried_of(plan: str, name: str) -> list[list[float]]:
    """Return the two best rates that were tried for a model, each with its loss."""
    tried = group_of(plan, name).tried
    return [
        [rate, round(tried[rate], DECIMALS)]
        for rate in sorted(tried, key=tried.__getitem__)[:2]
    ]


def _summary(plan: str, name: str) -> dict[str, Any]:
    """Return a model's runs. Raises `ValueError` if they were not evaluated at the same steps."""
    group = group_of(plan, name)
    runs = group.records
    configuration, curve = runs[0]["configuration"], runs[0]["curve"]
    steps, evaluations = configuration["steps"], configuration["evaluations"]
    texts = HELD_OUT[configuration["data"]][1:]  # the reported ones
    for run in runs:
        if run["curve"]["steps"] != evaluated(steps, evaluations):
            raise ValueError(f"{plan}: {name} was not evaluated in equal parts")
    found = {
        "data": configuration["data"],
        "rate": configuration["rate"],
        "parameters": runs[0]["parameters"],
        "multiply_adds": curve["multiply_adds"][0] // curve["steps"][0],
        "steps": steps,
        "evaluations": evaluations,
        "seeds": [run["configuration"]["seed"] for run in runs],
        "loss": [_means(run["curve"]["held_out"], texts) for run in runs],
    }
    if all("whole" in run for run in runs):
        wholes = [{play: [loss] for play, loss in run["whole"].items()} for run in runs]
        found["whole"] = [loss for whole in wholes for loss in _means(whole, texts)]
    if name != group.model:
        found["model"] = group.model
    seconds = read_step_times(RESULTS).get(plan, {}).get(name)
    return found if seconds is None else found | {"seconds": seconds}


def _means(losses: Mapping[str, list[float]], texts: Iterable[str]) -> list[float]:
    """Return the mean of these texts at each evaluation."""
    every = zip(*(losses[text] for text in texts), strict=True)
    return [round(sum(each) / len(each), DECIMALS) for each in every]


def read_runs(*, ends: bool = False, seeds: int | None = None, **wanted: Any) -> Runs:
    """Return the reported runs of all plans that are as wanted, by model.

    Each argument is one of `FIELDS` with a value, or with several:
    `read_runs(model=["transformer", "primer-ez"], text="characters", positions="rotary", steps=1200)`.
    Of a model it returns all seeds, or the first `seeds`; with `ends`, their curves have one point, after the
    last step. Raises `ValueError` where `places_of` does: a model has one kind of runs in a comparison.
    """
    listed = {
        field: [value] if isinstance(value, str | int | float) else list(value)
        for field, value in wanted.items()
    }
    read = ends_of if ends else curves_of
    found: Runs = {}
    for plan, names in places_of(listed).items():
        for name in names:
            summary = read(plan, name)
            found[summary.get("model", name)] = runs_of(summary)[:seeds]
    return {
        model: found[model] for model in listed.get("model", found) if model in found
    }


def runs_of(found: Mapping[str, Any]) -> list[Measured]:
    """Return the runs of a model, one per seed, with their costs at each evaluation."""
    steps = evaluated(found["steps"], found["evaluations"])
    shared = {name: found[name] for name in ("data", "rate", "parameters")}
    shared["steps"] = steps
    for cost in ("multiply_adds", "seconds"):
        if cost in found:
            shared[cost] = [found[cost] * step for step in steps]
    own = {"seed": found["seeds"], "loss": found["loss"]}
    if "whole" in found:
        own["whole"] = found["whole"]
    return [
        shared | dict(zip(own, values, strict=True))
        for values in zip(*own.values(), strict=True)
    ]
