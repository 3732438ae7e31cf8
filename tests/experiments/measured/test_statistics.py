"""Tests of the statistics of recorded runs."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch

from experiments.measured.analysis import (
    Spread,
    ahead,
    decreasing,
    factor,
    final_losses,
    fitted,
    gain,
    relative_perplexity,
    setting,
    speedup,
    until,
)


def run_of(seed: int, loss: list[float], step: float = 1.0) -> dict[str, Any]:
    return {"seed": seed, "loss": loss, "steps": [step * n for n in (1, 2, 3, 4)]}


def test_speedup_is_the_cost_of_the_baseline_over_that_of_the_same_loss() -> None:
    baseline = run_of(0, [4.0, 3.0, 2.0, 1.0])
    assert factor(baseline, run_of(0, [3.0, 1.0, 0.5, 0.2]), "steps") == 2
    # The same curve at half of the cost per step.
    assert factor(baseline, run_of(0, [4.0, 3.0, 2.0, 1.0], 0.5), "steps") == 2


def test_run_that_never_reaches_the_baseline_gets_the_inverse_factor() -> None:
    baseline, worse = run_of(0, [4.0, 2.0, 1.0, 0.5]), run_of(0, [5.0, 4.0, 3.0, 2.0])
    assert factor(baseline, worse, "steps") == 1 / 2
    assert factor(worse, baseline, "steps") == 2


def test_shorter_baseline_is_its_curve_cut_off() -> None:
    baseline = run_of(0, [4.0, 3.0, 2.0, 1.0])
    run = run_of(0, [3.0, 2.5, 2.2, 2.0])
    assert until(baseline, 2) == run_of(0, [4.0, 3.0]) | {"steps": [1.0, 2.0]}
    assert factor(until(baseline, 2), run, "steps") == 2
    assert factor(until(baseline, 3), run, "steps") == 3 / 4


def test_decreasing_fit_never_rises_keeps_the_mean_and_a_falling_curve() -> None:
    assert decreasing([4.0, 3.0, 1.0]) == [4.0, 3.0, 1.0]
    assert decreasing([4.0, 1.0, 3.0, 2.0]) == [4.0, 2.0, 2.0, 2.0]
    assert decreasing([1.0, 2.0, 6.0]) == [3.0, 3.0, 3.0]
    noisy = (torch.linspace(3, 2, 40) + 0.1 * torch.randn(40)).tolist()
    smooth = decreasing(noisy)
    assert all(a >= b for a, b in pairwise(smooth))
    assert sum(smooth) == pytest.approx(sum(noisy))
    assert decreasing(smooth) == pytest.approx(smooth)
    for size in (0.01, 0.1):  # no other decreasing curve is closer
        other = decreasing((torch.tensor(smooth) + size * torch.randn(40)).tolist())
        assert math.dist(other, noisy) >= math.dist(smooth, noisy)
    run = run_of(0, [4.0, 1.0, 3.0, 2.0])
    assert fitted({"a": [run]}) == {"a": [run | {"loss": decreasing(run["loss"])}]}


def test_each_seed_is_compared_with_the_baseline_of_its_seed() -> None:
    baseline = [run_of(0, [4.0, 3.0, 2.0, 1.0]), run_of(1, [8.0, 6.0, 4.0, 2.0])]
    runs = [run_of(1, [8.0, 2.0, 1.0, 1.0]), run_of(0, [1.0, 1.0, 1.0, 1.0])]
    spread = speedup(baseline, [*runs, run_of(7, [1.0] * 4)], "steps")
    # One factor is 2, the other 4.
    assert spread.mean == pytest.approx(math.sqrt(8))
    assert spread.low < 2 < 4 < spread.high


def test_models_with_other_seeds_are_not_compared_by_their_places() -> None:
    runs = {
        "a": [run_of(0, [4.0]), run_of(1, [2.0])],
        "b": [run_of(1, [3.0]), run_of(0, [3.0])],
    }
    for compared in (ahead, gain):
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
