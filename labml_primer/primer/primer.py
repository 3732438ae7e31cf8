r"""
# Primer in full

Everything that the search changed in the Transformer, one change at a time: its formula, what the paper says
about it, and what it computes.

{doc}`primer_ez` took two of Primer's changes. What are the others, and why are they left out?

*Primer* is short for *PRIMitives searched transformER*: the search did not combine finished layers, but
primitive operations such as additions, matrix products and squares. So its result is a program, a list of
instructions.

In short: there are nine changes. In the paper's ablations three always help (appendix A.7): the squared ReLU,
the convolution, and the wider feed-forward layer, which section 3 recommends for small models only. Primer-EZ
is the Transformer with the first two. Of the rest, some hurt, some do nothing, and some help at one size or
length only (section 3):

| change | the paper on it | in "Primer" |
|---|---|---|
| squared ReLU | always helps | yes |
| convolution, MDHA | always helps | yes |
| queries computed from keys | "generally hurts" | yes |
| norm before attention, after feed-forward | some cases | yes |
| norm with $x(x - \mu)$ | "not always effective" | yes |
| $d_\text{ff} = 12\,d_\text{model}$ | small models only | no |
| gate after softmax | fixed length only | no |
| factor, tanh, second residual | no difference | no |
| no bias after feed-forward | not mentioned (Figure 15) | no |

The model that the paper calls *Primer* in its experiments has the first five; the program that the search
found has all nine. Here each change except the last is a class, an attribute or a size in a
{py:class}`~labml_primer.transformer.language_model.Config`, so Primer without one of them is a configuration.

:::{picture} primer
:::

Source: {cite:t}`so2021primer`, section 3, appendices A.5 to A.7, Figures 13 to 26; the authors' released code
(google-research, `primer/t5_models.py`).
"""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
    SquaredReLU,
)
from labml_primer.transformer.attention import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
)
from labml_primer.transformer.language_model import Block, Config, LanguageModel
from labml_primer.transformer.normalization import LayerNorm, check_features


