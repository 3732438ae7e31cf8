"""Pictures compute their numbers without PyTorch: here they are compared with the chapters'."""

import pytest
import torch
from drawing import instructions
from pictures.compared.t5_buckets import bucket
from pictures.primer.convolution import INPUT, WEIGHTS, output
from pictures.search import mutations, primitives, program, small_search
from pictures.training import training
from pictures.transformer import one_new_row

from experiments.search import small
from labml_primer.compared.t5 import relative_position_bucket
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.search.mutations import deleted, inserted, swapped
from labml_primer.search.primitives import PRIMITIVES
from labml_primer.search.programs import DNA, PRIMER, TRANSFORMER, Instruction, parse
from labml_primer.search.running import expand, live_values
from labml_primer.training.loop import next_character_loss
from labml_primer.transformer.attention import attention_weights, causal_mask


@pytest.mark.parametrize("bidirectional", [True, False])
def test_pictured_buckets_are_the_chapters(bidirectional: bool) -> None:
    distances = range(-300, 301)
    expected = relative_position_bucket(torch.tensor(distances), bidirectional).tolist()
    assert [bucket(distance, bidirectional) for distance in distances] == expected


def test_pictured_convolution_has_a_new_layers_weights_and_outputs() -> None:
    layer = SpatialDepthWiseConvolution(heads=1, d_k=1)
    assert layer.weight.flatten().tolist() == pytest.approx(WEIGHTS)
    with torch.no_grad():
        outputs = layer(torch.tensor(INPUT).view(1, -1, 1, 1)).flatten().tolist()
    assert [output(place) for place in range(len(INPUT))] == pytest.approx(outputs)


def test_pictured_step_of_training_has_the_loss_and_the_gradients_of_the_chapter() -> (
    None
):
    table = torch.nn.Embedding(5, 5)
    table.weight.data = torch.tensor(training.TABLE)
    window = torch.tensor([[training.LETTERS.index(c) for c in training.WINDOW]])
    loss = next_character_loss(table, window)
    (expected,) = torch.autograd.grad(loss, table.weight)
    _, losses, gradients = training.step(training.TABLE)
    assert sum(losses) / len(losses) == pytest.approx(loss.item())
    torch.testing.assert_close(torch.tensor(gradients), expected)
    table.weight.data -= training.RATE * expected
    new = training.updated(training.TABLE, gradients)
    torch.testing.assert_close(torch.tensor(new), table.weight.data)


def test_pictured_weights_are_the_rows_of_causal_attention() -> None:
    query, key = (
        torch.tensor(rows).float() for rows in (one_new_row.QUERIES, one_new_row.KEYS)
    )
    expected = attention_weights(query, key, causal_mask(len(query), len(key)))
    for step, row in enumerate(expected.tolist()):
        assert one_new_row.weights(step) == pytest.approx(row[: step + 1])


@pytest.mark.parametrize(
    "dna, nodes, dead, head",
    [
        (TRANSFORMER, program.TRANSFORMER, set(), range(12, 22)),
        (PRIMER, program.PRIMER, program.DEAD_VALUES, range(12, 33)),
    ],
)
def test_pictured_program_is_the_chapters(
    dna: DNA, nodes: dict[int, program.Node], dead: set[int], head: range
) -> None:
    lines = expand(dna)
    for value, (operation, inputs, _, _) in nodes.items():
        line = lines[value - 2]
        assert (operation, {*inputs}) == (line.operation, {*line.inputs})
    live = set(live_values(lines))
    assert nodes.keys() - dead == live & {*head}
    assert not dead & live


@pytest.mark.parametrize(
    "name, dna", [("TRANSFORMER", TRANSFORMER), ("PRIMER", PRIMER)]
)
def test_pictured_difference_is_of_the_chapters_programs(name: str, dna: DNA) -> None:
    text = instructions.chapter_text(name)
    assert parse(text) == dna
    subprograms = instructions.read(text)
    for nodes, expected in zip(subprograms, dna.subprograms, strict=True):
        assert [n.operation for n in nodes] == [i.operation for i in expected]


