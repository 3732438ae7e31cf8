r"""
# Tokens

Byte pair encoding cuts a text into the pieces that a model reads: frequent words stay whole, and rare ones
are cut into parts.

A model reads a text as a sequence of numbers. "the soil, the land, the earth." has 30 characters or 6 words.
Which pieces should get the numbers?

- *Characters* are few, and every text consists of them. But texts are long in characters, and a model does
  the same work for each of them, even where the rest of a word is obvious.
- *Words* are long pieces, so a text has few. But there are tens of thousands, each needs trained numbers of
  its own, and a new text has words that are in no list.

Most models read {term}`subwords <subword>`, which lie in between, and most find them by
{term}`byte pair encoding` (BPE). Start with characters as {term}`tokens <token>`. Find the pair of neighbours
that is most frequent, and join it into a new token, everywhere. Repeat until there are as many tokens as you
want. In the picture, "t" and "h" are joined first, then "th" and "e", then a space and "the".

:::{picture} tokens
:::

Source: {cite:t}`gage1994new`, as a way to compress data; {cite:t}`sennrich2016neural` for words of a
language; {cite:t}`radford2019language`, section 2.2, for bytes.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

Pair = tuple[int, int]


def pretokens(text: str) -> list[str]:
    """
    ## First, words

    Cut `text` into words, numbers, punctuation and whitespace. Joined, the parts are the text again.

    Pairs are counted and joined inside these parts only, which are called *pretokens*. Otherwise frequent
    ends and beginnings would be joined: "e" and the space after it are the most frequent neighbours of
    English. It also saves work: each different word is cut once, however often it occurs.

    A space belongs to the word that follows it. So " the" is one token, and a text needs no tokens for the
    spaces between its words.

    The pattern is GPT-2's. Python's `re` has no names for Unicode's kinds of characters, so a few rare signs,
    such as ², count as letters here.
    """
    return PRETOKEN.findall(text)


# The endings 's, 'll and so on; letters, digits or other signs, each with the space before them; then other
# whitespace.
PRETOKEN = re.compile(
    r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)


if __name__ == "__main__":
    # The text of the picture, with a bar between pretokens, and one with an apostrophe and a number.
    for text in ("the soil, the land, the earth.", "They'll meet at 12 o'clock!"):
        print("|".join(pretokens(text)))
        assert "".join(pretokens(text)) == text


# The first 256 tokens are the bytes, so every text can be encoded: a character that is not ASCII is two to
# four bytes in UTF-8. Printable ones come first. This is GPT-2's order, so tokens get the same numbers as in
# other programs.
BYTES = sorted(range(256), key=lambda b: (b == 32 or not chr(b).isprintable(), b))


def join_pair(tokens: Iterable[int], pair: Pair, number: int) -> list[int]:
    """
    ## Join the most frequent pair, again

    Return `tokens` with `number` instead of each `pair`, from left to right.
    """
    joined: list[int] = []
    for token in tokens:
        if joined and (joined[-1], token) == pair:
            joined[-1] = number
        else:
            joined.append(token)
    return joined


def learn_merges(text: str, vocab_size: int) -> list[Pair]:
    """
    Return the pairs to join, in their order, so that there are `vocab_size` tokens.

    A pair is two numbers of earlier tokens. The first pair becomes token 256, the next 257, and so on. Of
    pairs that are equally frequent, the one with the smallest numbers is joined.

    Raises `ValueError` if `text` is too short to have so many pairs.
    """
    # The different words, with how often each occurs.
    words = [
        ([BYTES.index(byte) for byte in word.encode()], times)
        for word, times in Counter(pretokens(text)).items()
    ]
    # How often each pair occurs in all words, and in which words it may be.
    counts: Counter[Pair] = Counter()
    places: dict[Pair, set[int]] = defaultdict(set)

    def count(place: int, sign: int) -> None:
        tokens, times = words[place]
        for pair in pairwise(tokens):
            counts[pair] += sign * times
            places[pair].add(place)

    for place in range(len(words)):
        count(place, 1)
    merges: list[Pair] = []
    for number in range(len(BYTES), vocab_size):
        most = max(counts.values(), default=0)
        if most == 0:
            raise ValueError(
                f"the text has pairs for {number} tokens, not for {vocab_size}"
            )
        best = min(pair for pair, times in counts.items() if times == most)
        merges.append(best)
        # Only the words that contain the pair change: their pairs are subtracted, and counted again after the
        # pair is joined.
        for place in places.pop(best):
            count(place, -1)
            tokens, times = words[place]
            words[place] = join_pair(tokens, best, number), times
            count(place, 1)
    return merges


class Tokenizer:
    """
    ## Encode and decode

    Cut texts into tokens by `merges`, and join them again.

    A {term}`tokenizer` is learned once and then stays the same, because the numbers of a trained model belong
    to its tokens. `tokens` has the bytes of each token, by its number.
    """

    def __init__(self, merges: Sequence[Pair]):
        self.numbers = {pair: n for n, pair in enumerate(merges, len(BYTES))}
        self.tokens = [bytes([byte]) for byte in BYTES]
        for left, right in merges:
            self.tokens.append(self.tokens[left] + self.tokens[right])

    def cut(self, word: str) -> list[int]:
        """
        Return the tokens of a pretoken.

        Start with bytes, and join pairs in the order in which they were learned: of the pairs that are in the
        word, the earliest first, until none can be joined. So the tokens are not always the longest ones that
        would fit.
        """
        tokens = [BYTES.index(byte) for byte in word.encode()]
        while known := self.numbers.keys() & pairwise(tokens):
            first = min(known, key=self.numbers.__getitem__)
            tokens = join_pair(tokens, first, self.numbers[first])
        return tokens

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text`."""
        words = pretokens(text)
        tokens = {word: self.cut(word) for word in set(words)}
        return [token for word in words for token in tokens[word]]

    def decode(self, tokens: Iterable[int]) -> str:
        """
        Return the text of `tokens`, with � for bytes that are no whole character.

        Raises `ValueError` for a number that is no token.
        """
        numbers = list(tokens)
        if wrong := [n for n in numbers if not 0 <= n < len(self.tokens)]:
            raise ValueError(f"{wrong[0]} is not in 0 to {len(self.tokens) - 1}")
        return b"".join(self.tokens[n] for n in numbers).decode(errors="replace")


