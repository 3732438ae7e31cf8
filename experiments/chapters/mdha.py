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
at least as well as all three together. Kernels one wide, which see no other token, bring nothing. Two wide is
behind five and seven wide, and a start as plain attention behind no bias, by more than luck explains. Between
most of the others, three seeds do not decide.

Each detail is changed alone, but for the paper's layer, which {doc}`ours` and {doc}`parts` call MDHA, and the
same layer with its convolutions before the projections. All are held against the walk-through's
{py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention`: kernels for each channel, which all heads
share, three wide, with a bias, with PyTorch's random start, behind all three projections. All models have the
ReLU, 820 thousand parameters or up to a hundredth more, and the setting of {doc}`ours`. Five learning rates
were tried for each, and three seeds run. These runs are made by

    make experiments ONLY=mdha

Source: {cite:t}`so2021primer`, section 3, appendix A.6 and its released code;
{cite:t}`jayasiri2020annotated`.
"""

import torch
from torch import Tensor

from experiments.chapters.parts import draw, table
from experiments.records import read_runs

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


def luck(losses: Tensor) -> Tensor:
    r"""
    ## How much is luck?

    Say that the loss of a run is a sum of three: one part from its model, one that its seed adds to all
    models, and luck, $l_{ms} = a_m + b_s + e_{ms}$. Luck is what is left when the means of models and of
    seeds are taken out. What a seed does to one model alone counts as luck. With $M$ models and $S$ seeds,
    its variance is estimated as

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
    return (means.amax(-1) - means.amin(-1)) / luck(losses)


if __name__ == "__main__":
    # ## A ruler
    #
    # How far do models come apart that are all equally good? Draw 20,000 tables of pure luck, each number
    # from the same normal distribution, with as many models and seeds as here. In 19 of 20 tables even the
    # best and the worst lie within `any_two`, counted in the table's own luck. Times the luck of our table,
    # that is the ruler. If all models were equal, some two would still lie farther apart than it on one page
    # in twenty:
    losses = torch.tensor(
        [[run["loss"][-1] for run in runs[model]] for model in MODELS]
    )
    torch.manual_seed(0)
    chance = torch.randn(20_000, *losses.shape)
    any_two = widest(chance).quantile(0.95)
    ruler = any_two * luck(losses)
    print(f"{ruler:.3f} nats, {100 * ruler.expm1():.0f}% of perplexity")
    # The ruler takes luck to be as large for all models. It is not. The seeds of four deviate by 0.04 nats
    # or more (the column *loss* has it): without a convolution, 1 wide, with one kernel for all, and in the
    # paper's layer. Those of all others deviate by less than 0.02. Among these others the ruler is too long,
    # and what it does not tell apart may well differ. For a pair with one of the four it is too short.
    #
    # "Ahead with every seed" is weaker. Of two equal models, one is ahead with all three seeds one time in
    # four. Of the fifteen others, luck alone would put about four on one side of the walk-through's layer
    # with every seed. Here it is eleven: seven are worse, and four are better, which are values alone, 5
    # wide, 7 wide and no bias.


if __name__ == "__main__":
    # ## Who shares a kernel?
    #
    # {doc}`/labml_primer/primer/variations` has the three ways: a kernel for everything, one for each channel
    # of a head, or one for each channel of each head, as in the paper.
    draw(runs, some("shared", "channel", "head-and-channel"), "channel")
    # No way is shown to be better. With one kernel for all, two of three seeds end ahead of the
    # walk-through's layer, and the third 0.10 nats behind. There a layer has four numbers for all of its
    # queries, four for its keys and four for its values. It may be that one bad start counts for much.

    # ## How wide?
    #
    # One wide, a kernel is a factor for each channel, and sees no other token.
    draw(
        runs,
        some("none", "width-1", "width-2", "channel", "width-5", "width-7"),
        "channel",
    )
    # To see other tokens is what it is about. One wide, the layer can compute what plain attention can and no
    # more, for its factors could be part of the projections. It ends far behind three wide, and even behind
    # no convolution, by just more than the ruler. But these are two of the four with much luck, and one of
    # three seeds says the opposite.
    #
    # Two wide, the layer is behind three wide with every seed, by a little less than the ruler. Its rate is
    # half of that of three wide, which may be why. For 5 and 7 wide no harm is seen: both are ahead with
    # every seed, by less than half of the ruler, and at twice the rate. Two wide is behind both by
    # more than the ruler, at a quarter of their rate.

    # ## Which start, and a bias?
    #
    # The released code starts with half of the token itself and a sixth of each before it. A layer whose
    # kernels pass the token on and nothing else starts as plain attention.
    draw(
        runs,
        some("none", "channel", "no-bias", "released-start", "identity-start"),
        "channel",
    )
    # The bias is not missed, and it has little to add. On keys it moves all scores of a query alike, which
    # the softmax ignores. On values, the bias of the output does the same. On queries that of the
    # projection does, except at the second token, where the kernel does not yet see three.
    #
    # The released start is not told apart from PyTorch's. The start as plain attention is worse with every
    # seed, within the ruler by a hair. It may have to find out first that its neighbours matter: it is 0.11
    # nats behind at step 450, and 0.08 at the end. It ends ahead of plain attention with every seed, also
    # within the ruler.

    # ## Before the projections, or behind?
    #
    # The paper's layer, {py:class}`~labml_primer.primer.primer.PaperMultiDConvHeadAttention`, has kernels for
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
    # A convolution helps on each of the three. Queries alone or keys alone bring about two thirds of what all
    # three bring. Values alone bring more than either, by just more than the ruler, and end ahead of all
    # three with every seed, within the ruler. They cost one convolution instead of three.
    #
    # It may be that a value with its neighbours brings them to every token that looks at it, while queries
    # and keys change only where a token looks. No run has queries and keys without values.

    # ## What this does not show
    #
    # The limits of {doc}`ours` hold here too: small models, few tokens, characters, rates tuned in short
    # runs, one kind of hardware.
    #
    # *Longer runs.* Without a convolution, the model is 0.40 nats behind after 300 steps, and 0.16 after
    # 1,200. Longer runs may leave less of what convolutions bring.
    #
    # *Data.* Two characters back is a large part of a word. A piece of a word says more by itself, so the
    # gain on subwords may be less.
    #
    # *Together.* One detail is changed at a time. Two together may bring more or less than both apart.
    #
    # *Rates.* Each model has its own, chosen after a third of the steps with one seed. It is 0.002 for the
    # walk-through's layer, 0.004 for half of the models, and 0.001 for 2 wide alone, where 0.002 was as good
    # but for 0.01 nats. The choice is the same for all seeds, so its luck is not in the ruler. Some of what
    # the ruler tells apart may be rates.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} What if each pair were judged by itself?
    # Sixteen models make 120 pairs. Suppose that all are equally good, and that two are called different as
    # soon as they lie farther apart than 95 of 100 equal pairs do. On how many pages is at least one pair
    # called so? How many pairs of ours are, and how many by the ruler above?
    # :::
    # :::{solution}
    # If any two lie that far apart, then so do the best and the worst, and it is enough to look at those.
    # Three pages of four would tell of a difference where there is none. The ruler does so on one page in
    # twenty. Of the pairs that it tells apart, two thirds have 1 wide or no convolution in them.
    # :::
    differences = (chance[:, 0] - chance[:, 1]).mean(-1).abs() / luck(chance)
    a_pair = differences.quantile(0.95)
    others = widest(torch.randn_like(chance))
    distances = torch.pdist(losses.mean(-1, keepdim=True))
    for judged, beyond in (("each pair by itself", a_pair), ("by the ruler", any_two)):
        wrong = (others > beyond).double().mean()
        pairs = (distances > beyond * luck(losses)).sum()
        print(
            f"{judged:20s}{100 * wrong:3.0f}% of pages wrong, "
            f"{pairs:3d} of our {len(distances)} pairs"
        )
    assert wrong < 0.06

    # And at other sizes? {doc}`sizes` has the Transformer, Primer-EZ and Primer.
