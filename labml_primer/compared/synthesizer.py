r"""
# Synthesizer

Attention without a comparison: a token tells from itself, or from its place alone, where to look.

Attention compares every query with every key. Must it? Could a position not know where to look before it has
seen what is there?

The weights of {doc}`../transformer/attention` are a softmax of $QK^\top/\sqrt{d_k}$. A Synthesizer puts
another matrix of scores $B$ in its place, and leaves the rest:

$$Y = \operatorname{softmax}(B)\,XW^V$$

A *dense* Synthesizer makes row $i$ of $B$ out of token $i$. A *random* one does not look at tokens at all:
$B$ is learned as it is, one for all texts. Both can be *factorized*, that is, made of fewer numbers. With $n$
for the longest text, $n = k_1 k_2$, $k$ for the columns of $R_1$ and of $R_2$, and one head (Table 1 of the
paper):

| scores | row $i$ of $B$ | numbers | depends on |
|---|---|---|---|
| dot products | $q_i K^\top$ | $2d^2$ | all tokens |
| dense | $F(x_i)$ | $d^2 + dn$ | token $i$ |
| factorized dense | of $F_A(x_i)$, $F_B(x_i)$ | $d^2 + d(k_1 + k_2)$ | token $i$ |
| random | $R_i$ | $n^2$ | position $i$ |
| factorized random | of $R_1 R_2^\top$ | $2nk$ | position $i$ |

The paper that this book is about takes a Synthesizer to show that its squared ReLU helps other models too.

Source: {cite:t}`tay2021synthesizer`, section 3 and Table 1; the authors' released code (Mesh TensorFlow,
`transformer/attention.py`); {cite:t}`so2021primer`, section 4.2 and Table 5.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention, causal_mask
from labml_primer.transformer.generation import Past


class SyntheticAttention(MultiHeadAttention, ABC):
    r"""
    ## What all of them share

    Values, heads and the output projection are those of
    {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`. A subclass says in `scores` what
    stands for $QK^\top$.

    A key is known by its position alone, so there have to be scores for each position that may come: at most
    `max_seq`. Raises `ValueError` for more, and where `heads` does not divide `d_model`.
    """

    # A key costs one product, for the sum of values, where dot products need another for the score.
    products_a_key = 1

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout)
        # No key is compared with anything.
        del self.query, self.key
        self.max_seq = max_seq

    @abstractmethod
    def scores(self, x: Tensor, here: Tensor, there: Tensor) -> Tensor:
        """
        `[batch, heads, queries, keys]`, or one for the whole batch. `x` `[batch, queries, d_model]` asks from
        the positions `here`, and the keys are at the positions `there`.
        """

    def weights(
        self, x: Tensor, here: Tensor, there: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """The softmax of `scores`; zeros in the row of a query that may look nowhere."""
        scores = self.scores(x, here, there)
        if mask is None:
            return scores.softmax(dim=-1)
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        return weights.masked_fill(~mask, 0.0)

    def forward(
        self,
        x: Tensor,
        y: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        past: Past | None = None,
    ) -> Tensor:
        """As in {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`."""
        if mask is not None and mask.dtype != torch.bool:
            raise ValueError(f"the mask is {mask.dtype}, and must be torch.bool")
        # Of old tokens only the values are wanted. That is half of what attention keeps.
        value = self.value(y).unflatten(-1, (self.heads, self.d_k))
        start = 0 if past is None else past.length
        if past is not None:
            value = past.all(self.value, value)
        end, keys = start + x.size(1), value.size(1)
        if max(end, keys) > self.max_seq:
            raise ValueError(
                f"{max(end, keys)} tokens are more than max_seq {self.max_seq}"
            )
        # The scores of what is to come are made, and thrown away here. The weights of a row sum to one over
        # what remains.
        if causal:
            rows = causal_mask(end, keys, x.device)[start:]
            mask = rows if mask is None else mask & rows
        # Numbers to look positions up by, where a slice would do as well. But an exported program with a
        # slice in it would not serve every length.
        here = torch.arange(start, end, device=x.device)
        there = torch.arange(keys, device=x.device)
        weights = self.weights(x, here, there, mask)
        weights = F.dropout(weights, self.dropout, self.training)
        # Where all texts share the weights, this is one product for the whole batch.
        heads = torch.einsum("bhqk, bkhd -> bqhd", weights, value)
        return self.output(heads.flatten(2))


class DenseSynthesizer(SyntheticAttention):
    r"""
    ## Dense

    Two layers turn a token into a score for each position that a key can have:

    $$F(x_i) = \operatorname{ReLU}(x_i W_1 + b)\,W_2$$

    So it can say "look at the first position", and cannot say "look at the word *not*". $W_1$ is
    `[d_model, d_model]`. Each head takes its $d_k$ features of the hidden layer, and has a $W_2$ of its own,
    `[d_k, max_seq]`.

    :::{deviation} the paper, section 3, and the released code
    The paper's formula has a bias behind $W_2$ too: a preference for positions, whatever the token. The
    released code, `synthetic_attention`, has neither bias, and one $W_2$ for all heads. Table 1 counts $dn$
    numbers for it, and that is a $W_2$ for each head.
    :::
    """

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout, max_seq)
        # $W_1$ has the shape of the projection of queries, and its place.
        self.query = nn.Linear(d_model, d_model)
        self.targets = self.for_each_head(max_seq)

    def for_each_head(self, width: int) -> nn.Parameter:
        """`[heads, d_k, width]`, drawn as `nn.Linear` draws its weights."""
        bound = 1 / math.sqrt(self.d_k)
        shape = (self.heads, self.d_k, width)
        return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

    def hidden(self, x: Tensor) -> Tensor:
        """`[batch, heads, queries, d_k]`."""
        hidden = F.relu(self.query(x))
        return hidden.unflatten(-1, (self.heads, self.d_k)).transpose(1, 2)

    def scores(self, x: Tensor, here: Tensor, there: Tensor) -> Tensor:
        # Positions that no key has yet need no score.
        return self.hidden(x) @ self.targets.index_select(-1, there)


class FactorizedDenseSynthesizer(DenseSynthesizer):
    r"""
    ## Dense, factorized

    For a long text $W_2$ is large. Write the number of a position with two digits, $j = k_2\,u + v$. Now
    $k_1$ scores for the first digit and $k_2$ for the second do, and they are multiplied:

    $$\begin{aligned}
      B_{ij} &= A_{i,u}\;C_{i,v} \\
      u &= \lfloor j / k_2 \rfloor, \quad v = j \bmod k_2
    \end{aligned}$$

    with $A_i$ and $C_i$ out of two narrow matrices in the place of $W_2$.

    :::{deviation} the paper, section 3
    It asks for $k_1 k_2 = n$. Here $k_2 = \lceil\sqrt n\rceil$, and $k_1$ is as large as it needs to be. The
    places behind the last position are cut off, so any `max_seq` will do.
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

    def scores(self, x: Tensor, here: Tensor, there: Tensor) -> Tensor:
        hidden = self.hidden(x)
        rows, columns = hidden @ self.rows, hidden @ self.columns
        # The paper tiles both to length $n$. If both were tiled alike, $u$ would be $j \bmod k_1$, and with
        # $k_1 = k_2 = 8$ position 8 could not be told from position 0. An outer product tells all apart.
        return (
            (rows[..., :, None] * columns[..., None, :])
            .flatten(-2)
            .index_select(-1, there)
        )


if __name__ == "__main__":
    # ## Tiled alike, or crosswise
    #
    # How many different scores does a row of 64 have, when both factors are tiled alike, and when one of them
    # repeats each number and the other repeats the whole?
    torch.manual_seed(0)
    first, second = torch.randn(8), torch.randn(8)
    alike = first.tile(8) * second.tile(8)
    crosswise = first.repeat_interleave(8) * second.tile(8)
    print(f"alike     {len(alike.unique()):3d} of 64 are different")
    print(f"crosswise {len(crosswise.unique()):3d} of 64 are different")


class RandomSynthesizer(SyntheticAttention):
    r"""
    ## Random

    $$B = R$$

    No token is asked. $R$ is drawn and then learned, or even left as it was drawn: a habit of looking, which
    is the same for all texts. `[heads, max_seq, max_seq]`.

    It is much like a convolution as wide as the text, whose kernel is another one at each position, with
    weights that sum to one.
    """

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout, max_seq)
        # The paper leaves open how it is drawn. With variance one, as scores of dot products have it, some
        # keys weigh more than others from the start, and heads differ.
        self.positions = nn.Parameter(torch.randn(heads, max_seq, max_seq))

    def scores(self, x: Tensor, here: Tensor, there: Tensor) -> Tensor:
        rows = self.positions.index_select(1, here)
        return rows.index_select(2, there)[None]


