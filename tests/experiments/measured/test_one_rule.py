"""One rule decides: a difference counts if it exceeds what noise explains, and a factor translates it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from experiments.measured.analysis import (
    difference,
    gain,
    limit,
    noise,
    student,
    times_less,
)
from experiments.measured.settings import (
    LEADING,
    Ground,
    Pair,
    pair_table,
    read_rates,
    together,
)
from experiments.records.query import Measured, Runs, read_runs


def by_regression(losses: Tensor) -> Tensor:
    """Return the residual standard deviation of a fit with an effect per model and per seed."""
    models, seeds = losses.shape
    rows = [
        [float(m == i) for i in range(models)] + [float(s == i) for i in range(seeds)]
        for m in range(models)
        for s in range(seeds)
    ]
    design = torch.tensor(rows, dtype=torch.float64)
    target = losses.flatten()[:, None]
    fitted = design @ torch.linalg.pinv(design) @ target
    free = models * seeds - int(torch.linalg.matrix_rank(design))
    return ((target - fitted).square().sum() / free).sqrt()


@given(st.integers(2, 7), st.integers(2, 5), st.integers(0, 1000))
def test_noise_is_the_residual_deviation_of_models_and_seeds(
    models: int, seeds: int, seed: int
) -> None:
    torch.manual_seed(seed)
    losses = torch.randn(models, seeds, dtype=torch.float64)
    torch.testing.assert_close(noise(losses), by_regression(losses))
    moved = losses + torch.randn(models, 1) + torch.randn(1, seeds)
    torch.testing.assert_close(noise(moved), noise(losses))


def within(t: float, freedom: int) -> float:
    """Return the probability that Student's variable is within ±t, by numerical integration."""
    x = torch.linspace(-t, t, 20_001, dtype=torch.float64)
    half = (freedom + 1) / 2
    scale = math.lgamma(half) - math.lgamma(freedom / 2)
    scale -= 0.5 * math.log(freedom * math.pi)
    density = (scale - half * (1 + x.square() / freedom).log()).exp()
    return float(torch.trapezoid(density, x))


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 8, 15, 30])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_limit_uses_the_exact_distribution(confidence: float, freedom: int) -> None:
    t = student(confidence, freedom)
    if t < 100:  # the tails of one degree of freedom are too long to integrate
        assert within(t, freedom) == pytest.approx(confidence, abs=1e-5)
    else:
        assert t == pytest.approx(math.tan(math.pi / 2 * confidence))


def test_equal_models_differ_by_more_than_the_limit_in_five_percent_of_pages() -> None:
    torch.manual_seed(1)
    models, seeds, pages = 4, 5, 20_000
    # Differences between seeds do not count as noise.
    drawn = torch.randn(pages, models, seeds) + 9 * torch.randn(pages, 1, seeds)
    means = drawn.mean(-1)
    apart = (means[:, 1] - means[:, 0]).abs() / noise(drawn)
    t = student(0.95, (models - 1) * (seeds - 1)) * (2 / seeds) ** 0.5
    assert float((apart > t).double().mean()) == pytest.approx(0.05, abs=0.005)
    assert float(limit(drawn[0])) == pytest.approx(t * float(noise(drawn[0])))


def test_more_comparisons_widen_each_limit() -> None:
    losses = torch.randn(4, 5)
    assert limit(losses, 1) < limit(losses, 2) < limit(losses, 20)


def runs_of(losses: dict[str, list[float]], **curve: list[float]) -> Runs:
    return {
        model: [{"seed": i, "whole": loss} | curve for i, loss in enumerate(seeds)]
        for model, seeds in losses.items()
    }


