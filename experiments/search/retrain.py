"""Train the winners of the searches again, and the Transformer, Primer-EZ and Primer next to them.

The loss by which a search chose its winner is too good, because of many noisy losses the lowest was chosen.
So the best of each search are trained again, with other seeds. A few of them are also trained three times
as long, and at twice the width as well. Their results are those on the reported plays, on which nothing was
chosen.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from experiments.harness.provenance import surroundings
from experiments.records.lines import Line, read_lines, write_line
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
from experiments.search.summary import ends, trained_to_the_end
from labml_primer.search.programs import DNA, PRIMER, TRANSFORMER, Instruction, parse

SEEDS = range(3)
BEST = 30
"""How many of each search are retrained. The paper retrains the best 100 of its search."""
LONGER = 3
"""How many of these, the best of the search, are also trained longer and wider."""


def primer_ez() -> DNA:
    """Return the Transformer with a convolution after each projection, and the squared ReLU."""
    subprograms = list(TRANSFORMER.subprograms)
    subprograms[3] += (Instruction("DCONV 3X1", 2, 2),)
    subprograms[9] += (Instruction("SQUARE", 2, 2),)
    return replace(TRANSFORMER, subprograms=tuple(subprograms))


def known_models() -> dict[str, DNA]:
    """Return the models next to which the winners are trained."""
    return {"transformer": TRANSFORMER, "primer-ez": primer_ez(), "primer": PRIMER}


@dataclass(frozen=True)
class Retraining:
    """A program to train again: `longer` times as long as in the search, `scale` times as wide."""

    name: str
    dna: str
    task: Task
    seed: int
    longer: int
    scale: int

    @property
    def line(self) -> str:
        """The name of its record."""
        return f"{self.name}-time{self.longer}-width{self.scale}-seed{self.seed}"

    def is_recorded(self, recorded: Mapping[str, Line]) -> bool:
        """Return whether a record of this run is there, and not one of another with the same name."""
        return asdict(self).items() <= recorded.get(self.line, {}).items()


def best_programs(path: Path, search: Search) -> dict[int, DNA]:
    """Return the programs with the lowest losses of a finished search, by their numbers, the lowest first.

    Only programs that were trained to the end count.
    """
    lines = read_log(path)
    if len(ends(lines)) < search.individuals:
        return {}
    programs = {line["born"]: line["dna"] for line in lines if "born" in line}
    best = list(trained_to_the_end(lines))[:BEST]
    return {number: parse(programs[number]) for number in best}


def retrainings(searches: Mapping[str, Search], logs: Path) -> Iterator[Retraining]:
    """Yield what is to be trained again: known models first, then the best of the finished searches."""
    models: list[tuple[str, DNA, Sequence[tuple[int, int]]]] = [
        (name, dna, SETTINGS) for name, dna in known_models().items()
    ]
    for search_name, search in searches.items():
        best = best_programs(logs / f"{search_name}.jsonl", search)
        for rank, (number, dna) in enumerate(best.items()):
            ways = SETTINGS if rank < LONGER else SETTINGS[:1]
            models.append((f"{search_name}-{number}", dna, ways))
    task = next(iter(searches.values())).task
    for name, dna, settings in models:
        for longer, scale in settings:
            again = replace(task, budget=longer * task.budget, hurdles=HURDLES)
            for seed in SEEDS:
                yield Retraining(name, str(dna), again, seed, longer, scale)


def steps_left(searches: Mapping[str, Search], logs: Path, records: Path) -> float:
    """Return the time of what is still to be trained again, in steps of the Transformer.

    Each search counts with as many winners as it will have.
    """
    known = read_lines(records)
    recorded = [r for r in retrainings(searches, logs) if r.is_recorded(known)]
    every, first = (
        sum(longer for longer, _ in settings) for settings in (SETTINGS, SETTINGS[:1])
    )
    of_search = LONGER * every + (BEST - LONGER) * first
    whole = len(known_models()) * every + of_search * len(searches)
    budget = next(iter(searches.values())).task.budget
    return whole * len(SEEDS) * budget - sum(run.task.budget for run in recorded)


def retrain(run: Retraining) -> dict[str, Any]:
    """Train once more, and return what is recorded."""
    torch.set_num_threads(1)
    unit_of(run.task, time.process_time)
    seed = -1 - run.seed  # of no search: those count from 0 up
    with time_limits(run.longer * MOST_SECONDS, run.longer * MOST_WALL_SECONDS):
        try:
            training = Training(
                parse(run.dna), run.task, seed, time.process_time, run.scale
            )
            losses, reported = list(training.curve()), training.reported()
        except (RejectedError, RuntimeError) as error:  # PyTorch's, such as no memory
            return {**surroundings(), "rejected": str(error).splitlines()[0]}
    found = {"losses": losses, "reported": reported, **training.costs()}
    return {**surroundings(), **found}


Train = Callable[[Retraining], dict[str, Any]]
"""Train once more, and return what is recorded."""


def retrain_missing(
    ray: Any,
    searches: Mapping[str, Search],
    logs: Path,
    records: Path,
    train: Train = retrain,
) -> None:
    """Train again what is not in the file `records`, one per core at a time."""
    start, known = ray.remote(num_cpus=1, max_retries=1)(train), read_lines(records)
    running = {
        start.remote(run): run
        for run in retrainings(searches, logs)
        if not run.is_recorded(known)
    }
    while running:
        (future,), _ = ray.wait(list(running))
        run = running.pop(future)
        try:
            found = ray.get(future)
        except ray.exceptions.RayTaskError:
            raise  # an error of the search, not of the program
        except ray.exceptions.RayError as error:
            found = {"rejected": f"ended its workers: {type(error).__name__}"}
        write_line(records, run.line, {**asdict(run), **found})
        outcome = found.get("rejected") or f"{found['losses'][-1]:.4f} nats"
        print(f"retrained {run.line}: {outcome}, {len(running)} left")
