r"""
# MDHA in depth

Convolutions behind queries, keys and values: which of their details matter?

MDHA, *multi-DConv-head attention*, is attention with a convolution behind each of its projections. Of
Primer's changes it is missed most ({doc}`parts`). Whoever builds the layer decides on six things: who shares
a kernel, how wide it is, whether it has a bias, with which weights it starts, whether it stands before or
behind the projections, and which of queries, keys and values have one. The paper compares the two orders
(Table 4), and says without numbers that wider kernels do not help and in several cases hurt (section 3). Its
released code differs from the walk-through of {cite:t}`jayasiri2020annotated` in three of the six: who
shares, the bias and the start.

In short: it helps queries, keys and values to see the tokens before them, and values most. Values alone end
at least as well as all three together. Kernels one wide, which see no other token, gain nothing. A width of
two is behind widths of five and seven, and a start as plain attention is behind no bias, by more than noise
explains. For most other pairs, three seeds do not decide.

Each detail is changed alone, except in the paper's layer, which {doc}`ours` and {doc}`parts` call MDHA, and
in the same layer with its convolutions before the projections. All are compared with the walk-through's
layer, {py:class}`~labml_primer.primer.variations.MultiDConvSharedByHeadsAttention`: kernels for each channel,
which all heads share, three wide, with a bias, with PyTorch's random start, after all three projections. All
models have the ReLU, {value}`f"{runs['none'][0]['parameters']:,}"` parameters or up to 1% more, and the
setting of {doc}`ours`. Five learning rates were tried for each, and three seeds run. These runs are made by

    make experiments ONLY=mdha

Source: {cite:t}`so2021primer`, section 3, appendix A.6 and its released code;
{cite:t}`jayasiri2020annotated`.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from experiments.analysis import ahead, final_loss, gain, until
from experiments.chapters.parts import draw, table
from experiments.records import Runs, read_runs

__data__ = ("experiments/results/gathered.json",)

# A name and a colour: petrol for all with convolutions, grey for the Transformer without.
MODELS = {
    "channel": ("the walk-through's layer", "C0"),
    "none": ("no convolution", "C5"),
    "shared": ("one kernel for all", "C0"),
    "head-and-channel": ("kernels for each head", "C0"),
    "width-1": ("1 wide", "C0"),
    "width-2": ("2 wide", "C0"),
    "width-5": ("5 wide", "C0"),
    "width-7": ("7 wide", "C0"),
    "no-bias": ("no bias", "C0"),
    "released-start": ("the released start", "C0"),
    "identity-start": ("a start as plain attention", "C0"),
    "paper": ("the paper's layer", "C0"),
    "before-projection": ("the paper's, before projections", "C0"),
    "only-queries": ("only queries", "C0"),
    "only-keys": ("only keys", "C0"),
    "only-values": ("only values", "C0"),
}


def names_of(models: Iterable[str]) -> str:
    return ", ".join(MODELS[model][0] for model in models)


def some(*names: str) -> dict[str, tuple[str, str]]:
    """The models of these names, with what draws them."""
    return {name: MODELS[name] for name in names}


if __name__ == "__main__":
    # ## What was run
    #
    # Sixteen models: the loss at the end, the perplexity in percent of that of the walk-through's layer with
    # the same seed, and the speed-up factors over that layer.
    from IPython.display import display

    runs = read_runs(__data__[0], "mdha")
    display(table(runs, MODELS, "channel", "Details changed"))


def noise(losses: Tensor) -> Tensor:
    r"""
    ## How much is noise?

    Suppose that the loss of a run is a sum of three parts: one from its model, one that its seed adds to all
    models, and noise, $l_{ms} = a_m + b_s + e_{ms}$. Noise is the residual after subtracting the means of
    models and of seeds. The effect of a seed on one model alone counts as noise. With $M$ models and $S$
    seeds, its variance is estimated as

    $$\sigma^2 = \frac{1}{(M - 1)(S - 1)} \sum_{m,s}
      (l_{ms} - \bar l_{m \cdot} - \bar l_{\cdot s} + \bar l_{\cdot \cdot})^2$$

    Losses `[..., models, seeds]` to the standard deviation $\sigma$ `[...]`, in the same unit.
    """
    models, seeds = losses.shape[-2:]
    of_models, of_seeds = losses.mean(-1, keepdim=True), losses.mean(-2, keepdim=True)
    left = losses - of_models - of_seeds + losses.mean((-2, -1), keepdim=True)
    return (left.square().sum((-2, -1)) / ((models - 1) * (seeds - 1))).sqrt()


def widest(losses: Tensor) -> Tensor:
    r"""
    ## How far apart are the best and the worst?

    Their distance, as a multiple of $\sigma$:

    $$\frac{\max_m \bar l_{m \cdot} - \min_m \bar l_{m \cdot}}{\sigma}$$

    Times $\sqrt S$, this is the *studentized range* of Tukey's test {cite:p}`nist2012tukey`. Losses
    `[..., models, seeds]` to `[...]`.
    """
    means = losses.mean(-1)
    return (means.amax(-1) - means.amin(-1)) / noise(losses)


if __name__ == "__main__":
    # ## The critical difference
    #
    # How large a difference can noise alone explain? Draw 20,000 tables of pure noise, each number from the
    # same normal distribution, with as many models and seeds as here. In 95% of the tables, even the best and
    # the worst model differ by less than `any_two`, in units of the table's own noise. Times the noise of our
    # table, that is the critical difference. If all models were equal, 5% of such pages would still have two
    # models that are farther apart:
    losses = torch.tensor(
        [[run["loss"][-1] for run in runs[model]] for model in MODELS]
    )
    torch.manual_seed(0)
    chance = torch.randn(20_000, *losses.shape)
    any_two = widest(chance).quantile(0.95)
    critical = any_two * noise(losses)
    print(f"{critical:.3f} nats, {100 * critical.expm1():.0f}% of perplexity")
    # Some models are noisier than others, and some are ahead of the walk-through's layer, or behind it, with
    # every seed.
    deviations = {model: final_loss(runs[model]).deviation for model in MODELS}
    noisy = [model for model in MODELS if deviations[model] > 0.03]
    quiet = [model for model in MODELS if model not in noisy]
    worse = [model for model in MODELS if all(ahead(runs, "channel", model))]
    better = [model for model in MODELS if all(ahead(runs, model, "channel"))]

    # The critical difference assumes the same noise for all models, which is not so. The standard deviations
    # in the column *loss* are {value}`f"{min(deviations[model] for model in noisy):.2f}"` nats or more for
    # {value}`names_of(noisy)`, and at most {value}`f"{max(deviations[model] for model in quiet):.2f}"` for
    # all others. Among these others, the critical difference is too large, and models within it may well
    # differ. For a pair with one of the noisy models, it is too small.
    #
    # "Ahead with every seed" is weaker evidence. Of two equal models, one is ahead with all three seeds one
    # time in four. So of the {value}`len(MODELS) - 1` others, noise alone would put about
    # {value}`f"{(len(MODELS) - 1) / 4:.0f}"` on one side of the walk-through's layer with every seed. Here
    # {value}`len(worse)` are worse with every seed, and {value}`len(better)` are better:
    # {value}`names_of(better)`.
    #
    # The text below states differences as multiples of the critical difference:
    def distance(worse: str, better: str) -> str:
        """How far the mean final loss of a model is above that of another."""
        return f"{gain(runs, better, worse) / critical:.2f}"


if __name__ == "__main__":
    # ## Who shares a kernel?
    #
    # {doc}`/labml_primer/primer/variations` has the three ways: a kernel for everything, one for each channel
    # of a head, or one for each channel of each head, as in the paper.
    draw(runs, some("shared", "channel", "head-and-channel"), "channel")
    # None of them is shown to be better. One kernel for all has the noisiest seeds, with a deviation of
    # {value}`f"{deviations['shared']:.2f}"` nats: a layer has four numbers for all of its queries, four for
    # its keys and four for its values, so one bad start may count for much.

    # ## How wide?
    #
    # One wide, a kernel is a factor for each channel, and sees no other token.
    draw(
        runs,
        some("none", "width-1", "width-2", "channel", "width-5", "width-7"),
        "channel",
    )
    rates = {model: runs[model][0]["rate"] for model in MODELS}
    # The point of the convolution is to see other tokens. With kernels one wide, the layer can compute what
    # plain attention can and no more, because its factors could be part of the projections. It ends
    # {value}`distance("width-1", "channel")` critical differences behind three wide, and even
    # {value}`distance("width-1", "none")` behind no convolution. But these are two of the noisy models, and
    # not all seeds agree on the second.
    #
    # Two wide is {value}`distance("width-2", "channel")` critical differences behind three wide, with every
    # seed. Its learning rate is lower, {value}`rates["width-2"]` instead of {value}`rates["channel"]`, which
    # may be why. Wider kernels do no harm here: 5 and 7 wide are ahead with every seed, by
    # {value}`distance("channel", "width-5")` and {value}`distance("channel", "width-7")` critical
    # differences, with a rate of {value}`rates["width-5"]`. Two wide is behind them by
    # {value}`distance("width-2", "width-5")` and {value}`distance("width-2", "width-7")`.

    # ## Which start, and a bias?
    #
    # The released code starts with half of the token itself and a sixth of each before it. A layer whose
    # kernels pass the token on and nothing else starts as plain attention.
    draw(
        runs,
        some("none", "channel", "no-bias", "released-start", "identity-start"),
        "channel",
    )

    def after(steps: int) -> Runs:
        """The runs up to a number of steps."""
        end = runs["none"][0]["steps"].index(steps) + 1
        return {m: [until(run, end) for run in seeds] for m, seeds in runs.items()}

    # The bias is not missed, and it has little to add. On keys it moves all scores of a query alike, which
    # the softmax ignores. On values, the bias of the output does the same. On queries that of the
    # projection does, except at the second token, where the kernel does not yet see three.
    #
    # The released start cannot be distinguished from PyTorch's. The start as plain attention is worse with
    # every seed, by {value}`distance("identity-start", "channel")` critical differences. It may have to learn
    # first that neighbours matter: it is {value}`f"{gain(after(450), 'channel', 'identity-start'):.2f}"` nats
    # behind at step 450, and {value}`f"{gain(runs, 'channel', 'identity-start'):.2f}"` at the end. It ends
    # ahead of plain attention with every seed, by {value}`distance("none", "identity-start")` critical
    # differences. It is {value}`distance("identity-start", "no-bias")` behind the layer without a bias.

    # ## Before the projections, or behind?
    #
    # The paper's layer, {py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention`, has kernels for
    # each head, no bias, and the released start. The order of a separable convolution,
    # {py:class}`~labml_primer.primer.primer.SeparableConvolutionAttention`, exchanges convolution and
    # projection.
    draw(runs, some("paper", "before-projection", "channel"), "paper")
    # In the paper, MDHA's order saves more (factors of 1.76 and 1.54, Table 4), though its two perplexities,
    # 34.26 ± 0.12 and 34.34 ± 0.10, differ by less than they deviate. Here no difference is shown, and the
    # seeds of the paper's layer lie too far apart to show a small one.

    # ## Queries, keys or values?
    draw(
        runs,
        some("none", "only-queries", "only-keys", "only-values", "channel"),
        "channel",
    )

    def share(model: str) -> str:
        """How much of the gain of all three a model has."""
        return f"{gain(runs, model, 'none') / gain(runs, 'channel', 'none'):.0%}"

    # A convolution helps on each of the three. Queries alone have {value}`share("only-queries")` of the gain
    # of all three, and keys alone {value}`share("only-keys")`. Values alone have
    # {value}`share("only-values")`, for the cost of one convolution instead of three. They are ahead of
    # queries alone by {value}`distance("only-queries", "only-values")` critical differences, of keys alone by
    # {value}`distance("only-keys", "only-values")`, and of all three, with every seed, by
    # {value}`distance("channel", "only-values")`.
    #
    # It may be that a value with its neighbours brings them to every token that looks at it, while queries
    # and keys change only where a token looks. No run has queries and keys without values.

    # ## What this does not show
    #
    # The limits of {doc}`ours` hold here too: small models, few tokens, characters, rates tuned in short
    # runs, one kind of hardware.
    #
    # *Longer runs.* Without a convolution, the model is {value}`f"{gain(after(300), 'channel', 'none'):.2f}"`
    # nats behind after 300 steps, and {value}`f"{gain(runs, 'channel', 'none'):.2f}"` at the end. Longer runs
    # may leave less of the gain.
    #
    # *Data.* Two characters back is a large part of a word. A piece of a word says more by itself, so the
    # gain on subwords may be less.
    #
    # *Together.* One detail is changed at a time. Two together may bring more or less than both apart.
    #
    # *Rates.* Each model has its own, chosen after a third of the steps with one seed; the first table lists
    # them. The choice is the same for all seeds, so its noise is not part of the critical difference. Some of
    # the differences found may be those of rates.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} What if each pair were judged by itself?
    # Sixteen models make 120 pairs. Suppose that all are equally good, and that two are called different as
    # soon as they lie farther apart than 95 of 100 equal pairs do. On how many pages is at least one pair
    # called so? How many pairs of ours are, and how many by the critical difference above?
    # :::
    # :::{solution}
    # If any two lie that far apart, then so do the best and the worst, and it is enough to look at those.
    # {value}`f"{wrong['each pair by itself']:.0%}"` of the pages would report a difference where there is
    # none, and {value}`f"{wrong['critical difference']:.0%}"` by the critical difference. Most of our pairs
    # that exceed it include 1 wide or no convolution.
    # :::
    differences = (chance[:, 0] - chance[:, 1]).mean(-1).abs() / noise(chance)
    a_pair = differences.quantile(0.95)
    others = widest(torch.randn_like(chance))
    distances = torch.pdist(losses.mean(-1, keepdim=True))
    wrong = {}
    for judged, beyond in (
        ("each pair by itself", a_pair),
        ("critical difference", any_two),
    ):
        wrong[judged] = float((others > beyond).double().mean())
        pairs = (distances > beyond * noise(losses)).sum()
        print(
            f"{judged:20s}{100 * wrong[judged]:3.0f}% of pages wrong, "
            f"{pairs:3d} of our {len(distances)} pairs"
        )
    assert wrong["critical difference"] < 0.06

    # And at other sizes? {doc}`sizes` has the Transformer, Primer-EZ and Primer.
