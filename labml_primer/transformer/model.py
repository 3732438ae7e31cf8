r"""
# The Transformer

Encoder and decoder together, trained to read dates.

How do two stacks of blocks become a model that maps one sequence to another? {doc}`embedding` turns tokens
into vectors, and {doc}`positional_encoding` adds their positions. {doc}`encoder` reads the source, and
{doc}`decoder` reads the target so far. Then one matrix and a {term}`softmax` turn the decoder's output into a
probability for each token of the {term}`vocabulary`:

$$P(t_{i+1} \mid t_1 \dots t_i, S) = \operatorname{softmax}(z_i E^\top)$$

where $t_1 \dots t_i$ are the target's tokens so far, $S$ is the source, $z_i$ is the decoder's output at
$t_i$, a vector `[d_model]`, $z_0$ the one at the start token, and $E$ is a matrix with one row per token,
`[vocab_size, d_model]`. So $z_i E^\top$ has one number per token, its logit.

This chapter builds the model, trains it in about a minute, and shows what it attends to. Most of the book
after it is about one half of it, a stack of blocks that continues a text: {doc}`language_model`.

:::{picture} transformer
:::

Source: {cite:t}`vaswani2017attention`, sections 3, 5.3 and 6.1; {cite:t}`press2017using` for the tied matrix.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.decoder import Decoder
from labml_primer.transformer.embedding import Embedding
from labml_primer.transformer.encoder import Encoder
from labml_primer.transformer.positional_encoding import PositionalEncoding


class Transformer(nn.Module):
    """
    ## Encoder and decoder

    Map `source` `[batch, source]` and `target` `[batch, target]`, both of integers, to {term}`logits`
    `[batch, target, target_vocab]`: at each position of the target, a score for every possible next token.
    The default sizes are those of the paper's base model. Sequences in a batch are padded at their end with
    the token `padding`.

    Raises `ValueError` if `heads` does not divide `d_model`, if `d_model` is odd, and for a sequence longer
    than `max_seq`.
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
        """Return the memory `[batch, source, d_model]` and its mask `[batch, 1, 1, source]`."""
        # The same keys are padding for every head and every query, so two axes of the mask have size one.
        mask = (source != self.padding)[:, None, None, :]
        return self.encoder(self.positions(self.source_embedding(source)), mask), mask

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Return logits `[batch, target, target_vocab]`."""
        # Padding at the end of a target is later than every real token, so the causal mask hides it.
        x = self.positions(self.target_embedding(target))
        x = self.decoder(x, memory, memory_mask)
        # The table that turned tokens into vectors also turns vectors into logits, $z E^\top$. These are
        # called *tied weights*. A logit is the product of $z$ with the vector of that token.
        #
        # :::{deviation} the paper, section 3.4
        # It ties three matrices, including the embedding of the source, because its languages share one
        # vocabulary. Here source and target may have different ones.
        # :::
        return F.linear(x, self.target_embedding.table.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Predict the whole target at once, by {term}`teacher forcing` ({doc}`decoder`)."""
        return self.decode(target, *self.encode(source))


if __name__ == "__main__":
    # How large is the paper's base model? Its vocabulary has about 37,000 tokens (section 5.1), in one table
    # for source, target and output. The sum is close to the 65 million parameters of the paper's Table 3.
    from IPython.display import display

    from labml_primer.training.table import Table

    with torch.device("meta"):
        base = Transformer(source_vocab=37_000, target_vocab=37_000)
    parts = {
        "encoder": base.encoder,
        "decoder": base.decoder,
        "one table": base.source_embedding,
    }
    counts = {name: sum(p.numel() for p in m.parameters()) for name, m in parts.items()}
    counts["together"] = sum(counts.values())
    display(
        Table(
            ["part", "million parameters"],
            [[name, f"{count / 1e6:.1f}"] for name, count in counts.items()],
        )
    )


def learning_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    r"""
    ## The learning rate

    The {term}`learning rate` rises linearly for `warmup` steps, then falls with one over the square root of
    the step, as in {doc}`../training/loop`. At step $s$, with $w$ for `warmup` and $d$ for `d_model`:

    $$
    \operatorname{rate}(s) = d^{-1/2}\,
      \min\!\big(s^{-1/2},\ s\,w^{-3/2}\big)
    $$

    Both expressions are equal at $s = w$, so the peak is $(d\,w)^{-1/2}$, lower for wide models.

    `step` counts from 1; raises `ValueError` if it is less.

    Source: {cite:t}`vaswani2017attention`, section 5.3.
    """
    if step < 1:
        raise ValueError(f"step {step}: steps count from 1")
    rate: float = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    return rate


