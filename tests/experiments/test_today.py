"""Tests of the tables that answer the question of the plans of today."""

import math
from statistics import fmean
from typing import Any

import pytest

from experiments.harness.plan import Plan
from experiments.measured import settings
from experiments.measured.analysis import (
    MeanFactor,
    Spread,
    ahead,
    critical_difference,
    final_losses,
    fitted,
    gain,
    interval,
    last_loss,
    seed_factors,
    until,
)
from experiments.measured.settings import (
    KINDS,
    MODELS,
    below_counts,
    factor_table,
    growth_with,
    growth_within,
    loss_table,
    modern_table,
    of_baselines,
    read_annealed,
    read_kinds,
    read_lengths,
    read_modern,
    read_rates,
    read_setting,
    read_settings,
    saved_over_baselines,
    savings,
    savings_if_annealed,
    share_of_positions,
    written,
)
from experiments.records.runs import (
    TUNING_PLAY,
    RunRecord,
    Runs,
    loss_on,
    read_runs,
    reported,
)


def run(seed: int, *loss: float, **more: Any) -> dict[str, Any]:
    costs = list(range(1, len(loss) + 1))
    return {"seed": seed, "loss": list(loss), "multiply_adds": costs} | more


def test_runs_of_a_model_are_those_of_the_plan_with_the_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = [run(0, 3.0, 2.0)], [run(0, 3.0, 2.0), run(1, 3.0, 2.0)]
    recorded = {
        "today-characters": {"transformer": two},
        "today-subwords": {"mdha": one, "transformer": one},
        "today-subwords-positions": {"mdha-learned": one, "mdha-rotary": two},
    }

    def counted(plan: str) -> dict[str, int]:
        return {model: len(seeds) for model, seeds in recorded.get(plan, {}).items()}

    def read(plan: str, models: list[str]) -> Runs:
        return {model: recorded[plan][model] for model in models}

    monkeypatch.setattr(settings, "models_of", counted)
    monkeypatch.setattr(settings, "read_runs", read)
    assert read_settings() == {
        ("characters", "rotary"): {"transformer": two},
        ("subwords", "learned"): {"mdha": one},
        ("subwords", "rotary"): {"transformer": one, "mdha": two},
    }


def test_factors_are_those_of_seeds_that_both_have() -> None:
    runs = {
        "transformer": [run(0, 4.0, 3.0, 2.0, 1.0), run(1, 4.0, 3.0, 2.0, 1.0)],
        "mdha": [run(1, 2.0, 1.0, 0.5, 0.4), run(2, 9.0, 9.0, 9.0, 9.0)],
    }
    assert savings(runs, "mdha") == [2.0]
    assert savings(runs, "primer-ez") == savings({}, "mdha") == []


def test_factors_are_averaged_as_logarithms() -> None:
    mean, interval = written([2.0, 4.0, 8.0]).split(" (")
    assert mean == "4.00"
    low, high = map(float, interval.rstrip(")").split(" to "))
    reach = 4.303 * math.log(2) / 3**0.5
    assert high == pytest.approx(4 * math.exp(reach), rel=1e-2)
    assert low == pytest.approx(4 * math.exp(-reach), abs=0.01)


def test_two_factors_have_a_wide_interval_and_a_single_one_has_none() -> None:
    mean, low, _, high = written([2.0, 4.0]).replace("(", "").rstrip(")").split()
    assert mean == "2.83" and float(low) < 0.1 and float(high) > 100
    assert written([2.0]) == "2.00" and written([]) == ""


def test_share_of_positions_is_one_if_nothing_is_left() -> None:
    assert share_of_positions([4.0, 4.0], [1.0]) == pytest.approx(1)
    assert share_of_positions([4.0], [2.0, 2.0]) == pytest.approx(0.5)


def test_final_loss_is_that_of_whole_plays_if_measured() -> None:
    assert last_loss(run(0, 3.0, 2.0, whole=1.9)) == 1.9
    assert last_loss(run(0, 3.0, 2.0)) == 2.0
    # The whole plays were read after the last step only.
    assert last_loss(until(run(0, 3.0, 2.0, whole=1.9), 1)) == 3.0


