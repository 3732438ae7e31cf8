r"""
# Generating text

How to choose the next token from a model's scores, and how to avoid computing everything again for each.

A language model gives a score for every token that may come next. How do you get a text from it?

Choose a token, append it, ask again. Two questions hide in this. *Which* token: always taking the most
probable one is dull and soon repeats itself, while a sample from the model's distribution now and then
contains a very improbable token. Most programs sample from a distribution that is made more cautious first,
by a {term}`temperature` $\tau$ and by cutting off its tail:

$$P(t) \propto \exp\Big(\frac{z_t}{\tau}\Big) \quad \text{for } t \in \text{kept}$$

And *how fast*: the text has grown by one token, and everything before it is unchanged. In a causal model
nothing that was computed for the earlier tokens can change either. So a {term}`KV cache` keeps their keys and
values, and a step costs one token instead of a whole text.

The layers of this book know nothing of a cache. It is attached to them from outside, here.

Source: {cite:t}`fan2018hierarchical` for top-k; {cite:t}`holtzman2020curious` for top-p;
{cite:t}`vaswani2017attention`, section 6.1, and {cite:t}`wu2016google` for beam search.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Config, LanguageModel
from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
)


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    r"""
    ## Top-k

    Keep the $k$ most probable tokens. `logits` is `[..., vocab_size]`, and so is the result: all others are
    set to minus infinity, which softmax turns into zero.

    It guards against the long tail: thousands of tokens that are all improbable can be probable together. But
    one $k$ does not suit all places. After "to be or not to" there is one good token, after "the" there are
    hundreds.

    Raises `ValueError` if `k` is below one. Source: {cite:t}`fan2018hierarchical`, section 5.4.
    """
    if k < 1:
        raise ValueError(f"top_k {k} is below 1")
    # The k-th best score is the threshold. Ties with it stay.
    threshold = logits.topk(min(k, logits.size(-1))).values[..., -1:]
    return logits.masked_fill(logits < threshold, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    r"""
    ## Top-p

    Also called *nucleus sampling*. Keep the smallest set of tokens whose probability is at least $p$:

    $$\min_{S} |S| \quad \text{with} \quad \sum_{t \in S} P(t) \ge p$$

    If the model is sure, that is one token; if not, it is many.

    Raises `ValueError` unless $0 < p \le 1$. Source: {cite:t}`holtzman2020curious`, section 3.1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"top_p {p} is not above 0 and at most 1")
    if p == 1:
        return logits  # rounding must not cut the tail
    ordered, order = logits.sort(dim=-1, descending=True)
    probabilities = ordered.float().softmax(dim=-1)
    # A token stays if those before it do not yet sum to $p$. So the one that crosses the line stays, and the
    # first always does.
    before = probabilities.cumsum(dim=-1) - probabilities
    kept = ordered.masked_fill(before >= p, -math.inf)
    # Each score returns to its token's place.
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
    tokens more probable; above one it evens the probabilities out. At zero, its limit, the most probable
    token is taken, and nothing is random: *greedy decoding*.

    Raises `ValueError` for a negative temperature.
    """
    if temperature < 0:
        raise ValueError(f"temperature {temperature} is negative")
    if temperature == 0:
        return logits.argmax(dim=-1)
    # Temperature first, so that the cuts see the final probabilities.
    scores = logits.float() / temperature
    if top_k is not None:
        scores = keep_top_k(scores, top_k)
    if top_p is not None:
        scores = keep_top_p(scores, top_p)
    probabilities = scores.softmax(dim=-1)
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)


if __name__ == "__main__":
    # ## The effect on the probabilities
    #
    # Six tokens and their probabilities, before and after.
    odds = torch.tensor([0.40, 0.25, 0.15, 0.10, 0.06, 0.04])
    for name, scores in (
        ("unchanged", odds.log()),
        ("temperature 0.5", odds.log() / 0.5),
        ("temperature 2", odds.log() / 2),
        ("top-k, 3", keep_top_k(odds.log(), 3)),
        ("top-p, 0.75", keep_top_p(odds.log(), 0.75)),
        ("top-p, 0.3", keep_top_p(odds.log(), 0.3)),
    ):
        print(f"{name:16s}" + "".join(f"{p:6.2f}" for p in scores.softmax(dim=-1)))
    # ### Are the samples right?
    #
    # Sample a hundred thousand times and count.
    generator = torch.Generator().manual_seed(0)
    sampled = sample_token(odds.log().expand(100_000, 6), generator=generator)
    shares = torch.bincount(sampled, minlength=6) / 100_000
    print(f"{'sampled':16s}" + "".join(f"{share:6.2f}" for share in shares))


class Growing:
    """
    ## A tensor that grows

    Keys or values of the tokens so far, `[batch, seq, ...]`. The buffer doubles when it is full, so appending
    a token does not copy the whole text each time.
    """

    def __init__(self) -> None:
        self.buffer: Tensor | None = None
        self.length = 0

    def append(self, new: Tensor) -> Tensor:
        """Append `new` `[batch, seq, ...]` and return everything so far."""
        end = self.length + new.size(1)
        if self.buffer is None or end > self.buffer.size(1):
            grown = new.new_empty(new.size(0), 2 * end, *new.shape[2:])
            if self.buffer is not None:
                grown[:, : self.length] = self.buffer[:, : self.length]
            self.buffer = grown
        self.buffer[:, self.length : end] = new
        self.length = end
        return self.buffer[:, :end]


@contextmanager
def cache_keys_and_values(layer: MultiHeadAttention) -> Iterator[None]:
    """
    ## Attention: keep keys and values

    Past queries are not needed again, because their outputs are known. Their keys and values are: the new
    query attends to all of them. So
    {py:meth}`~labml_primer.transformer.attention.MultiHeadAttention.project` still computes keys and values
    of the new tokens alone, and returns those of the whole text. The causal mask already takes the queries
    for the last of the keys.
    """
    keys, values, project = Growing(), Growing(), layer.project

    def project_new(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = project(x, y)
        return query, keys.append(key), values.append(value)

    layer.project = project_new  # type: ignore[method-assign]
    try:
        yield
    finally:
        del layer.project


@contextmanager
def cache_window(layer: nn.Module, kernel_size: int) -> Iterator[None]:
    """
    ## Convolutions: keep a window

    A causal convolution sees the last `kernel_size` positions of its input `[batch, seq, ...]`. So it gets
    the previous `kernel_size - 1` inputs in front of the new ones, zeros at first, and the outputs at those
    places are dropped again. No later output looks farther back.
    """
    back, forward = kernel_size - 1, layer.forward
    window: Tensor | None = None

    def forward_new(x: Tensor) -> Tensor:
        nonlocal window
        if window is None:
            window = x.new_zeros(x.size(0), back, *x.shape[2:])
        x = torch.cat([window, x], dim=1)
        window = x[:, x.size(1) - back :]
        y: Tensor = forward(x)
        return y[:, back:]

    layer.forward = forward_new
    try:
        yield
    finally:
        del layer.forward


@contextmanager
def count_positions(
    layer: PositionalEncoding | LearnedPositionalEncoding,
) -> Iterator[None]:
    """
    ## Positions: keep counting

    New tokens come after `seen` others, so the first of them gets the encoding of position `seen`.
    """
    seen, max_seq = 0, layer.encoding.size(0)

    def forward_new(x: Tensor) -> Tensor:
        nonlocal seen
        start, seen = seen, seen + x.size(1)
        if seen > max_seq:
            raise ValueError(f"{seen} tokens are more than max_seq {max_seq}")
        y: Tensor = layer.dropout(x + layer.encoding[start:seen])
        return y

    layer.forward = forward_new  # type: ignore[method-assign]
    try:
        yield
    finally:
        del layer.forward


@contextmanager
def kv_cache(model: nn.Module) -> Iterator[None]:
    """
    ## KV cache

    Within `with kv_cache(model):` each call of `model` continues the text of the calls before: it is given
    the new tokens alone, and computes what it would for the whole text. All texts of a batch grow together.
    On leaving the block the model is as it was: only methods of its layers were replaced meanwhile.

    It reaches every layer that looks at other positions: attention, positions, and whatever says in
    `kernel_size` how many positions it sees. All other layers treat each position separately.
    """
    with ExitStack() as caches:
        for layer in model.modules():
            if isinstance(layer, MultiHeadAttention):
                caches.enter_context(cache_keys_and_values(layer))
            elif isinstance(layer, PositionalEncoding | LearnedPositionalEncoding):
                caches.enter_context(count_positions(layer))
            elif isinstance(kernel_size := getattr(layer, "kernel_size", None), int):
                caches.enter_context(cache_window(layer, kernel_size))
        yield


@torch.no_grad()
def generate(
    model: LanguageModel,
    tokens: Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """
    ## The loop

    Return `tokens` `[batch, seq]` followed by `max_new_tokens` sampled ones.
    {py:func}`~labml_primer.transformer.generation.sample_token` explains the settings; `generator` makes the
    text reproducible. Dropout is off meanwhile.

    A text may outgrow the model's `max_seq`. Then the model reads its last `max_seq` tokens. Raises
    `ValueError` if `tokens` is empty.
    """
    if tokens.size(1) == 0:
        raise ValueError("no tokens: the model needs at least one to continue")
    choose = partial(
        sample_token,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        generator=generator,
    )
    max_seq, end = model.config.max_seq, tokens.size(1) + max_new_tokens
    training = model.training
    model.eval()
    try:
        with kv_cache(model):
            new = tokens
            while tokens.size(1) < end and tokens.size(1) <= max_seq:
                new = choose(model(new)[:, -1])[:, None]
                tokens = torch.cat([tokens, new], dim=1)
        # Once the text is too long, each step moves every token to another position, so nothing that was
        # cached would be right.
        while tokens.size(1) < end:
            new = choose(model(tokens[:, -max_seq:])[:, -1])[:, None]
            tokens = torch.cat([tokens, new], dim=1)
    finally:
        model.train(training)
    return tokens


if __name__ == "__main__":
    # ## Does the cache change the text?
    #
    # It must not. A Transformer in double precision reads a text in pieces of 1, 5 and 14 tokens, and then as
    # a whole.
    torch.manual_seed(0)
    model = LanguageModel(Config(vocab_size=83)).double()
    tokens = torch.randint(83, (2, 20))
    with torch.no_grad():
        with kv_cache(model):
            pieces = [model(piece) for piece in tokens.split([1, 5, 14], dim=1)]
        difference = (torch.cat(pieces, dim=1) - model(tokens)).abs().max()
    print(f"largest difference {difference:.0e}")
    # A cached token costs little even in a long text, as the matrices see one token and only the look-up
    # grows: {doc}`/benchmarks/speed` measures it.


if __name__ == "__main__":
    # ## Cautious and bold
    #
    # A small model that has read Shakespeare for half a minute continues one prompt with the same random seed
    # and different settings.
    from labml_primer.training import load_corpus, train

    corpus = load_corpus()
    torch.manual_seed(0)
    model = LanguageModel(Config(corpus.vocab_size, d_model=96, d_ff=384, layers=2))
    train(model, corpus, name="generation", steps=600, seq=64, evaluations=1)
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
            model, prompt, 56, temperature, top_p=top_p, generator=generator
        )
        print(f"{name}:\n  {corpus.decode(written[0, 7:])!r}")
    # Greedy decoding repeats itself. At a temperature of 1.5 the improbable tail takes over. Top-p cuts it
    # off: the text is varied, but each token is one that the model finds plausible.


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

    The most probable first token need not begin the most probable sequence. A beam keeps the `beams` best
    beginnings, extends each by every token, and keeps the best of those. It suits tasks with one right
    answer, such as translation, more than open-ended text.

    A longer sequence has a smaller probability, because it is a product of more factors. To be fair to long
    ones, sequences $Y$ are compared by $\log P(Y)$ divided by a *length penalty* {cite:p}`wu2016google`:

    $$\operatorname{lp}(Y) = \Big(\frac{5 + |Y|}{6}\Big)^{\alpha}$$

    With $\alpha = 0$ it is one. The Transformer's paper uses four beams and $\alpha = 0.6$ (section 6.1).

    `tokens` is `[batch, seq]`. `next_logits` takes beginnings `[batch * beams, length]` to the scores of the
    next token, `[batch * beams, vocab_size]`. Returns the continuations `[batch, beams, length]`, best first,
    and their log-probabilities `[batch, beams]`, not divided. `end` is included, and `padding` follows it. If
    there are fewer sequences than beams, the missing ones have log-probability minus infinity.
    """
    if beams < 1:
        raise ValueError(f"beams {beams} is below 1")
    batch, seq = tokens.shape
    tokens = tokens.repeat_interleave(beams, dim=0)
    # All beams begin with the same tokens. If each counted, the same beginning would be found `beams` times,
    # so all but the first start out impossible.
    log_p = torch.full((batch, beams), -math.inf, device=tokens.device)
    log_p[:, 0] = 0.0
    length = torch.zeros_like(log_p)
    ended = torch.zeros_like(log_p, dtype=torch.bool)
    first_row = torch.arange(batch, device=tokens.device)[:, None] * beams
    for _ in range(max_length):
        step = next_logits(tokens).float().log_softmax(dim=-1)
        step = step.unflatten(0, (batch, beams))
        # A sequence that has ended continues with padding, at probability one. So it stays in the race with a
        # score that no longer changes, until better ones replace it.
        step = step.masked_fill(ended[..., None], -math.inf)
        step[..., padding].masked_fill_(ended, 0.0)
        length += ~ended
        total = log_p[..., None] + step  # [batch, beams, vocab]
        score = total / length_penalty(length, alpha)[..., None]
        # The best of all beams' extensions. The index in the flat list gives beam and token.
        best = score.flatten(1).topk(beams).indices
        beam, token = best // step.size(-1), best % step.size(-1)
        # Everything that belongs to a beam moves with it.
        log_p = total.flatten(1).gather(1, best)
        length = length.gather(1, beam)
        ended = ended.gather(1, beam) | (token == end)
        rows = (first_row + beam).flatten()
        tokens = torch.cat([tokens[rows], token.view(-1, 1)], dim=1)
        if ended.all():
            break
    return tokens[:, seq:].unflatten(0, (batch, beams)), log_p


