"""The question of the family of plans "today": does it still help, if positions are rotary?

    python -m experiments.measured.settings

prints the answer from the runs recorded so far. Factors are in multiply-adds, and averaged as logarithms.
"""

import math
import statistics
from collections.abc import Sequence

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
from experiments.records.runs import Measured, Runs, models_of, read_ends, read_runs

MODELS = {
    "transformer": "Transformer",
    "squared-relu": "squared ReLU alone",
    "mdha": "MDHA alone",
    "primer-ez": "Primer-EZ",
    "pp": "Transformer++",
}
WITH_PRIMER = MODELS | {"primer": "Primer"}


PLANS = {
    ("characters", "learned"): (("speedup", ""),),
    ("characters", "rotary"): (("today-characters", ""),),
    ("subwords", "learned"): (("today-subwords-positions", "-learned"),),
    ("subwords", "rotary"): (
        ("today-subwords", ""),
        ("today-subwords-positions", "-rotary"),
    ),
    ("code", "rotary"): (("today-second-text", ""),),
}
"""The plans that have a setting's runs, with the end of their models' names there.

A setting is a text and positions.
"""


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
    """Return the runs of the models, each from the plan with the most of them."""
    found: Runs = {}
    for model in MODELS:
        seeds = {
            (plan, model + suffix): models_of(plan).get(model + suffix, 0)
            for plan, suffix in PLANS[text, positions]
        }
        plan, own = max(seeds, key=seeds.__getitem__)
        if seeds[plan, own]:
            found[model] = read_runs(plan, [own])[own]
    return found


def read_settings() -> dict[tuple[str, str], Runs]:
    """Return the runs of each setting that has any."""
    every = {setting: read_setting(*setting) for setting in PLANS}
    return {setting: runs for setting, runs in every.items() if runs}


def read_kinds() -> dict[str, Runs]:
    """Return the runs of the Transformer and Primer-EZ with each kind of positions, on characters."""
    pair = ("transformer", "primer-ez")
    runs = read_runs(
        "today-positions", [f"{model}-{kind}" for kind in KINDS for model in pair]
    )
    return {kind: {model: runs[f"{model}-{kind}"] for model in pair} for kind in KINDS}


def read_modern() -> Runs:
    """Return the runs of the modern baseline and of its changes, of MDHA with a second rate as well."""
    with_their_rate = read_runs("today-modern-same-rate")["mdha"]
    return read_runs("today-modern") | {"mdha-same-rate": with_their_rate}


def savings(runs: Runs, model: str, over: str = "transformer") -> list[float]:
    """Return the factors of a model over the Transformer, or another one, for each seed."""
    baseline = runs.get(over, [])
    return seed_factors(baseline, runs.get(model, []), "multiply_adds")


def growth_within(runs: Runs, model: str) -> list[float]:
    """Return how many times a model's factor grows from a quarter of its run to the end, for each seed.

    The early factor is that over a Transformer that stops at a quarter.
    """
    quarter = len(runs["transformer"][0]["steps"]) // 4
    early = [until(run, quarter) for run in runs["transformer"]]
    at_quarter = savings({"transformer": early, model: runs[model]}, model)
    pairs = zip(savings(runs, model), at_quarter, strict=True)
    return [end / begin for end, begin in pairs]


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


def read_rates() -> tuple[Runs, Runs]:
    """Return the runs with rates chosen in short runs, and in long ones, on characters.

    Four of the six models chose the same rate in both, so their runs are the same.
    """
    shorter = read_runs("today-characters", WITH_PRIMER)
    return shorter, shorter | read_runs("today-rates", ["squared-relu", "primer-ez"])


def read_lengths() -> dict[int, Runs]:
    """Return the runs with rotary positions on characters by number of steps, of the seeds that all have.

    A model has the same learning rate in both.
    """
    longer = read_runs("today-longer", ["transformer", "mdha", "primer-ez"])
    longer |= read_runs("today-longer-same-rate")  # of the squared ReLU
    longer |= read_runs("today-longer-others")
    seeds = {run["seed"] for run in longer["transformer"]}
    shorter = read_setting("characters", "rotary")
    shorter |= {model: read_rates()[1][model] for model in ("primer-ez", "primer")}
    shorter = {
        model: [run for run in shorter[model] if run["seed"] in seeds]
        for model in longer
    }
    return {runs["transformer"][0]["steps"][-1]: runs for runs in (shorter, longer)}


