r"""
# Generating text

How to choose the next token from a model's scores, and how a KV cache makes generation fast.

A language model gives a score for every token that may come next. How do you get a text from it?

Choose a token, append it to the text, and run the model again. This use of a trained model is called
{term}`inference`. It raises two questions.

*Which token?* Always taking the most probable one soon repeats the same phrases. {term}`Sampling`, drawing a
token at random by its probability, now and then draws a very improbable one. Most programs sample from a more
cautious distribution: they divide the logits $z$ by a {term}`temperature` $\tau$, and keep only the more
probable tokens:

$$P(t) \propto \exp\Big(\frac{z_t}{\tau}\Big) \quad \text{for } t \in \text{kept}$$

*How fast?* In a causal model, a new token changes nothing that was computed for the earlier ones. So a
{term}`KV cache` stores their keys and values, and each step computes one token instead of the whole text.
Only the first step, the {term}`prefill`, reads the whole prompt. The layers of this book contain no code for
caching. This chapter first shows the idea in fifteen lines, and then adds a cache from outside, to a copy of
any finished model that shares its weights.

:::{picture} kv_cache
:::

Source: {cite:t}`fan2018hierarchical` for top-k; {cite:t}`holtzman2020curious` for top-p;
{cite:t}`vaswani2017attention`, section 6.1, and {cite:t}`wu2016google` for beam search.
"""

import math
from collections.abc import Callable
from functools import cache
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from labml_primer.training.loop import in_mode
from labml_primer.transformer.cache_check import (
    check_cache,
    refuse_replaced,
    window_of,
)


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    r"""
    ## Top-k

    Keep the $k$ most probable tokens, and those that tie with the last of them. `logits` is
    `[..., vocab_size]`, and so is the result, in which all other tokens are minus infinity, which softmax
    turns into zero.

    This cuts off the long tail: thousands of improbable tokens can have a large probability together. But no
    single $k$ suits every context. After "to be or not to" there is one good word, after "the" there are
    hundreds.

    Raises `ValueError` if `k` is below one. Source: {cite:t}`fan2018hierarchical`, section 5.4.
    """
    if k < 1:
        raise ValueError(f"top_k {k} is below 1")
    # The k-th best score is the threshold.
    threshold = logits.topk(min(k, logits.size(-1))).values[..., -1:]
    return logits.masked_fill(logits < threshold, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    r"""
    ## Top-p

    Keep the fewest tokens whose probabilities sum to at least $p$. They are the smallest set $S$ with

    $$\sum_{t \in S} P(t) \ge p$$

    That is one token if the model is sure, and many if it is not. This is also called *nucleus sampling*.

    Raises `ValueError` unless $0 < p \le 1$. Source: {cite:t}`holtzman2020curious`, section 3.1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"top_p {p} is not above 0 and at most 1")
    if p == 1:
        return logits  # rounding must not cut the tail
    ordered, order = logits.sort(dim=-1, descending=True)
    probabilities = ordered.float().softmax(dim=-1)
    # A token stays if the more probable ones do not yet sum to $p$. So the token that reaches $p$ stays, and
    # the first one always does.
    before = probabilities.cumsum(dim=-1) - probabilities
    kept = ordered.masked_fill(before >= p, -math.inf)
    # Undo the sorting.
    return torch.empty_like(logits).scatter(-1, order, kept)


def sample_token(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""
    ## Sampling

    Sample one token per row: `[batch, vocab_size]` to `[batch]`. A temperature below one makes probable
    tokens more probable; above one it makes the probabilities more even. Zero takes the most probable token,
    the limit of ever lower temperatures. That is called {term}`greedy decoding`.

    :::{picture} sampling
    :::

    Raises `ValueError` for a temperature that is negative, infinite or `nan`, and for a logit that is `nan`.
    """
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature {temperature} is not a number from 0 up")
    if logits.isnan().any():
        raise ValueError("a logit is nan, so no token is the most probable one")
    # The temperature comes first, so that top-p sums the probabilities it has changed.
    # Differences from the largest logit have the same softmax, and cannot overflow to plus infinity.
    scores = logits.float()
    scores = (scores - scores.amax(dim=-1, keepdim=True)) / max(temperature, 1e-30)
    if top_k is not None:
        scores = keep_top_k(scores, top_k)
    if top_p is not None:
        scores = keep_top_p(scores, top_p)
    if temperature == 0:  # no cut removes the most probable token
        return logits.argmax(dim=-1)
    return torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)[:, 0]


