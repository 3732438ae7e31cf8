r"""
# Programs that run

A program of the search becomes one list of operations, and the list an `nn.Module`.

The {doc}`last chapter <programs>` wrote a Transformer block as text. Can such a text be trained, and is it
still a Transformer?

In short: calls are resolved until only primitives are left, and those that the result does not need are
{term}`dead code`. A module runs the others one by one. The Transformer's program computes the same as the
book's own block, somewhat more slowly, and so does Primer's. In Primer's, a whole projection is dead: the
search put queries that are computed from keys in its place.

:::{picture} program
:::

Source: {cite:t}`so2021primer`, section 2, appendix A.2, Figures 2, 24 and 25. The authors released no code of
the search, so what the paper leaves open is decided here. Each such decision is marked.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from labml_primer.search.primitives import BRANCHING, PRIMITIVES, resize
from labml_primer.search.programs import DNA, PRIMER, TRANSFORMER, Instruction, parse

# The paper limits neither the length of a program nor its depth. A short text can be a program of a billion
# lines, so a program beyond these limits is an error.
MOST_LINES, MOST_COPIES = 10_000, 256
MOST_FEATURES, MOST_WEIGHTS = 2**17, 10**8


@dataclass(frozen=True)
class Line:
    """
    ## From DNA to one list

    A line of the expanded program, as Figures 24 and 25 print them: a primitive with its inputs and with its
    values from the banks, or one of the three operations that mark branches.

    `branches` is the number of branches that begin or end here, and `copies` how many run at once.
    """

    operation: str
    first: int
    second: int
    constant: float
    dimension: int
    branches: int
    copies: int

    @property
    def inputs(self) -> tuple[int, ...]:
        """The values that are used. BRANCH INPUT 1, BRANCH INPUT 2 and BRANCH MERGE use one."""
        primitive = PRIMITIVES.get(self.operation)
        binary = primitive is not None and "y" in primitive.arguments
        return (self.first, self.second) if binary else (self.first,)


def expanded_size(dna: DNA) -> int:
    """
    Return how many lines a program has with all calls resolved, without resolving them.

    A call of an empty subprogram counts as one, because many of them also take forever.
    """
    sizes: dict[int, int] = {}
    for s in reversed(range(len(dna.subprograms))):
        sizes[s] = sum(
            (1 if i.called is None else max(1, sizes[i.called])) + 3 * (i.branches > 1)
            for i in dna.subprograms[s]
        )
    return sizes[0]


def expand(dna: DNA) -> list[Line]:
    r"""
    Return the lines of a program with all calls resolved. The first line computes value 2, as values 0 and 1
    are the inputs.

    An instruction with branches becomes its own lines between two that mark its inputs and one that
    concatenates the results along the features.

    :::{deviation} the paper, section 2
    The output of a subprogram is its last value. An empty subprogram, which a mutation can leave behind, is
    not mentioned. Here it returns its second input, the last value it has.
    :::

    Raises `ValueError` for more than `MOST_LINES` lines, or more than `MOST_COPIES` branches inside each
    other.
    """
    size = expanded_size(dna)
    if size > MOST_LINES:
        raise ValueError(f"{size:,} lines; at most {MOST_LINES:,} are allowed")
    lines: list[Line] = []

    def add(
        operation: str, first: int, second: int, i: Instruction, copies: int
    ) -> int:
        constant, dimension = dna.constants[i.constant], dna.dimensions[i.dimension]
        lines.append(
            Line(operation, first, second, constant, dimension, i.branches, copies)
        )
        return len(lines) + 1

    def execute(i: Instruction, first: int, second: int, copies: int) -> int:
        if i.called is None:
            return add(i.operation, first, second, i, copies)
        values = [first, second]
        for inner in dna.subprograms[i.called]:
            values.append(
                branch(inner, values[inner.first], values[inner.second], copies)
            )
        return values[-1]

    def branch(i: Instruction, first: int, second: int, copies: int) -> int:
        if i.branches == 1:
            return execute(i, first, second, copies)
        copies *= i.branches
        if copies > MOST_COPIES:
            raise ValueError(
                f"{copies} branches at once; at most {MOST_COPIES} are allowed"
            )
        first = add("BRANCH INPUT 1", first, first, i, copies)
        second = add("BRANCH INPUT 2", second, second, i, copies)
        result = execute(i, first, second, copies)
        return add("BRANCH MERGE", result, result, i, copies)

    result = execute(Instruction("S0"), 0, 1, copies=1)
    # The last line computes the result. Only after a call of an empty subprogram may others follow.
    return lines[: max(0, result - 1)]


def live_values(lines: Sequence[Line]) -> list[int]:
    """
    Return the values that a program's result needs, in their order. The rest is dead code and never runs.

    In the paper TensorFlow removes it. A search keeps it, because a later mutation may use it.
    """
    live = {len(lines) + 1}
    for value in reversed(range(2, len(lines) + 2)):
        if value in live:
            live.update(lines[value - 2].inputs)
    return sorted(value for value in live if value >= 2)


class Program(nn.Module):
    r"""
    ## From the list to a module

    Map `[batch, seq, d_model]` to the same shape, for up to `seq` tokens.

    The module loops over the lines of its program, about 40, but not over branches. A value that is the same
    in all branches has one copy, until weights make them differ.

    Raises `ValueError` as {py:func}`~labml_primer.search.running.expand` does, if `d_model` is not a
    multiple of 8, and for more than `MOST_FEATURES` features per token in one value or `MOST_WEIGHTS`
    weights, before they are allocated. Calling it with more than `seq` tokens raises it, too.

    :::{deviation} the paper, appendix A.2
    What are dimensions relative to? 512 is 8 times 64 in Figure 24, and 384 is 8 times 48 in Figure 25, so
    here the base is an eighth of `d_model`. The paper scales all models to 32 to 38 million parameters and
    does not say how. Here whoever builds a program chooses `d_model`.
    :::

    :::{deviation} the paper, section 2
    Both inputs of MAIN are the block's input. The paper draws two and says nothing about the second; neither
    of its programs uses it.
    :::

    :::{deviation} the paper, section 3 and Figure 25
    The gate on attention weights is a SCALE of values that are `seq` wide. Its weights are one scalar for
    each position of a key, so a program has one length; shorter texts are padded. The paper does not say
    whether heads share them. Here every branch has weights of its own, as for all weights.
    :::
    """

    def __init__(self, dna: DNA, d_model: int, seq: int):
        super().__init__()
        if d_model % 8:
            raise ValueError(f"d_model {d_model} is not a multiple of 8")
        self.base, self.seq = d_model // 8, seq
        self.lines = expand(dna)
        self.live = live_values(self.lines)
        self.weights = nn.ParameterDict()
        self.widths = {0: d_model, 1: d_model}
        # The shape of a weight depends on the width of its input. Run the program once on an empty batch,
        # which costs nothing, and make each weight just before it is used.
        values = {value: torch.empty(1, 0, seq, d_model) for value in (0, 1)}
        with torch.no_grad():
            for value in self.live:
                line = self.lines[value - 2]
                self.add_weight(value, line, self.widths[line.first])
                values[value] = self.compute(value, values)
                self.widths[value] = width = values[value].size(-1)
                if width * line.copies > MOST_FEATURES:
                    raise ValueError(
                        f"value {value}, {line.operation}, has {width * line.copies:,} "
                        f"features per token; at most {MOST_FEATURES:,} are allowed"
                    )

    def add_weight(self, value: int, line: Line, width: int) -> None:
        """Make the weight of a line, if it has one, for an input of `width` features."""
        primitive = PRIMITIVES.get(line.operation)
        if primitive is None or "w" not in primitive.arguments:
            return
        shape = primitive.shape(width, line.dimension * self.base, line.copies)
        total = math.prod(shape) + sum(w.numel() for w in self.weights.values())
        if total > MOST_WEIGHTS:
            raise ValueError(
                f"value {value}, {line.operation}, makes it {total:,} weights; "
                f"at most {MOST_WEIGHTS:,} are allowed"
            )
        self.weights[str(value)] = nn.Parameter(primitive.start(torch.empty(shape)))

    def compute(self, value: int, values: dict[int, Tensor]) -> Tensor:
        """Return the result of the line that computes `value`, from `values`."""
        line = self.lines[value - 2]
        x = values[line.first]
        if line.operation in BRANCHING:
            return BRANCHING[line.operation](x, line.branches)
        primitive = PRIMITIVES[line.operation]
        arguments: dict[str, Tensor | float] = {"x": x, "c": line.constant}
        if "y" in primitive.arguments:
            arguments["y"] = values[line.second]
        if "w" in primitive.arguments:
            arguments["w"] = self.weights[str(value)]
        return primitive.apply(*(arguments[a] for a in primitive.arguments if a != "d"))

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, tokens, d_model]` to the same shape."""
        tokens, d_model = x.shape[1:]
        if tokens > self.seq:
            raise ValueError(f"{tokens} tokens are more than the program's {self.seq}")
        # A program has one length, because a gate on attention weights has one scalar for each position of a
        # key, in each head. A shorter text is padded with its last token. As programs are causal, any padding
        # works except zeros: their norm is `nan`, which even a weight of zero passes on.
        if tokens < self.seq:
            x = x[:, torch.arange(self.seq, device=x.device).clamp(max=tokens - 1)]
        values = {0: x.unsqueeze(0), 1: x.unsqueeze(0)}
        for value in self.live:
            values[value] = self.compute(value, values)
        # The result must be as wide as the residual stream, whatever its width in the program.
        last = values[self.live[-1] if self.live else 1]
        return resize(last, d_model).squeeze(0)[:, :tokens]


