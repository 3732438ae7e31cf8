r"""
# Larger and smaller

Three models at five widths each: which width is best for a budget, and how much is saved at the best width?

{doc}`ours` trains every model at one size. But a budget leaves the size open: for the same compute, a small
model reads more text, and a large one learns more from each token. Do Primer-EZ and Primer still save when
each architecture has its best size? And does the saving last as budgets grow?

In short: Primer-EZ does with both kinds of positions, and Primer with a learned table, the only one that it
was tried with here. Three seeds do not show whether the saving changes with the budget. With rotary
positions, Primer-EZ at its best width needs {value}`f"{rotary_saves.mean:.2f}"` times fewer
{term}`multiply-adds` than the Transformer at its own (95% {term}`confidence interval`
{value}`rotary_saves.between()`), as the mean over the budgets. That is on average more than at one width, but
three seeds show no difference. The best Transformer ends {value}`rotary_ends["transformer"]` a table of
counts of what it read ({doc}`/labml_primer/training/counting`), Primer-EZ {value}`rotary_ends["primer-ez"]`
them.

With learned absolute positions, it needs {value}`f"{saves['multiply_adds', 'primer-ez'].mean:.1f}"` times
fewer multiply-adds ({value}`saves['multiply_adds', 'primer-ez'].between(".1f")`) and
{value}`f"{saves['seconds', 'primer-ez'].mean:.1f}"` times less time, but of a training that ends before it
knows more than the counts: all Transformers end at least {value}`closest` them, and the best two models,
Primer-EZ and Primer with a width of 64, end at them ({value}`best_end` and {value}`next_end`). The models are
32 to 128 wide; {doc}`method` explains the frontiers, fits and intervals.

The paper sweeps sizes for these questions (Figure 7). It finds that at the best size for each budget, the
loss follows a power law of the compute, and that one architecture needs a fixed factor less than another.
{doc}`paper` derives the consequences.

Source: {cite:t}`so2021primer`, section 4.1 and appendix A.9, Figures 7 and 8; {cite:t}`kaplan2020scaling`.
"""

import statistics

from experiments.measured.analysis import (
    MeanFactor,
    ahead,
    final_loss,
    interval,
    last_loss,
    over_seeds,
    seed_factors,
    setting,
    speedup,
    times_as_large,
)
from experiments.measured.figures import draw_counts
from experiments.measured.scaling import (
    WIDTHS,
    best_width,
    budgets_up_to,
    frontier,
    full_budget,
    loss_at,
    over_budgets,
    power_law,
    read_sizes,
    saved,
    savings_at_budgets,
    shift,
)
from experiments.measured.settings import below_counts, place
from experiments.measured.tables import SourcedTable
from experiments.records.query import read_runs

MODELS = {
    "transformer": ("Transformer", "C5"),
    "primer-ez": ("Primer-EZ", "C0"),
    "primer": ("Primer", "C3"),
}
COSTS = {"multiply_adds": ("trillion multiply-adds", 1e12), "seconds": ("minutes", 60)}