if __name__ == "__main__":
    # ## The effect on the probabilities
    #
    # Each row has the probabilities of six tokens after one change. Temperature changes all of them; top-k
    # and top-p set some to zero and scale up the others. For the last row, 100,000 tokens were sampled from
    # the first row and counted: the shares agree with the probabilities.
    from IPython.display import display

    from labml_primer.training.table import Table

    odds = torch.tensor([0.40, 0.25, 0.15, 0.10, 0.06, 0.04])
    changed = {
        "unchanged": odds.log(),
        "temperature 0.5": odds.log() / 0.5,
        "temperature 2": odds.log() / 2,
        "top-k 3": keep_top_k(odds.log(), 3),
        "top-p 0.75": keep_top_p(odds.log(), 0.75),
        "top-p 0.3": keep_top_p(odds.log(), 0.3),
    }
    shares = {name: scores.softmax(dim=-1) for name, scores in changed.items()}
    generator = torch.Generator().manual_seed(0)
    sampled = sample_token(odds.log().expand(100_000, 6), generator=generator)
    shares["sampled"] = torch.bincount(sampled, minlength=6) / 100_000
    display(
        Table(
            ["distribution", *(f"token {i}" for i in range(6))],
            [[name, *(f"{p:.2f}" for p in row)] for name, row in shares.items()],
        )
    )


@torch.no_grad()
def generate(
    model: nn.Module, tokens: Tensor, max_new_tokens: int, **settings: Any
) -> Tensor:
    """
    ## The loop

    Return `tokens` `[batch, seq]` followed by `max_new_tokens` sampled ones. `model` is a
    {py:class}`~labml_primer.transformer.language_model.LanguageModel`, or another decoder with a
    `config.max_seq`. The `settings` are those of
    {py:func}`~labml_primer.transformer.generation.sample_token`: `temperature`, `top_k`, `top_p`, and
    `generator`, which makes the text reproducible. The model is in evaluation mode, without
    {term}`dropout`, until the text is written.

    If the text becomes longer than the model's `max_seq`, the model reads its last `max_seq` tokens. Each
    step reads the whole text again, although only the last position is used. The rest of this chapter saves
    that work: {py:func}`~labml_primer.transformer.generation.generate_cached` generates the same text.

    Raises `ValueError` if `tokens` is empty or `max_new_tokens` negative.
    """
    check_prompt(tokens, max_new_tokens)
    config: Any = model.config
    with in_mode(model, training=False):
        for _ in range(max_new_tokens):
            logits = model(tokens[:, -config.max_seq :])[:, -1]  # [batch, vocab_size]
            new = sample_token(logits, **settings)
            tokens = torch.cat([tokens, new[:, None]], dim=1)
    return tokens


def check_prompt(tokens: Tensor, max_new_tokens: int) -> None:
    """Raise `ValueError` for no prompt `[batch, seq]`, or a negative number of tokens."""
    if tokens.dim() != 2 or tokens.size(1) == 0:
        need = "need [batch, seq] with at least one token to continue"
        raise ValueError(f"tokens of shape {list(tokens.shape)}: {need}")
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens {max_new_tokens} is negative")


def read_one_by_one(
    text: Tensor, to_query: Tensor, to_key: Tensor, to_value: Tensor
) -> Tensor:
    r"""
    ## The KV cache in fifteen lines

    Return what one head of causal attention returns for `text` `[seq, d_model]`, but read it token by token,
    as it is written. `to_query` and `to_key` are matrices `[d_model, d_k]`, `to_value` is `[d_model, d_v]`,
    and the result is `[seq, d_v]`.

    Suppose three tokens have been read, and a fourth one is written. The results of the three do not change,
    because no token attends to a later one. The result of the fourth needs *its* query, and the keys and
    values of all four. Three of these keys and values were computed before. So keep them: compute one new row
    of each, append it, and attend once.

    :::{picture} one_new_row
    :::

    Past queries are not kept, because their results are known. And no mask is needed: later tokens are not
    there yet.
    """
    keys = to_key.new_empty(0, to_key.size(1))  # nothing is read yet
    values = to_value.new_empty(0, to_value.size(1))
    results = []
    for x in text.split(1):  # the new token alone, [1, d_model]
        query = x @ to_query  # [1, d_k]
        keys = torch.cat([keys, x @ to_key])  # [tokens so far, d_k]
        values = torch.cat([values, x @ to_value])  # [tokens so far, d_v]
        scores = query @ keys.T / math.sqrt(keys.size(1))
        weights = scores.softmax(dim=-1)  # [1, tokens so far]
        results.append(weights @ values)  # [1, d_v]
    return torch.cat(results)


