r"""
# Embedding

A table with one trained row of numbers for each token. Looking up rows is how words enter the
Transformer, and how they come to stand near their like.

A model computes with vectors, and text is made of symbols. How does one become the other?

Cut the text into *tokens*: words, pieces of words, or characters. Number the $V$ different ones
from 0 to $V - 1$, and give each number a row of a matrix $E \in \mathbb{R}^{V \times d}$. A sentence
$x_1, \dots, x_L$ of token numbers becomes a matrix of rows, scaled by a constant:

$$X = \sqrt{d} \begin{bmatrix} E[x_1] \\ \vdots \\ E[x_L] \end{bmatrix} \in \mathbb{R}^{L \times d}$$

The numbers themselves mean nothing: token 3 is not between tokens 2 and 4. All meaning is in the
rows, which begin as noise and are trained with the rest of the model.

Source: {cite:t}`vaswani2017attention`, section 3.4.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Embedding(nn.Module):
    r"""
    ## A row for each token

    `tokens`, `[batch, seq]` of any integer type, to vectors, `[batch, seq, d_model]`:

    $$X = \sqrt{d_{\text{model}}} \cdot E[\text{tokens}]$$

    `table` is $E$.

    Raises `ValueError` where `tokens` are not integers. A number outside the table is PyTorch's
    own error: to check for it here would make a GPU wait for every batch.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        # The rows start with variance $1/d$, so that the root in `forward` gives components of
        # variance one, and a row that also serves as an output weight starts with length one.
        # Both are measured below.
        #
        # :::{deviation} the slides, embedding layer
        # They start from $\mathcal{N}(0, I)$, PyTorch's default, and multiply by $\sqrt{d}$ all the
        # same. The result is not on the scale of the positions, as they say it is: its root mean
        # square is $\sqrt{2d}$ times theirs.
        # :::
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        # `long` serves tokens stored small, as `uint8` or `int32`. It would also cut 2.7 down
        # to 2, and hide that something other than tokens came in.
        if tokens.dtype == torch.bool or not torch.can_cast(tokens.dtype, torch.long):
            raise ValueError(f"tokens are {tokens.dtype}, not integers")
        return self.table(tokens.long()) * self.scale  # [batch, seq, d_model]


if __name__ == "__main__":
    # ## A look-up is a product
    #
    # The example of the slides: five words, and the sentence "it is an example".
    torch.manual_seed(0)
    vocabulary = ["an", "a", "is", "it", "example"]
    sentence = ["it", "is", "an", "example"]
    tokens = torch.tensor([[vocabulary.index(word) for word in sentence]])
    embedding = Embedding(vocab_size=len(vocabulary), d_model=8)
    print("tokens ", tokens.tolist())
    print("vectors", list(embedding(tokens).shape), "= [batch, seq, d_model]")

    # A token's *one-hot* row is one in its own column and zero elsewhere. Multiplied by $E$ it
    # picks out a row, so an embedding is a linear layer without bias whose input is one-hot:
    #
    # $$E[x] = \operatorname{onehot}(x)\, E$$
    #
    # The product costs $V d$ multiplications a token. The look-up costs none.
    one_hot = F.one_hot(tokens, len(vocabulary)).float()  # [batch, seq, vocab_size]
    product = one_hot @ embedding.table.weight * embedding.scale
    for name, row in zip(sentence, one_hot[0].int().tolist(), strict=True):
        print(f"{name:8s}", *row)
    print("the product is the look-up:", torch.equal(product, embedding(tokens)))

    # Seen as a product, it also says which rows learn from a sentence: those of its own words. A
    # word that is never read keeps the noise it began with.
    embedding(tokens).sum().backward()
    assert embedding.table.weight.grad is not None
    moved = embedding.table.weight.grad.abs().sum(1) > 0
    learning = zip(vocabulary, moved.tolist(), strict=True)
    print("rows that learn:", *(name for name, learns in learning if learns))


if __name__ == "__main__":
    # ## Why the root of d?
    #
    # The next chapter adds to each word a vector for its place, made of sines and cosines. Those
    # have a scale of their own: as $\sin^2 + \cos^2 = 1$, their mean square is exactly one half,
    # whatever $d$ is. Measure how large a word is beside them, as a root mean square (rms), and
    # what part of the mean square of their sum is the place's.
    from labml_primer.transformer.positional_encoding import positional_encoding

    d_model = 512
    words = torch.randn(1000, d_model)  # of variance one, to be scaled
    places = positional_encoding(1000, d_model)
    trained = 0.02 * torch.randn(1000, d_model)
    print("the rows start with       rms of a word  of a place  place's part")
    for name, word, place in (
        ("d**-0.5, no root", words * d_model**-0.5, places),
        ("d**-0.5, root: ours", words * d_model**-0.5 * d_model**0.5, places),
        ("1, root: the slides", words * d_model**0.5, places),
        ("0.02, no root: BERT", words * 0.02, trained),
    ):
        word_square, place_square = word.square().mean(), place.square().mean()
        part = place_square / (word_square + place_square)
        print(
            f"{name:25s} {word_square.sqrt():13.3f} {place_square.sqrt():11.3f} {part:13.1%}"
        )
    # Without the root a word would be a whisper beside its place. With it, the word's mean square is
    # twice the place's: on one scale, with the larger weight on the word. From
    # $\mathcal{N}(0, I)$, the root drowns the place instead.
    #
    # The positions of BERT {cite:p}`devlin2019bert` and GPT-2 {cite:p}`radford2019language` are
    # trained like the words and may start as small, so neither has the root. The price is a
    # longest sentence: a place that was not trained has no vector.