def test_tables_have_a_row_for_each_setting_with_runs_and_every_model() -> None:
    for table, first, columns in (
        (loss_table(), 4, MODELS.values()),
        (factor_table(), 2, list(MODELS.values())[1:]),
    ):
        assert [*table.columns][first:] == [*columns]
        assert ["characters", "learned"] in [row[:2] for row in table.rows]
        assert all(table.rows[0])


def test_what_is_said_of_the_four_kinds_of_positions_is_so() -> None:
    saved = {kind: savings(runs, "primer-ez") for kind, runs in read_kinds().items()}
    assert all(len(seeds) == 3 and min(seeds) > 1 for seeds in saved.values())
    least, *_, most = sorted(saved, key=lambda kind: MeanFactor.of(saved[kind]).mean)
    assert (least, most) == ("rotary", "learned") and [*saved] == [*KINDS]

    def times(more: str, less: str) -> MeanFactor:
        pairs = zip(saved[more], saved[less], strict=True)
        return MeanFactor.of([one / other for one, other in pairs])

    assert min(times(kind, "rotary").low for kind in ("learned", "sinusoidal")) > 1
    for pair in (("t5", "rotary"), ("learned", "sinusoidal"), ("learned", "t5")):
        assert not_shown(times(*pair))


def test_what_is_said_of_a_scaled_input_is_so() -> None:
    scaled, plain = (read_runs(plan) for plan in ("today-scaled", "today-rates"))
    assert (
        all(ahead(scaled, "primer-ez", "transformer")) and len(scaled["primer-ez"]) == 5
    )
    for model, seeds in scaled.items():
        assert gain({"scaled": seeds, "plain": plain[model]}, "scaled", "plain") > 0
        both = zip(plain[model], seeds, strict=True)
        least, most = interval([last_loss(a) - last_loss(b) for a, b in both])
        assert (least > 0) == (model == "transformer") and most > 0
    pairs = zip(savings(scaled, "primer-ez"), savings(plain, "primer-ez"), strict=True)
    assert not_shown(MeanFactor.of([with_it / without for with_it, without in pairs]))


def not_shown(saved: MeanFactor) -> bool:
    """Whether the runs show neither a saving nor a loss."""
    return saved.low < 1 < saved.high


def test_what_is_said_of_the_baseline_of_today_is_so() -> None:
    runs = read_modern()
    assert all(
        all(ahead(runs, "modern", model)) for model in ("squared-relu", "token-shift")
    )
    assert all(
        all(ahead(runs, "primer-ez", model))
        for model in runs.keys() - {"primer-ez", "mdha-same-rate"}
    )
    assert ahead(runs, "primer-ez", "mdha-same-rate").count(False) == 1
    assert gain(runs, "primer-ez", "mdha-same-rate") > 0, "lowest on average"
    assert ahead(runs, "mdha-same-rate", "mdha").count(True) == 4
    seeds = {model: savings(runs, model, over="modern") for model in runs}
    saved = {model: MeanFactor.of(each) for model, each in seeds.items()}
    assert not_shown(saved["canon-b"])
    assert (
        min(saved["mdha"].low, saved["mdha-same-rate"].low)
        > 1
        > max(seeds["squared-relu"])
    )
    product = saved["mdha-same-rate"].mean * saved["squared-relu"].mean
    assert saved["primer-ez"].low > product
    over_mdha = savings(runs, "primer-ez", over="mdha-same-rate")
    assert not_shown(MeanFactor.of(over_mdha)), "what the squared ReLU adds"
    assert_baselines_save_as_much()
    rates = {model: {run["rate"] for run in seeds} for model, seeds in runs.items()}
    assert rates.pop("mdha") == {0.002}
    assert all(rate == {0.004} for rate in rates.values())
    assert {*map(len, runs.values())} == {5}


def assert_baselines_save_as_much() -> None:
    """Check what is said of the modern baseline next to Transformer++."""
    (pp, _), (modern, _) = of_baselines().values()
    assert [run["seed"] for run in pp] == [run["seed"] for run in modern]
    assert len(modern) == len(read_runs("today-modern")["modern"])
    gap = fmean(map(last_loss, modern)) - fmean(map(last_loss, pp))
    assert abs(gap) < 0.01, "nearly the same loss"
    over_pp, over_modern = saved_over_baselines().values()
    ratios = [b / a for a, b in zip(over_pp, over_modern, strict=True)]
    assert not_shown(MeanFactor.of(ratios))
    assert Spread.of(over_pp).deviation > Spread.of(over_modern).deviation