if __name__ == "__main__":
    # The learning rate in the first 20,000 of 100,000 steps, for the paper's base model (grey), for a wider
    # model (blue), and with a longer warm-up (orange). Both changes lower the peak. After the warm-up, the
    # grey and the orange curve are the same.
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
    # People write dates in a dozen formats, and programs in one, ISO 8601: `2026-11-21`. Converting them is
    # translation on a small scale: parts change their order, and a word becomes a number. Some of the source
    # (the weekday) is not needed, and some of the target (the century, if the year has two digits) is not in
    # the source.
    import random
    from datetime import date, timedelta

    # The days are from the years 1950 to 2049, so two digits identify a year. No format is ambiguous: with
    # dots the day comes first, with slashes the year.
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

    # Hold out 500 days, which training never shows in any format.
    rng = random.Random(0)
    days = [date(1950, 1, 1) + timedelta(days=n) for n in range(36_525)]
    rng.shuffle(days)
    held_out, known = days[:500], days[500:]
    print(f"{len(known):,} days to learn from, {len(held_out):,} held out")
    for text in ways(date(2026, 11, 21)):
        print(f"  {text}")

    # Tokens are characters. Tokens 0, 1 and 2 are padding, start and end.
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

    # A small model, with the paper's settings for Adam. The paper's schedule is meant for 100,000 steps; for
    # 800, the warm-up is shorter, and `lr` halves all rates.
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
    optimizer = torch.optim.Adam(
        model.parameters(), lr=0.5, betas=(0.9, 0.98), eps=1e-9
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate(step + 1, d_model=64, warmup=300)
    )
    averaged = torch.optim.swa_utils.AveragedModel(model)
    losses = []
    for n in range(1, 801):
        # The decoder reads the target without its last token and predicts the target without its first. Every
        # target has ten characters and an end, so none is padded. With targets of several lengths, the loss
        # would need `ignore_index=PADDING`.
        source, target = draw(rng.choices(known, k=32))
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        # The final weights are the mean of five checkpoints, 20 steps apart; the paper averages its last
        # five, too (section 6.1). Single checkpoints differ by the noise of their last batches, and the mean
        # of several is meant to have less of it.
        if n > 700 and n % 20 == 0:
            averaged.update_parameters(model)
    _ = model.load_state_dict(averaged.module.state_dict())

    # The loss by step, on a logarithmic scale. Even at the end it varies by a large factor between batches.
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.semilogy(losses, color="C5")
    ax.set(xlabel="step", ylabel="loss (nats per character)")
    plt.show()


@torch.no_grad()
def greedy_decode(
    model: Transformer, source: Tensor, start: int, end: int, max_length: int
) -> Tensor:
    """
    ## Greedy decoding

    Repeatedly choose the most probable next token, until all sequences have ended. `source` is
    `[batch, source]`; the result is `[batch, length]`, with `length` at most `max_length`. It excludes
    `start`. A sequence includes `end`, followed by padding, unless `max_length` is reached first.

    Raises `ValueError` for a negative `max_length`, in training mode, where dropout would change the answers,
    and for a logit that is `nan`.
    """
    if max_length < 0:
        raise ValueError(f"max_length {max_length} is negative")
    if any(layer.training for layer in model.modules()):
        raise ValueError("the model is in training mode; call model.eval() first")
    memory, memory_mask = model.encode(source)
    target = source.new_full((source.size(0), 1), start)
    ended = torch.zeros(source.size(0), dtype=torch.bool, device=source.device)
    for _ in range(max_length):
        # The source is encoded once. The whole target is computed again for each token, although only the
        # keys and values of its last token are new. For models without an encoder, {doc}`generation` caches
        # the others.
        logits = model.decode(target, memory, memory_mask)[:, -1]
        if logits.isnan().any():
            raise ValueError("a logit is nan, so no token is the most probable one")
        token = logits.argmax(dim=-1).masked_fill(ended, model.padding)
        target = torch.cat([target, token[:, None]], dim=1)
        ended |= token == end
        if ended.all():
            break
    return target[:, 1:]