if __name__ == "__main__":
    # Is it the same as attention without a cache? That computes queries, keys and values of the whole text,
    # and hides later tokens by a {py:func}`~labml_primer.transformer.attention.causal_mask`. The results
    # agree up to rounding.
    from labml_primer.transformer.attention import attention, causal_mask

    torch.manual_seed(0)
    text = torch.randn(20, 64)
    maps = torch.randn(3, 64, 16) / 8  # of queries, keys and values
    query, key, value = text @ maps  # [20, 16] each
    whole = attention(query, key, value, causal_mask(20, 20))
    difference = (read_one_by_one(text, *maps) - whole).abs().max()
    print(f"largest difference {difference:.0e}")
    assert difference < 1e-5
    # Without a cache, the 20th step would compute 20 rows of queries, keys and values again, and 20 rows of
    # weights, for one new result. With it, a step computes one row of each.
    #
    # The price is memory. Every head of every block keeps a key and a value of each token, so a model with
    # $n$ blocks of width $d$ keeps $2 n d$ numbers per token. Twelve blocks of width 768, the size of the
    # smallest GPT-2, keep 18,432 numbers: 38 MB for a text of 1,024 tokens in half precision.
    #
    # A model has many heads in many blocks, and other layers that depend on past tokens: its positions, and
    # in later chapters convolutions. `cached(model)` gives each of them a memory of this kind, in a copy of
    # any finished model. The next sections say how.


class Growing:
    """
    ## A tensor that grows

    :::{deeper}
    The memory for keys and values.
    :::

    Store the keys or values of the tokens so far, `[batch, seq, ...]`. The buffer doubles when it is full, so
    that appending a token does not copy all earlier ones each time. A backward pass needs the tensors as they
    were, so with gradients every call copies.
    """

    def __init__(self) -> None:
        self.buffer: Tensor | None = None
        self.length = 0

    def append(self, new: Tensor) -> Tensor:
        """Append `new` `[batch, seq, ...]` and return everything so far."""
        if self.buffer is None:
            self.buffer = new[:, :0]
        before, end = self.length, self.length + new.size(1)
        if len(new) != len(self.buffer):
            sizes = f"a batch of {len(new)} after one of {len(self.buffer)}"
            raise ValueError(f"{sizes}: a cache keeps all its texts")
        self.length = end
        if torch.is_grad_enabled():
            self.buffer = torch.cat([self.buffer[:, :before], new], dim=1)
            return self.buffer
        if end > self.buffer.size(1):
            longer = new.new_empty(len(new), 2 * end, *new.shape[2:])
            longer[:, :before] = self.buffer[:, :before]
            self.buffer = longer
        self.buffer[:, before:end] = new
        return self.buffer[:, :end]


class Cache:
    """
    ## A layer that remembers

    :::{deeper}
    What each kind of layer keeps of past tokens, and how it is recognized.
    :::

    A layer with a cache has the methods of one of the next classes, and for `super()` those of its own class.
    `start` begins a text.
    """

    def start(self) -> None:
        """Remember nothing."""


class CachedAttention(Cache):
    """
    ### Attention: keep keys and values

    The same for attention of any class: compute keys and values of the new tokens only, and return those of
    all tokens so far. New tokens may be several, because the
    {py:func}`~labml_primer.transformer.attention.causal_mask` takes the queries to belong to the last of the
    keys. Cross-attention raises `TypeError`, because its keys never grow.
    """

    def start(self) -> None:
        self.past_keys, self.past_values = Growing(), Growing()

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if x is not y:
            raise TypeError("cross-attention has no cache; cached is for decoders")
        layer: Any = super()
        query, key, value = layer.project(x, y)
        return query, self.past_keys.append(key), self.past_values.append(value)


class CachedSlidingAttention(CachedAttention):
    """
    ### Attention with a window

    An attention that declares a `window` attends to that many positions, the last of them its own, so it gets
    no more keys. Each query has other ones, so after the first call it reads one token at a time.
    """

    window: int

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().project(x, y)
        seen = int(self.window) + x.size(1) - 1
        return query, key[:, -seen:], value[:, -seen:]

    def forward(self, x: Tensor, *others: Any, **named: Any) -> Any:
        layer: Any = super()
        if not self.past_keys.length:
            return layer.forward(x, *others, **named)
        steps = [
            layer.forward(part, *(part if y is x else y for y in others), **named)
            for part in x.split(1, dim=1)
        ]
        return torch.cat(steps, dim=1)


