r"""
# Embedding

A table with one trained row of numbers for each token. A token enters the {term}`Transformer` as its row, and
training moves the rows of tokens that are used alike close together.

A model computes with vectors, but text is made of symbols. How does a symbol become a vector?

Cut the text into tokens: words, pieces of words, or characters ({doc}`tokens`). Number the $V$ different ones
from 0 to $V - 1$, and give each a row of $d$ numbers (in the code `d_model`) in a matrix
$E \in \mathbb{R}^{V \times d}$. A sentence of $L$ tokens with the numbers $x_1, \dots, x_L$ becomes a matrix
of their rows, times a constant that a section below explains:

$$X = \sqrt{d} \begin{bmatrix} E[x_1] \\ \vdots \\ E[x_L] \end{bmatrix} \in \mathbb{R}^{L \times d}$$

The token numbers mean nothing: token 3 is not between tokens 2 and 4. All meaning is in the rows, which start
as random numbers and are trained with the rest of the model.

:::{picture} embedding
:::

Source: {cite:t}`vaswani2017attention`, section 3.4.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Embedding(nn.Module):
    r"""
    ## A row for each token

    Map `tokens`, `[batch, seq]` of any integer type, to vectors, `[batch, seq, d_model]`:

    $$X = \sqrt{d_{\text{model}}} \cdot E[\text{tokens}]$$

    `table` is $E$.

    Raises `ValueError` if `tokens` are not integers. A number outside the table raises PyTorch's own error,
    because a check here would make a GPU wait for every batch.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        # The components of a row start with variance $1/d$. Multiplied by $\sqrt{d}$ in `forward`, they have
        # variance one. Two sections below, marked *Deeper*, measure why this matters.
        #
        # :::{deviation} the slides, embedding layer
        # The slides {cite:p}`liu_transformer` start from $\mathcal{N}(0, I)$, PyTorch's default, and still
        # multiply by $\sqrt{d}$. They say that the tokens are then on the scale of the positions, but their
        # root mean square is $\sqrt{2d}$ times as large.
        # :::
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        # `long` allows smaller integer types, such as `uint8` or `int32`. But it would also truncate 2.7 to
        # 2, so anything that is not an integer is rejected first.
        if (
            tokens.dtype == torch.bool
            or tokens.is_floating_point()
            or tokens.is_complex()
        ):
            raise ValueError(f"tokens are {tokens.dtype}, not integers")
        rows: Tensor = self.table(tokens.long())  # [batch, seq, d_model]
        return rows * self.scale


if __name__ == "__main__":
    # ## A look-up is a matrix product
    #
    # The slides that this book follows {cite:p}`liu_transformer` have an example with a vocabulary of five
    # words and the sentence "it is an example".
    torch.manual_seed(0)
    vocabulary = ["an", "a", "is", "it", "example"]
    sentence = ["it", "is", "an", "example"]
    tokens = torch.tensor([[vocabulary.index(word) for word in sentence]])
    embedding = Embedding(vocab_size=len(vocabulary), d_model=8)
    print("tokens ", tokens.tolist())
    print("vectors", list(embedding(tokens).shape), "= [batch, seq, d_model]")

    # A token's {term}`one-hot vector` is one at its own number and zero elsewhere. Its product with $E$ is a
    # row of $E$, so an embedding is a linear layer without bias whose input is one-hot:
    #
    # $$E[x] = \operatorname{onehot}(x)\, E$$
    #
    # The product takes $V d$ multiply-adds per token, the look-up none. The table shows the one-hot vectors
    # of the four words: the 1 in each row is in the word's own column.
    from IPython.display import display

    from labml_primer.training.table import Table

    one_hot = F.one_hot(tokens, len(vocabulary)).float()  # [batch, seq, vocab_size]
    product = one_hot @ embedding.table.weight * embedding.scale
    assert torch.equal(product, embedding(tokens))
    rows = one_hot[0].int().tolist()
    display(
        Table(
            ["token", *vocabulary],
            [[word, *row] for word, row in zip(sentence, rows, strict=True)],
        )
    )

    # The product also shows which rows learn from a sentence: only the rows that are multiplied by a 1 get a
    # gradient. Here these are all rows except that of "a".
    embedding(tokens).sum().backward()
    assert embedding.table.weight.grad is not None
    moved = embedding.table.weight.grad.abs().sum(1) > 0
    learning = zip(vocabulary, moved.tolist(), strict=True)
    print("rows that learn:", *(name for name, learns in learning if learns))


