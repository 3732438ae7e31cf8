r"""
# Positional encoding

Attention sees a set of tokens, not a sequence. A vector of sines and cosines, added to each token's vector,
marks its position.

"Dog bites man" has the same words as "man bites dog". (In examples the tokens are words.) {doc}`attention`
compares each word with every other one without regard to their order, and all other layers see one word at a
time. With a {term}`causal mask`, a layer sees which words came before, but not how far back. So the first
{term}`Transformer` puts the position into the vectors themselves. A vector $p_t$ of width $d$ for position
$t$ should have three properties:

1. Unique: no two positions share one.
2. Consistent: one linear map turns $p_t$ into $p_{t+\phi}$, the same for every $t$, so that "three words
   back" can be learned once, for all positions.
3. Unlimited: there is a $p_t$ for every $t$, and all these vectors are equally long.

Pairs of a sine and a cosine, turning at $d/2$ different speeds, have all three. This is the
{term}`positional encoding` of the first Transformer:

$$\begin{aligned}
p_t^{(2k)} &= \sin(\omega_k t) \\
p_t^{(2k+1)} &= \cos(\omega_k t)
\end{aligned} \qquad \omega_k = 10000^{-2k/d}$$

Most {term}`language models <language model>` today use such frequencies in another way: they rotate queries
and keys ({ref}`RoPE <rotary>`, at the end of this chapter).

:::{picture} positions
:::

Source: {cite:t}`vaswani2017attention`, section 3.5; {cite:t}`su2021roformer` for rotary positions.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def positional_encoding(seq: int, d_model: int) -> Tensor:
    r"""
    ## Sines and cosines

    Return the encodings of positions 0 to `seq - 1`, `[seq, d_model]`. The frequencies fall by a constant
    factor from $\omega_0 = 1$ to $\omega_{d/2-1} = 10000^{-1+2/d}$. In a wide model that is almost $1/10000$:
    the first pair repeats after $2\pi$ positions, the last after almost $10000 \cdot 2\pi$.

    Raises `ValueError` if `d_model` is odd, because sines and cosines come in pairs.
    """
    if d_model % 2:
        raise ValueError(f"d_model {d_model} is odd; sines and cosines come in pairs")
    # Angles grow with the position, and float32 has about seven digits. At position 5000 four of them are
    # before the decimal point, so angles are float64, whatever the type of the model. Apple's GPUs have no
    # float64, so they are computed on the CPU.
    position = torch.arange(seq, dtype=torch.float64, device="cpu")
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")
    omega = 10_000.0 ** (-even / d_model)
    # Every position times every frequency: `position` and `omega` are $t$ and $\omega_k$.
    angle = torch.outer(position, omega)  # [seq, d_model / 2]
    # The sine and the cosine of a pair are neighbours: features $2k$ and $2k + 1$.
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)  # [seq, d_model / 2, 2]
    new = torch.empty(0)  # of the default type, on the default device
    return pairs.flatten(1).to(new)


if __name__ == "__main__":
    # ## A table to check by hand
    #
    # With $d = 4$ there are two frequencies, $\omega_0 = 1$ and $\omega_1 = 1/100$. Position 0 is the same
    # for every $d$: all sines are 0, all cosines 1.
    from IPython.display import display

    from labml_primer.training.table import Table

    display(
        Table(
            ["t", "sin(t)", "cos(t)", "sin(t/100)", "cos(t/100)"],
            [
                [t, *(f"{number:.4f}" for number in row)]
                for t, row in enumerate(positional_encoding(5, 4).tolist())
            ],
        )
    )

    # The encodings of 100 positions for $d = 64$: sines on the left, cosines on the right, one row per
    # position. As $k$ rises, the frequency falls. The slow pairs hardly change within 100 positions, so
    # their sines stay near 0 and their cosines near 1. They are there for longer texts.
    import matplotlib.pyplot as plt

    encoding = positional_encoding(100, 64)
    fig, axes = plt.subplots(1, 2, figsize=(7, 3.2), sharey=True, layout="constrained")
    for ax, part, name in zip(
        axes, (encoding[:, 0::2], encoding[:, 1::2]), ("sine", "cosine"), strict=True
    ):
        image = ax.imshow(part, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        ax.set_xlabel(f"k, {name} part")
    axes[0].set_ylabel("position t")
    fig.colorbar(image, ax=axes)
    plt.show()


if __name__ == "__main__":
    # ## Why many frequencies?
    #
    # :::{deeper}
    # A single sine nearly repeats. Many together count, as the bits of a number do.
    # :::
    #
    # At the top, the last six bits of 64 positions $t$, with zeros in blue; below, the first six sines of
    # $d = 26$, with positive values in blue. The last bit changes at each step, the one before it at every
    # second step, and each further bit half as often. No single bit gives the position, but all together do.
    # From one sine to the next the frequency very nearly halves as well. (Sine $k$ changes sign about every
    # $\pi \cdot 2^k$ positions, bit $k$ every $2^k$.)
    steps = torch.arange(64)
    bits = torch.stack([steps >> k & 1 for k in range(6)])  # [bit, position]
    sines = positional_encoding(64, 26)[:, 0:12:2].T
    fig, axes = plt.subplots(2, 1, figsize=(7, 2.8), sharex=True, layout="constrained")
    for ax, rows, name in zip(
        axes, (1 - 2 * bits, sines), ("bit k", "sine k"), strict=True
    ):
        ax.imshow(rows, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        ax.set_ylabel(name)
    axes[1].set_xlabel("position t")
    plt.show()

    # Is each vector unique? In principle one pair is enough: $\pi$ is irrational, so $(\sin t, \cos t)$ never
    # repeats. But it nearly does, because 710 is almost $113 \cdot 2\pi$. The table compares the distance
    # between the two nearest of 1000 positions with the length of the step from one position to the next.
    # With one pair, two positions nearly coincide. From $d = 16$ on, the two distances are equal: no two
    # positions are closer than neighbours.
    measured = []
    for d_model in (2, 4, 8, 16, 512):
        places = positional_encoding(1000, d_model).double()
        step = (places[1:] - places[:-1]).norm(dim=1)
        lengths = torch.pdist(places).min(), step.min(), step.max()
        measured.append([d_model, *(f"{length:.4f}" for length in lengths)])
    display(
        Table(["d_model", "nearest two", "shortest step", "longest step"], measured)
    )


if __name__ == "__main__":
    # ## A step is a rotation
    #
    # :::{deeper}
    # One matrix leads from each position to the next, so a distance looks the same everywhere.
    # :::
    #
    # Does the step from $t$ to $t + \phi$ depend on $t$? By the angle addition formulas, with
    # $a = \omega_k t$ and $b = \omega_k \phi$,
    #
    # $$\begin{aligned}
    # \sin(a + b) &= \cos b \sin a + \sin b \cos a \\
    # \cos(a + b) &= -\sin b \sin a + \cos b \cos a
    # \end{aligned}$$
    #
    # The right-hand sides are linear in the pair $(\sin a, \cos a)$. So there is a matrix,
    #
    # $$M(k, \phi) = \begin{bmatrix} \cos \omega_k \phi & \sin \omega_k \phi \\
    # -\sin \omega_k \phi & \cos \omega_k \phi \end{bmatrix},$$
    #
    # which maps the pair at $t$ to the pair at $t + \phi$ and does not depend on $t$. A pair is like the hand
    # of a clock, and $M$ turns it. One block-diagonal matrix, with $M(0, \phi)$, $M(1, \phi)$, ... on its
    # diagonal, turns all pairs.
    def step_matrix(offset: int, d_model: int) -> Tensor:
        omega = (10_000.0 ** (-2 * k / d_model) for k in range(d_model // 2))
        turns = (
            torch.tensor([[math.cos(b), math.sin(b)], [-math.sin(b), math.cos(b)]])
            for b in (offset * w for w in omega)
        )
        matrix: Tensor = torch.block_diag(*turns)  # [d_model, d_model]
        return matrix

    # One matrix per offset maps each of 400 positions to the position `offset` steps later, up to rounding.
    places = positional_encoding(500, 64)
    for offset in (1, 7, 100):
        moved = places[:400] @ step_matrix(offset, 64).T
        error = (moved - places[offset : 400 + offset]).abs().max()
        print(f"offset {offset:3d}: largest error {error:.0e}")

    # Why both sine and cosine? Without the cosine, the second term of $\sin(a + b)$ is missing. Fit the best
    # possible matrix for a step by least squares, and measure the share of the mean square that it leaves
    # unexplained. With sines and cosines nothing is left; with sines alone, more than 10% is.
    wave = positional_encoding(2100, 16).double()
    for name, features in (("sines and cosines", wave), ("sines alone", wave[:, 0::2])):
        for offset in (1, 10, 100):
            now, then = features[:2000], features[offset : 2000 + offset]
            best = torch.linalg.lstsq(now, then).solution
            left = (now @ best - then).square().sum() / then.square().sum()
            print(f"{name:18s} offset {offset:3d}: {left:6.1%} unexplained")


if __name__ == "__main__":
    # ## Near and far
    #
    # :::{deeper}
    # The dot product of two positions depends only on their distance, and falls with it, in ripples.
    # :::
    #
    # How similar are two positions? Since $\sin a \sin b + \cos a \cos b = \cos(a - b)$,
    #
    # $$p_t \cdot p_{t+\phi} = \sum_{k=0}^{d/2-1} \cos(\omega_k \phi)$$
    #
    # The dot product does not depend on $t$, and is the same for $\phi$ and $-\phi$. At $\phi = 0$ it is
    # $d/2$.
    #
    # :::{deviation} the slides, dot product of positions
    # Their last line reads $\sin^2 \omega_k t \cos \omega_k \phi + \cos^2 \omega_k t \sin \omega_k \phi$,
    # with a sine at the end where the line before has a cosine. That would depend on $t$, and on the sign of
    # $\phi$. With the cosine, $\sin^2 + \cos^2 = 1$ gives the sum above. The demo computes both: the dot
    # product is the same for each $t$ and equals the sum, but the slides' line changes with $t$.
    # :::
    d_model, offset = 128, 5
    places = positional_encoding(101, d_model)
    omega = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    turn = offset * omega
    print(f"d_model {d_model}, offset {offset}: sum of cosines {turn.cos().sum():.4f}")
    for t in (0, 10, 50):
        dot, phase = places[t] @ places[t + offset], t * omega
        slides = phase.sin() ** 2 * turn.cos() + phase.cos() ** 2 * turn.sin()
        print(f"t {t:2d}: dot product {dot:.4f}, by the slides {slides.sum():7.4f}")

    # On the left, the dot products of all pairs of 100 positions: constant along each diagonal. On the right,
    # the dot products of one position with those up to 100 steps away, for three widths, as a share of $d/2$.
    # The curves are symmetric and fall overall. But they do not "decay nicely" at every step, as the slides
    # say: they have ripples, larger ones in narrower models, so a farther position can have the larger dot
    # product.
    fig, (left_ax, right_ax) = plt.subplots(
        1, 2, figsize=(7, 2.9), width_ratios=(1, 1.4), layout="constrained"
    )
    image = left_ax.imshow(places[:100] @ places[:100].T)
    left_ax.set(xlabel="position", ylabel="position")
    fig.colorbar(image, ax=left_ax, shrink=0.8)
    for colour, width, side in (
        ("C5", 32, "center"),
        ("C1", 128, "bottom"),
        ("C0", 512, "top"),
    ):
        table = positional_encoding(201, width)
        similar = table @ table[100] / (width / 2)
        right_ax.plot(torch.arange(-100, 101), similar, color=colour)
        right_ax.text(104, similar[-1], f"d = {width}", color=colour, va=side)
    right_ax.set(xlim=(-100, 165), xlabel="offset", ylabel="share of d/2")
    plt.show()


def add_positions(x: Tensor, encoding: Tensor) -> Tensor:
    r"""
    ## Added, not concatenated

    Add the first `seq` rows of `encoding`, `[max_seq, d_model]`, to `x`, `[batch, seq, d_model]`:

    $$X' = X + P$$

    `x` is $X$, and $P$ is those rows. Raises `ValueError` if the sentence is longer than the table, or for
    another shape.
    """
    max_seq, d_model = encoding.shape
    if x.dim() != 3 or x.size(-1) != d_model:
        raise ValueError(f"x {list(x.shape)} is not [batch, seq, {d_model}]")
    seq = x.size(1)
    if seq > max_seq:
        raise ValueError(f"seq {seq} is longer than max_seq {max_seq}")
    return x + encoding[:seq]


if __name__ == "__main__":
    # ## Does adding lose information?
    #
    # :::{deeper}
    # Positions and words share the same numbers. Appending instead of adding would cost a matrix and gain
    # little.
    # :::
    #
    # One could instead append $p_t$ to the word's vector and let a matrix $W \in \mathbb{R}^{2d \times d}$
    # mix the two. Split $W$ into its upper half $W_1$ and its lower half $W_2$:
    #
    # $$[X; P]\, W = X W_1 + P\, W_2$$
    #
    # Adding is the case $W_1 = W_2 = I$. Fixing $W_1$ loses nothing: with $X = \operatorname{onehot}(x) E$,
    # the product $E W_1$ is again a table of embeddings, and that table is trained. Only $W_2$ is lost, which
    # could rotate the positions into directions that the words do not use. It would cost $d^2$ weights.
    #
    # Do the positions interfere with the words? Count the directions, of 512, that contain 99% of the
    # positions' variance. A short text leaves most directions free, a longer one fewer. Training can move the
    # words into the free directions.
    for seq in (100, 1000):
        rows = positional_encoding(seq, 512)
        spread = torch.linalg.svdvals(rows - rows.mean(0)).square()
        needed = int((spread.cumsum(0) / spread.sum() < 0.99).sum()) + 1
        print(f"{seq:4d} positions: 99% in {needed} of 512 directions")


class PositionalEncoding(nn.Module):
    r"""
    ## The fixed layer

    $$\operatorname{dropout}(X + P)$$

    Map `[batch, seq, d_model]` to the same shape. The table of positions is computed in advance, for
    `max_seq` of them. A longer sentence raises `ValueError`.
    """

    encoding: Tensor

    def __init__(self, d_model: int, max_seq: int = 5000, dropout: float = 0.0):
        super().__init__()
        # A buffer moves to the GPU with the model, and the optimizer ignores it.
        #
        # :::{deviation} the slides, positional encoding
        # They store the table in checkpoints, which ties a trained model to its `max_seq`. Ours is not
        # stored, because it can be computed at any time.
        # :::
        encoding = positional_encoding(max_seq, d_model)
        self.register_buffer("encoding", encoding, persistent=False)
        # {term}`Dropout` comes after the sum, so it drops a feature of the word and of its position together.
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(add_positions(x, self.encoding))
        return x


if __name__ == "__main__":
    # ## Dog bites man
    #
    # Take attention without any parameters: each word receives the mean of all words, weighted by their
    # similarity to it. Exchange dog and man. Without positions, the result at "bites", in the middle, is the
    # same up to rounding; with positions it is not.
    torch.manual_seed(0)
    dog, bites, man = torch.randn(3, 1, 16)
    layer = PositionalEncoding(d_model=16)

    def at_bites(*words: Tensor, positions: bool) -> Tensor:
        x = torch.stack(words, dim=1)  # [batch, seq, d_model]
        x = layer(x) if positions else x
        weights = (x @ x.mT / x.size(-1)).softmax(dim=-1)  # [batch, seq, seq]
        return (weights @ x)[:, 1]

    for positions in (False, True):
        one = at_bites(dog, bites, man, positions=positions)
        other = at_bites(man, bites, dog, positions=positions)
        gap = (one - other).norm() / one.norm()
        print(f"positions {positions!s:5s}: difference {gap:.1e}")


class LearnedPositionalEncoding(nn.Module):
    """
    ## The trained layer

    Learn one row per position, like those of the words. This is simpler and can fit the task. BERT
    {cite:p}`devlin2019bert` has 512 rows, GPT-2 {cite:p}`radford2019language` 1024. But rows 7 and 8 are
    similar only if training makes them so, and there are no rows after the last: a sentence longer than
    `max_seq` raises `ValueError`.
    """

    def __init__(self, d_model: int, max_seq: int, dropout: float = 0.0):
        super().__init__()
        # 0.02 is the standard deviation in BERT's released code, for words and positions alike. Both then
        # start on the same scale, so BERT needs no factor $\sqrt{d}$.
        self.encoding = nn.Parameter(torch.randn(max_seq, d_model) * 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.dropout(add_positions(x, self.encoding))
        return x


if __name__ == "__main__":
    # ## Longer than in training
    #
    # :::{deeper}
    # The formula has no longest text, but a trained model has.
    # :::
    #
    # The slides promise longer sentences "without any efforts". The formula does have a vector for every $t$,
    # but does the model work there? Take a task in which only position counts: in a sequence of random
    # tokens, output the token three positions back. One attention head can do it.
    from labml_primer.transformer.embedding import Embedding

    class ThreeBack(nn.Module):
        def __init__(self, tokens: int, d_model: int):
            super().__init__()
            self.words = Embedding(tokens, d_model)
            self.query = nn.Linear(d_model, d_model)
            self.key = nn.Linear(d_model, d_model)
            self.logits = nn.Linear(d_model, tokens)

        def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
            x = add_positions(self.words(tokens), places)
            q, k = self.query(x), self.key(x)
            x = F.scaled_dot_product_attention(q, k, x, is_causal=True)
            logits: Tensor = self.logits(x)
            return logits

    # It learns from sequences of 32 tokens and is tested on 512. One kind of head starts every batch at
    # position 0. The other starts each batch at a random position, so it sees every position, but no more
    # than 32 at a time. `accuracy` trains a head and returns its accuracy at each position.
    places = positional_encoding(512, 64)

    def accuracy(anywhere: bool, seed: int) -> Tensor:
        torch.manual_seed(seed)
        model = ThreeBack(16, 64)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        for _ in range(400):
            row = torch.randint(16, (32, 32))
            start = int(torch.randint(481, ())) if anywhere else 0
            logits = model(row, places[start : start + 32])[:, 3:]
            optimizer.zero_grad()
            F.cross_entropy(logits.flatten(0, 1), row[:, :-3].flatten()).backward()
            optimizer.step()
        row = torch.randint(16, (64, 512))
        with torch.no_grad():
            answers = model(row, places)[:, 3:].argmax(-1)
        right: Tensor = answers == row[:, :-3]
        return right.float().mean(0)  # [509]

    # The mean accuracy of three heads of each kind, by position. The vertical line is the longest length in
    # training, the dotted line is chance. Both kinds are right up to there. The head that always starts at 0
    # (orange) then falls far: positions are new to it, and there are more words to ignore than in training.
    # {cite:t}`press2022train` saw language models fail in this way. The head that has seen every position
    # (teal) has the same vectors and also more words to ignore, but does much better. So most of the failure
    # comes from training, not from the formula.
    curves = {
        name: torch.stack([accuracy(anywhere, seed) for seed in range(3)]).mean(0)
        for name, anywhere in (("from position 0", False), ("from anywhere", True))
    }
    for name, curve in curves.items():
        near, far = curve[:29].mean(), curve[61:].mean()
        print(f"trained {name:15s}: {near:.0%} below 32, {far:.0%} from 64 to 512")
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    for (name, curve), colour in zip(curves.items(), ("C1", "C0"), strict=True):
        blocks = curve[:504].view(-1, 8).mean(1)
        ax.plot(8 * torch.arange(63) + 7, blocks, color=colour)
        ax.text(515, blocks[-8:].mean().item(), name, color=colour, va="center")
    ax.axvline(32, color="C5", linewidth=1)
    ax.axhline(1 / 16, color="C5", linewidth=1, linestyle=":")
    ax.set(xlim=(0, 620), ylim=(0, 1.05), xlabel="position", ylabel="accuracy")
    plt.show()


def rotate(x: Tensor, positions: Tensor) -> Tensor:
    r"""
    (rotary)=
    ## Rotary positions (RoPE)

    :::{deeper}
    Most models today rotate queries and keys instead of adding positions.
    :::

    Rotate queries or keys `x`, `[..., seq, d_k]`, by their `positions`, `[seq]`. The shape stays the same.

    {term}`RoPE` adds nothing to the words' vectors. Instead, each attention layer rotates each pair of
    features of a query or key by the angle $\omega_k t$:

    $$\begin{bmatrix} x'_{2k} \\ x'_{2k+1} \end{bmatrix} =
    \begin{bmatrix} \cos \omega_k t & -\sin \omega_k t \\ \sin \omega_k t & \cos \omega_k t \end{bmatrix}
    \begin{bmatrix} x_{2k} \\ x_{2k+1} \end{bmatrix}$$

    If the query is at position $t$ and the key at $s$, the angle between them changes by $\omega_k (t - s)$.
    So their dot product, the attention score, depends on position only through the distance $t - s$. Values
    are not rotated, and there are no parameters. Llama and most open language models since use RoPE, in every
    layer. {doc}`../since/rotary` uses it.

    :::{picture} rotary
    :::

    Raises `ValueError` if `d_k` is odd, or unless there is a position for each vector, and `TypeError` if `x`
    is not floating point.

    Source: {cite:t}`su2021roformer`, sections 3.2.2 and 3.4.2.
    """
    if not x.is_floating_point():
        raise TypeError(f"x is {x.dtype}, not floating point")
    if positions.size(0) != x.size(-2):
        raise ValueError(f"{positions.size(0)} positions for {x.size(-2)} vectors")
    return rotate_pairs(x, *cos_and_sin(positions, x.size(-1), x.dtype))


def cos_and_sin(
    positions: Tensor, d_k: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the angles, each `[seq, d_k / 2]`. Queries and keys share them."""
    if d_k % 2:
        raise ValueError(f"d_k {d_k} is odd; rotations need pairs of features")
    # Half precision is too coarse for angles. Single precision is wrong by less than 0.001 at position 5000,
    # and double precision, which Apple's GPUs do not have, is used if `dtype` is.
    wide = torch.promote_types(dtype, torch.float32)
    exponents = torch.arange(0, d_k, 2, dtype=wide, device=positions.device) / d_k
    angle = torch.outer(positions.to(wide), 10_000.0**-exponents)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair of features of `x` `[..., seq, d_k]` by its angle, given as cosine and sine."""
    # A pair is two adjacent features, as in the paper. Much released code, such as GPT-NeoX's and Hugging
    # Face's Llama, pairs feature $k$ with feature $k + d_k/2$ instead. The two are equally good, but weights
    # trained with one give wrong results with the other, unless their features are reordered.
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return turned.flatten(-2)


if __name__ == "__main__":
    # One random query and one random key at different positions. Along each row the distance is the same, and
    # so is the score, however far both are moved. Down each column only the distance changes, and the score
    # with it.
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 64, dtype=torch.float64)
    starts, distances = (0, 10, 1000), (0, 1, 5, 50)
    scores = torch.tensor(
        [
            [
                rotate(query, torch.tensor([start + distance]))[0]
                @ rotate(key, torch.tensor([start]))[0]
                for start in starts
            ]
            for distance in distances
        ]
    )
    assert (scores - scores[:, :1]).abs().max() < 1e-6
    display(
        Table(
            ["distance", *(f"key at {start}" for start in starts)],
            [
                [distance, *(f"{score:.3f}" for score in row)]
                for distance, row in zip(distances, scores.tolist(), strict=True)
            ],
        )
    )
    # Added positions have no such guarantee: their scores also contain products of words with positions,
    # which depend on where both are. Two other methods use the distance alone. {term}`ALiBi`
    # {cite:p}`press2022train` subtracts a multiple of it from each score, and T5 ({doc}`../compared/t5`) adds
    # a trained number for each distance or range of distances.


if __name__ == "__main__":
    # ## In short
    #
    # - Attention without a mask does not see order, so each word's vector gets a vector for its position
    #   added.
    # - A sine and a cosine per frequency make positions unique, and a step of $\phi$ positions is the same
    #   rotation everywhere. So the dot product of two positions depends only on their distance.
    # - Learned positions are simpler and end at `max_seq`. The formula has no end, but a model trained on
    #   short texts can still fail on longer ones.
    # - RoPE rotates queries and keys, so that attention scores depend on distances only.
    #
    # ## Exercise
    #
    # :::{exercise} Seven steps back
    # `step_matrix(7, 64)`, from the folded section *A step is a rotation*, goes seven steps forward. Which
    # matrix goes seven steps back, and how can it be found without solving equations?
    # :::
    # :::{solution}
    # Each pair is rotated, and the opposite rotation, $\phi = -7$, undoes it. Because the cosine is even and
    # the sine is odd, its matrix is the transpose, which is the inverse of every rotation.
    # :::
    forward = step_matrix(7, 64)
    assert torch.equal(step_matrix(-7, 64), forward.T)
    places = positional_encoding(500, 64)
    error = (places[7:] @ forward - places[:-7]).abs().max()
    print(f"seven steps back: largest error {error:.0e}")
    assert error < 1e-4

    # :::{exercise} Write it: how similar are two positions?
    # Write the dot product of two positions that are `offset` apart, without computing their encodings.
    # Use $\sin a \sin b + \cos a \cos b = \cos(a - b)$.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def similarity(offset: int, d_model: int) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    pair = positional_encoding(10, 8)
    cases: list[Case] = [
        ((0, 8), 4.0, "each of four pairs contributes cos 0 = 1"),
        ((3, 8), pair[5] @ pair[8], "positions 5 and 8 have this dot product"),
        ((-3, 8), pair[5] @ pair[8], "the cosine is the same for both directions"),
    ]
    check_answer(similarity, cases)

    # :::{solution}
    # It is the sum of $\cos(\omega_k \phi)$ over the $d/2$ frequencies.
    # :::
    def solved(offset: int, d_model: int) -> Tensor:
        omega = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        return (omega * offset).cos().sum()

    assert check_answer(solved, cases)

    # Each word's vector now contains its position, and attention has moved information between words. Next,
    # each position processes the information that it has gathered: {doc}`feed_forward`.
