"""Tests of the sweep of sizes: frontiers, power laws, shifts and their intervals."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.measured.analysis import (
    MeanFactor,
    interval,
)
from experiments.measured.scaling import (
    WIDTHS,
    best_width,
    budgets_up_to,
    frontier,
    full_budget,
    loss_at,
    power_law,
    saved,
    savings_at_budgets,
    shift,
)

BUDGETS = [1e12 * 2 ** (n / 4) for n in range(25)]


def run_of(cost: list[float], loss: list[float], seed: int = 0) -> dict[str, Any]:
    return {"seed": seed, "cost": cost, "loss": loss}


def law(a: float, k: float) -> dict[str, Any]:
    return run_of(BUDGETS, [a * (c / 1e12) ** -k for c in BUDGETS])


def test_loss_between_two_evaluations_is_interpolated_linearly() -> None:
    run = run_of([1.0, 2.0, 4.0], [3.0, 2.0, 1.0])
    assert [loss_at(run, budget, "cost") for budget in (1, 1.25, 2, 3, 4)] == [
        3,
        2.75,
        2,
        1.5,
        1,
    ]


def test_run_is_not_selected_outside_its_evaluated_budgets() -> None:
    run = run_of([1.0, 2.0, 4.0], [3.0, 2.0, 1.0])
    assert loss_at(run, 0.9, "cost") == loss_at(run, 4.1, "cost") == math.inf
    later = run_of([3.0, 8.0], [9.0, 4.0])
    sweep = {32: [run], 48: [later]}
    assert [best_width(sweep, budget, "cost") for budget in (1, 3.5, 5)] == [32, 32, 48]


def test_frontier_uses_the_width_with_the_best_mean_for_all_seeds() -> None:
    spent = [1.0, 2.0]
    small = [run_of(spent, [3.0, 3.0]), run_of(spent, [3.2, 3.2])]
    # With the first seed it is worse at the end, and on average better.
    large = [run_of(spent, [4.0, 3.1]), run_of(spent, [4.0, 2.0])]
    curves = frontier({32: small, 64: large}, spent, "cost")
    assert [each["loss"] for each in curves] == [[3.0, 3.1], [3.2, 2.0]]
    assert all(each["cost"] == spent for each in curves)


def test_budgets_double_in_six_steps_and_end_at_the_last() -> None:
    budgets = budgets_up_to(8.0, 2)
    assert len(budgets) == 13
    assert budgets[::6] == pytest.approx([2, 4, 8])


def test_whole_budget_is_reached_by_all_widths_but_one() -> None:
    ends = dict(zip(WIDTHS, (3.0, 9.0, 7.0, 8.0, 6.0), strict=True))
    widths = {width: [run_of([1.0, end], [2.0, 1.0])] for width, end in ends.items()}
    assert full_budget({"a": widths, "b": widths}, "cost") == 6


def test_width_whose_curve_ends_is_followed_by_the_next() -> None:
    narrow = [run_of([1.0, 2.0], [2.0, 1.5])]
    wide = [run_of([1.0, 2.0, 3.0], [4.0, 3.0, 2.0])]
    (curve,) = frontier({32: narrow, 64: wide}, [1.0, 2.0, 3.0], "cost")
    assert curve["loss"] == [2.0, 1.5, 2.0]


def test_frontier_of_different_seeds_is_refused() -> None:
    first, second = (run_of([1.0, 2.0], [3.0, 2.0], seed) for seed in (0, 1))
    with pytest.raises(ValueError, match="differ in their seeds"):
        frontier({32: [first, second], 64: [first]}, [1.0], "cost")
    with pytest.raises(ValueError, match="differ in their seeds"):
        frontier({32: [first], 64: [second]}, [1.0], "cost")


@given(st.floats(0.5, 5), st.floats(0.01, 1))
def test_power_law_is_recovered_from_its_points(a: float, k: float) -> None:
    assert power_law(law(a, k)) == pytest.approx((a, k))


@given(st.floats(0.5, 5), st.floats(0.01, 1), st.floats(1.1, 9))
def test_shift_is_the_ratio_of_compute_at_the_same_loss(
    a: float, k: float, b: float
) -> None:
    # The better line has the loss at c that the worse has at b times c.
    worse, better = law(a, k), law(a * b**-k, k)
    assert shift(worse, better) == pytest.approx(b)
    assert shift(better, worse) == pytest.approx(1 / b)


def test_shift_matches_parallel_lines_fitted_by_least_squares() -> None:
    torch.manual_seed(0)
    worse, better = (
        run_of(BUDGETS, torch.rand(len(BUDGETS)).add(1 + i).tolist()) for i in (1, 0)
    )
    compute = torch.tensor(BUDGETS, dtype=torch.float64).div(1e12).log()
    ones, none = torch.ones_like(compute), torch.zeros_like(compute)
    # One slope and two heights, fitted to all points at once.
    inputs = torch.cat(
        [
            torch.stack([-compute, ones, none], 1),
            torch.stack([-compute, none, ones], 1),
        ]
    )
    losses = torch.tensor(worse["loss"] + better["loss"], dtype=torch.float64)
    k, first, second = torch.linalg.lstsq(inputs, losses.log()).solution.tolist()
    assert shift(worse, better) == pytest.approx(math.exp((first - second) / k))


def test_shift_between_different_budgets_is_refused() -> None:
    later = law(1.0, 0.1) | {"cost": [2 * budget for budget in BUDGETS]}
    with pytest.raises(ValueError, match="the same budgets"):
        shift(later, law(0.9, 0.1))


def test_savings_between_parallel_laws_are_their_shift_at_every_budget() -> None:
    later, k = [8 * budget for budget in BUDGETS[:9]], 0.3
    worse = run_of(later, [c**-k for c in later])
    # Each seed has a shift of its own.
    shifts = [3.0, 5.0]
    better = [run_of(BUDGETS, [(b * c) ** -k for c in BUDGETS]) for b in shifts]
    found = savings_at_budgets([worse, worse], better)
    assert len(found) == len(later)
    for factors in found:
        assert factors == pytest.approx(shifts, rel=0.01)


@pytest.mark.parametrize("loss", [2.0, 1.5, 0.9])
def test_saving_beyond_the_measured_losses_is_refused(loss: float) -> None:
    better = run_of([1.0, 2.0, 4.0], [1.5, 1.2, 1.0])
    with pytest.raises(ValueError, match=f"{loss:.3f} is not within 1.000 to 1.500"):
        saved(8.0, loss, better)
    assert saved(8.0, 1.1, better) == pytest.approx(8 / 3)
    rises_again = run_of([1.0, 2.0, 4.0, 5.0], [1.5, 1.2, 1.0, 1.3])
    assert saved(8.0, 1.1, rises_again) == pytest.approx(8 / 3)
    with pytest.raises(ValueError, match="is not within"):
        saved(8.0, 1.1, better | {"loss": [math.inf, 1.2, 1.0]})


def test_interval_contains_the_mean_in_95_percent_of_sweeps() -> None:
    torch.manual_seed(0)
    for seeds in (2, 3, 4, 5):
        draws = torch.randn(20_000, seeds, dtype=torch.float64).add(7).tolist()
        held = [low <= 7 <= high for low, high in map(interval, draws)]
        assert sum(held) / len(held) == pytest.approx(0.95, abs=0.005)


def test_interval_needs_at_least_two_seeds() -> None:
    with pytest.raises(ValueError, match="two to five seeds, and here are 1"):
        interval([1.0])


def test_interval_of_inverse_factors_is_the_inverse_interval() -> None:
    saved = MeanFactor.of([2.0, 4.0, 8.0])
    assert saved.mean == pytest.approx(4) and saved.low < 2 and saved.high > 8
    lost = MeanFactor.of([1 / 2, 1 / 4, 1 / 8])
    assert lost.mean == pytest.approx(1 / saved.mean)
    assert lost.low == pytest.approx(1 / saved.high)
    assert lost.high == pytest.approx(1 / saved.low)
