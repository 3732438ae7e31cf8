"""Pictures compute their numbers without PyTorch: here they are compared with the chapters'."""

import pytest
import torch
from pictures import program
from pictures.convolution import INPUT, WEIGHTS, output
from pictures.t5_buckets import bucket

from labml_primer.compared.t5 import relative_position_bucket
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.search.programs import DNA, PRIMER, TRANSFORMER, expand, live_values


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