if __name__ == "__main__":
    # How many times less compute (left) and time (right) Primer-EZ (teal) and Primer (plum) need for the loss
    # that the Transformer reaches at each budget. All three have the best of five widths and a learned table
    # of positions. Bands are 95% confidence intervals. A horizontal line would be the same saving at every
    # budget.
    sweep = read_sizes(MODELS, plan="scaling")
    recorded = [runs for sizes in sweep.values() for runs in sizes.values()]
    best_end, next_end = (place(sweep[model][64]) for model in ("primer-ez", "primer"))
    closest = place(max(sweep["transformer"].values(), key=below_counts))
    reach = {
        (model, width)
        for model, sizes in sweep.items()
        for width, runs in sizes.items()
        if below_counts(runs) > 0
    }
    assert reach == {("primer-ez", 64)}, "all others end above the counts"
    ends = {cost: full_budget(sweep, cost) for cost in COSTS}
    budgets = {cost: budgets_up_to(end, 2) for cost, end in ends.items()}
    fronts = {
        cost: {model: frontier(sweep[model], budgets[cost], cost) for model in MODELS}
        for cost in COSTS
    }
    from_early_on = {
        cost: {
            model: frontier(sweep[model], budgets_up_to(end, 4.5), cost)
            for model in MODELS
        }
        for cost, end in ends.items()
    }
    at_budgets = {
        (cost, model): savings_at_budgets(
            fronts[cost]["transformer"], from_early_on[cost][model]
        )
        for cost in COSTS
        for model in ("primer-ez", "primer")
    }
    saves = {
        key: MeanFactor.of(over_budgets(factors)) for key, factors in at_budgets.items()
    }
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained", sharey=True)
    for ax, (cost, (unit, size)) in zip(axes, COSTS.items(), strict=True):
        spent = [budget / size for budget in budgets[cost]]
        for model in ("primer-ez", "primer"):
            name, colour = MODELS[model]
            factors = list(map(MeanFactor.of, at_budgets[cost, model]))
            middle, low, high = (
                [getattr(factor, end) for factor in factors]
                for end in ("mean", "low", "high")
            )
            ax.plot(spent, middle, color=colour, lw=1.3, label=name)
            ax.fill_between(spent, low, high, color=colour, alpha=0.12, lw=0)
        ax.set(xlabel=f"{unit} of the Transformer", xscale="log", yscale="log")
        ticks = [2, 3, 4, 5, 6] if cost == "multiply_adds" else [1.5, 2, 3, 4]
        ax.set_xticks(ticks, list(map(str, ticks)))
        ax.set_yticks([1, 2, 3, 4, 6, 8], ["1", "2", "3", "4", "6", "8"])
        ax.minorticks_off()
    axes[0].set(ylabel="times less")
    axes[1].legend(frameon=False)
    words = f"mean and 95% interval of {setting(recorded)}"
    fig.suptitle(words, fontsize="medium")
    plt.show()
    # The table has the means over all budgets.
    from IPython.display import display

    rows = [
        [
            MODELS[model][0],
            COSTS[cost][0].split()[-1],
            f"{saving.mean:.2f}",
            saving.between(),
        ]
        for (cost, model), saving in saves.items()
    ]
    heads = dict.fromkeys(("model", "cost", "times less", "95% interval"), "")
    display(SourcedTable("Saving at the best width", "Our runs", heads, rows))
    five = read_runs(plan="speedup", model=MODELS)  # with five seeds
    at_128 = [speedup(five["transformer"], five["primer-ez"], cost) for cost in COSTS]
    for (cost, model), saving in saves.items():
        one_width = speedup(five["transformer"], five[model], cost)
        assert saving.mean > one_width.mean, "choosing the size does not reduce it"
    # At one size, {doc}`ours` has factors of {value}`f"{at_128[0].mean:.1f}"` in multiply-adds and
    # {value}`f"{at_128[1].mean:.1f}"` in time for Primer-EZ, so choosing the size does not reduce the saving.
    # Primer saves less on average, but the seeds do not distinguish the two. The paper reports a constant
    # saving at the best sizes (Figure 7), and a growing one at a fixed size (Figure 9).


