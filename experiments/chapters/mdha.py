r"""
# MDHA in depth

Convolutions after queries, keys and values: which of their details matter?

In short: with a learned table of positions, MDHA helps because it sees the previous tokens, and values gain
most from it: convolutions on values alone end at least as well as on all three. Kernels of width 1, which see
no other token, gain nothing. Width 2 is worse than widths 5 and 7 by more than noise between seeds explains,
but its learning rate is lower. For most other pairs, three seeds do not decide. With rotary positions the
convolution gains much less, and values still gain most. All models have
{value}`f"{runs['none'][0]['parameters'] / 1e6:.1f}"` million parameters and read characters for 1,200 steps,
with three seeds.

MDHA, *multi-DConv-head attention*, is attention with a convolution after each of its projections. With a
learned table of positions, it is the one of Primer's changes whose removal hurts most; with rotary positions,
on the same characters, it comes second on average ({doc}`parts`). It has six details: which heads and
channels share a kernel, the width of the kernel, its bias, its initial weights, its place before or after the
projections, and which of queries, keys and values have one.

Source: {cite:t}`so2021primer`, section 3, appendix A.6 and its released code;
{cite:t}`jayasiri2020annotated`.
"""

import math
from collections.abc import Iterable

from experiments.measured.analysis import (
    Spread,
    critical_difference,
    every_seed,
    final_loss,
    final_losses,
    gain,
    relative_perplexity,
    until,
)
from experiments.measured.figures import draw, draw_final_losses, table
from experiments.measured.settings import below_counts
from experiments.measured.tables import SourcedTable
from experiments.records.query import Runs, read_runs

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
    # The final loss of sixteen models, the best on top. Hollow dots are seeds, full dots their mean. In the
    # shaded band, a model differs from the walk-through's layer by less than the {term}`critical difference`,
    # so the difference may be noise. The thin line is the loss of counting the same text
    # ({doc}`/labml_primer/training/counting`): with a learned table of positions, no model reaches it in
    # these runs.
    runs = read_runs(plan="mdha")
    critical = float(critical_difference(final_losses(runs)))
    assert runs.keys() == MODELS.keys(), "every model is shown"
    assert max(map(below_counts, runs.values())) < 0, "no model reaches the counts"
    draw_final_losses(runs, MODELS, "channel", critical)

    # ## All models
    #
    # Each detail is changed alone, starting from the walk-through's layer,
    # {py:class}`~labml_primer.primer.variations.MultiDConvSharedByHeadsAttention`: kernels for each channel,
    # which all heads share, of width 3, with a bias, with PyTorch's random initialization, after all three
    # projections. Two rows differ in more: the paper's layer, which {doc}`ours` and {doc}`parts` call MDHA,
    # and the same with its convolutions before the projections. All have the ReLU.
    #
    # The paper compares convolutions before and after the projections (Table 4), and says without numbers
    # that wider kernels do not help and in several cases hurt (section 3). Its released code differs from the
    # walk-through of {cite:t}`jayasiri2020annotated` in the sharing, the bias and the initialization.
    from IPython.display import display

    display(table(runs, MODELS, "channel", "Details changed"))
    percent = 100 * math.expm1(critical)
    deviations = {model: final_loss(runs[model]).deviation for model in MODELS}
    noisy = [model for model in MODELS if deviations[model] > 0.03]
    quiet = [model for model in MODELS if model not in noisy]
    worse = [model for model in MODELS if every_seed(runs, "channel", model)]
    better = [model for model in MODELS if every_seed(runs, model, "channel")]

    spreads = sorted(deviations, key=deviations.__getitem__)
    assert spreads[-1] == "shared" and {"none", "width-1"} <= {*noisy}
    near = [model for model in MODELS if abs(deviations[model] - 0.03) < 0.01]
    assert not near, "no model is near the threshold"

    def names_of(models: Iterable[str]) -> str:
        return ", ".join(MODELS[model][0] for model in models)

    def some(*names: str) -> dict[str, tuple[str, str]]:
        return {name: MODELS[name] for name in names}

    def distance(worse: str, better: str) -> str:
        """How far the mean final loss of a model is above another's, in critical differences."""
        return f"{gain(runs, better, worse) / critical:.2f}"

    # The critical difference is {value}`f"{critical:.3f}"` nats, or {value}`f"{percent:.0f}%"` of perplexity
    # ({doc}`method` derives it). It assumes the same noise for all models, but the standard deviation is
    # {value}`f"{min(deviations[model] for model in noisy):.2f}"` nats or more for {value}`names_of(noisy)`,
    # and at most {value}`f"{max(deviations[model] for model in quiet):.2f}"` for the others.
    #
    # Of the {value}`len(MODELS) - 1` other models, {value}`len(worse)` are worse than the walk-through's
    # layer with every seed, and {value}`len(better)` are better: {value}`names_of(better)`. By chance alone,
    # about {value}`f"{(len(MODELS) - 1) / 4:.0f}"` of them would be on one side with every seed.

    # ## Who shares a kernel?
    #
    # {doc}`/labml_primer/primer/variations` has the three ways: a kernel for everything, one for each channel
    # of a head, or one for each channel of each head, as in the paper.
    draw(runs, some("shared", "channel", "head-and-channel"), "channel")
    for other in ("shared", "head-and-channel"):
        assert abs(gain(runs, "channel", other)) < critical, (
            "none is shown to be better"
        )
    # None of the three is shown to be better. One kernel for all has the noisiest seeds, with a standard
    # deviation of {value}`f"{deviations['shared']:.2f}"` nats. A possible reason: with four numbers each for
    # all queries, keys and values, one bad initial number matters more.

    # ## How wide?
    #
    # A kernel of width 1 is one factor for each channel, and sees no other token.
    draw(
        runs,
        some("none", "width-1", "width-2", "channel", "width-5", "width-7"),
        "channel",
    )
    rates = {model: runs[model][0]["rate"] for model in MODELS}
    for better_one, worse_one in (
        *(("channel", "width-1"), ("none", "width-1")),
        *(("width-5", "width-2"), ("width-7", "width-2")),
    ):
        assert gain(runs, better_one, worse_one) > critical, "more than noise"
    assert not every_seed(runs, "none", "width-1"), "the seeds disagree"
    for better_one, worse_one in (
        *(("channel", "width-2"), ("width-5", "channel"), ("width-7", "channel")),
    ):
        assert every_seed(runs, better_one, worse_one), "with every seed"
        assert gain(runs, better_one, worse_one) < critical, "but by less"
    # The convolution helps by seeing other tokens. With width 1, the layer can compute only what plain
    # attention can, because its factors could be part of the projections. It ends
    # {value}`distance("width-1", "channel")` critical differences above width 3, and even
    # {value}`distance("width-1", "none")` above no convolution. But these are two of the noisy models, and
    # the seeds disagree on the second.
    #
    # Width 2 is {value}`distance("width-2", "channel")` critical differences worse than width 3, with every
    # seed. Its learning rate is lower, {value}`rates["width-2"]` instead of {value}`rates["channel"]`, which
    # may be the reason. Wider kernels do not hurt here: widths 5 and 7 are better with every seed, by
    # {value}`distance("channel", "width-5")` and {value}`distance("channel", "width-7")` critical
    # differences, with a rate of {value}`rates["width-5"]`. Width 2 is worse than these two by
    # {value}`distance("width-2", "width-5")` and {value}`distance("width-2", "width-7")`.

    # ## Which initialization, and a bias?
    #
    # In the released code, a kernel starts with 1/2 for the current token and 1/6 for each of the two before
    # it. A layer whose kernels start with 1 and zeros is plain attention at first.
    draw(
        runs,
        some("none", "channel", "no-bias", "released-start", "identity-start"),
        "channel",
    )

    assert abs(gain(runs, "channel", "released-start")) < critical, "not distinguished"
    for better_one, worse_one in (
        ("channel", "identity-start"),
        ("identity-start", "none"),
    ):
        assert every_seed(runs, better_one, worse_one), "with every seed"
        assert gain(runs, better_one, worse_one) < critical
    assert gain(runs, "no-bias", "identity-start") > critical, "more than noise"
    assert every_seed(runs, "no-bias", "channel"), "with every seed"
    assert gain(runs, "no-bias", "channel") < critical

    def after(steps: int) -> Runs:
        """The runs up to a number of steps."""
        end = runs["none"][0]["steps"].index(steps) + 1
        return {m: [until(run, end) for run in seeds] for m, seeds in runs.items()}

    # A bias can add little. On keys it shifts all scores of a query by the same amount, which the softmax
    # ignores. On values, the bias of the output projection can replace it. On queries, the bias of their
    # projection can, except at the second token, where the kernel sees only two tokens. (The first token
    # attends only to itself.)
    #
    # The released initialization cannot be distinguished from PyTorch's. The one as plain attention is worse
    # with every seed, by {value}`distance("identity-start", "channel")` critical differences. Such a layer
    # may first have to learn that the tokens before matter: it is worse by
    # {value}`f"{gain(after(450), 'channel', 'identity-start'):.2f}"` nats at step 450, and by
    # {value}`f"{gain(runs, 'channel', 'identity-start'):.2f}"` at the end. It ends better than no convolution
    # with every seed, by {value}`distance("none", "identity-start")` critical differences, and worse than the
    # layer without a bias, by {value}`distance("identity-start", "no-bias")`. Without the bias, the layer is
    # better than with it with every seed, by {value}`distance("channel", "no-bias")`, with a rate of
    # {value}`rates["no-bias"]`.

    # ## Before or after the projections?
    #
    # The paper's layer, {py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention`, has kernels for
    # each head, no bias, and the released initialization. The order of a separable convolution,
    # {py:class}`~labml_primer.primer.primer.SeparableConvolutionAttention`, exchanges convolution and
    # projection.
    draw(runs, some("paper", "before-projection", "channel"), "paper")
    assert abs(gain(runs, "paper", "before-projection")) < critical, "not shown"
    # In the paper, MDHA's order saves more (factors of 1.76 ± 0.06 and 1.54 ± 0.05, Table 4), although the
    # two perplexities, 34.26 ± 0.12 and 34.34 ± 0.10, differ by less than their spread. Here no difference is
    # shown, and the seeds of the paper's layer are too far apart to show a small one.

    # ## Queries, keys or values?
    #
    # Convolutions after one of the three projections only. Values alone are best.
    draw(
        runs,
        some("none", "only-queries", "only-keys", "only-values", "channel"),
        "channel",
    )

    for worse_one in ("only-queries", "only-keys"):
        assert gain(runs, "only-values", worse_one) > critical, "values alone are best"
    assert every_seed(runs, "only-values", "channel"), "with every seed"
    assert gain(runs, "only-values", "channel") < critical
    for model in ("only-queries", "only-keys", "only-values"):
        assert gain(runs, model, "none") > 0, "it helps on each of the three"

    def share(model: str) -> str:
        """How much of the gain of all three a model has."""
        return f"{gain(runs, model, 'none') / gain(runs, 'channel', 'none'):.0%}"

    # A convolution helps on each of the three. On average, queries alone have {value}`share("only-queries")`
    # of the gain of all three, keys alone {value}`share("only-keys")`, and values alone
    # {value}`share("only-values")`, for the cost of one convolution instead of three. Values alone are better
    # than queries alone by {value}`distance("only-queries", "only-values")` critical differences, than keys
    # alone by {value}`distance("only-keys", "only-values")`, and than all three, with every seed, by
    # {value}`distance("channel", "only-values")`.
    #
    # A possible reason: a value that contains the tokens before it carries them to every token that attends
    # to it, while queries and keys change only which tokens are attended to. No run has queries and keys
    # without values.

    # ## With rotary positions
    #
    # With a learned table, a convolution is also a source of information about positions. Which of these
    # results hold with {doc}`rotary positions </labml_primer/since/rotary>`, with which attention knows how
    # far apart two tokens are? The figure shows the same sixteen models with them, each with a rate tuned
    # again.
    #
    # The convolution gains much less: the walk-through's layer ends
    # {value}`f"{gain(rotary, 'channel', 'none'):.3f}"` nats below no convolution, instead of
    # {value}`f"{gain(runs, 'channel', 'none'):.3f}"` with a learned table; the paper's layer,
    # {value}`f"{gain(rotary, 'paper', 'none'):.3f}"`. {doc}`ours` has the paper's layer with five seeds. The
    # critical difference is smaller too, {value}`f"{band:.3f}"` nats. Losses with rotary positions are those
    # on the whole reported plays, those with a learned table on 64 windows of each. In the table, the
    # walk-through's layer is 100.
    #
    # *What holds.* The convolution has to see other tokens: width 1 is worst, and worse than no convolution
    # with every seed. Values alone are best again, and again no difference from all three is shown. They are
    # better than queries alone by {value}`apart("only-queries", "only-values")` critical differences, and
    # than keys alone, with every seed, by {value}`apart("only-keys", "only-values")`.
    #
    # *What does not.* On queries alone a convolution does not help: it ends above no convolution with every
    # seed. One kernel for all is worse than kernels for each channel, by {value}`apart("shared", "channel")`
    # critical differences, but its seeds are noisy again. Wider kernels show no gain. Width 2 is still worse
    # with every seed, by {value}`apart("width-2", "channel")` critical differences, and here it has the
    # higher rate, {value}`rotary["width-2"][0]["rate"]` instead of {value}`rotary["channel"][0]["rate"]`.
    rotary = read_runs(plan="today-mdha", ends=True)
    band = float(critical_difference(final_losses(rotary)))
    assert rotary.keys() == MODELS.keys(), "the same sixteen models"
    draw_final_losses(rotary, MODELS, "channel", band)

    assert band < critical, "the critical difference is smaller"
    assert gain(rotary, "channel", "none") < gain(runs, "channel", "none") / 4
    mean = {model: final_loss(rotary[model]).mean for model in MODELS}
    in_order = sorted(mean, key=mean.__getitem__)
    assert (in_order[0], in_order[-1]) == ("only-values", "width-1"), "best and worst"
    for better_one, worse_one in (
        *(("none", "width-1"), ("none", "only-queries"), ("channel", "none")),
        *(("channel", "width-2"), ("channel", "only-keys"), ("only-keys", "none")),
        *(("only-values", "only-keys"), ("channel", "shared"), ("no-bias", "channel")),
    ):
        assert every_seed(rotary, better_one, worse_one), "with every seed"
    for better_one, worse_one in (
        ("only-values", "only-queries"),
        ("channel", "shared"),
    ):
        assert gain(rotary, better_one, worse_one) > band, "more than noise"
    assert gain(rotary, "only-values", "channel") < band, "not shown"
    assert abs(gain(rotary, "no-bias", "channel")) < band, "not shown"
    per_channel = ("channel", "head-and-channel", "paper")
    for first in per_channel:
        assert max(gain(rotary, first, second) for second in per_channel) < band
    for wider in ("width-5", "width-7"):
        assert not every_seed(rotary, wider, "channel"), "no gain is shown"
    assert rotary["width-2"][0]["rate"] > rotary["channel"][0]["rate"]

    def apart(worse: str, better: str) -> str:
        """How far a model is above another with rotary positions, in critical differences."""
        return f"{gain(rotary, better, worse) / band:.2f}"

    rows = [
        [
            name,
            *(
                f"{Spread.of(relative_perplexity(each['channel'], each[model])):.1f}"
                for each in (runs, rotary)
            ),
        ]
        for model, (name, _) in MODELS.items()
    ]
    heads = {"model": "", "learned table": "%", "rotary": "%"}
    display(
        SourcedTable("Relative perplexity with both positions", "Our runs", heads, rows)
    )

    # ## Limits
    #
    # *Longer runs.* With a learned table, the model without a convolution is
    # {value}`f"{gain(after(300), 'channel', 'none'):.2f}"` nats worse after 300 steps, and
    # {value}`f"{gain(runs, 'channel', 'none'):.2f}"` at the end. Longer runs may reduce the gain. With rotary
    # positions, the chapter {doc}`positions` has runs of four times the steps.
    #
    # *Combinations.* One detail is changed at a time. Two together may gain more or less than the sum.
    #
    # *Learning rates.* The critical difference does not include the noise in the choice of each model's rate
    # (see the table), so some differences may be due to the rates.
    #
    # {doc}`method` lists the limits of scale, data and hardware.
    #
    # ## In short
    #
    # - The convolution helps because it sees the previous tokens; values gain most from that.
    # - With a learned table of positions, widths 5 and 7 end below 3 with every seed.
    # - Without a bias, the layer ends lower with every seed, with either kind of positions, but by less than
    #   the critical difference. Sharing a kernel matters only with rotary positions, where one kernel for all
    #   is worse with every seed.
    # - With rotary positions, the walk-through's layer gains
    #   {value}`f"{gain(rotary, 'channel', 'none'):.2f}"` nats instead of
    #   {value}`f"{gain(runs, 'channel', 'none'):.2f}"`. Values still gain most, and queries alone
    #   gain nothing.
    #
    # And at other sizes? {doc}`sizes` trains the Transformer, Primer-EZ and Primer at five widths.
