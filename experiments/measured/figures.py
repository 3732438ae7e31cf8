"""Figures and tables that several measured chapters share."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

import torch

from experiments.measured.analysis import (
    Difference,
    difference,
    final_loss,
    last_loss,
    over_seeds,
    relative_perplexity,
    setting,
    times_less,
)
from experiments.measured.tables import SourcedTable
from experiments.records.counts import best_counts
from experiments.records.query import Measured, Runs

# Models of the plan `speedup`: the name in the paper's tables, colour and line. A model that has another
# activation function alone is dotted, one that has another attention alone dashed.
WHOLE_MODELS = {
    "transformer": ("Vanilla Transformer", "C5", "-"),
    "gelu": ("Transformer+GELU", "C5", ":"),
    "pp": ("Transformer++", "C2", "-"),
    "evolved-transformer": ("Evolved Transformer", "C4", "-"),
    "squared-relu": ("Transformer+squared ReLU", "C0", ":"),
    "mdha": ("Transformer+MDHA", "C0", "--"),
    "primer-ez": ("Primer-EZ", "C0", "-"),
    "primer": ("Primer", "C3", "-"),
}


def draw_counts(
    ax: Any, run: Measured, axis: str = "y", reading: str = "windows"
) -> None:
    """Draw a thin line at the loss of counting what a run has read, and name it in the figure.

    `axis` is that of the losses. `reading` says how the plays are read, as for `counts_of`.
    """
    order, loss = best_counts(run["data"], run["steps"][-1], reading)
    label = f"Kneser-Ney, {order}-gram"
    if axis == "y":
        ax.axhline(loss, color="C5", lw=0.8, label=label)
        place, edge = (0.01, loss), ax.get_yaxis_transform()
    else:
        ax.axvline(loss, color="C5", lw=0.8, label=label)
        place, edge = (loss, 0.99), ax.get_xaxis_transform()
    ax.annotate(
        label,
        place,
        xycoords=edge,
        xytext=(0, 2) if axis == "y" else (-2, 0),
        textcoords="offset points",
        annotation_clip=True,  # no name without its line
        ha="left" if axis == "y" else "right",
        va="bottom" if axis == "y" else "top",
        rotation=0 if axis == "y" else 90,
        color="C5",
    )


def dots(ax: Any, at: float, name: str, colour: str, seeds: Sequence[float]) -> None:
    """Draw a hollow dot for each seed and a full one for their mean."""
    label = f"{name}, a seed"
    ax.plot(seeds, [at] * len(seeds), "o", color=colour, mfc="none", ms=4, label=label)
    ax.plot(fmean(seeds), at, "o", color=colour, label=f"{name}, mean")


def draw_by_compute(settings: Mapping[str, Runs]) -> None:
    """Draw the losses of the Transformer and Primer-EZ by compute, with each kind of positions.

    The first kind is dotted, the second solid. The first eighth of the runs is left out.
    """
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 3.9), layout="constrained")
    shown = []
    for (positions, runs), line in zip(settings.items(), (":", "-"), strict=True):
        for model in ("transformer", "primer-ez"):
            name, colour, _ = WHOLE_MODELS[model]
            eighth = len(runs[model][0]["loss"]) // 8
            cost = [each / 1e12 for each in runs[model][0]["multiply_adds"]][eighth:]
            low, middle, high = (
                over_seeds(runs[model], combine)[eighth:]
                for combine in (min, fmean, max)
            )
            label = f"{name}, {positions} positions"
            ax.plot(cost, middle, line, color=colour, lw=1.3, label=label)
            ax.fill_between(cost, low, high, color=colour, alpha=0.15, lw=0)
            shown.append(runs[model])
    draw_counts(ax, shown[0][0])
    fig.suptitle(f"mean and range of {setting(shown)}", fontsize="medium")
    ax.set(xlabel="multiply-adds, trillions", ylabel="loss, nats per character")
    ax.margins(x=0)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    plt.show()


def draw_annealed(not_annealed: Runs, annealed: Runs) -> None:
    """Draw where runs end whose rate falls to zero, next to the curves of runs whose rate does not.

    On a dotted horizontal line, Primer-EZ ends with the loss of the model of that colour.
    """
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
    for model, lengths in (
        ("primer-ez", ["primer-ez-half", "primer-ez"]),
        ("pp", ["pp"]),
        ("transformer", ["transformer"]),
    ):
        name, colour, line = WHOLE_MODELS[model]
        cost = [each / 1e12 for each in not_annealed[model][0]["multiply_adds"]]
        middle = over_seeds(not_annealed[model], fmean)
        half = len(cost) // 2 - 1
        label = f"{name}, not to zero"
        ax.plot(cost[half:], middle[half:], line, color=colour, lw=1, label=label)
        cost = [annealed[each][0]["multiply_adds"][-1] / 1e12 for each in lengths]
        seeds = [[run["loss"][-1] for run in annealed[each]] for each in lengths]
        ax.plot(cost, seeds, "o", color=colour, mfc="none", ms=4)
        means = list(map(fmean, seeds))
        ax.plot(cost, means, "o:", color=colour, label=f"{name}, to zero")
        if model != "primer-ez":
            ax.axhline(means[0], color=colour, ls=":", lw=1)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    draw_counts(ax, annealed["transformer"][0])
    fig.suptitle(f"mean of {setting(annealed.values())}", fontsize="medium")
    ax.set(xlabel="multiply-adds, trillions", ylabel="loss, nats per character")
    ax.set(xscale="log")
    ax.set_xticks([12, 16, 20, 24], ["12", "16", "20", "24"])
    ax.minorticks_off()
    ax.margins(y=0.12)
    plt.show()


def draw_gaps(runs: Runs, models: Sequence[str]) -> None:
    """Draw by how many nats models are below the Transformer with the same seed, by steps.

    Lines are the mean of the seeds, bands their range. The first eighth of the runs is left out.
    """
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    plain = torch.tensor([run["loss"] for run in runs["transformer"]])
    eighth = plain.shape[1] // 8
    for model in models:
        name, colour, line = WHOLE_MODELS[model]
        gaps = plain - torch.tensor([run["loss"] for run in runs[model]])
        steps, gaps = runs[model][0]["steps"][eighth:], gaps[:, eighth:]
        ax.plot(steps, gaps.mean(0), line, color=colour, lw=1.3, label=name)
        low, high = gaps.amin(0), gaps.amax(0)
        ax.fill_between(steps, low, high, color=colour, alpha=0.12, lw=0)
    ax.axhline(0, color="C5", lw=1)
    shown = [runs[model] for model in ("transformer", *models)]
    fig.suptitle(f"mean and range of {setting(shown)}", fontsize="medium")
    ax.set(xlabel="steps", ylabel="nats below the Transformer")
    ax.margins(x=0)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
    plt.show()


def draw(runs: Runs, names: Mapping[str, tuple[str, str]], baseline: str) -> None:
    """Draw the perplexity of models relative to a baseline's, a line for each, the best on top.

    `names` has the name and colour of each model.
    """
    import matplotlib.pyplot as plt

    relative = {
        model: relative_perplexity(runs[baseline], runs[model]) for model in names
    }
    _, ax = plt.subplots(figsize=(7, 0.8 + 0.27 * len(names)), layout="constrained")
    draw_rows(ax, relative, names)
    ax.axvline(100, color="C5", ls=":", lw=1)
    ax.set(
        title=f"mean of {setting([runs[model] for model in names])}",
        xlabel=f"perplexity, {names[baseline][0]} = 100",
    )
    plt.show()


def draw_rows(
    ax: Any,
    values: Mapping[str, Sequence[float]],
    names: Mapping[str, tuple[str, str]],
) -> None:
    """Draw the values of models' seeds as dots, a row for each model, the lowest mean on top."""
    order = sorted(names, key=lambda model: fmean(values[model]))
    for at, model in enumerate(order):
        dots(ax, at, *names[model], values[model])
    ax.set_yticks(range(len(order)), [names[model][0] for model in order])
    ax.set_ylim(len(order) - 0.4, -0.6)


