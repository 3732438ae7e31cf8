r"""
# Mutations

Six ways to change a program at random, so that the result is a program again.

An evolutionary search has one source of new ideas, the {term}`mutation`. What must small random changes look
like so that they can turn a Transformer into Primer?

In short: a mutation deletes an instruction, inserts one, does both, changes one field, swaps two
instructions, or changes a value of a bank. Indices are repaired, so every child is well-formed, though a few
are too large to be built. Many children compute the same function as their parent, because the change is in
{term}`dead code` or in a field that nothing uses. A child with its parent's graph is mutated again instead of
being trained. Comparing results for a fixed text finds a few more equivalent programs. Most of the others can
be trained, so the Transformer is a good place to start from. In random programs of its length, few
instructions run.

:::{picture} mutations
:::

Source: {cite:t}`so2021primer`, appendix A.4.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from labml_primer.search.primitives import PRIMITIVES
from labml_primer.search.programs import (
    BRANCHES,
    CONSTANTS_IN_BANK,
    DIMENSIONS,
    DIMENSIONS_IN_BANK,
    DNA,
    Instruction,
)
from labml_primer.search.running import Line, Program, expand

Subprogram = tuple[Instruction, ...]


def renumber(subprogram: Subprogram, new: Callable[[int], int]) -> Subprogram:
    """Return instructions that read value `new(v)` instead of `v`."""
    return tuple(
        replace(i, first=new(i.first), second=new(i.second)) for i in subprogram
    )


def deleted(subprogram: Subprogram, value: int) -> Subprogram:
    """
    ## Delete and insert

    Return a subprogram without the instruction that computes `value`. Instructions that read its result read
    its first input instead.

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


def long_enough(dna: DNA, least: int = 1) -> list[int]:
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
    if not long_enough(dna):
        return dna
    s = random.choice(long_enough(dna))
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

    :::{deviation} the paper, appendix A.4
    The paper does not list the fields. Branches are among them here, because Primer has a dense layer with
    two branches, which the Transformer does not have.
    :::
    """
    if not long_enough(dna):
        return dna
    s = random.choice(long_enough(dna))
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
    if not long_enough(dna, least=2):
        return dna
    s = random.choice(long_enough(dna, least=2))
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


def reached(lines: Sequence[Line]) -> list[int]:
    """
    ## Equivalent programs

    Return the values that a program's result needs, in depth-first order from the result: the inputs of an
    instruction come before it, the first input before the second. The order of the lines does not matter.
    """
    order: list[int] = []
    known = {0, 1}
    # A chain of inputs can be longer than Python's limit of recursion, so this is a loop with its own stack.
    waiting = [len(lines) + 1] if lines else []
    while waiting:
        value = waiting[-1]
        missing = [v for v in lines[value - 2].inputs if v not in known]
        if missing:
            waiting.append(missing[0])
        else:
            known.add(waiting.pop())
            order.append(value)
    return order


Node = tuple[str, tuple[int, ...], float, int, int]


def graph(dna: DNA) -> tuple[Node, ...]:
    """
    Return the graph of a program, in a form that is equal for equal graphs. It has what runs and what is
    used: no dead code, no ignored fields, no names of subprograms.

    Two dense layers with the same input are two nodes, because they have weights of their own.

    Raises `ValueError` as {py:func}`~labml_primer.search.running.expand` does.
    """
    lines = expand(dna)
    # MAIN has the block's input twice.
    numbers = {0: 0, 1: 0}
    nodes: list[Node] = []
    for value in reached(lines):
        line = lines[value - 2]
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


def fingerprint(dna: DNA, d_model: int = 32, seq: int = 13) -> str:
    r"""
    Return a checksum of a program's results for a fixed text and fixed weights.

    Programs with different graphs can compute the same function, for example with $|x|$ after $x^2$. Their
    checksums are equal if their weights are equal, so the weights are drawn in the order of
    {py:func}`~labml_primer.search.mutations.reached`. They are random, because a new SHIFT adds zero until it
    is trained. The results are computed in double precision and compared in single precision, so that a
    rounding error does not count.

    A checksum can miss an equivalence, for example if inputs of an ADD are swapped and both have weights. It
    can also be equal for programs that differ on other texts only, for example by a MIN that changes nothing
    in this one. So the recorded searches compare graphs alone.

    Raises `ValueError` as {py:class}`~labml_primer.search.running.Program` does.
    """
    program = Program(dna, d_model, seq).double()
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x = draw(2, seq, d_model)
    with torch.no_grad():
        for value in reached(program.lines):
            if str(value) in program.weights:
                weight = program.weights[str(value)]
                weight.copy_(0.2 * draw(*weight.shape))
        # Adding zero turns -0 into 0.
        results = program(x).float() + 0.0
    return sha256(str(results.tolist()).encode()).hexdigest()


def equivalent(one: DNA, other: DNA) -> bool:
    """Return whether two programs have the same graph, or the same results for a fixed text."""
    return graph(one) == graph(other) or fingerprint(one) == fingerprint(other)


class Seen:
    """The programs seen so far, found again by any program that computes the same."""

    def __init__(self) -> None:
        self.fingerprints: dict[tuple[Node, ...], str] = {}
        self.first: dict[str, DNA] = {}

    def same(self, dna: DNA) -> DNA:
        """Return the first program seen that is equivalent to `dna`, or `dna` itself if it is new."""
        nodes = graph(dna)
        if nodes not in self.fingerprints:
            self.fingerprints[nodes] = fingerprint(dna)
        return self.first.setdefault(self.fingerprints[nodes], dna)


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

    A few children are beyond the limits of {py:func}`~labml_primer.search.running.expand`, which raises
    `ValueError` when such a child is built.
    """
    parent, child = graph(dna), dna
    while True:
        child = random.choice(MUTATIONS)(child, random)
        try:
            if graph(child) != parent:
                return child
        except ValueError:  # too large
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
    # Each line is a child of the Transformer: the lines of its text that the Transformer does not have.
    import math
    import time
    from collections import Counter
    from statistics import median

    from IPython.display import display

    from labml_primer.search.programs import TRANSFORMER, parse
    from labml_primer.search.running import live_values, sees_the_future
    from labml_primer.training.loop import draw_windows, next_character_loss
    from labml_primer.training.table import Table

    random = Random(0)
    old = str(TRANSFORMER).splitlines()
    for _ in range(6):
        child = str(mutate(TRANSFORMER, random)).splitlines()
        print("; ".join(line.strip() for line in child if line not in old) or "deleted")

    # ### The same results from different graphs
    #
    # The absolute value of a square, a factor before or after a sum, and $|x|$ as the product of $x$ and its
    # sign. The last pair is missed, because the two dense layers exchange their weights when the inputs of
    # ADD change places.
    def one_subprogram(text: str) -> DNA:
        lines = (f"h{v} = {line}" for v, line in enumerate(text.split("; "), start=2))
        banks = "constants 0 0.5\ndimensions 8 1 1 1 1 1\nS0\n"
        return parse(banks + "\n".join(lines))

    layers = "CONV 1X1(h0, h0); CONV 1X1(h0, h0); SIN(h3, h3)"
    pairs = (
        ("SQUARE(h0, h0)", "SQUARE(h0, h0); ABS(h2, h2)"),
        ("ADD(h0, h0); C MUL(h2, h2) c1", "C MUL(h0, h0) c1; ADD(h2, h2)"),
        ("ABS(h0, h0)", "SIGN(h0, h0); MULTIPLY(h2, h0)"),
        (f"{layers}; ADD(h2, h4)", f"{layers}; ADD(h4, h2)"),
    )
    rows = []
    for pair in pairs:
        one, other = map(one_subprogram, pair)
        same = (graph(one) == graph(other), fingerprint(one) == fingerprint(other))
        rows.append((*pair, *("yes" if each else "no" for each in same)))
    display(Table(("program", "another", "same graph", "same results"), rows))


