r"""
# Our results next to the paper's

Seven models of the paper's Table 4, and the squared ReLU alone, trained again at a size that two CPU cores
can handle, with five seeds each.

The paper says that on its search task, Primer needs less than half of a Transformer's compute. Does that hold
at a size that a reader can check on a CPU within hours?

In short: with a learned table of positions, yes, though in time only on average; with rotary positions, no.
But with a learned table, none of the models gets as far as counting the same text
({doc}`/labml_primer/training/counting`): Primer-EZ ends {value}`at["primer-ez"]` the counts, the Transformer
{value}`at["transformer"]`. So that large factor only says which model learns sooner what a table of counts
knows.

- **With a learned table**, Primer-EZ reaches the Transformer's final loss
  {value}`f"{in_time['primer-ez'].mean:.1f}"` times faster (95% {term}`confidence interval`
  {value}`in_time['primer-ez'].between(".1f")`), and Primer {value}`f"{in_time['primer'].mean:.1f}"` times
  ({value}`in_time['primer'].between(".1f")`). Both save time with every seed.
- **With rotary positions**, as in most models today, Primer-EZ needs {value}`f"{left['primer-ez'].mean:.2f}"`
  times fewer multiply-adds ({value}`left['primer-ez'].between()`) instead of
  {value}`f"{counted['primer-ez'].mean:.2f}"`. For Transformer++ the factor is {value}`f"{left['pp']:.2f}"`,
  so these runs do not show that Primer-EZ is better. For the Evolved Transformer it is
  {value}`f"{left['evolved-transformer']:.2f}"`: no saving is shown.
- **On subwords with rotary positions**, Primer saves the most on average, a factor of
  {value}`f"{on_subwords_left['primer']:.2f}"`; Primer-EZ saves
  {value}`f"{on_subwords_left['primer-ez']:.2f}"` and Transformer++ {value}`f"{on_subwords_left['pp']:.2f}"`.
  Both Primers end below Transformer++ with each seed.

The models have {value}`f"{vanilla[0]['parameters'] / 1e6:.1f}"` million parameters and read
{value}`f"{vanilla[0]['steps'][-1] * 16 * 128 / 1e6:.1f}"` million characters; on subwords, they have
{value}`f"{on_subwords['transformer'][0]['parameters'] / 1e6:.1f}"` million parameters and read as many
{term}`subwords <subword>`. {doc}`method` explains the factors and their intervals. {doc}`sizes` compares the
models at the best size of each.

Source: {cite:t}`so2021primer`, sections 3, 4.1 and A.14, Table 4.
"""

import math
from dataclasses import astuple
from statistics import fmean

from experiments.measured.analysis import (
    MeanFactor,
    critical_difference,
    every_seed,
    factors,
    final_loss,
    final_losses,
    gain,
    over_seeds,
    seed_factors,
    setting,
    speedup,
    until,
)
from experiments.measured.figures import WHOLE_MODELS, draw_counts, draw_factors
from experiments.measured.settings import (
    below_counts,
    growth_within,
    loss_of_counts,
    mean_factor,
    place,
    written,
)
from experiments.measured.tables import SourcedTable
from experiments.paper.tables import SETUPS, theirs
from experiments.records.query import read_runs

__data__ = ("experiments/paper/printed/table_4.json",)