def test_difference_is_that_of_the_same_seeds_and_counts_beyond_its_limit() -> None:
    runs = runs_of({"a": [1.0, 2.0, 3.01], "b": [1.5, 2.5, 3.5], "c": [1.5, 2.5, 3.5]})
    found = difference(runs, "a", "b")
    assert found.seeds == pytest.approx((0.5, 0.5, 0.49)) and found.shown
    assert found.ends == (found.nats - found.limit, found.nats + found.limit)
    assert f"{found:.2f}" == f"0.50 ± {found.limit:.2f}"
    assert not difference(runs, "b", "c").shown
    assert difference(runs, "b", "a").nats == -found.nats


COSTS = [10.0 * n for n in range(1, 41)]


def curve(height: float, times: float = 1.0) -> list[Measured]:
    """The runs of a model whose loss falls with the logarithm of `times` the cost."""
    loss = [height - 0.3 * math.log(times * cost) for cost in COSTS]
    return [{"seed": 0, "loss": loss, "multiply_adds": COSTS}]


@given(st.floats(1.05, 4), st.floats(0.5, 2))
def test_factor_is_the_cost_of_the_same_loss_however_steep_or_costly(
    times: float, price: float
) -> None:
    faster = curve(4.0, times)
    faster[0]["multiply_adds"] = [price * cost for cost in COSTS]
    runs = {"slow": curve(4.0), "fast": faster}
    nats = gain(runs, "fast", "slow")
    found = times_less(runs, "fast", "slow", nats, "multiply_adds")
    assert found == pytest.approx(times / price, rel=0.01)
    back = times_less(runs, "slow", "fast", -nats, "multiply_adds")
    assert back == pytest.approx(1 / found, rel=0.01)


def test_factor_of_a_model_over_itself_is_one_and_beyond_its_curve_unknown() -> None:
    noisy = curve(4.0)
    noisy[0]["loss"] = [
        each + 0.01 * (-1) ** n for n, each in enumerate(noisy[0]["loss"])
    ]
    runs = {"a": noisy}
    assert times_less(runs, "a", "a", 0.0, "multiply_adds") == 1
    assert math.isnan(times_less(runs, "a", "a", 9.0, "multiply_adds"))


def test_a_rate_that_falls_to_zero_takes_the_factor_from_runs_of_half_the_steps() -> (
    None
):
    def end(loss: float, cost: float) -> list[Measured]:
        return [{"seed": 0, "loss": [loss], "multiply_adds": [cost]}]

    runs = {"transformer": end(2.0, 8.0), "primer-ez": end(1.0, 8.0)}
    for half, saved in ((2.0, 2.0), (3.0, 2**0.5)):
        ground = Ground(runs, end(half, 4.0))
        found = ground.factor("primer-ez", "transformer", 1.0)
        assert found == pytest.approx(saved)
    assert math.isnan(Ground(runs).factor("primer-ez", "transformer", 1.0))


def test_grounds_are_averaged_seed_by_seed() -> None:
    losses = {model: [2.0, 4.0] for model in LEADING}
    higher = {model: [4.0, 5.0] for model in LEADING}
    both = together([Ground(runs_of(losses)), Ground(runs_of(higher))])
    assert [run["whole"] for run in both["pp"]] == [3.0, 4.5]


def test_a_difference_that_noise_explains_has_no_factor() -> None:
    runs = {"transformer": curve(4.0), "primer-ez": curve(4.0, 2.0), "pp": curve(4.0)}
    for model, seeds in runs.items():
        ends = [seeds[0]["loss"][-1] + off for off in (0.0, 0.01, 0.02)]
        runs[model] = [
            seeds[0] | {"seed": i, "whole": loss} for i, loss in enumerate(ends)
        ]
    ground = Ground(runs)
    titled = pair_table(
        "T", [Pair("ez", ground, "primer-ez"), Pair("pp", ground, "pp")], 2
    )
    assert [row[-1] for row in titled.rows] == ["2.00", "-"]


def test_models_that_kept_their_rate_have_the_same_runs_in_both_plans() -> None:
    assert read_rates()[1200] == read_runs(plan="today-rates")
