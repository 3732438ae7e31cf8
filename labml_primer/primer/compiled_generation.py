r"""
# Generating text, compiled

A KV cache of fixed length makes every step of generation the same computation, so it is compiled only once.

A step of generation computes little in many operations, so most of its time is spent between them. That is
what {term}`torch.compile` saves. But a {term}`KV cache` grows by a token per step, so each step has tensors
of another size, and would be compiled again. How can all steps be the same?

In short: a cache of *fixed length* has room for the whole text from the start. A tensor counts the tokens
read so far, and a mask hides the places that are still empty. So all steps are the same computation with
other numbers. As in {doc}`../transformer/generation`, the cache is added to a copy of the model, and a layer
is known by what it declares.

:::{picture} fixed_cache
:::

Source: {doc}`/benchmarks/speed` measures the tokens per second.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from labml_primer.transformer.cache_check import check_cache, check_lengths
from labml_primer.transformer.generation import (
    Cache,
    CachedAttention,
    CachedDistances,
    CachedPositions,
    CachedWindow,
    cache_of,
    check_prompt,
    generate_cached,
    give_cache,
    sample_token,
    share_weights,
)


class Text:
    """
    ## One text

    A text, or a batch of them, of at most `length` tokens. All layers of a copy share a `Text`, which has the
    number of tokens read so far.
    """

    def __init__(self, length: int, device: torch.device):
        self.length = length
        self.tokens = torch.zeros((), dtype=torch.long, device=device)

    def positions(self, new: Tensor) -> Tensor:
        """Return the positions of new tokens `[batch, seq, ...]`."""
        return self.tokens + torch.arange(new.size(1), device=new.device)

    def room(self, like: Tensor) -> Tensor:
        """Return zeros `[batch, length, ...]` for tokens such as `like` `[batch, seq, ...]`."""
        return like.new_zeros(like.size(0), self.length, *like.shape[2:])


class FixedAttention(Cache):
    """
    ## Attention

    Write keys and values at the positions of their tokens, and hide all later places from each query. Other
    than causal self-attention raises `TypeError`.
    """

    text: Text

    def start(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        layer: Any = super()
        query, key, value = layer.project(x, y)
        if self.keys is None or self.values is None:
            self.keys, self.values = self.text.room(key), self.text.room(value)
        positions = self.text.positions(x)
        self.keys.index_copy_(1, positions, key)
        self.values.index_copy_(1, positions, value)
        return query, self.keys, self.values

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        if x is not y or mask is not None or not causal:
            raise TypeError("a cache of fixed length is for causal self-attention")
        places = torch.arange(self.text.length, device=x.device)
        visible = places <= self.text.positions(x)[:, None]  # [queries, length]
        layer: Any = super()
        output: Tensor = layer.forward(x, y, visible)
        return output


class FixedPositions(Cache):
    """
    ## Positions

    Look up the encodings of the new tokens' positions.
    """

    text: Text

    def forward(self, x: Tensor) -> Tensor:
        layer: Any = self
        y: Tensor = layer.dropout(x + layer.encoding[self.text.positions(x)])
        return y


class FixedDistances(Cache):
    """
    ## Positions in attention

    The number of tokens before becomes a tensor, which all layers share.
    """

    text: Text

    def start(self) -> None:
        self.tokens_before = self.text.tokens


class FixedModel(Cache):
    """
    ## The model

    After each call, count its tokens.
    """

    text: Text

    def forward(self, new: Tensor) -> Tensor:
        layer: Any = super()
        output: Tensor = layer.forward(new)
        self.text.tokens += new.size(1)
        return output


FIXED: dict[type[Cache], type[Cache]] = {
    CachedAttention: FixedAttention,
    CachedPositions: FixedPositions,
    CachedDistances: FixedDistances,
    CachedWindow: CachedWindow,  # its size never changes
}


def add_fixed_caches(model: Any, text: Text) -> Any:
    """
    ## A cache for each layer

    Give each layer of a copy that depends on past tokens a cache of fixed length instead of one that grows
    ({py:func}`~labml_primer.transformer.generation.cache_of`), and return the model. Raises `TypeError` for
    attention with a `window`, because it makes a mask of its own, which would hide no empty place.
    """
    for layer in model.modules():
        layer.text = text
        if growing := cache_of(layer):
            if growing not in FIXED:
                window = f"{type(layer).__name__} has a window"
                raise TypeError(f"{window}, so its cache grows: use generate_cached")
            give_cache(layer, FIXED[growing])
    give_cache(model, FixedModel)
    return model


if __name__ == "__main__":
    # ### The same logits
    #
    # A Primer-EZ reads a text in pieces with a cache of fixed length, which has room for twice as many
    # tokens, and then as a whole without a cache.
    from dataclasses import replace

    from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
    from labml_primer.transformer.language_model import Config, LanguageModel

    torch.manual_seed(0)
    transformer = Config(vocab_size=256, d_model=256, heads=4, d_ff=1024)
    primer_ez = replace(
        transformer, attention=MultiDConvHeadAttention, activation=SquaredReLU
    )
    model = LanguageModel(primer_ez).double().eval()
    tokens = torch.randint(256, (2, 20))
    fixed = add_fixed_caches(share_weights(model), Text(40, tokens.device))
    with torch.no_grad():
        pieces = [fixed(piece) for piece in tokens.split([5, 1, 1, 13], dim=1)]
        difference = (torch.cat(pieces, dim=1) - model(tokens)).abs().max()
    print(f"largest difference {difference:.0e}")


def last_logits(model: nn.Module, new: Tensor) -> Tensor:
    """Return the logits after the last of the new tokens `[batch, seq]`."""
    logits: Tensor = model(new)
    return logits[:, -1]


@cache
def compiled() -> Callable[[nn.Module, Tensor], Tensor]:
    """Return `last_logits`, compiled for each model at its first call."""
    return torch.compile(last_logits)


def check_fixed(model: nn.Module, tokens: Tensor) -> None:
    """
    ## Does it know every layer?

    Raise `TypeError` if a cache of fixed length changes what `model` computes
    ({py:meth}`~labml_primer.transformer.generation.CachedModel.check`).
    """
    plain, *others = (share_weights(model, training=False) for _ in range(3))
    length = max(*check_lengths(plain), plain.config.max_seq)
    fixed = [add_fixed_caches(each, Text(length, tokens.device)) for each in others]
    check_cache(plain, fixed, (tokens,), {})


@torch.no_grad()
def generate_compiled(
    model: nn.Module, tokens: Tensor, max_new_tokens: int, **settings: Any
) -> Tensor:
    """
    ## The loop

    Do the same as {py:func}`~labml_primer.transformer.generation.generate`, in compiled steps. The first one
    takes as long as its compilation, half a minute or so; later texts of the same model, or of one of the
    same shape, use what was compiled. The prompt is read without compilation, because its length differs from
    text to text. So is what exceeds `max_seq`.

    Raises `TypeError` for layers that cannot be cached at fixed length, such as
    {py:class}`~labml_primer.since.rotary.BucketBias` and attention with a `window`. On a CPU, `torch.compile`
    needs a C++ compiler.
    """
    check_prompt(tokens, max_new_tokens)
    end = tokens.size(1) + max_new_tokens
    plain = share_weights(model, training=False)
    max_seq = plain.config.max_seq
    if tokens.size(1) < min(max_seq, end - 1):
        check_fixed(plain, tokens)
        fixed = add_fixed_caches(share_weights(plain), Text(max_seq, tokens.device))
        logits = last_logits(fixed, tokens)
        while True:
            new = sample_token(logits, **settings)[:, None]
            tokens = torch.cat([tokens, new], dim=1)
            if tokens.size(1) == min(end, max_seq + 1):
                break
            logits = compiled()(fixed, new)
    rest = end - tokens.size(1)
    return generate_cached(model, tokens, rest, **settings)


if __name__ == "__main__":
    # ## In short
    #
    # - A cache that grows gives each step of generation tensors of another size. With a cache of fixed
    #   length, all steps are the same computation, which is compiled once.
    # - A mask hides the places that are still empty, and the number of tokens read so far is a tensor.
    # - {doc}`/benchmarks/speed` has the tokens per second, eager and compiled.
    #
    # ## Exercise
    #
    # :::{exercise} The cost of the empty places
    # A cache of fixed length computes scores for all its places, also for those that are still empty. A text
    # of $n$ tokens is read one by one, in a cache with room for $n$. How many scores does a head compute, and
    # how many with a cache that grows?
    # :::
    # :::{solution}
    # Each of $n$ queries is compared with $n$ places, which makes $n^2$ scores. With a growing cache it is
    # $1 + 2 + \dots + n = n\,(n + 1) / 2$, about half.
    # :::
    n = 100
    grows = sum(read for read in range(1, n + 1))
    print(f"for {n} tokens: {n * n} and {grows} scores")
    assert grows == n * (n + 1) // 2

    # :::{exercise} Write it: what each query sees
    # `seen` tokens were read before, and `new` ones are read now, in a cache with room for `length`. Write
    # the mask `[new, length]`, true where a new token may attend to a place.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def visible(seen: int, new: int, length: int) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    yes, no = True, False
    cases: list[Case] = [
        ((0, 1, 3), [[yes, no, no]], "the first token sees itself"),
        ((2, 1, 4), [[yes, yes, yes, no]], "a token sees those before it, and itself"),
        (
            (1, 2, 4),
            [[yes, yes, no, no], [yes, yes, yes, no]],
            "the first new token does not see the second",
        ),
    ]
    check_answer(visible, cases)

    # :::{solution}
    # Token $i$ of the new ones is at position `seen + i`, and sees all places up to there.
    # :::
    def solved(seen: int, new: int, length: int) -> Tensor:
        return torch.arange(length) <= seen + torch.arange(new)[:, None]

    assert check_answer(solved, cases)

    # How were Primer's changes found? The next part takes the search apart, and begins with its operations:
    # {doc}`/labml_primer/search/primitives`.