if __name__ == "__main__":
    # ## Accuracy on held-out days
    #
    # Test every held-out day in every format. An answer is right if all ten characters are. Almost all
    # answers are right; the longest format is the hardest.
    model.eval()
    examples, accuracies = ways(date(2026, 11, 21)), []
    for way in range(len(examples)):
        source = encode([ways(day)[way] for day in held_out])
        answers = greedy_decode(model, source, START, END, max_length=12)
        hits = sum(decode(a) == str(d) for a, d in zip(answers, held_out, strict=True))
        accuracies.append(hits / len(held_out))
    overall = sum(accuracies) / len(accuracies)
    display(
        Table(
            ["format", "accuracy"],
            [
                [format_, f"{accuracy:.1%}"]
                for format_, accuracy in zip(
                    [*examples, "all"], [*accuracies, overall], strict=True
                )
            ],
        )
    )

    # Now four formats that it has never seen. The answers have the form of a date, but they are not the 21st
    # of November 2026: the model has learned twelve formats, not how dates are written in general.
    for text in ("2026, 21 November", "21/NOV/2026", "Nov 2026, the 21st", "21112026"):
        answer = greedy_decode(model, encode([text]), START, END, max_length=12)
        print(f"{text:20s} {decode(answer[0])}")


if __name__ == "__main__":
    # ## What does it attend to?
    #
    # The weights of cross-attention show where in the input the model looks to predict each character of the
    # output. Each row of the figure is a character of the output, each column one of the input, and the
    # weights are the mean over the heads of the last block. The last two digits of the year and the day find
    # their digits in the input. The first two digits of the year, which are always 19 or 20, attend to the
    # whole input. The digits of the month attend mostly to one letter, a *v* that no other month has.
    #
    # A hook records the inputs of the layer, and the weights are computed from its queries and keys.
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
    ax.set(xlabel="input", ylabel="output")
    plt.show()


if __name__ == "__main__":
    # ## In short
    #
    # - The Transformer is embedding, positions, encoder, decoder, and the embedding again to score tokens.
    # - It is trained by teacher forcing, with a learning rate that warms up. The last checkpoints are
    #   averaged.
    # - Greedy decoding takes the most probable token at each step.
    # - Trained for a minute, it converts dates that it has not seen, and its cross-attention shows where it
    #   looks.
    #
    # ## Exercise
    #
    # :::{exercise} Half of the peak
    # The paper's base model has $d = 512$ and 4000 steps of warm-up, and is trained for 100,000 steps. At
    # which two steps is the learning rate half of its maximum?
    # :::
    # :::{solution}
    # It rises linearly, so it is half of the peak halfway through the warm-up, at step 2000. It falls with
    # one over the root of the step, so it is half again when the root has doubled, at four times the
    # warm-up, step 16,000. The remaining 84,000 steps have a smaller rate.
    # :::
    import math

    peak = learning_rate(4000, d_model=512)
    assert peak == max(learning_rate(step, d_model=512) for step in range(1, 100_001))
    halves = [
        step
        for step in range(1, 100_001)
        if math.isclose(learning_rate(step, d_model=512), peak / 2)
    ]
    print(f"the peak is {peak:.1e}; half of it at steps", *halves)
    assert halves == [2000, 16_000]

    # :::{exercise} Write it: the next token
    # Write one step of greedy decoding. `logits` is `[batch, target, vocab_size]`. Return for each row the
    # most probable next token, `[batch]`, or `padding` if the row has `ended`.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def next_token(logits: Tensor, ended: Tensor, padding: int) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    read = [[0.0, 5.0, 1.0], [0.0, 5.0, 1.0]]  # the scores at two earlier positions
    scores = torch.tensor([[*read, [2.0, 0.0, 3.0]], [*read, [4.0, 0.0, 3.0]]])
    neither, second = torch.tensor([False, False]), torch.tensor([False, True])
    cases: list[Case] = [
        ((scores, neither, 1), [2, 0], "the last position predicts the next token"),
        ((scores, second, 1), [2, 1], "the second row has ended, so it is padded"),
    ]
    check_answer(next_token, cases)

    # :::{solution}
    # Earlier positions predict tokens that are already there.
    # :::
    def solved(logits: Tensor, ended: Tensor, padding: int) -> Tensor:
        return logits[:, -1].argmax(dim=-1).masked_fill(ended, padding)

    assert check_answer(solved, cases)

    # Half of this model is enough to write text: {doc}`language_model`.