def test_every_change_of_the_baseline_has_a_row_with_its_factor() -> None:
    none, *rows, counts = modern_table().rows
    assert counts[0] == "counts instead of a model"
    assert len(rows) == 6 and none[-1] == ""
    assert all(" to " in str(row[-1]) for row in rows)


def test_what_the_chapter_says_of_the_records_is_so() -> None:
    """The statements of `experiments/chapters/positions.py` that its text does not compute."""
    learned, rotary = (
        read_setting("characters", positions) for positions in ("learned", "rotary")
    )
    assert all(len(seeds) == 5 for seeds in rotary.values())
    saved = {model: MeanFactor.of(savings(rotary, model)) for model in MODELS}
    assert min(savings(rotary, "primer-ez")) > 1
    assert min(saved[model].low for model in ("squared-relu", "mdha")) > 1
    assert saved["primer-ez"].high < 1.75, "less than the paper's least"
    added = savings(rotary, "primer-ez", over="squared-relu")
    assert not_shown(MeanFactor.of(added)), "what the convolutions add"
    better = [
        last_loss(relu) < last_loss(mdha)
        for relu, mdha in zip(rotary["squared-relu"], rotary["mdha"], strict=True)
    ]
    assert better.count(True) == 4
    every = final_losses(read_runs("today-characters"))
    lower = gain(rotary, "squared-relu", "mdha")
    assert 0 < lower < critical_difference(every) and len(every) == 8

    with_table = {model: MeanFactor.of(savings(learned, model)) for model in MODELS}
    assert with_table["mdha"].mean > with_table["squared-relu"].mean
    positions = seed_factors(
        learned["transformer"], rotary["transformer"], "multiply_adds"
    )
    assert MeanFactor.of(positions).mean > with_table["primer-ez"].mean
    assert with_table["primer-ez"].mean > saved["primer-ez"].mean
    worst = max(run["loss"][-1] for run in rotary["transformer"])
    assert worst < min(run["loss"][-1] for run in learned["primer-ez"])
    for runs, whole in ((learned, False), (rotary, True)):
        assert all(("whole" in run) == whole for s in runs.values() for run in s)


def test_what_is_said_of_longer_runs_is_so() -> None:
    of_steps = read_lengths()
    assert [*of_steps] == [1200, 4800]
    assert all(len(seeds) == 5 for runs in of_steps.values() for seeds in runs.values())
    short, long = of_steps.values()
    saved = {model: savings(long, model) for model in long}
    before = {model: savings(short, model) for model in long}
    for model in ("primer-ez", "mdha", "squared-relu"):
        assert all(ahead(long, model, "transformer"))
    assert all(map(float.__gt__, saved["primer-ez"], before["primer-ez"]))
    assert MeanFactor.of(saved["primer-ez"]).low > 1.2, "more than at the limit"
    both = zip(saved["primer-ez"], before["primer-ez"], strict=True)
    growth = MeanFactor.of([long / short for long, short in both])
    assert 0.95 < growth.low < 1.05 < growth.mean, "the interval begins at 1"
    itself = [MeanFactor.of(savings(runs, "transformer")) for runs in (short, long)]
    assert itself[0].mean < itself[1].mean, "the curves of long runs are noisier"
    of_primer_ez = zip(long["transformer"], long["primer-ez"], strict=True)
    for plain, changed in of_primer_ez:
        first = plain["steps"].index(1200)
        leads = [a - b for a, b in zip(plain["loss"], changed["loss"], strict=True)]
        assert leads[-1] < leads[first], "smaller in nats"
    assert not_shown(MeanFactor.of(savings(long, "mdha", over="squared-relu")))
    at_1200, at_4800 = (
        {model: [until(run, end) for run in seeds] for model, seeds in long.items()}
        for end in (12, 48)
    )
    early, late = (gain(each, "primer", "transformer") for each in (at_1200, at_4800))
    assert early <= late, "Primer's lead does not become smaller"
    every = read_settings()
    with_rotary = (every[text, "rotary"] for text in ("characters", "code", "subwords"))
    for runs in (long, *with_rotary):
        assert MeanFactor.of(savings(runs, "primer-ez", over="mdha")).low > 1
    over_relu = savings(long, "primer-ez", over="squared-relu")
    assert min(over_relu) > 1 and all(ahead(long, "primer-ez", "squared-relu"))
    assert MeanFactor.of(over_relu, looks=4).low < 1, "corrected for four comparisons"
    assert not_shown(MeanFactor.of(savings(long, "primer-ez", over="pp")))
    lowest = min(long, key=lambda model: fmean(map(last_loss, long[model])))
    assert lowest == "primer"
    assert not_shown(MeanFactor.of(savings(long, "primer", over="pp")))
    differ = float(critical_difference(final_losses(long)))
    assert 0 < gain(long, "primer", "primer-ez") < differ
    assert ahead(long, "primer", "primer-ez").count(False) == 1
    smooth = MeanFactor.of(savings(fitted(long), "primer-ez"))
    assert smooth.low > 1.2 and smooth.mean == pytest.approx(1.7, abs=0.1)
    for runs in of_steps.values():
        for model, seeds in runs.items():
            rate = 0.004 if model == "primer" else 0.002
            assert {run["rate"] for run in seeds} == {rate}
    slower = {
        "0.001": read_runs("today-longer")["squared-relu"],
        "0.002": long["squared-relu"],
        "plain": long["transformer"],
    }
    assert {run["rate"] for run in slower["0.001"]} == {0.001}
    assert ahead(slower, "0.001", "plain").count(False) == 1
    assert all(ahead(slower, "0.002", "0.001"))


