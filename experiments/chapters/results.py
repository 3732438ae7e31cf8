r"""
# Results in one page

Does Primer save what its paper says? Our measurements at a small size, next to the paper's.

In short, from our own runs:

- **The saving.** With a learned table of positions, Primer-EZ reaches the Transformer's final loss
  {value}`f"{mean_in_time['primer-ez']:.1f}"` times faster (95% {term}`confidence interval`
  {value}`interval_in_time("primer-ez")`), and Primer {value}`f"{mean_in_time['primer']:.1f}"` times
  ({value}`interval_in_time("primer")`), over five seeds. The paper has {value}`paper_range("primer-ez")` and
  {value}`paper_range("primer")`.
- **With rotary positions.** A learned table is a weak baseline. With rotary positions in both, Primer-EZ
  needs {value}`f"{with_rotary:.2f}"` times fewer multiply-adds ({value}`interval_with_rotary`) instead of
  {value}`f"{with_learned:.2f}"`, and it is not shown to be better than the squared ReLU alone
  ({doc}`positions`, {value}`len(rotary["primer-ez"])` seeds).
- **In a baseline of today**, with SwiGLU, RMSNorm and rotary positions, on subwords, its two changes together
  save a factor of {value}`in_baseline` in multiply-adds. The squared ReLU alone, instead of SwiGLU,
  saves nothing.
- **The most effective change.** With a learned table, removing the convolutions of {term}`MDHA` costs Primer
  most: its {term}`perplexity` is {value}`change("primer", "without-mdha")` higher without them and
  {value}`change("primer", "without-squared-relu")` higher without the squared ReLU (three seeds).
- **The cost.** On a processor, a training step of Primer-EZ takes {value}`over("plain")` times as long as a
  Transformer's, or {value}`over("faster")` times with hand-written gradients, which the saving above assumes.
  It needs {value}`over("memory")` times the memory for activations and gradients, and generates
  {value}`over("generation")` times as many tokens per second.
- **Not reproduced.** With a learned table, removing MDHA costs more than removing the squared ReLU, and the
  saving of MDHA and Primer falls during training. The paper reports the opposite of both. The section
  *Not reproduced* has the whole list.

The scale is small:
{value}`f"{runs['transformer'][0]['parameters'] / 1e6:.1f}"` million parameters, and
{value}`f"{runs['transformer'][0]['steps'][-1] * 16 * 128 / 1e6:.1f}"` million characters of Shakespeare per
run. The paper's models of the same comparison have 35 million parameters. {doc}`method` explains how
everything was measured and what ± means.

Source: {cite:t}`so2021primer`, sections 3 and 4, Tables 4 and 5, Figures 5, 9 and 26; our own measurements.
"""

from experiments.analysis import (
    Spread,
    factors,
    relative_perplexity,
    seed_factors,
    setting,
)
from experiments.figures import SETUPS, WHOLE_MODELS, theirs
from experiments.records import read_runs
from experiments.tables import Table
from experiments.timings import ratios, recorded
from experiments.today import (
    confidence,
    gains,
    modern_changes,
    read_setting,
    savings,
    typical,
    written,
)

__data__ = (
    "experiments/results/gathered.json",
    "experiments/paper_tables/table_4.json",
    "benchmarks/results/generation.json",
    "benchmarks/results/memory.json",
    "benchmarks/results/step.json",
)

