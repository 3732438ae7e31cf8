r"""
# Generating text

How to choose the next token from what a model gives, and how not to compute everything anew for each of
them.

A language model gives a score for every token that may come next. How does one get a text from it?

Choose one, put it behind the text, ask again. Two questions hide in this. *Which* one: always the likeliest
is dull, and soon runs in circles; a fair draw sometimes takes a token that no one would. Most programs draw
from a distribution that was made a little more careful first, by a *temperature* $\tau$ and by cutting off
its tail:

$$P(t) \propto \exp\Big(\frac{z_t}{\tau}\Big) \quad \text{for } t \in \text{kept}$$

And *how fast*: the text has grown by one token, and all before it are as they were. In a causal model
nothing that was computed for them can change. So it is kept, and a step costs one token, not a whole text.

The model is {py:class}`~labml_primer.transformer.model.LanguageModel`, and its method
{py:meth}`~labml_primer.transformer.model.LanguageModel.generate` puts the parts of this chapter together.

Source: {cite:t}`fan2018hierarchical` for top-k; {cite:t}`holtzman2020curious` for top-p; what
{cite:t}`so2021primer` say on inference is in their section 4.1.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    r"""
    ## Top-k

    Only the $k$ best tokens stay in the draw. `logits` is `[..., vocab_size]`, and so is the result: what
    falls out is set to minus infinity, which softmax takes to zero.

    It guards against the long tail: thousands of tokens that are all unlikely can together be likely. But
    one $k$ does not suit all places. After "to be or not to" there is one good token, after "the" there are
    hundreds.

    Raises `ValueError` where `k` is below one. Source: {cite:t}`fan2018hierarchical`, section 5.4.
    """
    if k < 1:
        raise ValueError(f"top_k {k} is below 1")
    # The k-th best is the bar. What is level with it stays too.
    bar = logits.topk(min(k, logits.size(-1))).values[..., -1:]
    return logits.masked_fill(logits < bar, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    r"""
    ## Top-p

    Also called *nucleus sampling*. The fewest tokens stay that together have a probability of at least $p$:

    $$\min_{S} |S| \quad \text{with} \quad \sum_{t \in S} P(t) \ge p$$

    Where the model is sure, that is one token; where it is not, it is many.

    Raises `ValueError` unless $0 < p \le 1$. Source: {cite:t}`holtzman2020curious`, section 3.1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"top_p {p} is not above 0 and at most 1")
    if p == 1:
        return logits  # all of them: rounding must not cut the tail
    ordered, order = logits.sort(dim=-1, descending=True)
    odds = ordered.float().softmax(dim=-1)
    # A token stays if those before it do not yet make up $p$. So the one that crosses the line stays, and the
    # first always does.
    before = odds.cumsum(dim=-1) - odds
    kept = ordered.masked_fill(before >= p, -math.inf)
    # Back to where each of them came from.
    return torch.empty_like(logits).scatter(-1, order, kept)