class FactorizedRandomSynthesizer(SyntheticAttention):
    r"""
    ## Random, factorized

    $$B = R_1 R_2^\top$$

    with two narrow matrices, `[heads, max_seq, rank]`. It looks like queries and keys, and they are: of
    positions instead of tokens. The paper's rank is 8, the released code's 16.
    """

    rank: int = 8

    def __init__(
        self, d_model: int, heads: int, dropout: float = 0.0, max_seq: int = 128
    ):
        super().__init__(d_model, heads, dropout, max_seq)
        # The sum of `rank` products, with variance one.
        shape, size = (heads, max_seq, self.rank), self.rank**-0.25
        self.query_positions = nn.Parameter(torch.randn(shape) * size)
        self.key_positions = nn.Parameter(torch.randn(shape) * size)

    def scores(self, x: Tensor, here: Tensor, there: Tensor) -> Tensor:
        queries = self.query_positions.index_select(1, here)
        keys = self.key_positions.index_select(1, there)
        return (queries @ keys.mT)[None]


if __name__ == "__main__":
    # ## What does a weight depend on?
    #
    # Query 5 of 10 gives out weights. How far does the one move that moves most, when the query's own token
    # is another, when token 2 is, and when one more token stands before the text? The weight of that one is
    # left out, and the other ten are scaled to sum to one again.
    from labml_primer.transformer.attention import attention_weights

    def weights_of(layer: MultiHeadAttention, x: Tensor) -> Tensor:
        if isinstance(layer, SyntheticAttention):
            places = torch.arange(x.size(1))
            return layer.weights(x, places, places)
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
    print(f"{'':18s}{'own token':>12s}{'token 2':>12s}{'one before':>12s}")
    for kind, attention in kinds.items():
        layer = attention(64, 4)
        with torch.no_grad():
            before = weights_of(layer, x)[..., 5, :]
            moved = [weights_of(layer, text)[..., 5, :] for text in (own, second)]
            shifted = weights_of(layer, torch.cat([another, x], dim=1))[..., 6, 1:]
            moved.append(shifted / shifted.sum(dim=-1, keepdim=True))
        print(
            f"{kind:18s}" + "".join(f"{(m - before).abs().max():12.3f}" for m in moved)
        )
    # Only dot products know what stands elsewhere, and only they do not mind where the text begins. In a
    # model tokens carry their position with them, and then they can mind.
    #
    # ## Counted
    #
    # A layer of the paper's size, 512 wide, for 512 tokens. The formulas of Table 1 are for one head, and
    # leave out values and output, which are the same for all. With 8 heads, what belongs to positions is
    # there 8 times.
    d, n, H, k1, k2, k = 512, 512, 8, 23, 23, 8
    formulas = {
        "dot products": 2 * d**2,
        "dense": d**2 + d * n,
        "factorized dense": d**2 + d * (k1 + k2),
        "random": H * n**2,
        "factorized random": H * 2 * n * k,
    }
    print(f"{'':18s}{'by formula':>12s}{'counted':>12s}")
    for kind, attention in kinds.items():
        options = {"max_seq": n} if issubclass(attention, SyntheticAttention) else {}
        names = attention(d, H, **options).named_parameters()
        counted = sum(
            weight.numel()
            for name, weight in names
            if not name.startswith(("value", "output")) and not name.endswith("bias")
        )
        print(f"{kind:18s}{formulas[kind]:12,}{counted:12,}")


