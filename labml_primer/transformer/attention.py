r"""
# Multi-head attention

Each position looks up information at all positions. Training decides what it looks for.

How can a word find out which of the words around it matter to it, and use them?

{term}`Attention` is a soft look-up. Every position asks with a *query* $q$. Every position also offers a
*key* $k$, by which it can be found, and a *value* $v$, which is its content. All three are computed from the
position's vector by trained matrices. A query is compared with all keys, and its result is a mean of the
values, weighted by how well their keys match:

$$\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\Big(\frac{QK^\top}{\sqrt{d_k}}\Big)\,V$$

In the code `query`, `key` and `value` are $Q$, $K$ and $V$. Each of their rows is one query, key or value:
$Q$ is `[queries, d_k]`, $K$ is `[keys, d_k]` and $V$ is `[keys, d_v]`. So one matrix product, $QK^\top$,
compares every query with every key: `[queries, keys]`. {term}`Softmax` turns each row of these scores into
weights that sum to one ({doc}`../training/loop`).

Why are queries and keys two matrices? Looking for something and being found are different. In "dog bites
man", "bites" has to find who bites, but "dog" need not look for a verb. If both came from one matrix, the
score of "bites" for "dog" would equal that of "dog" for "bites".

The weights are computed separately for each sentence, from its own words. The formula does not depend on the
order of the words or on their number. So the same trained matrices work at every length, and the order has to
be added: {doc}`positional_encoding`, the next chapter.

:::{picture} attention
:::

Source: {cite:t}`vaswani2017attention`, section 3.2.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""
    ## Attention weights

    Return the weight that each query gives to each key. `query` is `[..., queries, d_k]`, `key` is
    `[..., keys, d_k]`, and the result is `[..., queries, keys]`. Each row is one query's and sums to one.

    `mask` hides keys. It is boolean, broadcasts to `[..., queries, keys]`, and is true where a query may
    attend to a key. The row of a query that may attend to no key is all zeros.
    """
    # Compare every query with every key: $S_{ij} = q_i \cdot k_j / \sqrt{d_k}$. If the components of $q_i$
    # and $k_j$ are independent, with mean zero and variance one, the sum of their $d_k$ products has variance
    # $d_k$. Dividing by $\sqrt{d_k}$ makes the variance one again. The query is divided before the product,
    # which could be too large for half precision otherwise.
    scores = query / math.sqrt(query.size(-1)) @ key.transpose(-2, -1)
    # A masked key must have weight exactly zero. Its score becomes $-\infty$ *before* the softmax, because
    # $e^{-\infty} = 0$ in every precision, and the weights of the other keys then still sum to one. Weights
    # that are set to zero after the softmax would leave a smaller sum.
    #
    # :::{deviation} the slides, multi-head attention
    # Their mask contains integers, and hides keys with `mask == 0`. Ours is boolean, so that `&`, `|` and `~`
    # combine masks. Instead of $-\infty$ they write $-10^9$. That is outside the range of half precision, as
    # the section on masks shows.
    # :::
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    # If a row contains only $-\infty$, softmax computes $0/0$, which is `nan`, and one such row would spread
    # through the whole model. A query that may attend to no key gets zero weights instead.
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    r"""
    ## One look-up

    Return $\operatorname{softmax}(QK^\top / \sqrt{d_k})\,V$, with the weights of
    {py:func}`~labml_primer.transformer.attention.attention_weights`. `value` is `[..., keys, d_v]`, and the
    result is `[..., queries, d_v]`: for each query, one weighted mean of the values. The paper calls this
    *scaled dot-product attention*.

    In a text of $n$ positions, each of $n$ queries is compared with $n$ keys. So a text of twice the length
    takes four times the work, while layers that treat each position separately take twice
    ({doc}`feed_forward` compares the two).
    """
    return attention_weights(query, key, mask) @ value


