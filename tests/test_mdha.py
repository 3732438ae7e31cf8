"""Tests of the chapter on MDHA: its critical difference, and statements that match the records."""

import math
from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from prose import ahead, said_in
from torch import Tensor, nn

from experiments.analysis import final_loss
from experiments.chapters import mdha
from experiments.chapters.mdha import MODELS, luck, widest
from experiments.harness.plan import read_plans
from experiments.harness.texts import TUNING_PLAY
from experiments.records import RESULTS, loss_on, read_results, read_runs
from labml_primer.primer.primer_ez import MultiDConvHeadAttention


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
def test_luck_is_the_residual_deviation_of_models_and_seeds(
    models: int, seeds: int, seed: int
) -> None:
    torch.manual_seed(seed)
    losses = torch.randn(models, seeds, dtype=torch.float64)
    torch.testing.assert_close(luck(losses), by_regression(losses))
    moved = losses + torch.randn(models, 1) + torch.randn(1, seeds)
    torch.testing.assert_close(luck(moved), luck(losses))


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


RUNS = read_runs(str(RESULTS / "gathered.json"), "mdha")
SAID = said_in(mdha)


def ends(name: str) -> list[float]:
    return [run["loss"][-1] for run in RUNS[name]]


def behind(worse: str, better: str, steps: int = 1200) -> float:
    """Return the difference in mean loss over seeds after a number of steps."""
    at = RUNS[better][0]["steps"].index(steps)
    pairs = zip(RUNS[worse], RUNS[better], strict=True)
    return sum(a["loss"][at] - b["loss"][at] for a, b in pairs) / len(RUNS[better])


def test_prose_distinguishes_what_the_critical_difference_does() -> None:
    losses = torch.tensor([ends(name) for name in MODELS])
    torch.manual_seed(0)
    ruler = float(
        widest(torch.randn(20_000, *losses.shape)).quantile(0.95) * luck(losses)
    )

    def by_ruler(worse: str, better: str) -> float:
        return behind(worse, better) / ruler

    assert "Values alone bring more than either, by just more than the ruler" in SAID
    assert "bring about two thirds of what all three bring" in SAID
    for alone in ("only-queries", "only-keys"):
        assert 1 < by_ruler(alone, "only-values") < 1.1
        brought = 1 - behind(alone, "channel") / behind("none", "channel")
        assert 0.6 < brought < 0.75
    assert (
        "It ends far behind three wide, and even behind no convolution, by just" in SAID
    )
    assert by_ruler("width-1", "channel") > 2
    assert 1 < by_ruler("width-1", "none") < 1.1
    assert "with every seed, by a little less than the ruler. Its rate is half" in SAID
    assert 0.9 < by_ruler("width-2", "channel") < 1
    assert "both are ahead with every seed, by less than half of the ruler" in SAID
    assert max(by_ruler("channel", wide) for wide in ("width-5", "width-7")) < 0.5
    assert "Two wide is behind five and seven wide, and a start as plain" in SAID
    assert by_ruler("identity-start", "no-bias") > 1
    assert min(by_ruler("width-2", wide) for wide in ("width-5", "width-7")) > 1
    assert "is worse with every seed, within the ruler by a hair" in SAID
    assert 0.97 < by_ruler("identity-start", "channel") < 1
    assert "ahead of plain attention with every seed, also within the ruler" in SAID
    assert 0 < by_ruler("none", "identity-start") < 1
    # Pairs that the prose does not distinguish.
    pairs = [(name, "channel") for name in ("shared", "head-and-channel", "no-bias")]
    pairs += [("released-start", "channel"), ("paper", "before-projection")]
    assert max(abs(by_ruler(*pair)) for pair in pairs) < 0.5

    told_apart = [
        {worse, better}
        for worse in MODELS
        for better in MODELS
        if by_ruler(worse, better) > 1
    ]
    assert "two thirds have 1 wide or no convolution in them" in SAID
    share = sum(bool(pair & {"width-1", "none"}) for pair in told_apart)
    assert 0.6 < share / len(told_apart) < 0.72


def test_statements_on_seeds_match_the_records() -> None:
    others = MODELS.keys() - {"channel"}
    worse = {name for name in others if all(ahead(RUNS, "channel", name))}
    better = {name for name in others if all(ahead(RUNS, name, "channel"))}
    assert "eleven: seven are worse, and four are better" in SAID
    assert len(worse) == 7 and {"width-2", "identity-start"} <= worse
    assert "which are values alone, 5 wide, 7 wide and no bias" in SAID
    assert better == {"only-values", "width-5", "width-7", "no-bias"}
    assert all(ahead(RUNS, "identity-start", "none"))
    assert "and one of three seeds says the opposite" in SAID
    assert ahead(RUNS, "none", "width-1").count(False) == 1
    assert (
        "two of three seeds end ahead" in SAID and "the third 0.10 nats behind" in SAID
    )
    pairs = zip(ends("shared"), ends("channel"), strict=True)
    first, second, third = sorted(a - b for a, b in pairs)
    assert first < second < 0 and f"{third:.2f}" == "0.10"
    assert "The seeds of four deviate by 0.04 nats or more" in SAID
    deviations = {name: final_loss(RUNS[name]).deviation for name in MODELS}
    apart = {name for name, deviation in deviations.items() if deviation > 0.04}
    assert apart == {"none", "width-1", "shared", "paper"}
    assert "Those of all others deviate by less than 0.02" in SAID
    assert all(deviations[name] < 0.02 for name in MODELS.keys() - apart)


def test_statements_on_steps_and_rates_match_the_records() -> None:
    early, late = behind("none", "channel", 300), behind("none", "channel")
    words = f"the model is {early:.2f} nats behind after 300 steps, and {late:.2f}"
    assert words in SAID
    early, late = (behind("identity-start", "channel", at) for at in (450, 1200))
    assert f"{early:.2f} nats behind at step 450, and {late:.2f} at the end" in SAID
    assert "0.004 for half of the models, and 0.001 for 2 wide alone" in SAID
    rates = {name: RUNS[name][0]["rate"] for name in MODELS}
    assert rates["channel"] == rates["only-values"] == 0.002
    assert [name for name, rate in rates.items() if rate == 0.001] == ["width-2"]
    assert list(rates.values()).count(0.004) == len(rates) / 2
    assert rates["width-5"] == rates["width-7"] == 0.004  # "at twice the rate"
    assert "where 0.002 was as good but for 0.01 nats" in SAID
    plan, known = read_plans()["mdha"], read_results()
    tried = (
        known[plan.trial(plan.models["width-2"], rate).digest]
        for rate in (0.002, 0.001)
    )
    worse, better = (loss_on(record, TUNING_PLAY) for record in tried)
    assert f"{worse - better:.2f}" == "0.01"


def test_bias_of_the_convolution_adds_little() -> None:
    """On keys it has no effect; on values it equals an output bias; on queries, a projection bias."""
    torch.manual_seed(0)
    layer = MultiDConvHeadAttention(16, 2).double()
    x = torch.randn(3, 9, 16, dtype=torch.float64)
    without = deepcopy(layer)
    for conv in (without.query_conv, without.key_conv, without.value_conv):
        nn.init.zeros_(conv.bias)
    with torch.no_grad():
        to_all_heads = layer.value_conv.bias.repeat(2)
        without.output.bias += without.output.weight @ to_all_heads
        through = layer.query_conv.weight.sum(0)
        without.query.bias += (layer.query_conv.bias / through).repeat(2)
    same = torch.isclose(layer(x, x, causal=True), without(x, x, causal=True)).all(-1)
    assert same.all(0).tolist() == [True, False] + [True] * 7
