"""Tests of the plans, and of the models that they name."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_plans import PLAN, TINY, found, record_of

from experiments.harness.parts import (
    CubedReLU,
    IdentityStart,
    NoBias,
    OnlyKeys,
    OnlyQueries,
    OnlyValues,
    ReleasedStart,
    SquaredLeakyReLU,
    Width1,
    Width2,
    Width5,
    Width7,
)
from experiments.harness.plan import PLANS, Plan
from experiments.harness.step_times import stand_in
from experiments.harness.training import Training
from experiments.records.runs import REPORTED_PLAYS, TUNING_PLAY, reported_loss
from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.variations import MultiDConvSharedByHeadsAttention
from labml_primer.since.modern import GroupedQueryAttention
from labml_primer.since.rotary import RotaryAttention

PLAN_NAMES = sorted(path.stem for path in PLANS.glob("*.toml"))


@pytest.mark.parametrize("name", PLAN_NAMES)
def test_every_model_of_a_plan_can_be_built(name: str, plans: dict[str, Plan]) -> None:
    for run in plans[name].models.values():
        run.build(vocab_size=83)


def test_kernels_of_the_variants_match_their_names() -> None:
    x = torch.randn(2, 9, 1, 8)
    plain = MultiDConvSharedByHeadsAttention(16, 2)
    for width, variant in ((1, Width1), (2, Width2), (5, Width5), (7, Width7)):
        conv = variant(16, 2).query_conv
        before = conv(x)
        others = (x.index_fill(1, torch.tensor(at), 9.0) for at in range(9))
        seen = [not torch.equal(conv(other)[:, -1], before[:, -1]) for other in others]
        assert sum(seen) == width and seen[-1], variant
    names = ("query_conv", "key_conv", "value_conv")
    for variant, changed in (
        (OnlyQueries, "query_conv"),
        (OnlyKeys, "key_conv"),
        (OnlyValues, "value_conv"),
    ):
        convs = {name: getattr(variant(16, 2), name) for name in names}
        kind = type(convs.pop(changed))
        assert kind is type(plain.query_conv)
        assert all(torch.equal(conv(x), x) for conv in convs.values())
    for name in names:
        assert torch.equal(getattr(IdentityStart(16, 2), name)(x), x)
        before, last, now = x[:, 6], x[:, 7], x[:, 8]
        released = getattr(ReleasedStart(16, 2), name)(x)[:, 8]
        torch.testing.assert_close(released, now / 2 + (before + last) / 6)
        conv = getattr(NoBias(16, 2), name)
        assert conv(torch.zeros_like(x)).count_nonzero() == 0
        assert dict(conv.named_parameters()).keys() == {"weight"}


def test_activations_of_the_variants_match_their_names() -> None:
    x = torch.tensor([-2.0, 0.0, 3.0])
    assert CubedReLU()(x).tolist() == [0, 0, 27]
    assert SquaredLeakyReLU()(x).tolist() == pytest.approx([0.02**2, 0, 9])


@pytest.mark.parametrize(
    "name",
    [
        *("speedup", "ablation", "activations", "mdha"),
        *("today-characters", "today-ablation", "today-mdha"),
    ],
)
def test_models_of_a_plan_have_equally_many_parameters(name: str) -> None:
    models = Plan.read(PLANS / f"{name}.toml").models
    first, *others = (
        sum(p.numel() for p in run.build(vocab_size=83).parameters())
        for run in models.values()
    )
    assert all(abs(count / first - 1) < 0.01 for count in others)


def test_rate_is_selected_on_a_play_that_is_not_reported() -> None:
    assert TUNING_PLAY not in REPORTED_PLAYS
    low, high = (PLAN.trial(TINY, rate) for rate in PLAN.rates)
    # The high rate is better on the tuning play, and worse on the reported ones.
    records = found(record_of(low, 2.0, 1.0), record_of(high, 1.0, 2.0))
    assert PLAN.rate(TINY, records) == high.rate
    assert reported_loss(records[high.digest]) == 2.0


def test_rate_of_a_diverged_run_is_not_selected() -> None:
    low, high = (PLAN.trial(TINY, rate) for rate in PLAN.rates)
    diverged = record_of(high, 0.1) | {"diverged_at_step": 2}
    assert PLAN.rate(TINY, found(record_of(low, 2.0), diverged)) == low.rate


def test_recorded_runs_are_not_missing_even_if_another_plan_recorded_them() -> None:
    tuning, runs = PLAN.missing({})
    assert len(tuning) == 2 and list(runs) == ["plain-0", "plain-1"]
    records = found(*map(record_of, tuning.values()))
    tuning, runs = PLAN.missing(records)
    assert tuning == {} and len(runs) == 2
    other = replace(PLAN, name="other", models={"the-same": TINY})
    records |= found(record_of(runs["plain-1"]))
    assert list(other.missing(records)[1]) == ["the-same-0"]


def test_rates_are_tuned_with_a_seed_of_their_own_and_reported_with_others() -> None:
    plan = replace(PLAN, tuning_seed=100, models={"plain": replace(TINY, whole=True)})
    tuning, _ = plan.missing({})
    assert {run.seed for run in tuning.values()} == {100}
    # To select a rate, it is enough to read parts of the plays.
    assert not any(run.whole for run in tuning.values())
    runs = plan.runs(found(*map(record_of, tuning.values())))
    assert [(run.seed, run.whole) for run in runs.values()] == [(0, True), (1, True)]


@pytest.mark.nightly
@pytest.mark.parametrize("name", PLAN_NAMES)
def test_every_model_of_every_plan_can_take_a_step(
    name: str, plans: dict[str, Plan], stepped: set[str]
) -> None:
    for run in plans[name].models.values():
        small = replace(stand_in(run), batch=2, seq=32, data="characters")
        if small.digest not in stepped:
            training = Training(small, Path()).begin()
            training.step()
            assert math.isfinite(training.losses[0])
            stepped.add(small.digest)


@pytest.fixture(scope="module")
def stepped() -> set[str]:
    """The digests of models that have taken a step: plans have many in common."""
    return set()


@pytest.mark.parametrize("name", [each for each in PLAN_NAMES if "today" in each])
def test_plans_of_today_tune_longer_and_report_other_seeds(
    name: str, plans: dict[str, Plan]
) -> None:
    plan = plans[name]
    assert plan.belongs_to("today")
    assert plan.tuning_seed not in range(plan.seeds)
    for run in plan.models.values():
        assert run.whole and plan.tuning_steps >= run.steps / 4


WHOLE = {
    "title": '"A plan"',
    "turn": "1",
    "seeds": "1",
    "tuning.rates": "[0.001]",
    "tuning.steps": "1",
    "shared": "{}",
    "models.odd": "{}",
}


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("seeds", "0", "seeds 0 is not positive"),
        ("tuning.steps", "0", "tuning.steps 0 is not positive"),
        ("tuning.rates", "[]", r"tuning.rates \[\] is not a list of positive numbers"),
        ("tuning.rates", '["0.001"]', r"tuning.rates \['0.001'\] is not a list of"),
        ("tuning.rates", "[0.1, -0.1]", r"tuning.rates \[0.1, -0.1\] is not a list"),
        ("tuning.rates", "[nan]", r"tuning.rates \[nan\] is not a list of positive"),
        ("shared", "{ model = 3 }", "shared.model 3 is not a table, such as"),
        ("models.odd", "3", "odd: models.odd 3 is not a table, such"),
        ("models.odd", "{ model = 3 }", "odd: model 3 is not a table, such as"),
        ("models.odd", "{ model = { d_ff = -1 } }", "odd: model: d_ff -1 is not pos"),
        ("models.odd", "{ model = { heads = 7 } }", "odd: model: .*heads"),
        ("models.odd", "{ data = '.' }", "odd: data of a plan is one of characters, "),
    ],
)
def test_error_of_a_plan_that_cannot_be_run_names_file_model_and_setting(
    tmp_path: Path, setting: str, value: str, message: str
) -> None:
    def write(plan: dict[str, str]) -> None:
        lines = [f"{name} = {written}" for name, written in plan.items()]
        (tmp_path / "new.toml").write_text("\n".join(lines))

    write(WHOLE)
    assert Plan.read(tmp_path / "new.toml").title == "A plan"
    write(WHOLE | {setting: value})
    with pytest.raises(ValueError, match=rf"new\.toml: {message}"):
        Plan.read(tmp_path / "new.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = \nturn = 1", "Invalid value .at line 1"),
        (
            "[shared]\n[models]\n[tuning]\nsteps = 1",
            "title, turn, seeds, tuning.rates$",
        ),
        (
            'title = ""\nturn = 1\nseeds = 1\n[shared]\n[models]',
            "add what a plan needs: tuning, tuning.rates, tuning.steps$",
        ),
        ('turn = "x"', "turn 'x' is not a whole number"),
        ("[tuning]\nrates = 0.001", "tuning.rates 0.001 is not a list"),
        ("tuning = 3", r"tuning 3 is not a table, such as \[model\]$"),
        ("unfinshed = true", "unknown setting unfinshed; known: title, turn, seeds"),
    ],
)
def test_error_of_a_plan_that_cannot_be_read_names_the_file_and_the_place(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "new.toml").write_text(text)
    with pytest.raises(ValueError, match=rf"new\.toml: .*{message}"):
        Plan.read(tmp_path / "new.toml")


def test_models_of_the_modern_plan_differ_in_what_their_names_say(
    plans: dict[str, Plan],
) -> None:
    models = plans["today-modern"].models
    built = {name: run.build(2048) for name, run in models.items()}
    blocks = {name: model.get_submodule("blocks.0") for name, model in built.items()}
    for name, block in blocks.items():
        attention = block.get_submodule("attention")
        assert isinstance(attention, RotaryAttention)
        assert isinstance(attention, GroupedQueryAttention)
        assert attention.groups == 2 and not hasattr(built[name].positions, "encoding")
        mixes = {part.rpartition("_")[2] for part, _ in attention.named_children()}
        short = {"modern-token-shift": {"shift"}}.get(name, {"conv"})
        assert mixes & {"conv", "shift"} == (
            set() if name in ("modern", "modern-squared-relu") else short
        )
        gated = isinstance(block.get_submodule("feed_forward"), GatedFeedForward)
        assert gated == (name not in ("modern-squared-relu", "modern-primer-ez"))
    sizes = [sum(p.numel() for p in model.parameters()) for model in built.values()]
    assert max(sizes) / min(sizes) < 1.02
    # A convolution of the grouped attention sees the tokens before, and no later one.
    for name, model in built.items():
        tokens = torch.randint(2048, (1, 9), generator=torch.Generator().manual_seed(0))
        changed = tokens.clone()
        changed[0, 5] += 1
        with torch.no_grad():
            same = (model(tokens) == model(changed)).all(-1)[0]
        assert same.tolist() == [True] * 5 + [False] * 4, name
