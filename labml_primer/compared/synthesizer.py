r"""
# Synthesizer

Attention without comparing queries and keys: where a position attends depends on its own token, or on the
position alone.

Attention compares every query with every key. Is that necessary? Could a position know where to look before
it has seen the tokens there?

The weights of {doc}`../transformer/attention` are the {term}`softmax` of the scores $QK^\top/\sqrt{d_k}$. A
{term}`Synthesizer` replaces the scores by another matrix $B$ and leaves the rest unchanged:

$$Y = \operatorname{softmax}(B)\,XW^V$$

In short: there are two kinds. A *dense* Synthesizer computes row $i$ of $B$ from token $i$. In a *random* one
$B$ itself is a parameter, the same for all texts. Both can be *factorized* to have fewer parameters. The
table counts them for one head, where $n = k_1 k_2$ is the maximum length and $k$ the number of columns of
$R_1$ and $R_2$ (Table 1 of the paper):

| scores | row $i$ of $B$ | parameters | depends on |
|---|---|---|---|
| dot products | $q_i K^\top$ | $2d^2$ | all tokens |
| dense | $F(x_i)$ | $d^2 + dn$ | token $i$ |
| factorized dense | from $F_A(x_i)$, $F_B(x_i)$ | $d^2 + d(k_1 + k_2)$ | token $i$ |
| random | $R_i$ | $n^2$ | position $i$ |
| factorized random | from $R_1 R_2^\top$ | $2nk$ | position $i$ |

The paper on Primer uses a Synthesizer to show that the squared ReLU helps other models too.

:::{picture} synthesizer
:::

Source: {cite:t}`tay2021synthesizer`, section 3 and Table 1; the authors' released code (Mesh TensorFlow,
`transformer/attention.py`); {cite:t}`so2021primer`, section 4.2 and Table 5.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import (
    MultiHeadAttention,
    causal_mask,
    check_mask,
)
from labml_primer.transformer.language_model import Block, Config, LanguageModel


class SyntheticAttention(MultiHeadAttention, ABC):
    r"""
    ## The common part

    Values, heads and the output projection are those of
    {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`. Each subclass computes in `scores`
    what replaces $QK^\top$.

    Scores are for positions, not for tokens, so there must be one for every position up to `max_seq`. Raises
    `ValueError` for more keys, and if `heads` does not divide `d_model`.
    """

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout)
        # There are no queries and keys.
        del self.query, self.key
        self.max_seq = max_seq

    @abstractmethod
    def scores(self, x: Tensor, keys: int) -> Tensor:
        """
        Return `[batch, heads, queries, keys]`, with a batch of 1 if the scores are the same for all texts.
        The tokens `x` `[batch, queries, d_model]` are at the last of the `keys` positions.
        """

    def weights(self, x: Tensor, keys: int, mask: Tensor | None = None) -> Tensor:
        """Return the softmax of `scores`, with zeros for a query that may attend to no key."""
        scores = self.scores(x, keys)
        if mask is None:
            return scores.softmax(dim=-1)
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        return weights.masked_fill(~mask, 0.0)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """
        Return `x` as queries, keys without features, and values `[batch, seq, heads, d_k]`.

        Only the number of keys matters; the KV cache of {doc}`../transformer/generation` counts them.
        """
        value = self.value(y).unflatten(-1, (self.heads, self.d_k))
        return x, value[..., :0], value

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """As in {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`."""
        x, _, value = self.project(x, y)
        queries, keys = x.size(1), value.size(1)
        if keys > self.max_seq:
            raise ValueError(f"{keys} tokens are more than max_seq {self.max_seq}")
        if queries > keys:
            raise ValueError(f"{queries} queries are more than {keys} keys")
        check_mask(mask)
        if causal:
            earlier = causal_mask(queries, keys, x.device)
            mask = earlier if mask is None else mask & earlier
        weights = F.dropout(self.weights(x, keys, mask), self.dropout, self.training)
        # If all texts share the weights, this is one product for the whole batch.
        heads = torch.einsum("bhqk, bkhd -> bqhd", weights, value)
        output: Tensor = self.output(heads.flatten(2))
        return output


class DenseSynthesizer(SyntheticAttention):
    r"""
    ## Dense

    Two layers turn a token into a score for each position that a key can have:

    $$F(x_i) = \operatorname{ReLU}(x_i W_1 + b)\,W_2$$

    So a token can attend to the first position, but not search for the word *not*. $W_1$ is
    `[d_model, d_model]`. Each head gets $d_k$ features of the hidden layer and has a $W_2$ of its own,
    `[d_k, max_seq]`.

    :::{deviation} the paper, section 3, and the released code
    The paper's formula also adds a bias after $W_2$: a preference for some positions, whatever the token. The
    released code, `synthetic_attention`, has no bias at all and one $W_2$ for all heads. Table 1 counts $dn$
    parameters for $W_2$, which fits one for each head.
    :::
    """

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout, max_seq)
        # $W_1$ has the shape of the query projection, and replaces it.
        self.query = nn.Linear(d_model, d_model)
        self.targets = self.for_each_head(max_seq)

    def for_each_head(self, width: int) -> nn.Parameter:
        """Return a matrix for each head, `[heads, d_k, width]`, initialized as in `nn.Linear`."""
        bound = 1 / math.sqrt(self.d_k)
        shape = (self.heads, self.d_k, width)
        return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

    def hidden(self, x: Tensor) -> Tensor:
        """Return the hidden layer, `[batch, heads, queries, d_k]`."""
        hidden = F.relu(self.query(x))
        hidden = torch.unflatten(hidden, -1, (self.heads, self.d_k))
        return hidden.transpose(1, 2)

    def scores(self, x: Tensor, keys: int) -> Tensor:
        return self.hidden(x) @ self.targets[..., :keys]


class FactorizedDenseSynthesizer(DenseSynthesizer):
    r"""
    ## Dense, factorized

    For long texts $W_2$ is large. Write the position of a key with two digits, $j = k_2\,u + v$. Then a score
    is the product of one for the first digit and one for the second, and $k_1 + k_2$ numbers suffice:

    $$\begin{aligned}
      B_{ij} &= A_{i,u}\;C_{i,v} \\
      u &= \lfloor j / k_2 \rfloor, \quad v = j \bmod k_2
    \end{aligned}$$

    Two narrow matrices replace $W_2$ and compute $A_i$ and $C_i$.

    :::{deviation} the paper, section 3
    It requires $k_1 k_2 = n$. Here $k_2 = \lceil\sqrt n\rceil$, and $k_1$ is as large as necessary. Scores
    past the last position are cut off, so any `max_seq` works.
    :::
    """

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout, max_seq)
        del self.targets
        columns = math.isqrt(max_seq - 1) + 1
        self.rows = self.for_each_head(-(-max_seq // columns))
        self.columns = self.for_each_head(columns)

    def scores(self, x: Tensor, keys: int) -> Tensor:
        hidden = self.hidden(x)
        rows, columns = hidden @ self.rows, hidden @ self.columns
        # The paper tiles both factors to length $n$. If both were tiled in the same way, $u$ would be
        # $j \bmod k_1$, and with $k_1 = k_2 = 8$ positions 0 and 8 would always have the same score. An outer
        # product distinguishes all positions.
        return (rows[..., :, None] * columns[..., None, :]).flatten(-2)[..., :keys]


if __name__ == "__main__":
    # ## Tiling both factors, or an outer product
    #
    # How many different scores does a row of 64 have if both factors are tiled in the same way? And if one
    # factor repeats each number, and the other repeats as a whole?
    torch.manual_seed(0)
    first, second = torch.randn(8), torch.randn(8)
    tiled = first.tile(8) * second.tile(8)
    outer = first.repeat_interleave(8) * second.tile(8)
    print(f"both tiled    {len(tiled.unique()):3d} of 64 are different")
    print(f"outer product {len(outer.unique()):3d} of 64 are different")


class RandomSynthesizer(SyntheticAttention):
    r"""
    ## Random

    $$B = R$$

    The scores do not depend on tokens. $R$ `[heads, max_seq, max_seq]` is initialized at random and then
    learned (the paper also has runs with a fixed $R$). So the layer attends to the same positions in every
    text, like a convolution as wide as the text, with a different kernel at each position and weights that
    sum to one.
    """

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout, max_seq)
        # The paper does not specify the distribution. With variance one, that of scaled dot products, some
        # keys have larger weights than others from the start, and heads differ.
        self.positions = nn.Parameter(torch.randn(heads, max_seq, max_seq))

    def scores(self, x: Tensor, keys: int) -> Tensor:
        return self.positions[None, :, keys - x.size(1) : keys, :keys]


class FactorizedRandomSynthesizer(SyntheticAttention):
    r"""
    ## Random, factorized

    $$B = R_1 R_2^\top$$

    with two narrow matrices, `[heads, max_seq, rank]`, which are queries and keys of positions instead of
    tokens. The rank is 8 in the paper and 16 in the released code.
    """

    rank: int = 8

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout, max_seq)
        # So that the sum of `rank` products has variance one.
        shape, size = (heads, max_seq, self.rank), self.rank**-0.25
        self.query_positions = nn.Parameter(torch.randn(shape) * size)
        self.key_positions = nn.Parameter(torch.randn(shape) * size)

    def scores(self, x: Tensor, keys: int) -> Tensor:
        queries = self.query_positions[:, keys - x.size(1) : keys]
        return (queries @ self.key_positions[:, :keys].mT)[None]


class SynthesizerBlock(Block):
    """
    ## The block

    {py:class}`~labml_primer.transformer.language_model.Block` that passes `max_seq` to attention of the kinds
    above. Other attention needs none.
    """

    def __init__(self, config: Config):
        super().__init__(config)
        if issubclass(config.attention, SyntheticAttention):
            self.attention = config.attention(
                config.d_model, config.heads, config.dropout, config.max_seq
            )


if __name__ == "__main__":
    # ## What do the weights depend on?
    #
    # The weights of query 5 of 10: how much does the largest change if the query's own token is replaced, if
    # token 2 is replaced, and if a token is inserted before the text? (In the last case, the weight of the
    # new token is left out, and the others are rescaled to a sum of one.) Only dot products depend on other
    # tokens, and only they do not depend on where the text begins.
    from IPython.display import display

    from labml_primer.training.table import Table
    from labml_primer.transformer.attention import attention_weights

    def weights_of(layer: MultiHeadAttention, x: Tensor) -> Tensor:
        if isinstance(layer, SyntheticAttention):
            return layer.weights(x, x.size(1))
        query, key, _ = (t.transpose(1, 2) for t in layer.project(x, x))
        return attention_weights(query, key)

    kinds: dict[str, type[MultiHeadAttention]] = {
        "dot products": MultiHeadAttention,
        "dense": DenseSynthesizer,
        "factorized dense": FactorizedDenseSynthesizer,
        "random": RandomSynthesizer,
        "factorized random": FactorizedRandomSynthesizer,
    }
    torch.manual_seed(0)
    x, another = torch.randn(1, 10, 64), torch.randn(1, 1, 64)
    own, second = x.clone(), x.clone()
    own[:, 5], second[:, 2] = another[:, 0], another[:, 0]
    rows = []
    for kind, attention in kinds.items():
        layer = attention(64, 4)
        with torch.no_grad():
            before = weights_of(layer, x)[..., 5, :]
            moved = [weights_of(layer, text)[..., 5, :] for text in (own, second)]
            shifted = weights_of(layer, torch.cat([another, x], dim=1))[..., 6, 1:]
            moved.append(shifted / shifted.sum(dim=-1, keepdim=True))
        rows.append((kind, *(f"{(m - before).abs().max():.3f}" for m in moved)))
    display(Table(("scores", "own token", "token 2", "token inserted"), rows))
    # In a whole model, the weights of a Synthesizer can depend on other tokens through the layers below, and
    # dot products can depend on positions, because positions are added to the tokens.
    #
    # ## Number of parameters
    #
    # A layer of width 512 for 512 tokens, by the formulas of Table 1 and counted in our layers, without
    # values and output, which are the same for all. The formulas are for one head; with 8 heads, the
    # parameters for positions occur 8 times.
    d, n, H, k1, k2, k = 512, 512, 8, 23, 23, 8
    formulas = {
        "dot products": 2 * d**2,
        "dense": d**2 + d * n,
        "factorized dense": d**2 + d * (k1 + k2),
        "random": H * n**2,
        "factorized random": H * 2 * n * k,
    }
    sizes = []
    for kind, attention in kinds.items():
        options = {"max_seq": n} if issubclass(attention, SyntheticAttention) else {}
        names = attention(d, H, **options).named_parameters()
        counted = sum(
            weight.numel()
            for name, weight in names
            if not name.startswith(("value", "output")) and not name.endswith("bias")
        )
        sizes.append((kind, f"{formulas[kind]:,}", f"{counted:,}"))
    display(Table(("scores", "by formula", "counted"), sizes))


if __name__ == "__main__":
    # ## Which Synthesizer did the paper on Primer use?
    #
    # Its Table 5 has perplexities on C4 after as much compute as the baseline used for 525 thousand steps and
    # for a million:
    #
    # | model | parameters | 525K | 1M |
    # |---|---|---|---|
    # | Transformer | 110M | 20.61 | 19.82 |
    # | Synthesizer | 145M | 20.35 | 19.57 |
    # | with squared ReLU | 145M | 19.55 | 18.83 |
    # | Primer-EZ | 110M | 19.83 | 19.07 |
    #
    # It reports speed-ups of 1.74 and 1.96 for the squared ReLU, but the text does not name the Synthesizer.
    # These are the sizes of all candidates in millions of parameters. The last adds $R$ to dot products.
    from dataclasses import replace

    def with_attention(config: Config, attention: type[MultiHeadAttention]) -> Config:
        synthetic = issubclass(attention, SyntheticAttention)
        block = SynthesizerBlock if synthetic else Block
        return replace(config, attention=attention, block=block)

    base = Config(
        vocab_size=32_128, d_model=768, heads=12, d_ff=3072, layers=12, max_seq=512
    )
    millions: dict[str, float] = {}
    for kind, attention in kinds.items():
        with torch.device("meta"):
            model = LanguageModel(with_attention(base, attention))
        millions[kind] = sum(p.numel() for p in model.parameters()) / 1e6
    millions["R and dot products"] = millions["dot products"] + 12 * 12 * 512**2 / 1e6
    display(
        Table(("scores", "parameters"), [(k, f"{m:.1f}") for k, m in millions.items()])
    )
    # The last is closest to 145 million, and the released configuration, `synthesizer.gin`, names it:
    # `random_plus`. So the Synthesizer in that paper does compare queries with keys.
    #
    # The random ones save the time of two projections and of the comparisons, so their steps are shorter than
    # the Transformer's ({doc}`/benchmarks/speed` has the times).


if __name__ == "__main__":
    # ## The learned weights
    #
    # Where the four heads of each of two layers attend, for the first 32 positions: a random Synthesizer
    # before and after 320 steps of training, and a factorized one after it. The random one has hardly
    # changed. In the first layer of the factorized one, all four heads have found the previous token.
    import matplotlib.pyplot as plt

    from labml_primer.training import load_corpus, train

    corpus = load_corpus()
    small = Config(
        corpus.vocab_size, d_model=64, heads=4, d_ff=256, layers=2, max_seq=64
    )
    shown = {}
    for row_name, kind, steps in (
        ("new", "random", 0),
        ("random", "random", 320),
        ("factorized", "factorized random", 320),
    ):
        torch.manual_seed(0)
        model = LanguageModel(with_attention(small, kinds[kind]))
        if steps:
            train(model, corpus, name=kind, steps=steps, seq=64)
        shown[row_name] = model
    unread = torch.empty(1, 32, 64)
    fig, axes = plt.subplots(3, 1, figsize=(7, 3.2), layout="constrained")
    for ax, (name, model) in zip(axes, shown.items(), strict=True):
        heads: list[Tensor] = []
        for number in range(2):
            looks = model.get_submodule(f"blocks.{number}.attention")
            assert isinstance(looks, SyntheticAttention)
            with torch.no_grad():
                heads += looks.weights(unread, 32, causal_mask(32, 32))[0]
        apart = [F.pad(weights, (0, 4), value=torch.nan) for weights in heads]
        ax.imshow(torch.cat(apart, dim=1), vmin=0, vmax=0.5)
        ax.set(ylabel=name, xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    plt.show()
    # A number of $R$ belongs to one pair of positions and learns from that pair alone. A number of $R_1$ or
    # $R_2$ belongs to a whole row or column, and so learns from many pairs.


if __name__ == "__main__":
    # ## In short
    #
    # - A Synthesizer replaces the scores $QK^\top$. A dense one computes them from the query's own token; in
    #   a random one they are parameters.
    # - Scores are for positions, so a text cannot be longer than `max_seq`.
    # - The one in Primer's released code is `random_plus`, which adds $R$ to dot products.
    #
    # ## Exercise
    #
    # :::{exercise} The mean of three
    # Find an $R$ with which a {py:class}`~labml_primer.compared.synthesizer.RandomSynthesizer` of one head
    # returns the mean of three values: each token's own and those of the two tokens before it. What do the
    # first two tokens get?
    # :::
    # :::{solution}
    # Zero for keys at most two positions back, and a large negative number elsewhere. The first token gets
    # its own value, and the second the mean of two, because the weights of the available keys sum to one. A
    # convolution would have averaged in zeros.
    # :::
    window = RandomSynthesizer(d_model=16, heads=1, max_seq=10)
    places = torch.arange(10)
    back = places[:, None] - places
    with torch.no_grad():
        window.positions[0] = torch.where((back >= 0) & (back <= 2), 0.0, -100.0)
        x = torch.randn(1, 10, 16)
        values = window.value(x)
        means = [values[:, max(0, t - 2) : t + 1].mean(dim=1) for t in range(10)]
        expected = window.output(torch.stack(means, dim=1))
        difference = (window(x, x, causal=True) - expected).abs().max()
    print(f"largest difference {difference:.0e}")
    assert difference < 1e-5

    # In the paper, squared ReLU and convolutions help one more kind of model, which has five times as many
    # parameters for about the same work per token: {doc}`switch`.