if __name__ == "__main__":
    # ## A race
    #
    # Small models on the plays, and the dense one with the squared ReLU of {doc}`../primer/primer_ez`.
    from dataclasses import replace
    from functools import partial

    from labml_primer.primer.primer_ez import SquaredReLU, speedup_factor
    from labml_primer.training import load_corpus, median_seconds, train
    from labml_primer.transformer.model import Config, LanguageModel

    corpus = load_corpus()

    vanilla_config = Config(
        corpus.vocab_size, d_model=64, heads=4, d_ff=256, layers=2, max_seq=64
    )
    entrants = {
        "Transformer" if kind == "dot products" else kind: replace(
            vanilla_config, attention=attention
        )
        for kind, attention in kinds.items()
    }
    entrants["dense, squared ReLU"] = replace(entrants["dense"], activation=SquaredReLU)
    models, histories = {}, {}
    for kind, config in entrants.items():
        torch.manual_seed(0)
        models[kind] = LanguageModel(config)
        histories[kind] = train(models[kind], corpus, name=kind, steps=320, seq=64)

    # ### What each costs, and what it brings
    #
    # Parameters and multiplications a token, in thousands; the time of a step there and back over the
    # Transformer's; the loss at the end; how many times as few steps were needed for the Transformer's last
    # loss.
    def there_and_back(model: LanguageModel, tokens: Tensor) -> None:
        model(tokens).logsumexp(dim=-1).sum().backward()

    tokens = corpus.train[: 16 * 64].view(16, 64)
    taken = median_seconds(
        {
            kind: partial(there_and_back, model, tokens)
            for kind, model in models.items()
        },
        rounds=7,
    )
    vanilla = histories["Transformer"]
    print(f"{'':22s}{'params':>7s}{'MACs':>7s}{'time':>6s}{'loss':>7s}{'x steps':>9s}")
    for kind, history in histories.items():
        costs = models[kind].costs().values()
        size, products = (sum(column) / 1e3 for column in zip(*costs, strict=True))
        factor = speedup_factor(
            vanilla.steps,
            vanilla.validation_loss,
            history.steps,
            history.validation_loss,
        )
        print(
            f"{kind:22s}{size:6.0f}k{products:6.0f}k{taken[kind] / taken['Transformer']:6.2f}"
            f"{history.validation_loss[-1]:7.3f}{factor:9.2f}"
        )
    # `nan` is for a model that did not get to the Transformer's last loss. Of the four that compare nothing,
    # two got there and two came near. At first the letter before, and the one before that, say most about the
    # next, and to look one or two places back no token need be asked. It is one seed and few steps: small
    # differences are no finding. Where scores are made of positions alone, a step is shorter.
    #
    # The paper of Primer has a larger run: Table 5, on C4, perplexities after as much computing as its
    # baseline takes for 525 thousand steps and for a million.
    #
    # | model | parameters | 525K | 1M |
    # |---|---|---|---|
    # | Transformer | 110M | 20.61 | 19.82 |
    # | Synthesizer | 145M | 20.35 | 19.57 |
    # | with squared ReLU | 145M | 19.55 | 18.83 |
    # | Primer-EZ | 110M | 19.83 | 19.07 |
    #
    # It counts a speed-up by 1.74 and 1.96 for the squared ReLU. Which Synthesizer was it? The paper does not
    # say. Here is what each would have, and one more, whose $R$ is added to dot products:
    sizes: dict[str, float] = {}
    for kind, attention in kinds.items():
        config = Config(
            vocab_size=32_128,
            d_model=768,
            heads=12,
            d_ff=3072,
            layers=12,
            max_seq=512,
            attention=attention,
        )
        with torch.device("meta"):
            sizes[kind] = sum(p.numel() for p in LanguageModel(config).parameters())
    sizes["R and dot products"] = sizes["dot products"] + 12 * 12 * 512**2
    for kind, size in sizes.items():
        print(f"{kind:18s}{size / 1e6:7.1f} million")
    # The last is nearest to 145 million, and the released configuration, `synthesizer.gin`, names it:
    # `random_plus`. So what the paper ran compared tokens after all.


