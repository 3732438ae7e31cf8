r"""
# The Transformer

Encoder and decoder joined, and taught to read dates; then the model that the rest of the book is about,
which is half of it: a stack of blocks that continues a text.

What does it take to turn two stacks of blocks into something that maps one sequence to another? Tokens
must become vectors, which {doc}`embedding` does. The vectors must say where they stand, see
{doc}`positional_encoding`. {doc}`encoder` and {doc}`decoder` do the work. What the decoder hands out has
to become a probability for each token of the vocabulary, which is one matrix and a softmax:

$$P(t_{i+1} \mid t_1 \dots t_i, S) = \operatorname{softmax}(E\,z_i)$$

with $z_i$ the decoder's output at position $i$, and $E$ a matrix with one row a token.

The first half of this chapter builds that, trains it in about a minute, and draws where it looked. It
needs a way to choose words, one after another: greedily, or with a beam. The second half drops the source,
and with it one of the two stacks. A language model predicts the next token of a text from those before it.
Blocks with a causal mask are all that it needs.

Source: {cite:t}`vaswani2017attention`, sections 3, 5.3 and 6.1; {cite:t}`press2017using` for the tied matrix.
"""

import math
from dataclasses import dataclass, fields
from functools import partial
from inspect import signature
from textwrap import wrap

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.decoder import Decoder
from labml_primer.transformer.embedding import Embedding
from labml_primer.transformer.encoder import Encoder, EncoderBlock
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.generation import Past, draw_token
from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
)


class Transformer(nn.Module):
    """
    ## Encoder and decoder

    `source` `[batch, source]` and `target` `[batch, target]`, both of integers, to logits
    `[batch, target, target_vocab]`: at each position of the target, a score for every token that may
    come next. The sizes that are set by default are those of the paper's base model.

    Sequences in a batch are filled up at their end with the token `padding`.

    Raises `ValueError` where `heads` does not divide `d_model`, where `d_model` is odd, and for a sequence
    longer than `max_seq`.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int = 512,
        heads: int = 8,
        d_ff: int = 2048,
        layers: int = 6,
        max_seq: int = 512,
        dropout: float = 0.1,
        padding: int = 0,
    ):
        super().__init__()
        self.padding = padding
        self.source_embedding = Embedding(source_vocab, d_model)
        self.target_embedding = Embedding(target_vocab, d_model)
        # Positions are fixed sines and cosines, so source and target can share them.
        self.positions = PositionalEncoding(d_model, max_seq, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout)
        self.decoder = Decoder(layers, d_model, heads, d_ff, dropout)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The memory `[batch, source, d_model]`, and its mask `[batch, 1, 1, source]`."""
        # Which keys are real is the same question for every head and every query: two axes of one.
        mask = (source != self.padding)[:, None, None, :]
        return self.encoder(self.positions(self.source_embedding(source)), mask), mask

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Logits `[batch, target, target_vocab]`."""
        # Padding at the end of a target is later than all that is real. The causal mask hides it.
        x = self.positions(self.target_embedding(target))
        x = self.decoder(x, memory, memory_mask)
        # The table that turned tokens into vectors turns vectors into scores: $E z$, tied weights. Each
        # score says how well $z$ fits the vector of that token.
        #
        # :::{deviation} the paper, section 3.4
        # It ties three matrices, the embedding of the source as well: its languages share one vocabulary.
        # Ours need not.
        # :::
        return F.linear(x, self.target_embedding.table.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Teacher forcing: the whole target at once, as {doc}`decoder` explains."""
        return self.decode(target, *self.encode(source))


if __name__ == "__main__":
    # How large is the paper's base model? Its vocabulary has about 37,000 tokens (section 5.1), in one
    # table for source, target and output.
    with torch.device("meta"):
        base = Transformer(source_vocab=37_000, target_vocab=37_000)
    parts = {
        "encoder": base.encoder,
        "decoder": base.decoder,
        "one table": base.source_embedding,
    }
    counts = {name: sum(p.numel() for p in m.parameters()) for name, m in parts.items()}
    for name, count in (counts | {"together": sum(counts.values())}).items():
        print(f"{name:10s}{count / 1e6:6.1f} million")
    # Table 3 of the paper says 65 million.