if __name__ == "__main__":
    # The three merges of the picture. After them, the text has 21 tokens. The same merges cut a text that
    # they were not learned from: "breathe" has no token of its own, but parts of it do.
    small = Tokenizer(learn_merges("the soil, the land, the earth.", 256 + 3))

    def shown(tokenizer: Tokenizer, text: str) -> str:
        return "|".join(tokenizer.decode([token]) for token in tokenizer.encode(text))

    print("new tokens:", [token.decode() for token in small.tokens[256:]])
    for text in ("the soil, the land, the earth.", "breathe in the air"):
        print(f"{len(small.encode(text))} tokens: {shown(small, text)}")
    assert len(small.encode("the soil, the land, the earth.")) == 21


if __name__ == "__main__":
    # ## Learned from the plays
    #
    # The training plays have {value}`f"{len(training) / 1e6:.1f}"` million characters. Learn 4,096 tokens
    # from them, for the figure below. The tokenizer here has 2,048, as in our experiments: a smaller
    # vocabulary is the beginning of a larger one. The first tokens are the frequent pairs of English, and
    # soon whole words. The longest ones show which text they were learned from: the names of those who speak
    # or enter.
    from labml_primer.training.corpus import VALIDATION_PLAYS, load_plays

    plays = load_plays()
    training = "\n".join(
        text for name, text in plays.items() if name not in VALIDATION_PLAYS
    )
    held_out = "\n".join(plays[name] for name in VALIDATION_PLAYS)
    merges = learn_merges(training, 4096)
    tokenizer = Tokenizer(merges[: 2048 - 256])
    learned = [token.decode() for token in tokenizer.tokens[256:]]
    print("first:  ", *map(repr, learned[:20]))
    print("last:   ", *map(repr, learned[-8:]))
    print("longest:", *map(repr, sorted(learned, key=len)[-8:]))

    # Now a sentence of your own: change it in the notebook. Frequent words are one token, together with their
    # space. Rare words are cut into parts, which need not be syllables. A word has other tokens at the
    # beginning of a text or in capitals, because " the", "The" and "THE" are different bytes.
    sentence = "The Transformer reads tokens, the tokenizer writes them. TOKENS!"
    print(shown(tokenizer, sentence))
    print(tokenizer.encode(sentence))
    assert tokenizer.decode(tokenizer.encode(sentence)) == sentence


if __name__ == "__main__":
    # ## Characters, subwords or words?
    #
    # The table compares the three on the held-out plays. Words are {value}`f"{by_word:.1f}"` characters long
    # with their space, but {value}`f"{unknown:.1%}"` of those in the held-out plays are in no training play.
    # Many older models have one token for all unknown words, so they can neither read nor write them.
    # Subwords leave nothing unknown, because all bytes are among them. With a vocabulary of
    # {value}`f"{fewer:.0%}"` of the words, they are {value}`f"{shorter:.0%}"` as long.
    #
    # The last column has the {term}`parameters` of an {term}`embedding table` with 128 numbers for each
    # token. The rest of the models in our experiments has fewer than a million.
    from IPython.display import display

    from labml_primer.training.table import Table

    vocabulary, words = set(pretokens(training)), pretokens(held_out)
    unknown = sum(word not in vocabulary for word in words) / len(words)
    by_word = len(held_out) / len(words)
    by_subword = len(held_out) / len(tokenizer.encode(held_out))
    fewer, shorter = len(tokenizer.tokens) / len(vocabulary), by_subword / by_word
    ways = {
        "characters": (len(set(training)), 1.0, 0.0),
        "subwords": (len(tokenizer.tokens), by_subword, 0.0),
        "words": (len(vocabulary), by_word, unknown),
    }
    display(
        Table(
            ["token", "vocabulary", "characters per token", "unknown", "parameters"],
            [
                [name, f"{size:,}", f"{long:.2f}", f"{new:.1%}", f"{size * 128:,}"]
                for name, (size, long, new) in ways.items()
            ],
        )
    )


