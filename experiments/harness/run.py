"""Runs what is missing of the plans, as many runs at once as there are cores, and records each as it ends.

    python -m experiments.harness.run [--only PLAN] [--cores N] [--list]

It can be stopped at any time. The same command goes on: what is recorded is not run again, and what was
running is taken up from its last save.
"""

import argparse
import logging
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from filelock import FileLock, Timeout

from experiments.harness.configuration import Run
from experiments.harness.long_run import DivergedError, Training, long_run
from experiments.harness.parallel import Workers
from experiments.harness.plan import Plan, read_plans, reported_loss, write_gathered
from experiments.harness.step_times import measure_missing, stand_in
from experiments.records import RESULTS, Record, read_results

BUILT = RESULTS.parent.parent / "_build" / "experiments"
TOKEN = secrets.token_hex(32)
"""Ray reads it once in a process, and lets nobody else of this machine in."""
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
    return (run.steps + EVALUATION * run.evaluations) * step_seconds(stand_in(run))


@contextmanager
def cores(number: int) -> Iterator[Any]:
    """Ray on this machine alone, without its dashboard, its statistics and its files at home."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_TOKEN": TOKEN,
        # Runs give way to all else on the machine. However long one waits for its turn, it is not dead.
        "RAY_worker_niceness": "19",
        "RAY_worker_register_timeout_seconds": "86400",
        "RAY_health_check_failure_threshold": "1000",
        "RAY_gcs_rpc_server_reconnect_timeout_s": "3600",
    }
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        patch.dict(os.environ, settings),
    ):
        import ray

        ray.init(
            # Never a cluster that happens to run: its machines share neither this code nor the results.
            address="local",
            num_cpus=number,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=80 * 2**20,
            _temp_dir=folder,
        )
        # Whoever ends this ends all of it, and in order.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            yield ray
        finally:
            ray.shutdown()


def sweep(
    ray: Any, runs: Mapping[str, Run], built: Path, results: Path
) -> Iterator[tuple[str, Record | BaseException]]:
    """Runs all, each in a process of its own with one core, and gives each as it ends.

    One whose process is killed is started again, and goes on from its last save.
    """
    start = ray.remote(num_cpus=1, max_calls=1, max_retries=3)(long_run)
    running = {
        start.remote(
            run, built / f"{name}-{run.digest[:8]}", results / f"{name}.json"
        ): name
        for name, run in runs.items()
    }
    while running:
        (ended,), _ = ray.wait(list(running))
        name = running.pop(ended)
        try:
            yield name, ray.get(ended)
        except ray.exceptions.RayError as error:
            yield name, getattr(error, "cause", error)


def alone(built: Path) -> FileLock:
    """Keeps others from the saves of the same runs while it is held. Raises `Timeout` for the others."""
    built.mkdir(parents=True, exist_ok=True)
    return FileLock(built / "lock", timeout=0)


def hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 3600 else f"{seconds / 60:.0f} min"


def announce(plans: Iterable[Plan], number: int, results: Path = RESULTS) -> float:
    """Says how long what is missing will take, plan by plan, and returns the seconds of a core."""
    found, whole, seen = read_results(results), 0.0, set[str]()
    for plan in plans:
        cost, counts = 0.0, []
        for part in plan.missing(found):
            # What two plans ask for counts once.
            runs = {run.digest: run for run in part.values() if run.digest not in seen}
            seen |= runs.keys()
            counts.append(len(runs))
            cost += sum(map(expected_seconds, runs.values()))
        whole += cost
        print(
            f"{plan.name:12s}{counts[0]:4d} short runs for rates {counts[1]:4d} runs "
            f"{hours(cost):>8s} of a core  {plan.title}"
        )
    print(f"Missing: {hours(whole)} of a core, {hours(whole / number)} on {number}")
    return whole


def run_missing(
    plans: Iterable[Plan],
    number: int,
    left: float,
    results: Path = RESULTS,
    built: Path = BUILT,
) -> int:
    """Runs what is missing, on `number` cores, and returns how many runs failed."""
    failed, done, began = 0, 0.0, time.monotonic()
    with cores(number) as ray:
        for plan, part in product(plans, (0, 1)):
            missing = plan.missing(read_results(results))
            if part and missing[0]:
                continue  # a rate is still unknown, for a short run failed
            runs = missing[part]
            for name, ended in sweep(ray, runs, built / plan.name, results / plan.name):
                cost = expected_seconds(runs[name])
                left, done = max(left - cost, 0.0), done + cost
                pace = (time.monotonic() - began) / done
                diverged = isinstance(ended, DivergedError)
                failed += isinstance(ended, BaseException) and not diverged
                said = (
                    f"{ended}" if isinstance(ended, BaseException) else outcome(ended)
                )
                print(f"{plan.name}/{name}: {said}")
                print(f"about {hours(left * pace)} left")
                write_gathered(results)
    return failed


def outcome(record: Record) -> str:
    """What a run came to, in a few words."""
    return f"{reported_loss(record):.4f} nats, {hours(record['curve']['seconds'][-1])}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs what is missing of the plans.")
    parser.add_argument("--only", metavar="PLAN", help="one plan of all")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="say the time and stop")
    chosen = parser.parse_args()
    plans = read_plans()
    if chosen.only and chosen.only not in plans:
        sys.exit(f"no plan is called {chosen.only}; there are {', '.join(plans)}")
    wanted = [plans[chosen.only]] if chosen.only else list(plans.values())
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    torch.set_num_threads(1)
    # The plans are for processor cores, so that all seconds are of one kind.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    left = announce(wanted, chosen.cores)
    if chosen.list:
        return
    try:
        with alone(BUILT):
            measure_missing(plans.values(), BUILT)
            write_gathered()
            failed = run_missing(wanted, chosen.cores, left) if left else 0
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on from here")
    except Timeout:
        sys.exit(f"experiments are already run in {BUILT}; wait, or stop them first")
    if failed:
        sys.exit(f"{failed} runs failed; all that ended is recorded")


if __name__ == "__main__":
    main()
