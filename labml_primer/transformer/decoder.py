r"""
# Decoder

The half of the {term}`Transformer` that writes: it reads its own output so far, looks things up in the
encoder's output, and predicts the next token.

How does a network write a sentence, such as the translation of a source sentence $S$? One token at a time.
Each token $t_i$ of the *target*, the sentence to write, depends on the source and on all tokens before it.
The probability of the whole sentence is the product:

$$P(t_1 \dots t_n \mid S) = \prod_{i=1}^{n} P(t_i \mid t_1 \dots t_{i-1}, S)$$

So a {term}`decoder` block has three *sub-layers* instead of the two of {doc}`encoder`:

1. causal self-attention over the target so far,
2. {term}`cross-attention`, whose queries come from the target, and whose keys and values come from the
   encoder's output $M$, the *memory*,
3. the feed-forward layer.

Let $X$ be the target's vectors, `[target, d_model]`, and $M$ the memory, `[source, d_model]`. With LN for
the layer norm before each sub-layer, every line has the shape of $X$:

$$
\begin{aligned}
A &= X + \operatorname{MultiHead}_{\text{causal}}(\operatorname{LN}(X), \operatorname{LN}(X)) \\
B &= A + \operatorname{MultiHead}(\operatorname{LN}(A), M) \\
Z &= B + \operatorname{FFN}(\operatorname{LN}(B))
\end{aligned}
$$

:::{picture} cross_attention
:::

Source: {cite:t}`vaswani2017attention`, sections 3.1 and 3.2.3. The slides stop at the encoder.
"""

from torch import Tensor, nn

from labml_primer.transformer.attention import (
    MultiHeadAttention,
    check_mask,
    check_vectors,
)
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


class DecoderBlock(nn.Module):
    r"""
    ## Decoder block

    Map `x` `[batch, target, d_model]` and `memory` `[batch, source, d_model]` to `[batch, target, d_model]`.
    The two lengths may differ.

    Raises `ValueError` if `heads` does not divide `d_model`.
    """

    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        # Both attention layers are of the same class. Cross-attention differs only in the arguments of its
        # call, in `forward`.
        self.attention = MultiHeadAttention(d_model, heads, dropout)
        self.attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, heads, dropout)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """
        Both masks are true where a query may attend to a key, and each of their dimensions may be one.
        `memory_mask`, `[batch, heads, target, source]`, hides padding of the source. `mask`,
        `[batch, heads, target, target]`, hides padding of the target, in addition to the causal mask.
        """
        # Position $i$ sees the positions up to $i$ and has to predict the token at $i + 1$. If it saw that
        # position, it could copy the answer.
        #
        # :::{deviation} the paper, section 3.1
        # As in {py:class}`~labml_primer.transformer.encoder.EncoderBlock`, the norm is before each layer, not
        # after the addition as in the paper.
        # :::
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y, mask, causal=True))
        # The memory has gone through the encoder's final norm, so it needs no norm here. It needs no causal
        # mask either, because the whole source is known before the first word is written.
        y = self.cross_attention_norm(x)
        x = x + self.dropout(self.cross_attention(y, memory, memory_mask))
        x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return x