class SeparableConvolutionAttention(MultiHeadAttention):
    r"""
    ## The other order: a separable convolution

    This layer is not a part of Primer; the paper compares MDHA with it. Should the convolution come before
    the projection, or after it? A {term}`separable convolution` is a
    {term}`depthwise convolution` first and mixes the channels afterwards. With $\ast$ for the former:

    $$\begin{aligned}
      \text{separable} &: & q &= (w \ast x)\,W \\
      \text{MDHA} &: & q &= w \ast (x\,W)
    \end{aligned}$$

    Both have the same number of parameters and {term}`multiply-adds`. But before the projection, a kernel
    belongs to a feature of the {term}`residual stream`, and all heads get the same mixture; after it, a
    kernel belongs to a channel of one head. In the paper's Table 4 the separable order has a
    {term}`speed-up factor` of 1.54, and {term}`MDHA` one of 1.76.

    The paper says no more of this model than its name, "Transformer+Sep Conv". One kernel per feature, for
    each of queries, keys and values, fits its number of parameters and its steps per second.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = SpatialDepthWiseConvolution(1, d_model)
        self.key_conv = SpatialDepthWiseConvolution(1, d_model)
        self.value_conv = SpatialDepthWiseConvolution(1, d_model)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        # To the convolution, the features of a position are one head of width `d_model`.
        x, y = x.unsqueeze(2), y.unsqueeze(2)
        split = (self.heads, self.d_k)
        return (
            self.query(self.query_conv(x).squeeze(2)).unflatten(-1, split),
            self.key(self.key_conv(y).squeeze(2)).unflatten(-1, split),
            self.value(self.value_conv(y).squeeze(2)).unflatten(-1, split),
        )


if __name__ == "__main__":
    # ## When does the order matter?
    #
    # If all channels have the same kernel, and the projections have no bias, the two orders compute the same,
    # because a matrix over channels and a sum over positions commute. With different kernels the results
    # differ.
    torch.manual_seed(0)
    separable = SeparableConvolutionAttention(d_model=64, heads=4)
    after = MultiDConvHeadAttention(d_model=64, heads=4)
    weights, x = after.state_dict(), torch.randn(2, 20, 64)
    for kernels in ("equal kernels", "random kernels"):
        for name, weight in weights.items():
            if name.endswith("bias"):
                weight.zero_()
            if "conv" in name and kernels.startswith("random"):
                weight.normal_()
        # The kernels `[kernel_size, heads, d_k]` of MDHA become `[kernel_size, 1, d_model]`.
        separable.load_state_dict(
            {n: w.view(3, 1, 64) if "conv" in n else w for n, w in weights.items()}
        )
        difference = (separable(x, x) - after(x, x)).abs().max()
        print(f"{kernels:15s} largest difference {difference:.1e}")


class SharedQueryAttention(MultiHeadAttention):
    r"""
    ## Queries computed from keys

    The projection of queries reads the keys instead of the residual stream:

    $$Q = K\,W$$

    with a trained $W$ of shape `[d_model, d_model]`. Alone this changes little: the queries are $x\,W^K W$,
    and $W^K W$ can be any matrix if the key matrix $W^K$ is invertible. It matters together with the
    convolution of {py:class}`~labml_primer.primer.primer.PrimerAttention`.

    For {term}`self-attention` only: raises `ValueError` if `y` is not `x`.

    :::{deviation} the paper, section 3 against Figure 25
    The text has one $W$ for all heads, and so does the released code. In the
    searched program (Figure 25), instruction 20 maps 48 numbers to 48: each head has a $W$ of its own, and
    all of them together are smaller by a factor of `heads`. The parameter counts near the end of this chapter
    suggest which runs had which. Here $W$ is $d_\text{model} \times d_\text{model}$.
    :::
    """

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if x is not y:
            raise ValueError("queries come from keys, so x and y must be the same")
        split = (self.heads, self.d_k)
        key, value = (
            self.key(y).unflatten(-1, split),
            self.value(y).unflatten(-1, split),
        )
        key, value = self.convolve(key, value)
        return self.mix(key), key, value

    def convolve(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values unchanged; the next class convolves them."""
        return key, value

    def mix(self, key: Tensor) -> Tensor:
        """Return $K W$, in the shape of `key`, `[batch, seq, heads, d_k]`."""
        query: Tensor = self.query(key.flatten(2))
        return query.view_as(key)


