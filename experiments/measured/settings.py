"""The runs that several measured chapters compare, with the models' names, and tables of them.

Factors are in multiply-adds, and averaged as logarithms.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from experiments.measured.analysis import (
    MeanFactor,
    Spread,
    check_seeds,
    extent,
    final_loss,
    last_loss,
    relative_perplexity,
    seed_factors,
    until,
)
from experiments.measured.tables import SourcedTable
from experiments.records.counts import best_counts
from experiments.records.query import Measured, Runs, read_runs

MODELS = {
    "transformer": "Transformer",
    "squared-relu": "squared ReLU alone",
    "mdha": "MDHA alone",
    "primer-ez": "Primer-EZ",
    "pp": "Transformer++",
}
WITH_PRIMER = MODELS | {"primer": "Primer"}

SETTINGS = {
    ("characters", "learned"): 1200,
    ("characters", "rotary"): 1200,
    ("subwords", "learned"): 1200,
    ("subwords", "rotary"): 1200,
    ("code", "rotary"): 2400,
}
"""Texts and positions, with the steps of their runs."""

SHORT = (300, 400, 600)
"""The steps of the runs in which the rates of these settings were chosen."""

KINDS = {
    "learned": "learned table",
    "sinusoidal": "sines",
    "t5": "T5's buckets",
    "rotary": "rotary",
}

MODERN = {
    "modern": "none",
    "squared-relu": "squared ReLU for SwiGLU",
    "mdha": "MDHA",
    "mdha-same-rate": "MDHA, the others' rate",
    "primer-ez": "both, Primer-EZ",
    "canon-b": "Canon-B",
    "token-shift": "token shift",
}

CHANGES = {
    "mdha": "MDHA",
    "squared-relu": "squared ReLU",
    "order": "norm after the feed-forward layer",
    "norm": "Primer's norm",
    "shared-query": "queries computed from keys",
}


def read_setting(text: str, positions: str) -> Runs:
    """Return the runs of a setting, of the models that it has."""
    steps = SETTINGS[text, positions]
    return read_runs(
        model=MODELS, text=text, positions=positions, steps=steps, tuned=SHORT
    )


def read_settings() -> dict[tuple[str, str], Runs]:
    """Return the runs of each setting."""
    return {setting: read_setting(*setting) for setting in SETTINGS}


def of_text(recorded: Mapping[tuple[str, str], Runs], text: str) -> dict[str, Runs]:
    """Return the runs on a text by their positions."""
    return {
        positions: runs for (name, positions), runs in recorded.items() if name == text
    }


def read_modern() -> Runs:
    """Return the runs of the modern baseline and of its changes, of MDHA with a second rate as well."""
    changes = read_runs(plan="today-modern") | {
        "mdha-same-rate": read_runs(model="modern-mdha", rate=0.004)["modern-mdha"]
    }
    return {model.removeprefix("modern-"): runs for model, runs in changes.items()}


def savings(runs: Runs, model: str, over: str = "transformer") -> list[float]:
    """Return the factors of a model over the Transformer, or another one, for each seed."""
    baseline = runs.get(over, [])
    return seed_factors(baseline, runs.get(model, []), "multiply_adds")


def mean_factor(runs: Runs, model: str, over: str = "transformer") -> MeanFactor:
    """Return the mean of a model's factors over another."""
    return MeanFactor.of(savings(runs, model, over))


def growth_within(runs: Runs, model: str) -> list[float]:
    """Return how many times a model's factor grows from a quarter of its run to the end, for each seed.

    The early factor is that over a Transformer that stops at a quarter.
    """
    quarter = len(runs["transformer"][0]["steps"]) // 4
    early = [until(run, quarter) for run in runs["transformer"]]
    return growth_with({"transformer": early, model: runs[model]}, runs, model)


def growth_with(shorter: Runs, longer: Runs, model: str) -> list[float]:
    """Return how many times a model's factor is larger in longer runs than in shorter ones, for each seed."""
    pairs = zip(savings(longer, model), savings(shorter, model), strict=True)
    return [end / begin for end, begin in pairs]


def written(factors: Sequence[float]) -> str:
    """Write the mean of factors with its interval; nothing if there are none."""
    return f"{MeanFactor.of(factors):.2f}" if factors else ""


def share_of_positions(learned: Sequence[float], rotary: Sequence[float]) -> float:
    """Return the share of a gain, in logarithms, that is gone with rotary positions."""
    left, before = (
        math.log(statistics.geometric_mean(each)) for each in (rotary, learned)
    )
    return 1 - left / before


def read_rates() -> dict[int, Runs]:
    """Return the runs with rates chosen in so many steps, on characters with rotary positions.

    Four of the six models chose the same rate in both, so their runs are the same.
    """
    shorter = read_runs(plan="today-characters", model=WITH_PRIMER)
    changed = read_runs(plan="today-rates", model=["squared-relu", "primer-ez"])
    return {300: shorter, 1200: shorter | changed}