if __name__ == "__main__":
    # ## What they have learned
    #
    # Where the four heads of each layer look, for the first 32 positions: the random one as it was drawn, the
    # same after the race, and the factorized one after the race.
    import matplotlib.pyplot as plt

    torch.manual_seed(0)
    shown = {
        "drawn": LanguageModel(entrants["random"]),
        "random": models["random"],
        "factorized": models["factorized random"],
    }
    first, nothing = torch.arange(32), torch.empty(1, 32, 64)
    fig, axes = plt.subplots(3, 8, figsize=(7, 3.2), layout="constrained")
    for row, (name, model) in zip(axes, shown.items(), strict=True):
        row[0].set_ylabel(name)
        for number, ax in enumerate(row):
            looks = model.get_submodule(f"blocks.{number // 4}.attention")
            assert isinstance(looks, SyntheticAttention)
            with torch.no_grad():
                weights = looks.weights(nothing, first, first, causal_mask(32, 32))
            ax.imshow(weights[0, number % 4], vmin=0, vmax=0.5)
            ax.set(xticks=[], yticks=[])
    plt.show()
    # In so few steps the random one is hardly changed: a number of $R$ belongs to one pair of positions, and
    # learns from that pair alone. A number of $R_1$ or $R_2$ serves a whole row or column. With far fewer of
    # them, all four heads of the factorized one's first layer have found the token before.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} The mean of three
    # Write $R$ such that a {py:class}`~labml_primer.compared.synthesizer.RandomSynthesizer` of one head gives
    # each token the mean of three values: its own and those of the two tokens before it. What do the first
    # two tokens get?
    # :::
    # :::{solution}
    # Zero where the key stands at most two places back, and far below zero elsewhere. The first token gets
    # its own value, and the second the mean of two: weights sum to one over the keys that there are. A
    # convolution would have counted zeros in.
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

    # In the paper squared ReLU and convolutions help one more kind of model, much larger and with hardly more
    # products a token: {doc}`switch`.
