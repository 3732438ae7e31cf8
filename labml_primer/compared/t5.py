r"""
# The T5 setting

An encoder-decoder that fills gaps in a text, with relative positions and an optimizer that stores two vectors
where Adam stores two matrices.

Primer was found as a language model. Do its changes also help a model that reads with one stack of blocks and
writes with another?

In short: the paper's one test does not show it (appendix A.12, one run of each model). There a decoder with
Primer-EZ's two changes follows a {term}`Transformer++` encoder, and the model is about as good as a whole
Transformer++. The setting is that of T5 {cite:p}`raffel2020exploring`, in which
{cite:t}`narang2021transformer` had compared variants of the Transformer. Most of the paper's larger runs also
use T5 (sections 4.2 and 4.3). This chapter builds the parts of T5 that {doc}`../transformer/model` lacks:

- {term}`relative positions`, in buckets, added to the scores of attention;
- linear layers without biases, and one embedding matrix for inputs and outputs;
- a task, {term}`span corruption`: remove spans from a text, and let the model write them;
- {term}`Adafactor`, and the schedule of its learning rate.

:::{picture} t5
:::

Source: {cite:t}`so2021primer`, appendices A.8 and A.12; {cite:t}`raffel2020exploring`, sections 2.1 and 3.1;
{cite:t}`shazeer2018adafactor`.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.named import Named
from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
from labml_primer.transformer.attention import MultiHeadAttention, causal_mask
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


def relative_position_bucket(
    distance: Tensor,
    bidirectional: bool,
    buckets: int = 32,
    max_distance: int = 128,
) -> Tensor:
    r"""
    ## Relative positions, in buckets

    *Relative positions* are distances between query and key. Whether a key is one token back or two makes a
    difference; whether it is 90 or 91 back hardly does. So of $B$ buckets the first $m = B/2$ hold one
    distance each, and the others divide the distances up to $M$ = `max_distance`, in growing steps:

    $$b(n) = \begin{cases}
      n & n < m \\
      m + \Big\lfloor (B - m)\,\dfrac{\log (n / m)}{\log (M / m)} \Big\rfloor & n \ge m
    \end{cases}$$

    but at most $B - 1$, the bucket of all distances beyond $M$. `distance` is the query's position minus the
    key's: integers of any shape; the result has the same shape.

    If a query may attend to later keys (`bidirectional`), the formula has $B/2$ in place of $B$: the first
    half of the buckets is for earlier keys and the query's own position, the second half for later keys.
    Otherwise a later key counts as distance zero; a mask hides it anyway.

    :::{picture} t5_buckets
    :::

    Raises `ValueError` if there are too few buckets, or if `max_distance` is within the exact ones. Source:
    {cite:t}`raffel2020exploring`, section 2.1, for 32 buckets and a maximum of 128. No paper gives the
    formula; it is that of the released code.
    """
    one_way = buckets // 2 if bidirectional else buckets
    exact = one_way // 2
    if exact < 1 or max_distance <= exact:
        raise ValueError(
            f"{buckets} buckets and max_distance {max_distance} leave none for far keys"
        )
    ahead = torch.zeros_like(distance)
    if bidirectional:
        ahead = one_way * (distance < 0)
    near = distance.abs() if bidirectional else distance.clamp(min=0)
    # The logarithm is taken of all distances, so zeros are replaced first.
    share = (near.clamp(min=exact) / exact).log() / math.log(max_distance / exact)
    far = (exact + share * (one_way - exact)).long().clamp(max=one_way - 1)
    return ahead + torch.where(near < exact, near, far)


if __name__ == "__main__":
    # On the left, the bucket of each distance back, for a decoder. On the right, both directions, for an
    # encoder. Long steps are buckets that many distances share.
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7, 2.6), layout="constrained", width_ratios=(1, 2)
    )
    back, both = torch.arange(0, 161), torch.arange(-160, 161)
    left.step(back, relative_position_bucket(back, bidirectional=False), color="C0")
    right.step(both, relative_position_bucket(both, bidirectional=True), color="C0")
    left.set(xlabel="distance back", ylabel="bucket")
    right.set(xlabel="distance back; ahead is negative")
    plt.show()
    # A rounding error at a step would put a distance into the wrong bucket: is $\log 8 / \log 16 \cdot 8$
    # equal to 6, or slightly less? Integers need no rounding:
    # $b(n) \ge m + j$ if $n^{B-m}\,m^{j} \ge m^{B-m}\,M^{j}$.
    m, M, B = 8, 128, 16
    wrong = [
        n
        for n in range(m, 400)
        if relative_position_bucket(torch.tensor(n), True).item()
        != m
        + max(j for j in range(B - m) if n ** (B - m) * m**j >= m ** (B - m) * M**j)
    ]
    print("distances in a wrong bucket:", wrong)


class RelativePositionBias(nn.Module):
    r"""
    ## Relative position bias

    A table with a row per bucket and a column per head. Its entry is added to the score:

    $$S_{h,ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} + t_{b(i - j),\,h}$$

    The encoder has no other information about positions. In a decoder the causal mask adds some information,
    and Primer-EZ's convolutions add more. As in T5, all layers of a stack share one table.
    `forward(queries, keys)` returns `[heads, queries, keys]` for any lengths. The queries are at the last
    positions of the keys, as for the {term}`causal mask`. Raises `ValueError` if there are more of them.

    Source: {cite:t}`raffel2020exploring`, section 2.1.

    :::{deviation} T5's released code
    It does not divide by $\sqrt{d_k}$, and initializes the projection of queries smaller by that factor. A
    new layer computes the same. So does a trained one, because Adafactor changes a weight in proportion to
    its size, which preserves the factor. A test trains both.

    Its table of positions also starts smaller. With $H$ heads, an entry's standard deviation is
    $\sqrt{2 / (H + 32)}$, about 0.2 for 8 or 12 heads. Here it is 1, PyTorch's default, so a new model has
    stronger random preferences for some distances.
    :::
    """

    def __init__(self, heads: int, bidirectional: bool):
        super().__init__()
        self.bidirectional = bidirectional
        self.table = nn.Embedding(32, heads)

    def forward(self, queries: int, keys: int) -> Tensor:
        if queries > keys:
            raise ValueError(f"{queries} queries are more than {keys} keys")
        positions = torch.arange(keys, device=self.table.weight.device)
        distance = positions[keys - queries :, None] - positions
        bucket = relative_position_bucket(distance, self.bidirectional)
        bias: Tensor = self.table(bucket)  # [queries, keys, heads]
        return bias.permute(2, 0, 1)


@dataclass(frozen=True)
class Parts:
    """
    ## The parts of a stack

    As in {py:class}`~labml_primer.transformer.language_model.Config`, but the encoder and the decoder each
    have their own.
    """

    attention: type[MultiHeadAttention] = MultiHeadAttention
    activation: type[nn.Module] = nn.ReLU
    feed_forward: type[PositionwiseFeedForward] = PositionwiseFeedForward
    norm: type[nn.Module] = nn.LayerNorm


@dataclass(frozen=True)
class T5Config:
    """The sizes and the parts of both stacks. The defaults are the "vanilla Transformer" of
    {cite:t}`narang2021transformer`, which has the sizes of T5's base model.

    :::{deviation} T5's released code
    Its norm is {py:class}`RMSNorm <labml_primer.transformer.normalization.RMSNorm>`. Here that is one of the
    changes of Transformer++, so the vanilla model has layer norm.
    :::
    """

    vocab_size: int = 32_128
    d_model: int = 768
    heads: int = 12
    d_ff: int = 3072
    layers: int = 12
    encoder: Parts = Parts()
    decoder: Parts = Parts()


# The models of Table 7. The paper describes the last as "a Transformer++ encoder and a Primer-EZ decoder". So
# we apply Primer-EZ's two changes to the vanilla decoder, with convolutions in self-attention only, because
# cross-attention reads the encoder's output.
PLUS_PLUS = Parts(activation=nn.SiLU, feed_forward=GatedFeedForward, norm=nn.RMSNorm)
PRIMER_EZ_DECODER = Parts(attention=MultiDConvHeadAttention, activation=SquaredReLU)
T5_PRESETS = Named(
    {
        "t5": T5Config(),
        "t5-gelu": T5Config(
            encoder=Parts(activation=nn.GELU), decoder=Parts(activation=nn.GELU)
        ),
        "t5-pp": T5Config(encoder=PLUS_PLUS, decoder=PLUS_PLUS),
        "t5-primer-ez-decoder": T5Config(encoder=PLUS_PLUS, decoder=PRIMER_EZ_DECODER),
    }
)


class T5Block(nn.Module):
    """
    ## One block for both stacks

    The layers of {py:class}`~labml_primer.transformer.encoder.EncoderBlock`, each after a norm. A decoder
    block has one more between them, cross-attention to the encoder's output, the `memory`.
    """

    def __init__(self, config: T5Config, parts: Parts, decoder: bool):
        super().__init__()
        d_model, heads = config.d_model, config.heads
        self.attention = parts.attention(d_model, heads)
        self.attention_norm = parts.norm(d_model)
        if decoder:
            self.cross_attention = MultiHeadAttention(d_model, heads)
            self.cross_attention_norm = parts.norm(d_model)
        self.feed_forward = parts.feed_forward(
            d_model, config.d_ff, activation=parts.activation
        )
        self.feed_forward_norm = parts.norm(d_model)

    def forward(
        self,
        x: Tensor,
        bias: Tensor,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """`bias` is for self-attention, the boolean `memory_mask` for cross-attention."""
        y = self.attention_norm(x)
        # PyTorch's fused attention adds a mask of numbers to the scores, so the bias is passed as a mask.
        x = x + self.attention(y, y, bias)
        # Distances between positions of two different texts have no meaning, so cross-attention has no bias.
        if memory is not None:
            y = self.cross_attention_norm(x)
            x = x + self.cross_attention(y, memory, memory_mask)
        x = x + self.feed_forward(self.feed_forward_norm(x))
        return x


class T5Stack(nn.Module):
    """
    ## A stack

    Blocks, one table of relative positions for all of them, and a final norm. `[batch, seq, d_model]` to the
    same.
    """

    def __init__(self, config: T5Config, parts: Parts, decoder: bool):
        super().__init__()
        self.decoder = decoder
        self.positions = RelativePositionBias(config.heads, bidirectional=not decoder)
        self.blocks: nn.ModuleList = nn.ModuleList(
            T5Block(config, parts, decoder) for _ in range(config.layers)
        )
        self.norm = parts.norm(config.d_model)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Masks are true where attending is allowed, and broadcast to `[batch, heads, queries, keys]`."""
        seq = x.size(1)
        bias = self.positions(seq, seq)
        # Masked keys get a score of minus infinity.
        if self.decoder:
            bias = bias.masked_fill(~causal_mask(seq, seq, x.device), -math.inf)
        if mask is not None:
            bias = bias.masked_fill(~mask, -math.inf)
        for block in self.blocks:
            x = block(x, bias, memory, memory_mask)
        x = self.norm(x)
        return x