if __name__ == "__main__":
    # ## Why the factor $\sqrt{d}$?
    #
    # :::{deeper}
    # A token's vector has to be about as large as the vector of its position, which is added to it later.
    # :::
    #
    # {doc}`positional_encoding` adds to each token's vector a vector for its position, made of pairs
    # $(\sin a, \cos a)$. The scale of such a vector is fixed: because $\sin^2 a + \cos^2 a = 1$, its mean
    # square is exactly one half, for every $d$ and every angle. So random angles can replace real positions
    # here.
    #
    # The table compares the two vectors by their root mean square (rms). Look at the last column, the
    # position's share of the mean square of their sum. Without the factor $\sqrt d$, the position drowns out
    # the token. With it, the token has twice the mean square of the position. If rows start from
    # $\mathcal{N}(0, I)$ instead, the factor makes the token drown out the position.
    d_model = 512
    unit = torch.randn(1000, d_model)  # of variance one, to be scaled
    angles = 2 * math.pi * torch.rand(1000, d_model // 2)
    waves = torch.cat((angles.sin(), angles.cos()), dim=-1)
    compared = {
        "d**-0.5, no factor": (unit * d_model**-0.5, waves),
        "d**-0.5, factor: ours": (unit * d_model**-0.5 * d_model**0.5, waves),
        "1, factor: the slides": (unit * d_model**0.5, waves),
        "0.02, no factor: BERT": (unit * 0.02, 0.02 * torch.randn(1000, d_model)),
    }
    shares = []
    for name, (token, position) in compared.items():
        ours, theirs = token.square().mean(), position.square().mean()
        sizes = f"{ours.sqrt():.3f}", f"{theirs.sqrt():.3f}"
        shares.append([name, *sizes, f"{theirs / (ours + theirs):.1%}"])
    display(
        Table(
            ["rows start with", "token, rms", "position, rms", "position's share"],
            shares,
        )
    )
    # BERT {cite:p}`devlin2019bert` and GPT-2 {cite:p}`radford2019language` train a vector for each position.
    # These can start as small as the tokens' rows, so neither model has the factor. The price is a maximum
    # length: a position that was not trained has no vector.


if __name__ == "__main__":
    # ## One table, two jobs
    #
    # :::{deeper}
    # Language models use the same table again at their end. That is why its rows start small.
    # :::
    #
    # At the other end of the model, a vector $x$ must become a {term}`logit` for each token. Language models
    # often use the same table for it, $\text{logits} = x E^\top$ {cite:p}`press2017using`, and so does the
    # Transformer. This is called *weight tying*. It requires small rows: a norm ({doc}`normalization`) has
    # just scaled $x$ so that its components have variance one, and a logit is a sum of $d$ products, so its
    # variance is $d$ times that of a row's components.
    #
    # An untrained model should give all tokens about the same probability, a loss of $\log V$
    # ({doc}`../training/loop`). With rows of variance $1/d$ the loss is near that; with rows of variance one
    # it is far above. So the table is kept small, and the factor enlarges its rows at the input.
    vocab_size = 1000
    targets = torch.randint(vocab_size, (2000,))
    final = F.layer_norm(torch.randn(2000, d_model), (d_model,))
    print(f"uniform guess, log V    {math.log(vocab_size):5.1f}")
    for name, std in (("ours,   std d**-0.5", d_model**-0.5), ("slides, std 1", 1.0)):
        logits = final @ (std * torch.randn(vocab_size, d_model)).T
        print(f"{name:20s}  {F.cross_entropy(logits, targets):7.1f}")


if __name__ == "__main__":
    # ## Learned rows
    #
    # Train a small {term}`language model`: the embedding of a character and one linear layer predict the next
    # character of Shakespeare's plays. The model sees only that one character, so its row has to say which
    # characters tend to follow.
    import matplotlib.pyplot as plt

    from labml_primer.training import load_corpus, train

    corpus = load_corpus()
    torch.manual_seed(0)
    embedding = Embedding(corpus.vocab_size, d_model=32)
    model = nn.Sequential(embedding, nn.Linear(32, corpus.vocab_size))
    start = embedding.table.weight.detach().clone()
    history = train(model, corpus, name="embedding", steps=1000, evaluations=4)
    learned = embedding.table.weight.detach()

    # Training never mentions vowels or capitals. Do the rows reflect them anyway? Sort the characters into
    # kinds, and leave out those too rare to learn from.
    def kind(symbol: str) -> str:
        if symbol in "aeiou":
            return "vowel"
        if symbol.islower():
            return "consonant"
        return "capital" if symbol.isupper() else "punctuation"

    counts = torch.bincount(corpus.train, minlength=corpus.vocab_size)
    often = (counts > 2000).nonzero().flatten().tolist()
    symbols = [corpus.symbols[i] for i in often]
    kinds = [kind(symbol) for symbol in symbols]
    for name in ("vowel", "consonant", "capital", "punctuation"):
        members = zip(symbols, kinds, strict=True)
        print(
            f"{name:12s}",
            *(repr(s)[1:-1] for s, its_kind in members if its_kind == name),
        )

    # Only directions matter here, so scale all rows to length one, and subtract their mean.
    def centred(table: Tensor) -> Tensor:
        rows = F.normalize(table[often], dim=1)
        return rows - rows.mean(0)

    # The figure shows the plane in which the rows differ most, their first two *principal components*,
    # coloured by kind. Capitals are on the left, vowels (orange) at the upper right, and most punctuation at
    # the lower right. The line break is among the capitals, because in a play a capital often follows either.
    #
    # :::{deviation} the slides, embedding layer
    # They draw with t-SNE, which keeps neighbours together but may distort all other distances. This figure
    # is a projection, so points that are far apart in it really are far apart.
    # :::
    _, spread, directions = torch.linalg.svd(centred(learned), full_matrices=False)
    plane = centred(learned) @ directions[:2].T
    part = spread[:2].square() / spread.square().sum()
    letter = torch.tensor([0.04, 0.06])  # its size; overlapping letters are moved apart
    for _ in range(20):
        apart = (plane[:, None] - plane) / letter  # [letters, letters, 2]
        close = apart.norm(dim=-1, keepdim=True) < 1
        plane = plane + 0.05 * letter * (apart * close).sum(dim=1)
    colours = {"vowel": "C1", "consonant": "C0", "capital": "C2", "punctuation": "C3"}
    shown = {" ": "space", "\n": "line break"}
    fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    ax.scatter(*plane.T, alpha=0)
    for symbol, name, (x, y) in zip(symbols, kinds, plane.tolist(), strict=True):
        label = shown.get(symbol, symbol)
        ax.text(
            x, y, label, color=colours[name], weight="bold", ha="center", va="center"
        )
    ax.set_xlabel(f"first component, {part[0]:.0%} of the variance")
    ax.set_ylabel(f"second, {part[1]:.0%}")
    plt.show()

    # Is the grouping real? Find each character's nearest neighbour, by the angle between rows in all 32
    # dimensions, and count how often it is of the same kind. Before training this happens about as often as
    # by chance. After training, characters with similar continuations are close together, and these are
    # mostly of the same kind.
    def same_kind(table: Tensor) -> float:
        rows = F.normalize(centred(table), dim=1)
        nearest = (rows @ rows.T).fill_diagonal_(-1).argmax(1).tolist()
        same = [float(kinds[i] == kinds[j]) for i, j in enumerate(nearest)]
        return sum(same) / len(kinds)

    pairs = sum(kinds.count(name) * (kinds.count(name) - 1) for name in colours)
    print(
        f"loss {history.validation_loss[-1]:.2f}, "
        f"log V {math.log(corpus.vocab_size):.2f}"
    )
    print("nearest neighbour of the same kind")
    print(f"  before training {same_kind(start):.0%}")
    print(f"  after           {same_kind(learned):.0%}")
    print(f"  by chance       {pairs / (len(kinds) * (len(kinds) - 1)):.0%}")


if __name__ == "__main__":
    # ## In short
    #
    # - An embedding is a table with one trained row per token. A look-up equals a product with one-hot
    #   vectors.
    # - Only the rows of tokens that occur in a batch get a gradient from the look-up.
    # - Small rows, multiplied by $\sqrt{d}$ at the input, suit the vectors of positions that are added to
    #   them ({doc}`positional_encoding`).
    # - Training moves tokens with similar continuations close together.
    #
    # ## Exercise
    #
    # :::{exercise} A word said twice
    # Let the loss be the sum of all components of the vectors of "it is it", at $d = 16$. Which gradient does
    # each of the five rows of the table get?
    # :::
    # :::{solution}
    # Each time a row is read, each of its components receives a gradient of $\sqrt{d} = 4$. "it" occurs twice
    # and gets 8, "is" gets 4, and the other rows get 0. So plain gradient descent moves the rows of frequent
    # words far and those of rare words hardly at all. Adam divides by the size of the gradients, which evens
    # out much of this.
    # :::
    embedding = Embedding(vocab_size=len(vocabulary), d_model=16)
    sentence = ["it", "is", "it"]
    tokens = torch.tensor([[vocabulary.index(word) for word in sentence]])
    embedding(tokens).sum().backward()
    assert embedding.table.weight.grad is not None
    received = embedding.table.weight.grad.unique(dim=1).flatten().tolist()
    for word, gradient in zip(vocabulary, received, strict=True):
        print(f"{word:8s} {gradient:2.0f}")
    assert received == [0, 0, 4, 8, 0]

    # :::{exercise} Write it: the look-up as a product
    # Write the layer's result without indexing: a product of one-hot vectors with `table`,
    # `[vocab_size, d_model]`, times $\sqrt{d}$. `tokens` is `[batch, seq]`.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def embed(table: Tensor, tokens: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    small = torch.arange(18.0).view(2, 9)
    cases: list[Case] = [
        (
            (small, torch.tensor([[1]])),
            3 * small[None, 1:],
            "d is 9, so row 1 is tripled",
        ),
        (
            (torch.arange(3.0)[:, None], torch.tensor([[1], [0]])),
            torch.tensor([[[1.0]], [[0.0]]]),
            "token 2 is missing",
        ),
    ]
    check_answer(embed, cases)

    # :::{solution}
    # `F.one_hot` needs the number of tokens, because the last ones may not occur. Its result contains
    # integers.
    # :::
    def solved(table: Tensor, tokens: Tensor) -> Tensor:
        one_hot = F.one_hot(tokens, table.size(0)).to(table.dtype)
        return one_hot @ table * math.sqrt(table.size(1))

    assert check_answer(solved, cases)

    # So far each token has its vector alone. How do tokens learn from each other? {doc}`attention`.
