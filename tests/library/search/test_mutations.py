"""What the chapter on mutations promises."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labml_primer.search.evolution import Evolution
from labml_primer.search.mutations import (
    MUTATIONS,
    Seen,
    deleted,
    equivalent,
    fingerprint,
    graph,
    inserted,
    mutate,
    mutate_bank,
    mutate_field,
    random_instruction,
    random_program,
    swap,
    swapped,
    with_subprogram,
)
from labml_primer.search.programs import (
    DIMENSIONS,
    DNA,
    PRIMER,
    TRANSFORMER,
    Instruction,
    parse,
)
from labml_primer.search.running import expand

randoms = st.integers(0, 10_000).map(Random)
dnas = st.builds(
    random_program, st.sampled_from([TRANSFORMER, PRIMER]), randoms
) | st.sampled_from([TRANSFORMER, PRIMER])


@given(dnas, randoms)
def test_every_child_is_a_program_with_as_many_subprograms(
    dna: DNA, random: Random
) -> None:
    for mutation in MUTATIONS:
        child = mutation(dna, random)  # DNA checks itself
        assert len(child.subprograms) == len(dna.subprograms)
        assert abs(len(child) - len(dna)) <= 1


@given(dnas, randoms, st.data())
def test_deleting_what_was_inserted_restores_the_program(
    dna: DNA, random: Random, data: st.DataObject
) -> None:
    s = data.draw(st.integers(0, len(dna.subprograms) - 1))
    subprogram = dna.subprograms[s]
    value = data.draw(st.integers(2, len(subprogram) + 2))
    new = random_instruction(dna, s, value, random)
    longer = inserted(subprogram, value, new)
    assert longer[value - 2] == new
    assert deleted(longer, value) == subprogram


@given(dnas, st.data())
def test_swapping_twice_restores_the_program(dna: DNA, data: st.DataObject) -> None:
    subprogram = dna.subprograms[0]
    a, b = data.draw(
        st.lists(
            st.integers(2, len(subprogram) + 1), min_size=2, max_size=2, unique=True
        )
    )
    assert swapped(swapped(subprogram, a, b), a, b) == subprogram


def test_a_deleted_instruction_is_bypassed() -> None:
    # S9 without its MAX, and attention without its factor
    assert deleted(TRANSFORMER.subprograms[9], 2) == ()
    attention = deleted(TRANSFORMER.subprograms[1], 4)
    assert [str(i) for i in attention[2:]] == [
        "S3(h0, h0)",
        "T-MAT MUL(h3, h2)",
        "S4(h5, h5)",
        "MAT MUL(h6, h4)",
    ]


def test_scale_in_primer_is_one_insertion() -> None:
    s1 = PRIMER.subprograms[1]
    before = deleted(s1, 8)
    assert str(before[-1]) == "MAT MUL(h7, h5)"
    assert inserted(before, 8, s1[6]) == s1


def test_a_field_mutation_changes_one_field_and_reaches_all() -> None:
    changed: Counter[str] = Counter()
    for seed in range(200):
        child = mutate_field(TRANSFORMER, Random(seed))
        pairs = [
            (a, b)
            for old, new in zip(TRANSFORMER.subprograms, child.subprograms, strict=True)
            for a, b in zip(old, new, strict=True)
            if a != b
        ]
        assert len(pairs) == 1
        (old_one, new_one) = pairs[0]
        fields = [f for f in vars(old_one) if vars(old_one)[f] != vars(new_one)[f]]
        assert len(fields) == 1
        changed[fields[0]] += 1
    assert set(changed) == set(vars(Instruction("ADD")))


def test_a_bank_mutation_changes_one_value() -> None:
    for seed in range(50):
        child = mutate_bank(TRANSFORMER, Random(seed))
        old = (*TRANSFORMER.constants, *TRANSFORMER.dimensions)
        new = (*child.constants, *child.dimensions)
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 1
        assert set(child.dimensions) <= set(DIMENSIONS)
        assert child.subprograms == TRANSFORMER.subprograms


def test_constants_stay_within_what_a_program_may_have() -> None:
    dna = replace(TRANSFORMER, constants=(9e37, -9e37))
    for seed in range(50):
        mutate_bank(dna, Random(seed))


BANKS = "constants 0.0 1.0\ndimensions 1 2 4 8 12 16\n"


@pytest.mark.parametrize(
    "first, second",
    [
        # dead code, ignored fields, the order of lines, subprograms, MAIN's two inputs
        ("h2 = SIN(h0, h0)", "h2 = ABS(h0, h0)\nh3 = SIN(h0, h0)"),
        ("h2 = SIN(h0, h0)", "h2 = SIN(h0, h1) c1 d3"),
        (
            "h2 = SIN(h0, h0)\nh3 = COS(h0, h0)\nh4 = ADD(h2, h3)",
            "h2 = COS(h0, h0)\nh3 = SIN(h0, h0)\nh4 = ADD(h3, h2)",
        ),
        ("h2 = SIN(h0, h0)", "h2 = S1(h0, h0)\nS1\nh2 = SIN(h1, h0)"),
        ("h2 = ADD(h0, h0)", "h2 = ADD(h0, h1)"),
    ],
)
def test_equivalent_programs_have_equal_graphs(first: str, second: str) -> None:
    a, b = (graph(parse(f"{BANKS}S0\n{text}")) for text in (first, second))
    assert a == b


@pytest.mark.parametrize(
    "first, second",
    [
        ("h2 = SIN(h0, h0)", "h2 = COS(h0, h0)"),
        ("h2 = MAX(h0, h0)", "h2 = MAX(h0, h0) c1"),
        ("h2 = CONV 1X1(h0, h0)", "h2 = CONV 1X1(h0, h0) d1"),
        ("h2 = SHIFT(h0, h0) @2", "h2 = SHIFT(h0, h0) @4"),
        (
            "h2 = SIN(h0, h0)\nh3 = DIVIDE(h0, h2)",
            "h2 = SIN(h0, h0)\nh3 = DIVIDE(h2, h0)",
        ),
        # one dense layer used twice, and two dense layers
        (
            "h2 = CONV 1X1(h0, h0)\nh3 = ADD(h2, h2)",
            "h2 = CONV 1X1(h0, h0)\nh3 = CONV 1X1(h0, h0)\nh4 = ADD(h2, h3)",
        ),
    ],
)
def test_different_programs_have_different_graphs(first: str, second: str) -> None:
    a, b = (graph(parse(f"{BANKS}S0\n{text}")) for text in (first, second))
    assert a != b


def test_graph_of_a_long_chain_needs_no_deep_recursion() -> None:
    lines = "\n".join(
        f"h{v} = SIN(h{v - 1 if v > 2 else 0}, h0)" for v in range(2, 3000)
    )
    assert len(graph(parse(f"{BANKS}S0\n{lines}"))) == 2998


@pytest.mark.parametrize(
    "first, second",
    [
        ("h2 = SQUARE(h0, h0)", "h2 = SQUARE(h0, h0)\nh3 = ABS(h2, h2)"),
        ("h2 = ADD(h0, h0)", "h2 = C MUL(h0, h0) c1\nh3 = ADD(h2, h0)"),
        ("h2 = ABS(h0, h0)", "h2 = SIGN(h0, h0)\nh3 = MULTIPLY(h0, h2)"),
        # zeros of both signs
        ("h2 = DIFFERENCE(h0, h0)", "h2 = C MUL(h0, h0)\nh3 = SIN(h2, h2)"),
        # dense layers after each other, written in another order
        (
            "h2 = CONV 1X1(h0, h0)\nh3 = DCONV 3X1(h0, h0)\nh4 = MAT MUL(h2, h3)",
            "h2 = DCONV 3X1(h0, h0)\nh3 = CONV 1X1(h0, h0)\nh4 = MAT MUL(h3, h2)\nh5 = C MUL(h4, h4) c1",
        ),
    ],
)
def test_programs_that_compute_the_same_are_equivalent_both_ways(
    first: str, second: str
) -> None:
    a, b = (parse(f"{BANKS}S0\n{text}") for text in (first, second))
    assert graph(a) != graph(b)
    assert equivalent(a, b) and equivalent(b, a)


@pytest.mark.parametrize(
    "first, second",
    [
        # a shift starts at zero and a scale at one, but they are trained
        ("h2 = ADD(h0, h1)", "h2 = ADD(h0, h1)\nh3 = SHIFT(h2, h2)"),
        ("h2 = ADD(h0, h1)", "h2 = ADD(h0, h1)\nh3 = SCALE(h2, h2)"),
        (
            "h2 = CONV 1X1(h0, h0)\nh3 = SQUARE(h2, h2)",
            "h2 = CONV 1X1(h0, h0)\nh3 = CONV 1X1(h0, h0)\nh4 = MULTIPLY(h2, h3)",
        ),
        ("h2 = C MUL(h0, h0) c1", "h2 = C MUL(h0, h0)"),
    ],
)
def test_programs_that_compute_something_else_are_not_equivalent(
    first: str, second: str
) -> None:
    a, b = (parse(f"{BANKS}S0\n{text}") for text in (first, second))
    assert not equivalent(a, b) and not equivalent(b, a)


@given(randoms)
def test_equal_graphs_have_equal_fingerprints(random: Random) -> None:
    # dead code in front and an ignored field change every index, but no result
    dead = inserted(TRANSFORMER.subprograms[1], 2, Instruction("SIN", 1, 1))
    longer = with_subprogram(TRANSFORMER, 1, dead)
    torch.manual_seed(random.randrange(100))  # the draw of the weights is a fixed one
    assert graph(longer) == graph(TRANSFORMER)
    assert fingerprint(longer) == fingerprint(TRANSFORMER)


def test_seen_returns_the_first_of_equivalent_programs() -> None:
    seen = Seen()
    first, other, new = (
        parse(f"{BANKS}S0\n{text}")
        for text in (
            "h2 = SQUARE(h0, h0)",
            "h2 = SQUARE(h0, h0)\nh3 = ABS(h2, h2)",
            "h2 = SIN(h0, h0)",
        )
    )
    assert seen.same(first) is first
    assert seen.same(other) is first
    assert seen.same(new) is new
    assert seen.same(other) is first


@given(randoms)
def test_a_child_never_has_its_parents_graph(random: Random) -> None:
    assert graph(mutate(TRANSFORMER, random)) != graph(TRANSFORMER)


def test_equal_seeds_give_equal_children() -> None:
    first, second, third = (mutate(PRIMER, Random(seed)) for seed in (1, 1, 2))
    assert first == second != third


def test_a_search_goes_on_after_a_child_that_is_too_large_to_build() -> None:
    evolution = Evolution(lambda _: TRANSFORMER, mutate, seed=2)
    random, too_large = Random(0), 0
    for _ in range(1_200):
        individual = evolution.ask()
        try:
            graph(individual.program)
        except ValueError:
            too_large += 1
        evolution.tell(individual, (random.random(),) * 5)
    assert too_large == 1


def test_nothing_to_change_is_no_error() -> None:
    empty = parse(f"{BANKS}S0\n")
    for mutation in MUTATIONS:
        mutation(empty, Random(0))
    assert swap(empty, Random(0)) == empty
    assert (
        expand(with_subprogram(empty, 0, (Instruction("SIN"),)))[0].operation == "SIN"
    )