class T5(nn.Module):
    r"""
    ## The model

    `source` `[batch, source]` and `target` `[batch, target]` to logits `[batch, target, vocab_size]`. Each
    position of the target depends on itself, on those before it, and on the whole source.

    `source_mask` `[batch, source]` is false at {term}`padding`; each sequence needs a token that is not
    padding. Padding at the end of a target needs no mask, because no earlier position attends to it.

    Raises `ValueError` if `heads` does not divide `d_model`.
    """

    def __init__(self, config: T5Config):
        super().__init__()
        self.config = config
        # One matrix for the source, the target and the predictions.
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, config.encoder, decoder=False)
        self.decoder = T5Stack(config, config.decoder, decoder=True)
        # No linear layer has a bias (layer norms have one). The initial variance of a weight is $1/n$ for $n$
        # inputs, so outputs are as large as inputs.
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                layer.register_parameter("bias", None)
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)

    def forward(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None = None
    ) -> Tensor:
        mask = None if source_mask is None else source_mask[:, None, None, :]
        memory = self.encoder(self.embedding(source), mask)
        z = self.decoder(self.embedding(target), None, memory, mask)
        # Rows of the table and outputs of the norm have components of size 1, so their product has a size of
        # about $\sqrt{d}$, which is too large for a logit.
        return F.linear(z, self.embedding.weight) / math.sqrt(self.config.d_model)


