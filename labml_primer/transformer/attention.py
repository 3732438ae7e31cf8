r"""
# Multi-head attention

A look-up by every position in all others. The model learns which questions to ask, and how to be found.

How can a word look at the words around it and find out which of them matter to it?

Attention is a soft look-up. Every position asks with a *query* $q$. Every position offers a *key* $k$, by
which it can be found, and a *value* $v$, which is its content. A query is compared with all keys, and the
result is the mean of the values, weighted by how well their keys match:

$$\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\Big(\frac{QK^\top}{\sqrt{d_k}}\Big)\,V$$

In the code `query`, `key` and `value` are $Q$, $K$ and $V$. Their rows are the single queries, keys and
values, so one matrix product compares every position with every other. The weights are computed from the
words themselves, for each sentence separately. The formula does not depend on the order of the words or on
their number. That is why {doc}`positional_encoding` came first, and why the same trained matrices work at
every length. The softmax is defined in {doc}`../training/loop`.

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

    `query` is `[..., queries, d_k]`, `key` is `[..., keys, d_k]`. The result is `[..., queries, keys]`:
    row $i$ holds the weights that query $i$ gives to the keys, and sums to one.

    `mask` is boolean, broadcasts to `[..., queries, keys]`, and is true where a query may attend to a key.
    The row of a query that may attend to no key is all zeros.
    """
    # Compare every query with every key: $S_{ij} = q_i \cdot k_j / \sqrt{d_k}$. If the components of $q_i$
    # and $k_j$ are independent, with mean zero and variance one, the sum of their $d_k$ products has variance
    # $d_k$. Dividing by $\sqrt{d_k}$ makes it one again.
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    # A masked key must have weight exactly zero, and $e^{-\infty} = 0$ in every precision.
    #
    # :::{deviation} the slides, multi-head attention
    # Their mask is of integers, and hides keys with `mask == 0`. Ours is boolean, so that `&`, `|` and `~`
    # combine masks. They write $-10^9$, which is outside the range of half precision: the demo on masks shows
    # the result.
    # :::
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    # Softmax turns a row of only $-\infty$ into $0/0$, which is `nan`, and one such row would spread through
    # the whole model. A query that may attend to no key gets zero weights instead.
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    r"""
    ## One look-up

    $\operatorname{softmax}(QK^\top / \sqrt{d_k})\,V$, with the weights of
    {py:func}`~labml_primer.transformer.attention.attention_weights`. `value` is `[..., keys, d_v]`, and
    the result is `[..., queries, d_v]`: for each query, one mean of the values.
    """
    return attention_weights(query, key, mask) @ value


if __name__ == "__main__":
    # ## By hand
    #
    # The slides follow one query through the formula. "Thinking" attends to itself and to "Machines". With
    # $d_k = 64$ the two dot products are 112 and 96. These vectors give the same; the values are chosen so
    # that the weights can be read from the result.
    query = torch.ones(1, 64)
    key = torch.tensor([[1.75], [1.5]]).expand(2, 64)
    value = torch.tensor([[10.0, 0.0], [0.0, 10.0]])

    dots = query @ key.T
    scaled = dots / math.sqrt(64)
    weights = scaled.softmax(dim=-1)
    for step, numbers in (
        ("dot products", dots),
        ("divided by 8", scaled),
        ("softmax", weights),
        ("weighted sum of values", weights @ value),
    ):
        print(f"{step:23s}" + "".join(f"{number:8.2f}" for number in numbers[0]))

    assert torch.equal(attention(query, key, value), weights @ value)
    # Without the division, the second of the same two keys gets almost no weight.
    print("softmax of 112 and 96:", *(f"{w:.7f}" for w in dots.softmax(dim=-1)[0]))


