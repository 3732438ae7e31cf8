r"""
# Programs

A Transformer block written as a program of small operations: the space that was searched for Primer.

A search over architectures can only find what it can write down. How does one write a block so that a small
random change of the text is a new architecture?

Watch a small search first. In its texts of digits, nine of ten digits repeat the one two places before. The
first ten programs are copies of one feed-forward layer, which sees the current digit alone. So their losses
are those of a guess, and differ by chance. Then the same step is repeated: three programs of the
{term}`population` are drawn, the best of them gets a child with a random change, its {term}`mutation`, and
the oldest dies. Most children are no better. One gets a line that reads earlier digits, and its loss falls
almost to the best possible. A child that loses this line is as bad as the first programs. The one that found
it dies of age, but its descendants have a convolution too: they are half of the population in the end.

In short: a block is a list of {term}`subprograms <subprogram>`, and a subprogram is a list of *instructions*.
An instruction applies one of the 39 {doc}`primitives <primitives>` to results of earlier ones, or it calls
another subprogram. There is no operation for attention; it is a subprogram of ten primitives. The Transformer
needs 36 instructions in ten subprograms, Primer 42. The next chapter runs such programs ({doc}`running`).

:::{picture} small_search
:::

Source: {cite:t}`so2021primer`, section 2, appendices A.1, A.2 and A.5, Figures 1 and 13 to 25. The authors
released models, but no code of the search, so what the paper leaves open is decided here. Each such decision
is marked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from labml_primer.search.primitives import PRIMITIVES

# ## How a program is written
#
# Take the line that made the difference in the small search, `h5 = CONV 15X1(h0, h4) d4`. It reads the input
# and is the last, so the other lines of its program are {term}`dead code`: they do not run any more.
#
# - `h5` is the value that it computes. `h0` and `h1` are the inputs of the subprogram, and its last value is
#   its output.
# - `CONV 15X1` is a primitive, a causal convolution over 15 positions. `S1` in its place calls subprogram 1.
# - `(h0, h4)` are two inputs. A convolution needs one of them and ignores the other, but it is still there.
#   So a mutation that replaces `CONV 15X1` by `ADD` finds it ready.
# - `d4` is a place in the *bank* of six dimensions, which all lines share, and `c1` one in the bank of two
#   constants. One mutation of a bank changes the width of queries, keys and values together.
# - `@8` at the end of a line computes it in eight branches with weights of their own, as heads do.
#
# ## The sizes of a program
#
# These are the numbers of branches and the dimensions that a program may have (appendix A.2), and the sizes
# of its banks. A dimension is a multiple of the model's base.
BRANCHES = (1, 2, 4, 8, 16)
DIMENSIONS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
CONSTANTS_IN_BANK, DIMENSIONS_IN_BANK = 2, 6
MOST_SUBPROGRAMS = 100  # ours; the paper has no limit


@dataclass(frozen=True)
class Instruction:
    """
    ## Instructions

    :::{deeper}
    The line of a program as a dataclass.
    :::

    An operation and its arguments. `operation` is the name of a primitive, or `S5` for a call of subprogram
    5. `first` and `second` are indices of values: 0 and 1 are the inputs of the subprogram, and its first
    instruction computes value 2. `constant` and `dimension` are indices into the banks of the program.

    A primitive ignores the fields it does not need, but they are still there. A mutation that replaces ADD by
    CONV 1X1 finds a dimension ready.
    """

    operation: str
    first: int = 0
    second: int = 0
    constant: int = 0
    dimension: int = 0
    branches: int = 1

    @property
    def called(self) -> int | None:
        """The number of the subprogram that is called, or `None` for a primitive."""
        call = re.fullmatch(r"S(\d+)", self.operation)
        return int(call[1]) if call else None

    def __str__(self) -> str:
        """Return `CONV 1X1(h2, h2) c1 d3 @8`. Fields that are 0, or one branch, are left out."""
        fields = (
            (f" c{self.constant}" if self.constant else "")
            + (f" d{self.dimension}" if self.dimension else "")
            + (f" @{self.branches}" if self.branches != 1 else "")
        )
        return f"{self.operation}(h{self.first}, h{self.second}){fields}"


@dataclass(frozen=True)
class DNA:
    """
    ## DNA

    :::{deeper}
    A whole program as a dataclass, which refuses what makes no sense.
    :::

    Subprograms, the first of which is MAIN, and two banks: constants, and dimensions relative to the model's
    base. Instructions share the values of the banks, so one mutation changes the width of queries, keys and
    values together.

    Raises `ValueError`, with the place, for a program that does not make sense. A subprogram calls only those
    with a higher number, so no program runs forever.
    """

    subprograms: tuple[tuple[Instruction, ...], ...]
    constants: tuple[float, ...]
    dimensions: tuple[int, ...]

    def __post_init__(self) -> None:
        check_bank("constants", self.constants, CONSTANTS_IN_BANK)
        check_bank("dimensions", self.dimensions, DIMENSIONS_IN_BANK)
        for dimension in self.dimensions:
            if dimension not in DIMENSIONS:
                raise ValueError(f"dimension {dimension} is none of {DIMENSIONS}")
        if not 0 < len(self.subprograms) <= MOST_SUBPROGRAMS:
            raise ValueError(
                f"{len(self.subprograms)} subprograms; "
                f"1 to {MOST_SUBPROGRAMS} are allowed"
            )
        for s, subprogram in enumerate(self.subprograms):
            for value, instruction in enumerate(subprogram, start=2):
                problem = self.problem(s, value, instruction)
                if problem:
                    raise ValueError(f"S{s}, h{value} = {instruction}: {problem}")

    def problem(self, s: int, value: int, instruction: Instruction) -> str:
        """Return what is wrong with the instruction of `S{s}` that computes `h{value}`, or nothing."""
        called = instruction.called
        if called is None and instruction.operation not in PRIMITIVES:
            return f"there is no operation {instruction.operation!r}"
        if called is not None and not s < called < len(self.subprograms):
            return (
                f"S{s} can call subprograms S{s + 1} to S{len(self.subprograms) - 1}"
                if s + 1 < len(self.subprograms)
                else f"S{s} is the last subprogram and cannot call any"
            )
        for index in (instruction.first, instruction.second):
            if not 0 <= index < value:
                return f"h{index} is not computed before h{value}"
        if not 0 <= instruction.constant < CONSTANTS_IN_BANK:
            return f"the bank has no constant c{instruction.constant}"
        if not 0 <= instruction.dimension < DIMENSIONS_IN_BANK:
            return f"the bank has no dimension d{instruction.dimension}"
        if instruction.branches not in BRANCHES:
            return f"{instruction.branches} branches are none of {BRANCHES}"
        return ""

    def __len__(self) -> int:
        """The number of instructions."""
        return sum(map(len, self.subprograms))

    def __str__(self) -> str:
        """Return the text that {py:func}`~labml_primer.search.programs.parse` reads."""
        lines = [
            f"constants {' '.join(map(repr, self.constants))}",
            f"dimensions {' '.join(map(str, self.dimensions))}",
        ]
        for s, subprogram in enumerate(self.subprograms):
            lines.append(f"S{s}")
            lines += (f"  h{v} = {i}" for v, i in enumerate(subprogram, start=2))
        return "\n".join(lines) + "\n"


def check_bank(name: str, values: Sequence[float], size: int) -> None:
    """Raise `ValueError` unless a bank has `size` values that `float32` can hold."""
    if len(values) != size:
        raise ValueError(f"{len(values)} {name}; the bank holds {size}")
    for value in values:
        if not abs(value) < 1e38:
            raise ValueError(f"{name} must be between -1e38 and 1e38, not {value}")


INSTRUCTION = re.compile(
    r"h(?P<value>\d{1,6}) = (?P<operation>[A-Z][A-Z0-9 -]*)"
    r"\(h(?P<first>\d{1,6}), h(?P<second>\d{1,6})\)"
    r"(?: c(?P<constant>\d{1,6}))?(?: d(?P<dimension>\d{1,6}))?"
    r"(?: @(?P<branches>\d{1,6}))?",
    re.ASCII,
)


def parse(text: str) -> DNA:
    """
    ## Programs as text

    :::{deeper}
    The text of a program is read, and an error says what is wrong with it.
    :::

    Return the program that `text` describes, in the form that `str` of a DNA has. Empty lines and indents do
    not matter.

    The text is matched, never evaluated, so it cannot do more than name operations. Raises `ValueError` with
    the line for text in another form, or if a label is not the next one, and as DNA does.
    """
    subprograms: list[list[Instruction]] = []
    constants: tuple[float, ...] = ()
    dimensions: tuple[int, ...] = ()
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        try:
            if line.startswith("constants "):
                constants = tuple(map(float, line.split()[1:]))
            elif line.startswith("dimensions "):
                dimensions = tuple(map(int, line.split()[1:]))
            elif re.fullmatch(r"S\d+", line):
                expect(line, f"S{len(subprograms)}")
                subprograms.append([])
            elif line:
                subprograms[-1].append(read(line, len(subprograms[-1]) + 2))
        except IndexError:
            raise ValueError(f"line {number}: an instruction before S0") from None
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return DNA(tuple(map(tuple, subprograms)), constants, dimensions)


def read(line: str, value: int) -> Instruction:
    """Return the instruction of a line, which must be the one that computes `h{value}`."""
    fields = INSTRUCTION.fullmatch(line)
    if not fields:
        raise ValueError(f"{line!r} is not like h2 = CONV 1X1(h0, h0) c0 d0 @1")
    expect(f"h{fields['value']}", f"h{value}")
    return Instruction(
        fields["operation"],
        int(fields["first"]),
        int(fields["second"]),
        int(fields["constant"] or 0),
        int(fields["dimension"] or 0),
        int(fields["branches"] or 1),
    )


def expect(label: str, expected: str) -> None:
    """Raise `ValueError` if a label is not the expected one."""
    if label != expected:
        raise ValueError(f"{label} where {expected} comes next")


if __name__ == "__main__":
    # ### Programs that make no sense
    #
    # A subprogram that calls itself, a value that does not exist, a wrong label, and Python code: each is an
    # error that says what is wrong.
    banks = "constants 0 0\ndimensions 1 1 1 1 1 1\n"
    for text in (
        banks + "S0\nh2 = S0(h0, h0)",
        banks + "S0\nh2 = ADD(h0, h7)",
        banks + "S0\nh3 = ADD(h0, h1)",
        banks + "S0\nh2 = __import__('os')(h0, h0)",
    ):
        try:
            parse(text)
        except ValueError as error:
            print(error)


# ## The Transformer as a program
#
# The program the search began with (Figures 13 to 22).
#
# * S1 is self-attention with one head, S2 the feed-forward layer.
# * S3 projects to queries, keys and values. S4 is softmax.
# * S5 is the norm. It calls S6, which subtracts the mean and divides by the standard deviation, and S7,
#   which scales and shifts.
# * S8 is the residual connection, S9 ReLU.
#
# :::{deviation} the paper, Figures 13 to 22
# The figures draw the subprograms as graphs. Their instructions are chosen so that they expand to exactly
# the lists of Figures 24 and 25, ignored fields included; a test compares all lines. The last two dimensions
# of each bank are used by no instruction and are printed nowhere. They are ours. The constant 0.125 is that
# of Figure 14, $1/\sqrt{64}$; Figure 24 prints 0.12.
# :::
TRANSFORMER = parse(
    """
    constants 0.0 0.125
    dimensions 2 1 8 32 4 16
    S0
      h2 = S5(h0, h0)
      h3 = S1(h2, h2) @8
      h4 = CONV 1X1(h3, h3) d2
      h5 = S8(h0, h4)
      h6 = S5(h5, h5)
      h7 = S2(h6, h6)
      h8 = S8(h5, h7)
    S1
      h2 = S3(h0, h0)
      h3 = S3(h0, h0)
      h4 = C MUL(h3, h3) c1
      h5 = S3(h0, h0)
      h6 = T-MAT MUL(h4, h2)
      h7 = S4(h6, h6)
      h8 = MAT MUL(h7, h5)
    S2
      h2 = CONV 1X1(h0, h0) d3
      h3 = SHIFT(h2, h2)
      h4 = S9(h3, h3)
      h5 = CONV 1X1(h4, h4) d2
      h6 = SHIFT(h5, h5)
    S3
      h2 = CONV 1X1(h0, h0) d1
    S4
      h2 = EXP(h0, h0)
      h3 = MASK(h2, h2)
      h4 = RED SUM(h3, h3)
      h5 = DIVIDE(h3, h4)
    S5
      h2 = S6(h0, h0)
      h3 = S7(h2, h2)
    S6
      h2 = RED MEAN(h0, h0)
      h3 = DIFFERENCE(h0, h2)
      h4 = MULTIPLY(h3, h3)
      h5 = RED MEAN(h4, h4)
      h6 = ABS ROOT(h5, h5)
      h7 = DIVIDE(h3, h6)
    S7
      h2 = SCALE(h0, h0)
      h3 = SHIFT(h2, h2)
    S8
      h2 = ADD(h0, h1)
    S9
      h2 = MAX(h0, h0)
    """
)

# ## Primer as a program
#
# The program the search ended with. {doc}`../primer/primer` explains all changes.
#
# Subprograms turn small changes into large ones. Queries, keys and values are projected by *one* subprogram,
# S3, called three times, so one inserted convolution is {term}`MDHA`. One square inserted into S9 is the
# {term}`squared ReLU`.
#
# :::{picture} program_difference
# :::
#
# :::{deviation} the paper, Figures 14, 15 and 22 against Figure 25
# The figures have queries with a matrix of 384 units, one dense layer of 4608 units, and MAX with the
# constant 0. The list has 48 units for each head, two dense layers of 2304 by branching, and $-0.57$. A
# program of two constants, of which one is $-1.12$, cannot have both 0 and $-0.57$, so we follow the list.
# :::
PRIMER = parse(
    """
    constants -1.12 -0.57
    dimensions 16 8 1 48 2 32
    S0
      h2 = S5(h0, h0)
      h3 = S1(h2, h2) @8
      h4 = CONV 1X1(h3, h3) d1
      h5 = S8(h0, h4)
      h6 = S2(h5, h5)
      h7 = S5(h6, h6)
      h8 = S8(h5, h7)
    S1
      h2 = S3(h0, h0)
      h3 = S3(h0, h1)
      h4 = CONV 1X1(h3, h1) d2
      h5 = S3(h0, h0)
      h6 = T-MAT MUL(h4, h3)
      h7 = S4(h6, h6)
      h8 = SCALE(h7, h3) d1
      h9 = MAT MUL(h8, h5)
    S2
      h2 = CONV 1X1(h0, h1) d3 @2
      h3 = SHIFT(h2, h2)
      h4 = S9(h3, h3)
      h5 = CONV 1X1(h4, h4) d1
    S3
      h2 = MAX(h1, h1) c1
      h3 = CONV 1X1(h0, h0) d2
      h4 = DCONV 3X1(h3, h0) d1
      h5 = C MUL(h4, h4) d1
    S4
      h2 = EXP(h0, h0)
      h3 = MASK(h2, h2)
      h4 = RED SUM(h3, h3)
      h5 = DIVIDE(h3, h4)
      h6 = TANH(h5, h0) d1
    S5
      h2 = S6(h0, h0)
      h3 = S7(h2, h2)
    S6
      h2 = RED MEAN(h0, h0)
      h3 = DIFFERENCE(h0, h2)
      h4 = MULTIPLY(h3, h0)
      h5 = RED MEAN(h4, h4)
      h6 = ABS ROOT(h5, h5)
      h7 = DIVIDE(h3, h6)
    S7
      h2 = SCALE(h0, h0)
      h3 = SHIFT(h2, h2) c1 d1
    S8
      h2 = ADD(h0, h1)
      h3 = ADD(h2, h1)
    S9
      h2 = MAX(h0, h0) c1
      h3 = SQUARE(h2, h0)
    """
)


if __name__ == "__main__":
    # ## In short
    #
    # - A program is a list of subprograms, and each instruction is one of 39 primitives or a call.
    # - The Transformer has 36 instructions, Primer 42.
    # - A subprogram that is called several times turns one small change into several.
    #
    # ## Exercise
    #
    # :::{exercise} Primer-EZ as a program
    # Change the Transformer's program into Primer-EZ's with two instructions. Which subprograms get them?
    # :::
    # :::{solution}
    # S3, which projects to queries, keys and values, gets a DCONV 3X1, and S9 a SQUARE. Because S3 is called
    # three times, one instruction is three convolutions.
    # :::
    one, two = Instruction("DCONV 3X1", 2, 2), Instruction("SQUARE", 2, 2)
    subprograms = list(TRANSFORMER.subprograms)
    subprograms[3] += (one,)
    subprograms[9] += (two,)
    primer_ez = replace(TRANSFORMER, subprograms=tuple(subprograms))
    calls = [i.called for subprogram in primer_ez.subprograms for i in subprogram]
    print({f"S{s}": calls.count(s) for s in (3, 9)})
    assert calls.count(3) == 3

    # How does the text become a module? {doc}`running`.
