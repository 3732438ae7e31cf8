r"""
# Decoder

The half of the Transformer that writes: it reads what it has written so far, looks things up in what the
encoder has read, and says what comes next.

How does a network write a sentence? One token at a time. Each next token depends on two things, the source
$S$ and all tokens before it, and the probability of the whole is the product:

$$P(t_1 \dots t_n \mid S) = \prod_{i=1}^{n} P(t_i \mid t_1 \dots t_{i-1}, S)$$

A decoder block therefore has three layers instead of the two of {doc}`encoder`. Self-attention over the
target so far, where nobody may look ahead; *cross-attention*, whose queries come from the target and whose
keys and values come from the encoder's output $M$, the memory; and the feed-forward layer:

$$
\begin{aligned}
A &= X + \operatorname{MultiHead}_{\text{causal}}(\operatorname{LN}(X), \operatorname{LN}(X)) \\
B &= A + \operatorname{MultiHead}(\operatorname{LN}(A), M) \\
Z &= B + \operatorname{FFN}(\operatorname{LN}(B))
\end{aligned}
$$

The slides stop at the encoder, so the paper is the source of this chapter.

Source: {cite:t}`vaswani2017attention`, sections 3.1 and 3.2.3.
"""

from torch import Tensor, nn

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


class DecoderBlock(nn.Module):
    r"""
    ## Decoder block

    `x` `[batch, target, d_model]` and `memory` `[batch, source, d_model]` to `[batch, target, d_model]`.
    The two lengths have nothing to do with each other.

    Raises `ValueError` where `heads` does not divide `d_model`.
    """

    def __init__(self, d_model: int, heads: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        # Both attentions are the same class. What makes one of them *cross* is what it is called with.
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
        Both masks are true where looking is allowed. `memory_mask` broadcasts to
        `[batch, heads, target, source]` and hides padding of the source; `mask` broadcasts to
        `[batch, heads, target, target]`, hides padding of the target, and comes on top of causality.
        """
        # Position $i$ sees the positions up to $i$. The token that it has to predict stands at $i + 1$, so
        # one look ahead would be enough to copy the answer.
        #
        # :::{deviation} the paper, section 3.1
        # As in {py:class}`~labml_primer.transformer.encoder.EncoderBlock`, a norm stands before each layer
        # and not after the addition, as the text of 2017 has it.
        # :::
        y = self.attention_norm(x)
        x = x + self.dropout(self.attention(y, y, mask, causal=True))
        # The target asks and the memory answers. The memory comes out of the encoder's last norm, so it needs
        # none here, and all of it may be seen: the source is there in full before the first word is written.
        y = self.cross_attention_norm(x)
        x = x + self.dropout(self.cross_attention(y, memory, memory_mask))
        # Each position thinks for itself about what the two found.
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Decoder(nn.Module):
    """
    ## Decoder

    A stack of blocks and a last norm, for the same reason as in
    {py:class}`~labml_primer.transformer.encoder.Encoder`. Every block looks into the same memory, the
    output of the encoder's *last* block; encoder and decoder need not even have the same number of blocks.
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
        """Shapes and masks as for the block."""
        for block in self.blocks:
            x = block(x, memory, memory_mask, mask)
        return self.norm(x)


if __name__ == "__main__":
    # ## Who sees whom
    #
    # A target of eight positions, and a memory of twelve, the last three of which are padding. Both are
    # random: what may influence what is a matter of the wiring, before anything is learned.
    import torch

    torch.manual_seed(0)
    decoder = Decoder(layers=2, d_model=64, heads=4, d_ff=256).eval()
    x, memory = torch.randn(1, 8, 64), torch.randn(1, 12, 64)
    memory_mask = (torch.arange(12) < 9)[None, None, None, :]
    with torch.no_grad():
        y = decoder(x, memory, memory_mask)
    print(tuple(x.shape), "and", tuple(memory.shape), "to", tuple(y.shape))

    # Change the target from position 5 on, then the memory at position 0, then its padding, and see which
    # outputs move.
    future, source, padding = x.clone(), memory.clone(), memory.clone()
    future[:, 5:] = torch.randn(3, 64)
    source[:, 0] = torch.randn(64)
    padding[:, 9:] = torch.randn(3, 64)
    print(f"{'what changes':17s}" + "".join(f"{f'out {i}':>8s}" for i in range(8)))
    for name, target, looked_up in (
        ("target from 5 on", future, memory),
        ("memory at 0", x, source),
        ("memory's padding", x, padding),
    ):
        with torch.no_grad():
            moved = decoder(target, looked_up, memory_mask) - y
        row = moved.abs().amax(dim=-1)[0]
        print(f"{name:17s}" + "".join(f"{value:8.0e}" for value in row))

    # The same as a picture, for all pairs at once: how strongly each output, seen along one random direction,
    # depends on each input, as the norm of a gradient. (Its length would not do: the last norm makes it the
    # same for every input.) Where nothing is drawn the gradient is exactly zero.
    import matplotlib.pyplot as plt

    x.requires_grad_()
    memory.requires_grad_()
    output = decoder(x, memory, memory_mask)
    along = torch.randn(64)
    rows = [
        torch.autograd.grad(output[0, i] @ along, (x, memory), retain_graph=True)
        for i in range(8)
    ]
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
    # Left, a triangle: no output depends on a later target. Right, a rectangle that ends where the padding
    # begins: each output depends on all of the source.


if __name__ == "__main__":
    # ## Teacher forcing
    #
    # To write, a decoder needs its own last word before it can say the next. To *learn*, it need not wait:
    # the right words are known. Feed it the whole target, shifted by one, and since no position sees
    # later ones, one pass gives the prediction after every prefix at once:
    #
    # $$
    # \begin{aligned}
    # \text{reads} &\colon\ \langle\text{start}\rangle\ t_1\ t_2 \dots t_{n-1} \\
    # \text{predicts} &\colon\ t_1\ t_2\ t_3 \dots t_n
    # \end{aligned}
    # $$
    #
    # It is the teacher's last word that it reads, not its own, hence the name. The check: eight passes over
    # growing prefixes and one pass over all of it.
    with torch.no_grad():
        at_once = decoder(x, memory, memory_mask)
        step_by_step = torch.cat(
            [decoder(x[:, : i + 1], memory, memory_mask)[:, -1:] for i in range(8)],
            dim=1,
        )
    print(f"largest difference {(at_once - step_by_step).abs().max():.1e}")
    # So a target of $n$ tokens costs one pass in training and $n$ in writing. It is what made training
    # parallel along the sequence, where a recurrent network has to go step by step in both.


if __name__ == "__main__":
    # ## Padding in the target
    #
    # Where targets of different length are padded at the *end*, no mask is needed: padding is later than
    # every real position, and the future is hidden anyway. Padding at the front, as some programs do in order
    # to have the last real tokens in line, does need `mask`. Three positions of padding, then the eight:
    padded = torch.cat([torch.randn(1, 3, 64), x], dim=1)
    real = (torch.arange(11) >= 3)[None, None, None, :]
    with torch.no_grad():
        for name, mask in (("with the mask", real), ("without", None)):
            result = decoder(padded, memory, memory_mask, mask)[:, 3:]
            print(f"{name:14s} largest change {(result - at_once).abs().max():.1e}")
    # Here positions were given no number. In a model, the positional encodings have to be shifted too.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} The source, shuffled and said twice
    # No position has a number here. What becomes of the output if the nine real rows of the memory are
    # shuffled? If they come twice, one set behind the other? And if the target is shuffled?
    # :::
    # :::{solution}
    # To cross-attention the memory is a set. Shuffled it is the same set, and said twice each row gets half
    # the weight two times: neither changes anything. The target is another matter. Its order is in the causal
    # mask, so the same words in another order have other pasts.
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

    # The next chapter puts the two halves together. It pads at the end: {doc}`model`.
