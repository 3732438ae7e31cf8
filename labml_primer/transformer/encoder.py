r"""
# Encoder

A stack of blocks that reads a text: in each block, attention gathers information from all positions, and a
feed-forward layer processes it.

How do attention, feed-forward layer and norm make a network that reads a text? A {term}`block` takes the
vectors $X$ of a sequence and adds the result of attention to them, then that of the feed-forward layer, with
a layer norm (LN, {doc}`normalization`) before each:

$$
\begin{aligned}
Y &= X + \operatorname{MultiHead}(\operatorname{LN}(X), \operatorname{LN}(X)) \\
Z &= Y + \operatorname{FFN}(\operatorname{LN}(Y))
\end{aligned}
$$

The shape of the {term}`residual stream`, `[batch, seq, d_model]`, never changes, so any number of blocks can
be stacked.

An {term}`encoder` is not causal: the first word can attend to the last. That suits a text that is known in
full, such as a sentence to translate. Generating text takes a {doc}`decoder`.

:::{picture} encoder
:::

Source: {cite:t}`vaswani2017attention`, section 3.1; the order of the layers is that of the slides, and of
{cite:t}`xiong2020layer`.
"""

from torch import Tensor, nn

from labml_primer.transformer.attention import (
    MultiHeadAttention,
    check_mask,
    check_vectors,
)
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


class EncoderBlock(nn.Module):
    r"""
    ## Encoder block

    Map `[batch, seq, d_model]` to the same shape. {term}`Self-attention` moves information between positions;
    the feed-forward layer works on each position separately.

    Raises `ValueError` if `heads` does not divide `d_model`.
    """

    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads, dropout)
        # Each of the two sub-layers has its own norm. PyTorch's computes the same as
        # {py:class}`~labml_primer.transformer.normalization.LayerNorm`, in one fused operation.
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """
        `mask`, `[batch, heads, seq, seq]`, is true where a position may attend to another. Each dimension may
        be one; for a padded batch it is `[batch, 1, 1, seq]`.
        """
        # Normalize, attend, add: $Y = X + \operatorname{MultiHead}(\operatorname{LN}(X))$.
        #
        # :::{deviation} the paper, section 3.1
        # The paper normalizes *after* adding: $\operatorname{LN}(X + \operatorname{MultiHead}(X))$,
        # known as {term}`post-norm`. The slides' code, the code that the authors released later, and most
        # models since use {term}`pre-norm`, as here. {doc}`normalization` measures the difference.
        # :::
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y, mask))
        # With pre-norm, the path from `x` to the result consists of additions only. So the gradient at the
        # last block's output reaches every block unchanged, and each layer on the way adds to it.
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return x


if __name__ == "__main__":
    # ## Padding must not matter
    #
    # Sentences differ in length, but a batch is one rectangular tensor, so short ones are filled up with
    # {term}`padding`. Here the first sequence has nine real positions and the second five. The mask hides
    # the keys at padding positions.
    import torch

    torch.manual_seed(0)
    block = EncoderBlock(d_model=64, heads=4, d_ff=256)
    x = torch.randn(2, 9, 64)
    lengths = torch.tensor([9, 5])
    mask = (torch.arange(9) < lengths[:, None])[:, None, None, :]

    # Compare the results at the five real positions with those of the short sequence alone. With the mask
    # they are equal up to rounding, whatever the padding contains. Without it they differ.
    alone = block(x[1:, :5])
    other = x.clone()
    other[1, 5:] = 100.0
    for name, result in (
        ("padded", block(x, mask)),
        ("other padding", block(other, mask)),
        ("no mask", block(x)),
    ):
        print(f"{name:13s}  largest change {(result[1:, :5] - alone).abs().max():.1e}")
    # The block also computes outputs at padding positions. They are never used, because the next block has
    # the same mask, and the loss leaves them out.


class Encoder(nn.Module):
    r"""
    ## Encoder

    Apply $N$ blocks, each with its own weights, and a final norm. Maps `[batch, seq, d_model]` to the same
    shape. The next chapters call the output the *memory*, because the decoder looks things up in it.
    """

    def __init__(
        self, layers: int, d_model: int, heads: int, d_ff: int, dropout: float = 0.0
    ):
        super().__init__()
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, heads, d_ff, dropout) for _ in range(layers)
        )
        # With pre-norm the stream itself is never normalized, so it grows with depth and with training. One
        # norm at the end makes the output independent of that growth. With post-norm, each block ends with a
        # norm already.
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """
        `mask` is as for the block, and the same for all layers. Raises `ValueError` if `x` has other
        dimensions, and `TypeError` for another kind of mask.
        """
        check_vectors(x)
        check_mask(mask)
        for block in self.blocks:
            x = block(x, mask)
        x = self.norm(x)
        return x