def draw_token(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""
    ## The draw

    One token for each row: `[batch, vocab_size]` to `[batch]`. A temperature below one makes likely tokens
    likelier; above one it evens them out. At zero, its limit, the best token is taken, and nothing is drawn.

    Raises `ValueError` for a negative temperature.
    """
    if temperature < 0:
        raise ValueError(f"temperature {temperature} is negative")
    if temperature == 0:
        return logits.argmax(dim=-1)
    # Temperature first: the cuts then see the odds that are drawn from.
    scores = logits.float() / temperature
    if top_k is not None:
        scores = keep_top_k(scores, top_k)
    if top_p is not None:
        scores = keep_top_p(scores, top_p)
    # A uniform number $u$ has $-\log u$ exponentially distributed, and of several such clocks, each as fast
    # as its token is likely, the first to ring is token $t$ with probability $P(t)$. It is the same draw as
    # `torch.multinomial`, and takes a batch of none as well.
    clocks = torch.empty_like(scores).exponential_(generator=generator)
    return (scores.softmax(dim=-1) / clocks).argmax(dim=-1)


if __name__ == "__main__":
    # ## What each does to the odds
    #
    # Six tokens and their probabilities, before and after.
    odds = torch.tensor([0.40, 0.25, 0.15, 0.10, 0.06, 0.04])
    for name, scores in (
        ("as they are", odds.log()),
        ("temperature 0.5", odds.log() / 0.5),
        ("temperature 2", odds.log() / 2),
        ("top-k, 3", keep_top_k(odds.log(), 3)),
        ("top-p, 0.75", keep_top_p(odds.log(), 0.75)),
        ("top-p, 0.3", keep_top_p(odds.log(), 0.3)),
    ):
        print(f"{name:16s}" + "".join(f"{p:6.2f}" for p in scores.softmax(dim=-1)))
    # ### Are the draws fair?
    #
    # Draw a hundred thousand times and count.
    generator = torch.Generator().manual_seed(0)
    drawn = draw_token(odds.log().expand(100_000, 6), generator=generator)
    shares = torch.bincount(drawn, minlength=6) / 100_000
    print(f"{'drawn':16s}" + "".join(f"{share:6.2f}" for share in shares))


class Past:
    r"""
    ## What is kept

    While a text grows, layers keep here what they will need of the tokens already read. An attention layer
    keeps *all* its keys and values: the queries of old tokens are never asked again. A convolution of width
    $K$ keeps the *last* $K - 1$ tokens of its input: no output to come sees farther back.

    `length` tokens have been read, of at most `capacity`; more raise `ValueError`. Whoever calls the layers
    adds to `length`, once all of them have seen the new tokens. Each layer is known here by its module, so no
    layer need know of another.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.length = 0
        self.kept: dict[nn.Module, Tensor] = {}
        self.made: dict[nn.Module, list[Tensor]] = {}

    def all(self, owner: nn.Module, new: Tensor) -> Tensor:
        """`new` `[batch, seq, ...]`, behind all that came from `owner` before."""
        # Room for everything at once. To join old and new at each token would copy the whole text each time.
        if owner not in self.kept:
            room = (new.size(0), self.capacity, *new.shape[2:])
            self.kept[owner] = new.new_empty(room)
        end = self.length + new.size(1)
        if end > self.capacity:
            raise ValueError(f"{end} tokens are more than capacity {self.capacity}")
        self.kept[owner][:, self.length : end] = new
        return self.kept[owner][:, :end]

    def last(self, owner: nn.Module, new: Tensor, count: int) -> Tensor:
        """`new`, behind the last `count` that came from `owner`; before the beginning there are zeros."""
        if owner not in self.kept:
            self.kept[owner] = new.new_zeros(new.size(0), count, *new.shape[2:])
        joined = torch.cat([self.kept[owner], new], dim=1)
        self.kept[owner] = joined[:, joined.size(1) - count :]
        return joined

    def once(self, owner: nn.Module, make: Callable[[], list[Tensor]]) -> list[Tensor]:
        """What `make` gives, made the first time that `owner` asks. It holds as long as the weights do."""
        if owner not in self.made:
            self.made[owner] = make()
        return self.made[owner]


if __name__ == "__main__":
    # ## The same logits, token by token
    #
    # Every model of the paper, fresh and small. Once it reads a text of 24 tokens whole. Then five tokens, so
    # that there is something to keep, and the others one at a time, each time with what was kept. In
    # `float64`, so that rounding cannot hide a mistake.
    from dataclasses import replace

    from labml_primer.presets import PRESETS
    from labml_primer.transformer.model import LanguageModel

    torch.manual_seed(0)
    tokens = torch.randint(0, 50, (2, 24))
    print(f"{'':28s}{'largest difference':>19s}{'numbers kept':>14s}")
    for name, preset in PRESETS.items():
        config = replace(preset, vocab_size=50, d_model=64, heads=4, d_ff=256, layers=2)
        model = LanguageModel(config).double().eval()
        past = Past(capacity=24)
        with torch.no_grad():
            whole = model(tokens)
            parts = [model(part, past) for part in tokens.split([5] + 19 * [1], dim=1)]
        difference = (whole - torch.cat(parts, dim=1)).abs().max()
        numbers = sum(kept.numel() for kept in past.kept.values())
        print(f"{name:28s}{difference:19.0e}{numbers:14,}")
    # Keys and values of 2 sequences of 24 tokens in 2 layers of width 64 are 12,288 numbers. Each convolution
    # adds the last two tokens, 256 numbers, no matter how long the text. Primer convolves no queries,
    # and keeps less. The Evolved Transformer attends twice in a block, and its convolutions are wide. A
    # Synthesizer has no keys to keep.


if __name__ == "__main__":
    # ## What is it worth?
    #
    # Tokens a second of processor time, for one sequence, in four blocks of width 256, when the text has
    # reached a length. Each new token goes through the model alone, or all are read again for it.
    from functools import partial
    from statistics import median

    import matplotlib.pyplot as plt

    from labml_primer.training import median_seconds

    models = {
        name: LanguageModel(
            replace(
                PRESETS[name],
                vocab_size=80,
                d_model=256,
                d_ff=1024,
                layers=4,
                max_seq=1024,
            )
        )
        for name in ("transformer", "primer-ez")
    }
    lengths = [16, 64, 128, 256, 512]
    rates: dict[str, list[float]] = {}
    for length in lengths:
        ways = {}
        for name, model in models.items():
            text, past = torch.zeros(1, length, dtype=torch.long), Past(length + 16)
            ways[f"{name}, kept"] = partial(model, text[:, :1], past)
            ways[f"{name}, all anew"] = partial(model, text)
            with torch.no_grad():
                model(text, past)
        with torch.no_grad():
            taken = median_seconds(ways, rounds=9)
        for way in ways:
            rates.setdefault(way, []).append(1 / taken[way])

    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    print(f"{'tokens a second, length':32s}" + "".join(f"{n:8d}" for n in lengths))
    for label, rate in rates.items():
        color = "C0" if label.startswith("primer-ez") else "C5"
        style = "-" if label.endswith("kept") else "--"
        ax.loglog(lengths, rate, style, color=color, label=label)
        print(f"{label:32s}" + "".join(f"{r:8.0f}" for r in rate))
    ax.set(xlabel="length of the text", ylabel="tokens a second")
    ax.set_xticks(lengths, [str(n) for n in lengths])
    ax.set_yticks([20, 100, 500], ["20", "100", "500"])
    ax.minorticks_off()
    ax.legend(frameon=False)
    plt.show()
    gain = rates["primer-ez, kept"][-1] / rates["primer-ez, all anew"][-1]
    kept = zip(rates["primer-ez, kept"], rates["transformer, kept"], strict=True)
    share = median(ez / plain for ez, plain in kept)
    print(
        f"At {lengths[-1]} tokens what is kept makes Primer-EZ {gain:.0f} times as fast.\n"
        f"In the median it has {share:.0%} of the Transformer's tokens a second."
    )
    # Read anew, each token costs more than the one before. With a past, the matrices see one token, however
    # long the text is, and only attention's look-up grows. The convolutions do little arithmetic, but with a
    # single token the work is so small that the number of calls counts, and the clock's noise as well: single
    # rates jump by a tenth and more. That is why
    # {py:meth}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention.goes_on` makes one of three.


if __name__ == "__main__":
    # ## Dull, lively, wild
    #
    # A small Primer-EZ that has read Shakespeare for some seconds goes on from one name, with the same dice
    # for each way to draw.
    from labml_primer.training import load_corpus, train

    corpus = load_corpus()
    torch.manual_seed(0)
    config = replace(
        PRESETS["primer-ez"],
        vocab_size=corpus.vocab_size,
        d_model=96,
        heads=4,
        d_ff=384,
        layers=2,
    )
    model = LanguageModel(config)
    train(model, corpus, name="generation", steps=500, seq=64, evaluations=1)
    prompt = corpus.encode("ROMEO.\n")[None]
    draws: dict[str, tuple[float, float | None]] = {
        "the best token each time": (0.0, None),
        "temperature 0.5": (0.5, None),
        "as the model says": (1.0, None),
        "temperature 1.5": (1.5, None),
        "temperature 1.5, top-p 0.8": (1.5, 0.8),
    }
    for draw, (temperature, top_p) in draws.items():
        dice = torch.Generator().manual_seed(3)
        written = model.generate(
            prompt, 56, temperature=temperature, top_p=top_p, generator=dice
        )
        print(f"{draw}:\n  {corpus.decode(written[0, 7:])!r}")
    # Without dice it repeats itself. At a temperature of 1.5 the tail takes over, and top-p cuts it off: what
    # is drawn is varied, but each token is one that the model thought of.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} First the heat, then the cut
    # Of the six tokens above, top-p at 0.75 keeps three. How many does it keep behind a temperature of 2, and
    # of 0.5? Does a temperature move top-k too?
    # :::
    # :::{solution}
    # Four and two. The temperature bends the odds first, so what is $p$ of them takes more tokens where they
    # are evened out. Top-k counts tokens, and a temperature keeps their order: it always leaves three.
    # :::
    odds = torch.tensor([0.40, 0.25, 0.15, 0.10, 0.06, 0.04])
    for temperature, expected in ((0.5, 2), (1.0, 3), (2.0, 4)):
        scores = odds.log() / temperature
        by_p = int(keep_top_p(scores, 0.75).isfinite().sum())
        by_k = int(keep_top_k(scores, 3).isfinite().sum())
        print(f"temperature {temperature}: top-p keeps {by_p}, top-k {by_k}")
        assert (by_p, by_k) == (expected, 3)

    # So much for the Transformer. What the search made of it begins with {doc}`../primer/primer_ez`.