def read_lengths() -> dict[int, Runs]:
    """Return the runs with rotary positions on characters by number of steps, with the same rates in both."""

    def trained(steps: int, rate: float, models: Iterable[str]) -> Runs:
        return read_runs(
            model=models,
            text="characters",
            positions="rotary",
            steps=steps,
            schedule="inverse square root",
            rate=rate,
        )

    return {
        steps: trained(steps, 0.002, MODELS) | trained(steps, 0.004, ["primer"])
        for steps in (1200, 4800)
    }


def written_mean(runs: Runs, model: str) -> str:
    """Write a model's mean final loss; nothing if it has no runs."""
    return f"{final_loss(runs[model]).mean:.3f}" if model in runs else ""


def written_savings(runs: Runs, model: str, over: str = "transformer") -> str:
    """Write a model's factor over another; nothing if it is that one, or has no runs."""
    return "" if model == over else written(savings(runs, model, over))


def length_table() -> SourcedTable:
    """Return the final losses and speed-up factors of the models by number of steps."""
    of_steps = read_lengths()
    rows = [
        [
            name,
            *(written_mean(runs, model) for runs in of_steps.values()),
            *(written_savings(runs, model) for runs in of_steps.values()),
        ]
        for model, name in WITH_PRIMER.items()
    ]
    counts = [written_counts(runs["transformer"][0]) for runs in of_steps.values()]
    rows.append(["counts", *counts, *("" for _ in counts)])
    heads = {"model": ""}
    heads |= {f"loss, {steps:,} steps": "nats" for steps in of_steps}
    heads |= {f"saves, {steps:,} steps": "factor" for steps in of_steps}
    return SourcedTable("Short and long runs, on characters", "Our runs", heads, rows)


def read_annealed(text: str = "characters") -> Runs:
    """Return the ends of the runs whose rate falls to zero: of Primer-EZ also those of half as many steps."""
    full, half = (
        read_runs(text=text, schedule="linear", steps=steps, ends=True)
        for steps in (4800, 2400)
    )
    return full | {"primer-ez-half": half["primer-ez"]}


def annealed_table() -> SourcedTable:
    """Return the final losses of the runs whose rate falls to zero."""
    texts = {text: read_annealed(text) for text in ("characters", "subwords")}
    names = {
        "transformer": "Transformer",
        "pp": "Transformer++",
        "primer-ez-half": "Primer-EZ, half the steps",
        "primer-ez": "Primer-EZ",
        "modern": "modern baseline",
        "modern-primer-ez": "modern baseline, both changes",
    }
    rows = [
        [
            name,
            *(
                f"{final_loss(runs[model]):.3f}" if model in runs else "-"
                for runs in texts.values()
            ),
        ]
        for model, name in names.items()
    ]
    counts = [written_counts(runs["transformer"][0]) for runs in texts.values()]
    rows.append(["counts", *counts])
    heads = {"model": ""} | {f"loss, {text}": "nats" for text in texts}
    return SourcedTable("With a rate that falls to zero", "Our runs", heads, rows)


def savings_if_annealed(runs: Runs, over: str = "transformer") -> list[float]:
    """Return what Primer-EZ saves over a model for each seed, in runs whose rate falls to zero.

    A point before the end of such a run is not the end of a shorter one. So the compute at which Primer-EZ
    ends with the model's loss is interpolated between its runs of two lengths, in its logarithm. Raises
    `ValueError` if a loss of the model is outside of theirs, or the models differ in their seeds.
    """
    factors = []
    lengths = [runs[model] for model in (over, "primer-ez-half", "primer-ez")]
    for each in lengths:
        check_seeds(each, runs[over])
    for other, half, full in zip(*lengths, strict=True):
        target, short, long = map(last_loss, (other, half, full))
        if not long <= target <= short or long == short:
            raise ValueError(
                f"a loss of {target:.3f} is not within {long:.3f} to {short:.3f}"
            )
        share = (short - target) / (short - long)
        spent, least, most = (run["multiply_adds"][-1] for run in (other, half, full))
        factors.append(spent / (least * (most / least) ** share))
    return factors


def rate_table() -> SourcedTable:
    """Return rates and speed-up factors by the length of the runs in which the rates were chosen."""
    of_rates = read_rates()
    rows = [
        [
            name,
            *(f"{runs[model][0]['rate']:g}" for runs in of_rates.values()),
            *(written_savings(runs, model) for runs in of_rates.values()),
        ]
        for model, name in WITH_PRIMER.items()
    ]
    heads = {"model": ""}
    for what, unit in (("rate", ""), ("saves", "factor")):
        heads |= {f"{what}, chosen in {tuned:,} steps": unit for tuned in of_rates}
    return SourcedTable(
        "Rates chosen in longer runs, on characters", "Our runs", heads, rows
    )


