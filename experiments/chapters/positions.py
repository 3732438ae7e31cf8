r"""
# With rotary positions

How much does Primer-EZ save if the Transformer it is compared with knows how far apart two tokens are?

The other measured chapters use a learned table of positions. From it, a Transformer must first learn which
token is the previous one, and a convolution gives it that token at once. Most language models today have
{doc}`rotary positions </labml_primer/since/rotary>` instead. Do the two changes still help?

In short: yes, but much less. If both models have a learned table, Primer-EZ reaches the Transformer's loss
with {value}`f"{both['learned']:.1f}"` times fewer multiply-adds; if both have rotary positions, with
{value}`f"{both['rotary']:.1f}"` times fewer (over {value}`len(rotary['primer-ez'])` seeds). So
{value}`f"{share:.0%}"` of the gain, measured as the logarithm of the factor, is gone with better positions.
Rotary positions alone save the Transformer {value}`f"{alone:.1f}"` times the multiply-adds, more than
Primer-EZ's two changes. And the order of the two changes is reversed, to that of the paper: with rotary
positions, the squared ReLU saves more than {term}`MDHA`.

Source: {cite:t}`so2021primer`, whose models have relative positions; {cite:t}`su2021roformer`; our own runs.
"""

from statistics import fmean

from experiments.analysis import over_seeds, seed_factors, setting
from experiments.figures import WHOLE_MODELS
from experiments.today import (
    gains,
    losses,
    read_setting,
    read_settings,
    savings,
    share_of_positions,
    typical,
    written,
)

__data__ = ("experiments/results/gathered.json",)


if __name__ == "__main__":
    # The loss on the held-out plays, by compute: the Transformer (grey) and Primer-EZ (teal), with a learned
    # table (dotted) and with rotary positions (solid). Bands are the range of the seeds. Both solid lines end
    # below both dotted ones: a Transformer with rotary positions is better than a Primer-EZ with a learned
    # table. The first eighth of the runs is left out.
    recorded = read_settings(__data__[0])
    characters = {
        positions: runs
        for (text, positions), runs in recorded.items()
        if text == "characters"
    }
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for (positions, runs), line in zip(characters.items(), (":", "-"), strict=True):
        for model in ("transformer", "primer-ez"):
            name, colour, _ = WHOLE_MODELS[model]
            cost = [each / 1e12 for each in runs[model][0]["multiply_adds"]]
            low, middle, high = (
                over_seeds(runs[model], combine) for combine in (min, fmean, max)
            )
            label = f"{name}, {positions} positions"
            ax.plot(cost, middle, line, color=colour, lw=1.3, label=label)
            ax.fill_between(cost, low, high, color=colour, alpha=0.15, lw=0)
    shown = [
        runs[model]
        for runs in characters.values()
        for model in ("transformer", "primer-ez")
    ]
    fig.suptitle(f"mean and range of {setting(shown)}", fontsize="medium")
    eighth = len(cost) // 8
    losses_shown = [run["loss"] for seeds in shown for run in seeds]
    ax.set(
        xlabel="multiply-adds, trillions",
        ylabel="loss, nats per character",
        xlim=(cost[eighth], cost[-1]),
        ylim=(
            min(map(min, losses_shown)) - 0.02,
            max(loss[eighth] for loss in losses_shown) + 0.02,
        ),
    )
    ax.legend(frameon=False, loc="upper right")
    plt.show()

    # ## How much is left?
    #
    # The {term}`speed-up factor` in {term}`multiply-adds` of each change alone and of both, over the
    # Transformer with the same positions. A factor of 1 saves nothing. In brackets is the 95% confidence
    # interval of the mean, or, of two seeds, the factor of each.
    #
    # On characters, MDHA saves more than the squared ReLU with a learned table. With rotary positions, it is
    # the other way round, with every seed. A possible explanation, which we have not tested: a convolution
    # gives the previous tokens to a model that has trouble finding them, and rotary positions make them easy
    # to find.
    from IPython.display import display

    factors = {name: savings(runs, "primer-ez") for name, runs in characters.items()}
    both = {name: typical(found) for name, found in factors.items()}
    share = share_of_positions(factors["learned"], factors["rotary"])
    display(gains(__data__[0]))

    # ## On subwords
    #
    # The author of x-transformers reports "no benefit" of token shift, a short convolution, with subwords and
    # rotary positions ({doc}`/book/pages/descendants`). With a vocabulary of 2,048 subwords, Primer-EZ saves
    # factors of {value}`each["primer-ez"]` in our two seeds, the squared ReLU alone
    # {value}`each["squared-relu"]`, and MDHA alone {value}`each["mdha"]`.
    #
    # So Primer-EZ is better with both seeds. Of MDHA alone these runs say nothing: it helps with one seed and
    # hurts with the other. The factors are also too far apart to compare them with those on characters.
    subwords = read_setting(__data__[0], "subwords", "rotary")
    each = {
        model: " and ".join(f"{factor:.2f}" for factor in savings(subwords, model))
        for model in ("squared-relu", "mdha", "primer-ez")
    }

    # ## The better baseline
    #
    # How much do rotary positions save by themselves? The Transformer with them needs {value}`ranges[0]`
    # times fewer multiply-adds than the Transformer with a learned table, and {value}`ranges[1]` times fewer
    # than Primer-EZ with a learned table.
    #
    # The table has final losses, as the mean of all seeds: on the whole reported plays where they were
    # measured, and otherwise on the parts of them that the learning curves use.
    learned, rotary = characters.values()
    over = {
        model: seed_factors(learned[model], rotary["transformer"], "multiply_adds")
        for model in ("transformer", "primer-ez")
    }
    alone, ranges = typical(over["transformer"]), list(map(written, over.values()))
    display(losses(__data__[0]))

    # ## Limits
    #
    # *One text, one size.* This is Shakespeare, and on characters the models have
    # {value}`f"{learned['transformer'][0]['parameters'] / 1e6:.1f}"` million parameters.
    #
    # *Seeds.* On characters there are {value}`len(rotary['primer-ez'])` with rotary positions. With the
    # worst of them, Primer-EZ saves a factor of {value}`f"{min(factors['rotary']):.2f}"`, and the squared
    # ReLU alone ends with as low a loss. So it is not certain that the convolution adds anything to it there.
    #
    # *Rates.* Three rates were tried for each model with rotary positions. Where the lowest, 0.002, was the
    # best, a lower one may be better.
    #
    # `make experiments ONLY=today-first` trains the runs of this chapter that are missing.
    # {doc}`method` lists the limits of scale, data and hardware.
    #
    # ## In short
    #
    # - With rotary positions, Primer-EZ still saves on characters, with every seed, but
    #   {value}`f"{1 - 1 / both['rotary']:.0%}"` of the multiply-adds instead of
    #   {value}`f"{1 - 1 / both['learned']:.0%}"`.
    # - On subwords it is better with both seeds, and they are too far apart to say by how much.
    # - Rotary positions alone save more than Primer-EZ's two changes do without them.
    # - With rotary positions, the squared ReLU is, with every seed, the better of the two changes, as the
    #   paper says.
    #
    # Which of Primer's changes do the work with a learned table? {doc}`parts` takes the models apart.
