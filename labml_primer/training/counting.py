r"""
# Counting

A table of counts is the simplest language model. It shows what a {term}`loss` is, and which loss is a good
one.

Which character comes next in "To be, or not t"? You expect an "o", because you have seen such words before. A
{term}`language model` does the same with numbers: it gives every character of its alphabet a probability of
coming next, given the characters so far. So it gives a whole text $c_1 \dots c_n$ a probability, too:

$$p(c_1 \dots c_n) = \prod_{t=1}^{n} p(c_t \mid c_1 \dots c_{t-1})$$

The simplest way to get these probabilities is to count: find each place of a large text with the same last
few characters, and count what came next there. A model that looks at the last $n - 1$ characters is an
{term}`n-gram` model. It needs no training and no GPU. The picture shows it for one character: what came after
an "o" in a short text, and how that is mixed with how often each character occurs at all.

This chapter counts the plays that all models of this book learn from. One number, the loss, says how badly a
model predicts plays that it has not seen. A neural network is worth its training only if its loss is below
that of counting the text that it has read: a thin grey line in the figures of this book.

:::{picture} counting
:::

Source: {cite:t}`shannon1951prediction` for counts of letters as a model of English; {cite:t}`witten1991zero`,
method C, for mixing longer and shorter contexts; {cite:t}`kneser1995improved` and
{cite:t}`chen1999empirical` for the best mixture.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


def probability(
    text: Sequence[object], context: Sequence[object], token: object, vocab_size: int
) -> float:
    r"""
    ## Count what came next

    Return the probability that `token` comes after `context`, by the counts of `text`.

    Take ten words, "to be or not to be that is the question". Which word comes after "be"? In this text it
    was "or" once and "that" once, so each could get probability 1/2. But then every other word would have
    probability 0, only because the text is short. So Witten and Bell mix the counts with those of a shorter
    context, which has been seen more often:

    $$p(c \mid h) = \frac{C(hc) + T(h)\, p(c \mid h')}{C(h) + T(h)}$$

    | | | "or" after "be" |
    |---|---|---|
    | $h$, $c$ | the context, and what comes next | "be", "or" |
    | $C(hc)$ | how often $c$ came after $h$ | 1 |
    | $C(h)$ | how often anything came after $h$ | 2 |
    | $T(h)$ | how many *different* tokens came | 2 |
    | $h'$ | $h$ without its first token | the empty context |

    A context that does not occur leaves the shorter one's probability as it is. `kinds` is $T(h)$.
    """
    n = len(context)
    after = Counter(
        text[i + n] for i in range(len(text) - n) if text[i : i + n] == context
    )
    shorter = 1 / vocab_size
    if n > 0:
        shorter = probability(text, context[1:], token, vocab_size)
    if not after:
        return shorter
    kinds = len(after)
    return (after[token] + kinds * shorter) / (after.total() + kinds)


if __name__ == "__main__":
    # After the empty context came all ten words, of 8 kinds, and "or" once. No context is shorter, so these
    # counts are mixed with the same probability for each kind, 1/8. After "be", the counts are mixed with
    # that:
    #
    # $$\begin{aligned}
    # p(\text{or}) &= \frac{1 + 8 \cdot \frac18}{10 + 8} \approx 0.11 \\
    # p(\text{or} \mid \text{be}) &= \frac{1 + 2 \cdot 0.11}{2 + 2} \approx 0.31
    # \end{aligned}$$
    #
    # The table has all counts of the ten words, for contexts of no word and of one, and the probabilities of
    # "be", "or" and "the". "the" never came after "be", and still has a probability. "question" is last, so
    # nothing came after it, and it predicts as the empty context does.
    #
    # Why $T(h)$? It is how often a token came after $h$ for the first time. Count these as events of their
    # own: something new came in $T(h)$ of $C(h) + T(h)$ events, and that share is left to the shorter
    # context. After "q" only few kinds of characters come, so the counts are trusted. After a space nearly
    # all do.
    from IPython.display import display

    from labml_primer.training.table import Table

    ten = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"]
    kinds = list(dict.fromkeys(ten))
    written_out = []
    for context in ([], *([word] for word in kinds)):
        n = len(context)
        places = [i for i in range(len(ten) - n) if ten[i : i + n] == context]
        after = Counter(ten[i + n] for i in places)
        counted = ", ".join(f"{word} {times}" for word, times in after.items())
        by_word = {w: probability(ten, context, w, len(kinds)) for w in kinds}
        assert math.isclose(sum(by_word.values()), 1)
        shown = (f"{by_word[word]:.2f}" for word in ("be", "or", "the"))
        name = " ".join(context) or "(none)"
        written_out.append([name, counted or "-", after.total(), len(after), *shown])
    display(
        Table(["context", "came next", "C(h)", "T(h)", "be", "or", "the"], written_out)
    )


def ngrams(tokens: Tensor, n: int, vocab_size: int) -> Tensor:
    """
    ## The same for all plays

    :::{deeper}
    The class `Counts`: tables of all n-grams, so that millions of probabilities take seconds.
    :::

    Return the numbers of all n-grams, `n` consecutive tokens, of `tokens` `[..., seq]`: the result is
    `[..., seq - n + 1]`.

    The function above searches the text for each probability. Millions of them need tables, made once. A
    token is a number below `vocab_size`. Taken as the digits of one number, the tokens of an n-gram are one
    integer, so a whole text can be counted by sorting integers. Dividing by `vocab_size` removes the last
    digit, and leaves the context: with 10 kinds of tokens, the tokens 1, 2, 3 are 123, and 123 // 10 is their
    context, 12.

    Raises `ValueError` for a token that is not below `vocab_size`, or if a number would not fit into 64 bits,
    and `TypeError` if tokens are not integers.
    """
    if vocab_size**n >= 2**63:
        raise ValueError(f"{n} tokens of {vocab_size} kinds do not fit into 64 bits")
    if tokens.is_floating_point():
        raise TypeError(f"tokens are {tokens.dtype}, not integers")
    tokens = tokens.long()  # in a narrower type, the numbers would not fit
    if tokens.numel() and not 0 <= tokens.min() <= tokens.max() < vocab_size:
        raise ValueError(f"a token is not in 0 to {vocab_size - 1}")
    count = max(0, tokens.size(-1) - n + 1)
    number = torch.zeros_like(tokens[..., :count])
    for i in range(n):
        number = number * vocab_size + tokens[..., i : i + count]
    return number


def values_at(keys: Tensor, values: Tensor, wanted: Tensor) -> Tensor:
    """Return the value of each wanted key, and 0 for one that is not among the sorted `keys`."""
    place = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return torch.where(keys[place] == wanted, values[place], 0)


class NGrams(NamedTuple):
    """
    ### One table

    The counts of all n-grams of one length, in one-dimensional tensors. `grams` are the numbers of the
    different n-grams $hc$, sorted, and `contexts` those of the different $h$.

    For an n-gram, `kept` is what counts for itself, $C(hc)$. For a context, `shared` is how much the shorter
    context counts, $T(h)$, and `total` is the sum of both over all that came next, $C(h) + T(h)$.
    """

    grams: Tensor
    kept: Tensor
    contexts: Tensor
    shared: Tensor
    total: Tensor

    def mix(self, gram: Tensor, context: Tensor, shorter: Tensor) -> Tensor:
        """Return the probability of the last token of n-grams, given those by a `shorter` context."""
        total = values_at(self.contexts, self.total, context)
        shared = values_at(self.contexts, self.shared, context)
        mixed = (values_at(self.grams, self.kept, gram) + shared * shorter) / total
        return torch.where(total > 0, mixed, shorter)


class Counts:
    """
    ### All tables

    Count all n-grams of `text`, up to `order` tokens. It is `[seq]`, or `[..., seq]` for several pieces that
    do not follow one another.

    Each n-gram is predicted by its table in `tables`. Those in `backing` give the probabilities by a shorter
    context, with which that is mixed. Here they are the same.

    Raises `ValueError` if the text is shorter than the order.
    """

    def __init__(self, text: Tensor, order: int, vocab_size: int):
        if text.size(-1) < order:
            raise ValueError(f"{text.size(-1)} tokens have no n-gram of {order}")
        self.vocab_size = vocab_size
        self.tables = [
            self.table(*self.count(ngrams(text, n, vocab_size)))
            for n in range(1, order + 1)
        ]
        self.backing = self.tables

    def count(self, grams: Tensor) -> tuple[Tensor, Tensor]:
        """Return the different n-grams, sorted, and $C(hc)$ of each."""
        different, count = torch.unique(grams, return_counts=True)
        return different, count

    def table(self, grams: Tensor, count: Tensor) -> NGrams:
        """Return the table of different n-grams and their counts."""
        kept, given = self.kept_and_given(count)
        # N-grams with the same context are neighbours. Add up what they give, and then what they keep.
        contexts, which = torch.unique_consecutive(
            grams // self.vocab_size, return_inverse=True
        )
        zero = torch.zeros(len(contexts), dtype=torch.float64)
        shared = zero.index_add(0, which, given.double())
        total = shared.index_add(0, which, kept.double())
        return NGrams(grams, kept, contexts, shared, total)

    def kept_and_given(self, count: Tensor) -> tuple[Tensor, Tensor]:
        """Return what each n-gram counts, $C(hc)$, and what it gives to the shorter context: 1."""
        return count, torch.ones_like(count)

    def probabilities(self, text: Tensor) -> Tensor:
        """
        Return the probability of each token of `text` `[..., seq]`, given the tokens before it, by every
        order: `[order + 1, ..., seq]`.

        Row $n$ is the n-gram model's, row 0 the uniform guess.
        """
        p = torch.full(text.shape, 1 / self.vocab_size, dtype=torch.float64)
        rows, shorter = [p], p
        for n, (table, backing) in enumerate(
            zip(self.tables, self.backing, strict=True), 1
        ):
            gram = ngrams(text, n, self.vocab_size)
            context = gram // self.vocab_size
            longer = table.mix(gram, context, shorter)
            # The first tokens of a text have shorter contexts only.
            p = torch.cat([p[..., : n - 1], longer], dim=-1)
            rows.append(p)
            shorter = backing.mix(gram, context, shorter)[..., 1:]
        return torch.stack(rows)


if __name__ == "__main__":
    # The tables give the same probabilities as the function above. Here both read the text of the picture,
    # character by character.
    from labml_primer.training.corpus import encode_text

    said = "to be or not to be"
    letters = "".join(sorted(set(said)))
    few = Counts(encode_text(said, letters), order=2, vocab_size=len(letters))
    found = few.probabilities(encode_text(said, letters))[2]  # [seq]
    for i in range(1, len(said)):
        by_hand = probability(said, said[i - 1], said[i], len(letters))
        assert math.isclose(found[i].item(), by_hand)
    print("a space after an o:", f"{found[2]:.2f}")


@torch.no_grad()
def write(counts: Counts, order: int, prompt: Tensor, length: int) -> Tensor:
    """
    ## It writes

    Continue `prompt` `[seq]` by `length` tokens, each drawn at random with its probability by n-grams of
    `order`. Returns all tokens, `[seq + length]`.

    A language model can write because it can predict: draw the next character, append it, and predict again.
    All models of this book write like this ({doc}`../transformer/generation`).
    """
    each = torch.arange(counts.vocab_size)[:, None]
    text = prompt
    for _ in range(length):
        context = text[max(0, len(text) - order + 1) :].expand(len(each), -1)
        p = counts.probabilities(torch.cat([context, each], dim=1))[order, :, -1]
        text = torch.cat([text, torch.multinomial(p, 1)])
    return text


if __name__ == "__main__":
    # The corpus of this book is 38 plays of Shakespeare, read character by character. Three whole plays are
    # held out, and the others are counted by `Counts`, which gives the same probabilities as the function
    # above, and faster.
    from labml_primer.training.corpus import load_corpus

    corpus = load_corpus()
    V, highest = corpus.vocab_size, 8
    counts = Counts(corpus.train, highest, V)

    # Each order continues "ROMEO." with the same {term}`random seed`. A unigram model writes characters with
    # the right frequencies. From three on there are syllables, and from five on words and the form of a
    # scene. But no model sees further back than its context, so the end of a sentence does not depend on its
    # beginning.
    prompt = corpus.encode("ROMEO.\n")
    for n in (1, 2, 3, 5, 7):
        torch.manual_seed(0)
        written = write(counts, n, prompt, 160)
        print(f"{n}-gram:", corpus.decode(written[len(prompt) :]).replace("\n", " / "))


def losses(counts: Counts, text: Tensor) -> Tensor:
    r"""
    ## The loss

    Return the {term}`loss` of each order on `text` `[..., seq]`, `[order + 1]`.

    How good is a model? Let it predict a text that it has not seen. A good model gives the characters that do
    come a high probability, so the text as a whole is probable. The product of many probabilities is a tiny
    number, so take its logarithm, change the sign, and divide by the number of characters:

    $$\mathcal{L} = -\frac1n \sum_{t=1}^{n} \log p(c_t \mid c_1 \dots c_{t-1})$$

    This is the {term}`cross-entropy`, and the one number by which this book compares models; lower is better.
    A character that was certain costs 0. One that had probability 1/2 costs $\log 2 \approx 0.69$, and one
    that was impossible would cost infinitely much, which is why no count may end in probability 0.

    With the natural logarithm the unit is the {term}`nat`; 1 nat is $1 / \ln 2 \approx 1.44$ bits.
    {term}`Perplexity` is $e^{\mathcal{L}}$: the number of equally probable characters that would be as hard
    to predict.

    The first token is left out, because a neural network reads it without predicting it.
    """
    return -counts.probabilities(text)[..., 1:].log().flatten(1).mean(dim=1)


if __name__ == "__main__":
    # ## What is a good loss?
    #
    # The table has the loss on the three held-out plays, which the counts have not seen, by the number of
    # characters that a model looks at.
    #
    # - A model near the *uniform* guess, $\log V$, has learned nothing.
    # - A model near the *unigram* guess has learned how frequent each character is.
    # - A model near the *bigram* uses one character before, and so on. A model below the best n-gram has
    #   learned what such counts cannot: longer context, or what similar contexts have in common.
    #
    # Beyond the {value}`best`-gram the loss rises again. Long contexts are rare: what followed them once or
    # twice says little, and the mixture still trusts it. Many do not occur in the counted plays at all; the
    # last column has their share of the held-out characters.
    by_order = losses(counts, corpus.validation).tolist()
    best = by_order.index(min(by_order))
    rows = []
    for n, nats in enumerate(by_order):
        new = "-"
        if n > 1:
            contexts = ngrams(corpus.validation, n - 1, V)
            known = torch.isin(contexts, counts.tables[n - 1].contexts)
            new = f"{1 - known.double().mean().item():.1%}"
        name = f"{n}-gram" if n else "uniform"
        rows.append([name, f"{nats:.3f}", f"{math.exp(nats):.1f}", new])
    display(
        Table(
            {"model": "", "loss": "nats", "perplexity": "", "new contexts": ""},
            rows,
            f"{len(corpus.train):,} characters counted, {V} of them different",
        )
    )


def discounts(count: Tensor) -> Tensor:
    r"""
    ## The strongest counts: Kneser and Ney's

    :::{deeper}
    Take a little from each count, and let shorter contexts count differently: the grey line in the figures.
    :::

    Return what to take from a count of 0, of 1, of 2, and of more: `[4]`.

    The first idea: counts are too high. What was seen once in one half of a text occurs less than once in the
    other, on average, because the rest of the time something new comes. So {term}`Kneser-Ney smoothing` takes
    a discount from each count, and gives the shorter context what it took. How much to take follows from how
    many n-grams occur once, twice, three and four times, $n_1$ to $n_4$. From a count of $k$ take, with
    $Y = n_1 / (n_1 + 2 n_2)$,

    $$D_k = k - (k + 1)\, Y\, \frac{n_{k+1}}{n_k}, \qquad k = 1, 2, 3,$$

    and from more than three as much as from three. That is the *modified* form of
    {cite:t}`chen1999empirical`. A short text may have no n-gram with one of these counts, or a discount below
    0. Then they are 0.5, 1 and 1.5.
    """
    n1, n2, n3, n4 = (int((count == times).sum()) for times in (1, 2, 3, 4))
    found = [0.5, 1.0, 1.5]
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        each = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
        found = each if min(each) >= 0 else found
    return torch.tensor([0.0, *found], dtype=torch.float64)


class KneserNey(Counts):
    r"""
    Count a text as `Counts` does, and mix orders as Kneser and Ney do.

    The formula has the same form as Witten and Bell's. Instead of $C(hc)$, an n-gram keeps $C(hc) - D$, where
    $D$ is the discount of its count. Instead of $T(h)$, the shorter context gets $S(h)$, the sum of what was
    taken from all $c$ that came after $h$:

    $$p(c \mid h) = \frac{C(hc) - D + S(h)\, p(c \mid h')}{C(h)}$$

    The second idea is what a shorter context counts. It is asked if the longer one does not know, so it
    should know which characters come in *new* places. After "q" comes a "u", hundreds of times; that says
    little about other places. So in `backing`, an n-gram counts once for each different character before it,
    however often it occurs.
    """

    def __init__(self, text: Tensor, order: int, vocab_size: int):
        super().__init__(text, order, vocab_size)
        # The different n-grams of n + 1 tokens, without their first token: how often is each left?
        self.backing = [
            self.table(*torch.unique(longer.grams % vocab_size**n, return_counts=True))
            for n, longer in enumerate(self.tables[1:], 1)
        ]
        self.backing.append(self.tables[-1])  # the longest context backs no other

    def kept_and_given(self, count: Tensor) -> tuple[Tensor, Tensor]:
        """Return what an n-gram keeps of its count, and the discount, which it gives."""
        discount = discounts(count)[count.clamp(max=3)]
        return count - discount, discount


if __name__ == "__main__":
    # The loss on the held-out plays by the order, with both ways to mix. Up to the 3-gram they differ little,
    # because most contexts occur often. Witten and Bell's best loss is {value}`f"{by_order[best]:.3f}"`, with
    # the {value}`best`-gram. Kneser and Ney's is {value}`f"{yardstick[strongest]:.3f}"`, with the
    # {value}`strongest`-gram, and long contexts do no harm. So the line of counts in the figures of this book
    # is Kneser and Ney's.
    import matplotlib.pyplot as plt

    kneser_ney = KneserNey(corpus.train, highest, V)
    yardstick = losses(kneser_ney, corpus.validation).tolist()
    strongest = yardstick.index(min(yardstick))
    assert yardstick[strongest] < by_order[best] - 0.05, "it is clearly better"

    fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    orders = range(2, highest + 1)
    for name, by_n, color in (
        ("Witten-Bell", by_order, "C5"),
        ("Kneser-Ney", yardstick, "C0"),
    ):
        ax.plot(orders, by_n[2:], color=color, marker="o", ms=3, label=name)
    ax.set(xlabel="n, of the n-gram", ylabel="loss, nats per character")
    ax.legend(frameon=False)
    plt.show()


def with_window(
    p: Tensor, text: Tensor, n: int, trust: float, vocab_size: int
) -> Tensor:
    r"""
    ## A cache of what was just read

    :::{deeper}
    A Transformer sees its whole window. How much do counts gain if they look into it, too?
    :::

    Return the probabilities `p` `[windows, seq]` of the tokens of windows `text` `[windows, seq]`, mixed with
    the n-grams that came before in the same window.

    A name that was just read often comes again. The cheapest way for counts to use that is a *cache*
    {cite:p}`kuhn1990cache`: count in the window, too. If $h$, the last $n - 1$ tokens, came $W(h)$ times
    before in the window, and was followed by $c$ in $W(hc)$ of them, then

    $$\frac{W(hc) + k\,p(c)}{W(h) + k}$$

    So the counts are trusted as much as $k$ places of the window, which is `trust`.
    """
    gram = ngrams(text, n, vocab_size)  # [windows, places]
    context = gram // vocab_size
    # Compare each place, a row, with each one before it, a column: [windows, places, places].
    places = gram.size(-1)
    before = torch.ones(places, places, dtype=torch.bool).tril(-1)
    same_context = (context[:, :, None] == context[:, None]) & before
    same_token = same_context & (gram[:, :, None] == gram[:, None])
    of_context, of_token = same_context.sum(-1), same_token.sum(-1)  # W(h), W(hc)
    mixed = (of_token + trust * p[:, n - 1 :]) / (of_context + trust)
    return torch.cat([p[:, : n - 1], mixed], dim=-1)


if __name__ == "__main__":
    # The length of the context and the trust are chosen on the first held-out play, in windows of 128
    # characters: {value}`length - 1` characters, and {value}`trust`. On the other two plays the cache takes
    # the loss from {value}`f"{without:.3f}"` to {value}`f"{cached:.3f}"`. Its effect in the settings
    # of the experiments is recorded next to the counts.
    from labml_primer.training.corpus import VALIDATION_PLAYS, load_plays

    first = len(load_plays()[VALIDATION_PLAYS[0]])
    held_out = corpus.validation[:first], corpus.validation[first:]
    tuned, reported = (part.unfold(0, 129, 128) for part in held_out)
    p_tuned, p = (kneser_ney.probabilities(x)[strongest] for x in (tuned, reported))

    def loss_with(p: Tensor, text: Tensor, n: int, trust: float) -> float:
        return -with_window(p, text, n, trust, V)[:, 1:].log().mean().item()

    length, trust = min(
        ((n, trust) for n in (3, 4, 5) for trust in (2, 4, 8)),
        key=lambda each: loss_with(p_tuned, tuned, *each),
    )
    without = -p[:, 1:].log().mean().item()
    cached = loss_with(p, reported, length, trust)
    assert cached < without
    print(f"without {without:.3f}, with a cache {cached:.3f} nats per character")


if __name__ == "__main__":
    # ## More text, longer contexts
    #
    # How does the loss depend on the amount of text? The figure shows it for the strongest counts, Kneser and
    # Ney's: of the first 10,000 characters, and of two to three times as many at each step, with a line for
    # each order. From {value}`f"{amounts[2]:,}"` characters to all of them, the loss of the unigram falls by
    # {value}`f"{fell[1]:.2f}"` nats, that of the bigram by {value}`f"{fell[2]:.2f}"` and that of the 6-gram
    # by {value}`f"{fell[6]:.2f}"`. So the more text, the more a longer context is worth.
    #
    # So there is no single good loss. It depends on how much text a model has read: the 6-grams of
    # {value}`f"{amounts[-3]:,}"` characters reach {value}`f"{lowest[-3]:.2f}"`, and those of all training
    # plays {value}`f"{lowest[-1]:.2f}"`. In this book a line of counts is always of the text that the model
    # has read. Places that it has read several times are counted once.
    amounts = [
        10_000,
        30_000,
        100_000,
        300_000,
        1_000_000,
        2_400_000,
        len(corpus.train),
    ]
    by_amount = torch.stack(
        [
            losses(KneserNey(corpus.train[:amount], 6, V), corpus.validation)
            for amount in amounts
        ]
    )  # [amounts, order + 1]
    lowest = by_amount.amin(dim=1).tolist()
    fell = (by_amount[2] - by_amount[-1]).tolist()
    fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for n, color in enumerate(("C5", "C4", "C2", "C3", "C0", "C1"), 1):
        line = by_amount[:, n]
        ax.plot(amounts, line, color=color, marker="o", ms=3, label=f"{n}-gram")
    ax.set(xscale="log", xlabel="characters counted", ylabel="loss, nats per character")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()


if __name__ == "__main__":
    # ## In short
    #
    # - A language model gives each character a probability of coming next. Counting what came after the last
    #   few characters is the simplest one.
    # - Long contexts are rare, so their counts are mixed with those of shorter ones: in proportion to how
    #   often something new came (Witten and Bell), or to a discount (Kneser and Ney), which is better.
    # - The loss is the cross-entropy, the mean of $-\log p$ of the characters that do come, in nats per
    #   character. Perplexity is $e^{\mathcal{L}}$.
    # - A loss says little without the counts' loss next to it. On these plays, counting all training text
    #   gives {value}`f"{yardstick[strongest]:.2f}"` nats per character, in seconds.
    #
    # ## Exercise
    #
    # :::{exercise} A model is a compressor
    # An ideal code spends $-\log_2 p$ bits on a character of probability $p$. How many bytes would the counts
    # need for the held-out plays, and how many does Python's `lzma` need?
    # :::
    # :::{solution}
    # The loss in bits is the length of the code per character. The counts need
    # {value}`f"{1 - by_counts / packed:.0%}"` fewer bytes than `lzma`, which has not read other plays before.
    # :::
    import lzma

    packed = len(lzma.compress(corpus.decode(corpus.validation).encode()))
    by_counts = len(corpus.validation) * yardstick[strongest] / math.log(2) / 8
    print(f"{len(corpus.validation):,} characters: lzma {packed:,} bytes, ", end="")
    print(f"the {strongest}-gram {by_counts:,.0f}")
    assert by_counts < packed

    # :::{exercise} Write it: counts of pairs
    # Write how often each token follows each other one: `text` is `[seq]`, and the result is
    # `[token, next token]`, both below `vocab_size`.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def pairs_of(text: Tensor, vocab_size: int) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    cases: list[Case] = [
        (
            (torch.tensor([0, 1, 0, 1, 1]), 2),
            [[0, 2], [1, 1]],
            "the pairs are 01, 10, 01 and 11: a row is the first token",
        ),
        (
            (torch.tensor([2, 2]), 4),
            torch.eye(4) * torch.eye(4)[2],
            "22 occurs once, and the other 15 pairs never",
        ),
    ]
    check_answer(pairs_of, cases)

    # :::{solution}
    # Take a pair as one number, its two tokens as digits, and count numbers.
    # :::
    def solved(text: Tensor, vocab_size: int) -> Tensor:
        number = text[:-1] * vocab_size + text[1:]
        counts = torch.bincount(number, minlength=vocab_size**2)
        return counts.view(vocab_size, vocab_size)

    assert check_answer(solved, cases)

    # Counting finds no pattern that is longer than its context, and learns nothing about one context from
    # another. A model with {term}`parameters` can. How are they found? {doc}`loop`.
