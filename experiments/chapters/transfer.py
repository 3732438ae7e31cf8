r"""
# In other models

Do Primer-EZ's changes help other kinds of models, for which the search never tried them?

In short: in Switch Transformers and Synthesizers with a learned table of positions, the changes lower the
loss with every one of three seeds. The Switch Transformer needs {value}`f"{saves['switch-primer'].mean:.2f}"`
times less time ({value}`saves['switch-primer'].between()`). The paper's factors,
{value}`" and ".join(in_table_5["switch-primer"])`, are in this interval, so no difference from the paper is
shown. The Synthesizers gain less on average. In T5, the model with the changes cannot be distinguished from a
Transformer++, as in the paper. In an encoder alone, with BERT's task, no gain of Primer-EZ over a Transformer
is shown. The Synthesizers have {value}`millions(families["synthesizer-dense"])` million parameters and the
Switch Transformers {value}`millions(families["switch"])` million; {doc}`method` describes the set-up.

The paper puts the changes into three other families of models too (section 4.2, appendix A.12), and so does
this chapter:

- in a {doc}`Switch Transformer </labml_primer/compared/switch>`, which sends each token to one of many
  feed-forward layers, the attention and the activation function become Primer-EZ's;
- a {doc}`Synthesizer </labml_primer/compared/synthesizer>`, which has no queries and keys to convolve, gets
  the squared ReLU alone;
- in {doc}`T5 </labml_primer/compared/t5>`, which fills gaps in a text, the decoder becomes Primer-EZ's and
  the encoder a Transformer++'s.

An encoder alone, with BERT's task, is our addition.

Source: {cite:t}`so2021primer`, section 4.2, appendices A.10 and A.12, Tables 5 and 7.
"""

import math

from experiments.measured.analysis import (
    Spread,
    ahead,
    every_seed,
    extent,
    final_loss,
    gain,
    relative_perplexity,
    setting,
    speedup,
)
from experiments.measured.figures import dots, draw, draw_counts, table
from experiments.measured.settings import below_counts
from experiments.measured.tables import SourcedTable
from experiments.paper.tables import read_table
from experiments.records.query import Measured, read_runs, tried_of

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


def millions(runs: list[Measured]) -> str:
    """Return the parameters of a model, in millions."""
    return f"{runs[0]['parameters'] / 1e6:.2f}"


if __name__ == "__main__":
    # The final loss of each family, without the changes (grey) and with them (teal). Hollow dots are seeds,
    # full dots their mean. Further left is better. The thin line is the loss of counting the same text
    # ({doc}`/labml_primer/training/counting`): with their learned table of positions, no model reaches it in
    # these short runs.
    from IPython.display import display

    families = read_runs(plan="transfer")
    assert {*families} == {*FAMILIES, *(plain for _, plain, _ in FAMILIES.values())}
    assert max(map(below_counts, families.values())) < 0, "no model reaches the counts"
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
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
    # The perplexity is in percent of the unchanged model's, and the factors are speed-ups in time over that
    # model. The last column has the paper's factors, at the compute that its unchanged model spends in 525
    # thousand steps and in a million.
    printed = read_table(__data__[0])
    saves = {
        model: speedup(families[plain], families[model], "seconds")
        for model, (_, plain, _) in FAMILIES.items()
    }
    in_table_5 = {
        model: [
            printed.entry(f"speedup at {steps}", data="C4", model=theirs)
            for steps in ("525K", "1M")
        ]
        for model, (_, _, theirs) in FAMILIES.items()
    }
    rows = []
    for model, (name, plain, _) in FAMILIES.items():
        pair = families[plain], families[model]
        perplexity = Spread.of(relative_perplexity(*pair))
        rows.append(
            [
                name,
                *(f"{final_loss(each):.3f}" for each in pair),
                f"{perplexity:.1f}",
                f"{saves[model]:.2f}",
                ", ".join(in_table_5[model]),
            ]
        )
    for model, (_, plain, _) in FAMILIES.items():
        assert every_seed(families, model, plain), "lower with every one of three seeds"
        few, more = sorted(families[each][0]["parameters"] for each in (plain, model))
        assert more / few < 1.01, "as many parameters"
    columns = {
        "model": "",
        "without": "nats",
        "with": "nats",
        "perplexity": "%",
        "time": "factor",
        "the paper's": "factors",
    }
    source = "Table 5 in the last column"
    display(SourcedTable("With and without the changes", source, columns, rows))
    # In the Synthesizers, the squared ReLU saves less than in the paper, and on average less than in a
    # Transformer ({doc}`ours`). Its gain depends on the rest of the model: {doc}`parts` finds it small within
    # Primer. The paper's text does not name its Synthesizer, but its released `synthesizer.gin` does:
    # `random_plus`, which adds random scores to dot products ({doc}`/labml_primer/compared/synthesizer`).
    # That is neither of the two here.

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

