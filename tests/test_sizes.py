"""Tests of the sweep of sizes: frontiers, power laws, shifts and their intervals."""

import json
import math
from collections.abc import Sequence
from statistics import geometric_mean, mean
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from prose import said_in

from experiments.analysis import final_loss, speedup
from experiments.chapters import ours, sizes
from experiments.chapters.sizes import (
    best_width,
    budgets_up_to,
    frontier,
    interval,
    loss_at,
    of_factors,
    power_law,
    saved,
    savings,
    shift,
    whole,
)
from experiments.harness.plan import PLANS, Plan
from experiments.records import RESULTS, Gathered, read_runs

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
    # With the first seed it is worse at the end, and in the mean better.
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
    assert whole({"a": widths, "b": widths}, "cost") == 6


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
    found = savings([worse, worse], better)
    assert len(found) == len(later)
    for factors in found:
        assert factors == pytest.approx(shifts, rel=0.01)


@pytest.mark.parametrize("loss", [2.0, 1.5, 0.9])
def test_saving_beyond_the_measured_losses_is_refused(loss: float) -> None:
    better = run_of([1.0, 2.0, 4.0], [1.5, 1.2, 1.0])
    with pytest.raises(ValueError, match=f"{loss:.3f} lies not within 1.000 to 1.500"):
        saved(8.0, loss, better)
    assert saved(8.0, 1.1, better) == pytest.approx(8 / 3)
    rises_again = run_of([1.0, 2.0, 4.0, 5.0], [1.5, 1.2, 1.0, 1.3])
    assert saved(8.0, 1.1, rises_again) == pytest.approx(8 / 3)
    with pytest.raises(ValueError, match="lies not within"):
        saved(8.0, 1.1, better | {"loss": [math.inf, 1.2, 1.0]})


def test_interval_contains_the_mean_in_95_percent_of_sweeps() -> None:
    torch.manual_seed(0)
    draws = torch.randn(20_000, 3, dtype=torch.float64).add(7).tolist()
    held = [low <= 7 <= high for low, high in map(interval, draws)]
    assert sum(held) / len(held) == pytest.approx(0.95, abs=0.005)


def test_interval_needs_three_seeds() -> None:
    with pytest.raises(ValueError, match="three seeds, and here are 2"):
        interval([1.0, 2.0])


def test_interval_of_inverse_factors_is_the_inverse_interval() -> None:
    mean, low, high = of_factors([2.0, 4.0, 8.0])
    assert mean == pytest.approx(4) and low < 2 and high > 8
    assert of_factors([1 / 2, 1 / 4, 1 / 8]) == pytest.approx(
        (1 / mean, 1 / high, 1 / low)
    )


def test_chapter_reads_every_model_of_the_plan() -> None:
    models = {f"{model}-{width}" for model in sizes.MODELS for width in sizes.WIDTHS}
    assert models == set(Plan.read(PLANS / "scaling.toml").models)


def test_every_width_has_the_same_compute_and_the_narrowest_half() -> None:
    gathered = json.loads((RESULTS / "gathered.json").read_text(encoding="utf-8"))
    recorded = gathered["scaling"]
    assert recorded.keys() == Plan.read(PLANS / "scaling.toml").models.keys()
    for name, runs in recorded.items():
        assert [run["seed"] for run in runs] == [0, 1, 2]
        share = 0.5 if name.endswith("-32") else 1
        for run in runs:
            assert run["multiply_adds"][-1] / share == pytest.approx(6.4e12, rel=0.06)


def mean_loss_at(runs: Sequence[Gathered], cost: str, budget: float) -> float:
    return mean(loss_at(run, budget, cost) for run in runs)