class PrimerAttention(SharedQueryAttention):
    r"""
    ## Primer's attention

    Keys and values are convolved, and queries are computed from the convolved keys. So two convolutions
    suffice. But a query sees earlier tokens only as the key's kernel mixes them, while in MDHA it has a
    projection and a kernel of its own.

    The paper finds that this sharing "generally hurts" (section 3), and Primer-EZ leaves it out.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.key_conv = SpatialDepthWiseConvolution(heads, self.d_k)
        self.value_conv = SpatialDepthWiseConvolution(heads, self.d_k)

    def convolve(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return self.key_conv(key), self.value_conv(value)


class PrimerNorm(LayerNorm):
    r"""
    ## Primer's norm

    {py:class}`~labml_primer.transformer.normalization.LayerNorm` divides by the root of the mean of
    $(x - \mu)^2$. The search replaced one of the two factors by $x$:

    $$y = \frac{x - \mu}{\sqrt{\big|\tfrac1d \sum_i x_i (x_i - \mu)\big| + \varepsilon}}
          \odot \gamma + \beta$$

    with the gain $\gamma$ and the bias $\beta$ of layer norm. Maps `[..., d_model]` to the same shape.

    :::{deviation} the paper, section 3
    It calls this a modified layer norm. Mathematically it is the same one: because
    $\sum_i (x_i - \mu) = 0$,

    $$\sum_i x_i(x_i - \mu) = \sum_i (x_i - \mu)^2$$

    so the two differ only by rounding, and by $\varepsilon$, which is smaller here than in `nn.LayerNorm`.
    :::
    """

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__(d_model, eps)

    def forward(self, x: Tensor) -> Tensor:
        check_features(x, self.weight)
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centered = wide - wide.mean(dim=-1, keepdim=True)
        # A mean of squares cannot be negative, but this mean can be, by rounding. So the searched program
        # takes the root of its absolute value, with the instruction ABS_SQUARE_ROOT.
        variance = (wide * centered).mean(dim=-1, keepdim=True).abs()
        # :::{deviation} the paper, Figures 24 and 25
        # Neither program, the Transformer's or Primer's, has an $\varepsilon$: instructions 4 to 7 multiply,
        # take the mean, take the root, and divide. With it, equal features do not cause a division by zero.
        # :::
        normalized = centered * torch.rsqrt(variance + self.eps)
        return (normalized * self.weight + self.bias).to(x.dtype)


if __name__ == "__main__":
    # ## How large is the rounding?
    #
    # The largest difference between the two norms, in outputs and in gradients, for features whose mean is 0,
    # 1 or 10. In double and single precision it is negligible. In `bfloat16` it is not: with a mean of 10 it
    # comes close to 1, the root mean square of the outputs. (Here, mean and variance are computed in
    # `bfloat16` too, as may have happened on the paper's hardware. Our class uses at least `float32`.)
    from IPython.display import display

    from labml_primer.training.table import Table

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        centered = x - x.mean(dim=-1, keepdim=True)
        usual, primer = (
            centered
            * torch.rsqrt((factor * centered).mean(-1, keepdim=True).abs() + 1e-6)
            for factor in (centered, x)
        )
        return usual, primer

    def gradient(y: Tensor, x: Tensor, upstream: Tensor) -> Tensor:
        return torch.autograd.grad((y * upstream).sum(), x, retain_graph=True)[0]

    torch.manual_seed(0)
    drawn = torch.randn(256, 512, dtype=torch.float64)
    direction = torch.randn_like(drawn)
    rows = []
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        for mean in (0.0, 1.0, 10.0):
            x = (drawn + mean).to(dtype).requires_grad_()
            usual, primer = both(x)
            first, second = (
                gradient(y, x, direction.to(dtype)) for y in (usual, primer)
            )
            differences = ((usual - primer).abs().max(), (first - second).abs().max())
            rows.append((str(dtype)[6:], mean, *(f"{d:.0e}" for d in differences)))
    display(Table(("precision", "mean", "outputs differ by", "gradients by"), rows))
    # So if this change ever made a difference, it was by rounding or by chance. That fits the paper's finding
    # that it is "not always effective".


class PrimerBlock(Block):
    r"""
    ## Pre-norm and post-norm

    Attention has its norm before it, as in {doc}`../transformer/encoder` ({term}`pre-norm`). The feed-forward
    layer has its norm after it, but inside the {term}`residual connection`:

    $$
    \begin{aligned}
    Y &= X + \operatorname{MultiHead}(\operatorname{LN}(X), \operatorname{LN}(X)) \\
    Z &= Y + \operatorname{LN}(\operatorname{FFN}(Y))
    \end{aligned}
    $$

    In the {term}`post-norm` Transformer of 2017 the norm is applied to the residual stream itself. Here it is
    not, and each layer still only adds to the stream. The parameters are those of
    {py:class}`~labml_primer.transformer.language_model.Block`.

    Source: {cite:t}`so2021primer`, section 3 and Figure 13, where the norm and the feed-forward layer switch
    places.
    """

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y, causal=True))
        # The feed-forward layer reads the stream without a norm. With the squared ReLU, twice the input gives
        # about four times the output, and the norm after it restores a fixed size.
        x = x + self.dropout(self.feed_forward_norm(self.feed_forward(x)))
        return x


if __name__ == "__main__":
    # ## The size of the residual stream
    #
    # The size (root mean square) of the residual stream after $n$ untrained blocks. In Primer's block the
    # feed-forward layer adds a vector of size 1, because its norm comes last. So the stream grows as
    # $\sqrt{1 + n}$, and a little more because of attention. In the usual block it grows much more slowly.
    torch.manual_seed(0)
    wide, depths = Config(vocab_size=1, activation=SquaredReLU), (0, 1, 2, 4, 8, 12)
    sizes = []
    for block_type in (Block, PrimerBlock):
        stream = [torch.randn(4, 32, 128)]
        for _ in range(12):
            block = block_type(wide)
            with torch.no_grad():
                stream.append(block(stream[-1]))
        rms = [stream[n].square().mean().sqrt() for n in depths]
        sizes.append((block_type.__name__, *(f"{size:.2f}" for size in rms)))
    display(Table(("blocks", *map(str, depths)), sizes))


class SearchedAttention(PrimerAttention):
    r"""
    ## Attention as the search left it

    Instructions 10 to 34 of the paper's Figure 25. Besides queries from keys and the convolutions, it has
    four changes. A subclass turns one of the first three off by setting its attribute:

    $$\begin{aligned}
      A &= \tanh\operatorname{softmax}(QK^\top) \odot s \\
      K &\leftarrow -1.12\,K, \quad V \leftarrow -1.12\,V
    \end{aligned}$$

    * `factor`: the number that keys and values are multiplied by. $W$ and the output projection can undo it.
    * `tanh`: apply tanh to the attention weights. It hardly changes small weights and reduces 1 to 0.76.
    * `length`: the number of scalars in the gate $s$ of a head, one for each *position* of a key, the same
      for all queries and texts. With `None` there is no gate.
    * There is no division by $\sqrt{d_k}$. The $W$ of each head can learn it.

    Raises `ValueError` for more than `length` tokens, because the gate has no scalars for them. The paper
    leaves the gate out for this reason; it improved perplexity for sequences of fixed length (section 3).

    :::{deviation} the paper, Table 2
    There SCALE is $x + \text{variable}$ and SHIFT is $x \cdot \text{variable}$. The two must have been
    exchanged: in Figure 24 a layer norm ends with SCALE and SHIFT, and the bias of a linear layer is a SHIFT.
    So here instruction 31, SCALE, is a product.
    :::
    """

    factor: float = -1.12
    tanh: bool = True
    length: int | None = 64

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        # Figure 25 executes instructions 10 to 33 once per head (`BRANCH_8`), so each head has its own $W$,
        # `[heads, d_k, d_k]`, and its own gate, `[heads, length]`.
        # {py:class}`~labml_primer.primer.primer.SharedQueryAttention` has one $W$ for all heads.
        del self.query
        bound = 1 / math.sqrt(self.d_k)
        self.mixing = nn.Parameter(
            torch.empty(heads, self.d_k, self.d_k).uniform_(-bound, bound)
        )
        self.gate = (
            None
            if self.length is None
            else nn.Parameter(torch.ones(heads, self.length))
        )

    def convolve(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        key, value = super().convolve(key, value)
        return self.factor * key, self.factor * value

    def mix(self, key: Tensor) -> Tensor:
        """Return $K W$, head by head."""
        return torch.einsum("bshc, hcd -> bshd", key, self.mixing)

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """As in {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`."""
        query, key, value = (t.transpose(1, 2) for t in self.project(x, y))
        queries, keys = query.size(2), key.size(2)
        if causal:
            earlier = causal_mask(queries, keys, x.device)
            mask = earlier if mask is None else mask & earlier
        # The weights themselves are changed, so PyTorch's fused attention cannot be used. The factor
        # $\sqrt{d_k}$ undoes the division in `attention_weights`.
        weights = attention_weights(query * math.sqrt(self.d_k), key, mask)
        if self.tanh:
            weights = weights.tanh()
        if self.gate is not None:
            if keys > self.gate.size(1):
                raise ValueError(
                    f"{keys} tokens are more than the gate's {self.length}"
                )
            weights = weights * self.gate[:, None, :keys]
        weights = F.dropout(weights, self.dropout, self.training)
        output: Tensor = self.output((weights @ value).transpose(1, 2).flatten(2))
        return output


class SearchedActivation(nn.Module):
    r"""
    ## The searched program's activation

    $$\max(x, -0.57)^2$$

    :::{deviation} the paper, Figure 22 against Figure 25
    The text and Figure 22 have $\max(x, 0)^2$. In the list of instructions, Figure 25, the MAX before the
    SQUARE has the constant $-0.57$. A program has a bank of two constants (appendix A.2), and here they are
    $-1.12$ and $-0.57$; there is no zero. If the list is right, the search found this function instead. It is
    0 at zero, rises to $0.57^2 \approx 0.32$ on the left, and is constant from there on.
    :::
    """

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(min=-0.57).square()


class SearchedBlock(PrimerBlock):
    r"""
    ## Each residual is added twice

    After each residual connection, a second one adds the same vector once more:

    $$x + \operatorname{sub}(x) + \operatorname{sub}(x)$$

    where $\operatorname{sub}$ is attention or the feed-forward layer with its norm. This is
    $x + 2\operatorname{sub}(x)$. Halving the weights that come last in $\operatorname{sub}$ undoes it; the
    paper calls it a "functional no-op" (Figure 21). Its effect on training depends on the optimizer. With
    Adam, a first step changes the output twice as much; with {term}`Adafactor`, which the paper used, as much
    as without, because its steps are proportional to the weights.
    """

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention_norm(x)
        x = x + 2 * self.dropout(self.attention(y, y, causal=True))
        x = x + 2 * self.dropout(self.feed_forward_norm(self.feed_forward(x)))
        return x


if __name__ == "__main__":
    # ## Changes that can be undone
    #
    # The factor and the second residual change nothing that the weights could not. Take a searched block
    # without tanh and gate, and a block that has no factor and adds each residual once. The two compute the
    # same, if the second has $W$ multiplied by $1.12^2$, the output projection by $-1.12$, and the last
    # weights of both layers by 2.
    class Straight(SearchedAttention):
        tanh, length = False, None

    class Unscaled(Straight):
        factor = 1.0

    torch.manual_seed(0)
    straight = Config(
        1, d_model=64, heads=4, d_ff=768, attention=Straight, norm=PrimerNorm
    )
    searched = SearchedBlock(straight)
    undone = PrimerBlock(replace(straight, attention=Unscaled))
    weights, x = searched.state_dict(), torch.randn(2, 20, 64)
    for name, change in (
        ("attention.mixing", 1.12**2),
        ("attention.output.weight", -1.12 * 2),
        ("attention.output.bias", 2.0),
        ("feed_forward_norm.weight", 2.0),
        ("feed_forward_norm.bias", 2.0),
    ):
        weights[name] = weights[name] * change
    undone.load_state_dict(weights)
    difference = (searched(x) - undone(x)).abs().max()
    print(f"factor and second residual, undone: largest difference {difference:.1e}")
    # Two other changes cannot be undone: on the left, the tanh, applied to attention weights; on the right,
    # the activation function with the constant $-0.57$, next to the squared ReLU.
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    grid = torch.linspace(0, 1, 101)
    left.plot(grid, grid, color="C5", label="unchanged")
    left.plot(grid, grid.tanh(), color="C0", label="tanh")
    left.set(xlabel="weight after softmax", ylabel="weight used")
    left.text(0.72, 0.86, "unchanged", color="C5", ha="right")
    left.text(0.75, 0.5, "tanh", color="C0")
    grid = torch.linspace(-2, 1.2, 201)
    square, searched_for = SquaredReLU()(grid), SearchedActivation()(grid)
    right.plot(grid, square, color="C5", label="squared ReLU")
    label = "searched program"
    right.plot(grid, searched_for, color="C0", ls="--", label=label)
    right.set(xlabel="x", ylabel="y")
    right.text(-2, 0.06, "squared ReLU", color="C5")
    right.text(-2, 0.4, "searched program", color="C0")
    plt.show()


if __name__ == "__main__":
    # ## Parameters, compared with the paper
    #
    # :::{deeper}
    # The size of the paper's vocabulary, and how its runs computed queries, follow from its counts.
    # :::
    #
    # The paper does not state the size of its vocabulary, but it can be computed from its largest model in
    # section 4.1, with 385 million parameters. Its 12 layers of width 1024 have feed-forward layers 12 times
    # as wide, so they have $12 \cdot (4 + 2 \cdot 12) \cdot 1024^2$ weights. The rest is the embedding table,
    # if that is also the output matrix. As 385 is rounded, this leaves a range:
    blocks = 12 * (4 + 2 * 12) * 1024**2
    fewest, most = (int((million * 1e6 - blocks) / 1024) for million in (384.5, 385.5))
    print(f"vocabulary: {fewest:,} to {most:,} tokens")
    # So we take 32,000 tokens for the search task, and T5's 32,128 for the runs in T5. The table compares our
    # parameters, in millions, with the paper's whole numbers (Table 4, sections 4.2 and 4.3). Our models also
    # have a table of positions, and biases everywhere: the column *extra* counts both.
    transformer = Config(
        vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=64
    )
    primer_ez = replace(
        transformer, attention=MultiDConvHeadAttention, activation=SquaredReLU
    )
    full_primer = replace(
        transformer,
        attention=PrimerAttention,
        activation=SquaredReLU,
        norm=PrimerNorm,
        block=PrimerBlock,
    )
    per_head = replace(full_primer, attention=SearchedAttention)
    searched_sizes = replace(per_head, d_model=384, d_ff=4608)
    models = {
        "Transformer": (transformer, "35"),
        "Primer-EZ": (primer_ez, "35, 36 in T5"),
        "Primer, one W": (full_primer, "36 in T5"),
        "Primer, a W for each head": (per_head, "34 in T2T"),
        "Primer, searched sizes": (searched_sizes, "32 to 38"),
    }
    for name, config in (("Transformer", transformer), ("Primer", full_primer)):
        t5 = replace(config, vocab_size=32_128, max_seq=512)
        base = replace(t5, d_model=768, heads=12, d_ff=3072, layers=12)
        large = replace(t5, d_model=1024, heads=16, d_ff=8192, layers=24)
        models[f"{name}, section 4.2"] = (base, "110")
        models[f"{name}, section 4.3"] = (large, "537")
    counted = []
    for name, (config, stated) in models.items():
        with torch.device("meta"):
            counts = {n: p.numel() for n, p in LanguageModel(config).named_parameters()}
        extra = sum(
            n for key, n in counts.items() if "positions" in key or "bias" in key
        )
        millions = f"{sum(counts.values()) / 1e6:.2f}"
        counted.append((name, millions, f"{extra / 1e6:.2f}", stated))
    display(Table(("model", "ours", "extra", "paper"), counted))
    # The counts suggest how the paper computed its queries. With a $W$ for each head, Primer has
    # {value}`f"{float(counted[0][1]) - float(counted[3][1]):.1f}"` million parameters fewer than the
    # Transformer; that fits the 34 and 35 million of Table 4 for Tensor2Tensor, the
    # library of the search. With one $W$, both have about as many; that fits section 4.3, which used T5 and
    # gives 537 million for all its models. Neither explains why Table 4 has 36 million for Primer and
    # Primer-EZ in T5, one more than for the Transformer.

    # ## What does each change contribute?
    #
    # {doc}`/experiments/chapters/parts` repeats the paper's ablation (Figure 26) with several seeds: each
    # change alone in a Transformer, and Primer without each change. There, on characters, the convolution
    # contributes most with a learned table of positions, and the squared ReLU, on average, with rotary
    # positions. {doc}`/experiments/chapters/ours` compares the whole models.
    #
    # In the paper's three setups, Tensor2Tensor on TPUs, Tensor2Tensor on a V100 GPU, and T5, Primer has
    # speed-up factors of 2.12, 2.13 and 1.72, and Primer-EZ of 2.34, 2.03 and 1.75 (Table 4). So the simpler
    # of the two is about as good.


if __name__ == "__main__":
    # ## In short
    #
    # - The search made nine changes. Primer-EZ has the two that, in the paper, always help, whatever the
    #   size.
    # - Primer's norm is a layer norm, up to rounding and its $\varepsilon$. The weights can undo its constant
    #   factors and its doubled residual.
    # - Computing queries from keys saves a convolution, but generally hurts in the paper.
    # - In the paper, Primer-EZ is about as good as Primer.
    #
    # ## Exercise
    #
    # :::{exercise} Queries computed from keys, undone
    # Without a convolution, {py:class}`~labml_primer.primer.primer.SharedQueryAttention` can compute the same
    # as any {py:class}`~labml_primer.transformer.attention.MultiHeadAttention` whose key matrix can be
    # inverted. Which weights and which bias must its queries have?
    # :::
    # :::{solution}
    # With vectors as columns, plain attention has the key $k = A x + a$ and the query $q = B x + b$. So
    # $x = A^{-1}(k - a)$ and $q = BA^{-1} k + (b - BA^{-1} a)$: the weights are $BA^{-1}$, and the bias is
    # $b - BA^{-1} a$. After a convolution this is impossible, because a key is then a mixture of three
    # tokens, from which $W$ cannot recover the current one.
    # :::
    free = MultiHeadAttention(d_model=64, heads=4).double()
    shared = SharedQueryAttention(d_model=64, heads=4).double()
    shared.load_state_dict(free.state_dict())
    with torch.no_grad():
        product = free.query.weight @ free.key.weight.inverse()
        shared.query.weight.copy_(product)
        shared.query.bias.copy_(free.query.bias - product @ free.key.bias)
    x = torch.randn(2, 20, 64, dtype=torch.float64)
    difference = (shared(x, x) - free(x, x)).abs().max()
    print(f"largest difference {difference:.0e}")
    assert difference < 1e-8

    # :::{exercise} Write it: queries computed from keys
    # Write the weights of one head whose queries are its keys times `w`, `[d_k, d_k]`. `key` is `[seq, d_k]`;
    # there is no mask.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def shared_weights(key: Tensor, w: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    two_keys, turn = torch.eye(2) * 2, torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    own = torch.tensor([[0.9442, 0.0558], [0.0558, 0.9442]])
    cases: list[Case] = [
        (
            (two_keys, torch.eye(2)),
            own,
            "the scores are 4 and 0, divided by the root of 2",
        ),
        ((two_keys, turn), own.flip(0), "the query of one is the key of the other"),
        (
            (
                torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 2.0]]),
                torch.tensor([[0.0, 1.0], [0.0, 0.0]]),
            ),
            [[0.0287, 0.4856, 0.4856], [1 / 3] * 3, [0.0287, 0.4856, 0.4856]],
            "the queries are (0, 2), (0, 0) and (0, 2), and each row sums to one",
        ),
    ]
    check_answer(shared_weights, cases)

    # :::{solution}
    # $Q = KW$, then as always.
    # :::
    def solved(key: Tensor, w: Tensor) -> Tensor:
        return (key @ w @ key.T / math.sqrt(key.size(-1))).softmax(dim=-1)

    assert check_answer(solved, cases)

    # Primer-EZ's changes also take time. {doc}`faster` shows how much, and how to save most of it.
