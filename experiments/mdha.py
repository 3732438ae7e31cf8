r"""
# MDHA in depth

One convolution behind queries, keys and values: which of its details matter?

Of Primer's changes, MDHA is missed most ({doc}`parts`). Whoever builds the layer decides on six things: who
shares a kernel, how wide it is, whether it has a bias, where it starts, whether it stands before or behind
the projections, and which of the three it is for. The paper shows one choice, and of wider kernels it says
that they do not help (section 3). Its released code differs from the walk-through in three of the six.

In short: what matters here is that values see the tokens just before their own. Values alone do as well as
all three. A layer that starts as plain attention does worse, with every seed. Of the rest, three seeds do not
tell what is better.

Each detail is changed alone. The layer to compare with is the walk-through's
{py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention`: kernels for each channel, which all heads
share, three wide, with a bias, with PyTorch's random start, behind all three projections. All models have the
ReLU, about 820 thousand parameters within a hundredth, and the setting of {doc}`ours`, with five learning
rates tried for each and three seeds. These runs are made by

    make experiments ONLY=mdha

Source: {cite:t}`so2021primer`, section 3, appendix A.6 and its released code;
{cite:t}`jayasiri2020annotated`.
"""

import torch
from torch import Tensor

from experiments.analysis import read_runs
from experiments.parts import draw, table

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
    """Those of the models."""
    return {name: MODELS[name] for name in names}


if __name__ == "__main__":
    # ## What was run
    #
    # Sixteen models: the loss at the end, the perplexity in percent of that of the walk-through's layer with
    # the same seed, and the speed-up factors over that layer.
    from IPython.display import display

    runs = read_runs(__data__[0], "mdha")
    display(table(runs, MODELS, "channel", "One detail changed in each"))


def luck(losses: Tensor) -> Tensor:
    r"""
    ## How much is luck?

    Say that the loss of a run is made of its model's, of what its seed does to all models, and of luck:
    $l_{ms} = a_m + b_s + e_{ms}$. Luck is what is left when the means of models and of seeds are taken out.
    With $M$ models and $S$ seeds, its variance is

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

    Their distance, counted in luck:

    $$\frac{\max_m \bar l_{m \cdot} - \min_m \bar l_{m \cdot}}{\sigma}$$

    Times $\sqrt S$, this is the *studentized range* of Tukey's test {cite:p}`nist2012tukey`. Losses
    `[..., models, seeds]` to `[...]`.
    """
    means = losses.mean(-1)
    return (means.amax(-1) - means.amin(-1)) / luck(losses)


if __name__ == "__main__":
    # ## A ruler
    #
    # How far do models come apart that are all equally good? Draw 20,000 pages of pure luck, with as many
    # models and seeds as here. On 95 of 100 of them, even the best and the worst are no farther apart than
    # this. So two models of this page that are farther apart differ by more than luck:
    losses = torch.tensor(
        [[run["loss"][-1] for run in runs[model]] for model in MODELS]
    )
    torch.manual_seed(0)
    chance = torch.randn(20_000, *losses.shape)
    any_two = widest(chance).quantile(0.95)
    ruler = any_two * luck(losses)
    print(f"{ruler:.3f} nats, {100 * ruler.expm1():.0f}% of perplexity")
    # The ruler takes luck to be as large for all models. It is not. The seeds of four deviate by 0.04 nats
    # or more: without a convolution, 1 wide, with one kernel for all, and in the paper's layer. Those of all
    # others deviate by less than 0.02, and for them it is too long. So what it does not tell apart may well
    # differ.


