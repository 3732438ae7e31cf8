"""What the chapter on programs promises."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from labml_primer.primer.primer import (
    PrimerNorm,
    SearchedActivation,
    SearchedAttention,
    SearchedBlock,
)
from labml_primer.search.primitives import PRIMITIVES, match, resize
from labml_primer.search.programs import (
    BRANCHES,
    DIMENSIONS,
    DNA,
    PRIMER,
    TRANSFORMER,
    Instruction,
    parse,
)
from labml_primer.search.running import (
    Program,
    expand,
    live_values,
    printed,
    sees_the_future,
)
from labml_primer.transformer.language_model import Block, Config

FIGURES = Path(__file__).parent / "figures"
Array = NDArray[np.float64]


def reals(*shape: int) -> Tensor:
    """Return the same random numbers at every call."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def program_of(*instructions: str, dimensions: str = "1 2 4 8 12 16") -> Program:
    """Return the program of one subprogram, 8 wide, for 6 tokens, with random weights."""
    lines = [f"h{v} = {text}" for v, text in enumerate(instructions, start=2)]
    text = "\n".join(["constants 0.5 -0.25", f"dimensions {dimensions}", "S0", *lines])
    program = Program(parse(text), d_model=8, seq=6).double()
    for number, parameter in enumerate(program.parameters()):
        parameter.data = reals(number + 1, *parameter.shape)[number]
    return program


# Every primitive computes its formula: [positions, features] of one text in, the same out

C = -0.25


def rows(function: Callable[[Array], object]) -> Callable[..., Array]:
    """Return `function` of each row, as a column."""
    return lambda x: np.array([[function(row)] for row in x])


def triangle(x: Array) -> Array:
    return np.array(
        [[v if j <= i else 0 for j, v in enumerate(r)] for i, r in enumerate(x)]
    )


def running(function: Callable[[Array], object]) -> Callable[..., Array]:
    return lambda x: np.array(
        [[function(r[: j + 1]) for j in range(len(r))] for r in x]
    )


UNARY: dict[str, Callable[[Array], Array]] = {
    "ABS ROOT": lambda x: np.abs(x) ** 0.5,
    "SQUARE": lambda x: x * x,
    "EXP": lambda x: np.e**x,
    "LOG": lambda x: np.log(x * x) / 2,
    "C MUL": lambda x: x * C,
    "ABS": lambda x: np.where(x < 0, -x, x),
    "RECIP": lambda x: x**-1,
    "SIGN": lambda x: x / np.abs(x),
    "COS": lambda x: np.real(np.exp(1j * x)),
    "SIN": lambda x: np.imag(np.exp(1j * x)),
    "TANH": lambda x: 1 - 2 / (np.exp(2 * x) + 1),
    "MAX": lambda x: np.where(x > C, x, C),
    "MIN": lambda x: np.where(x < C, x, C),
    "SIGMOID": lambda x: 1 / (1 + np.exp(-x)),
    "MASK": triangle,
    "CUM PROD": running(np.prod),
    "CUM SUM": running(np.sum),
    "RED MEAN": rows(lambda row: sum(row) / len(row)),
    "RED SUM": rows(sum),
    "RED MIN": rows(min),
    "RED MAX": rows(max),
    "RED PROD": rows(np.prod),
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": lambda x, y: x + y,
    "DIFFERENCE": lambda x, y: x - y,
    "DIVIDE": lambda x, y: x / y,
    "MULTIPLY": lambda x, y: x * y,
    "T-MAT MUL": lambda x, y: triangle(np.array([[sum(a * b) for b in y] for a in x])),
}
LEARNED = sorted(n for n, primitive in PRIMITIVES.items() if "w" in primitive.arguments)


def each(function: Callable[..., Array], *inputs: Tensor) -> Tensor:
    """Apply `function` to each text of each copy."""
    flat = [x.flatten(0, 1).numpy() for x in inputs]
    results = [torch.from_numpy(function(*texts)) for texts in zip(*flat, strict=True)]
    return torch.stack(results).unflatten(0, inputs[0].shape[:2])


def test_there_are_39_primitives_and_each_has_a_formula_here() -> None:
    assert len(PRIMITIVES) == 39
    assert {*UNARY, *BINARY, "MAT MUL", *LEARNED} == set(PRIMITIVES)


@pytest.mark.parametrize("name", UNARY)
def test_unary_primitives(name: str) -> None:
    x, primitive = reals(2, 3, 5, 4), PRIMITIVES[name]
    result = primitive.apply(*(x, C)[: len(primitive.arguments)])
    torch.testing.assert_close(result, each(UNARY[name], x))


