"""Tests of the statistics of recorded runs."""

import math
from typing import Any

import pytest

from experiments.measured.analysis import (
    Spread,
    every_seed,
    final_losses,
    gain,
    last_loss,
    relative_perplexity,
    setting,
    until,
)


def run_of(seed: int, loss: list[float], step: float = 1.0) -> dict[str, Any]:
    return {"seed": seed, "loss": loss, "steps": [step * n for n in (1, 2, 3, 4)]}


def test_shorter_run_is_its_curve_cut_off() -> None:
    baseline = run_of(0, [4.0, 3.0, 2.0, 1.0])
    assert until(baseline, 2) == run_of(0, [4.0, 3.0]) | {"steps": [1.0, 2.0]}
    # The whole plays were read after the last step only.
    assert last_loss(baseline | {"whole": 0.9}) == 0.9
    assert last_loss(until(baseline | {"whole": 0.9}, 1)) == 4.0


def test_models_with_other_seeds_are_not_compared_by_their_places() -> None:
    runs = {
        "a": [run_of(0, [4.0]), run_of(1, [2.0])],
        "b": [run_of(1, [3.0]), run_of(0, [3.0])],
    }
    for compared in (every_seed, gain):
        with pytest.raises(ValueError, match=r"seeds, \[0, 1\] and \[1, 0\]"):
            compared(runs, "a", "b")
    with pytest.raises(ValueError, match="differ in their seeds"):
        final_losses(runs)


def test_spread_is_written_with_its_standard_deviation() -> None:
    assert f"{Spread.of([3.0]):.1f}" == "3.0"
    assert f"{Spread.of([2.0, 4.0]):.2f}" == "3.00 ± 1.41"
    assert f"{Spread.of([2.0, 4.0]):+.1f}" == "+3.0 ± 1.4"


def test_setting_names_seeds_data_and_compute() -> None:
    run = {"data": "characters", "multiply_adds": [1e12, 6.34e12]}
    costly = {"data": "subwords", "multiply_adds": [7e12]}
    assert setting([[run, run], [run] * 2]) == (
        "2 seeds, characters, 6.3 trillion multiply-adds each"
    )
    assert setting([[run] * 3, [costly] * 5]) == (
        "3 to 5 seeds, characters and subwords, 6.3 to 7.0 trillion multiply-adds each"
    )


def test_perplexities_are_compared_seed_by_seed() -> None:
    baseline = [run_of(0, [4.0, 1.0]), run_of(1, [4.0, 2.0])]
    runs = [run_of(1, [3.0, 2.0 + math.log(1.1)]), run_of(7, [3.0, 1.0])]
    assert relative_perplexity(baseline, runs) == [pytest.approx(110)]
    assert relative_perplexity(baseline, baseline) == [100, 100]
