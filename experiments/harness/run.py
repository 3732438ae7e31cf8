"""Run what is missing from the plans, one run per core at a time, and record each as it ends.

    .venv/bin/python -m experiments.harness.run [--only PLAN] [--cores N] [--list]

PLAN is the name of a plan or of a family: "today" is every plan whose name begins with "today-".

It can be stopped at any time. The same command continues: it skips recorded runs, and resumes unfinished
ones from their last checkpoints.
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
from experiments.harness.long_run import (
    DivergedError,
    Training,
    is_current,
    long_run,
    positive_integer,
)
from experiments.harness.parallel import Workers
from experiments.harness.plan import Plan, read_plans, reported_loss
from experiments.harness.step_times import measure_missing, stand_in
from experiments.records.runs import (
    RESULTS,
    RunRecord,
    arrange,
    read_record,
    read_results,
    write_run,
)

BUILT = RESULTS.parent.parent / "_build" / "experiments"
TOKEN = secrets.token_hex(32)
"""Ray reads it once per process; other users of the machine cannot connect without it."""
EVALUATION = 4
"""Cost of an evaluation in training steps: it has twelve forward passes, and a step costs about three."""

WHOLE = 50
"""Cost of reading all held-out plays once, in training steps."""


@cache
def step_seconds(run: Run) -> float:
    """Measure the processor time of a training step on this machine."""
    training = Training(run, BUILT, Workers())
    training.step()
    before = training.seconds
    for _ in range(3):
        training.step()
    return (training.seconds - before) / 3


def expected_seconds(run: Run) -> float:
    """Estimate the seconds that a run will take on one core."""
    steps = run.steps + EVALUATION * run.evaluations + WHOLE * run.whole
    return steps * step_seconds(stand_in(run))


def recorded(results: Path) -> dict[str, RunRecord]:
    """Return the records that the code of today would repeat, by digest."""
    known = read_results(results)
    return {digest: record for digest, record in known.items() if is_current(record)}


@contextmanager
def cores(number: int) -> Iterator[Any]:
    """Start Ray on this machine only, without dashboard, usage statistics or files in the home folder."""
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_TOKEN": TOKEN,
        # Workers run at low priority, so raise Ray's timeouts.
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
            # Do not join a running cluster: its machines may have neither this code nor the results.
            address="local",
            num_cpus=number,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=80 * 2**20,
            _temp_dir=folder,
        )
        # On SIGTERM, shut down in order, as on Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            yield ray
        finally:
            ray.shutdown()


def sweep(
    ray: Any, runs: Mapping[str, Run], plan: str, built: Path, results: Path
) -> Iterator[tuple[str, RunRecord | BaseException]]:
    """Run each in a process with one core, record it when it ends, and yield its record, or its error.

    A run whose process is killed is restarted, and resumes from its last checkpoint. The record is first in
    the run's own folder, so one that a killed sweep has not written to `results` is not lost.
    """
    start = ray.remote(num_cpus=1, max_calls=1, max_retries=3)(long_run)
    folders = {
        name: built / plan / f"{name}-{run.digest[:8]}" for name, run in runs.items()
    }
    running = {start.remote(run, folders[name]): name for name, run in runs.items()}
    while running:
        (future,), _ = ray.wait(list(running))
        name = running.pop(future)
        ended: RunRecord | BaseException
        try:
            ended = ray.get(future)
        except ray.exceptions.RayError as error:
            ended = getattr(error, "cause", error)
        if not isinstance(ended, BaseException) or isinstance(ended, DivergedError):
            record = read_record(folders[name] / "record.json", runs[name].digest)
            assert record, f"{name} has ended and has no record in {folders[name]}"
            write_run(plan, name, record, results)
        yield name, ended


def alone(built: Path) -> FileLock:
    """Return a lock on the checkpoints: a second sweep that acquires it raises `Timeout`."""
    built.mkdir(parents=True, exist_ok=True)
    return FileLock(built / "lock", timeout=0)


def hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 3600 else f"{seconds / 60:.0f} min"


def announce(plans: Iterable[Plan], number: int, results: Path = RESULTS) -> float:
    """Print how long the missing runs of each plan will take, and return the seconds on one core."""
    found, whole, seen = recorded(results), 0.0, set[str]()
    for plan in plans:
        cost, counts = 0.0, []
        for part in plan.missing(found):
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


def run_missing(
    plans: Iterable[Plan],
    number: int,
    left: float,
    results: Path = RESULTS,
    built: Path = BUILT,
) -> int:
    """Run what is missing on `number` cores, and return the number of failed runs."""
    failed, done, began = 0, 0.0, time.monotonic()
    with cores(number) as ray:
        for plan, part in product(plans, (0, 1)):
            missing = plan.missing(recorded(results))
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


def main() -> None:
    parser = argparse.ArgumentParser(description="Run what is missing from the plans.")
    parser.add_argument("--only", metavar="PLAN", help="a plan, or a family of plans")
    parser.add_argument("--cores", type=positive_integer, default=os.cpu_count())
    parser.add_argument(
        "--list", action="store_true", help="print the expected time and stop"
    )
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    torch.set_num_threads(1)
    # Plans run on CPU cores, so that all recorded seconds are comparable.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        plans = read_plans()
        wanted = list(plans.values())
        if chosen.only:
            wanted = [plan for plan in wanted if plan.belongs_to(chosen.only)]
        if not wanted:
            sys.exit(f"unknown plan {chosen.only!r}; known plans: {', '.join(plans)}")
        left = announce(wanted, chosen.cores)
        if chosen.list:
            return
        with alone(BUILT):
            measure_missing(plans.values(), BUILT)
            failed = run_missing(wanted, chosen.cores, left) if left else 0
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