if __name__ == "__main__":
    # ## One table, two jobs
    #
    # At the other end of the model, a vector must become a score for each token. A
    # language model often takes the same table for it, $\text{scores} = x E^\top$
    # {cite:p}`press2017using`, and so does the Transformer. Then the rows must be small as well:
    # a final vector $x$ has components of variance one, and a score is a sum of $d$ products.
    #
    # A model that knows nothing should call all tokens equally likely, at a loss of $\ln V$.
    vocab_size = 1000
    targets = torch.randint(vocab_size, (2000,))
    final = F.layer_norm(torch.randn(2000, d_model), (d_model,))
    print(f"knowing nothing, ln V   {math.log(vocab_size):5.1f}")
    for name, std in (("ours,   std d**-0.5", d_model**-0.5), ("slides, std 1", 1.0)):
        scores = final @ (std * torch.randn(vocab_size, d_model)).T
        print(f"{name:20s}  {F.cross_entropy(scores, targets):7.1f}")
    # So the table is kept small, and the root makes it large where it is read.


if __name__ == "__main__":
    # ## What the rows learn
    #
    # Train the smallest language model there is: the embedding of a character and one linear layer,
    # to foretell the next character of Shakespeare's plays. It sees nothing but the one
    # character, so a row has to hold what tends to follow.
    import matplotlib.pyplot as plt

    from labml_primer.training import load_corpus, train

    corpus = load_corpus()
    torch.manual_seed(0)
    embedding = Embedding(corpus.vocab_size, d_model=32)
    model = nn.Sequential(embedding, nn.Linear(32, corpus.vocab_size))
    start = embedding.table.weight.detach().clone()
    history = train(model, corpus, name="embedding", steps=1000, evaluations=4)
    learned = embedding.table.weight.detach()

    # Nobody tells it of vowels or of capitals. Sort the characters into kinds, leaving out those too
    # rare to learn from, so that their rows can be asked.
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

    # Only directions shall count, so all rows get one length, and are seen from their centre.
    def centred(table: Tensor) -> Tensor:
        rows = F.normalize(table[often], dim=1)
        return rows - rows.mean(0)

    # The characters on the plane in which their rows differ most, the *principal components*:
    # thirty-two dimensions do not fit on paper. Colours are the kinds.
    #
    # :::{deviation} the slides, embedding layer
    # They draw with t-SNE, which keeps neighbours together and may distort all else. A projection
    # is a shadow: what is far apart in it is far apart.
    # :::
    _, spread, directions = torch.linalg.svd(centred(learned), full_matrices=False)
    plane = centred(learned) @ directions[:2].T
    part = spread[:2].square() / spread.square().sum()
    letter = torch.tensor([0.04, 0.06])  # its size; where two overlap, they step aside
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
    # The line break lies with the capitals: in a play, a capital tends to follow either.

    # Is the order real, or in the eye? Ask each character for its nearest neighbour, by the angle
    # between rows in all dimensions, and count how often it is of the same kind.
    def same_kind(table: Tensor) -> float:
        rows = F.normalize(centred(table), dim=1)
        nearest = (rows @ rows.T).fill_diagonal_(-1).argmax(1).tolist()
        return sum(kinds[i] == kinds[j] for i, j in enumerate(nearest)) / len(kinds)

    pairs = sum(kinds.count(name) * (kinds.count(name) - 1) for name in colours)
    print(
        f"loss {history.validation_loss[-1]:.2f}, ln V {math.log(corpus.vocab_size):.2f}"
    )
    print("nearest neighbour of the same kind")
    print(f"  before training {same_kind(start):.0%}")
    print(f"  after           {same_kind(learned):.0%}")
    print(f"  by chance       {pairs / (len(kinds) * (len(kinds) - 1)):.0%}")
    # Characters that are followed alike have come to stand together. That is all the meaning there
    # is in a table, and in a large model it goes far.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} A word said twice
    # Take the sum of all components of the vectors of "it is it" for a loss, at $d = 16$. What is its
    # gradient with respect to each of the five rows of the table?
    # :::
    # :::{solution}
    # Each time a row is read, each of its components receives $\sqrt{d} = 4$. "it" is read twice and gets
    # 8, "is" gets 4, and rows that nobody read get nothing. So plain gradient descent moves the rows of
    # frequent words far, and those of rare ones hardly. Adam divides by the size of the gradients, and
    # evens out much of this.
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

    # What a table cannot say is where in the sentence a token stands: {doc}`positional_encoding`.