class CachedWindow(Cache):
    """
    ### Convolutions: keep a window

    No layer so far has a convolution; this is for later ones. Each output of a {term}`causal convolution`
    depends on the last `kernel_size` positions of its input `[batch, seq, ...]`. So put the previous
    `kernel_size - 1` inputs before the new ones (zeros at first), and drop the outputs at those positions.
    {doc}`../primer/primer_ez` has such a layer. A layer that is no convolution calls the number of positions
    its `window`.
    """

    def start(self) -> None:
        self.back = window_of(self) - 1
        self.past: Tensor | None = None

    def forward(self, x: Tensor, *others: Any) -> Tensor:
        if self.past is None:
            self.past = x.new_zeros(x.size(0), self.back, *x.shape[2:])
        x = torch.cat([self.past, x], dim=1)
        self.past.copy_(x[:, x.size(1) - self.back :])
        layer: Any = super()
        y: Tensor = layer.forward(x, *others)
        return y[:, self.back :]


class CachedPositions(Cache):
    """
    ### Positions: keep counting

    The new tokens come after `seen` others, so the first of them gets the encoding of position `seen`. More
    than `max_seq` tokens raise `ValueError`.
    """

    def start(self) -> None:
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        layer: Any = self
        start, end, max_seq = self.seen, self.seen + x.size(1), len(layer.encoding)
        if end > max_seq:
            raise ValueError(f"{end} tokens are more than max_seq {max_seq}")
        self.seen = end
        y: Tensor = layer.dropout(x + layer.encoding[start:end])
        return y


class CachedDistances(Cache):
    """
    ### Positions in attention: keep counting too

    A layer inside attention may need the positions of its tokens, to rotate them for example
    ({doc}`../since/rotary`). It finds the first one in its attribute `tokens_before`, which moves on after
    each call by the length of its input `[batch, seq, ...]`.
    """

    def start(self) -> None:
        self.tokens_before = 0

    def forward(self, x: Tensor, *others: Any) -> object:
        layer: Any = super()
        output = layer.forward(x, *others)
        self.tokens_before += x.size(1)
        return output


def cache_of(layer: nn.Module) -> type[Cache] | None:
    """
    ### Which layers?

    Return the cache that a layer needs. A layer is known by what it declares, not by its class, so this also
    works for classes that you copied, and for your own:

    | a layer with | is | and remembers |
    |---|---|---|
    | a method `project`, and `d_k` | attention | keys and values, the last `window` if it has one |
    | a tensor `encoding` | positions | the number of tokens |
    | `tokens_before` | positions inside attention | the number of tokens |
    | a number `kernel_size` or `window` | a causal convolution, or similar | its last inputs |

    All other layers should treat each position separately, and need no cache. {doc}`/book/pages/use` has a
    layer of one's own with a window.
    """
    if hasattr(type(layer), "project") and hasattr(layer, "d_k"):
        sliding = window_of(layer, "window")
        return CachedSlidingAttention if sliding else CachedAttention
    if isinstance(getattr(layer, "encoding", None), Tensor):
        return CachedPositions
    if hasattr(layer, "tokens_before"):
        return CachedDistances
    return CachedWindow if window_of(layer) else None


@cache
def with_cache(kind: Any, own: Any) -> Any:
    """Return a class with the methods of `kind` before those of a layer's own class."""
    return type(own.__name__, (kind, own), {})


def give_cache(layer: Any, kind: Any) -> None:
    """Give a layer of a copy, in place, a class with a cache."""
    own: Any = type(layer)
    if issubclass(own, Cache):
        raise TypeError("the model has caches; pass the one that it was made of")
    layer.__class__ = with_cache(kind, own)
    layer.start()


