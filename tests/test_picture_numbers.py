"""Pictures compute their numbers without PyTorch: here they are compared with the chapters'."""

import pytest
import torch
from pictures.convolution import INPUT, WEIGHTS, output
from pictures.t5_buckets import bucket

from labml_primer.compared.t5 import relative_position_bucket
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution


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
