"""Tests of the claims of the measured chapters: they hold for the records."""

import json
import math
import runpy
import shutil
from collections.abc import Collection
from pathlib import Path
from statistics import geometric_mean
from types import ModuleType

import matplotlib.pyplot as plt
import pytest
from sphinx_annotated.read.expressions import expressions
from sphinx_annotated.read.parse import parse
from sphinx_annotated.take.notebook import Calls, reader_notebook
from write_notebooks import the_book

from experiments.chapters import mdha, ours, parts, transfer
from experiments.harness.configuration import Run
from experiments.harness.plan import PLANS, Plan
from experiments.measured.analysis import (
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
    speedup,
    until,
)
from experiments.measured.figures import WHOLE_MODELS
from experiments.measured.settings import perplexity_change
from experiments.paper.tables import theirs
from experiments.records import counts as counts_module
from experiments.records import runs as runs_module
from experiments.records.lines import write_json
from experiments.records.runs import (
    RESULTS,
    STEP_TIMES,
    TUNING_PLAY,
    RunRecord,
    Runs,
    loss_on,
    read_ends,
    read_runs,
)

ROOT = PLANS.parent.parent
TABLE_4 = ROOT / "experiments" / "paper" / "printed" / "table_4.json"


def prose_of(chapter: ModuleType) -> str:
    """Return the prose of a chapter's notebook after a run in the current folder, as one line."""
    path = Path(str(chapter.__file__))
    space = runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    asked = expressions(parse(path.read_text(encoding="utf-8")), path.name)
    values = {text: str(eval(text, space)) for text in asked}
    returned: Calls = {
        f"{module.__name__}.{name}": []
        for module in (runs_module, counts_module)
        for name in module.__recorded__
    }
    cells = json.loads(
        reader_notebook(path, the_book(), values=values, returned=returned)
    )["cells"]
    prose = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    return " ".join("\n".join(prose).split())


def test_number_in_prose_changes_with_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(ROOT)
    shutil.copytree(RESULTS, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(runs_module, "RESULTS", tmp_path)
    assert factors(read_runs("speedup"), "seconds")["primer-ez"].mean < 10
    times = json.loads((tmp_path / STEP_TIMES).read_text(encoding="utf-8"))
    times["seconds"]["speedup"]["primer-ez"] /= 100
    write_json(tmp_path / STEP_TIMES, times)
    saved = factors(read_runs("speedup"), "seconds")["primer-ez"]
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
    runs = read_runs("speedup")
    vanilla = runs["transformer"]
    assert all(ahead(runs, "primer-ez", "primer"))
    assert all(ahead(runs, "evolved-transformer", "primer"))
    assert abs(gain(runs, "evolved-transformer", "primer-ez")) < 0.005
    in_time = factors(runs, "seconds")
    for model in ("primer-ez", "primer"):
        assert in_time[model].mean > in_time["evolved-transformer"].mean
        directly = speedup(runs["evolved-transformer"], runs[model], "seconds")
        assert directly.low < 1 < directly.high
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
    learned, rotary = (read_runs(plan) for plan in ("speedup", "today-characters"))
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
    runs = read_runs("today-subwords")
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


def test_claims_on_parts_with_rotary_positions_hold_for_the_records() -> None:
    runs = read_runs("today-ablation")
    assert all(ahead(runs, "without-mdha", "without-squared-relu"))
    assert all(ahead(runs, "primer", "without-mdha"))
    for part in ("order", "norm", "shared-query"):
        removed = perplexity_change(runs, "primer", f"without-{part}")
        assert abs(removed.mean) < removed.deviation
    for part in ("shared-query", "12x"):
        assert all(ahead(runs, "transformer", f"with-{part}"))


def test_claims_on_parts_hold_for_the_records(plans: dict[str, Plan]) -> None:
    changes, activations = (read_runs(plan) for plan in ("ablation", "activations"))
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
    assert plans["ablation"].models["with-12x"].model["d_model"] < 128


def test_claims_on_other_models_hold_for_the_records(plans: dict[str, Plan]) -> None:
    moved, filled = (read_runs(plan) for plan in ("transfer", "filling"))
    for changed, (_, plain, _) in transfer.FAMILIES.items():
        assert all(ahead(moved, changed, plain))
        sizes = [moved[model][0]["parameters"] for model in (changed, plain)]
        assert sizes[0] == pytest.approx(sizes[1], rel=0.01)
    assert gain(filled, "t5-primer-ez-decoder", "t5-pp") > 0
    assert not all(ahead(filled, "t5-primer-ez-decoder", "t5-pp"))
    assert min(gain(filled, m, "t5") for m in ("t5-pp", "t5-primer-ez-decoder")) > 0
    run = plans["transfer"].models["switch"]
    assert (run.batch, run.seq) == (16, 128)


def test_what_results_calls_not_reproduced_is_not_in_the_records() -> None:
    changes, activations, others = (
        read_runs(plan) for plan in ("ablation", "activations", "transfer")
    )
    wider = Spread.of(relative_perplexity(changes["transformer"], changes["with-12x"]))
    assert abs(wider.mean - 100) < wider.deviation
    assert not all(ahead(activations, "squared-relu", "swiglu"))
    for name in ("synthesizer-dense", "synthesizer-random"):
        saved = speedup(others[name], others[f"{name}-squared-relu"], "seconds")
        assert saved.high < 1.7


def between_the_best_two_rates(
    plan: Plan, run: Run, known: dict[str, RunRecord]
) -> float:
    """Return by how many nats the second-best rate is worse than the best."""
    tried = (known[plan.trial(run, rate).digest] for rate in plan.rates)
    best, second, *_ = sorted(loss_on(record, TUNING_PLAY) for record in tried)
    return second - best


def test_two_best_rates_are_within_the_noise_for_half_of_the_models(
    plans: dict[str, Plan], known: dict[str, RunRecord]
) -> None:
    runs = read_ends("speedup")
    near = [
        between_the_best_two_rates(plans["speedup"], run, known)
        < final_loss(runs[model]).deviation
        for model, run in plans["speedup"].models.items()
    ]
    assert near.count(True) == len(near) / 2
    for run in plans["filling"].models.values():
        assert between_the_best_two_rates(plans["filling"], run, known) < 0.015


def test_chapter_ours_has_every_model_of_the_plan_under_the_papers_name() -> None:
    for name in ("speedup", "today-characters"):
        assert set(WHOLE_MODELS) == set(Plan.read(PLANS / f"{name}.toml").models)
    factors = {model: len(theirs(model, str(TABLE_4))) for model in WHOLE_MODELS}
    # The paper has no factor for its baseline, and none for the squared ReLU alone.
    assert factors.pop("transformer") == factors.pop("squared-relu") == 0
    assert all(factors.values())


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