def test_what_is_said_of_a_rate_that_falls_to_zero_is_so() -> None:
    annealed, before = read_annealed(), read_lengths()[4800]
    assert all(ahead(annealed, "primer-ez", "transformer"))
    assert all(ahead(annealed, "primer-ez", "primer-ez-half"))
    assert all(ahead(annealed, "primer-ez", "pp"))
    lead = savings_if_annealed(annealed, over="pp")
    assert MeanFactor.of(lead).low > 1 > MeanFactor.of(lead, looks=5).low
    for model in ("transformer", "pp", "primer-ez"):
        pairs = zip(annealed[model], before[model], strict=True)
        assert all(last_loss(a) < last_loss(b) for a, b in pairs)
    assert {run["rate"] for seeds in annealed.values() for run in seeds} == {0.002}
    assert {*map(len, annealed.values())} == {5}


def test_what_is_said_of_a_rate_that_falls_to_zero_on_subwords_is_so() -> None:
    annealed = read_annealed("subwords")
    assert {*map(len, annealed.values())} == {3}
    assert {run["rate"] for seeds in annealed.values() for run in seeds} == {0.004}
    for other in ("transformer", "pp"):
        assert all(ahead(annealed, "primer-ez", other))
    three = {m: annealed[m] for m in ("transformer", "pp", "primer-ez")}
    differ = float(critical_difference(final_losses(three)))
    below = [gain(annealed, "primer-ez", other) for other in ("transformer", "pp")]
    assert below[0] > differ > below[1], "more than noise explains, and less"
    assert gain(annealed, "transformer", "primer-ez-half") > 0
    assert ahead(annealed, "primer-ez-half", "transformer") == [False, False, True]
    half, full, other = (
        annealed[model][0]["whole"]
        for model in ("primer-ez-half", "primer-ez", "transformer")
    )
    assert 2 ** ((other - full) / (half - full)) < 1.15, "hardly anything"
    assert below_counts(annealed["transformer"]) > 0.1, "far below the counts"
    assert all(ahead(annealed, "modern-primer-ez", "modern"))
    pair = {m: annealed[m] for m in ("modern", "modern-primer-ez")}
    noise = float(critical_difference(final_losses(pair)))
    assert gain(pair, "modern-primer-ez", "modern") > noise