if __name__ == "__main__":
    # ## Parameters, compared with the paper
    #
    # In millions, next to Table 7.
    from IPython.display import display

    from labml_primer.training.table import Table

    paper = {"t5": 223, "t5-gelu": 223, "t5-pp": 224, "t5-primer-ez-decoder": 224}
    sizes = []
    for name, config in T5_PRESETS.items():
        with torch.device("meta"):
            size = sum(p.numel() for p in T5(config).parameters())
        sizes.append((name, f"{size / 1e6:.2f}", paper[name]))
    display(Table(("model", "ours", "paper"), sizes))
    # :::{deviation} the paper, Table 7
    # It counts a million more for the last two than for the first two. We do not know where it comes from:
    # the gated layer is two thirds as wide and adds none, and RMSNorm has fewer parameters.
    # :::


def corrupt_spans(
    tokens: Tensor,
    first_sentinel: int,
    generator: torch.Generator | None = None,
    rate: float = 0.15,
    mean_length: float = 3.0,
) -> tuple[Tensor, Tensor]:
    r"""
    ## Span corruption

    Replace spans of a text by markers, the *sentinels*, and let the model write the spans. An example with
    two spans and the sentinels $X$, $Y$ and $Z$:

    $$\small\begin{aligned}
      \text{text} &\colon\ \text{Thank you for inviting me to your party} \\
      \text{source} &\colon\ \text{Thank you}\ X\ \text{me to}\ Y \\
      \text{target} &\colon\ X\ \text{for inviting}\ Y\ \text{your party}\ Z
    \end{aligned}$$

    `rate` is the share of tokens to cut, in spans with a mean length of `mean_length`. Every row of `tokens`
    `[batch, seq]` has the same number of spans and cut tokens; only their places are random. So sources and
    targets are rectangular, `[batch, seq - cut + spans]` and `[batch, cut + spans + 1]`. Sentinels are
    numbered from `first_sentinel`.

    Raises `ValueError` if there is nothing to cut, or if fewer tokens are kept than there are spans. Source:
    {cite:t}`raffel2020exploring`, section 3.1.4 for the task, 3.3.4 for spans of three and 15 percent.
    """
    batch, seq = tokens.shape
    cut = round(seq * rate)
    spans = max(1, round(cut / mean_length))
    if not spans <= cut or not spans <= seq - cut:
        raise ValueError(f"{seq} tokens at a rate of {rate}: {spans} spans do not fit")

    # Random positive lengths with a given total, for each row.
    def lengths(total: int) -> Tensor:
        device = "cpu" if generator is None else generator.device
        noise = torch.rand(batch, total - 1, generator=generator, device=device)
        order = noise.to(tokens.device).argsort(dim=1)
        places = order[:, : spans - 1].sort(dim=1).values + 1
        return F.pad(F.pad(places, (1, 0)), (0, 1), value=total).diff(dim=1)

    # Kept and cut pieces alternate, beginning with a kept one. So piece $2s$ is kept, piece $2s + 1$ is cut,
    # and both belong to sentinel $s$.
    #
    # :::{deviation} the paper on T5, section 3.1.4
    # It does not say that a text always begins with a kept piece and ends with a cut one. That follows the
    # released code.
    # :::
    ends = torch.stack([lengths(seq - cut), lengths(cut)], dim=2).flatten(1).cumsum(1)
    place = torch.arange(seq, device=tokens.device).expand(batch, seq).contiguous()
    piece = torch.searchsorted(ends, place, right=True)  # [batch, seq]
    begins = F.pad(piece, (1, 0), value=-1).diff(dim=1) > 0
    gone = piece % 2 == 1
    sentinel = (first_sentinel + piece // 2).to(tokens)
    # Source and target each have the tokens that the other lacks, and a sentinel for each missing piece.
    source = torch.where(gone, sentinel, tokens)[~gone | begins].view(batch, -1)
    target = torch.where(gone, tokens, sentinel)[gone | begins].view(batch, -1)
    return source, F.pad(target, (0, 1), value=first_sentinel + spans)


if __name__ == "__main__":
    # Two passages of a held-out play. `[0]`, `[1]`, ... are the sentinels, and `/` ends a line.
    from labml_primer.training import load_corpus

    corpus = load_corpus()
    VOCAB = corpus.vocab_size

    def show(tokens: Tensor) -> str:
        marks = [
            f"[{t - VOCAB}]" if t >= VOCAB else corpus.symbols[t]
            for t in tokens.tolist()
        ]
        return "".join(marks).replace("\n", " / ")

    generator = torch.Generator().manual_seed(0)
    text = corpus.validation[20_000:20_120].view(2, 60)
    for row, (source, target) in enumerate(
        zip(*corrupt_spans(text, VOCAB, generator), strict=True)
    ):
        print("text  ", show(text[row]))
        print("source", show(source))
        print("target", show(target))


def t5_rate(step: int, warmup: int = 10_000) -> float:
    r"""
    ## The learning rate

    $$\rho_s = \frac{1}{\sqrt{\max(s,\ w)}}$$

    It is 0.01 for the first $w$ = 10,000 steps and then falls with the square root of the step. The paper
    calls this warm-up (A.8), although the rate never rises.
    """
    return 1 / math.sqrt(max(step, warmup))


def adafactor(
    weight: Tensor,
    gradient: Tensor,
    rows: Tensor,
    columns: Tensor,
    step: int,
    rate: float,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""
    ## Adafactor

    Adam stores two matrices for each matrix of weights: the means of the gradients, and those of their
    squares. T5's Adafactor does without the first. Of the second, $V$ of $n$ by $m$ numbers, it stores only
    the row means $r$ and the column means $c$, $n + m$ numbers, and estimates

    $$\hat V_{ij} = \frac{r_i\, c_j}{\operatorname{mean}(r)}$$

    which is exact if the matrix of squares has rank one.

    :::{picture} adafactor
    :::

    Return the new weight and the new `rows` `[n]` and `columns` `[m]`, at `step` 1, 2, ... Source:
    {cite:t}`shazeer2018adafactor`, the algorithm for weight matrices; section 6 for the scaling down, 7 for
    $\beta$.
    """
    # At step $s$ the means keep a share $\beta_s = 1 - s^{-0.8}$ of their old values, which grows with $s$.
    # At step 1 it is zero, so the initial zeros are discarded, and no bias correction is needed.
    beta = 1 - step**-0.8
    square = gradient.square() + 1e-30
    rows = beta * rows + (1 - beta) * square.mean(dim=1)
    columns = beta * columns + (1 - beta) * square.mean(dim=0)
    # Take the root of each factor separately, because in `float32` the product of two small means is zero.
    update = gradient * (rows / rows.mean()).rsqrt()[:, None] * columns.rsqrt()

    def rms(x: Tensor) -> Tensor:
        return x.square().mean().sqrt()

    # If the root mean square of an update is above 1, the means are out of date, so it is scaled down to 1.
    update = update / rms(update).clamp(min=1.0)
    # A step is proportional to the size of the weight, so small weights take small steps.
    return weight - rate * rms(weight).clamp(min=1e-3) * update, rows, columns


if __name__ == "__main__":
    # ## The same as PyTorch's
    #
    # `torch.optim.Adafactor` uses the smaller of its `lr` and $1/\sqrt{s}$, so with its default of 0.01 it
    # has T5's schedule. Thirty steps of both, from the same weight:
    torch.manual_seed(0)
    weight = torch.randn(48, 32, dtype=torch.float64) / 8
    theirs = nn.Parameter(weight.clone())
    optimizer = torch.optim.Adafactor([theirs])
    rows, columns = weight.new_zeros(48), weight.new_zeros(32)
    for step in range(1, 31):
        theirs.grad = torch.randn_like(weight)
        optimizer.step()
        weight, rows, columns = adafactor(
            weight, theirs.grad, rows, columns, step, t5_rate(step)
        )
    print(f"largest difference after 30 steps: {(weight - theirs).abs().max():.1e}")
    print(f"stored: {rows.numel() + columns.numel()}, by Adam {2 * weight.numel()}")


if __name__ == "__main__":
    # ## The gain
    #
    # Parameters in millions, multiply-adds in billions for a source of 512 tokens and a target of 114, and
    # the loss of Table 7, the logarithm of the perplexity on C4, in nats per token. The paper ran each of the
    # last two models once, so their difference of 0.005 may be noise. Its authors conclude that the best
    # changes for a language model need not be the best here.
    from torch.utils.flop_counter import FlopCounterMode

    table_7 = {"t5": 1.838, "t5-pp": 1.792, "t5-primer-ez-decoder": 1.787}
    gains = []
    for name, loss_in_paper in table_7.items():
        with torch.device("meta"):
            whole = T5(T5_PRESETS[name])
            texts = [torch.zeros(1, seq, dtype=torch.long) for seq in (512, 114)]
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            whole(*texts)
        size = sum(p.numel() for p in whole.parameters())
        products = counter.get_total_flops() / 2e9
        gains.append((name, f"{size / 1e6:.1f}", f"{products:.1f}", loss_in_paper))
    display(Table(("model", "parameters", "multiply-adds", "loss"), gains))


if __name__ == "__main__":
    # ## A small model fills gaps
    #
    # Train a small model with the Primer-EZ decoder on passages of 128 characters, of which 19 are cut, in
    # six spans. The decoder reads the target without its last token, and predicts the target without its
    # first, which is always sentinel 0.
    from dataclasses import replace

    SEQ = 128

    def draw(
        text: Tensor, count: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(text) - SEQ, (count, 1), generator=generator)
        return corrupt_spans(text[starts + torch.arange(SEQ)], VOCAB, generator)

    torch.manual_seed(0)
    preset = T5_PRESETS["t5-primer-ez-decoder"]
    sentinels = 7
    model = T5(
        replace(
            preset,
            vocab_size=VOCAB + sentinels,
            d_model=64,
            heads=4,
            d_ff=256,
            layers=2,
        )
    )
    optimizer = torch.optim.Adafactor(model.parameters())
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        source, target = draw(corpus.train, 8, generator)
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    # The most probable token at each step, compared with the cut text. The model has learned the form,
    # sentinels in order with a space or a short word after each, but not yet the content.
    source, target = draw(corpus.validation, 1, torch.Generator().manual_seed(1))
    written = target[:, :1]
    with torch.no_grad():
        while written.size(1) < target.size(1):
            best = model(source, written)[:, -1].argmax(dim=-1)
            written = torch.cat([written, best[:, None]], dim=1)
    print("source ", show(source[0]))
    print("cut    ", show(target[0]))
    print("written", show(written[0]))


if __name__ == "__main__":
    # ## In short
    #
    # - T5 has relative positions only: a learned number for each bucket of distances and each head is added
    #   to the scores of attention.
    # - It learns by span corruption, that is, by filling gaps.
    # - Its optimizer, Adafactor, stores row and column means of squared gradients, where Adam stores two
    #   matrices.
    # - In the paper, a Primer-EZ decoder is about as good as a Transformer++ decoder in this setting.
    #
    # ## Exercise
    #
    # :::{exercise} Put it together again
    # Write a function that restores the text from a source and its target. Does it need the last sentinel?
    # :::
    # :::{solution}
    # Split the target at its sentinels, and replace sentinel $s$ in the source by piece $s$. The function
    # does not need the last sentinel, which only shows a generating model when to stop.
    # :::
    def put_together(source: Tensor, target: Tensor) -> list[int]:
        pieces: list[list[int]] = []
        for token in target.tolist():
            if token >= VOCAB:
                pieces.append([])
            else:
                pieces[-1].append(token)
        whole: list[int] = []
        for token in source.tolist():
            whole += pieces[token - VOCAB] if token >= VOCAB else [token]
        return whole

    passages = corpus.validation[: 100 * SEQ].view(100, SEQ)
    sources, targets = corrupt_spans(passages, VOCAB, generator)
    again = [put_together(*pair) for pair in zip(sources, targets, strict=True)]
    assert again == passages.tolist()
    print(f"{len(again)} texts put together again")

    # That was the last of the paper's models; {doc}`/experiments/chapters/family` has the cost and the loss
    # of each. The next part has what came after Primer, and begins with the positions of most models today:
    # {doc}`/labml_primer/since/rotary`.