if __name__ == "__main__":
    # ## By hand
    #
    # {cite:t}`alammar2018illustrated` follows one query through the formula, and the slides use his numbers.
    # "Thinking" attends to itself and to "Machines". With $d_k = 64$ the two dot products are 112 and 96; the
    # vectors below are chosen to give these. Compare the last two rows: without the division by
    # $\sqrt{64} = 8$, "Machines" gets almost no weight.
    from IPython.display import display

    from labml_primer.training.table import Table

    query = torch.ones(1, 64)
    key = torch.tensor([[1.75], [1.5]]).expand(2, 64)
    dots = query @ key.T
    scaled = dots / math.sqrt(64)
    weights = scaled.softmax(dim=-1)
    steps = {
        "dot product": dots,
        "divided by 8": scaled,
        "softmax": weights,
        "softmax without the division": dots.softmax(dim=-1),
    }
    display(
        Table(
            ["query: Thinking", "key: Thinking", "key: Machines"],
            [
                [step, *(f"{n:.7g}" for n in row[0].tolist())]
                for step, row in steps.items()
            ],
        )
    )
    # The result is the mean of the values with these weights. The two values here are chosen so that each
    # number of the result is 10 times a weight.
    value = torch.tensor([[10.0, 0.0], [0.0, 10.0]])
    assert torch.equal(attention(query, key, value), weights @ value)
    print("result:", *(f"{number:.1f}" for number in attention(query, key, value)[0]))


if __name__ == "__main__":
    # ## Why the root of $d_k$
    #
    # :::{deeper}
    # Without it, large scores make the softmax choose a single key, and learning stops.
    # :::
    #
    # A softmax that puts all weight on one key stops learning, because its gradient vanishes. The slope of
    # weight $p_j$ with respect to its own score is $p_j (1 - p_j)$, which is zero both at $p_j = 0$ and at
    # $p_j = 1$. To see when this happens, draw random queries, each with 32 random keys, and let $d_k$ grow.
    torch.manual_seed(0)
    widths = [4**n for n in range(7)]
    spread: dict[str, list[float]] = {"with the root": [], "without": []}
    slope: dict[str, list[float]] = {"with the root": [], "without": []}
    for d_k in widths:
        query, key = torch.randn(512, d_k), torch.randn(512, 32, d_k)
        dots = torch.einsum("nd, nkd -> nk", query, key)
        for name, scores in (("with the root", dots / d_k**0.5), ("without", dots)):
            p = scores.softmax(dim=-1)
            spread[name].append(scores.std().item())
            slope[name].append((p * (1 - p)).sum(dim=-1).mean().item())

    # On the left, the standard deviation of the scores by $d_k$; on the right, the sum of the slopes. Without
    # the root (orange), the spread of the scores grows as $\sqrt{d_k}$ and the slope falls towards zero. With
    # it (teal), both stay the same at every width.
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    for name, color in (("with the root", "C0"), ("without", "C1")):
        for ax, series in ((left, spread[name]), (right, slope[name])):
            ax.plot(widths, series, color=color, marker="o", markersize=3)
            ax.set(xscale="log", xlabel="$d_k$")
    left.set(yscale="log", ylabel="standard deviation of scores")
    right.set(ylabel="slope of softmax, summed", ylim=(0, 1))
    right.text(
        4000, slope["with the root"][-1] - 0.1, "with the root", color="C0", ha="right"
    )
    right.text(4000, slope["without"][-1] + 0.06, "without", color="C1", ha="right")
    plt.show()


def causal_mask(
    queries: int, keys: int, device: torch.device | str | None = None
) -> Tensor:
    r"""
    ## Causal mask

    Return `[queries, keys]`, true where a query may attend to a key. A model that predicts the next token
    must not see it, so each position attends only to itself and to the positions before it.

    If there are as many queries as keys, the mask is the lower triangle. A model that writes a text has fewer
    queries ({doc}`generation`). They are at the *last* positions of the keys, so query $i$ is at position
    $i + \text{keys} - \text{queries}$. A single query, of the newest token, may attend to everything.

    :::{picture} masks
    :::
    """
    mask = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return mask.tril(keys - queries)


