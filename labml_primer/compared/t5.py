r"""
# The T5 setting

An encoder-decoder that fills gaps in a text, positions that are told as distances, and an optimizer that
keeps two vectors where Adam keeps two matrices.

Primer was found as a language model. Does what was found there help a model that reads with one stack and
writes with another?

The paper asks this once (appendix A.12), and in a setting that was there before it: T5's
{cite:p}`raffel2020exploring`, as {cite:t}`narang2021transformer` had used it to compare variants of the
Transformer. A decoder with Primer-EZ's two changes stands behind a Transformer++ encoder. And since most of
the paper's larger runs are T5's as well (sections 4.2 and 4.3), this chapter builds what T5 has and
{doc}`../transformer/model` has not:

- distances between tokens, in buckets, added to the scores of attention;
- no biases in linear layers, and no second table;
- a task, *span corruption*: cut pieces out of a text, and write what was cut;
- Adafactor, and the schedule of its learning rate.

Source: {cite:t}`so2021primer`, appendices A.8 and A.12; {cite:t}`raffel2020exploring`, sections 2.1 and 3.1;
{cite:t}`shazeer2018adafactor`.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.primer.primer_ez import SquaredReLU
from labml_primer.transformer.attention import MultiHeadAttention, causal_mask
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


def relative_position_bucket(
    distance: Tensor,
    bidirectional: bool,
    buckets: int = 32,
    max_distance: int = 128,
) -> Tensor:
    r"""
    ## Near ones exactly, far ones roughly

    How far back does the key stand? Whether it is the last token or the one before matters. Whether it is
    90 tokens back or 91 hardly does. So of $B$ buckets the first $m = B/2$ take a distance each, and the
    others share those up to $M$ = `max_distance`, in steps that grow as the distance does:

    $$b(n) = \begin{cases}
      n & n < m \\
      m + \Big\lfloor (B - m)\,\dfrac{\log (n / m)}{\log (M / m)} \Big\rfloor & n \ge m
    \end{cases}$$

    but never more than $B - 1$, where all that is farther than $M$ ends up. `distance` is the query's
    position less the key's, integers of any shape; the result has that shape.

    Where a query may look ahead (`bidirectional`), the first half of the buckets is for keys that come
    before it and for itself, the second for keys that come after it. One stays empty: the second half's
    own zero. Where it may not look ahead, a later key counts as distance zero; a mask hides it anyway.

    Raises `ValueError` where the buckets do not leave one for each direction and range, and where
    `max_distance` is not beyond the exact ones. Source: {cite:t}`raffel2020exploring`, section 2.1, which
    gives 32 and 128. The formula stands in no paper: it is that of the released code.
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
    # The logarithm is taken of all, so it must not meet a zero.
    share = (near.clamp(min=exact) / exact).log() / math.log(max_distance / exact)
    far = (exact + share * (one_way - exact)).long().clamp(max=one_way - 1)
    return ahead + torch.where(near < exact, near, far)


