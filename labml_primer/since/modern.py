r"""
# A modern baseline

Five changes that most open language models since 2023 have in common: RMSNorm, rotary positions, no biases,
SwiGLU, and grouped-query attention.

A new architecture has to beat stronger models than the Transformer of 2017.

In short: the Llama models {cite:p}`touvron2023llama,touvron2023llama2` made one set of parts common. It is
the {term}`Transformer++` of the paper with three more changes:

| part | in the first Transformer | in a modern baseline |
|---|---|---|
| norm | {term}`layer normalization` | {py:class}`RMSNorm <labml_primer.transformer.normalization.RMSNorm>` |
| positions | added to the input | {doc}`rotary <rotary>`, in every layer |
| biases | in every linear layer | none |
| feed-forward layer | two matrices and the {term}`ReLU` | {term}`SwiGLU` |
| keys and values | one for each head | one for each group of heads |

The paper compares Primer with the Transformer of 2017 and with two improved versions
({doc}`../primer/baselines`), but not with this one. Together the five changes need fewer parameters, and a
fraction of the memory when a model generates text. Primer-EZ's two changes fit into this block as well: the
squared ReLU instead of SwiGLU, and the convolutions after the projections, before the rotation.

:::{picture} modern
:::

Source: {cite:t}`touvron2023llama` and {cite:t}`touvron2023llama2`, as configured in the Transformers library
(`LlamaConfig`); {cite:t}`ainslie2023gqa`; {cite:t}`zhang2019root`; {cite:t}`shazeer2020glu`;
{cite:t}`su2021roformer`.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution, SquaredReLU
from labml_primer.since.rotary import rotary
from labml_primer.transformer.attention import MultiHeadAttention, causal_mask
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.language_model import Block, Config


class GroupedQueryAttention(MultiHeadAttention):
    r"""
    ## Grouped-query attention

    All heads keep queries of their own, but a group of heads shares one head of keys and values. With $H$
    heads and $G$ = `groups`, the {term}`KV cache` holds $2\,G\,d_k$ numbers per token and layer instead of
    $2\,H\,d_k$, and the projections to keys and values are $G/H$ times as large. With `groups` = 1 this is
    {term}`multi-query attention`, and with as many groups as heads it is
    {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`. A subclass may change `groups`. Raises
    `ValueError` if `groups` does not divide `heads`.

    Source: {cite:t}`ainslie2023gqa`.

    :::{variant} GroupedQueryAttention
    :of: labml_primer.transformer.attention.MultiHeadAttention
    :::
    """

    groups: int = 2

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        if heads % self.groups:
            raise ValueError(f"heads {heads} is not a multiple of groups {self.groups}")
        self.key = nn.Linear(d_model, self.groups * self.d_k)
        self.value = nn.Linear(d_model, self.groups * self.d_k)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries `[batch, seq, heads, d_k]`, and keys and values `[batch, seq, groups, d_k]`."""
        return (
            self.query(x).unflatten(-1, (self.heads, self.d_k)),
            self.key(y).unflatten(-1, (self.groups, self.d_k)),
            self.value(y).unflatten(-1, (self.groups, self.d_k)),
        )

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """As in {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`."""
        query, key, value = (t.transpose(1, 2) for t in self.project(x, y))
        if causal and (mask is not None or query.size(2) != key.size(2)):
            earlier = causal_mask(query.size(2), key.size(2), x.device)
            mask = earlier if mask is None else mask & earlier
        dropout = self.dropout if self.training else 0.0
        # Each head of keys and values is for a group of queries.
        heads = F.scaled_dot_product_attention(
            query, key, value, mask, dropout, causal and mask is None, enable_gqa=True
        )
        output: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return output


if __name__ == "__main__":
    # ## The same as copied keys and values
    #
    # Copy the rows of the small projections once for each head of their group. Then the attention of
    # {doc}`../transformer/attention` gives the same result. So grouped-query attention is attention in which
    # some weights are equal.
    torch.manual_seed(0)
    grouped = GroupedQueryAttention(d_model=256, heads=8)
    copied = MultiHeadAttention(d_model=256, heads=8)
    state = grouped.state_dict()
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        rows_of_groups = state[name].unflatten(0, (grouped.groups, grouped.d_k))
        state[name] = rows_of_groups.repeat_interleave(4, dim=0).flatten(0, 1)
    copied.load_state_dict(state)
    x = torch.randn(2, 20, 256)
    difference = (grouped(x, x, causal=True) - copied(x, x, causal=True)).abs().max()
    print(f"largest difference {difference:.1e}")


class GroupedMultiDConvHeadAttention(GroupedQueryAttention):
    """
    ## MDHA with groups

    The convolutions of {py:class}`~labml_primer.primer.primer_ez.MultiDConvHeadAttention`, with a kernel for
    each channel of each head of queries, and of each group of keys and values.

    :::{variant} GroupedMultiDConvHeadAttention
    :of: GroupedQueryAttention
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = SpatialDepthWiseConvolution(heads, self.d_k)
        self.key_conv = SpatialDepthWiseConvolution(self.groups, self.d_k)
        self.value_conv = SpatialDepthWiseConvolution(self.groups, self.d_k)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        return self.query_conv(query), self.key_conv(key), self.value_conv(value)


class BlockWithoutBiases(Block):
    """
    ## No biases

    Remove the biases of all linear layers in a block. Llama has none (`attention_bias` and `mlp_bias` are
    false in its configuration). Biases are a tiny part of the parameters of a large model. Without rotary
    positions, one of them never does anything: the bias of the keys ({doc}`../transformer/attention`,
    exercise). With them, it is rotated as the keys are, so it prefers some distances.

    :::{variant} BlockWithoutBiases
    :of: labml_primer.transformer.language_model.Block
    :::
    """

    def __init__(self, config: Config):
        super().__init__(config)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                layer.register_parameter("bias", None)


def modern(config: Config) -> Config:
    r"""
    ## The baseline

    Return `config` with the parts of a modern baseline. Its sizes stay. SwiGLU is two thirds as wide as
    `d_ff`, so that it has as many parameters as a plain feed-forward layer
    ({py:class}`~labml_primer.primer.baselines.GatedFeedForward`).

    :::{deviation} Llama
    Its embedding and its output layer have separate matrices. Here they share one, as in all language models
    of this book. Its rotation pairs other features ({ref}`rotary`), which makes no difference to a new model.
    Its RMSNorm has $\varepsilon = 10^{-6}$; here it is that of PyTorch, $2^{-23}$ in float32.
    :::
    """
    parts = replace(
        config,
        attention=GroupedQueryAttention,
        activation=nn.SiLU,
        feed_forward=GatedFeedForward,
        norm=nn.RMSNorm,
        block=BlockWithoutBiases,
    )
    return rotary(parts)


def modern_primer_ez(config: Config) -> Config:
    """
    ## With Primer-EZ's two changes

    The squared ReLU replaces SwiGLU, in a plain feed-forward layer of full width. The convolutions come after
    the projections and before the rotation, so that scores still depend on distances only.
    """
    parts = replace(
        modern(config),
        attention=GroupedMultiDConvHeadAttention,
        activation=SquaredReLU,
        feed_forward=PositionwiseFeedForward,
    )
    return rotary(parts)


if __name__ == "__main__":
    # ## The cost of each change
    #
    # A Transformer of the size of the paper's Table 4, and each change in it alone. The columns are millions
    # of parameters, millions of {term}`multiply-adds` per token, and the numbers that the KV cache of all
    # layers stores for each token.
    from IPython.display import display

    from labml_primer.training.costs import costs
    from labml_primer.training.table import Table
    from labml_primer.transformer.language_model import LanguageModel

    transformer = Config(
        vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=512
    )
    configs = {
        "Transformer": transformer,
        "RMSNorm": replace(transformer, norm=nn.RMSNorm),
        "rotary positions": rotary(transformer),
        "no biases": replace(transformer, block=BlockWithoutBiases),
        "SwiGLU": replace(
            transformer, activation=nn.SiLU, feed_forward=GatedFeedForward
        ),
        "squared ReLU": replace(transformer, activation=SquaredReLU),
        "grouped queries": replace(transformer, attention=GroupedQueryAttention),
        "all, with SwiGLU": modern(transformer),
        "all, with Primer-EZ's changes": modern_primer_ez(transformer),
    }
    rows = []
    for name, config in configs.items():
        with torch.device("meta"):
            parts = costs(LanguageModel(config))
        parameters, products = (sum(each) for each in zip(*parts.values(), strict=True))
        groups = getattr(config.attention, "groups", config.heads)
        cached = config.layers * 2 * groups * config.d_model // config.heads
        rows.append(
            [name, f"{parameters / 1e6:.2f}", f"{products / 1e6:.2f}", f"{cached:,}"]
        )
    columns = {
        "change": "",
        "parameters": "millions",
        "multiply-adds": "millions per token",
        "cached": "numbers per token",
    }
    display(Table(columns, rows))
    # Grouped queries save most: their keys and values are a quarter as wide, with 2 groups of 4 heads. The
    # saved parameters are often spent on a wider feed-forward layer. RMSNorm and the missing biases change
    # little, and rotary positions save the table of positions. Normalization and rotation are operations on
    # single features, which this count leaves out.


if __name__ == "__main__":
    # ## Half a minute of training
    #
    # Three small models read the same characters of Shakespeare in the same order. The loss is on plays that
    # were not in training. The thin line is the loss of counting the same characters
    # ({doc}`../training/counting`), which no model reaches here. This is one short run of each, so it shows
    # that the models work, not which is better. {doc}`/experiments/chapters/positions` has recorded runs of
    # this baseline on subwords, with several seeds.
    import matplotlib.pyplot as plt

    from labml_primer.training import load_corpus, train
    from labml_primer.training.counted import counted_loss, draw_counted

    corpus = load_corpus()
    small = Config(corpus.vocab_size, d_model=64, d_ff=256, layers=2, max_seq=64)
    models = {
        "Transformer": (small, "C5"),
        "modern": (modern(small), "C2"),
        "modern, Primer-EZ": (modern_primer_ez(small), "C0"),
    }
    histories = {}
    for name, (config, _) in models.items():
        torch.manual_seed(0)
        histories[name] = train(
            LanguageModel(config),
            corpus,
            name=name,
            steps=400,
            batch=8,
            seq=64,
            evaluations=10,
        )
    order, counted = counted_loss(corpus, steps=400, batch=8, seq=64)
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    draw_counted(ax, order, counted)
    for name, history in histories.items():
        ax.plot(
            history.steps, history.validation_loss, color=models[name][1], label=name
        )
    ax.set(xlabel="step", ylabel="loss, nats per character")
    ax.legend(frameon=False)
    plt.show()


if __name__ == "__main__":
    # ## In short
    #
    # - Most open models since Llama share RMSNorm, rotary positions, linear layers without biases, a gated
    #   feed-forward layer, and keys and values shared by groups of heads.
    # - Each is a small change of one part. Together they save parameters and most of the KV cache.
    # - The squared ReLU replaces SwiGLU with one matrix fewer, and MDHA's convolutions come before the
    #   rotation.
    #
    # ## Exercise
    #
    # :::{exercise} How large is the cache?
    # A model has 32 layers of width 4096 with 32 heads, and 8 groups of keys and values. How much memory does
    # its KV cache need for a text of 8,192 tokens, with two bytes per number? And without groups?
    # :::
    # :::{solution}
    # One GiB: 32 layers, keys and values, 8 groups, $d_k = 128$, 8,192 tokens, 2 bytes. Without groups it
    # would be 4 GiB, for a single text.
    # :::
    d_k = 4096 // 32
    sizes = {groups: 32 * 2 * groups * d_k * 8192 * 2 for groups in (8, 32)}
    print(", ".join(f"{groups} groups: {n / 2**30} GiB" for groups, n in sizes.items()))
    assert sizes == {8: 2**30, 32: 2**32}

    # The convolution came back in many models, under other names: {doc}`short_convolutions`.
