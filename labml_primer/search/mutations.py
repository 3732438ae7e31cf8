r"""
# Mutations

Six ways to change a program at random, so that the result is a program again.

A search by evolution has one source of new ideas, the mutation. What must a small random change look like so
that it can turn a Transformer into Primer?

In short: a mutation deletes an instruction, inserts one, does both, changes one field, swaps two
instructions, or changes a value of a bank. Indices are repaired, so every child is a valid program. Many
children compute the same as their parent, because the change is in dead code or in a field that is ignored.
The search recognizes them by their graph and does not spend time on training them.

Source: {cite:t}`so2021primer`, appendix A.4.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from labml_primer.search.programs import (
    BRANCHES,
    CONSTANTS_IN_BANK,
    DIMENSIONS,
    DIMENSIONS_IN_BANK,
    DNA,
    PRIMITIVES,
    Instruction,
    expand,
)

Subprogram = tuple[Instruction, ...]


def renumber(subprogram: Subprogram, new: Callable[[int], int]) -> Subprogram:
    """Return instructions that read value `new(v)` instead of `v`."""
    return tuple(
        replace(i, first=new(i.first), second=new(i.second)) for i in subprogram
    )


def deleted(subprogram: Subprogram, value: int) -> Subprogram:
    """
    ## Delete and insert

    Return a subprogram without the instruction that computes `value`. What read its result reads its first
    input instead, as if it did nothing.

    :::{deviation} the paper, appendix A.4
    It does not say how indices are repaired. The choice here and in
    {py:func}`~labml_primer.search.mutations.inserted` fits Primer: each instruction it has more than the
    Transformer can be one insertion. SCALE, for example, is inserted after S4 in S1, and the matrix product
    with the values reads it.
    :::
    """
    source = subprogram[value - 2].first

    def new(index: int) -> int:
        index = source if index == value else index
        return index - 1 if index > value else index

    return subprogram[: value - 2] + renumber(subprogram[value - 1 :], new)


def inserted(
    subprogram: Subprogram, value: int, instruction: Instruction
) -> Subprogram:
    """
    Return a subprogram in which `instruction` computes `value`. Later instructions that read its first input
    read its result instead.

    Deleting it afterwards restores the subprogram.
    """

    def new(index: int) -> int:
        if index == instruction.first:
            return value
        return index + 1 if index >= value else index

    before, after = subprogram[: value - 2], subprogram[value - 2 :]
    return (*before, instruction, *renumber(after, new))


def swapped(subprogram: Subprogram, a: int, b: int) -> Subprogram:
    """
    ## Swap

    Return a subprogram in which two instructions have changed places in the graph: each has the other's
    inputs, and its result is read where the other's was.
    """
    first, second = subprogram[a - 2], subprogram[b - 2]
    new = list(subprogram)
    new[a - 2] = replace(second, first=first.first, second=first.second)
    new[b - 2] = replace(first, first=second.first, second=second.second)
    return tuple(new)


def operations(dna: DNA, s: int) -> list[str]:
    """Return the operations that an instruction of `S{s}` can have."""
    return [*PRIMITIVES, *(f"S{n}" for n in range(s + 1, len(dna.subprograms)))]


def random_instruction(dna: DNA, s: int, value: int, random: Random) -> Instruction:
    """
    ## Random instructions

    Return a random instruction that can compute `value` in `S{s}`.

    :::{deviation} the paper, appendix A.4
    The distribution is not given. Here all operations are equally likely, calls of subprograms included, and
    so are all inputs and values of the banks. A new instruction has one branch.
    :::
    """
    return Instruction(
        random.choice(operations(dna, s)),
        random.randrange(value),
        random.randrange(value),
        random.randrange(CONSTANTS_IN_BANK),
        random.randrange(DIMENSIONS_IN_BANK),
    )


def with_subprogram(dna: DNA, s: int, subprogram: Subprogram) -> DNA:
    """Return a program with another subprogram `s`."""
    before, after = dna.subprograms[:s], dna.subprograms[s + 1 :]
    return replace(dna, subprograms=(*before, subprogram, *after))


def places(dna: DNA, least: int = 1) -> list[int]:
    """Return the subprograms that have at least so many instructions."""
    return [s for s, sub in enumerate(dna.subprograms) if len(sub) >= least]


def delete(dna: DNA, random: Random) -> DNA:
    """
    ## The six mutations

    Remove an instruction from a subprogram.

    Each of the six returns a program that may be the same, if there is nothing to change.

    :::{deviation} the paper, appendix A.4
    "Five different mutation types", it says, and lists six. All are equally likely here. A subprogram is
    chosen first, then an instruction of it, both uniformly; so an instruction of a short subprogram is
    changed more often. No mutation adds or removes a subprogram.
    :::
    """
    if not places(dna):
        return dna
    s = random.choice(places(dna))
    value = random.randrange(len(dna.subprograms[s])) + 2
    return with_subprogram(dna, s, deleted(dna.subprograms[s], value))


def insert(dna: DNA, random: Random) -> DNA:
    """Insert a random instruction anywhere."""
    s = random.randrange(len(dna.subprograms))
    value = random.randrange(len(dna.subprograms[s]) + 1) + 2
    instruction = random_instruction(dna, s, value, random)
    return with_subprogram(dna, s, inserted(dna.subprograms[s], value, instruction))


def delete_and_insert(dna: DNA, random: Random) -> DNA:
    """Delete an instruction and insert another, not necessarily in the same place."""
    return insert(delete(dna, random), random)


def mutate_field(dna: DNA, random: Random) -> DNA:
    """
    Give one field of an instruction another value, the number of branches included.

    The paper does not list the fields, but Primer has a dense layer with two branches, which the Transformer
    has not.
    """
    if not places(dna):
        return dna
    s = random.choice(places(dna))
    value = random.randrange(len(dna.subprograms[s])) + 2
    instruction = dna.subprograms[s][value - 2]
    choices: dict[str, Sequence[Any]] = {
        "operation": operations(dna, s),
        "first": range(value),
        "second": range(value),
        "constant": range(CONSTANTS_IN_BANK),
        "dimension": range(DIMENSIONS_IN_BANK),
        "branches": BRANCHES,
    }
    field = random.choice(list(choices))
    old = getattr(instruction, field)
    new = random.choice([choice for choice in choices[field] if choice != old])
    changed = list(dna.subprograms[s])
    changed[value - 2] = replace(instruction, **{field: new})
    return with_subprogram(dna, s, tuple(changed))


def swap(dna: DNA, random: Random) -> DNA:
    """Swap two instructions of a subprogram."""
    if not places(dna, least=2):
        return dna
    s = random.choice(places(dna, least=2))
    a, b = random.sample(range(2, len(dna.subprograms[s]) + 2), 2)
    return with_subprogram(dna, s, swapped(dna.subprograms[s], a, b))


def mutate_bank(dna: DNA, random: Random) -> DNA:
    r"""
    Change a value of a bank, and with it all instructions that use it. A dimension becomes another one of the
    vocabulary. A constant becomes

    $$c_\text{new} = c \cdot 10^X + Y, \qquad X, Y \sim \mathcal{N}(0, 1)$$
    """
    k = random.randrange(CONSTANTS_IN_BANK + DIMENSIONS_IN_BANK)
    if k < CONSTANTS_IN_BANK:
        constants = list(dna.constants)
        new = constants[k] * 10 ** random.gauss() + random.gauss()
        constants[k] = min(max(new, -1e37), 1e37)  # what a DNA allows
        return replace(dna, constants=tuple(constants))
    dimensions = list(dna.dimensions)
    old = dimensions[k - CONSTANTS_IN_BANK]
    others = [dimension for dimension in DIMENSIONS if dimension != old]
    dimensions[k - CONSTANTS_IN_BANK] = random.choice(others)
    return replace(dna, dimensions=tuple(dimensions))


MUTATIONS = (delete, insert, delete_and_insert, mutate_field, swap, mutate_bank)

Node = tuple[str, tuple[int, ...], float, int, int]


def graph(dna: DNA) -> tuple[Node, ...]:
    """
    ## Equivalent programs

    Return the graph of a program, in a form that is equal for equal graphs. It has what runs and what is
    used: no dead code, no ignored fields, no names of subprograms.

    Nodes are numbered in the order in which the result reaches them, so the order of the lines does not
    matter. Two dense layers with the same input are two nodes, because they have weights of their own.

    Raises `ValueError` as {py:func}`~labml_primer.search.programs.expand` does.
    """
    lines = expand(dna)
    # MAIN has the block's input twice.
    numbers = {0: 0, 1: 0}
    nodes: list[Node] = []
    # A chain of inputs can be longer than Python's stack, so the lines that wait are kept in a list.
    waiting = [len(lines) + 1] if lines else []
    while waiting:
        value = waiting[-1]
        line = lines[value - 2] if value >= 2 else None
        missing = [v for v in line.inputs if v not in numbers] if line else []
        if line and value not in numbers and missing:
            waiting.append(missing[0])
            continue
        waiting.pop()
        if line is None or value in numbers:
            continue
        numbers[value] = len(nodes) + 1
        primitive = PRIMITIVES.get(line.operation)
        arguments = primitive.arguments if primitive else ""
        nodes.append(
            (
                line.operation,
                tuple(numbers[v] for v in line.inputs),
                line.constant if "c" in arguments else 0.0,
                line.dimension if "d" in arguments else 0,
                1 if primitive else line.branches,
            )
        )
    return tuple(nodes)


def mutate(dna: DNA, random: Random) -> DNA:
    """
    ## A child

    Return a program that differs from `dna` by one mutation, or by more if the first ones do not change the
    graph.

    :::{deviation} the paper, appendix A.4
    "If it is, we perform another mutation": of the child or of the parent? We mutate the child again, so that
    dead code can collect, as it has in Primer: S3 begins with MAX of its second input, whose result nothing
    reads, and this input is not used otherwise.
    :::

    Raises `ValueError` as {py:func}`~labml_primer.search.programs.expand` does, if the child is beyond its
    limits.
    """
    parent, child = graph(dna), dna
    while graph(child) == parent:
        child = random.choice(MUTATIONS)(child, random)
    return child


def random_program(like: DNA, random: Random) -> DNA:
    """
    ## Random programs

    Return a program whose subprograms are as long as those of `like`, with random instructions.

    :::{deviation} the paper, section 2
    78% of the random programs "with length equal to a Transformer program" could not train for five minutes.
    Their distribution is not given. Here the banks are those of `like`.
    :::
    """
    return replace(
        like,
        subprograms=tuple(
            tuple(
                random_instruction(like, s, value, random)
                for value in range(2, len(subprogram) + 2)
            )
            for s, subprogram in enumerate(like.subprograms)
        ),
    )


if __name__ == "__main__":
    # ## A few children
    #
    # Each row is a child of the Transformer: the lines of its text that the Transformer does not have.
    from collections import Counter

    import torch
    from IPython.display import display

    from labml_primer.search.programs import TRANSFORMER, Program, sees_the_future
    from labml_primer.training.table import Table

    random = Random(0)
    old = str(TRANSFORMER).splitlines()
    for _ in range(6):
        child = str(mutate(TRANSFORMER, random)).splitlines()
        print("; ".join(line.strip() for line in child if line not in old) or "deleted")


if __name__ == "__main__":
    # ## What becomes of a mutation?
    #
    # Each mutation is applied to the Transformer 200 times. The last row is 200 random programs of its
    # length. A program is finite if its output and all gradients are, for one random text. None may see the
    # future.
    def fate(dna: DNA) -> str:
        try:
            if graph(dna) == graph(TRANSFORMER):
                return "equivalent"
            program = Program(dna, d_model=32, seq=16)
        except ValueError:
            return "too large"
        x = torch.randn(1, 16, 32)
        result = program(x)
        if not result.requires_grad:
            return "no weights"
        result.square().sum().backward()
        tensors = [
            result,
            *(p.grad for p in program.parameters() if p.grad is not None),
        ]
        if not all(bool(tensor.isfinite().all()) for tensor in tensors):
            return "not finite"
        return "sees the future" if sees_the_future(program, x) else "finite"

    torch.manual_seed(0)
    random = Random(0)
    rows = []
    fates = ("equivalent", "too large", "no weights", "not finite", "sees the future")
    for make in (*MUTATIONS, random_program):
        programs = [make(TRANSFORMER, random) for _ in range(200)]
        counts = Counter(map(fate, programs))
        shares = (f"{counts[f] / len(programs):.0%}" for f in (*fates, "finite"))
        rows.append((make.__name__.replace("_", " "), *shares))
    display(Table(("program", *fates, "finite"), rows))
    # The inserted instructions and changed fields that are equivalent are dead code or ignored fields. Of the
    # random programs, many have no weights at all in what runs, because most of their instructions are dead.
    #
    # ## In short
    #
    # - A mutation deletes, inserts, does both, changes a field or a value of a bank, or swaps two
    #   instructions.
    # - What reads a deleted instruction reads its first input instead, and insertion is the reverse. So every
    #   child is a valid program.
    # - Two programs are equivalent if the graphs of what runs are equal. A child equivalent to its parent is
    #   mutated again.
