"""Run what is missing from the plans, one run per core at a time, and record each as it ends.

    .venv/bin/python -m experiments.harness.run [--only PLAN] [--cores N] [--list | --quick | --trial]

`--list` says what is missing and stops; it takes recorded runs as they are. `--quick` runs each plan scaled
down to about two minutes, also with modified code. Its records are in `_build/experiments/quick`, which no
page reads.

PLAN is the name of a plan or of a family: "today" is every plan whose name begins with "today-".

It can be stopped at any time. The same command continues: it skips recorded runs, and resumes unfinished
ones from their last checkpoints. It first says which recorded runs a changed plan no longer has, and runs
nothing before that is settled.

Modified code is not run for the records, because it could not be looked up later what it computed. Commit it,
or try it with `--trial`: then all is recorded in `_build/experiments/trials`, where no page reads it.

Plans that are not the book's can be in a folder of their own: with `--folder F`, plans are read from
`F/plans`, and records and checkpoints are kept in `F/results` and `F/built`.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch
from filelock import Timeout

from experiments.harness.command import hours, positive_integer
from experiments.harness.configuration import Run
from experiments.harness.fingerprint import is_current
from experiments.harness.plan import PLANS, Plan, orphaned, read_plans
from experiments.harness.provenance import commit
from experiments.harness.step_times import measure_missing, stand_in
from experiments.harness.sweep import BUILT, alone, cores, sweep
from experiments.harness.training import DivergedError, Training
from experiments.records.runs import (
    RESULTS,
    RunRecord,
    arrange,
    read_results,
    reported_loss,
)

EVALUATION = 4
"""Cost of an evaluation in training steps: it has twelve forward passes, and a step costs about three."""
WHOLE = 50
"""Cost of reading all held-out plays once, in training steps."""
QUICK = 120
"""Seconds that a plan takes with `--quick`."""
START = 6
"""Seconds that a run takes on a core besides its steps: its process starts, and takes its fingerprint."""
MODIFIED = (
    "the code is modified, so its records could not be reported. Commit it and give this command again, "
    "or try it with --trial: its records are then in _build/experiments/trials"
)


def chosen_plans(only: str | None, folder: Path = PLANS) -> list[Plan]:
    """Return the plans of a name or a family, or all. Raises `ValueError` for an unknown name."""
    plans = read_plans(folder)
    chosen = [plan for plan in plans.values() if only is None or plan.belongs_to(only)]
    if not chosen:
        raise ValueError(f"unknown plan {only!r}; known plans: {', '.join(plans)}")
    return chosen


# How long it takes


@cache
def pace() -> float:
    """Measure the seconds that this machine takes per weight and token of a step."""
    training = Training(Run(batch=4), Path()).begin()
    training.step()
    before = training.seconds
    for _ in range(3):
        training.step()
    return (training.seconds - before) / 3 / size(training.run)


@cache
def size(run: Run) -> int:
    """Return what the time of a step grows with: the weights of a model times the tokens of a step."""
    with torch.device("meta"):
        model = run.build(2048 if run.data == "subwords" else 256)
    return sum(p.numel() for p in model.parameters()) * run.batch * run.seq


def step_seconds(run: Run) -> float:
    """Estimate the seconds that a step takes on one core of this machine."""
    return size(stand_in(run)) * pace()


def expected_seconds(run: Run) -> float:
    """Estimate the seconds that a run will take on one core, with its evaluations."""
    steps = run.steps + EVALUATION * run.evaluations + WHOLE * run.whole
    return steps * step_seconds(run)


def recorded(plan: Plan, results: Path, check: bool = True) -> dict[str, RunRecord]:
    """Return a plan's records by digest, with `check` only those that the code of today would repeat."""
    planned = plan.digests()
    return {
        digest: record
        for digest, record in read_results(results).items()
        if digest in planned and (not check or is_current(record))
    }


def announce(
    plans: Iterable[Plan], number: int, results: Path, check: bool = True
) -> float:
    """Print how long the missing runs of each plan will take, and return the seconds on one core.

    Without `check`, records are taken as they are: repeating their first steps takes minutes.
    """
    whole, seen = 0.0, set[str]()
    for plan in plans:
        cost, counts = 0.0, []
        for part in plan.missing(recorded(plan, results, check)):
            # A run that two plans share counts once.
            runs = {run.digest: run for run in part.values() if run.digest not in seen}
            seen |= runs.keys()
            counts.append(len(runs))
            cost += sum(map(expected_seconds, runs.values()))
        whole += cost
        print(
            f"{plan.name:12s}{counts[0]:4d} short runs for rates {counts[1]:4d} runs "
            f"{hours(cost):>8s} on a core  {plan.title}"
        )
    print(f"Missing: {hours(whole)} on a core, {hours(whole / number)} on {number}")
    return whole