if __name__ == "__main__":
    # ## Who shares a kernel?
    #
    # {doc}`/labml_primer/primer/variations` has the three ways: a kernel for everything, one for each channel
    # of a head, or one for each channel of each head, as in the paper.
    draw(runs, some("shared", "channel", "head-and-channel"), "channel")
    # No way is shown to be better. Four numbers for all queries of a layer, four for all keys and four for
    # all values get about as far as four for each channel of each head.

    # ## How wide?
    #
    # One wide, a kernel is a factor for each channel, and sees no other token.
    draw(
        runs,
        some("none", "width-1", "width-2", "channel", "width-5", "width-7"),
        "channel",
    )
    # To see other tokens is what it is about. One wide, the layer is far behind: no better than without a
    # convolution, and with two of three seeds worse. Two wide, it is behind three wide with every seed, by a
    # little less than the ruler. Beyond that nothing is shown. The paper's wider kernels did not help and in
    # several cases hurt; here they do no harm.

    # ## Which start, and a bias?
    #
    # The released code starts with half of the token itself and a sixth of each before it. A layer whose
    # kernels pass the token on and nothing else starts as plain attention.
    draw(
        runs,
        some("channel", "no-bias", "released-start", "identity-start"),
        "channel",
    )
    # The bias is not missed, and the released start is as good as PyTorch's. The start as plain attention is
    # worse with every seed, just within the ruler from the walk-through's layer and beyond it from the one
    # without a bias. It may be that such a layer first has to find out that its neighbours matter, and these
    # runs are short. But it ends ahead of plain attention, with every seed.

    # ## Before the projections, or behind?
    #
    # The paper's layer, {py:class}`~labml_primer.primer.primer.PaperMultiDConvHeadAttention`, has kernels for
    # each head, no bias, and the released start. The order of a separable convolution,
    # {py:class}`~labml_primer.primer.primer.SeparableConvolutionAttention`, exchanges convolution and
    # projection.
    draw(runs, some("paper", "before-projection", "channel"), "paper")
    # In the paper, MDHA's order saves more (1.76 against 1.54, Table 4). Here the two end alike, and the
    # seeds of one of them lie too far apart to tell a small difference.

    # ## Queries, keys or values?
    draw(
        runs,
        some("none", "only-queries", "only-keys", "only-values", "channel"),
        "channel",
    )
    # A convolution helps wherever it stands, and most on values: alone they do better than queries alone or
    # keys alone, by more than the ruler, and as well as all three. A value that knows its neighbours brings
    # them along to every token that looks at it. With convolved queries and keys, a token can only look
    # elsewhere.

    # ## What this does not show
    #
    # {doc}`ours` says it of its own runs, and it holds here: scale, few tokens, data, the tuning of rates,
    # other hardware.
    #
    # *Data.* To see the two characters before is much, when a word has about five. Pieces of words
    # say more by themselves.
    #
    # *Together.* One detail is changed at a time, and two of them may do more or less than their sum.
    #
    # *Rates.* Each model has its own, chosen after a third of the steps with one seed. It is 0.002 for the
    # walk-through's layer and 0.004 for half of the models, and may be what some of them differ by.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} What if each pair were judged by itself?
    # Sixteen models make 120 pairs. Suppose that all are equally good, and that two are called different as
    # soon as they lie farther apart than 95 of 100 equal pairs do. On how many pages is at least one pair
    # called so? How many pairs of ours are, and how many by the ruler above?
    # :::
    # :::{solution}
    # If two lie that far apart, the best and the worst do. So it is enough to look at those. Three pages of
    # four would tell of a difference where there is none. The ruler for any two does so on one page in
    # twenty.
    # :::
    first, second, *_ = chance.mean(-1).unbind(-1)
    a_pair = ((first - second).abs() / luck(chance)).quantile(0.95)
    others = widest(torch.randn_like(chance))
    distances = torch.pdist(losses.mean(-1, keepdim=True))
    for judged, beyond in (("each pair by itself", a_pair), ("any two", any_two)):
        wrong = (others > beyond).double().mean()
        pairs = (distances > beyond * luck(losses)).sum()
        print(
            f"{judged:20s}{100 * wrong:3.0f}% of pages wrong, "
            f"{pairs:3d} of our {len(distances)} pairs"
        )
    assert wrong < 0.06

    # And the models in other sizes? {doc}`sizes` has those.