def loss_of_counts(run: Measured) -> float:
    """Return the loss of the best counts of what a run read, on what its final loss was measured on."""
    reading = "whole" if "whole" in run else "windows"
    return best_counts(run["data"], run["steps"][-1], reading)[1]


def below_counts(runs: Sequence[Measured]) -> float:
    """Return by how many nats the mean final loss of runs is below the counts; negative if it is above."""
    return loss_of_counts(runs[0]) - statistics.fmean(map(last_loss, runs))


def place(runs: Sequence[Measured]) -> str:
    """Write how far runs end below or above the counts, such as "0.03 nats above"."""
    nats = below_counts(runs)
    return f"{abs(nats):.3f} nats {'below' if nats > 0 else 'above'}"


def written_counts(run: Measured) -> str:
    """Write the loss of the best counts of what a run read."""
    return f"{loss_of_counts(run):.3f}"


def loss_table() -> SourcedTable:
    """Return the final losses in each setting, in nats per character, next to those of counts."""
    rows = [
        [
            *setting,
            extent([len(each) for each in runs.values()]),
            written_counts(runs["transformer"][0]),
            *(written_mean(runs, model) for model in MODELS),
        ]
        for setting, runs in read_settings().items()
    ]
    heads = {"text": "", "positions": "", "seeds": "", "counts": "nats"}
    heads |= dict.fromkeys(MODELS.values(), "nats")
    return SourcedTable("Final losses per character", "Our runs", heads, rows)


def factor_table() -> SourcedTable:
    """Return the speed-up factors over the Transformer with the same positions."""
    models = [model for model in MODELS if model != "transformer"]
    rows = [
        [*setting, *(written_savings(runs, model) for model in models)]
        for setting, runs in read_settings().items()
    ]
    heads = {"text": "", "positions": ""}
    heads |= dict.fromkeys([MODELS[model] for model in models], "factor")
    return SourcedTable("Speed-up factors, in multiply-adds", "Our runs", heads, rows)


def modern_table() -> SourcedTable:
    """Return what each change of a modern baseline saves over it, and its final loss."""
    runs = read_modern()
    rows = [
        [
            name,
            f"{runs[model][0]['rate']:g}",
            written_mean(runs, model),
            written_savings(runs, model, over="modern"),
        ]
        for model, name in MODERN.items()
    ]
    counts = written_counts(runs["modern"][0])
    rows.append(["counts instead of a model", "", counts, ""])
    heads = {"change": "", "learning rate": "", "final loss": "nats per character"}
    heads |= {"saves": "factor"}
    return SourcedTable(
        "Changes of a modern baseline, on subwords", "Our runs", heads, rows
    )


def of_baselines() -> dict[str, Runs]:
    """Return two baselines with SwiGLU, each with Primer-EZ's changes to it.

    They are on subwords, with rotary positions.
    """
    rotary, today = read_setting("subwords", "rotary"), read_modern()
    return {
        "Transformer++": {"plain": rotary["pp"], "changed": rotary["primer-ez"]},
        "modern baseline": {"plain": today["modern"], "changed": today["primer-ez"]},
    }


def baseline_table() -> SourcedTable:
    """Return what Primer-EZ saves over two baselines with SwiGLU, on subwords, with the same seeds."""
    rows = [
        [
            name,
            str(len(runs["plain"])),
            *(written_mean(runs, model) for model in runs),
            written_savings(runs, "changed", over="plain"),
        ]
        for name, runs in of_baselines().items()
    ]
    heads = {"baseline": "", "seeds": "", "loss": "nats", "Primer-EZ": "nats"}
    heads |= {"saves": "factor"}
    return SourcedTable("Over two baselines, on subwords", "Our runs", heads, rows)


def perplexity_change(runs: Runs, baseline: str, model: str) -> Spread:
    """Return the change of a model's perplexity over a baseline's, in percent."""
    relative = relative_perplexity(runs[baseline], runs[model])
    return Spread.of([each - 100 for each in relative])


def part_table() -> SourcedTable:
    """Return the change of the perplexity by each of Primer's changes, with both positions."""
    every = [read_runs(plan=plan, ends=True) for plan in ("ablation", "today-ablation")]
    rows = [
        [
            name,
            *(
                f"{perplexity_change(runs, baseline, model):+.1f}"
                for baseline, model in (
                    ("transformer", f"with-{part}"),
                    ("primer", f"without-{part}"),
                )
                for runs in every
            ),
        ]
        for part, name in CHANGES.items()
    ]
    heads = {"change": ""} | {
        f"{done}, {positions}": "%"
        for done in ("added", "removed")
        for positions in ("learned", "rotary")
    }
    title = "Effect on perplexity, added to a Transformer or removed from Primer"
    return SourcedTable(title, "Our runs", heads, rows)
