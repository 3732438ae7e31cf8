"""The searches: their settings, the programs they begin with, and their mutations."""

import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from experiments.search.candidates import Task
from experiments.search.log import Line, Log
from labml_primer.search.evolution import Evolution, Individual, shares
from labml_primer.search.mutations import MUTATIONS, graph, random_program
from labml_primer.search.programs import DNA, TRANSFORMER, parse

PLAN = Path(__file__).with_name("plan.toml")

SETTINGS = ((1, 1), (3, 1), (3, 2))
"""How winners are trained again: how many times as long as in the search, and how many times as wide."""
HURDLES = 4
"""The paper's. Losses of winners are recorded at each of them, to see which would have passed."""


@dataclass(frozen=True)
class Candidate:
    """A program and the names of the mutations that made it of its parent."""

    dna: DNA
    mutations: tuple[str, ...] = ()


Population = Evolution[Candidate]
Unfinished = list[Individual[Candidate]]


STARTS: dict[str, Callable[[Random], Candidate]] = {
    "transformer": lambda random: Candidate(TRANSFORMER),  # as the paper's search
    "random": lambda random: Candidate(random_program(TRANSFORMER, random)),
}
"""The first programs of a search. A random one has the Transformer's length."""


def child(parent: Candidate, random: Random) -> Candidate:
    """Return a child as `labml_primer.search.mutations.mutate` does, with the names of its mutations.

    A child beyond the limits of a program is returned too, because its rejection is recorded.
    """
    before, dna = graph(parent.dna), parent.dna
    names: list[str] = []
    same = True
    while same:
        mutation = random.choice(MUTATIONS)
        dna = mutation(dna, random)
        names.append(mutation.__name__)
        try:
            same = graph(dna) == before
        except ValueError:
            same = False
    return Candidate(dna, tuple(names))


@dataclass(frozen=True)
class Search:
    """A search of the plan. With a tournament of one, parents are chosen at random: no selection."""

    start: str = "transformer"
    seed: int = 0
    individuals: int = 1500
    size: int = 100
    tournament: int = 10
    task: Task = field(default_factory=Task)

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ValueError(
                f"unknown start {self.start!r}; known: {', '.join(STARTS)}"
            )
        for name in ("individuals", "size", "tournament"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")

    def evolution(self) -> Population:
        """Return the search before its first individual."""
        return Evolution(
            STARTS[self.start],
            child,
            seed=self.seed,
            size=self.size,
            tournament=self.tournament,
            hurdles=self.task.hurdles,
        )

    def expected_steps(self) -> float:
        """Return the time of all individuals in the Transformer's steps, if half pass each hurdle."""
        mean = (self.task.hurdles + 1) * shares(self.task.hurdles)[0]
        return self.individuals * self.task.budget * mean


def read_plan(path: Path = PLAN) -> dict[str, Search]:
    """Return the searches of the plan by name, in its order. A `ValueError` names the file and the search."""
    place = "[task]"
    searches = {}
    try:
        plan = tomllib.loads(path.read_text(encoding="utf-8"))
        task = Task(**plan["task"])
        for name, chosen in plan["search"].items():
            place = f"[search.{name}]"
            searches[name] = Search(**chosen, task=task)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}, {place}: {error}") from error
    return searches


def write_birth(log: Log, individual: Individual[Candidate]) -> None:
    """Append a new individual to the log."""
    log.write(
        born=individual.number,
        parent=individual.parent,
        mutations=individual.program.mutations,
        # JSON has no infinity: a hurdle that everyone passes is null.
        bars=[None if bar == float("inf") else bar for bar in individual.bars],
        dna=str(individual.program.dna),
    )


def read_birth(line: Line) -> Individual[Candidate]:
    """Return the individual of a line of the log."""
    bars = (float("inf") if bar is None else bar for bar in line["bars"])
    candidate = Candidate(parse(line["dna"]), tuple(line["mutations"]))
    return Individual(line["born"], candidate, line["parent"], tuple(bars))


def restore(search: Search, lines: list[Line]) -> tuple[Population, Unfinished]:
    """Return the state of a search after the lines of its log, and the individuals that have not ended.

    Raises `ValueError` if the log is of a search with other settings.
    """
    now = settings(search)
    evolution = search.evolution()
    unfinished: dict[int, Individual[Candidate]] = {}
    for line in lines:
        if "began" in line and (then := line["began"]) != now:
            old, new = ({**each, **each["task"], "task": None} for each in (then, now))
            changed = ", ".join(
                f"{name} was {old.get(name)}, now {new.get(name)}"
                for name in sorted(old | new)
                if old.get(name) != new.get(name)
            )
            raise ValueError(f"it is the log of another search: {changed}")
        if "born" in line:
            individual = read_birth(line)
            unfinished[individual.number] = individual
            evolution.born = individual.number + 1
        if "ended" in line:
            evolution.tell(unfinished.pop(line["ended"]), tuple(line["losses"]))
    return evolution, list(unfinished.values())


def settings(search: Search) -> dict[str, Any]:
    """Return the settings of a search as the log has them."""
    return asdict(search)