# Run it


def run_missing(
    plans: Iterable[Plan],
    left: float,
    results: Path,
    built: Path,
    workers: AbstractContextManager[Any],
    committed: bool = False,
) -> int:
    """Run what is missing with these workers, and return the number of failed runs.

    `left` is the estimate of the seconds on one core. With `committed`, a record of modified code is refused.
    """
    failed, done, began = 0, 0.0, time.monotonic()
    with workers as ray:
        for plan, part in product(plans, (0, 1)):
            missing = plan.missing(recorded(plan, results))
            if part and missing[0]:
                continue  # a short run failed, so a rate is unknown
            runs = missing[part]
            for name, ended in sweep(ray, runs, built / plan.name, results, committed):
                cost = expected_seconds(runs[name])
                left, done = max(left - cost, 0.0), done + cost
                speed = (time.monotonic() - began) / done
                if isinstance(ended, BaseException):
                    failed += not isinstance(ended, DivergedError)
                    print(f"{plan.name}/{name}: {ended}")
                else:
                    print(f"{plan.name}/{name}: {outcome(ended)}")
                print(f"about {hours(left * speed)} left")
            arrange(plan.name, plan.lines(read_results(results)), results)
    return failed


def outcome(record: RunRecord) -> str:
    """Summarize a run: its loss and its time."""
    if step := record["diverged_at_step"]:
        return f"diverged at step {step}"
    return f"{reported_loss(record):.4f} nats, {hours(record['curve']['seconds'][-1])}"


def quick(plan: Plan, number: int) -> Plan:
    """Scale a plan down, to see in about two minutes that each of its models trains, and how it is recorded.

    All models keep their sizes and their text. Each has one learning rate, one seed, and as many steps as
    fit. The losses say nothing of the models.
    """
    models = plan.models.values()
    one = sum(map(step_seconds, models))  # a step of each
    left = QUICK * number - 2 * START * len(models)
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


def try_quickly(
    plans: Iterable[Plan],
    number: int,
    built: Path,
    workers: AbstractContextManager[Any],
) -> int:
    """Run small versions of plans in a folder, which is emptied, and return the number of failed runs."""
    shutil.rmtree(built, ignore_errors=True)
    small, results = [quick(plan, number) for plan in plans], built / "results"
    left = announce(small, number, results)
    failed = run_missing(small, left, results, built, workers)
    print(f"The records are in {results}. No page reads them.")
    return failed


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Run what is missing from the plans.")
    parser.add_argument("--only", metavar="PLAN", help="a plan, or a family of plans")
    parser.add_argument("--cores", type=positive_integer, default=os.cpu_count())
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="F",
        help="read plans from F/plans, and keep records and checkpoints in F",
    )
    shorter = parser.add_mutually_exclusive_group()
    shorter.add_argument(
        "--list", action="store_true", help="print the expected time and stop"
    )
    shorter.add_argument(
        "--quick", action="store_true", help="run each plan for about two minutes"
    )
    shorter.add_argument(
        "--trial", action="store_true", help="run modified code; no page reports it"
    )
    chosen = parser.parse_args(arguments)
    folder, number = chosen.folder, chosen.cores
    own = folder and (folder / name for name in ("plans", "results", "built"))
    where, results, built = own or (PLANS, RESULTS, BUILT)
    if chosen.trial:
        results = built / "trials"
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    torch.set_num_threads(1)
    failed = 0
    try:
        plans = chosen_plans(chosen.only, where)
        if chosen.quick:
            with alone(built):
                workers = cores(number, long=False)
                sys.exit(try_quickly(plans, number, built / "quick", workers) > 0)
        orphans = orphaned(plans, results, where)
        if orphans and not chosen.list:
            sys.exit(orphans)
        if orphans:
            print(orphans)
        left = announce(plans, number, results, not chosen.list)
        if chosen.list:
            return
        if left and not chosen.trial and commit().endswith("+"):
            sys.exit(MODIFIED)
        with alone(built):
            measure_missing(plans, built, results)
            if left:
                workers, committed = cores(number), not chosen.trial
                failed = run_missing(plans, left, results, built, workers, committed)
    except KeyboardInterrupt:
        sys.exit("stopped; the same command resumes from here")
    except Timeout:
        sys.exit(f"another sweep is running in {built}; wait for it, or stop it first")
    except ValueError as error:
        sys.exit(str(error))
    except OSError as error:  # the records are as they were
        path = error.filename2 or error.filename or results
        reason = f"{path}: {error.strerror or error}"
        sys.exit(
            f"{reason}. Make room or change its rights; the same command continues"
        )
    if failed:
        sys.exit(f"{failed} runs failed; the finished ones are recorded")


if __name__ == "__main__":
    main()
