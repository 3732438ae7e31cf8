r"""
# With rotary positions

Do Primer-EZ's changes help a Transformer that knows how far apart two tokens are?

Yes, but less: on characters, rotary positions take {value}`f"{share:.0%}"` of the gain in nats.

Source: {cite:t}`so2021primer`, appendix A.8; {cite:t}`su2021roformer`; our own runs.
"""

from experiments.measured.analysis import every_seed, gain
from experiments.measured.figures import (
    draw_annealed,
    draw_by_compute,
    draw_gains,
    draw_gaps,
)
from experiments.measured.settings import (
    KINDS,
    MODERN,
    WITH_PRIMER,
    Ground,
    Pair,
    pair_table,
    read_annealed,
    read_grounds,
    read_lengths,
    read_modern,
    read_rates,
    read_setting,
)
from experiments.records.counts import LENGTHS, tokens_read
from experiments.records.query import read_runs

if __name__ == "__main__":
    # Solid lines have rotary positions, dotted ones a learned table.
    learned = read_setting("characters", "learned")
    of_300, of_1200 = read_rates().values()
    rotary = of_1200 | {"squared-relu": of_300["squared-relu"]}
    draw_by_compute({"learned": learned, "rotary": rotary})

    # ## With a learned table, and without
    #
    # Most language models today have {doc}`rotary positions </labml_primer/since/rotary>`. From a learned
    # table, as in two of the paper's three set-ups, a Transformer must first learn which token is the
    # previous one; a {term}`convolution <MDHA>` reads it from the first step on. So a Transformer with rotary
    # positions ends lower than Primer-EZ with a table. The table of positions costs more than Primer-EZ
    # gains.
    #
    # A possible explanation, which these runs do not test: an {ref}`induction head <previous-token>`, which
    # continues a pattern that was seen before, needs the previous token in its keys
    # ({cite:t}`olsson2022induction`).
    #
    # In every table of this page, a difference counts if it is larger than the ± next to it, which is wide
    # enough for all {value}`comparisons` comparisons of the page together ({doc}`method`). "Times less" is
    # its worth in {term}`multiply-adds`. Primer-EZ's own lead on each text, over the Transformer and over
    # Transformer++, is in {doc}`results`.
    from IPython.display import display

    grounds = read_grounds()
    by_table, by_rotary = Ground(learned), Ground(rotary)
    long, subwords, code = (
        grounds[name]
        for name in ("characters, 4,800 steps", "subwords, 1,200 steps", "Python code")
    )
    names = {"squared-relu": "squared ReLU", "mdha": "MDHA", "primer-ez": "Primer-EZ"}
    both_kinds = [
        Pair(f"{name}, {kind}", ground, model)
        for model, name in names.items()
        for kind, ground in (("learned", by_table), ("rotary", by_rotary))
    ]
    alone = [
        Pair(f"{name}, {text}", ground, model)
        for text, ground in (
            ("4,800 steps", long),
            ("Python code", code),
            ("subwords", subwords),
        )
        for model, name in names.items()
        if model != "primer-ez"
    ]
    added = [
        Pair(f"to {names[other]} alone, {text}", ground, "primer-ez", other)
        for other in ("mdha", "squared-relu")
        for text, ground in (
            ("1,200 steps", by_rotary),
            ("4,800 steps", long),
            ("Python code", code),
            ("subwords", subwords),
        )
    ]
    others = [
        Pair(f"Primer over {WITH_PRIMER[other]}, {text}", ground, "primer", other)
        for text, ground in (
            ("1,200 steps", by_rotary),
            ("4,800 steps", long),
            ("subwords", subwords),
        )
        for other in ("primer-ez", "pp")
    ]
    # Models with other positions have three seeds. Their noise is that of all of them.
    of_kinds = {
        kind: read_runs(plan="today-positions", positions=kind)
        for kind in KINDS
        if kind != "rotary"
    }
    of_kinds["rotary"] = {m: rotary[m][:3] for m in ("transformer", "primer-ez")}
    every_kind = Ground(
        {
            f"{model}, {kind}": seeds
            for kind, runs in of_kinds.items()
            for model, seeds in runs.items()
        }
    )
    with_positions = [
        Pair(KINDS[kind], every_kind, f"primer-ez, {kind}", f"transformer, {kind}")
        for kind in of_kinds
    ]
    scaled = read_runs(positions="rotary-scaled")
    with_scaled = Ground(
        rotary | {f"{model}, scaled": seeds for model, seeds in scaled.items()}
    )
    of_scale = [
        Pair(
            "Primer-EZ, input scaled",
            with_scaled,
            "primer-ez, scaled",
            "transformer, scaled",
        )
    ]
    modern = Ground(read_modern())
    of_modern = [
        Pair(MODERN[model], modern, model, "modern")
        for model in MODERN
        if model != "modern"
    ]
    on_pieces = read_annealed("subwords")
    annealed_modern = Ground(
        {
            model: on_pieces[model][:3]
            for model in (
                "transformer",
                "pp",
                "primer-ez",
                "modern",
                "modern-primer-ez",
            )
        }
    )
    of_annealed = [
        Pair("both changes", annealed_modern, "modern-primer-ez", "modern"),
        Pair("baseline below the Transformer", annealed_modern, "modern"),
        Pair(
            "both, below plain Primer-EZ",
            annealed_modern,
            "modern-primer-ez",
            "primer-ez",
        ),
    ]
    sections = (
        *(both_kinds, alone, added, others, with_positions, of_scale),
        *(of_modern, of_annealed),
    )
    comparisons = sum(map(len, sections))
    found = {pair.what: pair.found(comparisons) for pairs in sections for pair in pairs}
    share = 1 - found["Primer-EZ, rotary"].nats / found["Primer-EZ, learned"].nats
    on_both = {"table": learned["primer-ez"], "rotary": rotary["transformer"]}
    assert every_seed(on_both, "rotary", "table"), "with every seed"
    display(pair_table("Over the Transformer, on characters", both_kinds, comparisons))

    # ## Each change alone, and both
    #
    # Alone, each change helps on characters and on Python code. On subwords, where one token has about three
    # characters, neither is shown to help alone, but both together are. Next to MDHA, the squared ReLU adds;
    # next to the squared ReLU, the convolutions add on code and on subwords, and by character in no single
    # comparison that counts.
    assert all(each.found(comparisons).shown for each in (*both_kinds, *alone[:4]))
    assert not any(each.found(comparisons).shown for each in alone[4:])
    display(pair_table("One change alone", alone, comparisons))
    display(pair_table("The other change added", added, comparisons))

    # ## Other positions
    #
    # Sines and T5's buckets are in between, as far as three seeds show. The noise is that of all of these
    # runs together, so the limit is too wide for rotary positions and too narrow for a learned table.
    draw_gains(
        {pair.what: found[pair.what] for pair in with_positions},
        "nats per character by which Primer-EZ ends lower",
        every_kind.runs.values(),
    )
    display(
        pair_table("With other positions, three seeds", with_positions, comparisons)
    )
    # The gain is not due to the small input of these models. If the embeddings are multiplied by the root of
    # the width, as in the Transformer's paper, Primer-EZ still ends
    # {value}`f"{found[of_scale[0].what].nats:.3f}"` nats lower.
    in_order = [found[pair.what].nats for pair in with_positions]
    assert in_order[0] == max(in_order) and in_order[-1] == min(in_order)
    assert found[of_scale[0].what].shown

    # ## Four times the steps
    #
    # By how many nats the models are below the Transformer of the same seed, by steps. Bands are the range of
    # the seeds.
    draw_gaps(long.runs, ("primer", "primer-ez", "mdha", "squared-relu", "pp"))
    # In nats, Primer-EZ's lead shrinks with each seed, but the curve is flatter at the end, so fewer nats are
    # worth as many steps: the saving in compute is no smaller than in short runs ({doc}`results`). Primer,
    # with all of the paper's changes, ends lowest on average, but these runs show no difference from
    # Primer-EZ or from Transformer++.
    #
    display(pair_table("Primer, with all changes", others, comparisons))
    slow = read_runs(model="squared-relu", steps=4800, rate=0.001, ends=True)
    slower = slow["squared-relu"][0]
    rate_matters = gain(
        {"fast": long.runs["squared-relu"], "slow": slow["squared-relu"]},
        "fast",
        "slow",
    )
    longer_tuned = gain(
        {"later": of_1200["primer-ez"], "earlier": of_300["primer-ez"]},
        "later",
        "earlier",
    )
    assert rate_matters > 0 and longer_tuned > 0
    for plain, changes in zip(
        long.runs["transformer"], long.runs["primer-ez"], strict=True
    ):
        first = plain["steps"].index(1200)
        leads = [a - b for a, b in zip(plain["loss"], changes["loss"], strict=True)]
        assert leads[-1] < leads[first], "in nats, the lead shrinks"
    assert min(long.runs, key=lambda m: gain(long.runs, "transformer", m)) == "primer"
    in_long = [found[pair.what] for pair in others if "4,800" in pair.what]
    assert not any(each.shown for each in in_long)

    # ### Does the learning rate decide?
    #
    # :::{deeper}
    # Each rate was chosen with one seed, which is noisy.
    # :::
    #
    # In runs of 1,200 steps, the squared ReLU chose {value}`slower["rate"]`, and with twice that rate, which
    # we report, it ends {value}`f"{rate_matters:.3f}"` nats lower after 4,800. Primer-EZ gains
    # {value}`f"{longer_tuned:.3f}"` nats in runs of 1,200 steps if its rate is chosen in runs of that length
    # instead of 300 steps, and we report those. So Transformer++ was trained with a second rate, too:
    # {value}`second_rate["rate"]` instead of {value}`of_1200["pp"][0]["rate"]`, which its short runs chose.
    # It ends {value}`f"{abs(second_gain):.3f}"` nats higher.
    second = read_runs(plan="today-pp-second-rate", ends=True)["pp"]
    second_rate = second[0]
    second_gain = gain({"first": of_1200["pp"], "second": second}, "second", "first")
    assert second_gain < 0, "its short runs chose well"

    # ## With a rate that falls to zero
    #
    # So far, the learning rate falls with the inverse square root of the step. Most models today end with a
    # rate of zero, which lowers every loss below. A point of such a curve is not the end of a shorter run, so
    # Primer-EZ was trained for half as many steps, too: its dotted line crosses the horizontal one of a model
    # where it ends with that model's loss.
    annealed = read_annealed()
    draw_annealed(read_lengths()[4800], annealed)
    for model in ("transformer", "pp", "primer-ez"):
        both = {"to zero": annealed[model], "not": long.runs[model]}
        assert every_seed(both, "to zero", "not"), "it lowers the loss"

    # ## In a modern baseline
    #
    # The {doc}`modern baseline </labml_primer/since/modern>` has RMSNorm, SwiGLU, keys and values shared by
    # groups of heads, and no biases; the text is subwords. In short runs, both changes together lower its
    # loss, and the squared ReLU alone, in place of SwiGLU, does not. Of two other
    # {doc}`short convolutions </labml_primer/since/short_convolutions>`, Canon-B shows no gain, and token
    # shift makes it worse.
    draw_gains(
        {pair.what: found[pair.what] for pair in of_modern},
        "nats per character below the modern baseline",
        modern.runs.values(),
    )
    display(pair_table("Changes of a modern baseline", of_modern, comparisons))
    # But this baseline is not the best model of its size. In runs of four times the steps with a rate that
    # falls to zero, it ends no lower than the plain Transformer, and with both changes no lower than
    # Primer-EZ, as far as three seeds show. It has {value}`f"{fewer:.0%}"` fewer parameters. If its grouped
    # keys cost as much as its other parts gain, the two are equal; we have not trained it with a key for each
    # head.
    display(pair_table("The same, annealed, three seeds", of_annealed, comparisons))
    shown = {pair.what: found[pair.what].shown for pair in of_modern}
    assert shown[MODERN["primer-ez"]] and found[MODERN["squared-relu"]].nats < 0
    assert found[MODERN["token-shift"]].nats < 0 and shown[MODERN["token-shift"]]
    assert not shown[MODERN["canon-b"]]
    assert not any(found[pair.what].shown for pair in of_annealed)
    sizes = [on_pieces[model][0]["parameters"] for model in ("modern", "transformer")]
    fewer = 1 - sizes[0] / sizes[1]

    # ## Limits
    #
    # - A loss is the mean of two plays or two packages of code, and the models learn from one text each.
    # - A run reads {value}`read_of_code` of the code, so it never sees most of it.
    # - Each rate was chosen with one seed. Models that differ by less than a hundredth of a nat may change
    #   places with other rates.
    steps = code.runs["transformer"][0]["steps"][-1]
    read_of_code = f"{tokens_read('code', steps) / LENGTHS['code']:.0%}"

    # ## In short
    #
    # - With rotary positions, too, both changes help a Transformer with a ReLU, and most on subwords
    #   together. In a modern baseline they help in short runs.
    # - Longer runs with a rate that falls to zero and a baseline that is better than the plain Transformer
    #   would change our mind about the second.
    #
    # Which of Primer's changes do the work? {doc}`parts` takes the models apart.
