"""Run the searches of the plan: one program per core at a time, each recorded as it ends.

    python -m experiments.search.run [--only SEARCH] [--cores N] [--list] [--folder F]

It can be stopped at any time. The same command continues from the logs: nothing that ended is trained
again, and programs that had not ended are trained from their beginning. When the searches have ended, their
winners are trained again with other seeds, as long as in the search and longer.

A plan of your own can be in another folder: with `--folder F` it is `F/plan.toml`, and all records and logs
are in `F/results`.

With RAY_ADDRESS set, the searches join the Ray cluster at this address and use all of its cores, instead of
those of this machine. Every machine of the cluster needs the book in the same folder.
"""

import argparse
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch
from filelock import Timeout

from experiments.harness.command import hours, positive_integer
from experiments.harness.provenance import surroundings
from experiments.harness.sweep import BUILT, alone, cores
from experiments.records.runs import RESULTS
from experiments.search.candidates import Task, evaluate_in_worker, unit_of
from experiments.search.log import appending, read_log
from experiments.search.retrain import Train, retrain, retrain_missing, steps_left
from experiments.search.searches import (
    PLAN,
    Candidate,
    Search,
    read_plan,
    restore,
    settings,
    write_birth,
)
from experiments.search.summary import write_searches
from labml_primer.search.evolution import Individual

ATTEMPTS = 2
"""A worker may be killed for other reasons than its program, so a program has two of them."""

SEEDS_APART = 1_000_000
"""The individuals of search 1 are trained with seeds from here on, those of search 2 from twice as many."""

Evaluate = Callable[[str, int, tuple[float, ...], Task], dict[str, Any]]


@contextmanager
def cluster(number: int) -> Iterator[Any]:
    """Join the Ray cluster at RAY_ADDRESS, or start Ray with `number` cores of this machine."""
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        with cores(number) as ray:
            yield ray
        return
    import ray

    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield ray
    finally:
        ray.shutdown()


def core_count(ray: Any) -> int:
    """Return the number of cores of the cluster now. Machines may join and leave."""
    return max(1, int(ray.cluster_resources().get("CPU", 0)))


class Pool:
    """The programs in training, one per core."""

    def __init__(self, ray: Any, evaluate: Evaluate, search: Search):
        self.ray, self.task = ray, search.task
        self.first_seed = SEEDS_APART * search.seed
        # Ray would retry without asking. The attempts are counted here.
        self.start = ray.remote(num_cpus=1, max_retries=0)(evaluate)
        self.running: dict[Any, tuple[Individual[Candidate], int]] = {}

    def add(self, individual: Individual[Candidate], attempt: int = 1) -> None:
        """Begin to train an individual, with a seed that no other has in any search with another seed."""
        dna, seed = str(individual.program.dna), self.first_seed + individual.number
        future = self.start.remote(dna, seed, individual.bars, self.task)
        self.running[future] = individual, attempt

    def wait(self) -> tuple[Individual[Candidate], dict[str, Any]]:
        """Return the next individual to end, with its outcome."""
        while True:
            (future,), _ = self.ray.wait(list(self.running))
            individual, attempt = self.running.pop(future)
            try:
                return individual, self.ray.get(future)
            except self.ray.exceptions.RayTaskError:
                raise  # an error of the search, not of the program
            except self.ray.exceptions.RayError as error:
                if attempt == ATTEMPTS:
                    reason = f"ended {ATTEMPTS} workers: {type(error).__name__}"
                    return individual, {"losses": [], "rejected": reason}
                self.add(individual, attempt + 1)


def run_search(
    ray: Any,
    search: Search,
    path: Path,
    evaluate: Evaluate = evaluate_in_worker,
    report: Callable[[dict[int, dict[str, Any]]], None] = lambda outcomes: None,
) -> None:
    """Begin or resume a search, until all of its individuals have ended.

    Raises `ValueError` if the log cannot be continued.
    """
    lines = read_log(path)
    try:
        evolution, unfinished = restore(search, lines)
    except ValueError as error:
        message = f"{path}: {error}. Restore the plan, or move the log away."
        raise ValueError(message) from error
    waiting: deque[Individual[Candidate]] = deque(unfinished)
    outcomes = {line["ended"]: line for line in lines if "ended" in line}
    pool = Pool(ray, evaluate, search)
    with appending(path) as log:
        if len(outcomes) < search.individuals:
            log.write(began=settings(search), **surroundings())
        while len(outcomes) < search.individuals:
            while len(pool.running) < core_count(ray):
                if waiting:
                    pool.add(waiting.popleft())
                elif evolution.born < search.individuals:
                    new = evolution.ask()
                    write_birth(log, new)
                    pool.add(new)
                else:
                    break
            individual, outcome = pool.wait()
            log.write(ended=individual.number, **outcome)
            evolution.tell(individual, tuple(outcome["losses"]))
            outcomes[individual.number] = outcome
            report(outcomes)


