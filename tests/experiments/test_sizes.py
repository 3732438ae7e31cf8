"""Tests of the sweep of sizes: frontiers, power laws, shifts and their intervals."""

import math
from collections.abc import Sequence
from statistics import geometric_mean, mean
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.chapters import sizes
from experiments.harness.plan import PLANS, Plan
from experiments.measured.analysis import (
    MeanFactor,
    ahead,
    final_loss,
    interval,
    last_loss,
    seed_factors,
    speedup,
)
from experiments.measured.scaling import (
    Sizes,
    best_width,
    budgets_up_to,
    frontier,
    full_budget,
    loss_at,
    power_law,
    read_rotary_sizes,
    saved,
    savings_at_budgets,
    shift,
)
from experiments.measured.settings import below_counts
from experiments.records.runs import Measured, read_ends, read_runs

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
    ends = dict(zip(sizes.WIDTHS, (3.0, 9.0, 7.0, 8.0, 6.0), strict=True))
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


def test_chapter_reads_every_model_of_the_plan() -> None:
    models = {f"{model}-{width}" for model in sizes.MODELS for width in sizes.WIDTHS}
    assert models == set(Plan.read(PLANS / "scaling.toml").models)


def test_every_width_has_the_same_compute_and_the_narrowest_half() -> None:
    recorded = read_ends("scaling")
    assert recorded.keys() == Plan.read(PLANS / "scaling.toml").models.keys()
    for name, runs in recorded.items():
        assert [run["seed"] for run in runs] == [0, 1, 2]
        share = 0.5 if name.endswith("-32") else 1
        for run in runs:
            assert run["multiply_adds"][-1] / share == pytest.approx(6.4e12, rel=0.06)


def mean_loss_at(runs: Sequence[Measured], cost: str, budget: float) -> float:
    return mean(loss_at(run, budget, cost) for run in runs)


@pytest.fixture(scope="module")
def sweep() -> dict[str, Sizes]:
    recorded = read_runs("scaling")
    return {
        model: {width: recorded[f"{model}-{width}"] for width in sizes.WIDTHS}
        for model in sizes.MODELS
    }


def test_claims_on_widths_hold_for_the_records(sweep: dict[str, Sizes]) -> None:
    last = {
        model: {width: final_loss(runs).mean for width, runs in widths.items()}
        for model, widths in sweep.items()
    }
    for losses in last.values():
        assert losses[64] < min(losses[96], losses[128])
    for width, widths in ((32, 1), (64, 2), (128, 0)):  # the seeds with Primer ahead
        at = {model: sweep[model][width] for model in ("primer", "primer-ez")}
        assert ahead(at, "primer", "primer-ez").count(True) == widths
    vanilla = last.pop("transformer")
    for losses in last.values():
        assert max(losses.values()) < min(vanilla.values())
    for widths in sweep.values():
        for budget in budgets_up_to(full_budget(sweep, "seconds"), 2):
            assert 32 < best_width(widths, budget, "seconds") < 128


def test_narrowest_transformer_is_best_up_to_its_last_budget(
    sweep: dict[str, Sizes],
) -> None:
    cost = "multiply_adds"
    narrow = sweep["transformer"][32]
    end = min(run[cost][-1] for run in narrow)
    printed = budgets_up_to(full_budget(sweep, cost), 2)
    within = [budget for budget in printed if budget <= end]
    for budget in within:
        assert best_width(sweep["transformer"], budget, cost) == 32
    hardest = min(mean_loss_at(narrow, cost, budget) for budget in within)
    for model in ("primer-ez", "primer"):
        # The Primers reach those losses at width 32 too, before the printed budgets.
        enough = next(
            budget
            for budget in budgets_up_to(printed[0], 2)[:-1]
            if mean_loss_at(sweep[model][32], cost, budget) <= hardest
        )
        assert best_width(sweep[model], enough, cost) == 32


def test_claims_on_widths_with_rotary_positions_hold_for_the_records() -> None:
    cost, sweep = "multiply_adds", read_rotary_sizes()
    for widths in sweep.values():
        for width, runs in widths.items():
            assert [run["seed"] for run in runs] == [0, 1, 2]
            share = 0.5 if width == 32 else 1
            assert runs[0][cost][-1] / share == pytest.approx(6.4e12, rel=0.06)
        # Half the width is better with each seed, and the best models end below the counts.
        pairs = zip(widths[64], widths[128], strict=True)
        assert all(last_loss(half) < last_loss(full) for half, full in pairs)
        assert below_counts(widths[64]) > 0
    end = full_budget(sweep, cost)
    vanilla = frontier(sweep["transformer"], budgets_up_to(end, 2), cost)
    early = frontier(sweep["primer-ez"], budgets_up_to(end, 4.5), cost)
    factors = savings_at_budgets(vanilla, early)
    at_best = [*map(geometric_mean, zip(*factors, strict=True))]
    at_one = seed_factors(sweep["transformer"][128], sweep["primer-ez"][128], cost)
    assert MeanFactor.of(at_best).low > 1
    # On average it is more than at one width, but the seeds show no difference, nor that the saving grows.
    assert geometric_mean(at_best) > geometric_mean(at_one)
    for most, least in ((at_best, at_one), (factors[-1], factors[0])):
        ratio = MeanFactor.of([a / b for a, b in zip(most, least, strict=True)])
        assert ratio.low < 1 < ratio.high


@pytest.mark.parametrize("cost", sizes.COSTS)
def test_best_sizes_save_more_than_one_size(sweep: dict[str, Sizes], cost: str) -> None:
    at_128, end = read_runs("speedup"), full_budget(sweep, cost)
    vanilla = frontier(sweep["transformer"], budgets_up_to(end, 2), cost)
    for model in ("primer-ez", "primer"):
        earlier = frontier(sweep[model], budgets_up_to(end, 4.5), cost)
        of_seeds = zip(*savings_at_budgets(vanilla, earlier), strict=True)
        best_sizes = MeanFactor.of([*map(geometric_mean, of_seeds)])
        assert (
            best_sizes.mean > speedup(at_128["transformer"], at_128[model], cost).mean
        )


def test_slopes_of_the_power_laws_are_not_distinguished(
    sweep: dict[str, Sizes],
) -> None:
    budgets = budgets_up_to(full_budget(sweep, "multiply_adds"), 2)
    exponents = {
        model: [power_law(run)[1] for run in frontier(widths, budgets, "multiply_adds")]
        for model, widths in sweep.items()
    }
    for model in ("primer-ez", "primer"):
        pairs = zip(exponents["transformer"], exponents[model], strict=True)
        low, high = interval([first - second for first, second in pairs])
        assert low < 0 < high
