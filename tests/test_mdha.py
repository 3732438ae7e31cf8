"""What the chapter on MDHA promises: a ruler for luck, and prose that the records bear out."""

import math
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from experiments import mdha
from experiments.analysis import final_loss, read_runs
from experiments.mdha import MODELS, luck, widest
from experiments.plan import RESULTS


def by_regression(losses: Tensor) -> Tensor:
    """What a least-squares fit of an effect for each model and each seed leaves, by degrees of freedom."""
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
def test_luck_is_what_models_and_seeds_do_not_explain(
    models: int, seeds: int, seed: int
) -> None:
    torch.manual_seed(seed)
    losses = torch.randn(models, seeds, dtype=torch.float64)
    torch.testing.assert_close(luck(losses), by_regression(losses))
    moved = losses + torch.randn(models, 1) + torch.randn(1, seeds)
    torch.testing.assert_close(luck(moved), luck(losses))


def below(q: float, groups: int, freedom: int) -> float:
    """The probability that the studentized range lies below `q`, by its two integrals."""
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
def test_how_far_equal_models_come_apart_is_the_studentized_range(
    models: int, seeds: int
) -> None:
    torch.manual_seed(1)
    # Seeds may differ as they like: that is not luck.
    pages = torch.randn(40_000, models, seeds) + 9 * torch.randn(40_000, 1, seeds)
    q = float(widest(pages).quantile(0.95)) * math.sqrt(seeds)
    freedom = (models - 1) * (seeds - 1)
    assert below(q, models, freedom) == pytest.approx(0.95, abs=0.004)


RUNS = read_runs(str(RESULTS / "gathered.json"), "mdha")
SOURCE = Path(str(mdha.__file__)).read_text(encoding="utf-8")
SAID = re.sub(r"\s*\n\s*(# )?", " ", SOURCE)


def every_seed(better: str, worse: str) -> list[bool]:
    pairs = zip(RUNS[better], RUNS[worse], strict=True)
    return [first["loss"][-1] < second["loss"][-1] for first, second in pairs]


def test_prose_calls_different_what_is_farther_apart_than_the_ruler() -> None:
    losses = torch.tensor([[run["loss"][-1] for run in RUNS[name]] for name in MODELS])
    torch.manual_seed(0)
    chance = torch.randn(20_000, *losses.shape)
    ruler = float(widest(chance).quantile(0.95) * luck(losses))

    def behind(worse: str, better: str) -> float:
        return (final_loss(RUNS[worse]).mean - final_loss(RUNS[better]).mean) / ruler

    assert "than queries alone or keys alone, by more than the ruler" in SAID
    for alone in ("only-queries", "only-keys"):
        assert behind(alone, "only-values") > 1
        assert behind("none", alone) > 1  # "helps wherever it stands"
    assert behind("width-1", "channel") > 2  # "far behind"
    assert "by a little less than the ruler" in SAID
    assert 0.9 < behind("width-2", "channel") < 1
    assert "just within the ruler from the walk-through's layer and beyond it" in SAID
    assert 0.95 < behind("identity-start", "channel") < 1
    assert behind("identity-start", "no-bias") > 1
    # Of all others nothing is said against the layer that they are held against.
    pairs = [("paper", "before-projection"), ("only-values", "channel")]
    pairs += [(name, "channel") for name in ("shared", "head-and-channel", "no-bias")]
    pairs += [(name, "channel") for name in ("width-5", "width-7", "released-start")]
    assert max(abs(behind(*pair)) for pair in pairs) < 0.5


def test_what_prose_says_of_seeds_and_rates_is_so() -> None:
    assert "as plain attention does worse, with every seed" in SAID
    assert all(every_seed("channel", "identity-start"))
    assert "ahead of plain attention, with every seed" in SAID
    assert all(every_seed("identity-start", "none"))
    assert "it is behind three wide with every seed" in SAID
    assert all(every_seed("channel", "width-2"))
    assert "and with two of three seeds worse" in SAID
    assert every_seed("none", "width-1").count(True) == 2
    assert "The seeds of four deviate by 0.04 nats or more" in SAID
    apart = {name for name in MODELS if final_loss(RUNS[name]).deviation > 0.04}
    assert apart == {"none", "width-1", "shared", "paper"}
    assert "Those of all others deviate by less than 0.02" in SAID
    assert all(
        final_loss(RUNS[name]).deviation < 0.02 for name in MODELS.keys() - apart
    )
    assert "0.002 for the walk-through's layer and 0.004 for half" in SAID
    rates = [RUNS[name][0]["rate"] for name in MODELS]
    assert rates[0] == 0.002 and rates.count(0.004) == len(rates) / 2