if __name__ == "__main__":
    # ## T5, an encoder-decoder
    #
    # The Primer-EZ decoder has the encoder of a Transformer++, so compare it with the row *Transformer++*:
    # the two overlap. The encoder and the decoder have two blocks each, and are trained with T5's Adafactor,
    # whose learning rate is constant in so short a run. The perplexity is that of the removed spans and of
    # the sentinels that mark them.
    filling = read_runs(plan="filling")
    assert filling.keys() == MODELS.keys(), "every model is shown"
    draw(filling, MODELS, "t5")
    display(table(filling, MODELS, "t5", "Compare Table 7"))
    # Table 7 has the logarithms of the paper's perplexities on C4. As percent of T5's:
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
    every_loss = [run["loss"] for seeds in filling.values() for run in seeds]
    halfway = extent([each[len(each) // 2 - 1] for each in every_loss], ".2f")
    lead = gain(filling, "t5-primer-ez-decoder", "t5-pp")
    assert lead > 0, "better on average"
    assert not every_seed(filling, "t5-primer-ez-decoder", "t5-pp"), (
        "not with every seed"
    )
    for model in ("t5-pp", "t5-primer-ez-decoder"):
        assert every_seed(filling, model, "t5"), "below T5 with each of three seeds"
    for model in MODELS:
        lowest, second = (loss for _, loss in tried_of("filling", model))
        assert second - lowest < 0.015, "the choice of a rate is mostly noise"
    # The Primer-EZ decoder is about as good as the Transformer++ whose encoder it has: better by
    # {value}`f"{lead:.2f}"` nats on average, but not with every seed. Both end below T5 with each of three
    # seeds. The paper finds the same, with one run of each of the two, and concludes that this task benefits
    # from other modeling decisions than a language model (appendix A.12).
    #
    # Except for the Transformer++, the seeds end far apart. Each line below is one seed. Halfway through, all
    # are at {value}`halfway` nats per token. The loss stays near that, often for hundreds of
    # steps, and then falls. The step at which it falls differs more
    # between seeds than between models, and some runs end before it.
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

# The encoders that predict masked characters: a name and a colour.
ENCODERS = {
    "encoder": ("Transformer", "C5"),
    "squared-relu": ("Transformer+squared ReLU", "C0"),
    "primer-ez": ("Primer-EZ", "C0"),
    "pp": ("Transformer++", "C2"),
}

if __name__ == "__main__":
    # ## An encoder alone, as in BERT
    #
    # Does Primer improve BERT? The paper leaves this open (appendix A.15), so here are encoders with BERT's
    # task {cite:p}`devlin2019bert`: in each text, a mask replaces 15% of the characters, at random places,
    # and the loss is that of predicting these. Every position sees both sides, but the convolutions of
    # {term}`MDHA` still look back alone. The encoders have two blocks and rotary positions.
    masked = {
        model.removeprefix("encoder-"): runs
        for model, runs in read_runs(plan="masked").items()
    }
    assert masked.keys() == ENCODERS.keys(), "every model is shown"
    draw(masked, ENCODERS, "encoder")
    in_encoders = {
        model: speedup(masked["encoder"], masked[model], "multiply_adds")
        for model in ENCODERS
        if model != "encoder"
    }
    rows = []
    for model, (name, _) in ENCODERS.items():
        relative = relative_perplexity(masked["encoder"], masked[model])
        rows.append(
            [
                name,
                f"{final_loss(masked[model]):.3f}",
                f"{Spread.of(relative):.1f}",
                f"{in_encoders[model]:.2f}" if model in in_encoders else "",
            ]
        )
    heads = {"model": "", "loss": "nats", "perplexity": "%", "multiply-adds": "factor"}
    title = "Encoders that predict masked characters"
    display(SourcedTable(title, "Our runs", heads, rows))
    below = sum(ahead(masked, "primer-ez", "pp"))
    assert in_encoders["pp"].low > 1, "it is shown to gain"
    for model in ("squared-relu", "primer-ez"):
        assert in_encoders[model].includes_one, "no gain is shown"
    assert in_encoders["primer-ez"].mean > 1, "better on average"
    # In these short runs, only Transformer++ is shown to gain over the Transformer. Primer-EZ is better than
    # the Transformer on average, but its interval includes 1, and it ends below Transformer++ with
    # {value}`below` of {value}`len(masked["pp"])` seeds. The paper's own trial of this task was brief: better
    # than the Transformer, not obviously better than Transformer++ (appendix A.12). Nothing here contradicts
    # that.
    #
    # ## Limits
    #
    # *Longer runs.* The encoder-decoders stop soon after leaving the plateau, or on it. A model that leaves
    # it later may still be the better one in the end.
    #
    # *Learning rates.* After the 400 steps that choose a rate, all encoder-decoders are still on the plateau,
    # so the choice is mostly noise.
    #
    # *Positions.* The Switch Transformers and Synthesizers have a learned table of positions. The paper's, in
    # T5, have relative attention, so part of the gain here may be due to the table ({doc}`positions`).
    #
    # *Scale.* The paper's Switch Transformers have 550 million parameters. {doc}`method` lists the other
    # limits.
    #
    # ## In short
    #
    # - With a learned table of positions, Primer-EZ's changes speed up a Switch Transformer. The interval,
    #   {value}`saves['switch-primer'].between()`, includes the paper's factors.
    # - The squared ReLU alone helps Synthesizers, but less than in the paper.
    # - For T5, runs of this length show no difference between Primer-EZ's decoder and a Transformer++'s.
    # - For encoders with BERT's task, they show no gain of Primer-EZ over a Transformer, nor exclude one.
    #
    # All of this compares learning. {doc}`/benchmarks/speed` compares the time of a step.