def learning_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    r"""
    ## The learning rate

    It climbs in a straight line for `warmup` steps, then falls with one over the root of the step:

    $$
    \operatorname{rate}(s) = d^{-1/2}\,
      \min\!\big(s^{-1/2},\ s\,w^{-3/2}\big)
    $$

    Both expressions are equal at $s = w$, so the peak is $(d\,w)^{-1/2}$. Why climb at all? Adam divides
    by a running estimate of the gradient's size, which rests on a few batches at first; short steps give
    it time. Wide models take smaller steps.

    `step` counts from 1. Source: {cite:t}`vaswani2017attention`, section 5.3.
    """
    if step < 1:
        raise ValueError(f"step {step}: steps count from 1")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


if __name__ == "__main__":
    # The paper's base model, a wider one, and a longer warm-up. The base model was trained for a hundred
    # thousand steps; these are the first twenty thousand.
    import matplotlib.pyplot as plt

    steps = range(1, 20_001, 50)
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for colour, d_model, warmup, at, above in (
        ("C5", 512, 4000, 4000, 6),
        ("C1", 512, 10_000, 10_000, 6),
        ("C2", 1024, 4000, 12_000, -28),
    ):
        ax.plot(steps, [learning_rate(s, d_model, warmup) for s in steps], color=colour)
        ax.annotate(
            f"d_model {d_model}, warmup {warmup}",
            (at, learning_rate(at, d_model, warmup)),
            xytext=(0, above),
            textcoords="offset points",
            color=colour,
        )
    ax.set(xlabel="step", ylabel="learning rate", ylim=(0, 8e-4))
    plt.show()