def share_weights(model: nn.Module, **changes: object) -> Any:
    """
    ## A second model, the same weights

    :::{deeper}
    How a cache is added without changing the model.
    :::

    Return a copy of `model` with layers of its own and the same weights. `changes` are attributes for each
    layer of the copy.

    Caches are added to such a copy, so they belong to one text, and the model itself does not change. It
    can generate other texts or be trained at the same time. A copy of a compiled model is not compiled,
    because `torch.compile` would compile it again as the cache grows.

    Raises `TypeError` if a method of a layer was replaced, such as its `forward` by one with gradient
    checkpointing or a timer: the new one may call the layer, and not its copy.
    """
    refuse_replaced(model)
    copies: dict[nn.Module | None, Any] = {None: None}
    for layer in model.modules():
        copies[layer] = copy = object.__new__(type(layer))
        # Which hooks and which parameters a layer has is in dictionaries; the copy gets its own.
        for name, value in vars(layer).items():
            vars(copy)[name] = value.copy() if isinstance(value, dict) else value
        vars(copy).update(changes)
        vars(copy).pop("_compiled_call_impl", None)
    for layer in model.modules():
        # `torch.compile` wraps a layer and keeps it as `_orig_mod`.
        vars(copies[layer])["_modules"] = {
            name: copies[getattr(child, "_orig_mod", child)]
            for name, child in layer._modules.items()
        }
        # A method that a layer keeps in an attribute becomes the copy's.
        for name, value in vars(layer).items():
            if isinstance(value, MethodType) and isinstance(value.__self__, nn.Module):
                owner = copies.get(value.__self__, value.__self__)
                vars(copies[layer])[name] = MethodType(value.__func__, owner)
    return copies[getattr(model, "_orig_mod", model)]


def add_caches(model: nn.Module) -> Any:
    """Give each layer of a copy the cache that it needs, and return the model."""
    for layer in model.modules():
        if kind := cache_of(layer):
            give_cache(layer, kind)
    return model


