r"""
# In other models

Do Primer-EZ's changes help other kinds of models, for which the search never tried them?

They help a Switch Transformer, as in the paper. For Synthesizers, T5 and BERT's task, our runs do not decide.

Source: {cite:t}`so2021primer`, section 4.2, Tables 5 and 7.
"""

import math

from experiments.measured.analysis import (
    difference,
    extent,
    final_loss,
    setting,
    times_less,
)
from experiments.measured.figures import dots, draw_counts, table
from experiments.measured.settings import below_counts
from experiments.measured.tables import SourcedTable
from experiments.paper.tables import read_table
from experiments.records.counts import two_sided_counts
from experiments.records.query import read_runs, tried_of

__data__ = (
    "experiments/paper/printed/table_5.json",
    "experiments/paper/printed/table_7.json",
)

# A model with the changes: the name of its family, the model without them, and its own name in Table 5.
FAMILIES = {
    "switch-primer": ("Switch Transformer", "switch", "Switch Primer"),
    "synthesizer-dense-squared-relu": (
        "dense Synthesizer",
        "synthesizer-dense",
        "Synthesizer + Squared ReLU",
    ),
    "synthesizer-random-squared-relu": (
        "random Synthesizer",
        "synthesizer-random",
        "Synthesizer + Squared ReLU",
    ),
}


# The name and colour of each model, and its name in Table 7.
MODELS = {
    "t5": ("T5", "C5"),
    "t5-gelu": ("T5 with GELU", "C5"),
    "t5-pp": ("Transformer++", "C2"),
    "t5-primer-ez-decoder": ("Primer-EZ decoder", "C0"),
}
THEIRS = {
    "t5": "Vanilla Transformer*",
    "t5-gelu": "Transformer+GeLU*",
    "t5-pp": "Transformer++",
    "t5-primer-ez-decoder": "Primer-EZ Decoder",
}

# The encoders that predict masked characters: a name and a colour.
ENCODERS = {
    "encoder": ("Transformer", "C5"),
    "squared-relu": ("Transformer+squared ReLU", "C0"),
    "primer-ez": ("Primer-EZ", "C0"),
    "pp": ("Transformer++", "C2"),
}