if __name__ == "__main__":
    # ## A task: reading dates
    #
    # People write the same day in a dozen ways. Programs want one of them, ISO 8601: `2026-11-21`. Going from
    # the first to the second is translation on a small scale: parts change their order, a word becomes
    # a number, some of the source (the weekday) says nothing that is wanted, and some of the target (the
    # century, where a year has two digits) is said nowhere in the source.
    import copy
    import random
    from datetime import date, timedelta

    # The days are those of the hundred years from 1950, so that two digits name a year. No way of writing is
    # ambiguous: dots mean that the day comes first, and slashes that the year does.
    def ways(day: date) -> list[str]:
        d, m = day.day, day.month
        th = {1: "st", 2: "nd", 3: "rd"}.get(d % 10 if d // 10 != 1 else 0, "th")
        return [
            f"{d} {day:%B %Y}",
            f"{d}{th} {day:%b %Y}",
            f"{day:%b} {d}, {day:%y}",
            f"{day:%B} {d}{th}, {day:%Y}",
            f"{day:%a} {d} {day:%b %y}",
            f"{day:%A} the {d}{th} of {day:%B %Y}",
            f"the {d}{th} of {day:%B} '{day:%y}",
            f"{day:%d-%b-%Y}".upper(),
            f"{day:%d.%m.%Y}",
            f"{d}.{m}.{day:%y}",
            f"{day:%Y/%m/%d}",
            f"{day:%Y%m%d}",
        ]

    # A thousand days are put aside. Training never shows them, in any way of writing.
    rng = random.Random(0)
    days = [date(1950, 1, 1) + timedelta(days=n) for n in range(36_525)]
    rng.shuffle(days)
    held_out, known = days[:1000], days[1000:]
    print(f"{len(known):,} days to learn from, {len(held_out):,} put aside")
    for text in ways(date(2026, 11, 21)):
        print(f"  {text}")

    # Character by character. The first three numbers are padding, start and end.
    import string

    PADDING, START, END = 0, 1, 2
    alphabet = "\0\1\2" + string.digits + string.ascii_letters + " .,'-/"

    def encode(texts: list[str]) -> Tensor:
        width = max(map(len, texts))
        rows = [[alphabet.index(c) for c in text.ljust(width, "\0")] for text in texts]
        return torch.tensor(rows)

    def decode(tokens: Tensor) -> str:
        return "".join(alphabet[i] for i in tokens.tolist() if i > END)

    def draw(days: list[date]) -> tuple[Tensor, Tensor]:
        source = encode([rng.choice(ways(day)) for day in days])
        return source, encode([f"\1{day}\2" for day in days])

    # What the decoder reads is the target without its last token, and what it has to predict is the target
    # without its first. Each target has ten characters and an end, so there is nothing here to leave out of
    # the loss; with targets of several lengths, `ignore_index=PADDING` would be needed.
    torch.manual_seed(0)
    model = Transformer(
        len(alphabet),
        len(alphabet),
        d_model=64,
        heads=4,
        d_ff=256,
        layers=2,
        dropout=0.0,
    )
    # Adam's numbers are the paper's. Its schedule is meant for a hundred thousand steps. For fewer than a
    # thousand the warm-up is shorter, and `lr` halves the whole.
    optimizer = torch.optim.Adam(
        model.parameters(), lr=0.5, betas=(0.9, 0.98), eps=1e-9
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate(step + 1, d_model=64, warmup=300)
    )
    # What is kept in the end is the mean of five states, 20 steps apart. The paper does the same
    # (section 6.1): single states jump about the point that they are near.
    averaged = torch.optim.swa_utils.AveragedModel(model)
    losses = []
    for n in range(1, 801):
        source, target = draw(rng.choices(known, k=64))
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if n == 160:
            beginner = copy.deepcopy(model).eval()
        if n > 700 and n % 20 == 0:
            averaged.update_parameters(model)
    model.load_state_dict(averaged.module.state_dict())

    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.semilogy(losses, color="C5")
    ax.set(xlabel="step", ylabel="loss (nats a character)")
    plt.show()
    # The scale is logarithmic. Until the end single batches jump up and down by a factor, which is what the
    # average is for.


@torch.no_grad()
def greedy_decode(
    model: Transformer, source: Tensor, start: int, end: int, max_length: int
) -> Tensor:
    """
    ## Greedy decoding

    The most probable next token, again and again. `source` is `[batch, source]`; the result is
    `[batch, length]`, with `length` at most `max_length`. It begins after `start` and includes `end`; what
    comes after `end` is padding. It stops when all sequences have ended.

    The model should be in `eval` mode.
    """
    memory, memory_mask = model.encode(source)
    target = source.new_full((source.size(0), 1), start)
    ended = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
    for _ in range(max_length):
        # The source is encoded once. The target is read anew for each token, although all keys and values but
        # the last are known from before: programs that write a lot keep them.
        token = model.decode(target, memory, memory_mask)[:, -1].argmax(dim=-1)
        token = token.masked_fill(ended, model.padding)
        target = torch.cat([target, token[:, None]], dim=1)
        ended |= token == end
        if ended.all():
            break
    return target[:, 1:]


if __name__ == "__main__":
    # ## Has it learned to read?
    #
    # Every held-out day, in every way of writing it. Right means that all ten characters are.
    model.eval()
    total = 0
    for way, example in enumerate(ways(date(2026, 11, 21))):
        source = encode([ways(day)[way] for day in held_out])
        answers = greedy_decode(model, source, START, END, max_length=12)
        hits = sum(decode(a) == str(d) for a, d in zip(answers, held_out, strict=True))
        total += hits
        print(f"{example:37s}{hits / len(held_out):7.1%}")
    print(f"{'all':37s}{total / len(held_out) / (way + 1):7.1%}")

    # And ways of writing that it has never met:
    for text in ("2026, 21 November", "21/NOV/2026", "Nov 2026, the 21st", "21112026"):
        answer = greedy_decode(model, encode([text]), START, END, max_length=12)
        print(f"{text:20s} {decode(answer[0])}")
    # What comes out looks like a date, and need not be the right one. It has learned twelve ways of writing,
    # and what a date is only through them.


if __name__ == "__main__":
    # ## Where it looked
    #
    # Cross-attention says for each character of the output which characters of the input it drew on. A hook
    # takes down what enters the layer; the weights follow from the queries and keys.
    from labml_primer.transformer.attention import attention_weights

    text = "Saturday the 21st of November 2026"
    source, target = encode([text]), encode(["\1" + "2026-11-21"])
    layer = model.decoder.blocks[-1].get_submodule("cross_attention")
    assert isinstance(layer, MultiHeadAttention)
    entered: list[Tensor] = []
    hook = layer.register_forward_pre_hook(
        lambda _, arguments: entered.extend(arguments)
    )
    with torch.no_grad():
        model(source, target)
        hook.remove()
        query, key, value = (
            t.transpose(1, 2) for t in layer.project(entered[0], entered[1])
        )
        weights = attention_weights(query, key)[0].mean(dim=0)  # [target, source]
    fig, ax = plt.subplots(figsize=(7, 2.9), layout="constrained")
    ax.imshow(weights[:10], aspect="auto")
    ax.set_xticks(range(len(text)), list(text))
    ax.set_yticks(range(10), list("2026-11-21"))
    ax.set(xlabel="what it reads", ylabel="what it writes")
    plt.show()
    # The mean of all heads in the last block. Nobody told it where the year stands: that is what the queries
    # of its last two digits have learned to ask. Those of the first two look all over the sentence. For a
    # month, one telling letter of its name can be enough.


@torch.no_grad()
def beam_search(
    model: Transformer,
    source: Tensor,
    start: int,
    end: int,
    max_length: int,
    beams: int = 4,
    alpha: float = 0.6,
) -> tuple[Tensor, Tensor]:
    r"""
    ## Beam search

    The best first token need not begin the best sequence. A beam keeps the `beams` best beginnings,
    extends each by every token, and keeps the best of those.

    A longer sequence has a smaller probability, for it is a product of more factors. To be fair to long
    ones, sequences $Y$ are compared by $\log P(Y \mid S)$ divided by a *length penalty*
    {cite:p}`wu2016google`:

    $$\operatorname{lp}(Y) = \Big(\frac{5 + |Y|}{6}\Big)^{\alpha}$$

    With $\alpha = 0$ it is one. The paper uses four beams and $\alpha = 0.6$ (section 6.1).

    `source` is `[batch, source]`. The result is the sequences `[batch, beams, length]`, best first, and
    their log-probabilities `[batch, beams]`, undivided. As in
    {py:func}`~labml_primer.transformer.model.greedy_decode`, `end` is included and padding follows.
    Where there are fewer sequences than beams, what is missing has log-probability minus infinity.
    """
    if beams < 1:
        raise ValueError(f"beams {beams} is not positive")
    batch = source.size(0)
    memory, memory_mask = (
        t.repeat_interleave(beams, dim=0) for t in model.encode(source)
    )
    target = source.new_full((batch * beams, 1), start)
    # All beams begin alike. If each counted, the same beginning would be found `beams` times, so all but
    # the first start out impossible.
    log_p = torch.full((batch, beams), -math.inf, device=source.device)
    log_p[:, 0] = 0.0
    length = torch.zeros_like(log_p)
    ended = torch.zeros_like(log_p, dtype=torch.bool)
    first_row = torch.arange(batch, device=source.device)[:, None] * beams
    for _ in range(max_length):
        logits = model.decode(target, memory, memory_mask)[:, -1]
        step = logits.float().log_softmax(dim=-1).unflatten(0, (batch, beams))
        # What has ended goes on with padding, which is certain and costs nothing. So it stays in the race
        # with a score that no longer changes, until better ones push it out.
        step = step.masked_fill(ended[..., None], -math.inf)
        step[..., model.padding].masked_fill_(ended, 0.0)
        length += ~ended
        total = log_p[..., None] + step  # [batch, beams, vocab]
        score = total / length_penalty(length, alpha)[..., None]
        # The best of all beams' extensions. Their place in the flat list tells beam and token apart.
        best = score.flatten(1).topk(beams).indices
        beam = best // step.size(-1)
        token = best % step.size(-1)
        # Everything that belongs to a beam moves with it.
        log_p = total.flatten(1).gather(1, best)
        length = length.gather(1, beam)
        ended = ended.gather(1, beam) | (token == end)
        rows = (first_row + beam).flatten()
        target = torch.cat([target[rows], token.view(-1, 1)], dim=1)
        if ended.all():
            break
    return target[:, 1:].unflatten(0, (batch, beams)), log_p


def length_penalty(length: Tensor, alpha: float) -> Tensor:
    """
    ## Length penalty

    The denominator above, for lengths of any shape.
    """
    return ((5 + length) / 6) ** alpha


if __name__ == "__main__":
    # ## Does the beam find better ones?
    #
    # Where a model is sure, the best next character begins the best sequence, and there is nothing to gain.
    # So ask a beginner as well: the same model as it was after 160 steps. A beam of one is greedy decoding.
    texts = [rng.choice(ways(day)) for day in held_out[:500]]
    right = [str(day) for day in held_out[:500]]
    source = encode(texts)
    for name, reader in (("trained", model), ("beginner", beginner)):
        greedy, greedy_log_p = beam_search(reader, source, START, END, 12, beams=1)
        found, log_p = beam_search(reader, source, START, END, 12, beams=4)
        gain = log_p[:, 0] - greedy_log_p[:, 0]
        said = [decode(row[0]) for row in greedy]
        four = [[decode(row) for row in rows] for rows in found]
        print(f"{name}, {len(texts)} dates")
        print(f"  more probable than greedy {(gain > 1e-4).sum():4d}")
        print(f"  less probable             {(gain < -1e-4).sum():4d}")
        rows = list(zip(right, said, four, strict=True))
        print(f"  right: greedy             {sum(s == r for r, s, _ in rows):4d}")
        print(f"  right: the beam's best    {sum(f[0] == r for r, _, f in rows):4d}")
        print(f"  right: one of its four    {sum(r in f for r, _, f in rows):4d}")

    # The date where the beginner gains most from its beam:
    case = int(gain.argmax())
    print(f"{texts[case]!r}, which is {right[case]}")
    print(f"greedy {said[case]:12s} log P {greedy_log_p[case, 0]:6.2f}")
    for text, value in zip(four[case], log_p[case], strict=True):
        print(f"beam   {text:12s} log P {value:6.2f}")
    # More probable is not the same as right: a beam finds what the model believes. And it can lose,
    # though it does not here. The beginning of the greedy answer may fall out of the beam before it has shown
    # what it is worth.


@dataclass(frozen=True)
class Config:
    """
    ## What a language model is made of

    The second half: no source, no encoder, no cross-attention. All that can be chosen is here, and a
    configuration cannot be changed once it is made, so a model and its configuration never disagree.
    `dataclasses.replace(config, d_model=256)` makes another one.

    The last five are classes, and with them as they are, this is the vanilla Transformer.
    {doc}`../primer/primer_ez` is another value for `attention` and `activation`, and nothing else;
    {doc}`../primer/baselines` needs `feed_forward` and `norm`, and {doc}`../primer/primer` another `block`.
    """

    vocab_size: int
    d_model: int = 128
    heads: int = 4
    d_ff: int = 512
    layers: int = 4
    max_seq: int = 128
    dropout: float = 0.0
    attention: type[MultiHeadAttention] = MultiHeadAttention
    activation: type[nn.Module] = nn.ReLU
    feed_forward: type[PositionwiseFeedForward] = PositionwiseFeedForward
    norm: type[nn.Module] = nn.LayerNorm
    block: type[EncoderBlock] = EncoderBlock


class LanguageModel(nn.Module):
    r"""
    ## Language model

    `tokens` `[batch, seq]` to logits `[batch, seq, vocab_size]`: at each position, a score for every token
    that may come next.

    It is called *decoder-only*, since it writes. Its blocks are encoder blocks nonetheless: take
    cross-attention out of {py:class}`~labml_primer.transformer.decoder.DecoderBlock`, and
    {py:class}`~labml_primer.transformer.encoder.EncoderBlock` with a causal mask is what is left.

    Raises `ValueError` where `heads` does not divide `d_model`, and for more than `max_seq` tokens.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        # One matrix $E$ at both ends: a row is a token's vector when it is read, and the direction that
        # scores it when it is predicted {cite:p}`press2017using`. It saves `vocab_size * d_model` parameters,
        # and each row learns at every step, whether its token occurs in the text or not.
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        # How large should the rows be? The token just read is still in the stream when it comes out of the
        # last norm as $z$ with $\lVert z \rVert = \sqrt{d}$, and meets its own row $e$ there. With components
        # of size $\sigma$, $\lVert e \rVert \approx \sigma\sqrt{d}$, so $e \cdot z$ can reach $\sigma d$. At
        # PyTorch's $\sigma = 1$ a new model would be certain that each token is repeated. $0.02$ keeps that
        # score below three at $d = 128$.
        nn.init.normal_(self.embedding.weight, std=0.02)
        # Learned positions are as small as the vectors they are added to, so nothing has to be scaled.
        #
        # :::{deviation} the paper, sections 3.4 and 3.5
        # There the embedding is multiplied by $\sqrt{d}$, to hold its own beside fixed sines and cosines.
        # :::
        self.positions = LearnedPositionalEncoding(
            config.d_model, config.max_seq, config.dropout
        )
        # An attention whose weights belong to positions, as in {doc}`../compared/synthesizer`, asks how many
        # there are.
        asked = signature(config.attention).parameters
        sizes = {"max_seq": config.max_seq} if "max_seq" in asked else {}
        self.blocks: nn.ModuleList = nn.ModuleList(
            config.block(
                config.d_model,
                config.heads,
                config.d_ff,
                config.dropout,
                partial(config.attention, **sizes),
                config.activation,
                config.feed_forward,
                config.norm,
            )
            for _ in range(config.layers)
        )
        self.norm = config.norm(config.d_model)

    def forward(self, tokens: Tensor, past: Past | None = None) -> Tensor:
        """
        Position $i$ of the result has seen tokens 0 to $i$. With a `past`, `tokens` go on where the last
        call ended.
        """
        start = 0 if past is None else past.length
        # There are no vectors for positions that were never trained.
        if start + tokens.size(1) > self.config.max_seq:
            raise ValueError(
                f"{start + tokens.size(1)} tokens are more than "
                f"max_seq {self.config.max_seq}"
            )
        x = self.positions(self.embedding(tokens), start)
        for block in self.blocks:
            x = block(x, causal=True, past=past)
        if past is not None:
            past.length += tokens.size(1)
        return F.linear(self.norm(x), self.embedding.weight)

    @torch.no_grad()
    def generate(
        self,
        tokens: Tensor,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        cached: bool = True,
    ) -> Tensor:
        """
        `tokens` `[batch, seq]`, and `max_new_tokens` more behind them. How they are chosen, and what is
        cached, is the matter of {doc}`generation`. With `temperature=0` it is the best token each time.

        A text may outgrow `max_seq`: the model then reads its last `max_seq` tokens. Dropout is off
        meanwhile. Raises `ValueError` where there is nothing to go on from.
        """
        if tokens.size(1) == 0:
            raise ValueError("no tokens: a model needs one to go on from")
        max_seq = self.config.max_seq
        past = Past(min(max_seq, tokens.size(1) + max_new_tokens))
        training = self.training
        self.eval()
        try:
            for _ in range(max_new_tokens):
                # Once the text is too long, each step moves every token to another position, and nothing that
                # was kept is worth anything.
                if cached and tokens.size(1) <= max_seq:
                    logits = self(tokens[:, past.length :], past)
                else:
                    logits = self(tokens[:, -max_seq:])
                token = draw_token(logits[:, -1], temperature, top_k, top_p, generator)
                tokens = torch.cat([tokens, token[:, None]], dim=1)
        finally:
            self.train(training)
        return tokens

    def costs(self) -> dict[str, tuple[int, int]]:
        r"""
        Part by part: its parameters, and its multiplications, each with an addition, for a token, in the
        mean over a text of `max_seq`. What is done feature by feature, such as norms, is left out.
        """
        config = self.config
        costs: dict[str, tuple[int, int]] = {}
        for name, weight in self.named_parameters():
            # Layers of all blocks count together: `blocks.3.feed_forward.expand.weight` is `feed_forward`'s.
            part = name.split(".")[2 if name.startswith("blocks") else 0]
            part = "norms" if part.endswith("norm") else part
            # A token meets each number of a matrix once. Positions are looked up, biases added. The kernels
            # of a convolution, `[kernel_size, channels]`, meet every feature, even where heads share them. Of
            # a stack of experts, `[experts, d_in, d_out]`, a token meets one.
            products = weight.numel() if weight.dim() > 1 else 0
            if "positions" in name or name.endswith("bias"):
                products = 0
            elif "_conv." in name and weight.dim() == 2:
                products = weight.size(0) * config.d_model
            elif part == "feed_forward" and weight.dim() > 2:
                products = weight[0].numel()
            before = costs.get(part, (0, 0))
            costs[part] = (before[0] + weight.numel(), before[1] + products)
        # Two products with each key it looks at, for the score and for the sum of values; or one, where
        # scores come from elsewhere. In the mean that is half of all keys.
        each = sum(
            getattr(module, "products_a_key", 2)
            for module in self.modules()
            if isinstance(module, MultiHeadAttention)
        )
        looking = each * config.d_model * (config.max_seq + 1) // 2
        return costs | {"scores and sums": (0, looking)}

    def extra_repr(self) -> str:
        """What `print(model)` says before it lists the modules."""
        sizes, classes = [], []
        for field in fields(self.config):
            value = getattr(self.config, field.name)
            if isinstance(value, type):
                classes.append(f"{field.name} {value.__name__}")
            else:
                sizes.append(f"{field.name} {value}")
        costs = self.costs()
        total = [sum(column) for column in zip(*costs.values(), strict=True)]
        lines = [", ".join(sizes), *wrap(", ".join(classes), 80)]
        lines.append(f"{'':16s}{'parameters':>12s}{'multiply-adds a token':>23s}")
        for part, (parameters, products) in [*costs.items(), ("all", total)]:
            lines.append(f"{part:16s}{parameters:12,}{products:23,}")
        return "\n".join(lines)


if __name__ == "__main__":
    # ## How many parameters?
    #
    # With $V$ tokens, $n$ positions and $N$ blocks, using the count of a block from {doc}`encoder`:
    #
    # $$
    # \begin{aligned}
    # &(V + n)\,d + 2\,d \\
    # &+ N\,(4d^2 + 2\,d\,d_{\mathrm{ff}} + 9\,d + d_{\mathrm{ff}})
    # \end{aligned}
    # $$
    from labml_primer.training import load_corpus

    corpus = load_corpus()
    config = Config(corpus.vocab_size)
    language_model = LanguageModel(config)
    print(language_model.extra_repr())
    V, d, d_ff = config.vocab_size, config.d_model, config.d_ff
    formula = (V + config.max_seq) * d + 2 * d
    formula += config.layers * (4 * d**2 + 2 * d * d_ff + 9 * d + d_ff)
    counted = sum(p.numel() for p in language_model.parameters())
    print(f"counted {counted:,}, by the formula {formula:,}")
    # `print(language_model)` says the same, and lists the modules below it.


if __name__ == "__main__":
    # ## The loss before the first step
    #
    # A model that knows nothing should give each token the same chance, which costs $\log V$ nats. A loss
    # far above it means that the first part of training goes into unlearning what nobody taught.
    tokens = corpus.validation[: 16 * 129].view(16, 129)
    print(f"log V {math.log(config.vocab_size):.3f}")
    for label, std in (("1", 1.0), ("1 / sqrt(d)", d**-0.5), ("0.02", 0.02)):
        torch.manual_seed(0)
        language_model = LanguageModel(config)
        nn.init.normal_(language_model.embedding.weight, std=std)
        with torch.no_grad():
            logits = language_model(tokens[:, :-1])
        nats = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
        again = (logits.argmax(dim=-1) == tokens[:, :-1]).float().mean()
        print(
            f"rows of size {label:12s} loss {nats:7.3f}, repeats the token {again:4.0%}"
        )
    # At size one it is as the note above says: every guess is the token itself.


if __name__ == "__main__":
    # ## A few seconds of Shakespeare
    #
    # A small one, on the plays, character by character. What {doc}`../primer/primer_ez` compares is made in
    # the same way, twice as wide and twice as deep, and trained for longer.
    from labml_primer.training import sample, train

    torch.manual_seed(0)
    language_model = LanguageModel(
        Config(corpus.vocab_size, d_model=64, d_ff=256, layers=2, max_seq=64)
    )
    history = train(
        language_model, corpus, name="first_words", steps=300, seq=64, evaluations=5
    )
    for step, nats in zip(history.steps, history.validation_loss, strict=True):
        print(f"step {step:4d}  {nats:.3f} nats a character on plays it has not read")

    # What it writes:
    print(sample(language_model, corpus, prompt="ROMEO.\n", length=200, seed=0))


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} Half of the peak
    # The paper's base model, $d = 512$ with a warm-up of 4000 steps, is trained for 100,000. At which two
    # steps is the learning rate half of its highest?
    # :::
    # :::{solution}
    # The way up is a straight line: at half of the warm-up, step 2000. The way down is one over a root: where
    # the root has doubled, at four times the warm-up, step 16,000. The other 84,000 steps are run at less.
    # :::
    peak = learning_rate(4000, d_model=512)
    assert peak == max(learning_rate(step, d_model=512) for step in range(1, 100_001))
    halves = [
        step
        for step in range(1, 100_001)
        if math.isclose(learning_rate(step, d_model=512), peak / 2)
    ]
    print(f"the peak is {peak:.1e}; half of it at steps", *halves)
    assert halves == [2000, 16_000]

    # How it chose these letters, and how it can do so without reading all of them again for each, is in
    # {doc}`generation`.