class CachedModel(nn.Module):
    """
    ## KV cache

    `cached(model)` is a copy of `model`, a decoder without an encoder, that remembers what it needs of past
    tokens. Each call gets the new tokens alone, and returns the same logits for them as `model` would if
    given the whole text. The first call is the {term}`prefill`: it gets the whole prompt. All texts of a
    batch must have the same length, and later calls the same texts in the same order. For another text, call
    `cached` again.

    The copy, `cached(model).model`, shares the weights of `model` and is in evaluation mode; `model` does not
    change. What a layer of the copy writes into its attributes is the copy's. Hooks get the new tokens alone.
    Plain `generate` gives a model the whole text at each step, so it does not take a cached one.

    Raises `RuntimeError` if a call failed before, because a part of the text is missing, and in training
    mode. Raises `TypeError` for layers that need earlier tokens in a way that is not in the table above, or
    whose `forward` was replaced, and `ValueError` if the size of the batch changes. A layer that reads more
    than 60 tokens back **and does not declare it** is not found, and makes the logits wrong.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = add_caches(share_weights(model, training=False))
        self.source: list[nn.Module] = [model]  # until it is checked
        self.failed = False
        self.eval()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.failed:
            missing = "an earlier call failed, so a part of the text is missing"
            raise RuntimeError(f"{missing}; call cached(model) again")
        if self.source:
            self.check(*args, **kwargs)
        self.failed = True
        output = self.model(*args, **kwargs)
        self.failed = False
        return output

    def check(self, *args: Any, **kwargs: Any) -> None:
        """
        ### Does the cache know every layer?

        :::{deeper}
        A layer that it does not know would make the text wrong, so the results are compared.
        :::

        Raise `TypeError` if the model has a layer that needs a cache and does not declare it, such as
        `nn.GRU`.

        `check_cache` reads a random text of 64 tokens twice, as a whole and with a cache in pieces, and
        compares the results of all layers; the error names the first that differs. This takes as long as
        about 20 tokens more, so 20% of the time for a text of 100. If a layer declares a longer window, the
        text is longer by that. The check cannot find a dependence on tokens more than 60 back that no layer
        declares.
        """
        plain, *others = (
            share_weights(self.source[0], training=False) for _ in range(3)
        )
        check_cache(plain, [add_caches(other) for other in others], args, kwargs)
        self.source.clear()

    def train(self, mode: bool = True) -> "CachedModel":
        """Raise `RuntimeError` for training mode."""
        if mode:
            raise RuntimeError("a cached model is for inference; train the one without")
        return super().train(mode)


def cached(model: nn.Module) -> CachedModel:
    """Return a {py:class}`~labml_primer.transformer.generation.CachedModel` for one text or batch."""
    return CachedModel(model)


@torch.no_grad()
def generate_cached(
    model: nn.Module, tokens: Tensor, max_new_tokens: int, **settings: Any
) -> Tensor:
    """
    ## The loop with a cache

    Return the same text as {py:func}`~labml_primer.transformer.generation.generate`, up to rounding. Each
    step reads one token, until the text is longer than the model's `max_seq`. From there on, each step shifts
    every token to another position, so cached keys and values would be wrong.

    The cache belongs to this call, so it works at any time: in several threads, and during training. Raises
    `ValueError` if `tokens` is empty or `max_new_tokens` negative, and `TypeError` for a layer that the cache
    does not know or whose `forward` was replaced. A layer that reads more than 60 tokens back must declare it
    ({py:class}`~labml_primer.transformer.generation.CachedModel`).
    """
    check_prompt(tokens, max_new_tokens)
    plain = share_weights(model, training=False)
    # One step needs no cache.
    reader, new = cached(plain) if max_new_tokens > 1 else plain, tokens
    for _ in range(max_new_tokens):
        if tokens.size(1) > plain.config.max_seq:
            reader, new = plain, tokens[:, -plain.config.max_seq :]
        new = sample_token(reader(new)[:, -1], **settings)[:, None]
        tokens = torch.cat([tokens, new], dim=1)
    return tokens


if __name__ == "__main__":
    # ## Does the cache change the text?
    #
    # It must not. A language model in double precision reads a text in pieces of 1, 5 and 14 tokens with the
    # cache, and then as a whole without it. The logits agree up to rounding.
    from labml_primer.transformer.language_model import Config, LanguageModel

    torch.manual_seed(0)
    model = LanguageModel(Config(vocab_size=83)).double()
    tokens = torch.randint(83, (2, 20))
    reader = cached(model)
    with torch.no_grad():
        pieces = [reader(piece) for piece in tokens.split([1, 5, 14], dim=1)]
        difference = (torch.cat(pieces, dim=1) - model(tokens)).abs().max()
    print(f"largest difference {difference:.0e}")
    # With a cache, the linear layers process one token per step, and only the cost of attention grows with
    # the text. {doc}`/benchmarks/speed` measures the time.


if __name__ == "__main__":
    # ## Cautious and bold
    #
    # A small model, trained on Shakespeare for half a minute, continues one prompt with the same random seed
    # and different settings. It is too small to write good English, so compare the settings: greedy decoding
    # repeats itself, and at a temperature of 1.5 improbable characters appear (capitals within words). With
    # top-p they are gone, and the text is still varied.
    from labml_primer.training import load_corpus, train

    corpus = load_corpus()
    torch.manual_seed(0)
    model = LanguageModel(Config(corpus.vocab_size, d_model=96, d_ff=384, layers=2))
    train(model, corpus, name="generation", steps=600, batch=8, seq=64, evaluations=1)
    prompt = corpus.encode("ROMEO.\n")[None]
    settings: dict[str, tuple[float, float | None]] = {
        "greedy": (0.0, None),
        "temperature 0.5": (0.5, None),
        "temperature 1": (1.0, None),
        "temperature 1.5": (1.5, None),
        "temperature 1.5, top-p 0.8": (1.5, 0.8),
    }
    for name, (temperature, top_p) in settings.items():
        generator = torch.Generator().manual_seed(3)
        written = generate(
            model, prompt, 56, temperature=temperature, top_p=top_p, generator=generator
        )
        print(f"{name}:\n  {corpus.decode(written[0, 7:])!r}")


@torch.no_grad()
def beam_search(
    next_logits: Callable[[Tensor], Tensor],
    tokens: Tensor,
    end: int,
    max_length: int,
    beams: int = 4,
    alpha: float = 0.6,
    padding: int = 0,
) -> tuple[Tensor, Tensor]:
    r"""
    ## Beam search

    The most probable sequence need not start with the most probable token. {term}`Beam search` keeps the
    `beams` most probable beginnings, extends each by every token, and keeps the best of the results. It suits
    tasks with one right answer, such as translation, more than open-ended text.

    :::{picture} beam_search
    :::

    A longer sequence has a smaller probability, because that is a product of more factors. To make up for
    this, sequences $Y$ are compared by $\log P(Y)$ divided by a *length penalty* {cite:p}`wu2016google`:

    $$\operatorname{lp}(Y) = \Big(\frac{5 + |Y|}{6}\Big)^{\alpha}$$

    With $\alpha = 0$ it is one. The Transformer's paper uses four beams and $\alpha = 0.6$ (section 6.1).

    Finished sequences are kept aside, the `beams` best of them. A sequence may end if its last token makes it
    one of the `2 * beams` best extensions. The search stops when no unfinished one can still beat the worst
    of the finished, whatever follows: $\log P$ only falls, and the penalty is at most that of `max_length`.
    These are the rules of the paper's own code, Tensor2Tensor.

    `tokens` is `[batch, seq]`. `next_logits` maps beginnings `[batch * beams, length]` to logits of the next
    token, `[batch * beams, vocab_size]`. Returns the continuations `[batch, beams, length]`, best first, and
    their log-probabilities `[batch, beams]`, not divided by the penalty. Each includes `end`, followed by
    `padding`, unless `max_length` is reached first. If there are fewer sequences than beams, the missing ones
    have log-probability minus infinity.
    """
    if beams < 1:
        raise ValueError(f"beams {beams} is below 1")
    if max_length < 0:
        raise ValueError(f"max_length {max_length} is negative")
    batch, seq = tokens.shape
    tokens = tokens[:, None].expand(batch, beams, seq)
    # All beams start with the same tokens, so the same extensions would be found `beams` times. So all beams
    # except the first start with probability zero.
    log_p = torch.full((batch, beams), -math.inf, device=tokens.device)
    finished = log_p.clone(), log_p.clone(), tokens  # none yet
    log_p[:, 0] = 0.0
    length = 0
    for length in range(1, max_length + 1):
        step = next_logits(tokens.flatten(0, 1)).float().log_softmax(dim=-1)
        vocab = step.size(-1)
        if step.isnan().any():
            raise ValueError("a logit is nan, so no token is the most probable one")
        if not 0 <= padding < vocab:
            raise ValueError(f"padding {padding} is not one of the {vocab} tokens")
        total = (log_p[..., None] + step.unflatten(0, (batch, beams))).flatten(1)
        # An index in these `beams * vocab` log-probabilities gives a beam and a token.
        ends = torch.arange(total.size(1), device=tokens.device) % vocab == end
        best = total.topk(min(2 * beams, total.size(1)))
        unfinished = total.masked_fill(ends, -math.inf)
        # Of twice as many extensions as beams, those that end are finished.
        ended = best.values.masked_fill(~ends[best.indices], -math.inf)
        score = ended / length_penalty(length, alpha)
        complete = extended(tokens, best.indices, vocab)
        padded = nn.functional.pad(finished[2], (0, 1), value=padding)
        finished = best_of((*finished[:2], padded), (score, ended, complete))
        # The best of those that do not end are extended again.
        log_p, chosen = unfinished.topk(beams)
        tokens = extended(tokens, chosen, vocab)
        most = max(length_penalty(n, alpha) for n in (length, max_length))
        if (log_p[:, 0] / most <= finished[0][:, -1]).all():
            break
    else:  # the unfinished ones are cut off
        cut_off = log_p / length_penalty(length, alpha), log_p, tokens
        finished = best_of(finished, cut_off)
    return finished[2][..., seq:], finished[1]


def extended(tokens: Tensor, chosen: Tensor, vocab: int) -> Tensor:
    """Return `[batch, beams, length + 1]`: each number that was chosen is `beam * vocab + token`."""
    beam = (chosen // vocab)[..., None].expand(-1, -1, tokens.size(-1))
    return torch.cat([tokens.gather(1, beam), (chosen % vocab)[..., None]], dim=-1)


Beams = tuple[Tensor, Tensor, Tensor]
"""Scores and log-probabilities `[batch, beams]`, best first.