@pytest.mark.parametrize("name", BINARY)
def test_binary_primitives(name: str) -> None:
    x, y = reals(2, 3, 5, 4), reals(2, 3, 5, 4).flip(0)
    torch.testing.assert_close(PRIMITIVES[name].apply(x, y), each(BINARY[name], x, y))


@pytest.mark.parametrize("name", ["ADD", "DIFFERENCE", "DIVIDE", "MULTIPLY"])
def test_one_number_per_row_is_broadcast(name: str) -> None:
    x, y = reals(2, 3, 5, 4), reals(2, 3, 5, 1)
    torch.testing.assert_close(PRIMITIVES[name].apply(x, y), each(BINARY[name], x, y))
    torch.testing.assert_close(PRIMITIVES[name].apply(y, x), each(BINARY[name], y, x))


def test_matrix_product_uses_the_lower_triangle() -> None:
    x, y = reals(2, 3, 5, 5), reals(2, 3, 5, 4)

    def product(a: Array, b: Array) -> Array:
        return np.array([sum(a[i, j] * b[j] for j in range(i + 1)) for i in range(5)])

    torch.testing.assert_close(PRIMITIVES["MAT MUL"].apply(x, y), each(product, x, y))


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("shared", [True, False])
def test_learned_primitives_have_weights_of_their_own_in_each_copy(
    name: str, shared: bool
) -> None:
    copies, width, units, seq = 2, 4, 3, 6
    primitive, x = PRIMITIVES[name], reals(1 if shared else copies, 3, seq, width)
    weight = reals(*primitive.shape(width, units, copies))
    result = primitive.apply(x, weight)
    for copy in range(copies):
        text = x[0 if shared else copy]
        if name == "SCALE":
            expected = text * weight[copy, 0, 0]
        elif name == "SHIFT":
            expected = text + weight[copy, 0, 0]
        else:
            # Term by term, over the tokens of the kernel.
            size = int(name.split()[1].removesuffix("X1"))
            kernels = (
                torch.stack([torch.diag(kernel) for kernel in weight[:, copy, 0, 0]])
                if name.startswith("DCONV")
                else weight[:, copy].unflatten(0, (width, size)).movedim(1, 0)
            )
            expected = torch.zeros(3, seq, kernels.size(-1), dtype=torch.float64)
            for t in range(seq):
                for i in range(size):
                    if t - (size - 1) + i >= 0:
                        expected[:, t] += text[:, t - (size - 1) + i] @ kernels[i]
        torch.testing.assert_close(result[copy], expected)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_gradients(name: str) -> None:
    primitive = PRIMITIVES[name]
    x = reals(2, 1, 3, 3).requires_grad_()
    inputs: list[Tensor | float] = [x]
    if "y" in primitive.arguments:
        inputs.append(reals(2, 1, 3, 3).flip(0).clone().requires_grad_())
    if "c" in primitive.arguments:
        inputs.append(C)
    if "w" in primitive.arguments:
        inputs.append(reals(*primitive.shape(3, 2, 2)).requires_grad_())
    assert torch.autograd.gradcheck(primitive.apply, inputs)


def test_reciprocal_of_zero_and_its_gradient_are_zero() -> None:
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    result = PRIMITIVES["RECIP"].apply(x)
    result.sum().backward()
    assert result.tolist() == [0, 0.5]
    assert x.grad is not None and x.grad.tolist() == [0, -0.25]


# Widths that differ


def test_resize_cuts_or_repeats() -> None:
    x = torch.arange(3.0).view(1, 1, 1, 3)
    assert resize(x, 2).flatten().tolist() == [0, 1]
    assert resize(x, 7).flatten().tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_one_of_two_widths_becomes_the_other_and_both_occur() -> None:
    chosen = set()
    for width in range(2, 12):
        x, y = match(torch.zeros(1, 1, 1, width), torch.zeros(1, 1, 1, 16))
        assert x.size(-1) == y.size(-1)
        chosen.add(x.size(-1) == 16)
    assert chosen == {True, False}


# Branches