def test_what_is_said_of_single_plays_is_so() -> None:
    long = reported("today-longer") | reported("today-longer-others")
    for other, below in {
        "transformer": {"richard-ii": 5, "macbeth": 4},
        "pp": {"richard-ii": 5, "macbeth": 1},
    }.items():
        pairs = list(zip(long["primer-ez"], long[other], strict=True))
        for play, times in below.items():
            found = [new["whole"][play] < old["whole"][play] for new, old in pairs]
            assert len(found) == 5
            assert sum(found) == times


def test_nothing_that_was_tried_overturns_the_saving_over_a_transformer() -> None:
    long, annealed = read_lengths()[4800], savings_if_annealed(read_annealed())
    plans = ("today-characters", "today-scaled", "today-subwords", "today-rates")
    tried = [long, fitted(long), read_setting("code", "rotary"), *map(read_runs, plans)]
    of_runs = [savings(runs, "primer-ez") for runs in tried]
    assert min(MeanFactor.of(seeds).low for seeds in (*of_runs, annealed)) > 1


def test_what_is_said_of_savings_that_grow_is_so() -> None:
    within = {
        plan: {m: growth_within(read_runs(plan), m) for m in ("primer", "primer-ez")}
        for plan in ("speedup", "today-characters", "today-subwords")
    }
    assert all(each < 1 for each in within["speedup"]["primer"])
    for factors in within["today-characters"].values():
        assert MeanFactor.of(factors).low < 1 < MeanFactor.of(factors).high
    for factors in within["today-subwords"].values():
        assert all(each > 1 for each in factors)
    of_steps = read_lengths()
    primer, primer_ez = (
        growth_with(of_steps[1200], of_steps[4800], m) for m in ("primer", "primer-ez")
    )
    assert all(each > 1 for each in (*primer, *primer_ez))
    assert MeanFactor.of(primer).low > 1.1
    assert MeanFactor.of(primer_ez).low == pytest.approx(1, abs=0.01)
    assert all(ahead(read_runs("speedup"), "primer-ez", "primer"))


def test_the_saving_of_annealed_runs_is_interpolated_between_two_lengths() -> None:
    def end(loss: float, cost: float) -> Runs:
        return [{"seed": 0, "loss": [loss], "multiply_adds": [cost]}]

    runs = {"transformer": end(2.0, 8.0), "primer-ez": end(1.0, 8.0)}
    for half, saved in ((2.0, 2.0), (3.0, 2**0.5)):
        runs["primer-ez-half"] = end(half, 4.0)
        assert savings_if_annealed(runs) == [pytest.approx(saved)]
    for half in (1.5, 1.0):  # the Transformer is worse, and beyond what was measured
        runs["primer-ez-half"] = end(half, 4.0)
        with pytest.raises(ValueError, match=f"2.000 is not within 1.000 to {half}"):
            savings_if_annealed(runs)
    runs["primer-ez-half"] = [end(3.0, 4.0)[0] | {"seed": 1}]
    with pytest.raises(ValueError, match="differ in their seeds"):
        savings_if_annealed(runs)


def test_what_is_said_of_python_code_is_so() -> None:
    code = read_setting("code", "rotary")
    assert {*map(len, code.values())} == {5} and code.keys() == MODELS.keys()
    assert all(ahead(code, "primer-ez", "transformer"))
    assert all(ahead(code, "primer-ez", "squared-relu"))
    over_relu = savings(code, "primer-ez", over="squared-relu")
    assert MeanFactor.of(over_relu).low > 1 > MeanFactor.of(over_relu, looks=4).low
    assert not_shown(MeanFactor.of(savings(code, "primer-ez", over="pp")))
    assert abs(gain(code, "primer-ez", "pp")) < 0.02, "close at the end"
    assert MeanFactor.of(savings(code, "primer-ez")).low > 1
    for pp, primer_ez in zip(code["pp"], code["primer-ez"], strict=True):
        assert pp["loss"][5] < primer_ez["loss"][5], "faster at first"
    assert {run["rate"] for seeds in code.values() for run in seeds} == {0.002}
    plays = read_lengths()[4800]
    assert all(below_counts(code[m]) > below_counts(plays[m]) for m in code), "farther"


