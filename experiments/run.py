"""Runs what is missing of the plans, as many runs at once as there are cores, and records each as it ends.

    python -m experiments.run [--only PLAN] [--cores N] [--list]

It can be stopped at any time. The same command goes on: what is recorded is not run again, and what was
running is taken up from its last save.
"""

import argparse
import logging
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch

from experiments.plan import (
    HERE,
    Plan,
    Record,
    read_plans,
    read_results,
    reported_loss,
)
from labml_primer.training.configuration import Run
from labml_primer.training.long_run import Training, long_run
from labml_primer.training.parallel import Workers

BUILT = HERE.parent / "_build" / "experiments"
EVALUATION = 4
"""What an evaluation costs, in training steps: twelve batches, and a step is worth three of them."""


@cache
def step_seconds(run: Run) -> float:
    """The processor time of a training step on this machine, measured."""
    training = Training(run, BUILT, Workers())
    training.step()
    before = training.seconds
    for _ in range(3):
        training.step()
    return (training.seconds - before) / 3


def expected_seconds(run: Run) -> float:
    """How long a run will keep one core busy."""
    # Seeds and rates cost nothing, so one measurement does for all.
    same = replace(run, seed=0, rate=1e-3, steps=100, evaluations=1)
    return (run.steps + EVALUATION * run.evaluations) * step_seconds(same)


@contextmanager
def cores(number: int) -> Iterator[Any]:
    """Ray on this machine alone, without its dashboard, its statistics and its files at home."""
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with TemporaryDirectory() as folder, patch.dict(os.environ, quiet):
        import ray

        ray.init(
            num_cpus=number,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=80 * 2**20,
            _temp_dir=folder,
        )
        try:
            yield ray
        finally:
            ray.shutdown()


def sweep(
    ray: Any, runs: Mapping[str, Run], built: Path, results: Path
) -> Iterator[tuple[str, Record | Exception]]:
    """Runs all, each in a process of its own with one core, and gives each as it ends."""
    start = ray.remote(num_cpus=1, max_calls=1, max_retries=0)(long_run)
    running = {
        start.remote(
            run, built / f"{name}-{run.digest[:8]}", results / f"{name}.json"
        ): (name)
        for name, run in runs.items()
    }
    while running:
        (ended,), _ = ray.wait(list(running))
        name = running.pop(ended)
        try:
            yield name, ray.get(ended)
        except Exception as error:
            yield name, error


def hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 3600 else f"{seconds / 60:.0f} min"


def announce(plans: Mapping[str, Plan], number: int) -> dict[str, float]:
    """Says how long what is missing of each plan will take, and returns the seconds of all."""
    found = read_results()
    total = {}
    for name, plan in plans.items():
        parts = plan.missing(found)
        costs = [[expected_seconds(run) for run in part.values()] for part in parts]
        total[name] = sum(map(sum, costs))
        tuning, runs = map(len, parts)
        print(
            f"{name:12s}{tuning:4d} short runs to tune rates{runs:4d} runs"
            f"{hours(total[name]):>9s} of a core  {plan.title}"
        )
    whole = sum(total.values())
    print(f"together {hours(whole)} of a core, {hours(whole / number)} on {number}")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs what is missing of the plans.")
    parser.add_argument("--only", metavar="PLAN", help="one plan of all")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="say the time and stop")
    chosen = parser.parse_args()
    plans = read_plans()
    if chosen.only and chosen.only not in plans:
        sys.exit(f"no plan is called {chosen.only}; there are {', '.join(plans)}")
    if chosen.only:
        plans = {chosen.only: plans[chosen.only]}

    torch.set_num_threads(1)
    left = sum(announce(plans, chosen.cores).values())
    if chosen.list or not left:
        return
    failed, done, began = 0, 0.0, time.monotonic()
    with cores(chosen.cores) as ray:
        for plan in plans.values():
            for part in (0, 1):
                runs = plan.missing(read_results())[part]
                built, results = BUILT / plan.name, HERE / "results" / plan.name
                for name, ended in sweep(ray, runs, built, results):
                    cost = expected_seconds(runs[name])
                    left, done = left - cost, done + cost
                    pace = (time.monotonic() - began) / done
                    if isinstance(ended, Exception):
                        failed += 1
                        said = str(ended).strip().splitlines()[-1]
                    else:
                        said = f"{reported_loss(ended):.4f} nats"
                    print(
                        f"{plan.name}/{name}  {said}, about {hours(left * pace)} left",
                        flush=True,
                    )
    if failed:
        sys.exit(f"{failed} runs failed")


if __name__ == "__main__":
    main()