if __name__ == "__main__":
    # ## With rotary positions
    #
    # The Transformer and Primer-EZ once more, with rotary positions, as most models have today. Left, the
    # loss of the best width at each budget, and the loss of counting what the models of width 48 read. Right,
    # how many times less compute Primer-EZ needs for the Transformer's loss: each seed as a thin line, and
    # their mean. The broken line is the mean with the learned table.
    rotary = read_sizes(
        ["transformer", "primer-ez"],
        text="characters",
        positions="rotary",
        steps=[7200, 7440, 4410, 2070, 1200],
        tuned=[1860, 1200],
        seeds=3,
    )
    seeds = len(rotary["transformer"][64])
    end = full_budget(rotary, "multiply_adds")
    to_spend = budgets_up_to(end, 2)
    rotary_fronts = {
        model: frontier(rotary[model], to_spend, "multiply_adds") for model in rotary
    }
    early = frontier(rotary["primer-ez"], budgets_up_to(end, 4.5), "multiply_adds")
    by_budget = savings_at_budgets(rotary_fronts["transformer"], early)
    rotary_saves = MeanFactor.of(over_budgets(by_budget))
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    spent = [budget / 1e12 for budget in to_spend]
    lines = []
    for model, front in rotary_fronts.items():
        name, colour = MODELS[model]
        means = over_seeds(front, statistics.fmean)
        lines += left.plot(spent, means, color=colour, lw=1.3, label=name)
        ends_of_band = (over_seeds(front, combine) for combine in (min, max))
        left.fill_between(spent, *ends_of_band, color=colour, alpha=0.12, lw=0)
    draw_counts(left, rotary["transformer"][48][0])
    left.set(ylabel="loss, nats per character")
    left.legend(handles=lines, frameon=False)
    for of_seed in zip(*by_budget, strict=True):
        right.plot(
            spent, of_seed, color="C0", lw=0.6, alpha=0.6, label="rotary, a seed"
        )
    middle = [statistics.geometric_mean(each) for each in by_budget]
    lines = right.plot(spent, middle, color="C0", lw=1.3, label="rotary")
    spent = [budget / 1e12 for budget in budgets["multiply_adds"]]
    learned = at_budgets["multiply_adds", "primer-ez"]
    middle = [statistics.geometric_mean(each) for each in learned]
    lines += right.plot(spent, middle, "--", color="C0", lw=1.3, label="learned table")
    right.set(ylabel="times less", yscale="log", ylim=(0.95, 12))
    right.set_yticks([1, 1.5, 2, 3, 4, 6], ["1", "1.5", "2", "3", "4", "6"])
    right.legend(handles=lines, frameon=False)
    for ax in (left, right):
        ax.set(xscale="log", xlabel="multiply-adds, trillions")
        ax.set_xticks([2, 3, 4, 5, 6], ["2", "3", "4", "5", "6"])
        ax.minorticks_off()
    words = setting([runs for sizes in rotary.values() for runs in sizes.values()])
    fig.suptitle(f"mean and range of {words}", fontsize="medium")
    plt.show()
    # At the best width for each budget, Primer-EZ needs {value}`f"{rotary_saves.mean:.2f}"` times fewer
    # multiply-adds (95% confidence interval {value}`rotary_saves.between()`, {value}`seeds` seeds). At the
    # last budget it is {value}`f"{at_last:.2f}"`, and at a width of 128, with the same budget and seeds,
    # {value}`f"{at_one_width:.2f}"`. So the saving is not due to a width that suits the Transformer badly.
    # Nor does it need a wide model: over a Transformer with a width of 32, Primer-EZ with that width saves
    # {value}`at_32`. Over these budgets, the last four times the first, the factor becomes
    # {value}`f"{rotary_growth:.2f}"` times as large: no change is shown. At the last budget, the Transformer
    # is {value}`rotary_ends["transformer"]` the counts of what it read, and Primer-EZ
    # {value}`rotary_ends["primer-ez"]` them. The table has the best width at each budget.
    wide = rotary["transformer"][128], rotary["primer-ez"][128]
    at_one_width = speedup(*wide, "multiply_adds")
    at_last = MeanFactor.of(by_budget[-1])
    narrow = rotary["transformer"][32], rotary["primer-ez"][32]
    at_32 = f"{speedup(*narrow, 'multiply_adds'):.2f}"
    rotary_growth = times_as_large(by_budget[-1], by_budget[0])
    assert rotary_growth.includes_one, "no change is shown"
    at_one = seed_factors(*wide, "multiply_adds")
    more = times_as_large(over_budgets(by_budget), at_one)
    assert rotary_saves.low > 1 and more.mean > 1, "on average no less than at one"
    assert more.includes_one, "three seeds show no difference"
    for widths in rotary.values():
        for width, runs in widths.items():
            part = runs[0]["multiply_adds"][-1] / (3.2e12 if width == 32 else 6.4e12)
            assert len(runs) == 3 and abs(part - 1) < 0.06, "the same compute"
        halves = zip(widths[64], widths[128], strict=True)
        assert all(last_loss(half) < last_loss(full) for half, full in halves)
        assert below_counts(widths[64]) > 0, "the best models end below the counts"
    rotary_ends = {
        model: place(sizes[best_width(sizes, end, "multiply_adds")])
        for model, sizes in rotary.items()
    }
    rows = [
        [
            f"{budget / 1e12:.1f} trillion multiply-adds",
            *(
                str(best_width(sizes, budget, "multiply_adds"))
                for sizes in rotary.values()
            ),
        ]
        for budget in to_spend[::4]
    ]
    heads = dict.fromkeys(("budget", "Transformer", "Primer-EZ"), "")
    display(SourcedTable("Best of five widths, rotary", "Our runs", heads, rows))

    # ## Which width is best?
    #
    # The loss by compute, with a thin line for each width and the range of its seeds. The broad line is the
    # best width at every budget. The thin line is the loss of counting what the models of width 32 read,
    # nearly all training plays.
    fig, axes = plt.subplots(1, 3, figsize=(7, 3.6), layout="constrained", sharey=True)
    for ax, (model, (name, colour)) in zip(axes, MODELS.items(), strict=True):
        for width, runs in sweep[model].items():
            spent = [each / 1e12 for each in runs[0]["multiply_adds"]]
            least, means, most = (
                over_seeds(runs, combine) for combine in (min, statistics.fmean, max)
            )
            label = f"{name}, width {width}"
            ax.plot(spent, means, color=colour, lw=0.6, label=label)
            ax.fill_between(spent, least, most, color=colour, alpha=0.1, lw=0)
            # Label each line where it enters the axes.
            first = next(i for i, c in enumerate(spent) if c > 0.8 and means[i] < 2.2)
            ax.annotate(
                str(width),
                (spent[first], means[first]),
                xytext=(3, -9 if width == 32 else 2),
                textcoords="offset points",
                fontsize="small",
                color=colour,
            )
        ax.plot(
            [budget / 1e12 for budget in budgets["multiply_adds"]],
            over_seeds(fronts["multiply_adds"][model], statistics.fmean),
            color=colour,
            lw=3,
            alpha=0.4,
            label=f"{name}, the best",
        )
        draw_counts(ax, sweep["transformer"][32][0])
        ax.set(title=name, xscale="log", xlim=(0.75, 7))
        ax.set_xticks([1, 2, 4], ["1", "2", "4"])
        ax.minorticks_off()
    axes[0].set(ylabel="loss, nats per character", ylim=(1.55, 2.25))
    fig.supxlabel("multiply-adds, trillions", fontsize="medium")
    fig.suptitle(f"mean and range of {setting(recorded)}", fontsize="medium")
    plt.show()
    # The best width at each budget:
    rows = [
        [f"{budget / COSTS[cost][1]:.1f} {COSTS[cost][0]}"]
        + [str(best_width(sweep[model], budget, cost)) for model in MODELS]
        for cost in COSTS
        for budget in budgets[cost][::4]
    ]
    heads = dict.fromkeys(("budget", *(name for name, _ in MODELS.values())), "")
    narrowest = sweep["transformer"][32]
    within = [
        budget
        for budget in budgets["multiply_adds"]
        if budget <= min(run["multiply_adds"][-1] for run in narrowest)
    ]

    def narrow_loss(model: str, budget: float) -> float:  # with a width of 32
        runs = sweep[model][32]
        return statistics.fmean(loss_at(run, budget, "multiply_adds") for run in runs)

    for budget in within:
        assert best_width(sweep["transformer"], budget, "multiply_adds") == 32
    lowest = min(narrow_loss("transformer", budget) for budget in within)
    for model in ("primer-ez", "primer"):
        lower_budgets = budgets_up_to(budgets["multiply_adds"][0], 2)[:-1]
        enough = next(c for c in lower_budgets if narrow_loss(model, c) <= lowest)
        assert best_width(sweep[model], enough, "multiply_adds") == 32
    for widths in sweep.values():
        for budget in budgets["seconds"]:
            assert 32 < best_width(widths, budget, "seconds") < 128, "in time"
    display(SourcedTable("Best of five widths", "Our runs", heads, rows))
    # Counted in multiply-adds, a width of 32 is best for the Transformer up to the last budget that its runs
    # of that width reach. The Primers reach the same losses at width 32 too, at lower budgets. Narrower
    # models might be better still, and would change the factors. Counted in time, 32 is not best at any
    # budget: on this CPU, narrow models perform fewer multiply-adds per minute.
    #
    # The width of 128 in {doc}`ours` is too large for its budget. With it, the Transformer ends at
    # {value}`f"{final_loss(sweep['transformer'][128]).mean:.2f}"` nats per character; with a width of 48 and
    # the same multiply-adds, it ends at {value}`f"{final_loss(sweep['transformer'][48]).mean:.2f}"`.

    # ## All runs
    #
    # All models have four blocks with four heads, and a feed-forward layer four times as wide as the model.
    # Each width trains for {value}`f"{most_spent / 1e12:.1f}"` trillion multiply-adds, the narrowest for half
    # of that. Primer-EZ has up to
    # {value}`f"{most_more:.0%}"` more parameters than the Transformer of its width.
    counts = {
        model: [sweep[model][width][0]["parameters"] for width in WIDTHS]
        for model in ("transformer", "primer-ez")
    }
    most_spent = max(
        runs[0]["multiply_adds"][-1] for runs in sweep["transformer"].values()
    )
    most_more = max(more / few - 1 for few, more in zip(*counts.values(), strict=True))
    for widths in sweep.values():
        for width, runs in widths.items():
            part = runs[0]["multiply_adds"][-1] / (3.2e12 if width == 32 else 6.4e12)
            assert len(runs) == 3 and abs(part - 1) < 0.06, "half for the narrowest"
    for width, count in ((32, 1), (64, 2), (128, 0)):  # as The paper's numbers says
        two = {model: sweep[model][width] for model in ("primer", "primer-ez")}
        assert ahead(two, "primer", "primer-ez").count(True) == count
    every_width = []
    for width in WIDTHS:
        for model, (name, _) in MODELS.items():
            runs = sweep[model][width]
            every_width.append(
                {
                    "model": name,
                    "width": str(width),
                    "parameters": f"{runs[0]['parameters'] / 1e3:.0f}",
                    "seeds": str(len(runs)),
                    "rate": f"{runs[0]['rate']:.3f}",
                    "steps": f"{runs[0]['steps'][-1]:,}",
                    "multiply-adds": f"{runs[0]['multiply_adds'][-1] / 1e12:.1f}",
                    "loss": f"{final_loss(runs):.3f}",
                }
            )
    units = {"parameters": "thousands", "multiply-adds": "trillions", "loss": "nats"}
    source = "The same compute, half of it for width 32"
    display(SourcedTable.of("Five widths", source, every_width, units))
    # ## Is it a power law?
    #
    # The best of the five widths at every budget as points, and the fitted laws $l = a\,c^{-k}$ as lines.
    # Both axes are logarithmic. In the paper the lines are roughly parallel.
    laws, slopes = {}, {}
    for model in MODELS:
        fitted = map(power_law, fronts["multiply_adds"][model])
        scales, exponents = zip(*fitted, strict=True)
        laws[model] = statistics.geometric_mean(scales), statistics.fmean(exponents)
        slopes[model] = interval(exponents)
    worse, *better = fronts["multiply_adds"].values()
    pairs = {
        model: list(zip(worse, front, strict=True))
        for model, front in zip(("primer-ez", "primer"), better, strict=True)
    }
    shifts = {
        model: MeanFactor.of([shift(*pair) for pair in each])
        for model, each in pairs.items()
    }
    # The lines have different slopes if the Transformer's exponent differs from theirs.
    steeper = {
        model: interval(
            [power_law(first)[1] - power_law(second)[1] for first, second in each]
        )
        for model, each in pairs.items()
    }
    within_noise = (low < 0 < high for low, high in steeper.values())
    assert all(within_noise), "three seeds show no difference in slope"
    fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    spent = [budget / 1e12 for budget in budgets["multiply_adds"]]
    lines = []
    for model, (name, colour) in MODELS.items():
        a, k = laws[model]
        for run in fronts["multiply_adds"][model]:
            label = f"{name}, a seed"
            ax.plot(spent, run["loss"], ".", color=colour, ms=4, alpha=0.5, label=label)
        law = [a * c**-k for c in spent]
        lines += ax.plot(spent, law, color=colour, lw=1.3, label=name)
    draw_counts(ax, sweep["transformer"][32][0])
    ax.set(
        title=f"each of {setting(recorded)}",
        xlabel="multiply-adds, trillions",
        ylabel="loss, nats per character",
        xscale="log",
        yscale="log",
    )
    ax.set_xticks([2, 3, 4, 5, 6], ["2", "3", "4", "5", "6"])
    ax.set_yticks([1.6, 1.7, 1.8, 1.9, 2], ["1.6", "1.7", "1.8", "1.9", "2.0"])
    ax.minorticks_off()
    ax.legend(handles=lines, frameon=False)
    plt.show()
    # The exponents, the shifts $b$ of the Primers' lines, and the Transformer's exponent minus theirs, with
    # 95% confidence intervals:
    rows = []
    for model, (name, _) in MODELS.items():
        exponent = (
            f"{laws[model][1]:.4f} ({slopes[model][0]:.4f} to {slopes[model][1]:.4f})"
        )
        shifted = difference = "-"
        if model in shifts:
            shifted = f"{shifts[model]:.2f}"
            difference = "{:.4f} to {:.4f}".format(*steeper[model])
        rows.append([name, exponent, shifted, difference])
    heads = dict.fromkeys(("model", "exponent k", "shift b", "difference in k"), "")
    display(SourcedTable("Fitted power laws", "Our runs", heads, rows))
    # The lines may be parallel: three seeds show no difference in slope. But they do not determine a slope
    # well. Within its interval, the Transformer's may be
    # {value}`f"{slopes['transformer'][0] / laws['transformer'][1]:.1f}"` to
    # {value}`f"{slopes['transformer'][1] / laws['transformer'][1]:.1f}"` times the fitted one. Since $b$
    # depends on the slopes, Primer-EZ's may be
    # {value}`f"{shifts['primer-ez'].high / shifts['primer-ez'].mean:.1f}"` times larger or smaller than
    # fitted, and Primer's {value}`f"{shifts['primer'].high / shifts['primer'].mean:.1f}"` times. The savings
    # in the first figure assume no law and are more certain.