if __name__ == "__main__":
    # ## What becomes of a mutation?
    #
    # A program becomes the one block of a small language model, which trains for 10 steps on two sentences.
    text = "Suppose you may change two lines of a Transformer. Which two? "
    alphabet = sorted(set(text))
    data = torch.tensor([alphabet.index(character) for character in 20 * text])

    def train(program: Program) -> list[float]:
        """Train for 10 steps and return the losses."""
        torch.manual_seed(0)
        size = len(alphabet)
        model = nn.Sequential(nn.Embedding(size, 32), program, nn.Linear(32, size))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for step in range(10):
            loss = next_character_loss(model, draw_windows(data, 8, 16, 0, step))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    # It is *trainable* if all losses are finite and the last is lower than that of a guess by the frequencies
    # of the characters. It is too large with more than 4 times the weights of the Transformer's, and too slow
    # if it takes more than 4 times as long.
    shares = torch.bincount(data) / len(data)
    guess = -(shares * shares.log()).sum().item()

    def size(program: Program) -> int:
        return sum(weight.numel() for weight in program.parameters())

    def timed(program: Program) -> tuple[list[float], float]:
        start = time.process_time()
        return train(program), time.process_time() - start

    def built(dna: DNA) -> Program:
        torch.manual_seed(0)
        return Program(dna, d_model=32, seq=16)

    reference = built(TRANSFORMER)
    train(reference)  # the first run is slower
    losses, seconds = timed(reference)
    print(f"guess {guess:.2f}, Transformer {losses[0]:.2f} to {losses[-1]:.2f} nats")

    def fate(dna: DNA) -> str:
        try:
            program = built(dna)
        except ValueError:
            return "too large"
        if size(program) > 4 * size(reference):
            return "too large"
        if sees_the_future(program, torch.randn(1, 16, 32)):
            return "not causal"
        losses, taken = timed(program)
        if not all(map(math.isfinite, losses)):
            return "not finite"
        if taken > 4 * seconds:
            return "too slow"
        return "trainable" if losses[-1] < guess else "learns nothing"

    # Now the Transformer is mutated 500 times, as by one step of
    # {py:func}`~labml_primer.search.mutations.mutate`. A program that is equivalent to one seen before is not
    # trained again.
    seen, fates = Seen(), {TRANSFORMER: "same results"}
    seen.same(TRANSFORMER)

    def outcome(dna: DNA) -> str:
        try:
            if graph(dna) == graph(TRANSFORMER):
                return "same graph"
            first = seen.same(dna)
        except ValueError:
            return "too large"
        if first not in fates:
            fates[first] = fate(first)
        return fates[first]

    random = Random(0)
    counts: Counter[tuple[str, str]] = Counter()
    for _ in range(500):
        mutation = random.choice(MUTATIONS)
        counts[mutation.__name__, outcome(mutation(TRANSFORMER, random))] += 1
    columns = ["same graph", "same results", "too large", "not causal", "not finite"]
    columns += ["too slow", "learns nothing", "trainable"]
    found = {m.__name__: [counts[m.__name__, c] for c in columns] for m in MUTATIONS}
    found["all"] = [sum(column) for column in zip(*found.values(), strict=True)]
    table = [(name, *numbers) for name, numbers in found.items()]
    display(Table(("mutation", *columns), table, "500 mutations of the Transformer"))
    print(f"{len(fates) - 1} different programs; the others were found again")
    # A program is counted in the first column that applies, from the left. `mutate` would mutate those with
    # the same graph again. They change fields that are ignored or values of a bank that nothing uses, read
    # the other input of a subprogram that gets the same value twice, insert instructions whose result nothing
    # reads, or swap equal instructions. A deletion always changes the graph, because the Transformer has no
    # dead code. No program is in the column *not causal*, because every primitive is causal; the test would
    # find mistakes in them.