@pytest.mark.parametrize("inputs", ["h0, h1", "h2, h2"])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_branches_are_copies_side_by_side(name: str, inputs: str) -> None:
    first = "CONV 1X1(h0, h0) d3"
    branched = program_of(first, f"{name}({inputs}) d2 @4", dimensions="1 2 4 8 1 1")
    single = program_of(first, f"{name}({inputs}) d2", dimensions="1 2 4 8 1 1")
    x = reals(2, 6, 8)
    values = {0: x[None], 1: x[None]}
    for value in branched.live:
        values[value] = branched.compute(value, values)
    parts = values[branched.live[-1]].chunk(4, dim=-1)
    for copy, part in enumerate(parts):
        one = {0: x[None], 1: x[None]}
        for value in single.live:
            if str(value) in single.weights:
                # The same weights; those of the branched line have a number one or two higher.
                key = str(value) if str(value) in branched.weights else str(value + 2)
                weight = branched.weights[key].data
                target = single.weights[str(value)]
                if weight.shape != target.shape:
                    weight = weight.narrow(weight.shape.index(4), copy, 1)
                target.data = weight
            one[value] = single.compute(value, one)
        torch.testing.assert_close(part, one[single.live[-1]])


def test_branches_inside_branches() -> None:
    text = """
        constants 0 0
        dimensions 2 1 1 1 1 1
        S0
          h2 = S1(h0, h0) @2
        S1
          h2 = SCALE(h0, h0)
          h3 = CONV 1X1(h2, h2) @4
          h4 = SHIFT(h3, h3)
    """
    program = Program(parse(text), d_model=8, seq=6).double()
    for weight in program.parameters():
        nn.init.normal_(weight)
    scale, dense, shift = program.weights.values()
    x = reals(3, 6, 8)
    outer = []
    for a in range(2):
        y = x * scale[a].flatten()
        inner = torch.cat([y @ dense[:, 4 * a + b] for b in range(4)], dim=-1)
        outer.append(inner + shift[a].flatten())
    torch.testing.assert_close(program(x), torch.cat(outer, dim=-1)[..., :8])


# Causality


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize(
    "prepare, inputs",
    [
        ("ABS(h0, h0)", "h0, h2"),
        ("T-MAT MUL(h0, h0)", "h2, h2"),
        ("T-MAT MUL(h0, h0)", "h2, h0"),
        ("CUM SUM(h0, h0)", "h2, h1"),
    ],
)
@pytest.mark.parametrize("branches", ["", " @4"])
def test_primitives_are_causal(
    name: str, prepare: str, inputs: str, branches: str
) -> None:
    use = ("EXP(h3, h3)", "MAT MUL(h4, h0)", "T-MAT MUL(h5, h3)")
    program = program_of(prepare, f"{name}({inputs}) d2{branches}", *use)
    assert not sees_the_future(program, reals(1, 6, 8))