if __name__ == "__main__":
    # Further left is better: without the changes (grey), and with them (teal).
    import matplotlib.pyplot as plt
    from IPython.display import display

    families = read_runs(plan="transfer")
    assert {*families} == {*FAMILIES, *(plain for _, plain, _ in FAMILIES.values())}
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for at, (changed, (name, plain, _)) in enumerate(FAMILIES.items()):
        for model, colour, which in ((plain, "C5", "without"), (changed, "C0", "with")):
            ends = [run["loss"][-1] for run in families[model]]
            dots(ax, at, f"{name}, {which}", colour, ends)
    draw_counts(ax, families["switch"][0], "x")
    ax.set_yticks(range(len(FAMILIES)), [name for name, _, _ in FAMILIES.values()])
    ax.set_ylim(len(FAMILIES) - 0.6, -0.4)
    ax.set(
        title=f"mean of {setting(families.values())}",
        xlabel="loss, nats per character",
    )
    plt.show()

    # ## Switch Transformer and Synthesizers
    #
    # In a {doc}`Switch Transformer </labml_primer/compared/switch>`, which sends each token to one of many
    # feed-forward layers, the attention and the activation function become Primer-EZ's. A
    # {doc}`Synthesizer </labml_primer/compared/synthesizer>`, which has no queries and keys to convolve, gets
    # the squared ReLU alone. The paper's factors are at the compute that its unchanged model spends in 525
    # thousand steps and in a million. A difference counts if it is larger than the ± next to it
    # ({doc}`method`), for all {value}`comparisons` comparisons of this page.
    printed = read_table(__data__[0])
    comparisons = len(FAMILIES) + len(MODELS) + len(ENCODERS) - 1
    rows = []
    for model, (name, plain, theirs) in FAMILIES.items():
        found = difference(families, model, plain, comparisons)
        worth = times_less(families, model, plain, found.nats, "seconds")
        in_table = [
            printed.entry(f"speedup at {steps}", data="C4", model=theirs)
            for steps in ("525K", "1M")
        ]
        saved = f"{worth:.2f}" if found.shown else "-"
        rows.append([name, f"{found:.3f}", saved, ", ".join(in_table)])
        assert found.shown == (model == "switch-primer")
        assert min(found.seeds) > 0, "lower with every seed"
    columns = {"model": "", "ends lower by": "nats", "time": "times less"}
    columns |= {"the paper's": "times faster"}
    source = "Three seeds; Table 5 in the last column"
    display(SourcedTable("With and without the changes", source, columns, rows))
    millions = {
        model: f"{seeds[0]['parameters'] / 1e6:.2f}"
        for model, seeds in families.items()
    }
    assert max(map(below_counts, families.values())) < 0, "no model reaches the counts"

    # ### How ours differ from the paper's
    #
    # :::{deeper}
    # Positions, size, and the kind of Synthesizer.
    # :::
    #
    # All six have a learned table of positions, and end above the counts (the thin line); the paper's have
    # relative attention, so part of the gain may be due to the table ({doc}`positions`). The Switch
    # Transformers have {value}`millions["switch"]` million parameters, the paper's 550 million. The paper
    # does not name its Synthesizer, but its released `synthesizer.gin` does: `random_plus`, which adds random
    # scores to dot products. That is neither of the two here.

    # ## T5, an encoder-decoder
    #
    # {doc}`T5 </labml_primer/compared/t5>` fills gaps in a text. Its decoder becomes Primer-EZ's, and its
    # encoder a Transformer++'s. The paper finds the two about equal (last table), and concludes that this
    # task benefits from other modeling decisions than a language model (appendix A.12). Here no difference is
    # shown.
    filling = read_runs(plan="filling")
    assert filling.keys() == MODELS.keys(), "every model is shown"
    display(table(filling, MODELS, "t5", "Compare Table 7", comparisons))
    printed = read_table(__data__[1])
    in_paper = {
        model: float(printed.entry("log perplexity", model=name))
        for model, name in THEIRS.items()
    }
    rows = [
        [MODELS[model][0], f"{100 * math.exp(logarithm - in_paper['t5']):.1f}"]
        for model, logarithm in in_paper.items()
    ]
    heads = {"model": "", "perplexity": "%"}
    display(
        SourcedTable("The paper's perplexities, T5 = 100", printed.source, heads, rows)
    )
    # Each line is one seed. Halfway through, all are at {value}`halfway` nats per token. The loss stays near
    # that for hundreds of steps, and then falls. The step at which it falls differs more between seeds than
    # between models, and the steps that choose a rate end before it.
    every_loss = [run["loss"] for seeds in filling.values() for run in seeds]
    halfway = extent([each[len(each) // 2 - 1] for each in every_loss], ".2f")
    compared = [difference(filling, m, "t5", comparisons) for m in MODELS if m != "t5"]
    decoder = difference(filling, "t5-primer-ez-decoder", "t5-pp", comparisons)
    assert not any(each.shown for each in (*compared, decoder))
    for model in MODELS:
        lowest, second = (loss for _, loss in tried_of("filling", model))
        assert second - lowest < 0.015, "the choice of a rate is mostly noise"
    fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for model, (name, colour) in MODELS.items():
        for run, line in zip(filling[model], ("-", "--", ":"), strict=True):
            label = f"{name}, seed {run['seed']}"
            marker = "." if model == "t5-gelu" else ""
            steps, losses = run["steps"], run["loss"]
            ax.plot(steps, losses, line, color=colour, lw=1.2, label=label)
            ax.lines[-1].set(marker=marker, markevery=0.08)
    ax.set(
        title=f"each of {setting(filling.values())}",
        xlabel="step",
        ylabel="loss, nats per token",
    )
    ax.legend(ax.lines[:: len(filling["t5"])], [name for name, _ in MODELS.values()])
    plt.show()

    # ## An encoder alone, as in BERT
    #
    # Does Primer improve BERT? The paper leaves this open (appendix A.15). In BERT's task
    # {cite:p}`devlin2019bert`, a mask replaces 15% of the characters, and the loss is that of predicting
    # these from both sides. Two-sided counts of the same text reach {value}`f"{two_sided:.2f}"` nats with the
    # same masks, and these encoders end at {value}`f"{lowest:.2f}"` or more. So they have not learned what
    # counts know, and this comparison tests nothing yet.
    masked = {
        model.removeprefix("encoder-"): runs
        for model, runs in read_runs(plan="masked").items()
    }
    assert masked.keys() == ENCODERS.keys(), "every model is shown"
    two_sided = two_sided_counts("characters", 1200, 64)
    lowest = min(final_loss(runs).mean for runs in masked.values())
    assert two_sided < lowest - 0.3
    display(table(masked, ENCODERS, "encoder", "BERT's task, five seeds", comparisons))

    # ## In short
    #
    # - Primer-EZ's changes speed up a Switch Transformer with a learned table, by about the paper's factor.
    #   For the other families, our runs are too short or too noisy to say.
    # - Runs that leave T5's plateau early, and encoders that are better than two-sided counts, would decide.
    #
    # All of this compares learning. {doc}`/benchmarks/speed` compares the time of a step.