if __name__ == "__main__":
    # ## Most random programs are nearly empty
    #
    # The same test for random programs of the Transformer's length. In the paper, 78% of them "cannot train
    # more than five minutes, due to numerical instability", so 22% can. Here nearly all of them stay finite,
    # because so few of their instructions run: a random instruction reads one or two random earlier values,
    # so most results are never read. The second row has only the programs in which at least 5 instructions
    # run. The paper does not describe its distribution; it may have produced programs in which more
    # instructions run. Five minutes are also far more steps than 10.
    random = Random(1)
    programs = [random_program(TRANSFORMER, random) for _ in range(400)]
    live = [len(live_values(expand(dna))) for dna in programs]
    ends = list(map(outcome, programs))
    rows = []
    for name, least in (("all", 0), ("5 or more run", 5)):
        chosen = [end for end, n in zip(ends, live, strict=True) if n >= least]
        parts = (f"{chosen.count(column) / len(chosen):.0%}" for column in columns[2:])
        rows.append((name, str(len(chosen)), *parts))
    display(Table(("random programs", "number", *columns[2:]), rows))
    print(f"instructions that run: {median(live):g} (median), ", end="")
    print(f"in the Transformer {len(live_values(expand(TRANSFORMER)))}")


if __name__ == "__main__":
    # ## In short
    #
    # - A mutation deletes, inserts, does both, changes a field or a value of a bank, or swaps two
    #   instructions.
    # - Instructions that read a deleted one read its first input instead, and insertion is the reverse. So
    #   every child is well-formed.
    # - Programs are equivalent if the graphs of what runs are equal, or the results for a fixed text.
    # - Most children of the Transformer can be trained. Random programs are nearly empty.
    #
    # ## Exercise
    #
    # :::{exercise} The chance of a good mutation
    # How probable is it that one mutation of the Transformer inserts a SQUARE after the MAX of S9, which is
    # the squared ReLU? How many such children are expected among 1,000?
    # :::
    # :::{solution}
    # The mutation must be an insertion ($1/6$), into S9, one of 10 subprograms, at the second of two places,
    # and SQUARE must be chosen among 39 operations, as S9 can call no other. Its first input must be the
    # result of MAX, one of three values. The second input and the indices of the banks are ignored. There are
    # other ways to the same result, so this is a lower limit. The simulation counts insertions alone. It
    # expects fewer than ten hits, so its count is uncertain by about a third.
    # :::
    chance = 1 / 6 * 1 / 10 * 1 / 2 * 1 / 39 * 1 / 3
    squared = with_subprogram(
        TRANSFORMER, 9, (Instruction("MAX"), Instruction("SQUARE", 2))
    )
    random, wanted, trials = Random(2), graph(squared), 20_000
    hits = 0
    for _ in range(trials):
        mutant = insert(TRANSFORMER, random)
        if mutant.subprograms[9] != TRANSFORMER.subprograms[9]:  # saves most graphs
            hits += graph(mutant) == wanted
    print(f"expected in 1,000 children {1000 * chance:.2f}, ", end="")
    print(f"counted {1000 * hits / trials / 6:.2f}")
    assert hits / trials / 6 > chance / 2

    # Which programs have children, and which are trained to the end? {doc}`evolution`.