def test_the_largest_factors_are_over_transformers_far_above_the_counts() -> None:
    """The first statement of `experiments/chapters/results.py`."""
    settings = read_settings()
    far = {
        name
        for name, runs in settings.items()
        if below_counts(runs["transformer"]) < -0.05
    }
    assert far == {("characters", "learned"), ("subwords", "learned")}
    saved = {
        name: MeanFactor.of(savings(r, "primer-ez")).mean
        for name, r in settings.items()
    }
    longest = MeanFactor.of(savings(read_lengths()[4800], "primer-ez")).mean
    modern = MeanFactor.of(saved_over_baselines()["modern baseline"]).mean
    others = [longest, modern, *(saved[name] for name in settings.keys() - far)]
    assert min(saved[name] for name in far) > max(others)


def test_what_is_said_of_rates_chosen_in_longer_runs_is_so(
    plans: dict[str, Plan], known: dict[str, RunRecord]
) -> None:
    earlier, later = (read_runs(plan) for plan in ("today-characters", "today-rates"))
    assert read_rates() == ({model: earlier[model] for model in later}, later)
    assert len(later) == 6 and {*map(len, later.values())} == {5}
    halved = {
        model
        for model, seeds in later.items()
        if seeds[0]["rate"] == earlier[model][0]["rate"] / 2
    }
    assert halved == {"primer-ez", "squared-relu"}
    assert all(later[model] == earlier[model] for model in later.keys() - halved)
    of_primer_ez, of_relu = (
        {"earlier": earlier[model], "later": later[model]}
        for model in ("primer-ez", "squared-relu")
    )
    assert all(ahead(of_primer_ez, "later", "earlier"))
    assert gain(of_relu, "earlier", "later") > 0
    best = later | {"squared-relu": earlier["squared-relu"]}
    assert all(ahead(best, "primer-ez", "squared-relu"))
    over_relu, over_pp = (
        MeanFactor.of(savings(best, "primer-ez", over=model))
        for model in ("squared-relu", "pp")
    )
    assert over_relu.low > 1 and not_shown(over_pp)
    seeds = savings(best, "primer-ez", over="squared-relu")
    assert not_shown(MeanFactor.of(seeds, looks=4)), "corrected for four comparisons"
    differ = critical_difference(final_losses(best))
    assert gain(best, "primer-ez", "squared-relu") > differ, "more than noise"
    differ = critical_difference(final_losses(earlier))
    assert 0 < gain(best, "primer-ez", "pp") < differ
    plan = plans["today-longer"]
    low, high = (
        loss_on(
            known[plan.trial(plan.models["squared-relu"], rate).digest], TUNING_PLAY
        )
        for rate in (0.001, 0.002)
    )
    assert low < high < low + 0.001


def test_what_the_chapter_says_of_subwords_is_so() -> None:
    learned, rotary = (
        read_setting("subwords", positions) for positions in ("learned", "rotary")
    )
    saved, before = (savings(runs, "primer-ez") for runs in (rotary, learned))
    assert (len(saved), len(before)) == (5, 3) and MeanFactor.of(saved).low > 1
    pairs = zip(saved, before, strict=False)  # the seeds that both have
    assert not_shown(MeanFactor.of([left / whole for left, whole in pairs]))
    on_characters = (
        savings(read_setting("characters", positions), "primer-ez")
        for positions in ("learned", "rotary")
    )
    assert share_of_positions(before, saved) < share_of_positions(*on_characters)
    for plain, changed in zip(
        rotary["transformer"], learned["primer-ez"], strict=False
    ):
        assert last_loss(plain) > last_loss(changed)
    for model in ("pp", "squared-relu"):
        for plain, changed in zip(rotary[model], rotary["primer-ez"], strict=False):
            assert plain["seed"] == changed["seed"] and last_loss(plain) > last_loss(
                changed
            )
    assert len(rotary["pp"]) == 5
    for other in ("pp", "squared-relu"):
        over = MeanFactor.of(savings(rotary, "primer-ez", over=other))
        assert 0.95 < over.low < 1.05 < over.high, "at the limit"
    assert MeanFactor.of(savings(rotary, "squared-relu")).low > 1
    assert not_shown(MeanFactor.of(savings(rotary, "mdha")))
    assert {*map(len, rotary.values())} == {5}
    assert all("whole" in run for seeds in learned.values() for run in seeds)