if __name__ == "__main__":
    # ## Every position sees every other
    #
    # How much does seeing both sides help? Hide each `a`, `e`, `i`, `o` and `u` of a text, and train a small
    # encoder to predict them. Train a second one with the same initial weights and the same examples, but
    # with a mask that hides all later positions. If the first is better, it is because it sees the text on
    # the right.
    from torch.nn import functional as F

    from labml_primer.training import load_corpus
    from labml_primer.transformer.embedding import Embedding

    corpus = load_corpus()
    seq, d_model = 16, 64
    vowels = corpus.encode("aeiou")
    deleted = corpus.vocab_size

    # The input has one more symbol, for a hidden vowel. The output has five logits per position, one for
    # each vowel.
    class VowelReader(nn.Module):
        def __init__(self, mask: Tensor | None):
            super().__init__()
            self.embedding = Embedding(corpus.vocab_size + 1, d_model)
            self.positions = nn.Parameter(torch.randn(seq, d_model))
            self.encoder = Encoder(layers=2, d_model=d_model, heads=4, d_ff=4 * d_model)
            self.output = nn.Linear(d_model, len(vowels))
            self.mask = mask

        def forward(self, text: Tensor) -> Tensor:
            hidden = text.masked_fill(torch.isin(text, vowels), deleted)
            x = self.embedding(hidden) + self.positions[: text.size(1)]
            logits: Tensor = self.output(self.encoder(x, self.mask))
            return logits

    # Windows of 16 characters at random places. Only vowels count in the loss.
    def windows(text: Tensor, batch: int, generator: torch.Generator) -> Tensor:
        start = torch.randint(len(text) - seq, (batch, 1), generator=generator)
        return text[start + torch.arange(seq)]

    def learn(reader: VowelReader, steps: int = 700) -> list[float]:
        generator = torch.Generator().manual_seed(1)
        optimizer = torch.optim.AdamW(reader.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
        losses = []
        for _ in range(steps):
            text = windows(corpus.train, 32, generator)
            at = torch.isin(text, vowels)
            answer = torch.searchsorted(vowels, text[at])
            loss = F.cross_entropy(reader(text)[at], answer)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        return losses

    # Two models from the same seed. The mask that hides later positions is a lower triangle.
    readers, losses = {}, {}
    past = torch.ones(seq, seq, dtype=torch.bool).tril()
    for name, allowed in (("sees everything", None), ("sees the left", past)):
        torch.manual_seed(0)
        readers[name] = VowelReader(allowed)
        losses[name] = learn(readers[name])

    # Accuracy on plays that were not in training, next to that of always answering "e". The encoder that
    # sees both sides gets clearly more vowels right.
    test = windows(corpus.validation, 2000, torch.Generator().manual_seed(2))
    at = torch.isin(test, vowels)
    share = (test[at] == corpus.encode("e")).float().mean()
    print(f"{'always e':16s} {share:.1%} of {at.sum():,} vowels")
    with torch.no_grad():
        for name, reader in readers.items():
            right = vowels[reader(test)[at].argmax(-1)] == test[at]
            print(f"{name:16s} {right.float().mean():.1%}")

    # Two lines of Macbeth, one of those plays, with the vowels that each model predicts. A line break is
    # shown as `|`.
    line = "Double, double toil and trouble;\nFire burn, and cauldron bubble."
    text = corpus.encode(line).view(-1, seq)
    at = torch.isin(text, vowels)
    shown = line.replace("\n", "|")
    print(f"{'':16s} {''.join('_' if c in 'aeiou' else c for c in shown)}")
    with torch.no_grad():
        for name, reader in readers.items():
            guess = torch.where(at, vowels[reader(text).argmax(-1)], text)
            words = corpus.decode(guess.flatten()).replace("\n", "|")
            print(f"{name:16s} {words}")

    # The loss of both by step. Grey lines are single batches, coloured lines the mean of 25. The model that
    # sees only the left (orange) is ahead at first, probably because the other has to learn which side is
    # which. Then it hardly improves, while the one that sees everything (blue) continues to.
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for colour, (name, values) in zip(("C2", "C1"), losses.items(), strict=True):
        smooth = torch.tensor(values).unfold(0, 25, 1).mean(-1)
        ax.plot(values, color="C5", alpha=0.25, linewidth=0.5)
        ax.plot(range(24, len(values)), smooth, color=colour)
        ax.annotate(
            name,
            (len(values), smooth[-1]),
            xytext=(4, 0),
            textcoords="offset points",
            color=colour,
            verticalalignment="center",
        )
    ax.set(xlabel="step", ylabel="loss (nats per vowel)", xlim=(0, len(values) * 1.25))
    plt.show()


if __name__ == "__main__":
    # ## The size of the residual stream
    #
    # :::{deeper}
    # It grows with depth and with training, and the last norm undoes that.
    # :::
    #
    # Each block adds a vector to the stream. Let the *size* of a vector be the root mean square of its
    # components. Before training, the added vectors are almost independent, so their squared sizes add up. If
    # each has size $a$, a stream that starts at size one has, after $n$ blocks, the size
    #
    # $$\sqrt{1 + n\,a^2}.$$
    #
    # Compare this with 24 untrained blocks:
    torch.manual_seed(0)
    deep = Encoder(layers=24, d_model=64, heads=4, d_ff=256)

    def size(x: Tensor) -> float:
        return x.square().mean().sqrt().item()

    x = torch.randn(16, 32, 64)
    stream, added = [size(x)], []
    with torch.no_grad():
        for layer in deep.blocks:
            y = layer(x)
            added.append(size(y - x))
            stream.append(size(y))
            x = y

    # The grey line is the size of the stream, and the orange line that of the vector each block adds. The
    # dashed line is the formula, with the mean of $a^2$ over all blocks: it should follow the grey one.
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    ax.plot(stream, "o-", color="C5", markersize=3)
    ax.plot(range(1, 25), added, "o-", color="C1", markersize=3)
    squared = torch.tensor(added).square().mean()
    ax.plot((1 + torch.arange(25) * squared).sqrt(), "--", color="C2", linewidth=1)
    ax.text(
        12, stream[12] + 0.15, "the stream", color="C5", horizontalalignment="right"
    )
    ax.text(12, added[11] + 0.1, "added by one block", color="C1")
    ax.set(xlabel="blocks passed", ylabel="size", ylim=(0, 2))
    plt.show()

    # Training makes the added vectors larger. The table has the sizes in the two-block model that sees
    # everything, before and after training. In the last column, the final norm has brought both back to about
    # one. Without it, the output layer would receive vectors whose size depends on depth, text and position.
    from IPython.display import display

    from labml_primer.training.table import Table

    torch.manual_seed(0)
    table = []
    for name, reader in (
        ("untrained", VowelReader(None)),
        ("trained", readers["sees everything"]),
    ):
        with torch.no_grad():
            x = reader.embedding(test.masked_fill(torch.isin(test, vowels), deleted))
            x = x + reader.positions
            sizes = [size(x)]
            for layer in reader.encoder.blocks:
                x = layer(x)
                sizes.append(size(x))
            sizes.append(size(reader.encoder.norm(x)))
        table.append([name, *(f"{value:.2f}" for value in sizes)])
    display(
        Table(
            ["reader", "input", "after block 1", "after block 2", "after the norm"],
            table,
        )
    )


if __name__ == "__main__":
    # ## In short
    #
    # - A block is self-attention and a feed-forward layer, each with a norm before it and its output added to
    #   the residual stream.
    # - An encoder is a stack of blocks and a final norm. Every position sees every other, which helps to fill
    #   gaps in a text.
    # - A mask keeps padding from changing the results at real positions.
    # - The stream grows with depth and with training; the final norm makes its size about one.
    #
    # ## Exercise
    #
    # :::{exercise} A block that does nothing
    # Make a block return its input exactly, by setting as few of its parameter tensors as possible to zero.
    # Can it still learn?
    # :::
    # :::{solution}
    # Four tensors: weight and bias of the last linear map of each layer, `attention.output` and
    # `feed_forward.contract`. They learn from the first step. All other parameters have a gradient of zero
    # until these four have changed. Deep networks are often initialized in this way.
    # :::
    block = EncoderBlock(d_model=64, heads=4, d_ff=256)
    with torch.no_grad():
        for name, weight in block.named_parameters():
            if name.startswith(("attention.output", "feed_forward.contract")):
                weight.zero_()
    x = torch.randn(2, 9, 64)
    assert torch.equal(block(x), x)
    (block(x) * torch.randn(2, 9, 64)).sum().backward()
    gradients = {name: w.grad for name, w in block.named_parameters()}
    learning = [n for n, grad in gradients.items() if grad is not None and grad.any()]
    print("learn at once:", *learning, sep="\n  ")
    assert len(learning) == 4

    # :::{exercise} Write it: a block
    # Write the block from its parts. `attend`, `process` and `norm` are functions of one tensor:
    # self-attention, the feed-forward layer and, for both, the norm.
    # :::
    from collections.abc import Callable

    from labml_primer.training.exercises import Case, check_answer

    Layer = Callable[[Tensor], Tensor]

    def apply_block(x: Tensor, attend: Layer, process: Layer, norm: Layer) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    one, same, double = torch.ones(1), (lambda y: y), (lambda y: 2 * y)
    cases: list[Case] = [
        ((one, double, double, same), [9.0], "1 + 2 = 3, and 3 + 6 = 9"),
        (
            (one, same, same, lambda y: y - 1),
            [1.0],
            "each layer reads normalized vectors",
        ),
        ((one, same, lambda y: 0 * y, double), [3.0], "the stream is not normalized"),
        (
            (one, double, lambda y: y * y, lambda y: y + 1),
            [41.0],
            "1 + 2 (1 + 1) = 5, and 5 + (5 + 1)^2 = 41",
        ),
    ]
    check_answer(apply_block, cases)

    # :::{solution}
    # The norm is inside each sum: pre-norm.
    # :::
    def solved(x: Tensor, attend: Layer, process: Layer, norm: Layer) -> Tensor:
        x = x + attend(norm(x))
        return x + process(norm(x))

    assert check_answer(solved, cases)

    # Next comes the half of the Transformer that writes: {doc}`decoder`.