def test_statements_in_prose_match_the_records() -> None:
    gathered = str(RESULTS / "gathered.json")
    recorded, at_128 = (read_runs(gathered, plan) for plan in ("scaling", "speedup"))
    said = said_in(sizes)
    sweep = {
        model: {width: recorded[f"{model}-{width}"] for width in sizes.WIDTHS}
        for model in sizes.MODELS
    }
    last_loss = {
        model: {width: final_loss(runs).mean for width, runs in widths.items()}
        for model, widths in sweep.items()
    }
    vanilla = last_loss.pop("transformer")
    assert f"ends at {vanilla[128]:.2f}, with 48" in said
    assert f"multiply-adds at {vanilla[48]:.2f}." in said
    for primer in last_loss.values():
        assert "Every Primer ends below every Transformer, in the mean" in said
        assert max(primer.values()) < min(vanilla.values())
    for losses in (vanilla, *last_loss.values()):
        assert "Wider than 64 is slower and no better" in said
        assert losses[64] < min(losses[96], losses[128])

    saves, best, spent = {}, {}, {}
    for cost in sizes.COSTS:
        end = whole(sweep, cost)
        spent[cost] = budgets = budgets_up_to(end, 2)
        earlier = budgets_up_to(end, 4.5)
        vanilla_front = frontier(sweep["transformer"], budgets, cost)
        for model in ("primer-ez", "primer"):
            factors = savings(vanilla_front, frontier(sweep[model], earlier, cost))
            of_seeds = map(geometric_mean, zip(*factors, strict=True))
            saves[cost, model], *_ = of_factors([*of_seeds])
        best[cost] = {
            model: [best_width(widths, budget, cost) for budget in budgets]
            for model, widths in sweep.items()
        }
    assert "a quarter of the Transformer's multiply-adds" in said
    assert round(saves["multiply_adds", "primer-ez"]) == 4
    in_time = [saves["seconds", model] for model in ("primer-ez", "primer")]
    assert f"about {100 / in_time[0]:.0f}% of its time" in said
    words = "With the best size for each, it is {:.1f} and {:.1f} times"
    assert words.format(*in_time) in said_in(ours)
    assert "Counted in time, 32 is best at none of the printed budgets" in said
    for widths_of in best["seconds"].values():
        assert min(widths_of) > 32 and max(widths_of) < 128
    last = min(run["multiply_adds"][-1] for run in sweep["transformer"][32])
    reached = best["multiply_adds"]["transformer"]
    assert "as far as its runs of that width go" in said
    assert {
        w for w, b in zip(reached, spent["multiply_adds"], strict=True) if b <= last
    } == {32}
    assert (
        "reach those same losses at width 32 too, at budgets below those printed"
        in said
    )
    narrow = (sweep["transformer"][32], "multiply_adds")
    hardest = min(mean_loss_at(*narrow, b) for b in spent["multiply_adds"] if b <= last)
    below = budgets_up_to(spent["multiply_adds"][0], 2)[:-1]
    for model in ("primer-ez", "primer"):
        enough = next(
            b
            for b in below
            if mean_loss_at(sweep[model][32], "multiply_adds", b) <= hardest
        )
        assert best_width(sweep[model], enough, "multiply_adds") == 32

    fronts = {
        model: frontier(widths, spent["multiply_adds"], "multiply_adds")
        for model, widths in sweep.items()
    }
    exponents = [power_law(run)[1] for run in fronts["transformer"]]
    low, high = (bound / mean(exponents) for bound in interval(exponents))
    assert "may be a tenth of what was fitted, or nearly twice it" in said
    assert 0.05 < low < 0.15 and 1.8 < high < 2
    assert "within a factor of about three" in said
    for model in ("primer-ez", "primer"):
        b, _, most = of_factors([*map(shift, fronts["transformer"], fronts[model])])
        assert 2.5 < most / b < 3.5

    at_one_size = (
        speedup(at_128["transformer"], at_128["primer-ez"], cost).mean
        for cost in sizes.COSTS
    )
    words = "factors of {:.1f} in multiply-adds and {:.1f} in time for Primer-EZ"
    assert words.format(*at_one_size) in said