if __name__ == "__main__":
    # ## Why the root of $d_k$
    #
    # A softmax that puts all weight on one key stops learning. The slope of weight $p_j$ with respect to its
    # own score is $p_j (1 - p_j)$, which is zero both at $p_j = 0$ and at $p_j = 1$. Draw random queries and
    # 32 random keys, and add up that slope over the keys, as $d_k$ grows.
    import matplotlib.pyplot as plt

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
    print("d_k  ", *(f"{d_k:7d}" for d_k in widths))
    for name in slope:
        print(f"\n{name}")
        print("  std", *(f"{s:7.2f}" for s in spread[name]))
        print("slope", *(f"{s:7.3f}" for s in slope[name]))
    # Without the root, the scores spread as $\sqrt{d_k}$ does, and the slope falls towards zero.
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

    `[queries, keys]`, true where a query may attend to a key. A model that predicts the next token must not
    see it, so each position attends to itself and to the positions before it.

    The queries are the *last* of the keys: query $i$ is at position $i + \text{keys} - \text{queries}$. With
    as many queries as keys this is the lower triangle. With one query it is a row of ones: the newest token
    may attend to everything.

    :::{picture} masks
    :::
    """
    mask = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return mask.tril(keys - queries)


if __name__ == "__main__":
    # ## The use of masks
    #
    # Sentences of a batch differ in length, so short ones are filled up with *padding*. A *padding mask*
    # hides the padding from every query: one row, for all of them. A *causal mask* hides later positions: one
    # row for each query. `&` combines the two.
    torch.manual_seed(0)
    length = torch.tensor([3, 5])
    padding = torch.arange(5) < length[:, None]
    padding = padding[:, None, None, :]  # [batch, 1, 1, keys]
    both = padding & causal_mask(5, 5)  # [batch, 1, queries, keys]

    query, key = torch.randn(2, 1, 5, 8), torch.randn(2, 1, 5, 8)
    print("weights of the first sentence, 3 of 5 words long")
    for row in attention_weights(query, key, both)[0, 0]:
        print(*(f"{weight:5.2f}" for weight in row))
    # The last two rows are queries at padding positions. Their outputs are never used, because no query
    # attends to padding.
    #
    # In a sentence with no words at all, queries may attend to no key.
    nowhere = torch.zeros(5, 5, dtype=torch.bool)
    print("softmax of minus infinity ", torch.full((3,), -math.inf).softmax(dim=-1))
    print("softmax of -1e9           ", torch.full((3,), -1e9).softmax(dim=-1))
    print("ours                      ", attention_weights(query, key, nowhere)[0, 0, 0])
    fused = F.scaled_dot_product_attention(query, key, key, attn_mask=nowhere)
    print("PyTorch's attention, sum  ", fused.abs().sum())
    # Minus infinity alone gives `nan`. The slides' $-10^9$ gives the mean over all masked keys, padding
    # included, which is worse because it looks right. PyTorch's own function gives zeros since version 2.5,
    # as ours does; before, it gave `nan`.
    #
    # And half precision? Its largest number is 65,504.
    forbidden = torch.tensor([True, False])
    for dtype in (torch.bfloat16, torch.float16):
        try:
            filled = torch.zeros(2, dtype=dtype).masked_fill(forbidden, -1e9)
            print(f"{dtype}: {filled.tolist()}")
        except RuntimeError as error:
            print(f"{dtype}: {error}")
    # So $-10^9$ is an error in `float16`. In `bfloat16`, which has the range of `float32`, it is rounded
    # and works.


class MultiHeadAttention(nn.Module):
    r"""
    ## Multi-head attention

    One look-up returns one mean, but a word may need several things: the verb it belongs to, the word before
    it, the last line's rhyme. So several *heads* ask separately. Each has projections of its own, only
    $d_k = d_\text{model} / H$ wide, and one more projection combines their results:

    $$\begin{aligned}
      \operatorname{head}_h &= \operatorname{Attention}(XW^Q_h,\; YW^K_h,\; YW^V_h) \\
      Z &= [\operatorname{head}_1; \dots; \operatorname{head}_H]\,W^O
    \end{aligned}$$

    `x` and `y` are $X$ and $Y$. With `y = x` this is *self-attention*. With the encoder's output as `y` and
    the decoder's state as `x` it is *cross-attention*: the queries come from one sequence, keys and values
    from another. All heads together cost about as much as one head of full width.

    :::{picture} heads
    :::

    `dropout` applies to the attention weights during training. Raises `ValueError` if `heads` does not divide
    `d_model`.

    :::{deviation} the slides, multi-head attention
    They apply dropout after the output projection, and not to the weights. The paper's section 5.4 names the
    former; its authors' released code does both. We apply it to the weights here, and in
    {doc}`the block <encoder>` to the output. Their constructor takes the number of heads first.
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model} is not a multiple of heads {heads}")
        self.heads = heads
        self.d_k = d_model // heads
        # The $H$ narrow matrices $W^Q_1 \dots W^Q_H$, side by side, are one square matrix, since
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
        Return the queries of `x` and the keys and values of `y`, each `[batch, seq, heads, d_k]`.

        A method of its own, because {doc}`../primer/primer_ez` changes this step and nothing else.
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
        `x` is `[batch, queries, d_model]`, `y` is `[batch, keys, d_model]`, and the result has the shape
        of `x`. `mask` is boolean, broadcasts to `[batch, heads, queries, keys]`, and is true where a query
        may attend to a key. `causal` also hides all later keys. A query that may attend to no key gets zeros
        from all heads.

        :::{deviation} the slides, multi-head attention
        Their mask is `[batch, queries, keys]`, and the layer inserts the dimension of the heads. Here the
        caller does, so that heads may differ: a padding mask, `[batch, keys]`, is passed as
        `[batch, 1, 1, keys]`.
        :::
        """
        # The heads move to where PyTorch expects a batch: `[batch, heads, seq, d_k]`.
        query, key, value = (t.transpose(1, 2) for t in self.project(x, y))
        if causal:
            earlier = causal_mask(query.size(2), key.size(2), x.device)
            mask = earlier if mask is None else mask & earlier
        # {py:func}`~labml_primer.transformer.attention.attention`, fused: PyTorch's FlashAttention kernels
        # never store the scores of all pairs. A test checks that the two agree.
        heads = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
        )  # [batch, heads, queries, d_k]
        # Side by side again, `[batch, queries, d_model]`; $W^O$ combines the heads' results.
        return self.output(heads.transpose(1, 2).flatten(2))


if __name__ == "__main__":
    # ## Does it do what it says?
    #
    # Take the layer apart: cut head $h$'s rows out of each large matrix, attend with the pure function,
    # multiply by its columns of $W^O$, and add up. The sum equals the layer's output.
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
    print(f"eight small heads against one layer: largest difference {difference:.1e}")
    # **Cross-attention.** Ten queries attend to 64 keys. The result has one row per query, for any number of
    # keys.
    print("10 queries, 64 keys:", list(layer(torch.randn(2, 10, 256), x).shape))
    # **Is it causal?** Change the input from position 40 on, and see whether outputs before it change.
    later = x.clone()
    later[:, 40:] += 1.0
    moved = layer(later, later, causal=True) - layer(x, x, causal=True)
    moved = moved.abs().amax(dim=(0, 2))
    print(f"largest change before 40: {moved[:40].max():.1e}")
    print(f"largest change from 40:   {moved[40:].max():.1e}")
    # **Does it depend on the order?** Shuffle the words, and the results are the same, shuffled in the same
    # way. To attention a sentence is a bag of words: for a permutation $\Pi$ of the rows,
    # $\operatorname{Att}(\Pi X) = \Pi \operatorname{Att}(X)$.
    order = torch.randperm(64)
    difference = (layer(x[:, order], x[:, order]) - layer(x, x)[:, order]).abs().max()
    print(f"shuffled before against after: largest difference {difference:.1e}")


if __name__ == "__main__":
    # ## In short
    #
    # - Attention is a weighted mean of values. The weights are a softmax over the dot products of a query
    #   with all keys, divided by $\sqrt{d_k}$ so that the softmax keeps learning.
    # - A mask hides keys: padding, or later positions. A query without any key gets zeros.
    # - Heads are several narrow look-ups side by side, combined by one more matrix.
    # - Without positions, attention sees a bag of words.
    #
    # ## Exercise
    #
    # :::{exercise} The bias that does nothing
    # The layer has four biases: of queries, keys, values and output. One of them never changes any result.
    # Which is it?
    # :::
    # :::{solution}
    # That of the keys. A bias $b$ raises every score of query $i$ by the same $q_i \cdot b$, and softmax
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

    # Next, each position processes the information that it has gathered: {doc}`feed_forward`.