if __name__ == "__main__":
    # ## Padding mask and causal mask
    #
    # Sentences in a batch differ in length, so short ones are filled up with {term}`padding`. A
    # {term}`padding mask` hides the padding from every query, so one row serves them all. A
    # {term}`causal mask` hides later positions, so it has a row for each query. `&` combines the two.
    #
    # The table shows the weights in a sentence of three words, padded to five. The causal mask makes the
    # zeros above the diagonal, the padding mask those in the last two columns. Each row sums to one. The last
    # two rows are queries at padding positions; their outputs are never used, because no query attends to
    # padding.
    torch.manual_seed(0)
    length = torch.tensor([3, 5])
    padding = torch.arange(5) < length[:, None]
    padding = padding[:, None, None, :]  # [batch, 1, 1, keys]
    both = padding & causal_mask(5, 5)  # [batch, 1, queries, keys]

    query, key = torch.randn(2, 1, 5, 8), torch.randn(2, 1, 5, 8)
    words = ["dog", "bites", "man", "padding", "padding"]
    rows = attention_weights(query, key, both)[0, 0]
    display(
        Table(
            ["query", *(f"key: {word}" for word in words)],
            [
                [word, *(f"{weight:.2f}" for weight in row)]
                for word, row in zip(words, rows, strict=True)
            ],
        )
    )

    # ## If every key is hidden
    #
    # :::{deeper}
    # What softmax makes of a row of minus infinity, and which masks are refused.
    # :::
    #
    # If a sentence is all padding, a query may attend to no key. Minus infinity by itself gives `nan`. The
    # slides' $-10^9$ gives the mean over all masked keys, which is worse because it looks right. PyTorch's
    # own function has returned zeros since version 2.5, as ours does; before that it returned `nan`.
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    print("softmax of minus infinity ", torch.full((3,), -math.inf).softmax(dim=-1))
    print("softmax of -1e9           ", torch.full((3,), -1e9).softmax(dim=-1))
    print("ours                      ", attention_weights(query, key, nothing)[0, 0, 0])
    fused = F.scaled_dot_product_attention(query, key, key, attn_mask=nothing)
    print("PyTorch's attention, sum  ", fused.abs().sum())

    # In half precision $-10^9$ is an error: the largest number of `float16` is 65,504. `bfloat16` has the
    # range of `float32`, so there it is rounded and works.
    hidden = torch.tensor([True, False])
    for dtype in (torch.bfloat16, torch.float16):
        try:
            filled = torch.zeros(2, dtype=dtype).masked_fill(hidden, -1e9)
            print(f"{dtype}: {filled.tolist()}")
        except RuntimeError as error:
            print(f"{dtype}: {error}")


def check_vectors(*texts: Tensor) -> None:
    """Raise `ValueError` unless each is `[batch, seq, d_model]`."""
    for text in texts:
        if text.dim() != 3:
            raise ValueError(f"{list(text.shape)} must be [batch, seq, d_model]")


def check_mask(mask: Tensor | None) -> None:
    """
    Raise `TypeError` unless a mask is boolean, and has dimensions for batch and heads, or for neither.

    A model that is given vectors and a mask checks them once, not in each layer. PyTorch would add a mask of
    numbers to the scores, and take `[batch, queries, keys]` for `[heads, queries, keys]`.
    """
    if mask is not None and (mask.dtype != torch.bool or mask.dim() not in (2, 4)):
        raise TypeError(
            f"{mask.dtype} mask {list(mask.shape)} is no boolean [queries, keys] or "
            "[batch, heads, queries, keys]; pass mask.bool(), or mask[:, None]"
        )