if __name__ == "__main__":
    # ## Quality against the time of a forward pass
    #
    # A trained model in use needs only forward passes. Each dot is one of the models above. The time is that
    # of reading 16 sequences of 128 characters on one core; {doc}`/benchmarks/speed` says on which machine.
    # Lower and further left is better: on average, every Primer is below every Transformer.
    from experiments.records.timings import ratios_of, values_of

    longer = max(
        *ratios_of("forward_pass", "Primer-EZ", "Transformer"),
        *ratios_of("forward_pass", "Primer", "Transformer"),
    )
    fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    for model, (name, colour) in MODELS.items():
        times = values_of("forward_pass", name)
        last = [final_loss(sweep[model][width]) for width in WIDTHS]
        losses = [each.mean for each in last]
        spread = [each.deviation for each in last]
        ax.plot(times, losses, "o-", ms=4, lw=1, color=colour, label=name)
        ax.errorbar(times, losses, yerr=spread, fmt="none", lw=1, ecolor=colour)
        # The widths are written once: the other models take about as long.
        for width, pace, loss in zip(WIDTHS, times, losses, strict=True):
            if model == "transformer":
                ax.annotate(
                    f"{width}",
                    (pace, loss),
                    xytext=(5, 5),
                    textcoords="offset points",
                    fontsize="small",
                    color=colour,
                )
    draw_counts(ax, sweep["transformer"][32][0])
    ax.set(
        title=f"mean ± deviation of {setting(recorded)}",
        xlabel="time of a forward pass, ms; the numbers are widths",
        ylabel="loss, nats per character",
    )
    by_width = {
        model: {width: final_loss(runs).mean for width, runs in sizes.items()}
        for model, sizes in sweep.items()
    }
    for each in by_width.values():
        assert each[64] < min(each[96], each[128]), "wider ones are no better"
    for model in ("primer-ez", "primer"):
        worst_of_it = max(by_width[model].values())
        assert worst_of_it < min(by_width["transformer"].values()), "every Primer"
    ax.set_ylim(top=2.02)
    ax.legend(frameon=False, ncols=3, loc="upper left")
    plt.show()
    # The forward pass of a Primer takes at most {value}`f"{longer - 1:.0%}"` longer than that of a
    # Transformer of its width. Figure 8 of the paper makes this comparison. Widths above 64 are slower and no
    # better: at this compute, such models had too few steps.

    # ## Limits
    #
    # *Positions.* Primer, the savings in time and the fitted laws are with a learned table of absolute
    # positions only.
    #
    # *A law.* Our budgets differ by a factor of four, while the paper's models differ by 17 in parameters
    # alone. On so short a range, many curves look like a straight line. A law of this form also falls to
    # zero, and the loss of a text does not.
    #
    # *Other shapes.* Only the width varies here; the paper varies depth and the feed-forward layer too.
    #
    # *Learning rates.* Each was chosen after 400 steps, which is 1/3 of the run for the widest models and
    # 1/18 for the narrowest. At 400 steps, the Transformers' losses hardly depend on the rate, so their rates
    # may be chosen less well than the Primers'. With rotary positions, rates were chosen in runs of a quarter
    # of the longest. The intervals include the noise of the seeds only.
    #
    # *Data.* The two narrowest models read three times as many characters as the plays have, the widest half
    # as many.
    #
    # {doc}`method` lists the limits of scale, tuning and hardware.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} How much does the right size save?
    # The models of {doc}`ours` are 128 wide. How many times fewer multiply-adds, and how much less time, does
    # the best width of each architecture need for the loss that those end with?
    # :::
    # :::{solution}
    # Divide the budget that they spent by the one at which the frontier has the same loss. In multiply-adds,
    # the right size saves the Transformer a factor of
    # {value}`at_right_width["transformer", "multiply_adds"]`, on average more than Primer-EZ's changes save
    # at a width of 128, {value}`changes_at_128` with the same seeds. But the widths were chosen on these
    # runs. In time it saves less, because narrow models are less efficient on this CPU. For the Transformer
    # no saving in time is shown.
    # :::
    rows, at_right_width = [], {}
    for cost in COSTS:
        for model, (name, _) in MODELS.items():
            both = zip(sweep[model][128], from_early_on[cost][model], strict=True)
            less = MeanFactor.of(
                [saved(run[cost][-1], run["loss"][-1], front) for run, front in both]
            )
            unit = COSTS[cost][0].split()[-1]
            rows.append([name, unit, f"{less.mean:.2f}", less.between()])
            at_right_width[model, cost] = f"{less:.2f}"
            assert cost == "seconds" or less.low > 1
    wide = sweep["transformer"][128], sweep["primer-ez"][128]
    changes_at_128 = f"{speedup(*wide, 'multiply_adds'):.2f}"
    heads = dict.fromkeys(("model", "cost", "times less", "95% interval"), "")
    display(SourcedTable("The best width instead of 128", "Our runs", heads, rows))

    # ## In short
    #
    # - With rotary positions, Primer-EZ saves a factor of {value}`f"{rotary_saves:.2f}"` at the best width
    #   for each budget, on average no less than at one width; three seeds show no difference.
    # - With learned absolute positions, both Primers save on average more at the best width than at one.
    # - Three seeds and a factor of four in budgets do not show whether the saving grows.
    # - Choosing the right width saves the Transformer on average more multiply-adds than Primer-EZ's changes
    #   do at a width of 128. In time it saves less: {value}`at_right_width["primer-ez", "seconds"]` for
    #   Primer-EZ and {value}`at_right_width["primer", "seconds"]` for Primer. For the Transformer no saving
    #   is shown.
    #
    # {doc}`transfer` puts the changes into other kinds of models.