def seconds_left(search: Search, outcomes: Mapping[int, dict[str, Any]]) -> float:
    """Estimate the CPU time that a search still needs."""
    done = sum(outcome.get("whole", 0.0) for outcome in outcomes.values())
    whole = search.expected_steps() * unit_of(search.task, time.process_time).seconds
    if len(outcomes) >= search.size:
        whole = done / len(outcomes) * search.individuals
    return max(0.0, whole - done) if len(outcomes) < search.individuals else 0.0


def progress(search: Search, outcomes: Mapping[int, dict[str, Any]]) -> str:
    """Return a line with the best individual, and the population's median at the first hurdle.

    Later losses are of different training times, so they cannot be compared.
    """
    losses = {n: outcome["losses"] for n, outcome in outcomes.items()}
    trained = {n: each for n, each in losses.items() if each}
    whole = {
        n: each[-1] for n, each in trained.items() if len(each) > search.task.hurdles
    }
    start = f"{len(outcomes)} of {search.individuals}"
    if not trained:
        return f"{start}, all rejected"
    living = [each[0] for each in trained.values()][-search.size :]
    words = f"{start}, median {median(living):.4f} at the first hurdle"
    if not whole:
        return words
    best = min(whole, key=whole.__getitem__)
    return f"{words}, best {whole[best]:.4f} ({best})"


class Report:
    """Print the progress of a search after every tenth individual."""

    def __init__(self, name: str, search: Search):
        self.name, self.search, self.began = name, search, time.monotonic()
        self.at_start: float | None = None

    def __call__(self, outcomes: dict[int, dict[str, Any]]) -> None:
        done = sum(outcome.get("whole", 0.0) for outcome in outcomes.values())
        latest = next(reversed(outcomes.values()))
        if self.at_start is None:
            self.at_start = done - latest.get("whole", 0.0)
        if len(outcomes) % 10 and len(outcomes) < self.search.individuals:
            return
        pace = (time.monotonic() - self.began) / max(done - self.at_start, 1e-9)
        left = seconds_left(self.search, outcomes) * pace
        print(f"{self.name}: {progress(self.search, outcomes)}, {hours(left)} left")


def announce(searches: Mapping[str, Search], number: int, logs: Path) -> float:
    """Print how long each search will take, and return the CPU time of all."""
    whole = 0.0
    for name, search in searches.items():
        lines = read_log(logs / f"{name}.jsonl")
        outcomes = {line["ended"]: line for line in lines if "ended" in line}
        left = seconds_left(search, outcomes)
        whole += left
        done = f"{len(outcomes)} of {search.individuals}"
        print(f"{name:16s}{done:>14s} individuals {hours(left):>8s} on a core")
    task = next(iter(searches.values())).task
    unit = unit_of(task, time.process_time).seconds
    again = steps_left(searches, logs, logs / "retrained.jsonl") * unit
    print(f"{'training again':42s}{hours(again):>8s} on a core")
    whole += again
    print(f"Missing: {hours(whole)} on a core, {hours(whole / number)} on {number}")
    return whole


def selected(plan: Mapping[str, Search], only: str | None) -> Mapping[str, Search]:
    """Return the search with this name alone, or all of them without a name."""
    if only is None:
        return plan
    if only not in plan:
        raise ValueError(f"unknown search {only!r}; known searches: {', '.join(plan)}")
    return {only: plan[only]}


def run_missing(
    plan: Mapping[str, Search],
    searches: Mapping[str, Search],
    results: Path,
    workers: AbstractContextManager[Any],
    evaluate: Evaluate = evaluate_in_worker,
    train: Train = retrain,
) -> None:
    """Run what is missing of these searches, and gather the records of the whole plan, however it ends."""
    logs = results / "search"
    with workers as ray:
        announce(searches, core_count(ray), logs)
        try:
            for name, search in searches.items():
                path = logs / f"{name}.jsonl"
                run_search(ray, search, path, evaluate, Report(name, search))
            retrain_missing(ray, searches, logs, logs / "retrained.jsonl", train)
        finally:
            write_searches(plan, results)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Run the searches of the plan.")
    parser.add_argument("--only", metavar="SEARCH", help="run this search only")
    parser.add_argument("--cores", type=positive_integer, default=os.cpu_count())
    parser.add_argument(
        "--list", action="store_true", help="print the expected time and stop"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="F",
        help="read the plan from F/plan.toml, and keep records in F",
    )
    chosen = parser.parse_args(arguments)
    folder, number = chosen.folder, chosen.cores
    own = folder and (folder / name for name in ("plan.toml", "results", "built"))
    where, results, built = own or (PLAN, RESULTS, BUILT)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(1)
    try:
        plan = read_plan(where)
        searches = selected(plan, chosen.only)
        if chosen.list:
            announce(searches, number, results / "search")
        else:
            with alone(built / "search"):
                run_missing(plan, searches, results, cluster(number))
    except KeyboardInterrupt:
        sys.exit("stopped; the same command resumes from here")
    except ValueError as error:
        sys.exit(str(error))
    except Timeout:
        sys.exit("another search is running; wait for it, or stop it first")
    except OSError as error:  # what is in the logs is whole
        path = error.filename2 or error.filename or "A log"
        reason = f"{path}: {error.strerror or error}"
        sys.exit(
            f"{reason}. Make room or change its rights; the same command continues"
        )


if __name__ == "__main__":
    main()
