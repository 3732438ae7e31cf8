"""Chapters ask for runs by what they are, and read what the records contain."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_plans import PLAN, TINY, WIDER, found, record_of, write_plan

from experiments.harness.plan import PLANS, Plan
from experiments.harness.step_times import measure_missing
from experiments.records import query
from experiments.records.lines import write_json, write_lines
from experiments.records.query import (
    curves_of,
    ends_of,
    read_runs,
    runs_of,
    tried_of,
    whole_of,
)
from experiments.records.runs import (
    HELD_OUT,
    REPORTED_PLAYS,
    STEP_TIMES,
    TUNING_PLAY,
    RunRecord,
    loss_on,
    read_step_times,
)

PLAN_NAMES = sorted(path.stem for path in PLANS.glob("*.toml"))
Plans = dict[str, Plan]


# -- asking ----------------------------------------------------------------------------------


def test_runs_are_found_by_what_they_are_whatever_plan_recorded_them() -> None:
    longer = read_runs(
        text="characters",
        positions="rotary",
        steps=4800,
        rate=[0.002, 0.004],
        ends=True,
        schedule="inverse square root",
    )
    assert {*longer} == {
        *("transformer", "mdha", "squared-relu", "primer-ez", "pp", "primer")
    }
    assert {run["rate"] for run in longer["squared-relu"]} == {0.002}
    assert [*read_runs(model=["pp", "transformer"], text="code", ends=True)] == [
        "pp",
        "transformer",
    ], "in the order that was asked for"


def test_a_run_is_named_by_its_model_alone_and_found_by_its_width_and_positions() -> (
    None
):
    for width in (32, 64):
        (run, *_) = read_runs(
            plan="scaling", model="primer-ez", width=width, ends=True
        )["primer-ez"]
        assert run == runs_of(ends_of("scaling", f"primer-ez-{width}"))[0]
    sines = read_runs(positions="sinusoidal", ends=True)
    assert [*sines] == ["transformer", "primer-ez"]
    assert [*read_runs(plan="ablation", width=84, ends=True)] == ["with-12x"]


def test_of_plans_with_the_same_runs_the_one_with_the_most_seeds_is_read() -> None:
    setting = {"text": "subwords", "positions": "rotary", "model": "transformer"}
    runs = read_runs(**setting, steps=1200, ends=True)["transformer"]
    assert (
        len(runs)
        == 5
        > len(ends_of("today-subwords-positions", "transformer-rotary")["seeds"])
    )
    assert [
        run["seed"] for run in read_runs(**setting, steps=1200, seeds=3)["transformer"]
    ] == [0, 1, 2]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            {"text": "prose"},
            "no run has text 'prose'; known: characters, subwords, code",
        ),
        (
            {"model": ["primer-ez", "prime"]},
            "no run has model 'prime'; known: .*primer-ez",
        ),
        ({"colour": 1}, "runs have no colour; they have plan, model, text, positions"),
        ({"text": "code", "positions": "learned"}, "no run has all of"),
        (
            {"model": "squared-relu", "positions": "rotary", "steps": 4800},
            "runs of squared-relu differ, so ask for one plan: .*; rate: 0.002, 0.001",
        ),
    ],
)
def test_an_error_of_a_question_lists_what_there_is(
    wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_runs(**wanted)


def test_best_two_rates_are_those_with_the_lowest_losses_of_the_short_runs(
    known: dict[str, RunRecord], plans: Plans
) -> None:
    plan = plans["speedup"]
    for name, model in plan.models.items():
        tried = tried_of("speedup", name)
        losses = {
            rate: loss_on(known[plan.trial(model, rate).digest], TUNING_PLAY)
            for rate in plan.rates
        }
        assert [rate for rate, _ in tried] == sorted(losses, key=losses.__getitem__)[:2]
        for rate, loss in tried:
            assert loss == pytest.approx(losses[rate], abs=1e-6)


def test_losses_on_whole_plays_have_the_mean_that_chapters_read() -> None:
    by_play = whole_of("today-longer", "primer-ez")
    assert [*by_play] == [*REPORTED_PLAYS]
    ends = runs_of(ends_of("today-longer", "primer-ez"))
    for run, *losses in zip(ends, *by_play.values(), strict=True):
        assert run["whole"] == pytest.approx(sum(losses) / 2, abs=2e-6)


# -- what is read ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results that chapters read."""
    monkeypatch.setattr(query, "RESULTS", tmp_path)
    return tmp_path


def write(name: str, records: dict[str, RunRecord], folder: Path) -> None:
    """Record runs of a plan, and nothing else of it."""
    lines = {run: {"run": run, **record} for run, record in records.items()}
    write_lines(folder / f"{name}.jsonl", lines)


def test_only_runs_with_the_selected_rate_are_read(folder: Path) -> None:
    trials = {name: record_of(run) for name, run in PLAN.tuning().items()}
    (first, second) = PLAN.runs(found(*trials.values())).values()
    runs = {
        "plain-0": record_of(first, reported=2.0),
        "plain-1": record_of(second, reported=3.0),
    }
    write("tiny", runs, folder)
    with pytest.raises(ValueError, match="no run has plan 'tiny'"):
        read_runs(plan="tiny")
    write("tiny", trials | runs, folder)
    both = read_runs(plan="tiny")["plain"]
    assert [each["seed"] for each in both] == [0, 1]
    assert [each["loss"][-1] for each in both] == [2.0, 3.0]
    write(
        "tiny",
        trials | runs | {"plain-1": record_of(replace(second, rate=1e9))},
        folder,
    )
    assert [each["seed"] for each in read_runs(plan="tiny")["plain"]] == [0]
    runs["plain-0"]["diverged_at_step"] = 3
    write("tiny", trials | runs, folder)
    assert [each["seed"] for each in read_runs(plan="tiny")["plain"]] == [1]


