"""Tests of the long experiments: plans, sweeps, and records that match them."""

import ast
import json
import math
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from statistics import geometric_mean
from types import ModuleType, SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from annotated.read.expressions import expressions
from annotated.read.parse import parse
from annotated.take.notebook import reader_notebook
from write_notebooks import the_book

from experiments.analysis import (
    MeanFactor,
    Spread,
    ahead,
    critical_difference,
    factor,
    factors,
    final_loss,
    final_losses,
    gain,
    relative_perplexity,
    setting,
    speedup,
    until,
)
from experiments.chapters import mdha, ours, parts, transfer
from experiments.figures import WHOLE_MODELS, theirs
from experiments.harness import estimate, optimizer, training
from experiments.harness import fingerprint as fingerprints
from experiments.harness import run as module
from experiments.harness import sweep as sweeping
from experiments.harness.configuration import Run
from experiments.harness.estimate import announce, recorded
from experiments.harness.fingerprint import fingerprint, is_current
from experiments.harness.long_run import long_run
from experiments.harness.plan import PLANS, Plan, gather, read_plans, reported_loss
from experiments.harness.run import run_missing
from experiments.harness.step_times import measure_missing
from experiments.harness.tasks import LANGUAGE_MODELING
from experiments.harness.texts import REPORTED_PLAYS, TUNING_PLAY, load_texts
from experiments.harness.training import Training
from experiments.harness.variants import (
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
from experiments.records import (
    RESULTS,
    STEP_TIMES,
    Runs,
    loss_on,
    read_results,
    read_runs,
    read_step_times,
)
from experiments.timings import ratios
from experiments.timings import recorded as recorded_timings
from experiments.today import perplexity_change, read_setting, savings
from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.variations import MultiDConvSharedByHeadsAttention
from labml_primer.since.modern import GroupedQueryAttention
from labml_primer.since.rotary import RotaryAttention

SIZES = {"d_model": 16, "heads": 2, "d_ff": 32, "layers": 1}
TINY = Run(model=SIZES, steps=4, batch=4, seq=16, warmup=4, evaluations=2)
PLAN = Plan("tiny", "A small one", 1, 2, (1e-3, 1e9), 2, {"plain": TINY})
WIDER = replace(TINY, model=SIZES | {"d_ff": 64})
OTHER = replace(PLAN, name="other", seeds=3, models={"same": TINY, "wider": WIDER})
MEASURED = {"tiny": {"plain": 0.25}}
RECORDED = sorted(RESULTS.glob("*/*.json"))
ROOT = PLANS.parent.parent


def record(run: Run, tuning: float = 1.0, reported: float = 1.0) -> dict[str, Any]:
    losses = {TUNING_PLAY: tuning} | dict.fromkeys(REPORTED_PLAYS, reported)
    held_out = {play: [9.0, loss] for play, loss in losses.items()}
    costs = {cost: [1, 2] for cost in ("steps", "multiply_adds", "seconds")}
    return {
        "digest": run.digest,
        "diverged_at_step": None,
        "parameters": 1,
        "curve": {"held_out": held_out} | costs,
    }


def found(*records: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["digest"]: each for each in records}


def chapters() -> dict[str, str]:
    """Return the source of every chapter that the book executes, by its name in the contents."""
    names = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    paths = {name: ROOT / f"{name}.py" for name in names}
    return {n: p.read_text(encoding="utf-8") for n, p in paths.items() if p.exists()}


class TenMinutesAStep:
    """A training on a slow machine, whose first step is slower still."""

    def __init__(self, *_: object):
        self.seconds = 0.0

    def step(self) -> None:
        self.seconds += 600 if self.seconds else 5000


@pytest.fixture
def ten_minutes_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "training_of", TenMinutesAStep)
    not_kept = estimate.step_seconds.__wrapped__
    monkeypatch.setattr(estimate, "step_seconds", not_kept)


# Records