Tokens are `[batch, beams, length]`.
"""


def best_of(some: Beams, others: Beams) -> Beams:
    """Return the best by score, as many as there are in one of the two."""
    score, log_p, tokens = (
        torch.cat(pair, dim=1) for pair in zip(some, others, strict=True)
    )
    score, best = score.topk(some[0].size(1))
    rows = best[..., None].expand(-1, -1, tokens.size(-1))
    return score, log_p.gather(1, best), tokens.gather(1, rows)


def length_penalty(length: int, alpha: float) -> float:
    """
    ## Length penalty

    Return the penalty of {py:func}`~labml_primer.transformer.generation.beam_search` for a number of tokens.
    """
    return float(((5 + length) / 6) ** alpha)


if __name__ == "__main__":
    # ## Does the beam find better lines?
    #
    # The trained model writes one line for each of ten speakers, without a length penalty. One beam decodes
    # greedily, and keeps the best line that it could have ended. The table shows that more beams find more
    # probable lines, and that with 16 beams all lines are empty: ending the line at once is more probable
    # than any particular line of verse. So open-ended text is sampled, and beam search is for tasks with one
    # right answer, with a length penalty.
    newline = int(corpus.encode("\n"))
    names = ["ROMEO", "JULIET", "MACBETH", "BRUTUS", "CASSIUS"]
    names += ["PORTIA", "HAMLET", "OPHELIA", "IAGO", "DESDEMONA"]
    found: dict[int, list[tuple[str, float]]] = {1: [], 4: [], 16: []}
    for name in names:
        prompt = corpus.encode(f"{name}.\n")[None]
        for beams, lines in found.items():
            written, log_p = beam_search(
                lambda text: model(text)[:, -1], prompt, newline, 60, beams, alpha=0.0
            )
            lines.append((corpus.decode(written[0, 0]).strip(), log_p[0, 0].item()))
    results = []
    for beams, lines in found.items():
        mean = sum(value for _, value in lines) / len(lines)
        empty = sum(text == "" for text, _ in lines)
        results.append([beams, f"{mean:.2f}", empty])
    display(Table(["beams", "mean log P of a line", "empty lines, of 10"], results))


if __name__ == "__main__":
    # ## In short
    #
    # - Sampling draws the next token by its probability; temperature, top-k and top-p make it more cautious.
    # - The plain loop reads the whole text for each new token, and only its last position counts.
    # - A KV cache stores keys and values of past tokens, so that each step computes one token instead of the
    #   whole text. It is added from outside, to a copy of a finished model that shares its weights. So the
    #   layers contain no code for it, and each text has a cache of its own.
    # - Beam search finds more probable sequences, which are not always better ones.
    #
    # ## Exercise
    #
    # :::{exercise} First the temperature, then the cut
    # Of the six tokens above, top-p at 0.75 keeps three. How many does it keep after a temperature of 2, and
    # of 0.5? Does a temperature change how many top-k keeps?
    # :::
    # :::{solution}
    # Top-p keeps four at a temperature of 2, and two at 0.5. The more even the probabilities, the more tokens
    # are needed to reach $p$. Top-k keeps $k$ at any temperature, and the same ones, because a temperature
    # does not change the order of the tokens.
    # :::
    odds = torch.tensor([0.40, 0.25, 0.15, 0.10, 0.06, 0.04])
    for temperature, expected in ((0.5, 2), (1.0, 3), (2.0, 4)):
        scores = odds.log() / temperature
        by_p = int(keep_top_p(scores, 0.75).isfinite().sum())
        by_k = int(keep_top_k(scores, 3).isfinite().sum())
        print(f"temperature {temperature}: top-p keeps {by_p}, top-k {by_k}")
        assert (by_p, by_k) == (expected, 3)

    # :::{exercise} Write it: min-p
    # A newer rule keeps each token whose probability is at least `p` times that of the most probable one.
    # Write it for `logits` `[vocab_size]`; the others become minus infinity.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def keep_min_p(logits: Tensor, p: float) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    few, low = torch.tensor([0.5, 0.375, 0.125]).log(), -math.inf
    five = torch.tensor([0.25, 0.25, 0.2, 0.2, 0.1]).log()
    cases: list[Case] = [
        ((few, 0.5), [few[0], few[1], low], "half of 0.5 is 0.25, and 0.125 is less"),
        (
            (few.flip(0) + 7, 0.5),
            torch.tensor([low, *(few.flip(0) + 7)[1:]]),
            "order does not matter, nor does a number that is added to all logits",
        ),
        (
            (five, 0.7),
            torch.cat([five[:4], torch.tensor([low])]),
            "the most probable ones have 0.25, and 0.175 is less than 0.2",
        ),
        ((few, 1.0), [few[0], low, low], "the most probable token is always kept"),
    ]
    check_answer(keep_min_p, cases)

    # :::{solution}
    # Of two probabilities, the logarithm of the quotient is the difference of the logits.
    # :::
    def solved(logits: Tensor, p: float) -> Tensor:
        return logits.masked_fill(logits < logits.max() + math.log(p), -math.inf)

    assert check_answer(solved, cases)

    # To change temperature, top-k and top-p and watch a model write: {doc}`/book/pages/write`.
    #
    # That was the Transformer. Next come the changes that a search made to it: {doc}`../primer/primer_ez`.