class Decoder(nn.Module):
    """
    ## Decoder

    Apply a stack of blocks and a final norm, as
    {py:class}`~labml_primer.transformer.encoder.Encoder` does. Every block attends to the same memory, the
    output of the whole encoder, so encoder and decoder can have different numbers of blocks.
    """

    def __init__(
        self, layers: int, d_model: int, heads: int, d_ff: int, dropout: float = 0.0
    ):
        super().__init__()
        self.blocks: nn.ModuleList = nn.ModuleList(
            DecoderBlock(d_model, heads, d_ff, dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """
        Shapes and masks are as for the block. Raises `ValueError` if `x` or `memory` has other dimensions,
        and `TypeError` for another kind of mask.
        """
        check_vectors(x, memory)
        check_mask(memory_mask)
        check_mask(mask)
        for block in self.blocks:
            x = block(x, memory, memory_mask, mask)
        x = self.norm(x)
        return x


if __name__ == "__main__":
    # ## Which inputs can change which outputs?
    #
    # Take a target of eight positions and a memory of twelve, the last three of which are padding. Random
    # vectors and an untrained decoder will do, because the architecture alone decides what can depend on
    # what.
    import torch

    torch.manual_seed(0)
    decoder = Decoder(layers=2, d_model=64, heads=4, d_ff=256).eval()
    x, memory = torch.randn(1, 8, 64), torch.randn(1, 12, 64)
    memory_mask = (torch.arange(12) < 9)[None, None, None, :]
    with torch.no_grad():
        y = decoder(x, memory, memory_mask)
    print(tuple(x.shape), "and", tuple(memory.shape), "to", tuple(y.shape))

    # Change the target from position 5 on; then, instead, the memory at position 0; then its padding. The
    # table has the largest change at each output position. The target changes no output before position 5,
    # the memory changes every output, and padding changes none.
    from IPython.display import display

    from labml_primer.training.table import Table

    future, source, padding = x.clone(), memory.clone(), memory.clone()
    future[:, 5:] = torch.randn(3, 64)
    source[:, 0] = torch.randn(64)
    padding[:, 9:] = torch.randn(3, 64)
    changed = {
        "target from 5 on": (future, memory),
        "memory at 0": (x, source),
        "memory's padding": (x, padding),
    }
    table = []
    for name, (target, looked_up) in changed.items():
        with torch.no_grad():
            moved = decoder(target, looked_up, memory_mask) - y
        largest_at = moved.abs().amax(dim=-1)[0]
        table.append(
            [name, *(f"{value:.1f}" if value else "0" for value in largest_at)]
        )
    display(Table(["changed", *(f"out {i}" for i in range(8))], table))

    # The figure shows this for all pairs: how strongly each output depends on each input, as the norm of a
    # gradient. An empty cell means exactly zero. On the left is a triangle: no output depends on a later
    # target position. On the right is a rectangle that ends where the padding begins: each output depends on
    # every real position of the source.
    #
    # (The gradient is that of the output's component in a random direction. The output's length would not
    # do, because the final norm makes it constant.)

    x.requires_grad_()
    memory.requires_grad_()
    output = decoder(x, memory, memory_mask)
    along = torch.randn(64)
    rows = [
        torch.autograd.grad(output[0, i] @ along, (x, memory), retain_graph=True)
        for i in range(8)
    ]
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(
        1, 2, figsize=(7, 2.6), layout="constrained", width_ratios=(8, 12)
    )
    for ax, name, gradients in zip(
        axes, ("target", "memory"), zip(*rows, strict=True), strict=True
    ):
        strength = torch.stack([g[0].norm(dim=-1) for g in gradients])
        shown = strength.masked_fill(strength == 0, torch.nan)
        ax.imshow(shown, aspect="auto", vmin=-strength.max().item() / 2)
        ax.set(xlabel=f"{name} position", ylabel="output position")
    plt.show()


if __name__ == "__main__":
    # ## Teacher forcing
    #
    # To generate, a decoder needs the token it has just written before it can predict the next. In *training*
    # the correct tokens are known, so it reads the whole target, shifted by one. Because no position sees
    # later ones, one forward pass predicts the next token after every prefix:
    #
    # $$
    # \begin{aligned}
    # \text{reads} &\colon\ \langle\text{start}\rangle\ t_1\ t_2 \dots t_{n-1} \\
    # \text{predicts} &\colon\ t_1\ t_2\ t_3 \dots t_n
    # \end{aligned}
    # $$
    #
    # It continues the teacher's tokens instead of its own, hence the name {term}`teacher forcing`. A target
    # of $n$ tokens takes one pass in training, but $n$ passes in generation. A recurrent network has to go
    # step by step in both.
    #
    # As a check, compare eight passes over growing prefixes with one pass over the whole target. They should
    # agree up to rounding.
    with torch.no_grad():
        at_once = decoder(x, memory, memory_mask)
        step_by_step = torch.cat(
            [decoder(x[:, : i + 1], memory, memory_mask)[:, -1:] for i in range(8)],
            dim=1,
        )
    print(f"largest difference {(at_once - step_by_step).abs().max():.1e}")


if __name__ == "__main__":
    # ## Padding in the target
    #
    # :::{deeper}
    # Padding at the end needs no mask; padding at the front does.
    # :::
    #
    # If targets of different lengths are padded at the *end*, no mask is needed: padding comes after every
    # real position, and later positions are hidden anyway. Padding at the front, which some programs use to
    # align the last real tokens, does need `mask`. A model with positional encodings has to shift the
    # positions too. Here three positions of padding come before the eight real ones. The outputs at the real
    # positions stay the same with the mask only:
    padded = torch.cat([torch.randn(1, 3, 64), x], dim=1)
    real = (torch.arange(11) >= 3)[None, None, None, :]
    with torch.no_grad():
        for name, mask in (("with the mask", real), ("without", None)):
            result = decoder(padded, memory, memory_mask, mask)[:, 3:]
            print(f"{name:14s} largest change {(result - at_once).abs().max():.1e}")


if __name__ == "__main__":
    # ## In short
    #
    # - A decoder block has causal self-attention, cross-attention to the encoder's output, and a feed-forward
    #   layer.
    # - No output depends on later tokens of the target, so one forward pass trains all positions at once:
    #   teacher forcing.
    # - Generation needs one forward pass per token.
    # - Padding at the end of a target needs no mask; padding of the source always does.
    #
    # ## Exercise
    #
    # :::{exercise} The source, shuffled and repeated
    # This decoder has no positional encodings. How does the output change if the nine real rows of the memory
    # are shuffled? If all nine are repeated? And if the target is reversed?
    # :::
    # :::{solution}
    # Cross-attention sums over the rows of the memory, and the order of a sum does not matter. If all rows
    # are repeated, each gets half the weight twice. So neither changes the output. The order of the target
    # does matter, because of the causal mask: in another order, each position sees different ones before it.
    # :::
    real, order = memory[:, :9], torch.randperm(9)
    backwards = torch.arange(7, -1, -1)
    with torch.no_grad():
        once = decoder(x, real)
        changes = {
            "memory shuffled": decoder(x, real[:, order]) - once,
            "memory twice": decoder(x, torch.cat([real, real], dim=1)) - once,
            "target backwards": decoder(x[:, backwards], real)[:, backwards] - once,
        }
    largest = {name: change.abs().max().item() for name, change in changes.items()}
    for name, number in largest.items():
        print(f"{name:17s} largest change {number:.0e}")
    assert max(largest["memory shuffled"], largest["memory twice"]) < 1e-4
    assert largest["target backwards"] > 0.1

    # :::{exercise} Write it: what the decoder reads
    # In training the decoder reads the target shifted by one. Write the shift: `target` is `[batch, n]`, the
    # result is too, and each row begins with the token `start`.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def shifted(target: Tensor, start: int) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    cases: list[Case] = [
        ((torch.tensor([[5, 6, 7]]), 1), [[1, 5, 6]], "it reads 5 to predict 6"),
        (
            (torch.tensor([[5, 6], [8, 9]]), 0),
            [[0, 5], [0, 8]],
            "each row begins with the start",
        ),
    ]
    check_answer(shifted, cases)

    # :::{solution}
    # The last token of the target is predicted and never read.
    # :::
    def solved(target: Tensor, start: int) -> Tensor:
        first = torch.full_like(target[:, :1], start)
        return torch.cat([first, target[:, :-1]], dim=1)

    assert check_answer(solved, cases)

    # The next chapter puts the two halves together: {doc}`model`.
