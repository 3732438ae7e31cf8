"""The small search that the chapter on programs shows."""

import pytest
from pictures.search.small_search import read

from experiments.search.small import curve
from labml_primer.search.programs import parse


@pytest.mark.parametrize("number", [0, 13])
def test_training_again_gives_the_recorded_loss(number: int) -> None:
    recorded = read()[number]
    loss = next(curve(parse("\n".join(recorded.program)), number))
    assert loss == pytest.approx(recorded.loss, abs=0.02)