def sees_the_future(block: nn.Module, x: Tensor) -> bool:
    """
    ## Is it causal?

    Return whether an output of `block` depends on a later input. `x` is one text, `[1, seq, d_model]`.

    Programs are causal by construction, as long as their values are finite. But if there were a mistake in
    the construction, the search would find it, because a block that sees the next token wins. So each
    candidate is tested: everything from some position on is changed, and the outputs before it must stay the
    same. Three positions are tested, which is enough for programs: they treat all positions alike.
    """
    seq = x.size(1)
    cuts = torch.tensor([1, seq // 2, seq - 1], device=x.device)
    before = torch.arange(seq, device=x.device) < cuts[:, None]  # [cuts, seq]
    changed = torch.where(before[..., None], x, torch.randn_like(x))
    with torch.no_grad():
        expected, result = block(x.expand_as(changed)), block(changed)
    # Exactly equal, because masked terms are zeros, and all others are the same numbers in the same order.
    same = (expected == result) | (expected.isnan() & result.isnan())
    return not bool(same.all(dim=-1)[before].all())


if __name__ == "__main__":
    # ## The paper's example
    #
    # Figure 2 has a program of four instructions. The result needs two of them; SIN and MUL are dead code. At
    # `d_model` 512 the base is 64, and dimension 8 means 512 units.
    from IPython.display import display

    from labml_primer.training.table import Table

    figure_2 = parse(
        """
        constants 0.0 0.0
        dimensions 8 1 1 1 1 1
        S0
          h2 = CONV 1X1(h0, h0)
          h3 = SIN(h1, h1)
          h4 = MULTIPLY(h2, h3)
          h5 = ADD(h0, h2)
        """
    )
    torch.manual_seed(0)
    program = Program(figure_2, d_model=512, seq=64)
    x = torch.randn(2, 64, 512)
    with torch.no_grad():
        by_hand = x + x @ program.weights["2"].squeeze(1)
        difference = (program(x) - by_hand).abs().max()
    print(f"runs {program.live} of {list(range(2, 6))}")
    print(f"h0 + dense(h0) by hand: largest difference {difference:.1e}")


# ## Figures 24 and 25
#
# :::{deviation} the paper, Figures 24 and 25 against Table 2
# Their names are not those of the table, and INPUT and the BRANCH operations are in no vocabulary. The
# dimension that BRANCH_MERGE prints is the width of its result, which is in no bank.
# :::
PRINTED_NAMES = {
    "ABS ROOT": "ABS_SQUARE_ROOT",
    "C MUL": "CONSTANT_MUL",
    "CONV 1X1": "DENSE",
    "MASK": "EMBEDDING_MASK",
    "T-MAT MUL": "TRANSPOSE_MAT_MUL",
}


def printed(program: Program) -> list[str]:
    """Return the lines of a program as Figures 24 and 25 print them."""
    lines = ["(0) INPUT", "(1) INPUT"]
    for value, line in enumerate(program.lines, start=2):
        name = PRINTED_NAMES.get(line.operation, line.operation).replace(" ", "_")
        name = re.sub("^RED_", "REDUCE_", name)
        name = re.sub("^DCONV_", "DEPTHWISE_CONV_", name)
        name = name.replace("BRANCH_INPUT", f"BRANCH_{line.branches}_INPUT")
        dimension = line.dimension * program.base
        if line.operation == "BRANCH MERGE":
            dimension = program.widths.get(value, dimension)
        lines.append(
            f"({value}) {name} In0: {line.first} In1: {line.second} "
            f"Dim: {dimension} C: {line.constant:.2f}"
        )
    return lines


if __name__ == "__main__":
    # The two programs in the form of the figures, for comparing with the paper. Instructions that never run
    # are marked.
    for name, dna, d_model in (
        ("Transformer", TRANSFORMER, 512),
        ("Primer", PRIMER, 384),
    ):
        program = Program(dna, d_model, seq=64)
        print(f"{name}, Figure {24 if dna is TRANSFORMER else 25}")
        for value, text in enumerate(printed(program)):
            print(text, "" if value < 2 or value in program.live else "  dead")
        print()
    # In Primer's list, instructions 12 to 16 and 21 are dead, and two branch marks. Instructions 12 to 15 are
    # a whole projection with its convolution. The search put queries that are computed from keys in its
    # place, and nothing reads it any more.
    sizes = []
    for name, dna in (("Transformer", TRANSFORMER), ("Primer", PRIMER)):
        lines = expand(dna)
        sizes.append((name, len(dna), len(lines), len(live_values(lines))))
    display(Table(("program", "instructions", "expanded", "that run"), sizes))


if __name__ == "__main__":
    # ## The same as the book's own blocks
    #
    # Copy the weights of {py:class}`~labml_primer.transformer.language_model.Block` into the Transformer's
    # program, and those of {py:class}`~labml_primer.primer.primer.SearchedBlock` into Primer's. The blocks
    # have biases that the programs lack, and an $\varepsilon$ in their norms. Here all of these are zero.
    from labml_primer.primer.primer import (
        PrimerNorm,
        SearchedActivation,
        SearchedAttention,
        SearchedBlock,
    )
    from labml_primer.transformer.language_model import Block, Config

    # The constant before the scores is 0.125, which is $1/\sqrt{d_k}$ at the paper's `d_model` only.
    config = Config(1, d_model=512, heads=8, d_ff=2048, norm=PrimerNorm)
    searched = replace(config, attention=SearchedAttention, d_ff=6144)
    searched = replace(searched, activation=SearchedActivation)
    # The names of the blocks' weights, in the order in which the programs use them. Instruction 12 of the
    # Transformer makes the keys, 13 the queries.
    norm, last_norm, attention, feed_forward = (
        "attention_norm.weight attention_norm.bias",
        "feed_forward_norm.weight feed_forward_norm.bias",
        "attention.key.weight attention.query.weight attention.value.weight",
        "feed_forward.expand.weight feed_forward.expand.bias "
        "feed_forward.contract.weight",
    )
    searched_attention = (
        "attention.key.weight attention.key_conv.weight attention.mixing "
        "attention.value.weight attention.value_conv.weight attention.gate"
    )
    output = "attention.output.weight"
    blocks = (
        (
            TRANSFORMER,
            Block(config).double(),
            f"{norm} {attention} {output} {last_norm} {feed_forward} "
            "feed_forward.contract.bias",
        ),
        (
            PRIMER,
            SearchedBlock(searched).double(),
            f"{norm} {searched_attention} {output} {feed_forward} {last_norm}",
        ),
    )
    torch.manual_seed(0)
    x = torch.randn(1, 64, 512, dtype=torch.float64)
    for dna, block, names in blocks:
        for module in block.modules():
            if isinstance(module, PrimerNorm):
                module.eps = 0.0
        program = Program(dna, d_model=512, seq=64).double()
        for name, parameter in block.named_parameters():
            if name in names.split():
                nn.init.normal_(parameter, std=0.05)
            else:
                nn.init.zeros_(parameter)
        for name, weight in zip(names.split(), program.weights.values(), strict=True):
            source: Tensor = block.get_parameter(name)
            if name == "attention.mixing":  # [heads, d_k, d_k]
                source = source.movedim(0, 1)
            elif source.dim() == 2 and name != "attention.gate":
                source = source.T
            weight.data.copy_(source.reshape(weight.shape))
        with torch.no_grad():
            difference = (program(x) - block(x)).abs().max()
        print(f"{type(block).__name__}: largest difference {difference:.0e}")
        print(f"  sees the future: {sees_the_future(program, x)}")


if __name__ == "__main__":
    # ## The time to build and to run
    #
    # A search builds thousands of programs and trains each for seconds, so building must be quick, and a
    # candidate should not be slower because it is a program. The table has the time to build the
    # Transformer's program, and its training step divided by the hand-written block's, for 16 texts of 64
    # tokens.
    from functools import partial

    from labml_primer.training import median_seconds

    def step(block: nn.Module, x: Tensor) -> Callable[[], None]:
        return lambda: block(x).sum().backward()

    rows = []
    for d_model in (64, 128, 256, 512):
        x = torch.randn(16, 64, d_model, requires_grad=True)
        block = Block(Config(1, d_model=d_model, heads=8, d_ff=4 * d_model))
        taken = median_seconds(
            {
                "build": partial(Program, TRANSFORMER, d_model, 64),
                "program": step(Program(TRANSFORMER, d_model, seq=64), x),
                "block": step(block, x),
            }
        )
        ratio = taken["program"] / taken["block"]
        rows.append((d_model, f"{1000 * taken['build']:.1f} ms", f"{ratio:.2f}"))
    display(Table(("d_model", "build", "step, program / block"), rows))
    # The extra time goes into operations that the block fuses, above all softmax and the norms. At width 64
    # they are a larger part of a step, because a head has 8 features for each of 64 scores.


if __name__ == "__main__":
    # ## In short
    #
    # - Expanded, the two programs are the lists that the paper prints.
    # - Every primitive is causal, so every program of finite values is.
    # - As a module, a program computes the same as a hand-written block, a little slower.
    #
    # ## Exercise
    #
    # :::{exercise} A billion lines
    # How many lines has a program of thirty subprograms, each of which calls the next one twice, and the last
    # of which applies SIN twice? Can you find out without expanding it?
    # :::
    # :::{solution}
    # $2^{30}$, more than a billion. Each subprogram has twice as many lines as the next one, so the lines are
    # counted from the last one up.
    # :::
    texts = [f"S{n}\nh2 = S{n + 1}(h0, h0)\nh3 = S{n + 1}(h2, h2)" for n in range(29)]
    last = "S29\nh2 = SIN(h0, h0)\nh3 = SIN(h2, h2)"
    banks = "constants 0 0\ndimensions 1 1 1 1 1 1"
    long = parse("\n".join([banks, *texts, last]))
    assert expanded_size(long) == 2**30
    try:
        Program(long, d_model=64, seq=8)
    except ValueError as error:
        print(error)

    # How does a program change at random? {doc}`mutations`.