def test_pictured_mutations_are_the_chapters() -> None:
    before = TRANSFORMER.subprograms[2]
    square, tanh = Instruction("SQUARE", 4), Instruction("TANH", 5)
    shorter = deleted(before, 3)
    children = {
        "delete": shorter,
        "insert": inserted(before, 5, square),
        "delete and insert": inserted(shorter, 6, tanh),
        "swap": swapped(before, 2, 4),
    }
    for name, child in children.items():
        pictured = mutations.CHILDREN[name]
        assert [(n.operation, n.inputs) for n in pictured] == [
            (i.operation, (i.first,)) for i in child
        ]


def test_pictured_search_is_what_the_chapters_make_of_its_losses() -> None:
    individuals = small_search.read()
    assert len(individuals) == 40
    search = small.search(small_search.SEED)
    for each, state in zip(individuals, small_search.births(individuals), strict=True):
        assert [one.number for one, _ in search.population] == state.living
        asked = search.ask()
        assert (asked.number, asked.parent) == (each.number, each.parent)
        assert str(asked.program.dna).splitlines() == each.program
        assert list(asked.program.mutations) == each.mutations
        if each.parent is not None:
            assert (
                min(state.drawn, key=lambda n: individuals[n].loss or 0) == each.parent
            )
        search.tell(asked, () if each.loss is None else (each.loss,))


def test_pictured_words_say_what_its_programs_do() -> None:
    individuals = small_search.read()

    def runs(number: int) -> list[str]:
        lines = expand(parse("\n".join(individuals[number].program)))
        return [lines[value - 2].operation for value in live_values(lines)]

    def loss(number: int) -> float:
        return individuals[number].loss or 0

    copies = [loss(number) for number in range(10)]
    assert min(copies) <= loss(10) <= max(copies), "no better"
    convolved = {n for n in range(40) if {"CONV 15X1", "CONV 3X1"} & {*runs(n)}}
    assert min(n for n in range(40) if "CONV 15X1" in runs(n)) == 13
    assert "CONV 15X1" not in runs(15) and abs(loss(15) - min(copies)) < 0.05
    assert 18 in convolved and 23 in convolved, "others have it now"
    low = [n for n in range(30, 40) if loss(n) < 0.45]
    assert len(low) == 5 and convolved >= {*low}, "half of them have it"
    assert runs(13) == ["CONV 15X1"], "the rest is dead code"


def node(text: str) -> instructions.Node:
    operation, *inputs = text.split()
    return instructions.Node(operation, "", tuple(map(int, inputs)))


def test_a_difference_marks_what_was_added_gone_changed_and_rerouted() -> None:
    old = [node("SIN 0"), node("COS 2"), node("ADD 3 2")]
    for new, kinds, rerouted in (
        ("SIN 0, COS 2, ADD 3 2", ["same"] * 3, []),
        ("SIN 0, ABS 2, COS 3, ADD 4 3", ["same", "added", "same", "same"], [2, 3, 3]),
        ("SIN 0, ADD 2 2", ["same", "removed", "same"], [2]),
        ("COS 0, SIN 2, ADD 3 2", ["changed", "changed", "same"], []),
        ("SIN 0, COS 0, ADD 3 2", ["same"] * 3, [0]),
        ("SIN 0, COS 2, ADD 2 3", ["same"] * 3, []),
        ("SIN 0, COS 2, ADD 3 3", ["same"] * 3, [3]),
    ):
        found = instructions.changes(old, [node(each) for each in new.split(", ")])
        assert [change.kind for change in found] == kinds
        assert [value for change in found for value in change.rerouted] == rerouted


def test_pictured_primitives_are_the_chapters_in_their_groups() -> None:
    pictured = [name for _, names in primitives.KINDS.values() for name in names]
    assert sorted(pictured) == sorted(PRIMITIVES)
    for kind, (_, names) in primitives.KINDS.items():
        for name in names:
            arguments = PRIMITIVES[name].arguments
            assert ("w" in arguments) == ("with weights" in kind)
            assert ("c" in arguments) == ("constant" in kind)
            assert ("y" in arguments) == (kind in ("two inputs", "between positions"))