if __name__ == "__main__":
    # The {term}`speed-up factor` in time: the Transformer's time to its final loss, divided by a model's time
    # to the same loss. Full dots are ours, hollow marks the paper's in its three set-ups. Models to the right
    # of the dotted line are faster than the Transformer. {doc}`ours` has the learning curves.
    every = read_runs(__data__[0], "speedup")
    runs = {model: every[model] for model in WHOLE_MODELS}
    in_time = factors(runs, "seconds")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    marks = {"ours": ax.plot([], [], "o", color="C5")[0]}
    for short, mark in SETUPS.values():
        marks[short] = ax.plot([], [], mark, color="C5", mfc="none")[0]
    drawn, names = marks.values(), marks.keys()
    ax.legend(drawn, names, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    for at, (model, spread) in enumerate(in_time.items()):
        name, colour, _ = WHOLE_MODELS[model]
        ax.errorbar(
            spread.mean,
            at - 0.2,
            xerr=spread.deviation,
            fmt="o",
            color=colour,
            label=f"{name}, ours",
        )
        for setup, printed in theirs(model, __data__[1]).items():
            value, deviation = map(float, printed.split(" ± "))
            short, mark = SETUPS[setup]
            ax.errorbar(
                value,
                at + 0.2,
                xerr=deviation,
                fmt=mark,
                color=colour,
                mfc="none",
                lw=1,
                label=f"{name}, {short}",
            )
    ax.axvline(1, color="C5", ls=":", lw=1)
    ax.set_yticks(range(at + 1), [WHOLE_MODELS[model][0] for model in runs][1:])
    ax.set_ylim(at + 0.6, -0.6)
    fig.suptitle(f"mean ± deviation of {setting(runs.values())}", fontsize="medium")
    ax.set(
        xlabel="speed-up factor in time",
    )
    plt.show()
    # The table has the same numbers: the mean and the standard deviation over the seeds. The intervals at the
    # top of this page are those of the mean of the factors' logarithms.
    from IPython.display import display

    by_seed = {
        model: seed_factors(runs["transformer"], runs[model], "seconds")
        for model in ("primer-ez", "primer")
    }
    mean_in_time = {model: typical(each) for model, each in by_seed.items()}

    def interval_in_time(model: str) -> str:
        """The 95% confidence interval of that mean."""
        return confidence(by_seed[model], ".1f")

    def paper_range(model: str) -> str:
        """The lowest and the highest factor of a model in the paper's set-ups."""
        found = [
            printed.split(" ± ")[0] for printed in theirs(model, __data__[1]).values()
        ]
        return f"{min(found, key=float)} to {max(found, key=float)}"

    rows = [
        [
            WHOLE_MODELS[model][0],
            f"{spread:.2f}",
            *(theirs(model, __data__[1]).get(setup, "-") for setup in SETUPS),
        ]
        for model, spread in in_time.items()
    ]
    columns = ["model", "ours", *(name for name, _ in SETUPS.values())]
    heads = dict.fromkeys(columns, "")
    display(Table("Speed-up factors in time", "Ours, and Table 4", heads, rows))

    # ## With the positions of today
    #
    # Part of this saving was a remedy for poor positions. The same factor in multiply-adds, of Primer-EZ over
    # the Transformer with the same positions: {value}`f"{with_learned:.2f}"` with a learned table, and
    # {value}`f"{with_rotary:.2f}"` with rotary positions ({doc}`positions`). On subwords less of it is gone
    # in the mean, but the seeds are far apart. Two of the paper's three set-ups have absolute positions too,
    # and one has relative attention (appendix A.8). In that one, T5, the paper's Primer-EZ saves least.
    #
    # The second table has the changes of a {doc}`baseline of today </labml_primer/since/modern>`.
    learned, rotary = (
        read_setting(__data__[0], "characters", positions)
        for positions in ("learned", "rotary")
    )
    with_learned = typical(savings(learned, "primer-ez"))
    with_rotary = typical(savings(rotary, "primer-ez"))
    interval_with_rotary = confidence(savings(rotary, "primer-ez"))
    display(gains(__data__[0]))
    modern = read_runs(__data__[0], "today-modern")
    in_baseline = written(savings(modern, "primer-ez", over="modern"))
    display(modern_changes(__data__[0]))

    # ## Which part does the work?
    #
    # The change of the perplexity, in percent over three seeds, when one of Primer's changes is added to a
    # Transformer or removed from Primer. A change that helps is negative in the first column and positive in
    # the second. {doc}`parts` compares all parts and eight activation functions, and {doc}`mdha` the details
    # of the convolutions.
    parts = read_runs(__data__[0], "ablation")

    def difference(baseline: str, model: str) -> str:
        """The change of a model's perplexity over a baseline's, in percent, with its spread."""
        spread = Spread.of(relative_perplexity(parts[baseline], parts[model]))
        return f"{spread.mean - 100:+.1f} ± {spread.deviation:.1f}"

    def change(baseline: str, model: str) -> str:
        """The size of that change."""
        return f"{difference(baseline, model)[1:]}%"

    changes = {
        "mdha": "MDHA",
        "squared-relu": "squared ReLU",
        "order": "norm after the feed-forward layer",
        "norm": "Primer's norm",
        "shared-query": "queries computed from keys",
    }
    rows = [
        [
            name,
            difference("transformer", f"with-{part}"),
            difference("primer", f"without-{part}"),
        ]
        for part, name in changes.items()
    ]
    columns = ["change", "added to a Transformer, %", "removed from Primer, %"]
    heads = dict.fromkeys(columns, "")
    display(Table("Change of the perplexity", "Our runs", heads, rows))

    # ## What does it cost?
    #
    # Primer-EZ over the Transformer on a processor, at all measured sizes: the time of a training step in
    # plain code, with hand-written gradients, and compiled, over the plain Transformer's; the peak memory of
    # a training step besides weights and optimizer; and the tokens per second of generation with a KV cache.
    # {doc}`/benchmarks/speed` has every size, the paper's ratios and other libraries.
    step, generation = recorded("step"), recorded("generation")
    compiled = zip(
        ratios(step, "Primer-EZ, compiled", "Transformer, compiled"),
        ratios(step, "Transformer, compiled", "Transformer"),
        strict=True,
    )
    prices = {
        "plain": ratios(step, "Primer-EZ", "Transformer"),
        "faster": ratios(step, "Primer-EZ, faster", "Transformer"),
        "compiled": [a * b for a, b in compiled],
        "memory": [
            cell["values"]["Primer-EZ"] / cell["values"]["Transformer"]
            for cell in recorded("memory")["cells"]
        ],
        "generation": ratios(generation, "Primer-EZ, cached", "Transformer, cached"),
    }

    def over(price: str) -> str:
        """The lowest and the highest ratio of all sizes."""
        return f"{min(prices[price]):.2f} to {max(prices[price]):.2f}"

    words = {
        "plain": "time of a training step",
        "faster": "... with hand-written gradients",
        "compiled": "... compiled",
        "memory": "memory of a training step",
        "generation": "tokens per second",
    }
    rows = [[name, over(price)] for price, name in words.items()]
    heads = dict.fromkeys(("Primer-EZ over Transformer", "ratio"), "")
    display(Table("What it costs", "Our benchmarks", heads, rows))

    # ## Does it last at other sizes and in other models?
    #
    # With the best width for each budget, Primer-EZ still saves: {doc}`sizes` has the factors with their
    # confidence intervals. The changes help Switch Transformers and Synthesizers with every seed; for T5, the
    # runs are too noisy to decide ({doc}`transfer`). {doc}`paper` checks the paper's own arithmetic: most of
    # its claims follow from its tables.

    # ## Not reproduced
    #
    # In every row, our runs disagree with the paper or do not show its effect. Where nothing else is said,
    # they have a learned table of positions. Since our models are small, this shows at most that an effect is
    # not universal, not that the paper is wrong.
    activations = read_runs(__data__[0], "activations")
    others = read_runs(__data__[0], "transfer")

    def perplexity(model: str) -> str:
        """The perplexity with an activation function, in percent of the ReLU's."""
        relative = relative_perplexity(activations["relu"], activations[model])
        return f"{Spread.of(relative):.0f}%"

    by_kind = (
        seed_factors(others[name], others[f"{name}-squared-relu"], "seconds")
        for name in ("synthesizer-dense", "synthesizer-random")
    )
    saved = " and ".join(f"{Spread.of(each).mean:.1f}" for each in by_kind)
    rows = [
        [
            f"Primer-EZ saves a factor of {paper_range('primer-ez')} (Table 4)",
            f"with rotary positions, of {with_rotary:.2f} "
            f"({interval_with_rotary}), in multiply-adds",
        ],
        [
            "the squared ReLU is the most effective change (section 3)",
            f"removing it costs Primer {change('primer', 'without-squared-relu')} "
            f"of perplexity, removing MDHA {change('primer', 'without-mdha')}",
        ],
        [
            "both Primers save more than the Evolved Transformer (Table 4)",
            "in time they do, but after the same steps it ends as low as Primer-EZ, "
            "and lower than Primer with every seed",
        ],
        [
            "at a fixed size, the saving grows with training (Figure 9)",
            "it falls for MDHA and Primer, with every seed",
        ],
        [
            "the squared ReLU is better than SwiGLU (Figure 5)",
            f"three seeds show no difference: {perplexity('squared-relu')} and "
            f"{perplexity('swiglu')} of the ReLU's perplexity",
        ],
        [
            "a wider feed-forward layer helps small models (appendix A.7)",
            "no effect is shown",
        ],
        [
            "a squared ReLU speeds a Synthesizer up 1.7 to 2.0 times (Table 5)",
            f"{saved} times, in other kinds of Synthesizer than the paper's",
        ],
    ]
    heads = dict.fromkeys(("the paper", "here"), "")
    display(Table("Not reproduced", "Our runs, and the paper's sections", heads, rows))
    # ## In short
    #
    # - With a learned table of positions, Primer-EZ's two changes save more than half of the training time,
    #   as in two of the paper's three set-ups. With rotary positions they save less than half, even of the
    #   steps.
    # - With hand-written gradients, its step takes at most
    #   {value}`f"{100 * (max(prices['faster']) - 1):.0f}%"` longer than the Transformer's.
    # - The saving varies between seeds, so one run does not measure it.