if __name__ == "__main__":
    # The loss on the held-out plays, by compute, with a learned table of positions; lower and further left is
    # better. The dotted line is the Transformer's final loss: Primer-EZ (teal, solid) crosses it after less
    # than half of the compute. The thin line is the loss of counting the text that the models read, which
    # none of them reaches. Bands are the range of the seeds. The first quarter of the runs is left out.
    runs = read_runs(plan="speedup", model=WHOLE_MODELS)
    vanilla = runs["transformer"]
    at = {model: place(seeds) for model, seeds in runs.items()}  # the counts
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for model, seeds in sorted(runs.items(), key=lambda item: -item[1][0]["loss"][-1]):
        name, colour, line = WHOLE_MODELS[model]
        cost = [each / 1e12 for each in seeds[0]["multiply_adds"]]
        low, middle, high = (
            over_seeds(seeds, combine) for combine in (min, fmean, max)
        )
        ax.plot(cost, middle, line, color=colour, lw=1.3, label=name)
        ax.fill_between(cost, low, high, color=colour, alpha=0.15, lw=0)
    ax.axhline(final_loss(vanilla).mean, color="C5", ls=":", lw=1)
    draw_counts(ax, vanilla[0])
    quarter = len(cost) // 4
    losses = [run["loss"] for seeds in runs.values() for run in seeds]
    below_all = loss_of_counts(vanilla[0])
    fig.suptitle(f"mean and range of {setting(runs.values())}", fontsize="medium")
    ax.set(
        xlabel="multiply-adds, trillions",
        ylabel="loss, nats per character",
        xlim=(cost[quarter], cost[-1]),
        ylim=(
            min(below_all, *map(min, losses)) - 0.02,
            max(loss[quarter] for loss in losses),
        ),
    )
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    assert max(map(below_counts, runs.values())) < 0, "none reaches the counts"
    plt.show()

    # ## All factors
    #
    # The final loss of each model with a learned table, our {term}`speed-up factors <speed-up factor>` in
    # time, and the paper's. Ours have the 95% confidence interval in brackets, the paper's the standard
    # deviation. Click on a column's head to sort by it.
    #
    # :::{deviation} the paper, Table 4
    # There the Evolved Transformer has more parameters than the others, 38 instead of 35 million. Here it has
    # as many as the others: three of its larger blocks, with a feed-forward layer of width 204.
    # :::
    from IPython.display import display

    in_time, counted = (factors(runs, cost) for cost in ("seconds", "multiply_adds"))
    rows = []
    for model, seeds in runs.items():
        ours = f"{in_time[model]:.2f}" if model in in_time else "-"
        printed = theirs(model, __data__[0])
        paper = [printed.get(setup, "-") for setup in SETUPS]
        name = WHOLE_MODELS[model][0]
        rows.append([name, f"{final_loss(seeds):.3f}", ours, *paper])
    columns = {
        "model": "",
        "loss": "nats",
        "ours": "factor",
        **{name: "factor" for name, _ in SETUPS.values()},
    }
    display(
        SourcedTable(
            "Our factors and the paper's", "Table 4 in the last columns", columns, rows
        )
    )
    without = [model for model in runs if not theirs(model, __data__[0])]
    assert without == ["transformer", "squared-relu"], "the others have the paper's"
    v100 = theirs("pp", __data__[0])["Tensor2Tensor, V100"]
    last = [run["loss"][-1] for run in vanilla]
    for model in ("primer-ez", "primer"):
        assert min(seed_factors(vanilla, runs[model], "seconds")) > 1, "with every seed"
        assert in_time[model].mean > max(2, in_time["evolved-transformer"].mean)
        directly = speedup(runs["evolved-transformer"], runs[model], "seconds")
        assert directly.includes_one, "no difference in time is shown"
    assert float(v100.split()[0]) > in_time["pp"].high, "less than on the V100"
    assert in_time["gelu"].includes_one, "not shown to save anything"
    for model in ("primer-ez", "evolved-transformer"):
        assert every_seed(runs, model, "primer"), "lower with every seed"
    assert abs(gain(runs, "evolved-transformer", "primer-ez")) < 0.005, "as low"
    # In time, MDHA, Primer-EZ and Primer save on average as much here as in the paper or more, but the
    # paper's largest factors are within their intervals. Transformer++ saves
    # {value}`f"{in_time['pp'].mean:.2f}"`, less than the {value}`v100` on the V100, and about as much as in
    # the other two set-ups. The Evolved Transformer saves much more here, but only with a table (see below).
    # GELU is not shown to save anything; in one of the paper's three set-ups it saves nothing.
    #
    # After the same number of steps, Primer-EZ ends with a lower loss than Primer with every seed, and so
    # does the Evolved Transformer, which ends as low as Primer-EZ. Its steps take longer, so over the
    # Transformer both Primers save more time on average. Compared with it directly, no difference in time is
    # shown.
    #
    # The factors vary a lot between seeds, because the Transformer's final loss varies by up to
    # {value}`f"{max(last) - min(last):.2f}"` nats, and on a flat curve that is many steps. This explains most
    # of the variation in Primer-EZ's and Primer's factors. The losses of MDHA and Transformer++ themselves
    # vary as much.

    # ## Does the saving grow?
    #
    # The paper says that it does, at a fixed size (Figure 9). Each point below is the factor over a
    # Transformer that stops at that budget, with a learned table, so a rising line is a growing saving.
    spent = vanilla[0]["multiply_adds"]
    ends = range(len(spent) // 4, len(spent) + 1)
    at_budgets = {
        model: [
            speedup([until(run, end) for run in vanilla], seeds, "multiply_adds")
            for end in ends
        ]
        for model, seeds in runs.items()
        if model != "transformer"
    }
    falls = {
        model: 1 - saved[-1].mean / saved[0].mean for model, saved in at_budgets.items()
    }
    grown = {model: growth_within(runs, model) for model in at_budgets}
    assert max(*grown["mdha"], *grown["primer"]) < 1, "each with every seed"
    assert min(grown["primer-ez"]) < 1 < max(grown["primer-ez"]), "not with every seed"
    assert (
        max(abs(falls[model]) for model in ("gelu", "evolved-transformer"))
        < falls["primer-ez"]
    )
    assert min(*grown["squared-relu"], *grown["pp"]) > 1, "they grow with every seed"
    fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    budgets = [spent[end - 1] / 1e12 for end in ends]
    for model, saved in at_budgets.items():
        name, colour, line = WHOLE_MODELS[model]
        low, high = [each.low for each in saved], [each.high for each in saved]
        means = [each.mean for each in saved]
        ax.plot(budgets, means, line, color=colour, lw=1.3, label=name)
        ax.fill_between(budgets, low, high, color=colour, alpha=0.1, lw=0)
    ax.axhline(1, color="C5", ls=":", lw=1)
    fig.suptitle(
        f"mean and 95% interval of {setting(runs.values())} at the end",
        fontsize="medium",
    )
    ax.set(
        xlabel="multiply-adds of the Transformer, trillions",
        ylabel="speed-up factor",
    )
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()
    # From a quarter of the budget to all of it, MDHA's factor falls by {value}`f"{falls['mdha']:.0%}"` on
    # average and Primer's by {value}`f"{falls['primer']:.0%}"`, each with every seed. Primer-EZ's falls by
    # {value}`f"{falls['primer-ez']:.0%}"`, but not with every seed. Those of GELU and of the Evolved
    # Transformer change by less than that. Those of the squared ReLU and of Transformer++ grow with every
    # seed, by {value}`f"{-falls['squared-relu']:.0%}"` and {value}`f"{-falls['pp']:.0%}"`.
    #
    # A possible explanation: a convolution reads nearby characters from the first step on, while attention
    # must first learn from the table where they are. That lead is largest early. With rotary positions,
    # MDHA's factor rises slightly, which fits this.

    # ## With rotary positions
    #
    # Until it is trained, the learned table gives the Transformer little information about distances. So the
    # same models were trained again with {doc}`rotary positions </labml_primer/since/rotary>`, which show
    # every layer how far apart two characters are. On the left the factors in multiply-adds with the table,
    # in the middle those with rotary positions, and on the right those with rotary positions on subwords,
    # each over the Transformer of the same panel. On the dotted line, nothing is saved. Hollow dots are
    # seeds, full dots their mean.
    with_rotary, on_subwords = (
        read_runs(plan=plan) for plan in ("today-characters", "today-subwords")
    )
    for every in (runs, with_rotary, on_subwords):
        assert every.keys() == WHOLE_MODELS.keys() and {*map(len, every.values())} == {
            5
        }
    panels = {
        "characters,\nlearned table": runs,
        "characters,\nrotary positions": with_rotary,
        "subwords,\nrotary positions": on_subwords,
    }
    changed = [model for model in runs if model != "transformer"]
    fig, axes = plt.subplots(
        1, 3, figsize=(7, 2.8), sharex=True, sharey=True, layout="constrained"
    )
    for ax, (title, trained) in zip(axes, panels.items(), strict=True):
        each = {
            WHOLE_MODELS[model][0]: seed_factors(
                trained["transformer"], trained[model], "multiply_adds"
            )
            for model in changed
        }
        colours = [WHOLE_MODELS[model][1] for model in changed]
        draw_factors(ax, each, colours, ticks=(1, 1.5, 2, 3))
        ax.set(title=title)
    fig.supxlabel("speed-up factor in multiply-adds", fontsize="medium")
    trained_runs = [seeds for trained in panels.values() for seeds in trained.values()]
    fig.suptitle(f"each of {setting(trained_runs)}", fontsize="medium")
    plt.show()

    # The factors of the three panels, with their 95% confidence intervals.
    left, on_subwords_left = (
        factors(trained, "multiply_adds") for trained in (with_rotary, on_subwords)
    )
    rows = [
        [
            WHOLE_MODELS[model][0],
            *(f"{saved[model]:.2f}" for saved in (counted, left, on_subwords_left)),
        ]
        for model in changed
    ]
    heads = ("learned, characters", "rotary, characters", "rotary, subwords")
    columns = {"model": ""} | dict.fromkeys(heads, "factor")
    display(SourcedTable("Factors in multiply-adds", "Our runs", columns, rows))

    def share_saved(saved: MeanFactor) -> str:
        """The multiply-adds that a factor saves, with the interval."""
        mean, low, high = (1 - 1 / factor for factor in astuple(saved))
        return f"{mean:.0%} ({low:.0%} to {high:.0%})"

    below = gain(with_rotary, "pp", "primer-ez")
    longer_tuned = read_runs(plan="today-rates", model=["primer-ez", "pp"], ends=True)

    def on_subwords_over(model: str, baseline: str) -> str:
        """The factor of a model over another on subwords."""
        return f"{mean_factor(on_subwords, model, over=baseline):.2f}"

    over_pp = {
        model: on_subwords_over(model, "pp") for model in ("primer", "primer-ez")
    }
    over_primer_ez = on_subwords_over("primer", "primer-ez")
    over_gelu = on_subwords_over("squared-relu", "gelu")
    differ = float(critical_difference(final_losses(with_rotary)))
    growing = {
        model: written(growth_within(on_subwords, model))
        for model in ("primer-ez", "primer")
    }
    for model in ("mdha", "primer-ez", "primer", "evolved-transformer"):
        assert left[model].high < counted[model].low, "they lose their saving"
    for model in ("squared-relu", "pp", "gelu"):
        table, now = counted[model], left[model].mean
        assert table.low < now < 1.05 * table.high, "not shown to change"
    for model in ("evolved-transformer", "gelu"):
        assert left[model].includes_one, "not shown to save anything"
    three = [
        final_loss(with_rotary[each]).mean for each in ("pp", "primer-ez", "primer")
    ]
    assert below > 0 and max(three) - min(three) < differ, "which is best is not shown"
    assert 0 < gain(longer_tuned, "primer-ez", "pp") < differ, "may be noise as well"
    for model in ("pp", "squared-relu"):
        lead_over_it = mean_factor(with_rotary, "primer-ez", over=model)
        assert lead_over_it.low < 1, "Primer-EZ is not shown to be better"
    for model in ("primer-ez", "primer"):
        assert every_seed(on_subwords, model, "pp"), "below it with each seed"
        assert every_seed(with_rotary, model, "evolved-transformer")
        assert MeanFactor.of(growth_within(with_rotary, model)).includes_one
        assert min(growth_within(on_subwords, model)) > 1, "they grow with every seed"
    of_models = {model: saved.mean for model, saved in on_subwords_left.items()}
    assert max(of_models, key=of_models.__getitem__) == "primer", "it saves the most"
    assert mean_factor(on_subwords, "primer", over="pp").low > 1, "it saves"
    for baseline, model in (
        ("primer-ez", "primer"),
        ("gelu", "squared-relu"),
        ("transformer", "evolved-transformer"),
    ):
        assert mean_factor(on_subwords, model, over=baseline).includes_one, "not shown"
    for model in ("pp", "squared-relu"):
        assert min(growth_within(with_rotary, model)) > 1, "with every seed, too"
    assert MeanFactor.of(growth_within(with_rotary, "mdha")).low > 1, "it rises"
    assert left["squared-relu"].mean > left["mdha"].mean, "as in the paper"
    assert gain(with_rotary, "evolved-transformer", "transformer") < 0, "no lead"
    lead, lead_in_time = (
        math.log(each["evolved-transformer"].mean) for each in (counted, in_time)
    )
    assert lead_in_time > lead / 2, "with a table, in time it keeps most of its lead"
    # Models with convolutions lose most of their saving. The factor of MDHA falls from
    # {value}`f"{counted['mdha'].mean:.2f}"` to {value}`f"{left['mdha'].mean:.2f}"`, that of Primer-EZ from
    # {value}`f"{counted['primer-ez'].mean:.2f}"` to {value}`f"{left['primer-ez'].mean:.2f}"`, and that of
    # Primer from {value}`f"{counted['primer'].mean:.2f}"` to {value}`f"{left['primer'].mean:.2f}"`. The
    # Evolved Transformer had {value}`f"{counted['evolved-transformer'].mean:.2f}"`, and with rotary positions
    # is not shown to save anything. The factors of the squared ReLU
    # ({value}`f"{counted['squared-relu'].mean:.2f}"` with the table,
    # {value}`f"{left['squared-relu'].mean:.2f}"` with rotary positions) and of Transformer++
    # ({value}`f"{counted['pp'].mean:.2f}"` and {value}`f"{left['pp'].mean:.2f}"`) are not shown to change.
    #
    # So Transformer++ catches up with Primer-EZ: its mean loss is {value}`f"{below:.3f}"` nats lower. Among
    # eight models with five seeds each, differences up to {value}`f"{differ:.3f}"` may be noise (the
    # {term}`critical difference`), so these runs do not show which of Transformer++, Primer-EZ and Primer is
    # best. With a rate chosen in runs of the full length, Primer-EZ is the lower one, by
    # {value}`f"{gain(longer_tuned, 'primer-ez', 'pp'):.3f}"` nats, which may be noise as well
    # ({doc}`positions`).
    #
    # On subwords, both Primers end below Transformer++ with each seed. Primer's factor over it is
    # {value}`over_pp["primer"]`, Primer-EZ's {value}`over_pp["primer-ez"]`. These runs do not show which of
    # the two is better: Primer's factor over Primer-EZ is {value}`over_primer_ez`. Nor do they show that the
    # squared ReLU alone is better than GELU ({value}`over_gelu`), or that the Evolved Transformer saves
    # anything ({value}`f"{on_subwords_left['evolved-transformer']:.2f}"`).
    #
    # Within these runs, on characters, the factors of the squared ReLU and of Transformer++ again grow with
    # every seed. MDHA's rises slightly, and for Primer-EZ and Primer no change is shown. On subwords, both do
    # grow with every seed, from a quarter of the run to its end: Primer-EZ's {value}`growing["primer-ez"]`
    # times, and Primer's {value}`growing["primer"]` times.
    #
    # In two points these results agree with the paper better than those with a table: the Evolved Transformer
    # ends above both Primers with every seed, and the squared ReLU saves more than MDHA on average. The sizes
    # of the savings agree less well.
    #
    # *Time* was not measured with rotary positions. With the table, Primer-EZ's factor in time is
    # {value}`f"{1 - in_time['primer-ez'].mean / counted['primer-ez'].mean:.0%}"` below that in multiply-adds.
    #
    # ## Limits
    #
    # *Size.* At this compute, the Transformer and Primer-EZ are better at half the width, with both kinds of
    # positions, and Primer is with a learned table ({doc}`sizes`).
    #
    # *Close models.* With a learned table, for half of the models, the losses of the two best learning rates
    # differ by less than the noise, so models with similar factors could change places.
    #
    # {doc}`method` lists the limits of scale, data and hardware.
    #
    # ## In short
    #
    # - Over a Transformer with learned absolute positions, Primer-EZ saves more than half of the time, and
    #   Primer about half, as in two of the paper's three set-ups.
    # - With rotary positions in all models, Primer-EZ saves {value}`share_saved(left["primer-ez"])` of the
    #   multiply-adds on characters, and is not shown to be better than Transformer++. On subwords it saves
    #   {value}`share_saved(on_subwords_left["primer-ez"])`, and both Primers end below Transformer++ with
    #   every seed. The savings from convolutions over neighbouring tokens shrink most.
    # - Within these runs of 1,200 steps, on characters, only the savings of the squared ReLU and of
    #   Transformer++ grow with every seed with both kinds of positions. On subwords, with rotary positions,
    #   those of both Primers do too. {doc}`positions` has longer runs.
    #
    # Which of the changes does the work? {doc}`parts` takes the models apart.