class MultiHeadAttention(nn.Module):
    r"""
    ## Multi-head attention

    One look-up returns one mean, but a word may need several things: the verb it belongs to, the word before
    it, the name it refers to. So $H$ *heads* look up separately. Each has linear maps of its own, called
    projections, which are only $d_k = d_\text{model} / H$ wide. The results are put side by side, and one
    more projection combines them:

    $$\begin{aligned}
      \operatorname{head}_h &= \operatorname{Attention}(XW^Q_h,\; YW^K_h,\; YW^V_h) \\
      Z &= [\operatorname{head}_1; \dots; \operatorname{head}_H]\,W^O
    \end{aligned}$$

    The three matrices of a head are `[d_model, d_k]`, and $W^O$ is `[d_model, d_model]`. `x` and `y` are $X$
    and $Y$. With `y = x` this is {term}`self-attention`. If the queries come from one sequence and the keys
    and values from another, it is {term}`cross-attention` ({doc}`decoder`). All heads together cost about as
    much as one head of full width.

    :::{picture} heads
    :::

    `dropout` applies to the attention weights during training. Raises `ValueError` if `d_model` is not a
    multiple of `heads`.

    :::{deviation} the slides, multi-head attention
    They apply dropout after the output projection, and not to the weights. The paper's section 5.4 names only
    the output; its authors' released code does both. We apply it to the weights here, and to the output in
    {doc}`the block <encoder>`.
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model} is not a multiple of heads {heads}")
        self.heads, self.d_k = heads, d_model // heads
        # The $H$ narrow matrices $W^Q_1 \dots W^Q_H$, side by side, are one square matrix, because
        # $H \cdot d_k = d_\text{model}$. One large product is faster than $H$ small ones.
        #
        # :::{deviation} the paper, section 3.2.2
        # Its projections have no bias. Like the slides' code, ours add one to each of the four.
        # :::
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = dropout

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """
        Return queries of `x`, keys and values of `y`, each `[batch, seq, heads, d_k]`.

        This is a method of its own because {doc}`../primer/primer_ez` changes this step and nothing else.
        """
        split = (self.heads, self.d_k)
        return (
            self.query(x).unflatten(-1, split),
            self.key(y).unflatten(-1, split),
            self.value(y).unflatten(-1, split),
        )

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """
        Map `x` and `y`, `[batch, seq, d_model]` each, to the shape of `x`.

        `mask` is boolean, `[batch, heads, queries, keys]`, each of which may be one, or `[queries, keys]`. It
        is true where a query may attend to a key. `causal` also hides all later keys. A query that may attend
        to no key gets zeros from all heads.

        :::{deviation} the slides, multi-head attention
        Their mask is `[batch, queries, keys]`, and the layer inserts the dimension of the heads. Here the
        caller does, so that heads may differ: a padding mask, `[batch, keys]`, is passed as
        `[batch, 1, 1, keys]`.
        :::
        """
        # Move the heads next to the batch, `[batch, heads, seq, d_k]`, so that each head of each sentence is
        # a look-up of its own.
        query, key, value = (t.transpose(1, 2) for t in self.project(x, y))
        # If only later keys are hidden, and there are as many queries as keys, PyTorch needs no mask.
        if causal and (mask is not None or query.size(2) != key.size(2)):
            earlier = causal_mask(query.size(2), key.size(2), x.device)
            mask = earlier if mask is None else mask & earlier
        # The same as {py:func}`~labml_primer.transformer.attention.attention`, in one *fused* operation,
        # which does all the steps at once. Without a mask, PyTorch can use {term}`FlashAttention`
        # {cite:p}`dao2022flashattention`, which never stores the scores of all pairs. A test checks that the
        # two agree.
        dropout = self.dropout if self.training else 0.0
        heads = F.scaled_dot_product_attention(
            query, key, value, mask, dropout, causal and mask is None
        )  # [batch, heads, queries, d_k]
        # Put the heads side by side again, `[batch, queries, d_model]`; $W^O$ combines their results.
        output: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return output


if __name__ == "__main__":
    # ## Does the layer compute the formula?
    #
    # Take the layer apart: cut head $h$'s rows out of each large matrix, apply `attention` from above,
    # multiply by the head's columns of $W^O$, and add up. The sum equals the layer's output up to rounding.
    torch.manual_seed(0)
    layer = MultiHeadAttention(d_model=256, heads=8)
    x = torch.randn(2, 64, 256)
    with torch.no_grad():
        total = layer.output.bias.expand(2, 64, 256)
        for h in range(8):
            part = slice(32 * h, 32 * (h + 1))
            q, k, v = (
                F.linear(x, linear.weight[part], linear.bias[part])
                for linear in (layer.query, layer.key, layer.value)
            )
            total = total + attention(q, k, v) @ layer.output.weight[:, part].T
        difference = (total - layer(x, x)).abs().max()
    print(f"eight narrow heads and the layer: largest difference {difference:.1e}")

    # **Cross-attention.** Ten queries attend to 64 keys. The result has one row per query, for any number of
    # keys.
    print("10 queries, 64 keys:", list(layer(torch.randn(2, 10, 256), x).shape))

    # **Is it causal?** Change the input from position 40 on. Outputs before 40 must not change.
    later = x.clone()
    later[:, 40:] += 1.0
    moved = layer(later, later, causal=True) - layer(x, x, causal=True)
    moved = moved.abs().amax(dim=(0, 2))
    print(f"largest change before 40: {moved[:40].max():.1e}")
    print(f"largest change from 40:   {moved[40:].max():.1e}")

    # **Does it depend on the order?** If the words are shuffled, the results are the same, shuffled in the
    # same way: for a permutation $\Pi$ of the rows, $\operatorname{Att}(\Pi X) = \Pi \operatorname{Att}(X)$.
    # To attention a sentence is a bag of words.
    order = torch.randperm(64)
    difference = (layer(x[:, order], x[:, order]) - layer(x, x)[:, order]).abs().max()
    print(f"shuffled before and shuffled after: largest difference {difference:.1e}")


if __name__ == "__main__":
    # ## What does a trained head look for?
    #
    # Six cards have a letter and a digit each, for example K3. Given a letter, a head is to find the digit on
    # its card. A card is the sum of two embeddings. Nothing says which part of it the keys should describe
    # and which the values. The only training signal is the {term}`cross-entropy` of the predicted digit.
    torch.manual_seed(0)
    letters, digits = nn.Embedding(26, 32), nn.Embedding(10, 32)
    head, read = MultiHeadAttention(d_model=32, heads=1), nn.Linear(32, 10)
    parts = nn.ModuleList([letters, digits, head, read])
    optimizer = torch.optim.Adam(parts.parameters(), lr=0.01)

    def deal(hands: int) -> tuple[Tensor, Tensor]:
        """Return the letters, all different, and the digits of six cards, `[hands, 6]` each."""
        letter = torch.rand(hands, 26).argsort(dim=-1)[:, :6]
        return letter, torch.randint(10, (hands, 6))

    def weights_of(letter: Tensor, digit: Tensor) -> Tensor:
        """Return the weights of all six queries, `[6, 6]`."""
        cards = letters(letter) + digits(digit)
        return attention_weights(head.query(letters(letter)), head.key(cards)).detach()

    letter, digit = deal(1)
    before = weights_of(letter[0], digit[0])
    for _ in range(100):
        asked, answer = deal(128)
        cards = letters(asked) + digits(answer)  # [hands, 6, d_model]
        found = head(letters(asked[:, :1]), cards)  # asks for the first card's letter
        loss = F.cross_entropy(read(found[:, 0]), answer[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = weights_of(letter[0], digit[0])
    changed = weights_of(letter[0], (digit[0] + 5) % 10)
    print(f"cross-entropy after 100 steps: {loss:.3f} nats")
    print(f"least weight of the right card: {after.diagonal().min():.2f}")
    print(f"largest change with other digits: {(changed - after).abs().max():.2f}")
    # Each row is a query, each column a card; dark is a large weight. At first a query looks at all cards.
    # After training it looks at its own, wherever that lies: the keys describe the letter and ignore the
    # digit, and the values carry the digit.
    import matplotlib.pyplot as plt

    names = [chr(ord("A") + n) for n in letter[0].tolist()]
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.9), layout="constrained")
    for ax, shown, title in zip(
        axes, (before, after), ("before", "after"), strict=True
    ):
        ax.imshow(shown, vmin=0, vmax=1)
        held = [f"{name}{d}" for name, d in zip(names, digit[0].tolist(), strict=True)]
        ax.set_xticks(range(6), held)
        ax.set_yticks(range(6), names)
        ax.set(title=f"{title} training", xlabel="card", ylabel="letter asked for")
    plt.show()


if __name__ == "__main__":
    # ## Fewer keys and values
    #
    # :::{deeper}
    # Large models let heads share keys and values, which saves memory when they write.
    # :::
    #
    # When a model generates text, the keys and values of all earlier tokens stay in memory, in the
    # {term}`KV cache`. To make it smaller, heads can share them. All heads keep queries of their own. In
    # {term}`multi-query attention` {cite:p}`shazeer2019fast` they share a single head of keys and values; in
    # {term}`grouped-query attention` {cite:p}`ainslie2023gqa` each group of heads shares one. Many large
    # models use the second, because it costs little quality. {doc}`../since/modern` has such a layer; the
    # other models of this book use neither.
    #
    # :::{picture} grouped_queries
    # :::
    #
    # Here 8 heads of queries form 2 groups, which have a quarter of the keys and values. PyTorch's function
    # supports this with `enable_gqa`. The result is the same as with each key and value repeated for the four
    # heads of its group.
    query, (key, value) = torch.randn(1, 8, 5, 32), torch.randn(2, 1, 2, 5, 32)
    grouped = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    repeated = (t.repeat_interleave(4, dim=1) for t in (key, value))
    difference = (grouped - attention(query, *repeated)).abs().max()
    print(f"grouped and repeated: largest difference {difference:.1e}")


if __name__ == "__main__":
    # ## In short
    #
    # - Attention is a weighted mean of values. The weights are a softmax over the dot products of a query
    #   with all keys, divided by $\sqrt{d_k}$ so that the softmax keeps learning.
    # - A mask hides keys: padding, or later positions. A query whose keys are all hidden gets zeros.
    # - Heads are several narrow look-ups side by side, combined by one more matrix. They can share keys and
    #   values to save memory.
    # - Without positions, attention sees a bag of words.
    #
    # ## Exercise
    #
    # :::{exercise} The bias that does nothing
    # The layer has four biases: of queries, keys, values and output. One of them never changes any result.
    # Which is it?
    # :::
    # :::{solution}
    # The bias of the keys. A bias $b$ raises every score of query $i$ by the same $q_i \cdot b$, and softmax
    # depends only on the differences of scores. The bias of the queries adds $b \cdot k_j$, a different
    # number for each key.
    # :::
    effects = {}
    with torch.no_grad():
        for name in ("query", "key", "value", "output"):
            other = MultiHeadAttention(d_model=256, heads=8)
            other.load_state_dict(layer.state_dict())
            other.get_parameter(f"{name}.bias").normal_()
            effects[name] = (other(x, x) - layer(x, x)).abs().max().item()
    for name, effect in effects.items():
        print(f"other {name} bias: largest change {effect:.1e}")
    assert effects["key"] < 1e-4 < 1e-2 < min(effects[n] for n in effects if n != "key")

    # :::{exercise} Write it: causal attention
    # Write one head of causal self-attention. `query` and `key` are `[seq, d_k]`, `value` is `[seq, d_v]`,
    # and the result is `[seq, d_v]`. Position $i$ may attend to positions 0 to $i$.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    zeros, steps_up = torch.zeros(3, 4), torch.tensor([[0.0], [1.0], [2.0]])
    cases: list[Case] = [
        (
            (zeros, zeros, steps_up),
            torch.tensor([[0.0], [0.5], [1.0]]),
            "equal scores: each result is the mean of the values so far",
        ),
        (
            (
                torch.ones(2, 16),
                torch.ones(2, 16) * torch.tensor([[1.0], [0.0]]),
                steps_up[1:],
            ),
            torch.tensor([[1.0], [1.0180]]),
            "the scores are 16 / 4 and 0, so the weights are 0.982 and 0.018",
        ),
    ]
    check_answer(attend, cases)

    # :::{solution}
    # The mask hides later keys before the softmax, so that the weights of the others sum to one.
    # :::
    def solved(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.T / math.sqrt(query.size(-1))
        seen = causal_mask(len(query), len(key))
        return scores.masked_fill(~seen, -math.inf).softmax(dim=-1) @ value

    assert check_answer(solved, cases)

    # The next chapter gives each word its place: {doc}`positional_encoding`.