if __name__ == "__main__":
    # ## How large a vocabulary?
    #
    # The figure shows, by the size of the vocabulary, how long tokens are in the held-out plays, and how much
    # work a character is. A larger vocabulary makes a text shorter. So a model makes fewer steps to read or
    # write it, and the same number of tokens shows it more of the text. But each further merge is rarer than
    # the one before: with twice the vocabulary, tokens are only a little longer (on the left).
    #
    # Each token has its price. It needs a row of {term}`parameters`, and a model that predicts the next token
    # computes a score for every token of the vocabulary. A {term}`Transformer`, the model of the next
    # chapters, is a stack of $n$ {term}`blocks <block>`. Each multiplies a token's vector of $d$ numbers by
    # matrices with about $12\,d^2$ numbers in all. So a token costs about $12 n d^2$ {term}`multiply-adds` in
    # the blocks, and $V d$ for the scores of $V$ tokens.
    #
    # The right panel divides this by the characters per token and compares it with a vocabulary of 256 bytes.
    # Dots are the lowest points: {value}`f"{cheapest['4 blocks, width 64']:,}"` tokens at width 64, and
    # {value}`f"{cheapest['4 blocks, width 128']:,}"` at width 128, which the models of our experiments have.
    # With their 2,048 tokens they need {value}`f"{extra:.0%}"` more. In a model of 12 blocks and width 768,
    # the size of the smallest GPT-2 {cite:p}`radford2019language`, the scores are a small part of the work,
    # so the largest vocabulary of the figure is the cheapest. GPT-2 has 50,257 tokens.
    #
    # The other price is paid in learning: a row learns from the places where its token occurs. In the
    # training plays, the last 100 of the {value}`f"{sizes[-1]:,}"` tokens occur {value}`f"{rare:.0f}"` times
    # each, the first 100 learned ones {value}`f"{common:,.0f}"` times.
    import matplotlib.pyplot as plt

    sizes = [256, 362, 512, 724, 1024, 1448, 2048, 2896, 4096]
    encoded = [Tokenizer(merges[: size - 256]).encode(held_out) for size in sizes]
    per_token = [len(held_out) / len(tokens) for tokens in encoded]
    models = {
        "4 blocks, width 64": (4, 64),
        "4 blocks, width 128": (4, 128),
        "12 blocks, width 768": (12, 768),
    }
    work = {
        name: [
            (12 * blocks * width**2 + size * width) / long
            for size, long in zip(sizes, per_token, strict=True)
        ]
        for name, (blocks, width) in models.items()
    }
    relative = {name: [each / line[0] for each in line] for name, line in work.items()}
    cheapest = {name: sizes[line.index(min(line))] for name, line in work.items()}
    ours = work["4 blocks, width 128"]
    extra = ours[sizes.index(2048)] / min(ours) - 1
    assert max(cheapest.values()) == cheapest["12 blocks, width 768"] == sizes[-1]
    occurs = Counter(Tokenizer(merges).encode(training))
    common = sum(occurs[number] for number in range(256, 356)) / 100
    rare = sum(occurs[number] for number in range(4096 - 100, 4096)) / 100
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    left.plot(sizes, per_token, color="C0", marker="o", ms=3)
    left.set(ylabel="characters per token", ylim=(0, None))
    for (name, line), colour in zip(relative.items(), ("C1", "C0", "C2"), strict=True):
        right.plot(sizes, line, color=colour, label=name)
        right.plot(cheapest[name], min(line), "o", color=colour, ms=4)
    right.set(ylabel="multiply-adds, relative", ylim=(0, None))
    right.legend(frameon=False)
    for ax in (left, right):
        ax.set_xscale("log", base=2)
        ax.set_xticks([256, 512, 1024, 2048, 4096], ["256", "512", "1K", "2K", "4K"])
        ax.set_xlabel("vocabulary")
    plt.show()


