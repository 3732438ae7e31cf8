r"""
# Language model

A stack of blocks with a causal mask. It predicts the next token from all tokens before it.

Take the source away from {doc}`model`, and with it the encoder and cross-attention. The rest reads a text and
predicts how it continues. Is half of a Transformer still worth training?

Yes: GPT-2 and most large models since are of this kind. A {term}`language model` assigns a probability to a
text, one token at a time:

$$P(t_1 \dots t_n) = \prod_{i=1}^{n} P(t_i \mid t_1 \dots t_{i-1})$$

A model that predicts each token from those before it alone is called {term}`autoregressive`. Because of the
{term}`causal mask`, one forward pass predicts the next token at every position, so each token of a text is a
training example. (Without the mask, a position could copy its answer from the next one.) The model is called
*decoder-only*, because it has no encoder. Its blocks have no cross-attention, which leaves two of the
decoder's three sub-layers.

Later chapters change the attention, the activation function, the norm or the whole block. Each of these is a
field of one configuration.

:::{picture} language_model
:::

Source: {cite:t}`radford2019language` for the architecture; {cite:t}`press2017using` for the tied matrix.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.look_up import look_up
from labml_primer.transformer.positional_encoding import LearnedPositionalEncoding


class Block(nn.Module):
    r"""
    ## The block

    Map `[batch, seq, d_model]` to the same shape. This is
    {py:class}`~labml_primer.transformer.encoder.EncoderBlock` with two differences: a position attends only
    to itself and earlier ones, and a configuration names the classes of its parts, so that two models can
    differ in a single part.
    """

    def __init__(self, config: "Config"):
        super().__init__()
        d_model, dropout = config.d_model, config.dropout
        self.attention = config.attention(d_model, config.heads, dropout)
        self.attention_norm = config.norm(d_model)
        self.feed_forward = config.feed_forward(
            d_model, config.d_ff, dropout, config.activation
        )
        self.feed_forward_norm = config.norm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y, causal=True))
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return x


@dataclass(frozen=True)
class Config:
    """
    ## The configuration

    Sizes first, then the parts. The default sizes are small. The default parts are the original
    Transformer's, except for learned positions and pre-norm. `dataclasses.replace(config,
    activation=nn.GELU)` is a Transformer with another activation function.
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
    block: type[Block] = Block
    positions: type[nn.Module] = LearnedPositionalEncoding


class LanguageModel(nn.Module):
    r"""
    ## The model

    Map `tokens` `[batch, seq]` to {term}`logits` `[batch, seq, vocab_size]`: at each position, a score for
    every token that may come next. Position $i$ has seen tokens 0 to $i$.

    Raises `ValueError` if `heads` does not divide `d_model`, for more than `max_seq` tokens if there is a
    table of positions, and for tokens that are not `[batch, seq]`. On a CPU, a token outside the vocabulary
    raises `IndexError`.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        # One matrix $E$ is used at both ends {cite:p}`press2017using`. Its row for a token is the token's
        # vector at the input; at the output, the row's product with $z$, the final norm's output, is the
        # token's logit. These *tied weights* save `vocab_size * d_model` parameters, and every row has a
        # gradient at every step, whether its token occurs in the text or not.
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        # The rows start small. With PyTorch's default, a standard deviation of 1, an untrained model is
        # certain that each token is repeated (*The loss before the first step*, below).
        nn.init.normal_(self.embedding.weight, std=0.02)
        # Learned positions start as small as the embeddings they are added to, so neither has to be scaled.
        #
        # :::{deviation} the Transformer's paper, sections 3.4 and 3.5
        # There the embedding is multiplied by $\sqrt{d}$, to match the size of sines and cosines.
        # :::
        #
        # :::{deviation} Primer's paper, appendix A.8
        # Its models in Tensor2Tensor have positional embeddings, too. Those in T5 and Lingvo have relative
        # attention and no table of positions. A learned table is a weaker baseline: with rotary positions,
        # Primer-EZ gains less ({doc}`/experiments/chapters/positions`).
        # :::
        self.positions = config.positions(
            config.d_model, config.max_seq, config.dropout
        )
        self.blocks = nn.ModuleList(config.block(config) for _ in range(config.layers))
        self.norm = config.norm(config.d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """
        The path of a text: each of the `[batch, seq]` numbers becomes a vector of `d_model` numbers, the sum
        of its row and its position's. Every block adds to that vector what attention finds at earlier
        positions, and what the feed-forward layer makes of it. At the end, the vector is compared with the
        row of every token.
        """
        # `look_up` is `self.embedding(tokens)`, with an error that names a token outside of the vocabulary.
        x = self.positions(look_up(self.embedding, tokens))  # [batch, seq, d_model]
        for block in self.blocks:
            x = block(x)  # [batch, seq, d_model]
        return F.linear(self.norm(x), self.embedding.weight)


if __name__ == "__main__":
    # ## How many parameters?
    #
    # :::{deeper}
    # A formula, and a count that agrees.
    # :::
    #
    # Let there be $V$ tokens in the vocabulary, $n$ positions and $N$ blocks. In a block, attention has four
    # square matrices and the feed-forward layer two wider ones, all with a bias, and each norm has a gain and
    # a bias per feature:
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
    model = LanguageModel(config)
    V, d, d_ff = config.vocab_size, config.d_model, config.d_ff
    formula = (V + config.max_seq) * d + 2 * d
    formula += config.layers * (4 * d**2 + 2 * d * d_ff + 9 * d + d_ff)
    counted = sum(p.numel() for p in model.parameters())
    print(f"counted {counted:,}, by the formula {formula:,}")


if __name__ == "__main__":
    # ## The loss before the first step
    #
    # :::{deeper}
    # How large the rows of the table may be at the start.
    # :::
    #
    # A model that knows nothing should give each token the same probability, which is a loss of $\log V$
    # nats. If the loss is much higher, the first part of training is spent on unlearning.
    #
    # The row $e$ of the token just read is still a part of the residual stream at the end, so $z$ may point
    # in its direction. Then its logit $e \cdot z$ is large: the norm makes $\lVert z \rVert = \sqrt{d}$, and
    # components of $e$ with standard deviation $\sigma$ make $\lVert e \rVert \approx \sigma\sqrt{d}$. So the
    # logit can be as large as $\sigma d$.
    #
    # The table has the loss for three sizes $\sigma$. At 1 it is far too high, because almost every
    # prediction is the token just read. At 0.02 it is close to $\log V$.
    import math

    from IPython.display import display

    from labml_primer.training.table import Table

    tokens = corpus.validation[: 16 * 129].view(16, 129)
    table = []
    for label, std in (("1", 1.0), ("1 / sqrt(d)", d**-0.5), ("0.02", 0.02)):
        torch.manual_seed(0)
        model = LanguageModel(config)
        nn.init.normal_(model.embedding.weight, std=std)
        with torch.no_grad():
            logits = model(tokens[:, :-1])
        nats = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
        repeats = (logits.argmax(dim=-1) == tokens[:, :-1]).float().mean()
        table.append([label, f"{nats:.3f}", f"{repeats:.0%}"])
    display(
        Table(
            ["size of rows", "loss, nats per character", "predicts a repetition"],
            table,
            f"log V is {math.log(config.vocab_size):.3f}",
        )
    )


if __name__ == "__main__":
    # ## Half a minute of Shakespeare
    #
    # A small model with two blocks of four heads learns to predict the next character of the plays. It soon
    # has a lower loss than the counts of pairs ({doc}`../training/counting`), which use the previous
    # character alone, and keeps improving. But it does not reach the counts of longer contexts in the same
    # text, which are in the last line: half a minute is too short for it to learn what counting finds in a
    # second.
    from labml_primer.training import train
    from labml_primer.training.counted import counted_loss

    torch.manual_seed(0)
    model = LanguageModel(
        Config(corpus.vocab_size, d_model=64, d_ff=256, layers=2, max_seq=32)
    )
    history = train(model, corpus, name="language_model", steps=1200, seq=32)
    for step, nats in zip(history.steps, history.validation_loss, strict=True):
        print(f"step {step:4d}  {nats:.3f} nats per character on held-out plays")
    order, of_counts = counted_loss(corpus, steps=1200, seq=32)
    print(f"counts     {of_counts:.3f}, a {order}-gram")


if __name__ == "__main__":
    # ## What do the heads attend to?
    #
    # A hook receives the inputs of each attention layer and computes the weights with our own function,
    # because PyTorch's fused attention does not return them.
    from labml_primer.transformer.attention import attention_weights, causal_mask

    @torch.no_grad()
    def weights_of(tokens: Tensor) -> Tensor:
        """Return the weights of every head, `[block, batch, head, query, key]`."""
        seen: list[Tensor] = []

        def look(layer: MultiHeadAttention, inputs: tuple[Tensor, ...]) -> None:
            query, key, _ = (t.transpose(1, 2) for t in layer.project(*inputs))
            mask = causal_mask(query.size(-2), key.size(-2))
            seen.append(attention_weights(query, key, mask))

        hooks = [
            block.get_submodule("attention").register_forward_pre_hook(look)
            for block in model.blocks
        ]
        model(tokens)
        for hook in hooks:
            hook.remove()
        return torch.stack(seen)

    # The heat map has the mean weight of each head on the character itself (offset 0), on the one before it
    # (offset 1), and so on, for queries in the second half of held-out windows. Uniform attention would give
    # each offset about 0.04. A head that is dark at offset 1 has learned to attend to the previous character.
    import matplotlib.pyplot as plt

    windows = corpus.validation[: 256 * 32].view(256, 32)
    weights = weights_of(windows).transpose(0, 1).flatten(1, 2).mean(dim=0)
    back = torch.stack(
        [weights.diagonal(-n, -2, -1)[:, 16 - n :].mean(dim=-1) for n in range(7)]
    )  # [offset, block x head]
    fig, ax = plt.subplots(figsize=(7, 2.9), layout="constrained")
    ax.imshow(back.T, vmin=0, vmax=1, aspect="auto")
    for head, offset in torch.cartesian_prod(torch.arange(8), torch.arange(7)).tolist():
        ax.text(offset, head, f"{back[offset, head]:.2f}", ha="center", va="center")
    ax.set_yticks(range(8), [f"block {n // 4} head {n % 4}" for n in range(8)])
    ax.set_xlabel("offset")
    ax.tick_params(length=0)
    plt.show()

    # Two heads on half a line from a play that was not in training. A row is a query, a column a key, and
    # everything above the diagonal is masked. On the left, the head with the largest weight on the previous
    # character: most of its weights are on or next to the diagonal. On the right, the head of the second
    # block, block 1, that attends farthest back on average.
    line = "Fair is foul, and foul"
    on_line = weights_of(corpus.encode(line)[None])
    offsets = (torch.arange(32)[:, None] - torch.arange(32)).clamp(min=0)
    previous = int(back[1].argmax())
    far = 4 + int((weights * offsets)[4:, 16:].sum(dim=-1).mean(dim=-1).argmax())
    letters = list(line.replace(" ", "·"))
    fig, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
    for ax, head in zip(axes, (previous, far), strict=True):
        ax.imshow(on_line[head // 4, 0, head % 4], vmin=0, vmax=1)
        ax.set_xticks(range(len(line)), letters)
        ax.set_yticks(range(len(line)), letters)
        ax.tick_params(length=0, labelsize="small")
        ax.set_xlabel(f"key, block {head // 4} head {head % 4}")
    axes[0].set_ylabel("query")
    plt.show()
    # The model had to learn to attend to the previous character, because the last two characters together
    # say much about the next. In {doc}`../primer/primer_ez`, a convolution gives every head the last three
    # positions, so that no head has to learn to find them.


if __name__ == "__main__":
    # ## In short
    #
    # - An autoregressive language model predicts the next token from all tokens before it, at every position
    #   in one forward pass.
    # - One stack of blocks with a causal mask is enough; it is half of the Transformer.
    # - Embedding and output share one matrix, whose components start small.
    # - The configuration names the parts that later chapters replace.
    #
    # ## Exercise
    #
    # :::{exercise} Half as wide
    # Make a model half as wide, with `d_ff` half as large. By what factor must the number of blocks grow to
    # keep the number of parameters in all blocks about the same?
    # :::
    # :::{solution}
    # By four. With $d_\text{ff} = 4d$ the matrices of a block have $12\,d^2$ parameters, a quarter of them at
    # half the width. The norms and biases, $13\,d$ per block, make a small difference: per block they only
    # halve.
    # :::
    def size(config: Config) -> int:
        return sum(p.numel() for p in LanguageModel(config).blocks.parameters())

    wide = size(Config(1, d_model=128, d_ff=512, layers=2))
    deep = size(Config(1, d_model=64, d_ff=256, layers=8))
    print(f"2 blocks of width 128: {wide:,}; 8 blocks of width 64: {deep:,}")
    assert 1.0 < deep / wide < 1.01

    # :::{exercise} Write it: the perplexity of a text
    # `logits` is `[seq, vocab_size]`, what a model returns for the `seq` tokens of `text`. Write the
    # perplexity of the tokens that it predicts, all except the first.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def perplexity_of(logits: Tensor, text: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    sure = torch.tensor([[0.0, 9.0], [0.0, 9.0], [9.0, 0.0], [9.0, 0.0]])
    cases: list[Case] = [
        ((torch.zeros(3, 5), torch.tensor([4, 0, 1])), 5.0, "equal logits: 5 tokens"),
        (
            (sure, torch.tensor([0, 1, 1, 0])),
            1.000123,
            "position i predicts token i + 1",
        ),
        (
            (
                torch.tensor([[0.0, 0.0], [math.log(3), 0.0], [0.0, 0.0]]),
                torch.tensor([0, 0, 0]),
            ),
            1.63299,
            "the probabilities are 1/2 and 3/4, and their geometric mean counts",
        ),
    ]
    check_answer(perplexity_of, cases)

    # :::{solution}
    # The logits of the last position predict a token that is not in the text.
    # :::
    def solved(logits: Tensor, text: Tensor) -> Tensor:
        return F.cross_entropy(logits[:-1], text[1:]).exp()

    assert check_answer(solved, cases)

    # A trained model gives a score to every possible next token. How to choose one, and how to generate many
    # of them quickly: {doc}`generation`.