def test_a_model_is_read_as_soon_as_its_own_rates_are_tried(folder: Path) -> None:
    plan = replace(PLAN, models={"plain": TINY, "wider": WIDER}, timed=False)
    trials = {name: record_of(run) for name, run in plan.tuning().items()}
    first, *others = (name for name in trials if name.startswith("tuning-wider"))
    last = trials.pop(first)
    tried = found(*trials.values())
    runs = {name: record_of(run) for name, run in plan.runs(tried).items()}
    write("tiny", trials | runs, folder)
    assert [*read_runs(plan="tiny")] == ["plain"] and others
    last["curve"]["held_out"][TUNING_PLAY][-1] = 2.0
    write("tiny", trials | {first: last} | runs, folder)
    assert [*read_runs(plan="tiny")] == ["plain", "wider"]


def test_seconds_that_are_read_are_steps_times_the_measured_step_time(
    folder: Path,
) -> None:
    write_plan(PLAN, folder)
    assert all("seconds" not in run for run in read_runs(plan="tiny")["plain"])
    write_json(folder / STEP_TIMES, {"seconds": {"tiny": {"plain": 0.25}}})
    reported = read_runs(plan="tiny")["plain"]
    assert [each["seconds"] for each in reported] == [[0.5, 1.0]] * 2


def test_plan_that_is_not_timed_is_read_without_step_times(folder: Path) -> None:
    plan = replace(PLAN, timed=False)
    trials = {name: record_of(run) for name, run in plan.tuning().items()}
    one = record_of(plan.runs(found(*trials.values()))["plain-1"])
    one["whole"] = {play: 3.0 for play in REPORTED_PLAYS} | {TUNING_PLAY: 9.0}
    write("tiny", trials | {"plain-1": one}, folder)
    read = read_runs(plan="tiny")["plain"]
    assert [run["seed"] for run in read] == [1]
    assert read[0]["whole"] == 3.0 and "seconds" not in read[0]
    measure_missing([plan], folder, folder)
    assert read_step_times(folder) == {}


def test_ends_are_the_last_points_of_the_curves() -> None:
    names = ["transformer", "primer-ez"]
    curves, ends = (
        read_runs(plan="speedup", model=names, ends=only) for only in (False, True)
    )
    assert [*curves] == [*ends] == names
    for model in names:
        for curve, end in zip(curves[model], ends[model], strict=True):
            for name, value in curve.items():
                assert end[name] == (value[-1:] if isinstance(value, list) else value)


@pytest.mark.parametrize("name", PLAN_NAMES)
def test_chapters_read_what_the_plan_reports(
    name: str, plans: Plans, known: dict[str, RunRecord]
) -> None:
    plan, seconds = plans[name], read_step_times().get(name, {})
    if plan.unfinished:
        pytest.skip("the plan says that it is unfinished")
    read = {model: runs_of(curves_of(name, model)) for model in plan.models}
    assert seconds.keys() == (plan.models.keys() if plan.timed else set()), (
        f"make experiments ONLY={name} times the steps of a plan that is `timed`, and of no other"
    )
    for full, run in plan.runs(known).items():
        record, model = known[run.digest], full.removesuffix(f"-{run.seed}")
        shown, curve = read[model][run.seed], record["curve"]
        texts = HELD_OUT[run.data][1:]
        plays = zip(*(curve["held_out"][text] for text in texts), strict=True)
        losses = [sum(each) / 2 for each in plays]
        assert shown["loss"] == pytest.approx(losses, abs=5.1e-7)
        assert (shown["seed"], shown["rate"], shown["data"]) == (
            run.seed,
            run.rate,
            run.data,
        )
        assert shown["parameters"] == record["parameters"]
        for cost in ("steps", "multiply_adds"):
            assert shown[cost] == curve[cost], "the same numbers"
        if plan.timed:
            step = seconds[model]
            assert shown["seconds"] == [step * count for count in curve["steps"]]
        assert ("whole" in shown) == ("whole" in record)
        if "whole" in record:
            whole = sum(record["whole"][text] for text in texts) / 2
            assert shown["whole"] == pytest.approx(whole, abs=5.1e-7)


@pytest.mark.parametrize("name", [name for name in PLAN_NAMES if name != "live"])
def test_every_model_is_reported_with_three_seeds_or_five_for_the_speedup(
    name: str, plans: Plans, known: dict[str, RunRecord]
) -> None:
    plan = plans[name]
    if plan.unfinished:
        pytest.skip("the plan says that it is unfinished")
    needed = 5 if name in ("speedup", "today-characters") else 3
    assert plan.seeds >= needed, (
        f"{name}: a claim rests on {needed} seeds; raise `seeds`"
    )
    missing = [run for part in plan.missing(known) for run in part]
    assert not missing, f"make experiments ONLY={name}"
    # A diverged run would be left out, and the mean of the other seeds would flatter its model.
    for model in plan.models:
        assert ends_of(name, model)["seeds"] == list(range(plan.seeds)), model
