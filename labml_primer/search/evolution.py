r"""
# Evolution

The search itself: the best of a few programs gets a mutated child, and the oldest program dies.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Generic, TypeVar

P = TypeVar("P")


def shares(hurdles: int) -> tuple[float, ...]:
    """Return the share of the budget at which each hurdle is, and 1 for the end of training."""
    whole = 2 ** (hurdles + 1) - 1
    return tuple((2**k - 1) / whole for k in range(1, hurdles + 2))


@dataclass(frozen=True)
class Individual(Generic[P]):
    """A program in the search. It passes a hurdle with a loss of at most the hurdle's entry in `bars`."""

    number: int
    program: P
    parent: int | None
    bars: tuple[float, ...]


def train_over_hurdles(
    curve: Iterator[float], bars: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the losses up to the first hurdle not passed, or nothing if one is not finite."""
    losses: list[float] = []
    for bar in (*bars, math.inf):
        loss = next(curve)
        if not math.isfinite(loss):
            return ()
        losses.append(loss)
        if loss > bar:
            break
    return tuple(losses)


@dataclass
class Evolution(Generic[P]):
    """Regularized evolution with halving hurdles."""

    start: Callable[[Random], P]
    mutate: Callable[[P, Random], P]
    seed: int = 0
    size: int = 100
    tournament: int = 10
    hurdles: int = 4
    enough: int = 10
    born: int = 0
    population: deque[tuple[Individual[P], tuple[float, ...]]] = field(
        default_factory=deque
    )

    def ask(self) -> Individual[P]:
        """Return the next individual to train."""
        random = Random(f"{self.seed} {self.born}")
        if self.born < self.size or not self.population:
            parent, program = None, self.start(random)
        else:
            number = min(self.tournament, len(self.population))
            rivals = random.sample(list(self.population), number)
            best, _ = min(rivals, key=lambda rival: rival[1][-1])
            parent, program = best.number, self.mutate(best.program, random)
        individual = Individual(self.born, program, parent, self.bars())
        self.born += 1
        return individual

    def bars(self) -> tuple[float, ...]:
        """Return the loss to reach at each hurdle: the median of the population there."""
        reached = [
            [losses[k] for _, losses in self.population if len(losses) > k]
            for k in range(self.hurdles)
        ]
        return tuple(
            median(losses) if len(losses) >= self.enough else math.inf
            for losses in reached
        )

    def tell(self, individual: Individual[P], losses: tuple[float, ...]) -> None:
        """Add an individual with its losses to the population, and let the oldest die."""
        if losses:
            self.population.append((individual, losses))
        if len(self.population) > self.size:
            self.population.popleft()