def length_table() -> SourcedTable:
    """Return the final losses and speed-up factors of the models by number of steps."""
    of_steps = read_lengths()
    rows = [
        [
            name,
            *(
                f"{statistics.fmean(map(last_loss, runs[model])):.3f}"
                for runs in of_steps.values()
            ),
            *(
                "" if model == "transformer" else written(savings(runs, model))
                for runs in of_steps.values()
            ),
        ]
        for model, name in WITH_PRIMER.items()
    ]
    counts = [written_counts(runs["transformer"][0]) for runs in of_steps.values()]
    rows.append(["counts", *counts, *("" for _ in counts)])
    heads = {"model": ""}
    heads |= {f"loss, {steps:,} steps": "nats" for steps in of_steps}
    heads |= {f"saves, {steps:,} steps": "factor" for steps in of_steps}
    return SourcedTable("Short and long runs, on characters", "Our runs", heads, rows)


ANNEALED = {
    "characters": ("today-longer-annealed", "today-longer-annealed-others"),
    "subwords": ("today-annealed", "today-annealed-modern"),
}
"""The plans whose rate falls to zero. The first of a text has another, of half as many steps."""


def read_annealed(data: str = "characters") -> Runs:
    """Return the ends of the runs whose rate falls to zero: of Primer-EZ also those of half as many steps."""
    plans = ANNEALED[data]
    runs = {m: seeds for plan in plans for m, seeds in read_ends(plan).items()}
    return runs | {"primer-ez-half": read_ends(f"{plans[0]}-half")["primer-ez"]}


def annealed_table() -> SourcedTable:
    """Return the final losses of the runs whose rate falls to zero."""
    texts = {data: read_annealed(data) for data in ANNEALED}
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
    heads = {"model": ""} | {f"loss, {data}": "nats" for data in texts}
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
    shorter, longer = read_rates()
    rows = [
        [
            WITH_PRIMER[model],
            *(f"{runs[model][0]['rate']:g}" for runs in (shorter, longer)),
            *(
                "" if model == "transformer" else written(savings(runs, model))
                for runs in (shorter, longer)
            ),
        ]
        for model in longer
    ]
    heads = {"model": ""}
    for what, unit in (("rate", ""), ("saves", "factor")):
        heads |= {
            f"{what}, chosen in {steps} steps": unit for steps in ("300", "1,200")
        }
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
            *(
                f"{statistics.fmean(map(last_loss, runs[model])):.3f}"
                if model in runs
                else ""
                for model in MODELS
            ),
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
        [*setting, *(written(savings(runs, model)) for model in models)]
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
            f"{statistics.fmean(map(last_loss, runs[model])):.3f}",
            "" if model == "modern" else written(savings(runs, model, over="modern")),
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


def of_baselines() -> dict[str, tuple[Sequence[Measured], Sequence[Measured]]]:
    """Return runs of two baselines with SwiGLU and of Primer-EZ's changes to them.

    They are on subwords, with rotary positions, and of the seeds that all have.
    """
    rotary, today = read_setting("subwords", "rotary"), read_runs("today-modern")
    pairs = {
        "Transformer++": (rotary["pp"], rotary["primer-ez"]),
        "modern baseline": (today["modern"], today["primer-ez"]),
    }
    seeds = set.intersection(
        *({run["seed"] for run in runs} for pair in pairs.values() for runs in pair)
    )
    return {
        name: (
            [run for run in plain if run["seed"] in seeds],
            [run for run in changed if run["seed"] in seeds],
        )
        for name, (plain, changed) in pairs.items()
    }


def saved_over_baselines() -> dict[str, list[float]]:
    """Return what Primer-EZ saves over each of two baselines with SwiGLU, a factor per seed."""
    return {
        name: seed_factors(plain, changed, "multiply_adds")
        for name, (plain, changed) in of_baselines().items()
    }


def baseline_table() -> SourcedTable:
    """Return what Primer-EZ saves over two baselines with SwiGLU, on subwords, with the same seeds."""
    saved = saved_over_baselines()
    rows = [
        [
            name,
            str(len(plain)),
            *(
                f"{statistics.fmean(map(last_loss, runs)):.3f}"
                for runs in (plain, changed)
            ),
            written(saved[name]),
        ]
        for name, (plain, changed) in of_baselines().items()
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
    wanted = ["transformer", "primer"]
    wanted += [f"{done}-{part}" for part in CHANGES for done in ("with", "without")]
    every = [read_ends(plan, wanted) for plan in ("ablation", "today-ablation")]
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


def main() -> None:
    tables = (
        loss_table,
        factor_table,
        rate_table,
        length_table,
        modern_table,
        part_table,
    )
    print(*(table() for table in tables), sep="\n\n")


if __name__ == "__main__":
    main()
