r"""
# MDHA in depth

Convolutions after queries, keys and values: which of their details matter?

Only two, as far as three seeds show. A kernel must see other tokens, and values gain most from it.

Source: {cite:t}`so2021primer`, section 3, appendix A.6; {cite:t}`jayasiri2020annotated`.
"""

from experiments.measured.analysis import difference, final_losses, gain, limit, until
from experiments.measured.figures import draw_final_losses, draw_gains, table
from experiments.measured.settings import below_counts
from experiments.records.query import read_runs

MODELS = {  # a name and a colour
    "channel": ("the walk-through's layer", "C0"),
    "none": ("no convolution", "C5"),
    "shared": ("one kernel for all", "C0"),
    "head-and-channel": ("kernels for each head", "C0"),
    "width-1": ("width 1", "C0"),
    "width-2": ("width 2", "C0"),
    "width-5": ("width 5", "C0"),
    "width-7": ("width 7", "C0"),
    "no-bias": ("no bias", "C0"),
    "released-start": ("initialized as released", "C0"),
    "identity-start": ("initialized as plain attention", "C0"),
    "paper": ("the paper's layer", "C0"),
    "before-projection": ("the paper's, before projections", "C0"),
    "only-queries": ("only queries", "C0"),
    "only-keys": ("only keys", "C0"),
    "only-values": ("only values", "C0"),
}


if __name__ == "__main__":
    # In the shaded band, a model may be as good as the walk-through's layer.
    from IPython.display import display

    runs, rotary = (read_runs(plan=plan) for plan in ("mdha", "today-mdha"))
    assert runs.keys() == rotary.keys() == MODELS.keys(), "every model is shown"
    among = (
        *(("only-values", "only-queries"), ("only-values", "only-keys")),
        *(("none", "width-1"), ("paper", "none")),
    )
    comparisons = 2 * (len(MODELS) - 1 + len(among))
    draw_final_losses(runs, MODELS, "channel", limit(final_losses(runs), comparisons))

    # ## With a learned table of positions
    #
    # MDHA, *multi-DConv-head attention*, is attention with a convolution after each of its projections. Each
    # detail is changed alone, starting from the walk-through's layer,
    # {py:class}`~labml_primer.primer.variations.MultiDConvSharedByHeadsAttention`: kernels for each channel,
    # which all heads share, of width 3, with a bias. Two rows differ in more: the paper's layer, and the same
    # with its convolutions before the projections.
    #
    # - *What it sees.* A kernel of width 1 is one factor for each channel, sees no other token, and gains
    #   nothing: the projections could contain its factors. Width 2 is worse than 3, but has a lower rate.
    # - *Where it starts.* A layer that starts as plain attention ends higher. It may first have to learn that
    #   the tokens before matter: {value}`f"{slow_start:.2f}"` nats higher at step 450.
    # - *Which projections.* Values alone do as well as all three, and better than queries or keys alone. A
    #   value that contains the tokens before it carries them to every token that attends to it; queries and
    #   keys change only which tokens are attended to.
    # - *The rest*, who shares a kernel, wider kernels, a bias, before or after the projections: no difference
    #   is shown. A bias can add little, because others can replace it.
    #
    # No model reaches the thin line, the counts of the same text, in these runs. A difference counts if it is
    # larger than the ± next to it ({doc}`method`), for all {value}`comparisons` comparisons of this page.
    display(table(runs, MODELS, "channel", "Learned table, three seeds", comparisons))

    def below(positions: str) -> set[str]:
        """The models that end higher than the walk-through's layer by more than noise explains."""
        each = {"learned": runs, "rotary": rotary}[positions]
        found = {
            model: difference(each, model, "channel", comparisons)
            for model in MODELS
            if model != "channel"
        }
        assert all(pair.nats < 0 for pair in found.values() if pair.shown)
        return {model for model, pair in found.items() if pair.shown}

    cut = runs["none"][0]["steps"].index(450) + 1
    early = {model: [until(run, cut) for run in seeds] for model, seeds in runs.items()}
    slow_start = gain(early, "channel", "identity-start")
    assert below("learned") == {"none", "width-1", "width-2", "identity-start"}
    assert max(map(below_counts, runs.values())) < 0, "no model reaches the counts"

    # ## With rotary positions
    #
    # With {doc}`rotary positions </labml_primer/since/rotary>`, attention knows how far apart two tokens are,
    # and the convolution gains {value}`f"{left:.0%}"` of what it gains with a table. It still must see other
    # tokens, and values alone are still the best. On queries alone it now gains nothing.
    display(
        table(rotary, MODELS, "channel", "Rotary positions, three seeds", comparisons)
    )
    left = gain(rotary, "channel", "none") / gain(runs, "channel", "none")
    gains = {
        f"{MODELS[better][0]} over {MODELS[worse][0]}, {positions}": difference(
            each, better, worse, comparisons
        )
        for better, worse in among
        for positions, each in (("learned", runs), ("rotary", rotary))
    }
    draw_gains(
        gains,
        "nats per character by which the first ends lower",
        [*runs.values(), *rotary.values()],
    )
    assert below("rotary") >= {"none", "width-1", "only-queries"}
    assert min(rotary, key=lambda m: gain(rotary, "channel", m)) == "only-values"
    over_keys, over_queries = (
        gains[f"only values over {other}, learned"]
        for other in ("only keys", "only queries")
    )
    assert over_keys.shown and over_queries.shown

    # ### Longer runs, and rates
    #
    # :::{deeper}
    # The limit does not include these.
    # :::
    #
    # *Longer runs* may reduce the gain with a learned table: without a convolution, a model is
    # {value}`f"{gain(early, 'channel', 'none'):.2f}"` nats higher at step 450, and
    # {value}`f"{gain(runs, 'channel', 'none'):.2f}"` at the end.
    #
    # *Rates.* Each model's was chosen with one seed; the limit does not include that. Losses with rotary
    # positions are those on the whole reported plays, those with a table on 64 windows of each.

    # ## In short
    #
    # - The convolution helps because it sees the tokens before, and values gain most from that.
    # - Models that are trained longer, beyond the counts, would change our mind about the rest.
    #
    # And at other sizes? {doc}`sizes` trains the Transformer, Primer-EZ and Primer at five widths.