if __name__ == "__main__":
    # At the left the bucket of each distance back, as a decoder has it. At the right both ways, as an encoder
    # has it: the steps are flat where many distances share a bucket.
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
    # A logarithm that is rounded down invites an error at its steps: is $\log 8 / \log 16 \cdot 8$ six, or a
    # little less? In whole numbers there is nothing to round:
    # $b(n) \ge m + j$ where $n^{B-m}\,m^{j} \ge m^{B-m}\,M^{j}$.
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
    ## A number for each distance and head

    A table with a row a bucket and a column a head. What stands there is added to the score:

    $$S_{h,ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} + t_{b(i - j),\,h}$$

    Nothing else tells the encoder where a token stands. A decoder's causal mask tells it a little, and
    Primer-EZ's convolutions more. One table serves all layers of a stack, as in T5. For a sequence of any
    length, `forward(seq)` gives `[heads, seq, seq]`.

    Source: {cite:t}`raffel2020exploring`, section 2.1.
    """

    def __init__(self, heads: int, bidirectional: bool):
        super().__init__()
        self.bidirectional = bidirectional
        self.table = nn.Embedding(32, heads)

    def forward(self, seq: int) -> Tensor:
        positions = torch.arange(seq, device=self.table.weight.device)
        distance = positions[:, None] - positions
        bucket = relative_position_bucket(distance, self.bidirectional)
        return self.table(bucket).permute(2, 0, 1)


class BiasedAttention(nn.Module):
    """
    ## Attention with a bias

    The projections of any attention of this book, and scores to which something is added: `bias` is
    of numbers, or boolean and true where looking is allowed, and broadcasts to
    `[batch, heads, queries, keys]`. `x` `[batch, queries, d_model]` asks, `y` `[batch, keys, d_model]`
    answers, and the result has the shape of `x`.

    :::{deviation} T5's released code
    It does not divide by the root of `d_k`, and starts with queries smaller by that factor. A fresh layer is
    the same. A trained one is too: Adafactor, below, moves a weight in proportion to its size, so the factor
    stays where it was. A test trains both.
    :::
    """

    def __init__(self, projections: MultiHeadAttention):
        super().__init__()
        self.projections = projections

    def forward(self, x: Tensor, y: Tensor, bias: Tensor | None) -> Tensor:
        query, key, value = (
            t.transpose(1, 2) for t in self.projections.project(x, y)
        )  # [batch, heads, seq, d_k]
        # PyTorch's function adds a mask of numbers to the scores, and takes a boolean one for what it is.
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        return self.projections.output(heads.transpose(1, 2).flatten(2))


@dataclass(frozen=True)
class Parts:
    """
    ## What a stack is made of

    As in {py:class}`~labml_primer.transformer.model.Config`. Encoder and decoder have one each, so that they
    may differ.
    """

    attention: type[MultiHeadAttention] = MultiHeadAttention
    activation: type[nn.Module] = nn.ReLU
    feed_forward: type[PositionwiseFeedForward] = PositionwiseFeedForward
    norm: type[nn.Module] = nn.LayerNorm


@dataclass(frozen=True)
class T5Config:
    """
    The sizes, by default those of T5's base model. With `Parts()` on both sides it is the "vanilla
    Transformer" of {cite:t}`narang2021transformer`.
    """

    vocab_size: int = 32_128
    d_model: int = 768
    heads: int = 12
    d_ff: int = 3072
    layers: int = 12
    encoder: Parts = Parts()
    decoder: Parts = Parts()


# Table 7's models. The paper describes the last in one sentence: "a Transformer++ encoder and a Primer-EZ
# decoder". So we take Primer-EZ's two changes to the vanilla decoder, and convolve in its attention to
# itself. The other attention looks at the memory, whose order is the encoder's affair.
PLUS_PLUS = Parts(activation=nn.SiLU, feed_forward=GatedFeedForward, norm=nn.RMSNorm)
PRIMER_EZ = Parts(attention=MultiDConvHeadAttention, activation=SquaredReLU)
T5_PRESETS = {
    "t5": T5Config(),
    "t5-gelu": T5Config(
        encoder=Parts(activation=nn.GELU), decoder=Parts(activation=nn.GELU)
    ),
    "t5-pp": T5Config(encoder=PLUS_PLUS, decoder=PLUS_PLUS),
    "t5-primer-ez-decoder": T5Config(encoder=PLUS_PLUS, decoder=PRIMER_EZ),
}


class T5Block(nn.Module):
    """
    ## One block for both stacks

    The layers of {py:class}`~labml_primer.transformer.encoder.EncoderBlock`, each after a norm. In a decoder
    there is one more between them, which looks at the memory.
    """

    def __init__(self, config: T5Config, parts: Parts, decoder: bool):
        super().__init__()
        d_model, heads = config.d_model, config.heads
        self.attention = BiasedAttention(parts.attention(d_model, heads))
        self.attention_norm = parts.norm(d_model)
        if decoder:
            self.cross_attention = BiasedAttention(MultiHeadAttention(d_model, heads))
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
        """`bias` is for the attention of `x` to itself, `memory_mask` for that to the memory."""
        y = self.attention_norm(x)
        x = x + self.attention(y, y, bias)
        # Distances between two texts mean nothing, so the memory is looked at without any.
        if memory is not None:
            y = self.cross_attention_norm(x)
            x = x + self.cross_attention(y, memory, memory_mask)
        return x + self.feed_forward(self.feed_forward_norm(x))


class T5Stack(nn.Module):
    """
    ## A stack

    Blocks, one table of distances for all of them, and a last norm. `[batch, seq, d_model]` to the same.
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
        """Masks are true where looking is allowed, and broadcast to `[batch, heads, queries, keys]`."""
        seq = x.size(1)
        bias = self.positions(seq)
        # What may not be looked at gets minus infinity, whatever its distance.
        if self.decoder:
            bias = bias.masked_fill(~causal_mask(seq, seq, x.device), -math.inf)
        if mask is not None:
            bias = bias.masked_fill(~mask, -math.inf)
        for block in self.blocks:
            x = block(x, bias, memory, memory_mask)
        return self.norm(x)