if __name__ == "__main__":
    # ## What the tokenizers of today add
    #
    # **Bytes.** {cite:t}`sennrich2016neural` started from characters, so a character that the training text
    # does not have was still unknown. GPT-2 started from bytes, and most have followed. This chapter does so
    # too. A rare character is several tokens, and a model that writes only some of them writes no character;
    # the decoder shows �.
    text = "naïve ☕"
    print(len(text), "characters:", tokenizer.encode(text))
    print(tokenizer.decode(tokenizer.encode(text)[:-1]))

    # **Pretokens.** The pattern decides what can become one token. Llama {cite:p}`touvron2023llama` makes
    # each digit of a number a token. SentencePiece {cite:p}`kudo2018sentencepiece`, which Llama and T5 use,
    # reads a text as it is and marks its spaces with a sign of their own, so languages without spaces need no
    # rules.
    #
    # **Special tokens.** A {term}`special token` represents no text: it marks the end of a document, the
    # turns of a conversation, or a gap to be filled ({doc}`../compared/t5`). It gets a number after the
    # learned ones, and the program that prepares the data inserts it. Text must not be able to do that: a
    # user who types the name of such a token should get the tokens of its letters.
    end = len(tokenizer.tokens)  # the first number that is free
    stream = []
    for text in ("To be, or not to be.", "The rest is silence."):
        stream += [*tokenizer.encode(text), end]
    print(stream)
    assert end not in tokenizer.encode("<|endoftext|>")

    # **Other choices.** BERT's tokenizer {cite:p}`devlin2019bert` cuts a word into the longest pieces that it
    # knows, from left to right. The *unigram* tokenizer of SentencePiece starts from very many pieces and
    # drops those that the text needs least.
    #
    # **In this book,** the experiments on subwords ({doc}`/experiments/chapters/method`) use the library
    # *tokenizers*, which is faster. Their subwords are those of this chapter: a test checks that the library
    # learns the same 2,048 tokens, with the same numbers, and cuts every play alike. All other chapters read
    # characters, which need not be learned.


if __name__ == "__main__":
    # ## In short
    #
    # - A token is a piece of text with a number. Subwords make a text shorter than characters do, and unlike
    #   words they leave nothing unknown.
    # - Byte pair encoding joins the most frequent pair of neighbours to a new token, again and again. It
    #   encodes a new text by joining the same pairs in the same order.
    # - Pairs are joined within words only, and the first tokens are the 256 bytes.
    # - A larger vocabulary means fewer steps, more parameters, and rarer tokens to learn from. The larger the
    #   model, the larger the best vocabulary.
    #
    # ## Exercise
    #
    # :::{exercise} Which model predicts better?
    # One model reads characters, and its {term}`loss` is 1.30 nats per character. Another reads the 2,048
    # subwords of this chapter, and its loss is 3.40 nats per token. Both are measured on the held-out plays.
    # Which one gives these texts the higher probability?
    # :::
    # :::{solution}
    # The second. Both losses are minus the logarithm of the same text's probability, divided by the number of
    # tokens. A subword has {value}`f"{by_subword:.2f}"` characters on average, so the second model needs
    # {value}`f"{per_character:.2f}"` nats per character. Losses per token of different tokenizers cannot be
    # compared. In this book, losses on subwords are given per character.
    # :::
    per_character = 3.40 / by_subword
    print(f"{per_character:.2f} nats per character")
    assert per_character < 1.30

    # :::{exercise} Write it: the next pair to join
    # Write which pair of neighbours in `tokens`, `[seq]`, is the most frequent one: `[2]`. Of several, take
    # the one with the smallest first token, then the smallest second.
    # :::
    import torch
    from torch import Tensor

    from labml_primer.training.exercises import Case, check_answer

    def next_pair(tokens: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    cases: list[Case] = [
        ((torch.tensor([1, 2, 1, 2, 3]),), [1, 2], "1 2 occurs twice"),
        (
            (torch.tensor([2, 1, 0, 2, 1, 0]),),
            [1, 0],
            "2 1 and 1 0 occur twice, and 1 0 has the smaller first token",
        ),
        (
            (torch.tensor([5, 4, 9, 5, 4, 8, 4, 5]),),
            [5, 4],
            "5 4 occurs twice, and 4 5 is another pair",
        ),
        (
            (torch.tensor([1, 4, 1, 2, 0, 1, 4, 1, 2, 0]),),
            [1, 2],
            "four pairs occur twice: the first token counts, then the second",
        ),
    ]
    check_answer(next_pair, cases)

    # :::{solution}
    # `unique` sorts the different pairs, and `argmax` returns the first of several largest counts.
    # :::
    def solved(tokens: Tensor) -> Tensor:
        pairs = torch.stack((tokens[:-1], tokens[1:]), dim=1)
        different, counts = torch.unique(pairs, dim=0, return_counts=True)
        most: Tensor = different[counts.argmax()]
        return most

    assert check_answer(solved, cases)

    # A text is a sequence of numbers now. The model's first layer gives each of them a vector:
    # {doc}`embedding`.