@pytest.mark.parametrize(
    "path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_record_matches_its_configuration_and_its_plan(path: Path) -> None:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    assert recorded["digest"] == Run.of(recorded["configuration"]).digest
    plan = read_plans()[path.parent.name]
    asked = plan.tuning() | plan.runs(read_results())
    assert path.stem in asked, (
        f"no plan has {path.name}: delete the file, or restore the plan"
    )
    assert asked[path.stem].digest == recorded["digest"], (
        f"{path} was recorded with another configuration: delete it, and run "
        f"make experiments ONLY={path.parent.name}"
    )


def test_configuration_of_a_record_still_builds_its_model() -> None:
    # A digest does not cover the definition of a preset.
    sizes: dict[Any, int] = {}
    for path in RECORDED:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        run = Run.of(recorded["configuration"])
        key = (run.preset, run.data, json.dumps(run.model, sort_keys=True))
        if key not in sizes:
            vocab_size = load_texts(run.data).vocab_size
            model = run.build(vocab_size)
            sizes[key] = sum(p.numel() for p in model.parameters())
        assert recorded["parameters"] == sizes[key], path


FINISHED = [name for name, plan in read_plans().items() if not plan.unfinished]


@pytest.mark.parametrize("name", sorted({*FINISHED} - {"live"}))
def test_every_model_is_reported_with_three_seeds_or_five_for_the_speedup(
    name: str,
) -> None:
    plan, known = read_plans()[name], read_results()
    assert plan.seeds >= (5 if name in ("speedup", "today-characters") else 3)
    missing = [run for part in plan.missing(known) for run in part]
    assert not missing, f"make experiments ONLY={name}"
    # A diverged run would be left out, and the mean of the other seeds would flatter its model.
    reported = gather({name: plan}, known, read_step_times())[name]
    for model in plan.models:
        seeds = [run["seed"] for run in reported[model]]
        assert seeds == list(range(plan.seeds)), model


def test_no_selected_rate_is_the_lowest_or_highest_tried() -> None:
    # There may be a better one beyond it: add more to the plan.
    known = read_results()
    for plan in map(read_plans().get, FINISHED):
        assert plan
        tuning, _ = plan.missing(known)
        for name, model in plan.models.items():
            if not tuning and len(plan.rates) > 1:
                chosen = plan.rate(model, known)
                assert min(plan.rates) < chosen < max(plan.rates), (plan.name, name)


def test_code_still_computes_what_was_recorded() -> None:
    stale = [
        path
        for path in RECORDED
        if not is_current(json.loads(path.read_text(encoding="utf-8")))
    ]
    assert not stale, "the code computes something else now: make experiments"


def test_no_record_names_the_home_folder_of_its_machine() -> None:
    for path in [*RECORDED, RESULTS / STEP_TIMES]:
        text = path.read_text(encoding="utf-8")
        assert str(Path.home()) not in text, path


def test_gathered_file_matches_the_records() -> None:
    gathered = json.loads((RESULTS / "gathered.json").read_text(encoding="utf-8"))
    again = gather(read_plans(), read_results(), read_step_times())
    assert gathered == again, "make experiments"


# Prose: its numbers are computed from the records, and these claims hold for them

GATHERED = str(RESULTS / "gathered.json")
TABLE_4 = ROOT / "experiments" / "paper_tables" / "table_4.json"


def prose_of(chapter: ModuleType) -> str:
    """Return the prose of a chapter's notebook after a run in the current folder, as one line."""
    path = Path(str(chapter.__file__))
    space = runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    asked = expressions(parse(path.read_text(encoding="utf-8")), path.name)
    values = {text: str(eval(text, space)) for text in asked}
    cells = json.loads(reader_notebook(path, the_book(), values=values))["cells"]
    prose = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    return " ".join("\n".join(prose).split())


def test_number_in_prose_changes_with_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ours.__data__:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    gathered = Path(ours.__data__[0])
    recorded = json.loads(gathered.read_text(encoding="utf-8"))
    saved = factors(recorded["speedup"], "seconds")["primer-ez"]
    assert f" {saved.mean:.1f} times faster" in prose_of(ours)
    for run in recorded["speedup"]["primer-ez"]:
        run["seconds"] = [each / 100 for each in run["seconds"]]
    gathered.write_text(json.dumps(recorded), encoding="utf-8")
    saved = factors(recorded["speedup"], "seconds")["primer-ez"]
    assert saved.mean > 100
    assert f" {saved.mean:.1f} times faster" in prose_of(ours)


def growth(runs: Runs, model: str) -> list[float]:
    """For each seed, the factor at the end over that after a quarter."""
    vanilla = runs["transformer"]
    quarter = [until(run, len(run["loss"]) // 4) for run in vanilla]
    return [
        factor(late, run, "multiply_adds") / factor(early, run, "multiply_adds")
        for early, late, run in zip(quarter, vanilla, runs[model], strict=True)
    ]


def test_claims_on_whole_models_hold_for_the_records() -> None:
    runs = read_runs(GATHERED, "speedup")
    vanilla = runs["transformer"]
    assert all(ahead(runs, "primer-ez", "primer"))
    assert all(ahead(runs, "evolved-transformer", "primer"))
    assert abs(gain(runs, "evolved-transformer", "primer-ez")) < 0.005
    in_time = factors(runs, "seconds")
    for model in ("primer-ez", "primer"):
        assert in_time[model].mean > in_time["evolved-transformer"].mean
        for first, second in zip(vanilla, runs[model], strict=True):
            assert factor(first, second, "seconds") > 1
        assert speedup(vanilla, runs[model], "seconds").mean > 2
    grown = {model: growth(runs, model) for model in runs if model != "transformer"}
    assert max(*grown["mdha"], *grown["primer"]) < 1
    assert min(grown["primer-ez"]) < 1 < max(grown["primer-ez"])
    mean = {model: geometric_mean(each) for model, each in grown.items()}
    for model in ("evolved-transformer", "gelu"):
        assert abs(mean[model] - 1) < 1 - mean["primer-ez"]
    for model in ("squared-relu", "pp"):
        assert mean[model] > 1.1 and min(grown[model]) > 1
    on_v100 = float(theirs("pp", str(TABLE_4))["Tensor2Tensor, V100"].split()[0])
    assert on_v100 > in_time["pp"].high


COSTS = ("multiply_adds", "seconds")


def test_claims_on_whole_models_with_rotary_positions_hold_for_the_records() -> None:
    learned, rotary = (
        read_runs(GATHERED, plan) for plan in ("speedup", "today-characters")
    )
    before, saved = (factors(runs, "multiply_adds") for runs in (learned, rotary))
    for model in ("mdha", "primer-ez", "primer", "evolved-transformer"):
        assert saved[model].high < before[model].low
    for model in ("squared-relu", "pp", "gelu"):
        assert before[model].low < saved[model].mean < before[model].high * 1.05
    for model in ("evolved-transformer", "gelu"):
        assert saved[model].low < 1 < saved[model].high
    above = gain(rotary, "pp", "primer-ez")
    best = [final_loss(rotary[model]).mean for model in ("pp", "primer-ez", "primer")]
    assert above > 0
    assert max(best) - min(best) < critical_difference(final_losses(rotary))
    for model in ("primer-ez", "primer"):
        assert all(ahead(rotary, model, "evolved-transformer"))
    assert gain(rotary, "evolved-transformer", "transformer") < 0
    lead = (
        math.log(factors(learned, cost)["evolved-transformer"].mean) for cost in COSTS
    )
    in_multiply_adds, in_time = lead
    assert in_time > in_multiply_adds / 2, "it keeps most of its lead in time"
    for model in ("squared-relu", "pp"):
        assert min(growth(rotary, model)) > 1
    assert MeanFactor.of(growth(rotary, "mdha")).low > 1
    for model in ("primer-ez", "primer"):
        change = MeanFactor.of(growth(rotary, model))
        assert change.low < 1 < change.high
    assert before["primer-ez"].mean > 2, "more than half"
    assert saved["primer-ez"].mean < 1.5, "less than a third"
    for model in ("pp", "squared-relu"):  # Primer-EZ is not shown to be better
        over = speedup(rotary[model], rotary["primer-ez"], "multiply_adds")
        assert over.low < 1


def test_claims_on_whole_models_on_subwords_hold_for_the_records() -> None:
    runs = read_runs(GATHERED, "today-subwords")
    assert {*map(len, runs.values())} == {5} and len(runs) == 8
    for model in ("primer", "primer-ez"):
        assert all(ahead(runs, model, "pp"))
    saved = factors(runs, "multiply_adds")
    assert max(saved, key=lambda model: saved[model].mean) == "primer"
    assert speedup(runs["pp"], runs["primer"], "multiply_adds").low > 1
    pairs = (
        ("primer-ez", "primer"),
        ("gelu", "squared-relu"),
        ("transformer", "evolved-transformer"),
    )
    for baseline, model in pairs:
        not_shown = speedup(runs[baseline], runs[model], "multiply_adds")
        assert not_shown.low < 1 < not_shown.high


def test_numbers_of_ours_in_the_library_are_those_of_the_records() -> None:
    learned, rotary = (
        factors(read_runs(GATHERED, plan), "multiply_adds")
        for plan in ("speedup", "today-characters")
    )

    def prose(name: str) -> str:
        text = (ROOT / "labml_primer" / "primer" / f"{name}.py").read_text("utf-8")
        return " ".join(text.replace("#", "").split())

    before, saved = learned["primer-ez"].mean, rotary["primer-ez"].mean
    primer_ez = prose("primer_ez")
    on_subwords = [
        MeanFactor.of(
            savings(read_setting(GATHERED, "subwords", positions), "primer-ez")
        )
        for positions in ("learned", "rotary")
    ]
    with_table, without = (f"{1 - 1 / each.mean:.0%}" for each in on_subwords)
    reach, there = (
        f"{1 - 1 / each.low:.0%} to {1 - 1 / each.high:.0%}"
        for each in (rotary["primer-ez"], on_subwords[1])
    )
    assert f"it saves {1 - 1 / before:.0%} of the {{term}}`multiply-adds`" in primer_ez
    assert f"and {1 - 1 / saved:.0%} if both have rotary positions" in primer_ez
    assert f"(95% {{term}}`confidence interval` {reach}, five seeds)" in primer_ez
    assert f"on subwords, {with_table} and {without} ({there};" in primer_ez
    in_time = factors(read_runs(GATHERED, "speedup"), "seconds")["primer-ez"].mean
    assert f"it is {in_time:.2f} in time and {before:.2f} in multiply-adds" in primer_ez
    assert f"and {saved:.2f} in multiply-adds with rotary ones" in primer_ez
    step = recorded_timings("step")
    slower, faster = (
        max(ratios(step, name, "Transformer"))
        for name in ("Primer-EZ", "Primer-EZ, faster")
    )
    assert f"takes up to {slower:.2f} times as long" in primer_ez
    assert f"or {faster:.2f} times with hand-written gradients" in primer_ez
    baselines = prose("baselines")
    plus = learned["pp"].mean, rotary["pp"].mean
    assert (
        f"{plus[0]:.2f} for Transformer++ and {before:.2f} for Primer-EZ" in baselines
    )
    assert f"rotary positions they are {plus[1]:.2f} and {saved:.2f}" in baselines
    runs = read_setting(GATHERED, "subwords", "rotary")
    there = MeanFactor.of(savings(runs, "pp")).mean, on_subwords[1].mean
    assert (
        f"on subwords with rotary positions they are {there[0]:.2f} and {there[1]:.2f}"
        in baselines.lower()
    )


def test_claims_on_parts_with_rotary_positions_hold_for_the_records() -> None:
    runs = read_runs(GATHERED, "today-ablation")
    assert all(ahead(runs, "without-mdha", "without-squared-relu"))
    assert all(ahead(runs, "primer", "without-mdha"))
    for part in ("order", "norm", "shared-query"):
        removed = perplexity_change(runs, "primer", f"without-{part}")
        assert abs(removed.mean) < removed.deviation
    for part in ("shared-query", "12x"):
        assert all(ahead(runs, "transformer", f"with-{part}"))


def test_claims_on_parts_hold_for_the_records() -> None:
    changes, activations = (
        read_runs(GATHERED, plan) for plan in ("ablation", "activations")
    )
    missed = {model: gain(changes, "primer", model) for model in parts.REMOVED}
    assert max(missed, key=lambda model: missed[model]) == "without-mdha"
    for part in ("squared-relu", "order"):
        assert all(ahead(changes, "primer", f"without-{part}"))
        alone = gain(changes, f"with-{part}", "transformer")
        assert alone > 2 * missed[f"without-{part}"] > 0
    assert gain(changes, "with-order", "without-mdha") > 0
    assert missed["without-mdha"] > gain(changes, "primer", "transformer") / 2
    assert all(ahead(activations, "swiglu", "relu"))
    assert not all(ahead(activations, "reglu", "relu"))
    assert read_plans()["ablation"].models["with-12x"].model["d_model"] < 128


def test_claims_on_other_models_hold_for_the_records() -> None:
    moved, filled = (read_runs(GATHERED, plan) for plan in ("transfer", "filling"))
    for changed, (_, plain, _) in transfer.FAMILIES.items():
        assert all(ahead(moved, changed, plain))
        sizes = [moved[model][0]["parameters"] for model in (changed, plain)]
        assert sizes[0] == pytest.approx(sizes[1], rel=0.01)
    assert gain(filled, "t5-primer-ez-decoder", "t5-pp") > 0
    assert not all(ahead(filled, "t5-primer-ez-decoder", "t5-pp"))
    assert min(gain(filled, m, "t5") for m in ("t5-pp", "t5-primer-ez-decoder")) > 0
    run = read_plans()["transfer"].models["switch"]
    assert (run.batch, run.seq) == (16, 128)


def test_what_results_calls_not_reproduced_is_not_in_the_records() -> None:
    changes, activations, others = (
        read_runs(GATHERED, plan) for plan in ("ablation", "activations", "transfer")
    )
    wider = Spread.of(relative_perplexity(changes["transformer"], changes["with-12x"]))
    assert abs(wider.mean - 100) < wider.deviation
    assert not all(ahead(activations, "squared-relu", "swiglu"))
    for name in ("synthesizer-dense", "synthesizer-random"):
        saved = speedup(others[name], others[f"{name}-squared-relu"], "seconds")
        assert saved.high < 1.7


def between_the_best_two_rates(plan: Plan, run: Run) -> float:
    """Return by how many nats the second-best rate is worse than the best."""
    known = read_results()
    tried = (known[plan.trial(run, rate).digest] for rate in plan.rates)
    best, second, *_ = sorted(loss_on(record, TUNING_PLAY) for record in tried)
    return second - best


def test_two_best_rates_are_within_the_noise_for_half_of_the_models() -> None:
    plans, runs = read_plans(), read_runs(GATHERED, "speedup")
    near = [
        between_the_best_two_rates(plans["speedup"], run)
        < final_loss(runs[model]).deviation
        for model, run in plans["speedup"].models.items()
    ]
    assert near.count(True) == len(near) / 2
    for run in plans["filling"].models.values():
        assert between_the_best_two_rates(plans["filling"], run) < 0.015


def test_chapters_give_the_command_of_every_plan_and_no_other() -> None:
    command = r"make experiments ONLY=(\w+)"
    page = (ROOT / "book" / "pages" / "write.md").read_text(encoding="utf-8")
    named = re.findall(command, "\n".join([*chapters().values(), page]))
    families = {name.partition("-")[0] for name in read_plans()}
    assert set(named) == families


def test_building_the_book_does_not_import_what_trains_the_plans() -> None:
    trains = {"experiments.harness.run", "experiments.harness.step_times"}
    trains |= {"experiments.harness.training"}
    assert "experiments/chapters/ours" in chapters()
    code = ["import sys"]
    for chapter, source in chapters().items():
        # The book executes all of a chapter, so imports count at any depth.
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                code += [ast.unparse(node)]
        code += [f"assert not {trains} & sys.modules.keys(), '{chapter}'"]
    subprocess.run([sys.executable, "-c", "\n".join(code)], cwd=ROOT, check=True)


def test_only_runs_with_the_selected_rate_are_gathered() -> None:
    trials = found(*map(record, PLAN.tuning().values()))
    (first, second) = PLAN.runs(trials).values()
    runs = found(record(first, reported=2.0), record(second, reported=3.0))
    assert gather({"tiny": PLAN}, runs, MEASURED) == {}
    both = gather({"tiny": PLAN}, trials | runs, MEASURED)["tiny"]["plain"]
    assert [each["seed"] for each in both] == [0, 1]
    assert [each["loss"][-1] for each in both] == [2.0, 3.0]
    runs[first.digest]["diverged_at_step"] = 3
    assert len(gather({"tiny": PLAN}, trials | runs, MEASURED)["tiny"]["plain"]) == 1


def test_a_model_is_gathered_as_soon_as_its_own_rates_are_tried() -> None:
    plan = replace(PLAN, models={"plain": TINY, "wider": WIDER}, timed=False)
    trials = plan.tuning()
    first, *others = (name for name in trials if name.startswith("tuning-wider"))
    tried = found(*(record(trials[name]) for name in trials if name != first))
    records = tried | found(*map(record, plan.runs(tried).values()))
    assert [*gather({"tiny": plan}, records, {})["tiny"]] == ["plain"] and others
    records |= found(record(trials[first], tuning=2.0))
    assert [*gather({"tiny": plan}, records, {})["tiny"]] == ["plain", "wider"]


def test_gathered_seconds_are_steps_times_the_measured_step_time() -> None:
    records = found(*map(record, PLAN.tuning().values()))
    records |= found(*map(record, PLAN.runs(records).values()))
    reported = gather({"tiny": PLAN}, records, MEASURED)["tiny"]["plain"]
    assert [each["seconds"] for each in reported] == [[0.25, 0.5]] * 2
    assert gather({"tiny": PLAN}, records, {}) == {}


def test_step_time_of_every_model_is_measured_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wider = replace(TINY, model=SIZES | {"d_ff": 1024})
    plan = replace(PLAN, models={"plain": TINY, "wider": wider})
    # Seed and length do not change a step.
    same = replace(TINY, seed=7, rate=0.5, steps=9)
    plans = [plan, replace(plan, name="other", models={"same": same})]
    measure_missing(plans, tmp_path, tmp_path)
    measured = read_step_times(tmp_path)
    assert min(measured["tiny"].values()) > 0
    assert measured["tiny"]["wider"] != measured["tiny"]["plain"]
    assert measured["other"]["same"] == measured["tiny"]["plain"]
    assert json.loads((tmp_path / STEP_TIMES).read_text())["machine"]
    measure_missing(plans, tmp_path, tmp_path)
    assert read_step_times(tmp_path) == measured
    plans[1] = replace(plan, name="other", models={"same": same, "new": TINY})
    measure_missing(plans, tmp_path, tmp_path)
    assert read_step_times(tmp_path)["other"].keys() == plans[1].models.keys()
    assert re.findall(r"a step of (\d)", capsys.readouterr().out) == ["2", "1"]


# Speed-up factors


def run_of(seed: int, loss: list[float], step: float = 1.0) -> dict[str, Any]:
    return {"seed": seed, "loss": loss, "steps": [step * n for n in (1, 2, 3, 4)]}


def test_speedup_is_the_cost_of_the_baseline_over_that_of_the_same_loss() -> None:
    baseline = run_of(0, [4.0, 3.0, 2.0, 1.0])
    assert factor(baseline, run_of(0, [3.0, 1.0, 0.5, 0.2]), "steps") == 2
    # The same curve at half of the cost per step.
    assert factor(baseline, run_of(0, [4.0, 3.0, 2.0, 1.0], 0.5), "steps") == 2


def test_run_that_never_reaches_the_baseline_gets_the_inverse_factor() -> None:
    baseline, worse = run_of(0, [4.0, 2.0, 1.0, 0.5]), run_of(0, [5.0, 4.0, 3.0, 2.0])
    assert factor(baseline, worse, "steps") == 1 / 2
    assert factor(worse, baseline, "steps") == 2


def test_shorter_baseline_is_its_curve_cut_off() -> None:
    baseline = run_of(0, [4.0, 3.0, 2.0, 1.0])
    run = run_of(0, [3.0, 2.5, 2.2, 2.0])
    assert until(baseline, 2) == run_of(0, [4.0, 3.0]) | {"steps": [1.0, 2.0]}
    assert factor(until(baseline, 2), run, "steps") == 2
    assert factor(until(baseline, 3), run, "steps") == 3 / 4


def test_each_seed_is_compared_with_the_baseline_of_its_seed() -> None:
    baseline = [run_of(0, [4.0, 3.0, 2.0, 1.0]), run_of(1, [8.0, 6.0, 4.0, 2.0])]
    runs = [run_of(1, [8.0, 2.0, 1.0, 1.0]), run_of(0, [1.0, 1.0, 1.0, 1.0])]
    spread = speedup(baseline, [*runs, run_of(7, [1.0] * 4)], "steps")
    # One factor is 2, the other 4.
    assert spread.mean == pytest.approx(math.sqrt(8))
    assert spread.low < 2 < 4 < spread.high


def test_spread_is_written_with_its_standard_deviation() -> None:
    assert f"{Spread.of([3.0]):.1f}" == "3.0"
    assert f"{Spread.of([2.0, 4.0]):.2f}" == "3.00 ± 1.41"
    assert f"{Spread.of([2.0, 4.0]):+.1f}" == "+3.0 ± 1.4"


def test_setting_names_seeds_data_and_compute() -> None:
    run = {"data": "characters", "multiply_adds": [1e12, 6.34e12]}
    costly = {"data": "subwords", "multiply_adds": [7e12]}
    assert setting([[run, run], [run] * 2]) == (
        "2 seeds, characters, 6.3 trillion multiply-adds each"
    )
    assert setting([[run] * 3, [costly] * 5]) == (
        "3 to 5 seeds, characters and subwords, 6.3 to 7.0 trillion multiply-adds each"
    )


# Chapters


def test_chapter_ours_has_every_model_of_the_plan_under_the_papers_name() -> None:
    for name in ("speedup", "today-characters"):
        assert set(WHOLE_MODELS) == set(Plan.read(PLANS / f"{name}.toml").models)
    factors = {model: len(theirs(model, str(TABLE_4))) for model in WHOLE_MODELS}
    # The paper has no factor for its baseline, and none for the squared ReLU alone.
    assert factors.pop("transformer") == factors.pop("squared-relu") == 0
    assert all(factors.values())


def test_perplexities_are_compared_seed_by_seed() -> None:
    baseline = [run_of(0, [4.0, 1.0]), run_of(1, [4.0, 2.0])]
    runs = [run_of(1, [3.0, 2.0 + math.log(1.1)]), run_of(7, [3.0, 1.0])]
    assert relative_perplexity(baseline, runs) == [pytest.approx(110)]
    assert relative_perplexity(baseline, baseline) == [100, 100]


@pytest.mark.parametrize(
    "plan, names",
    [
        ("ablation", parts.INSERTED | parts.REMOVED),
        ("today-ablation", parts.INSERTED | parts.REMOVED),
        ("activations", parts.ACTIVATIONS),
        ("mdha", mdha.MODELS),
        ("filling", transfer.MODELS),
        (
            "transfer",
            {
                name
                for pair in transfer.FAMILIES.items()
                for name in (pair[0], pair[1][1])
            },
        ),
    ],
)
def test_chapters_name_every_model_of_their_plans(
    plan: str, names: Collection[str]
) -> None:
    assert set(names) == set(Plan.read(PLANS / f"{plan}.toml").models)


# Plans


@pytest.mark.parametrize(
    "path", sorted(PLANS.glob("*.toml")), ids=lambda path: path.stem
)
def test_every_model_of_a_plan_can_be_built(path: Path) -> None:
    for run in Plan.read(path).models.values():
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
    records = found(record(low, 2.0, 1.0), record(high, 1.0, 2.0))
    assert PLAN.rate(TINY, records) == high.rate
    assert reported_loss(records[high.digest]) == 2.0


def test_rate_of_a_diverged_run_is_not_selected() -> None:
    low, high = (PLAN.trial(TINY, rate) for rate in PLAN.rates)
    diverged = record(high, 0.1) | {"diverged_at_step": 2}
    assert PLAN.rate(TINY, found(record(low, 2.0), diverged)) == low.rate


def test_recorded_runs_are_not_missing_even_if_another_plan_recorded_them() -> None:
    tuning, runs = PLAN.missing({})
    assert len(tuning) == 2 and list(runs) == ["plain-0", "plain-1"]
    records = found(*map(record, tuning.values()))
    tuning, runs = PLAN.missing(records)
    assert tuning == {} and len(runs) == 2
    other = replace(PLAN, name="other", models={"the-same": TINY})
    records |= found(record(runs["plain-1"]))
    assert list(other.missing(records)[1]) == ["the-same-0"]


def test_rates_are_tuned_with_a_seed_of_their_own_and_reported_with_others() -> None:
    plan = replace(PLAN, tuning_seed=100, models={"plain": replace(TINY, whole=True)})
    tuning, _ = plan.missing({})
    assert {run.seed for run in tuning.values()} == {100}
    # To select a rate, it is enough to read parts of the plays.
    assert not any(run.whole for run in tuning.values())
    runs = plan.runs(found(*map(record, tuning.values())))
    assert [(run.seed, run.whole) for run in runs.values()] == [(0, True), (1, True)]


EVERY_MODEL = {
    f"{plan.name}/{model}": run
    for plan in read_plans().values()
    for model, run in plan.models.items()
}


@pytest.mark.parametrize("run", EVERY_MODEL.values(), ids=EVERY_MODEL)
def test_every_model_of_every_plan_can_take_a_step(run: Run) -> None:
    small = replace(run, batch=2, pieces=1, steps=1, evaluations=1, bfloat16=False)
    begun = Training(small, Path())
    begun.step()
    assert math.isfinite(begun.losses[0])


@pytest.mark.parametrize(
    "name", [plan.name for plan in read_plans().values() if plan.belongs_to("today")]
)
def test_plans_of_today_tune_longer_and_report_other_seeds(name: str) -> None:
    plan = read_plans()[name]
    assert plan.tuning_seed not in range(plan.seeds)
    for run in plan.models.values():
        assert run.whole and plan.tuning_steps >= run.steps / 4


def test_plan_that_is_not_timed_is_gathered_without_step_times(tmp_path: Path) -> None:
    plan = replace(PLAN, timed=False)
    records = found(*map(record, plan.tuning().values()))
    one = record(plan.runs(records)["plain-1"])
    one["whole"] = {play: 3.0 for play in REPORTED_PLAYS} | {TUNING_PLAY: 9.0}
    gathered = gather({"tiny": plan}, records | found(one), {})["tiny"]["plain"]
    assert [run["seed"] for run in gathered] == [1]
    assert gathered[0]["whole"] == 3.0 and "seconds" not in gathered[0]
    measure_missing([plan], tmp_path, tmp_path)
    assert read_step_times(tmp_path) == {}


def test_record_is_run_again_if_the_code_computes_something_else(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "plan"
    first = long_run(TINY, folder)
    assert is_current(first) and first["fingerprint"] == fingerprint(TINY)
    # Neither rate nor seed change the fingerprint; another model does.
    assert fingerprint(replace(TINY, seed=3, rate=0.5)) == first["fingerprint"]
    rotary = replace(TINY, model=SIZES | {"positions": "rotary"})
    assert not is_current(first | {"configuration": asdict(rotary)})
    # Records from before there were fingerprints are taken as they are.
    assert is_current({"digest": TINY.digest})
    path = folder / "record.json"
    path.write_text(json.dumps(first | {"fingerprint": [1.0, 1.0], "commit": "old"}))
    plan = replace(PLAN, rates=(TINY.rate,))
    assert recorded(plan, tmp_path) == {}
    assert long_run(TINY, folder)["commit"] != "old"
    assert recorded(plan, tmp_path).keys() == {TINY.digest}
    # It is not run again for a rewriting that changes the last digits.
    near = [loss * (1 + 1e-9) for loss in first["fingerprint"]]
    path.write_text(json.dumps(first | {"fingerprint": near, "commit": "old"}))
    assert long_run(TINY, folder)["commit"] == "old"


def altered(clip: float = 1.0, **settings: Any) -> Callable[..., Any]:
    """Return an `optimizer_of` whose optimizer has other settings."""
    original = optimizer.optimizer_of

    def optimizer_of(run: Run, model: torch.nn.Module) -> tuple[Any, float]:
        optimizer, _ = original(run, model)
        optimizer.param_groups[0].update(settings)
        return optimizer, clip

    return optimizer_of


CHANGED: dict[str, tuple[ModuleType, str, Callable[..., Any]]] = {
    "betas": (training, "optimizer_of", altered(betas=(0.5, 0.5))),
    "weight decay": (training, "optimizer_of", altered(weight_decay=0.1)),
    "clipping": (training, "optimizer_of", altered(clip=math.inf)),
    "warm-up": (optimizer, "warmed_up_rate", lambda step, rate, warmup: rate),
    "decrease": (optimizer, "warmed_up_rate", lambda s, rate, w: rate * min(s / w, 1)),
    "held-out windows": (
        training,
        "task_of",
        lambda *_: replace(LANGUAGE_MODELING, held_out=lambda *_: 0.0),
    ),
    "whole plays": (fingerprints, "whole_loss", lambda *_: 0.0),
}
"""What a run's numbers depend on besides its model: a function, and another in its place."""


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Compute fingerprints again, and forget them after the test."""
    fingerprints.losses_of.cache_clear()
    yield
    fingerprints.losses_of.cache_clear()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("part", CHANGED)
def test_record_is_out_of_date_if_training_or_evaluation_changed(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(TINY, whole=True)
    record = {"configuration": asdict(run), "fingerprint": fingerprint(run)}
    fingerprints.losses_of.cache_clear()
    assert is_current(record)
    fingerprints.losses_of.cache_clear()
    monkeypatch.setattr(*CHANGED[part])
    assert not is_current(record)


def test_error_of_an_invalid_plan_names_file_and_model(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    path.write_text(
        'title = ""\nturn = 1\nseeds = 1\n[tuning]\nrates = [1e-3]\nsteps = 1\n[shared]\n'
        '[models.odd]\npreset = "trnsformer"\n'
    )
    with pytest.raises(ValueError, match=r"new\.toml: odd: preset 'trnsformer'"):
        Plan.read(path)


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


# Sweeps


@pytest.mark.slow
@pytest.mark.usefixtures("ten_minutes_a_step")
def test_sweep_records_each_run_once_and_writes_nothing_to_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Twice as fast as announced, because there are two cores.
    clock = [10800, 7200, 3600, 1800, 0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.pop))
    home, results, built = (tmp_path / name for name in ("home", "results", "built"))
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    expected = announce([PLAN], 2, results)
    assert run_missing([PLAN], 2, expected, results, built) == 0
    assert sorted(path.stem for path in results.glob("tiny/*.json")) == [
        "plain-0",
        "plain-1",
        "tuning-plain-0.001",
        "tuning-plain-1e+09",
    ]
    # A rate of a billion diverges. That is a result, and does not stop other runs.
    records = read_results(results)
    assert sum(r["diverged_at_step"] is not None for r in records.values()) == 1
    printed = capsys.readouterr().out
    assert "the batch is saved in" in printed
    times = re.findall("about (.+) left", printed)
    assert times == ["2.5 h", "2.0 h", "60 min", "0 min"]
    assert PLAN.rate(TINY, records) == 1e-3
    assert PLAN.missing(records) == [{}, {}]
    assert announce([PLAN], 2, results) == 0
    # Only a lost record is run again.
    (results / "tiny" / "plain-0.json").unlink()
    clock += [3600, 0]
    capsys.readouterr()
    assert run_missing([PLAN], 2, 7200, results, built) == 0
    assert re.findall("^tiny/(.+?):", capsys.readouterr().out, re.M) == ["plain-0"]
    assert PLAN.missing(read_results(results)) == [{}, {}]
    assert list(home.iterdir()) == []
    # A run has one core, and the same numbers as outside a sweep.
    run = PLAN.runs(records)["plain-1"]
    alone = long_run(run, tmp_path / "alone")
    swept = records[run.digest]
    assert swept["machine"]["threads"] == 1
    assert loss_on(swept, TUNING_PLAY) == pytest.approx(loss_on(alone, TUNING_PLAY))


@pytest.mark.slow
def test_run_whose_process_is_killed_resumes_from_its_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of the fingerprint, taken at the end in no folder, do not count."""
    taken, killed = tmp_path / "taken", tmp_path / "killed"

    def killed_once(run: Run, folder: Path, result: Path) -> dict[str, Any]:
        import os
        import signal

        from experiments.harness import long_run as running
        from experiments.harness.training import Training

        step, save = Training.step, running.save

        def noted(training: Training) -> None:
            step(training)
            if training.folder == folder:
                with taken.open("a") as steps:
                    steps.write(f"{training.done} ")

        def saved(training: Training) -> None:
            save(training)
            if not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        Training.step = noted  # type: ignore[method-assign]
        running.save = saved
        return running.long_run(run, folder, result, save_every=2)

    monkeypatch.setattr(sweeping, "long_run", killed_once)
    with sweeping.cores(1) as ray:
        swept = dict(sweeping.sweep(ray, {"plain": TINY}, tmp_path, tmp_path))
    assert killed.exists() and taken.read_text().split() == ["1", "2", "3", "4"]
    record = swept["plain"]
    assert isinstance(record, dict)
    alone = long_run(TINY, tmp_path / "alone")
    assert loss_on(record, TUNING_PLAY) == loss_on(alone, TUNING_PLAY)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the printed lines, without their columns."""
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_announced_time_counts_runs_that_plans_share_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two steps and one evaluation, or four and two; an evaluation costs as much as four steps.
    seconds = announce([PLAN, OTHER], 2, tmp_path)
    assert seconds == 600 * (2 * 6 + 2 * 12 + 2 * 6 + 4 * 12)
    assert lines(capsys) == [
        "tiny 2 short runs for rates 2 runs 6.0 h on a core A small one",
        "other 2 short runs for rates 4 runs 10.0 h on a core A small one",
        "Missing: 16.0 h on a core, 8.0 h on 2",
    ]


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The command with two plans. It prints their names instead of running them."""

    def run_missing(plans: list[Plan], number: int, left: float) -> int:
        print("run", *(plan.name for plan in plans), number, left)
        return 0

    def main(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["run", "--cores", "2", *arguments])
        module.main()

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(module, "BUILT", tmp_path)
    monkeypatch.setattr(module, "read_plans", lambda: {"tiny": PLAN, "other": OTHER})
    monkeypatch.setattr(module, "run_missing", run_missing)
    monkeypatch.setattr(module, "orphaned", lambda plans: "")
    monkeypatch.setattr(module, "measure_missing", lambda *_: None)
    monkeypatch.setattr(module, "write_gathered", lambda: None)
    return main


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_expected_time_is_printed_first_and_one_plan_can_be_selected(
    main: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = "Missing: {} h on a core, {} h on 2"
    main()
    assert lines(capsys)[2:] == [
        missing.format("16.0", "8.0"),
        "run tiny other 2 57600.0",
    ]
    main("--only", "tiny")
    assert lines(capsys)[1:] == [missing.format("6.0", "3.0"), "run tiny 2 21600.0"]
    main("--only", "tiny", "--list")
    assert lines(capsys)[1:] == [missing.format("6.0", "3.0")]


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_a_family_of_plans_is_selected_by_its_name(
    main: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ("tiny", "other-first", "other", "others")
    plans = {name: replace(PLAN, name=name) for name in names}
    monkeypatch.setattr(module, "read_plans", lambda: plans)
    main("--only", "other")
    assert lines(capsys)[-1].startswith("run other-first other 2")


def test_unknown_plan_error_lists_known_plans(
    main: Callable[..., None],
) -> None:
    with pytest.raises(
        SystemExit, match="unknown plan 'tny'; known plans: tiny, other"
    ):
        main("--only", "tny")


@pytest.mark.parametrize("unreadable", ["read_plans", "announce"])
def test_plan_or_record_that_cannot_be_read_ends_the_command_with_its_error(
    main: Callable[..., None], monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    def raising(*_: Any) -> None:
        raise ValueError("odd.file: not as it should be")

    monkeypatch.setattr(module, unreadable, raising)
    with pytest.raises(SystemExit, match=r"^odd\.file: not as it should be$"):
        main("--list")


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_number_of_cores_that_is_not_positive_is_refused(
    main: Callable[..., None], capsys: pytest.CaptureFixture[str], number: str
) -> None:
    with pytest.raises(SystemExit):
        main("--cores", number)
    message = f"argument --cores: '{number}' is not a whole number above 0"
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("ten_minutes_a_step")
def test_second_sweep_at_the_same_time_is_refused(
    main: Callable[..., None], tmp_path: Path
) -> None:
    refused = pytest.raises(SystemExit, match="another sweep is running")
    with module.alone(tmp_path), refused:
        main()
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]


def test_models_of_the_modern_plan_differ_in_what_their_names_say() -> None:
    models = read_plans()["today-modern"].models
    built = {name: run.build(2048) for name, run in models.items()}
    blocks = {name: model.get_submodule("blocks.0") for name, model in built.items()}
    for name, block in blocks.items():
        attention = block.get_submodule("attention")
        assert isinstance(attention, RotaryAttention)
        assert isinstance(attention, GroupedQueryAttention)
        assert attention.groups == 2 and not hasattr(built[name].positions, "encoding")
        mixes = {part.rpartition("_")[2] for part, _ in attention.named_children()}
        short = {"token-shift": {"shift"}}.get(name, {"conv"})
        assert mixes & {"conv", "shift"} == (
            set() if name in ("modern", "squared-relu") else short
        )
        gated = isinstance(block.get_submodule("feed_forward"), GatedFeedForward)
        assert gated == (name not in ("squared-relu", "primer-ez"))
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
