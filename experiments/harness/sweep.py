"""Run many runs at once, each in a process with one core."""

import logging
import secrets
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock

from experiments.harness.command import environment
from experiments.harness.configuration import Run
from experiments.harness.long_run import long_run
from experiments.harness.training import DivergedError
from experiments.records.runs import (
    RESULTS,
    RunRecord,
    of_modified_code,
    read_record,
    write_run,
)

BUILT = RESULTS.parent.parent / "_build" / "experiments"
"""The checkpoints."""


NICENESS = "19"
"""How far the workers of long runs stand back behind other processes."""

TOKEN = secrets.token_hex(32)
"""Ray reads it once per process; other users of the machine cannot connect without it."""


@contextmanager
def cores(number: int, long: bool = True) -> Iterator[Any]:
    """Start Ray on this machine only, without dashboard, usage statistics or files in the home folder.

    Workers of `long` runs have the lowest priority.
    """
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_TOKEN": TOKEN,
        # Workers run at low priority, so raise Ray's timeouts.
        "RAY_worker_niceness": NICENESS if long else "0",
        "RAY_worker_register_timeout_seconds": "86400",
        "RAY_health_check_failure_threshold": "1000",
        "RAY_gcs_rpc_server_reconnect_timeout_s": "3600",
    }
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        environment(settings),
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
    ray: Any,
    runs: Mapping[str, Run],
    plan: Path,
    results: Path,
    committed: bool = False,
) -> Iterator[tuple[str, RunRecord | BaseException]]:
    """Run each in a process with one core, record it when it ends, and yield its record, or its error.

    `plan` is the folder of the plan's runs. A run whose process is killed is restarted, and resumes from its
    last checkpoint. The record is first in the run's own folder, so one that a killed sweep has not written
    to `results` is not lost. With `committed`, a record of code that was not committed is not written there.
    """
    start = ray.remote(num_cpus=1, max_calls=1, max_retries=3)(long_run)
    folders = {name: plan / f"{name}-{run.digest[:8]}" for name, run in runs.items()}
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
            if committed and of_modified_code(record):
                ended = RuntimeError(
                    f"the code was modified while it ran, so its record is not reported. It is in "
                    f"{folders[name]}: commit the code, delete this folder, and give the command again"
                )
            else:
                write_run(plan.name, name, record, results)
        yield name, ended


def alone(built: Path) -> FileLock:
    """Return a lock on the checkpoints: a second sweep that acquires it raises `Timeout`."""
    built.mkdir(parents=True, exist_ok=True)
    return FileLock(built / "lock", timeout=0)