class T5(nn.Module):
    r"""
    ## The model

    `source` `[batch, source]` and `target` `[batch, target]` to logits `[batch, target, vocab_size]`, with
    every position of the target seeing those before it and all of the source.

    `source_mask` `[batch, source]` is true where a token is real; each sequence needs one that is. Padding at
    a target's end needs no mask, since it is later than all that is real.

    Raises `ValueError` where `heads` does not divide `d_model`.
    """

    def __init__(self, config: T5Config):
        super().__init__()
        self.config = config
        # One table for what is read, what is written and what is predicted.
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, config.encoder, decoder=False)
        self.decoder = T5Stack(config, config.decoder, decoder=True)
        # No linear layer has a bias (a layer norm keeps its own), and each weight starts with a size that
        # keeps its output's: $1/n$ is the variance for $n$ inputs.
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
        # The rows have components of size one, so a product with the norm's output is $\sqrt{d}$ too large
        # for a logit.
        return F.linear(z, self.embedding.weight) / math.sqrt(self.config.d_model)


if __name__ == "__main__":
    # ## As large as the paper says?
    #
    # Millions of parameters, beside those of Table 7.
    paper = {"t5": 223, "t5-gelu": 223, "t5-pp": 224, "t5-primer-ez-decoder": 224}
    for name, config in T5_PRESETS.items():
        with torch.device("meta"):
            size = sum(p.numel() for p in T5(config).parameters())
        print(f"{name:22s}{size / 1e6:7.2f}   {paper[name]}")
    # :::{deviation} the paper, Table 7
    # It counts a million more for the last two than for the first. The gate is two thirds as wide and adds
    # nothing, and a norm without a mean has fewer numbers. Where the million is we do not know.
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

    Cut spans out of a text, put a *sentinel* where each was, and let the model write them. A text of two
    spans, with sentinels $X$, $Y$ and $Z$:

    $$\begin{aligned}
      \text{text} &\colon\ \text{Thank you for inviting me to your party} \\
      \text{source} &\colon\ \text{Thank you}\ X\ \text{me to}\ Y \\
      \text{target} &\colon\ X\ \text{for inviting}\ Y\ \text{your party}\ Z
    \end{aligned}$$

    `rate` of the tokens goes, in spans of `mean_length` in the mean. How many tokens and how many spans is
    the same for every row of `tokens` `[batch, seq]`, only their places are drawn. So sources and targets are
    rectangles, `[batch, seq - cut + spans]` and `[batch, cut + spans + 1]`. Sentinels count up from
    `first_sentinel`.

    Raises `ValueError` where nothing is left to cut, or fewer tokens are kept than there are spans. Source:
    {cite:t}`raffel2020exploring`, section 3.1.4 for the task, 3.3.4 for spans of three and 15 percent.
    """
    batch, seq = tokens.shape
    cut = round(seq * rate)
    spans = max(1, round(cut / mean_length))
    if not spans <= cut or not spans <= seq - cut:
        raise ValueError(f"{seq} tokens at a rate of {rate}: {spans} spans do not fit")

    # A row of positive lengths that add up to a total: the gaps between cuts at random places.
    def lengths(total: int) -> Tensor:
        order = torch.rand(batch, total - 1, generator=generator).argsort(dim=1)
        places = order[:, : spans - 1].sort(dim=1).values + 1
        return F.pad(F.pad(places, (1, 0)), (0, 1), value=total).diff(dim=1)

    # Kept and cut pieces take turns, and a kept one comes first. So piece $2s$ is kept, $2s + 1$ is cut, and
    # both belong to sentinel $s$.
    #
    # :::{deviation} the paper of T5, section 3.1.4
    # It does not say that a text always begins with what is kept and ends with what is cut. The released
    # code does so, and we with it.
    # :::
    ends = torch.stack([lengths(seq - cut), lengths(cut)], dim=2).flatten(1).cumsum(1)
    place = torch.arange(seq).expand(batch, seq).contiguous()
    piece = torch.searchsorted(ends, place, right=True)  # [batch, seq]
    begins = F.pad(piece, (1, 0), value=-1).diff(dim=1) > 0
    gone = piece % 2 == 1
    sentinel = (first_sentinel + piece // 2).to(tokens)
    # The two results mirror each other: each has the tokens that the other lacks, and a sentinel for each of
    # its pieces.
    source = torch.where(gone, sentinel, tokens)[~gone | begins].view(batch, -1)
    target = torch.where(gone, tokens, sentinel)[gone | begins].view(batch, -1)
    return source, F.pad(target, (0, 1), value=first_sentinel + spans)


if __name__ == "__main__":
    # Lines from a play that is held out, in a row each, with `[0]`, `[1]`, ... for the sentinels.
    from labml_primer.training import load_corpus

    corpus = load_corpus()
    VOCAB = corpus.vocab_size

    def show(tokens: Tensor) -> str:
        marks = [
            f"[{t - VOCAB}]" if t >= VOCAB else corpus.symbols[t]
            for t in tokens.tolist()
        ]
        return "".join(marks).replace("\n", " / ")

    dice = torch.Generator().manual_seed(0)
    text = corpus.validation[20_000:20_120].view(2, 60)
    for row, (source, target) in enumerate(
        zip(*corrupt_spans(text, VOCAB, dice), strict=True)
    ):
        print("text  ", show(text[row]))
        print("source", show(source))
        print("target", show(target))


def t5_rate(step: int, warmup: int = 10_000) -> float:
    r"""
    ## The learning rate

    $$\rho_s = \frac{1}{\sqrt{\max(s,\ w)}}$$

    For $w$ = 10,000 steps it is 0.01, and then falls with the root. It is called warm-up (A.8), although
    nothing rises.
    """
    return max(step, warmup) ** -0.5


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

    Adam keeps for each weight the mean of its squared gradients. For a matrix of $n$ by $m$ these are $nm$
    numbers, as many as there are weights. Adafactor keeps their row means $r$ and column means $c$, $n + m$
    numbers, and takes

    $$\hat V_{ij} = \frac{r_i\, c_j}{\operatorname{mean}(r)}$$

    for what it did not keep. That is exact where the matrix of squares has rank one.

    The new weight and the new `rows` `[n]` and `columns` `[m]`, at `step` 1, 2, ... Source:
    {cite:t}`shazeer2018adafactor`, the algorithm for weight matrices; section 6 for the scaling down, 7 for
    $\beta$.
    """
    # At step $s$ the means keep $\beta_s = 1 - s^{-0.8}$ of what they were: little at first, more later. As
    # $\beta_1 = 0$, the first step keeps nothing of the zeros they began with, and no correction is needed.
    beta = 1 - step**-0.8
    square = gradient.square() + 1e-30
    rows = beta * rows + (1 - beta) * square.mean(dim=1)
    columns = beta * columns + (1 - beta) * square.mean(dim=0)
    # The root of each factor by itself: in `float32` the product of two small means is zero.
    update = gradient * (rows / rows.mean()).rsqrt()[:, None] * columns.rsqrt()

    def rms(x: Tensor) -> Tensor:
        return x.square().mean().sqrt()

    # An update whose root mean square is above one comes from means that are out of date. It is scaled down.
    update = update / rms(update).clamp(min=1.0)
    # A step is a share of the weight's own size, and small weights take small steps.
    return weight - rate * rms(weight).clamp(min=1e-3) * update, rows, columns


