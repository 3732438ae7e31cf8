"""The noise of recorded runs is that of models and seeds, and its range the studentized one."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from experiments.measured.analysis import (
    noise,
    widest,
)


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


def below(q: float, groups: int, freedom: int) -> float:
    """Return the probability that the studentized range is below `q`, by numerical integration."""
    z = torch.linspace(-8, 8, 1601, dtype=torch.float64)[:, None]
    s = torch.linspace(1e-3, 3, 1500, dtype=torch.float64)
    normal = torch.distributions.Normal(0.0, 1.0)
    within = normal.cdf(z + q * s) - normal.cdf(z)
    inner = groups * torch.trapezoid(
        normal.log_prob(z).exp() * within ** (groups - 1), z[:, 0], dim=0
    )
    # The root of a chi-square over its degrees of freedom.
    half = freedom / 2
    log_density = (
        half * math.log(half)
        - math.lgamma(half)
        + math.log(2)
        + (freedom - 1) * s.log()
        - half * s.square()
    )
    return float(torch.trapezoid(log_density.exp() * inner, s))


@pytest.mark.parametrize("models, seeds", [(16, 3), (4, 5)])
def test_range_of_equal_models_is_the_studentized_range(
    models: int, seeds: int
) -> None:
    torch.manual_seed(1)
    # Differences between seeds do not count as noise.
    pages = torch.randn(40_000, models, seeds) + 9 * torch.randn(40_000, 1, seeds)
    q = float(widest(pages).quantile(0.95)) * math.sqrt(seeds)
    freedom = (models - 1) * (seeds - 1)
    assert below(q, models, freedom) == pytest.approx(0.95, abs=0.004)
