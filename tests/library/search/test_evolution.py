"""What the chapter on evolution promises."""

import math
from collections.abc import Callable, Iterator
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labml_primer.search.evolution import (
    Evolution,
    Individual,
    shares,
    train_over_hurdles,
)

Losses = tuple[float, ...]
Program = tuple[int, ...]


def start(random: Random) -> Program:
    return tuple(random.randrange(10) for _ in range(4))


def mutate(program: Program, random: Random) -> Program:
    """Change one number."""
    i = random.randrange(len(program))
    return (*program[:i], random.randrange(10), *program[i + 1 :])


def curve_of(program: Program) -> list[float]:
    """Return a loss at each of two hurdles and at the end. 13 in a program makes it diverge."""
    loss = float(sum(program))
    return [loss + 2, loss + 1, math.nan if sum(program) == 13 else loss]


def search(
    seed: int, count: int, lag: int = 1
) -> list[tuple[Individual[Program], Losses]]:
    """Return all individuals with their losses, with `lag` of them in training at once."""
    evolution = Evolution(start, mutate, seed=seed, size=12, tournament=3, hurdles=2)
    training: list[Individual[Program]] = []
    ended = []
    while len(ended) < count:
        while len(training) < lag:
            training.append(evolution.ask())
        individual = training.pop(0)
        losses = train_over_hurdles(iter(curve_of(individual.program)), individual.bars)
        evolution.tell(individual, losses)
        ended.append((individual, losses))
    return ended


# ## Hurdles


def test_shares_are_those_of_the_papers_hurdles() -> None:
    seconds = [round(25_200 * share, 1) for share in shares(4)]
    assert seconds == [812.9, 2438.7, 5690.3, 12193.5, 25200.0]


@given(st.integers(0, 12))
def test_all_parts_of_the_training_cost_the_same(hurdles: int) -> None:
    ends = shares(hurdles)
    parts = [end - start for start, end in zip((0.0, *ends), ends, strict=False)]
    costs = [0.5**passed * part for passed, part in enumerate(parts)]
    assert len(costs) == hurdles + 1
    assert costs == pytest.approx([costs[0]] * (hurdles + 1))
    assert ends[-1] == 1.0


losses = st.floats(0, 10)


@given(
    st.lists(losses, min_size=4, max_size=4), st.lists(losses, min_size=3, max_size=3)
)
def test_training_ends_at_the_first_hurdle_that_is_not_passed(
    curve: list[float], bars: list[float]
) -> None:
    trained = 0

    def train() -> Iterator[float]:
        nonlocal trained
        for loss in curve:
            trained += 1
            yield loss

    reached = train_over_hurdles(train(), tuple(bars))
    failed = [k for k in range(3) if curve[k] > bars[k]]
    assert len(reached) == trained == (failed[0] + 1 if failed else 4)
    assert list(reached) == curve[:trained]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_program_whose_loss_is_not_finite_is_rejected(value: float) -> None:
    assert train_over_hurdles(iter([3.0, value, 1.0]), (math.inf,) * 2) == ()


# ## Evolution


@given(st.integers(0, 1000), st.integers(1, 5))
def test_search_depends_on_its_seed_and_the_losses_alone(seed: int, lag: int) -> None:
    assert search(seed, 60, lag) == search(seed, 60, lag)
    assert search(seed, 60, lag) != search(seed + 1, 60, lag)


@given(st.integers(0, 1000), st.integers(1, 5))
def test_parents_are_living_programs_and_hurdles_their_medians(
    seed: int, lag: int
) -> None:
    ended = search(seed, 80, lag)
    for individual, _ in ended:
        # When it was born, all but the programs then in training had ended.
        before = ended[: max(0, individual.number - lag + 1)]
        living = {each.number: losses for each, losses in before if losses}
        living = dict(list(living.items())[-12:])
        assert (individual.parent is None) == (individual.number < 12)
        assert individual.parent is None or individual.parent in living
        for k, bar in enumerate(individual.bars):
            reached = [losses[k] for losses in living.values() if len(losses) > k]
            assert bar == (median(reached) if reached else math.inf)


@given(st.integers(0, 1000))
def test_a_rejected_program_replaces_nobody(seed: int) -> None:
    evolution = Evolution(start, mutate, seed=seed, size=5, tournament=2)
    for n in range(20):
        rejected = ((), (math.nan,), (1.0, math.inf))[n // 3 % 3]
        evolution.tell(evolution.ask(), rejected if n % 3 == 0 else (float(n),))
        numbers = [individual.number for individual, _ in evolution.population]
        assert numbers == [k for k in range(n + 1) if k % 3][-5:]


def test_a_search_whose_programs_are_all_rejected_starts_again() -> None:
    evolution = Evolution(start, mutate, size=2)
    for _ in range(5):
        individual = evolution.ask()
        assert individual.parent is None
        evolution.tell(individual, ())


def test_selection_beats_a_tournament_of_one() -> None:
    def final(tournament: int) -> float:
        evolution = Evolution(start, mutate, size=20, tournament=tournament, hurdles=0)
        for _ in range(300):
            individual = evolution.ask()
            evolution.tell(individual, (float(sum(individual.program)),))
        return median(losses[-1] for _, losses in evolution.population)

    assert final(5) < final(1) - 5


@pytest.mark.parametrize("tournament", [2, 5, 12])
def test_search_chooses_the_parents_that_pyglove_chooses(tournament: int) -> None:
    """PyGlove's regularized evolution, with our draws, as an independent formulation."""
    import pyglove as pg  # it takes a second

    size = 12

    class Mutation(pg.evolution.Mutator):  # type: ignore[misc]
        """Our mutation. PyGlove's own draws from another stream."""

        def mutate(self, dna: object) -> object:
            parents.append(dna.userdata.number)
            child = mutate(tuple(dna.to_numbers()), randoms[0])
            return pg.DNA(list(child))

    parents: list[int] = []
    randoms: list[Random] = [Random()]
    theirs = pg.evolution.regularized_evolution(Mutation(), size, tournament, seed=0)
    theirs.setup(pg.dna_spec(pg.List([pg.oneof(range(10)) for _ in range(4)])))
    selector = next(
        node
        for node in descendants(theirs)
        if isinstance(node, pg.evolution.selectors.Random)
    )
    ours = Evolution(start, mutate, size=size, tournament=tournament, hurdles=0)
    for number in range(100):
        individual = ours.ask()
        randoms[0] = Random(f"0 {number}")
        selector._random = randoms[0]
        dna = theirs.propose()
        if number < size:
            dna = pg.DNA(list(individual.program), spec=dna.spec, metadata=dna.metadata)
        else:
            assert parents[-1] == individual.parent
            assert tuple(dna.to_numbers()) == individual.program
        dna.set_userdata("number", number)
        loss = float(sum(individual.program))
        ours.tell(individual, (loss,))
        theirs.feedback(dna, -loss)


def descendants(value: object) -> Iterator[object]:
    """Yield a symbolic object of PyGlove and all in it."""
    yield value
    items: Callable[[], Iterator[tuple[str, object]]] | None
    items = getattr(value, "sym_items", None)
    for _, inner in items() if items else ():
        yield from descendants(inner)