if __name__ == "__main__":
    # ## It is PyTorch's
    #
    # `torch.optim.Adafactor` takes the smaller of its `lr` and $1/\sqrt{s}$. So with its own default of 0.01
    # it has T5's schedule built in. Thirty steps of both from the same weight:
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
    print(f"kept: {rows.numel() + columns.numel()}, by Adam {2 * weight.numel()}")


if __name__ == "__main__":
    # ## Three small ones
    #
    # Pieces of 128 characters, of which 19 are cut, in six spans. Each model has two blocks a side, and the
    # same texts and cuts. What the decoder reads is the target without its last token, what it predicts the
    # target without its first: the first is always sentinel 0.
    from dataclasses import replace
    from functools import partial

    from torch.utils.flop_counter import FlopCounterMode

    from labml_primer.training import median_seconds

    SENTINELS, SEQ, STEPS = 7, 128, 300
    colors = {"t5": "C5", "t5-pp": "C2", "t5-primer-ez-decoder": "C0"}

    def draw(text: Tensor, count: int, dice: torch.Generator) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(text) - SEQ, (count, 1), generator=dice)
        return corrupt_spans(text[starts + torch.arange(SEQ)], VOCAB, dice)

    def loss_of(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        logits = model(source, target[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())

    held_out = draw(corpus.validation, 64, torch.Generator().manual_seed(1))
    models: dict[str, T5] = {}
    losses: dict[str, list[float]] = {}
    for name in colors:
        torch.manual_seed(0)
        small = replace(
            T5_PRESETS[name],
            vocab_size=VOCAB + SENTINELS,
            d_model=64,
            heads=4,
            d_ff=256,
            layers=2,
        )
        model = models[name] = T5(small)
        optimizer = torch.optim.Adafactor(model.parameters())
        dice, losses[name] = torch.Generator().manual_seed(0), []
        for step in range(1, STEPS + 1):
            loss = loss_of(model, *draw(corpus.train, 8, dice))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 30 == 0:
                with torch.no_grad():
                    losses[name].append(loss_of(model, *held_out).item())

    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for name, color in colors.items():
        ax.plot(range(30, STEPS + 1, 30), losses[name], color=color, label=name)
    ax.set(xlabel="step", ylabel="loss, nats a token")
    ax.legend(frameon=False)
    plt.show()
    # ### What each costs, what each brings
    #
    # Parameters, and multiplications with their additions for a source of 512 tokens and a target of 114, are
    # of the paper's size. The time of a step, over the first model's, and the loss are of the small ones. The
    # last column is Table 7's: the logarithm of the perplexity on C4, after far longer training.
    table_7 = {"t5": 1.838, "t5-pp": 1.792, "t5-primer-ez-decoder": 1.787}

    def there_and_back(model: nn.Module) -> None:
        loss_of(model, *(part[:16] for part in held_out)).backward()

    taken = median_seconds({n: partial(there_and_back, m) for n, m in models.items()})
    print(f"{'':22s}params   MACs  time   loss  paper")
    for name in colors:
        with torch.device("meta"):
            whole = T5(T5_PRESETS[name])
            texts = [torch.zeros(1, seq, dtype=torch.long) for seq in (512, 114)]
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            whole(*texts)
        size = sum(p.numel() for p in whole.parameters())
        print(
            f"{name:21s}{size / 1e6:6.1f}M{counter.get_total_flops() / 2e9:6.1f}G"
            f"{taken[name] / taken['t5']:6.2f}{losses[name][-1]:7.3f}{table_7[name]:7.3f}"
        )
    # In the paper the gain over Transformer++ is small, and its authors read it so: what is best for a
    # language model need not be best here. One seed and a few hundred steps of ours settle nothing.
    #
    # ### What it fills in
    #
    # The last model, the best token each time, beside what was cut.
    source, target = (part[:1] for part in held_out)
    written = target[:, :1]
    with torch.no_grad():
        while written.size(1) < target.size(1):
            best = model(source, written)[:, -1].argmax(dim=-1)
            written = torch.cat([written, best[:, None]], dim=1)
    print("source ", show(source[0]))
    print("cut    ", show(target[0]))
    print("written", show(written[0]))
    # It has learned the form, sentinels in their order and a space or a short word behind each, long before
    # it can read.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} Put together again
    # Write the function that makes the text out of a source and its target. What does it need the last
    # sentinel for?
    # :::
    # :::{solution}
    # Cut the target at its sentinels, and put piece $s$ where sentinel $s$ stands in the source. So nothing
    # is lost. The last sentinel it does not need: that one only tells a model that writes when to stop.
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

    rows = corpus.validation[: 100 * SEQ].view(100, SEQ)
    sources, targets = corrupt_spans(rows, VOCAB, dice)
    again = [put_together(*pair) for pair in zip(sources, targets, strict=True)]
    assert again == rows.tolist()
    print(f"{len(again)} texts put together again")

    # That was the last of them. How all these models are related, and what each costs and brings, is drawn in
    # {doc}`/experiments/chapters/family`.