def length_penalty(length: Tensor, alpha: float) -> Tensor:
    """
    ## Length penalty

    The denominator above, for lengths of any shape.
    """
    return ((5 + length) / 6) ** alpha


if __name__ == "__main__":
    # ## Does the beam find better lines?
    #
    # The trained model continues the names of ten speakers to the end of the first line. A beam of one is
    # greedy decoding.
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
    for beams, lines in found.items():
        mean = sum(value for _, value in lines) / len(lines)
        empty = sum(text == "" for text, _ in lines)
        print(
            f"{beams:2d} beams: log P {mean:6.2f} on average, {empty} of 10 lines empty"
        )
    # A wider beam finds more probable lines, and they are worse: ending the line at once is more probable
    # than any particular line of verse. A beam finds what the model believes. Open-ended text is therefore
    # sampled, and beam search is kept for tasks with one right answer, with a length penalty against short
    # ones.


if __name__ == "__main__":
    # ## In short
    #
    # - Sampling chooses the next token; temperature, top-k and top-p make it more cautious.
    # - A KV cache keeps keys and values of past tokens, so that a new token costs one token and not a text.
    # - It is attached to a finished model from outside; the layers know nothing of it.
    # - Beam search finds more probable sequences, which are not always better ones.
    #
    # ## Exercise
    #
    # :::{exercise} First the heat, then the cut
    # Of the six tokens above, top-p at 0.75 keeps three. How many does it keep after a temperature of 2, and
    # of 0.5? Does a temperature change how many top-k keeps?
    # :::
    # :::{solution}
    # Four and two. The temperature changes the probabilities first, and where they are more even, more tokens
    # are needed to reach $p$. Top-k counts tokens, and a temperature keeps their order: it always keeps
    # three.
    # :::
    odds = torch.tensor([0.40, 0.25, 0.15, 0.10, 0.06, 0.04])
    for temperature, expected in ((0.5, 2), (1.0, 3), (2.0, 4)):
        scores = odds.log() / temperature
        by_p = int(keep_top_p(scores, 0.75).isfinite().sum())
        by_k = int(keep_top_k(scores, 3).isfinite().sum())
        print(f"temperature {temperature}: top-p keeps {by_p}, top-k {by_k}")
        assert (by_p, by_k) == (expected, 3)

    # That was the Transformer. The changes that a search made to it begin with {doc}`../primer/primer_ez`.
