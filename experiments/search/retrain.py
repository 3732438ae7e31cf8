"""Train the winners of the searches again, and the Transformer, Primer-EZ and Primer next to them.

The loss by which a search chose its winner is too good, because of many noisy losses the lowest was chosen.
So the best of each search are trained again, with other seeds: as in the search, three times as long, and at
twice the width as well. Their results are those on the reported plays, on which nothing was chosen.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from experiments.harness.long_run import surroundings
from experiments.harness.parallel import Workers
from experiments.records import write_record
from experiments.search.candidates import (
    MOST_SECONDS,
    MOST_WALL_SECONDS,
    RejectedError,
    Task,
    Training,
    time_limits,
    unit_of,
)
from experiments.search.log import read_log
from experiments.search.searches import HURDLES, SETTINGS, Search
from experiments.search.summary import ends, whole
from labml_primer.search.programs import DNA, PRIMER, TRANSFORMER, Instruction, parse

SEEDS = range(3)
BEST = 3
"""How many of each search are retrained."""


def primer_ez() -> DNA:
    """Return the Transformer with a convolution after each projection, and the squared ReLU."""
    subprograms = list(TRANSFORMER.subprograms)
    subprograms[3] += (Instruction("DCONV 3X1", 2, 2),)
    subprograms[9] += (Instruction("SQUARE", 2, 2),)
    return replace(TRANSFORMER, subprograms=tuple(subprograms))


@dataclass(frozen=True)
class Retraining:
    """A program to train again. `seed` differs from all seeds of the searches."""

    name: str
    dna: str
    task: Task
    seed: int
    longer: int
    scale: int

    @property
    def path(self) -> str:
        return f"{self.name}-time{self.longer}-width{self.scale}-seed{self.seed}.json"


def best_programs(path: Path, search: Search) -> dict[int, DNA]:
    """Return the best programs of a finished search that were trained to the end, by their numbers."""
    lines = read_log(path)
    if len(ends(lines)) < search.individuals:
        return {}
    best = list(whole(lines))[:BEST]
    return {
        line["born"]: parse(line["dna"]) for line in lines if line.get("born") in best
    }


def retrainings(searches: Mapping[str, Search], logs: Path) -> Iterator[Retraining]:
    """Yield what is to be trained again: known models first, then the best of the finished searches."""
    known = {"transformer": TRANSFORMER, "primer-ez": primer_ez(), "primer": PRIMER}
    models = known | {
        f"{name}-{number}": dna
        for name, search in searches.items()
        for number, dna in best_programs(logs / f"{name}.jsonl", search).items()
    }
    task = next(iter(searches.values())).task
    for name, dna in models.items():
        for longer, scale in SETTINGS:
            whole = replace(task, budget=longer * task.budget, hurdles=HURDLES)
            for seed in SEEDS:
                yield Retraining(name, str(dna), whole, seed, longer, scale)


def retrain(run: Retraining) -> dict[str, Any]:
    """Train once more, and return the record."""
    torch.set_num_threads(1)
    unit_of(run.task, time.process_time)
    record: dict[str, Any] = {**asdict(run), **surroundings(Workers())}
    # A seed of no search: those count from 0 up.
    with time_limits(run.longer * MOST_SECONDS, run.longer * MOST_WALL_SECONDS):
        try:
            training = Training(
                parse(run.dna), run.task, -1 - run.seed, time.process_time, run.scale
            )
            record["losses"] = list(training.curve())
            record["reported"] = training.reported()
            record |= training.costs()
        except RejectedError as error:
            record["rejected"] = str(error)
    return record


def retrain_missing(
    ray: Any, searches: Mapping[str, Search], logs: Path, folder: Path
) -> None:
    """Train again what is not recorded in `folder`, one per core at a time."""
    start = ray.remote(num_cpus=1, max_retries=1)(retrain)
    running = {
        start.remote(run): run
        for run in retrainings(searches, logs)
        if not (folder / run.path).exists()
    }
    while running:
        (future,), _ = ray.wait(list(running))
        run = running.pop(future)
        record = ray.get(future)
        write_record(folder / run.path, record)
        outcome = record.get("rejected") or f"{record['losses'][-1]:.4f} nats"
        print(
            f"retrained {run.path.removesuffix('.json')}: {outcome}, {len(running)} left"
        )