def test_a_block_that_sees_the_future_is_found() -> None:
    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + x.mean(dim=1, keepdim=True)

    class Next(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([x[:, 1:], x[:, -1:]], dim=1)

    x = reals(1, 6, 8)
    assert sees_the_future(Mean(), x) and sees_the_future(Next(), x)
    assert not sees_the_future(nn.Tanh(), x)


@pytest.mark.parametrize("dna", [TRANSFORMER, PRIMER])
def test_shorter_texts_get_the_same_results(dna: DNA) -> None:
    program, x = Program(dna, d_model=16, seq=9).double(), reals(2, 9, 16)
    torch.testing.assert_close(program(x)[:, :5], program(x[:, :5]))


def test_longer_texts_are_an_error() -> None:
    with pytest.raises(ValueError, match="10 tokens are more than the program's 9"):
        Program(PRIMER, d_model=16, seq=9)(torch.zeros(1, 10, 16))


# Text


@st.composite
def instructions(draw: st.DrawFn, s: int, count: int, value: int) -> Instruction:
    operations = [*PRIMITIVES, *(f"S{n}" for n in range(s + 1, count))]
    return Instruction(
        draw(st.sampled_from(operations)),
        draw(st.integers(0, value - 1)),
        draw(st.integers(0, value - 1)),
        draw(st.integers(0, 1)),
        draw(st.integers(0, 5)),
        draw(st.sampled_from(BRANCHES)),
    )


@st.composite
def programs(draw: st.DrawFn) -> DNA:
    count = draw(st.integers(1, 3))
    subprograms = tuple(
        tuple(
            draw(instructions(s, count, value))
            for value in range(2, 2 + draw(st.integers(0, 4)))
        )
        for s in range(count)
    )
    constants = st.floats(-9e37, 9e37)
    return DNA(
        subprograms,
        (draw(constants), draw(constants)),
        tuple(draw(st.sampled_from(DIMENSIONS)) for _ in range(6)),
    )


@given(programs())
def test_text_is_read_back_as_the_same_program(dna: DNA) -> None:
    assert parse(str(dna)) == dna


@given(programs())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_program_is_causal_and_keeps_the_shape_or_is_an_error(dna: DNA) -> None:
    try:
        program = Program(replace(dna, dimensions=(1, 1, 2, 2, 4, 4)), d_model=8, seq=5)
    except ValueError as error:
        assert "at most" in str(error) or "at once" in str(error)
        return
    x = reals(1, 5, 8)
    result = program.double()(x)
    assert result.shape == x.shape
    if result.isfinite().all():
        assert not sees_the_future(program, x)


BANKS = "constants 0 0\ndimensions 1 1 1 1 1 1\n"


@pytest.mark.parametrize(
    "text, message",
    [
        (BANKS, "0 subprograms"),
        (BANKS + "S0\nh2 = JUMP(h0, h0)", "no operation 'JUMP'"),
        (BANKS + "S0\nh2 = S0(h0, h0)", "cannot call any"),
        (BANKS + "S0\nh2 = S1(h0, h0)\nS1\nh2 = S0(h0, h0)", "cannot call any"),
        (BANKS + "S0\nh2 = S7(h0, h0)\nS1", "can call subprograms S1 to S1"),
        (BANKS + "S0\nh2 = ADD(h0, h2)", "h2 is not computed before h2"),
        (BANKS + "S0\nh2 = ADD(h0, h0) c2", "no constant c2"),
        (BANKS + "S0\nh2 = ADD(h0, h0) d6", "no dimension d6"),
        (BANKS + "S0\nh2 = ADD(h0, h0) @3", "3 branches"),
        (BANKS + "S0\nh3 = ADD(h0, h0)", "line 4: h3 where h2"),
        (BANKS + "S1", "line 3: S1 where S0"),
        (BANKS + "S0\nh2 = ADD(h-1, h0)", "line 4: .* is not like"),
        (BANKS + "S0\nh2 = __import__('os').system('true')", "is not like"),
        (BANKS + "h2 = ADD(h0, h0)", "line 3: an instruction before S0"),
        ("constants nan 0\ndimensions 1 1 1 1 1 1\nS0", "must be between"),
        ("constants 0\ndimensions 1 1 1 1 1 1\nS0", "1 constants; the bank holds 2"),
        ("constants 0 0\ndimensions 1 1 1 1 1 3\nS0", "dimension 3 is none of"),
        ("constants 0 x\ndimensions 1 1 1 1 1 1\nS0", "line 1: could not convert"),
        ("constants 0 1e39\ndimensions 1 1 1 1 1 1\nS0", "must be between"),
        (BANKS + "".join(f"S{n}\n" for n in range(101)), "101 subprograms"),
    ],
)
def test_text_that_makes_no_sense_is_an_error_that_says_why(
    text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def chain(count: int, *calls: str, end: str = "h2 = CONV 31X1(h0, h0)") -> DNA:
    """Return subprograms that each make the same calls of the next; the last one is dense, or `end`."""
    text = BANKS.replace("1 1 1 1 1 1", "64 64 64 64 64 64")
    for n in range(count):
        lines = (f"h{v} = {c.format(n + 1)}" for v, c in enumerate(calls, start=2))
        text += "\n".join([f"S{n}", *lines]) + "\n"
    return parse(text + f"S{count}\n{end}\n")


@pytest.mark.parametrize(
    "dna, message",
    [
        (chain(40, "S{}(h0, h0)", "S{}(h2, h2)"), "lines; at most 10,000"),
        (chain(40, "S{}(h0, h0)", "S{}(h2, h2)", end=""), "lines; at most 10,000"),
        (chain(20, "S{}(h0, h0) @16"), "4096 branches at once; at most 256"),
        (chain(2, "S{}(h0, h0) @16"), "weights; at most 100,000,000"),
        (
            chain(1, *(f"ABS(h{v}, h0) @16" for v in (0, 2, 3, 4, 5)), "ADD(h6, h6)"),
            "features per token; at most 131,072",
        ),
    ],
)
def test_programs_that_explode_are_an_error(dna: DNA, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Program(dna, d_model=64, seq=8)


def test_an_empty_subprogram_returns_its_second_input() -> None:
    text = BANKS + "S0\nh2 = ABS(h0, h0)\nh3 = SIN(h2, h2)\nh4 = S1({})\nS1\n"
    x = reals(1, 4, 8)
    for inputs, expected in (("h2, h0", x), ("h3, h2", x.abs()), ("h0, h3", None)):
        program = Program(parse(text.format(inputs)), d_model=8, seq=4)
        assert torch.equal(program(x), x.abs().sin() if expected is None else expected)
    assert torch.equal(Program(parse(BANKS + "S0"), d_model=8, seq=4)(x), x)


def interpret(dna: DNA, s: int, first: Tensor, second: Tensor) -> Tensor:
    """Run a program without weights as it is written: calls as calls, branches as a loop, dead code too."""
    values = [first, second]
    for i in dna.subprograms[s]:
        x, y = values[i.first], values[i.second]
        results = []
        for _ in range(i.branches):
            if i.called is None:
                primitive = PRIMITIVES[i.operation]
                given = {"x": x, "y": y, "c": dna.constants[i.constant]}
                results.append(
                    primitive.apply(*(given[a] for a in primitive.arguments))
                )
            else:
                results.append(interpret(dna, i.called, x, y))
        values.append(torch.cat(results, dim=-1))
    return values[-1]


@given(programs())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_expanded_programs_compute_what_the_written_ones_do(dna: DNA) -> None:
    def simple(i: Instruction) -> Instruction:
        operation = "SIN" if i.operation in LEARNED else i.operation
        return replace(i, operation=operation, branches=min(i.branches, 2))

    dna = replace(
        dna, subprograms=tuple(tuple(map(simple, s)) for s in dna.subprograms)
    )
    x = reals(2, 5, 8)
    expected = resize(interpret(dna, 0, x[None], x[None]), 8)[0]
    result = Program(dna, d_model=8, seq=5)(x)
    torch.testing.assert_close(result, expected, equal_nan=True)


# Figures


@pytest.mark.parametrize(
    "number, dna, d_model", [(24, TRANSFORMER, 512), (25, PRIMER, 384)]
)
def test_programs_expand_to_the_lines_of_the_figure(
    number: int, dna: DNA, d_model: int
) -> None:
    figure = (FIGURES / f"figure_{number}.txt").read_text().splitlines()
    assert printed(Program(dna, d_model, seq=64)) == figure


def test_dead_code_of_primer() -> None:
    lines = expand(PRIMER)
    dead = set(range(2, len(lines) + 2)) - set(live_values(lines))
    assert dead == {11, 12, 13, 14, 15, 16, 21, 38}


def same(block: Block, program: Program, names: str) -> None:
    """Copy the named weights, in the order of the program, and compare outputs and gradients."""
    for module in block.modules():
        if isinstance(module, PrimerNorm):
            module.eps = 0.0
    for name, parameter in block.named_parameters():
        nn.init.zeros_(parameter)
        if name in names.split():
            parameter.data = reals(*parameter.shape) / 4
    for name, weight in zip(names.split(), program.weights.values(), strict=True):
        source = block.get_parameter(name).data
        if name == "attention.mixing":
            source = source.movedim(0, 1)
        elif name.endswith("weight") and source.dim() == 2:
            source = source.T
        weight.data = source.reshape(weight.shape).clone()
    x = reals(2, 7, program.widths[0]).requires_grad_()
    first, second = block(x), program(x)
    torch.testing.assert_close(first, second)
    upstream = reals(*x.shape).flip(0)
    torch.testing.assert_close(
        torch.autograd.grad(first, x, upstream),
        torch.autograd.grad(second, x, upstream),
    )


def test_transformer_program_equals_the_block() -> None:
    # The constant 0.125 is the root of a head's 64 features.
    config = Config(1, d_model=512, heads=8, d_ff=2048, norm=PrimerNorm)
    same(
        Block(config).double(),
        Program(TRANSFORMER, d_model=512, seq=7).double(),
        "attention_norm.weight attention_norm.bias attention.key.weight "
        "attention.query.weight attention.value.weight attention.output.weight "
        "feed_forward_norm.weight feed_forward_norm.bias feed_forward.expand.weight "
        "feed_forward.expand.bias feed_forward.contract.weight feed_forward.contract.bias",
    )


def test_primer_program_equals_the_searched_block() -> None:
    config = Config(
        1,
        d_model=16,
        heads=8,
        d_ff=192,
        attention=SearchedAttention,
        activation=SearchedActivation,
        norm=PrimerNorm,
    )
    block = SearchedBlock(config).double()
    attention = block.attention
    assert isinstance(attention, SearchedAttention)
    attention.gate = nn.Parameter(torch.ones(8, 7, dtype=torch.float64))
    same(
        block,
        Program(PRIMER, d_model=16, seq=7).double(),
        "attention_norm.weight attention_norm.bias attention.key.weight "
        "attention.key_conv.weight attention.mixing attention.value.weight "
        "attention.value_conv.weight attention.gate attention.output.weight "
        "feed_forward.expand.weight feed_forward.expand.bias "
        "feed_forward.contract.weight feed_forward_norm.weight feed_forward_norm.bias",
    )
