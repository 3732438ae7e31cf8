"""Frontiers of the sweep of sizes, and the savings between them."""

import math
from typing import Any

import pytest

from experiments.measured.scaling import (
    WIDTHS,
    best_width,
    budgets_up_to,
    frontier,
    full_budget,
    loss_at,
    saved,
    savings_at_budgets,
)

BUDGETS = [1e12 * 2 ** (n / 4) for n in range(25)]


def run_of(cost: list[float], loss: list[float], seed: int = 0) -> dict[str, Any]:
    return {"seed": seed, "cost": cost, "loss": loss}


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