def draw_final_losses(
    runs: Runs, names: Mapping[str, tuple[str, str]], baseline: str, band: float
) -> None:
    """Draw the final losses of models, a line for each, the best on top.

    `names` has the name and colour of each model. Up to `band` from the baseline's mean, it is shaded.
    """
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(7, 0.8 + 0.21 * len(names)), layout="constrained")
    centre = final_loss(runs[baseline]).mean
    ax.axvspan(centre - band, centre + band, color="C5", alpha=0.15, lw=0)
    losses = {model: list(map(last_loss, runs[model])) for model in names}
    draw_rows(ax, losses, names)
    first = runs[baseline][0]
    draw_counts(ax, first, "x", "whole" if "whole" in first else "windows")
    ax.set(
        title=f"mean of {setting([runs[model] for model in names])}",
        xlabel="loss, nats per character",
    )
    plt.show()


def table(
    runs: Runs,
    names: Mapping[str, tuple[str, str]],
    baseline: str,
    source: str,
    comparisons: int,
    cost: str = "multiply_adds",
) -> SourcedTable:
    """Return a table of models: rate, final loss, and how far it is below a baseline's.

    `comparisons` is the number that the page makes. A difference that is more than noise explains also has
    its worth in `cost`.
    """
    rows = []
    for model, (name, _) in names.items():
        seeds = runs[model]
        row = [name, f"{seeds[0]['rate']:g}", f"{final_loss(seeds):.3f}", "", ""]
        if model != baseline:
            found = difference(runs, model, baseline, comparisons)
            worth = times_less(runs, model, baseline, found.nats, cost)
            row[3:] = [f"{found:.3f}", f"{worth:.2f}" if found.shown else "-"]
        rows.append(row)
    other = names[baseline][0]
    columns = {"model": "", "learning rate": "", "loss": "nats"}
    unit = "time" if cost == "seconds" else "compute"
    columns |= {f"below {other}": "nats", "times less": unit}
    return SourcedTable(f"Compared with {other}", source, columns, rows)


def draw_differences(
    ax: Any, rows: Mapping[str, Mapping[str, tuple[str, Difference]]]
) -> None:
    """Draw by how many nats a model ends below others: a row for each name, a dot for each of them.

    Hollow dots are seeds, full ones their mean, and bars the interval. At the dotted line, nothing is gained.
    """
    ax.axvline(0, color="C5", ls=":", lw=1)
    for at, compared in enumerate(rows.values()):
        for place, (label, (colour, found)) in enumerate(compared.items()):
            y = at + 0.3 * (place - (len(compared) - 1) / 2)
            seeds = [y] * len(found.seeds)
            ax.plot(found.seeds, seeds, "o", color=colour, mfc="none", ms=4)
            shown = label if at == 0 else None
            ax.errorbar(
                found.nats, y, xerr=found.limit, fmt="o", color=colour, label=shown
            )
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), list(rows))


def draw_gains(
    found: Mapping[str, Difference], xlabel: str, runs: Iterable[Sequence[Measured]]
) -> None:
    """Draw differences, a row for each; the title describes the `runs` behind them."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(7, 0.7 + 0.28 * len(found)), layout="constrained")
    draw_differences(ax, {what: {"": ("C0", each)} for what, each in found.items()})
    ax.set(xlabel=xlabel)
    ax.set_title(f"each of {setting(list(runs))}", fontsize="medium")
    plt.show()
