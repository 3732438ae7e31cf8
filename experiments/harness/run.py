"""Run what is missing from the plans, one run per core at a time, and record each as it ends.

    .venv/bin/python -m experiments.harness.run [--only PLAN] [--cores N] [--list | --quick]

`--list` says what is missing and stops; it takes recorded runs as they are. `--quick` runs each plan scaled
down to about two minutes, also with modified code. Its records are in `_build/experiments/quick`, which no
page reads.

PLAN is the name of a plan or of a family: "today" is every plan whose name begins with "today-".

It can be stopped at any time. The same command continues: it skips recorded runs, and resumes unfinished
ones from their last checkpoints. It first says which recorded runs a changed plan no longer has, and runs
nothing before that is settled.

Modified code is not run for the records, because it could not be looked up later what it computed. Commit it,
or try it with `--trial`: then all is recorded in `_build/experiments/trials`, where no page reads it.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import torch
from filelock import Timeout

from experiments.harness.command import hours, positive_integer
from experiments.harness.estimate import announce, expected_seconds, recorded
from experiments.harness.orphans import orphaned
from experiments.harness.plan import Plan, read_plans
from experiments.harness.provenance import commit
from experiments.harness.quick import quick
from experiments.harness.step_times import measure_missing
from experiments.harness.sweep import BUILT, alone, cores, sweep
from experiments.harness.training import DivergedError
from experiments.records.runs import (
    RESULTS,
    RunRecord,
    arrange,
    read_results,
    reported_loss,
)

MODIFIED = (
    "the code is modified, so its records could not be reported. Commit it and give this command again, "
    "or try it with --trial: its records are then in _build/experiments/trials"
)


def run_missing(
    plans: Iterable[Plan],
    number: int,
    left: float,
    results: Path = RESULTS,
    built: Path = BUILT,
    long: bool = True,
) -> int:
    """Run what is missing on `number` cores, and return the number of failed runs.

    `left` is the estimate of the seconds on one core.
    """
    failed, done, began = 0, 0.0, time.monotonic()
    print(f"starting Ray, for {number} runs at a time")
    with cores(number, long) as ray:
        for plan, part in product(plans, (0, 1)):
            missing = plan.missing(recorded(plan, results))
            if part and missing[0]:
                continue  # a short run failed, so a rate is unknown
            runs = missing[part]
            for name, ended in sweep(ray, runs, plan.name, built, results):
                cost = expected_seconds(runs[name])
                left, done = max(left - cost, 0.0), done + cost
                pace = (time.monotonic() - began) / done
                diverged = isinstance(ended, DivergedError)
                failed += isinstance(ended, BaseException) and not diverged
                message = (
                    f"{ended}" if isinstance(ended, BaseException) else outcome(ended)
                )
                print(f"{plan.name}/{name}: {message}")
                print(f"about {hours(left * pace)} left")
            arrange(plan.name, plan.lines(read_results(results)), results)
    return failed


def outcome(record: RunRecord) -> str:
    """Summarize a run: its loss and its time."""
    return f"{reported_loss(record):.4f} nats, {hours(record['curve']['seconds'][-1])}"


def chosen_plans(only: str | None) -> list[Plan]:
    """Return the plans of a name or a family, or all. Raises `ValueError` for an unknown name."""
    plans = read_plans()
    if only is None:
        return list(plans.values())
    chosen = [plan for plan in plans.values() if plan.belongs_to(only)]
    if not chosen:
        raise ValueError(f"unknown plan {only!r}; known plans: {', '.join(plans)}")
    return chosen


def try_quickly(plans: Iterable[Plan], number: int, built: Path) -> int:
    """Run small versions of plans in a folder of their own, and return the number of failed runs."""
    scratch = built / "quick"
    failed = 0
    with alone(built):
        shutil.rmtree(scratch, ignore_errors=True)
        for plan in plans:
            print(f"{plan.name}: measuring a step of {len(plan.models)} models")
            small, results = quick(plan, number), scratch / "results"
            left = announce([small], number, results)
            failed += run_missing([small], number, left, results, scratch, long=False)
    print(f"The records are in {scratch / 'results'}. No page reads them.")
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description="Run what is missing from the plans.")
    parser.add_argument("--only", metavar="PLAN", help="a plan, or a family of plans")
    parser.add_argument("--cores", type=positive_integer, default=os.cpu_count())
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
    chosen = parser.parse_args()
    results = BUILT / "trials" if chosen.trial else RESULTS
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    torch.set_num_threads(1)
    # Plans run on CPU cores, so that all recorded seconds are comparable.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        plans = chosen_plans(chosen.only)
        if chosen.quick:
            sys.exit(1 if try_quickly(plans, chosen.cores, BUILT) else 0)
        orphans = orphaned(plans, results)
        if orphans and not chosen.list:
            sys.exit(orphans)
        if orphans:
            print(orphans)
        left = announce(plans, chosen.cores, results, not chosen.list)
        if chosen.list:
            return
        if left and not chosen.trial and commit().endswith("+"):
            sys.exit(MODIFIED)
        with alone(BUILT):
            measure_missing(plans, BUILT, results)
            failed = run_missing(plans, chosen.cores, left, results) if left else 0
    except KeyboardInterrupt:
        sys.exit("stopped; the same command resumes from here")
    except Timeout:
        sys.exit(f"another sweep is running in {BUILT}; wait for it, or stop it first")
    except ValueError as error:
        sys.exit(str(error))
    if failed:
        sys.exit(f"{failed} runs failed; the finished ones are recorded")


if __name__ == "__main__":
    main()
