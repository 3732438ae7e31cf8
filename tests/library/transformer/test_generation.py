"""What the chapter on generating text promises."""

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import pytest
import torch
from catalogue import CONFIGS, D_FF, D_MODEL, HEADS, MAX_SEQ, SMALL, VOCAB
from hypothesis import given
from hypothesis import strategies as st
from sphinx_annotated.take.standalone import snippets
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from twins import END, START, cut, sources, stirred, transformer
from write_notebooks import the_book

from labml_primer.primer.compiled_generation import generate_compiled
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.search.programs import PRIMER
from labml_primer.search.running import Program
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.generation import (
    beam_search,
    cached,
    generate,
    generate_cached,
    keep_top_k,
    keep_top_p,
    length_penalty,
    read_one_by_one,
    sample_token,
)
from labml_primer.transformer.language_model import Block, Config, LanguageModel
from labml_primer.transformer.model import Transformer

every = pytest.mark.parametrize("name", CONFIGS)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def model_of(config: Config) -> LanguageModel:
    torch.manual_seed(0)
    return stirred(LanguageModel(config)).eval()


def tokens_of(batch: int = 3, seq: int = MAX_SEQ) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(VOCAB, (batch, seq), generator=generator)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uncached(model: LanguageModel, tokens: Tensor, n: int) -> Tensor:
    """Greedy decoding that reads the whole text, or its last `max_seq` tokens, at each step."""
    for _ in range(n):
        best = model(tokens[:, -MAX_SEQ:])[:, -1].argmax(dim=-1)
        tokens = torch.cat([tokens, best[:, None]], dim=1)
    return tokens


# Sampling

logits_lists = st.lists(st.floats(-20, 20), min_size=1, max_size=12)


@given(logits_lists, st.integers(1, 15))
def test_top_k_keeps_the_k_largest_logits(values: list[float], k: int) -> None:
    logits = torch.tensor(values)
    threshold = sorted(logits.tolist(), reverse=True)[min(k, len(values)) - 1]
    expected = [v if v >= threshold else -math.inf for v in logits.tolist()]
    assert keep_top_k(logits, k).tolist() == expected


@given(logits_lists, st.floats(0.01, 1.0))
def test_top_p_keeps_the_fewest_tokens_that_reach_p(
    values: list[float], p: float
) -> None:
    logits = torch.tensor(values, dtype=torch.float64)
    odds = logits.float().softmax(-1).double()
    kept = keep_top_p(logits, p) > -math.inf
    assert kept.any()
    assert torch.equal(keep_top_p(logits, p)[kept], logits[kept])
    assert odds[kept].sum() >= p - 1e-5
    assert odds[kept].sum() - odds[kept].min() < p + 1e-5
    assert kept.all() or odds[~kept].max() <= odds[kept].min()


def test_top_p_treats_each_row_separately() -> None:
    logits = torch.randn(4, 11)
    rows = torch.stack([keep_top_p(row, 0.7) for row in logits])
    assert torch.equal(keep_top_p(logits, 0.7), rows)


def test_top_p_of_one_keeps_everything() -> None:
    # So many that a running sum in `float32` reaches 1 before the last.
    logits = 3 * torch.randn(5, 50_000)
    assert torch.equal(keep_top_p(logits, 1.0), logits)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_samples_have_the_probabilities_of_the_formula(temperature: float) -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    sampled = sample_token(logits.expand(40_000, 4), temperature, generator=seeded())
    shares = torch.bincount(sampled, minlength=4) / 40_000
    weights = torch.tensor([math.exp(z / temperature) for z in logits.tolist()])
    torch.testing.assert_close(shares, weights / weights.sum(), atol=0.015, rtol=0)


@pytest.mark.parametrize("temperature", [1e-4, 1e-38, 1e-40, 1e-320, 5e-324])
def test_the_lowest_temperatures_are_greedy(temperature: float) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        logits = (50 * torch.randn(20, 11)).to(dtype)
        logits[:, 3] = -math.inf
        logits[:, 5] = logits.amax(-1) + 1
        for kept in ({}, {"top_k": 3}, {"top_p": 0.9}):
            sampled = sample_token(logits, temperature, generator=seeded(), **kept)
            assert torch.equal(sampled, logits.argmax(-1))


def test_tokens_that_are_cut_are_never_sampled() -> None:
    logits = torch.zeros(5000, 6)
    logits[:, :2] = 1.0
    assert sample_token(logits, 5.0, top_k=2, generator=seeded()).max() == 1
    assert sample_token(logits, 1.0, top_p=0.4, generator=seeded()).max() == 1


def test_top_p_uses_the_probabilities_after_temperature() -> None:
    # 0.8 and 0.2; at temperature 0.5 they are 0.94 and 0.06.
    logits = torch.tensor([[0.8, 0.2]]).log().expand(500, 2)
    assert sample_token(logits, 1.0, top_p=0.9, generator=seeded()).max() == 1
    assert sample_token(logits, 0.5, top_p=0.9, generator=seeded()).max() == 0


def test_temperature_zero_is_greedy_and_uses_no_randomness() -> None:
    logits, generator = torch.randn(6, 11), seeded()
    before = generator.get_state()
    greedy = sample_token(logits, 0.0, generator=generator)
    assert torch.equal(greedy, logits.argmax(-1))
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"temperature": -1.0}, "temperature -1"),
        ({"temperature": math.inf}, "temperature inf"),
        ({"temperature": math.nan}, "temperature nan"),
        ({"top_k": 0}, "top_k 0"),
        ({"top_k": -2, "temperature": 0.0}, "top_k -2"),
        ({"top_p": 0.0}, "top_p 0"),
        ({"top_p": 1.5}, r"top_p 1\.5"),
        ({"top_p": -0.1, "temperature": 0.0}, r"top_p -0\.1"),
        ({"top_p": math.nan}, "top_p nan"),
    ],
)
def test_error_names_the_invalid_setting(setting: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        sample_token(torch.zeros(1, 3), **setting)


# The KV cache


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 5))
def test_the_copied_lines_of_the_idea_compute_causal_attention(
    seq: int, d_k: int, d_v: int
) -> None:
    text, maps = torch.randn(seq, 4), torch.randn(3, 4, max(d_k, d_v))
    to_query, to_key, to_value = maps[0, :, :d_k], maps[1, :, :d_k], maps[2, :, :d_v]
    pasted: dict[str, Any] = {}
    exec(idea(), pasted)
    found = pasted["read_one_by_one"](text, to_query, to_key, to_value)
    query, key, value = ((text @ each)[None] for each in (to_query, to_key, to_value))
    whole = F.scaled_dot_product_attention(query, key, value, is_causal=True)[0]
    torch.testing.assert_close(found, whole)
    ours = read_one_by_one(text, to_query, to_key, to_value)
    torch.testing.assert_close(found, ours)


@cache
def idea() -> str:
    """What a reader copies of the cache's first idea: some twenty lines that need torch alone."""
    path = Path(inspect.getfile(read_one_by_one))
    book = the_book()
    text = snippets(book, book.project.at(path))["read_one_by_one"]
    imported = re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)
    assert set(imported) <= {"math", "torch"}
    return text


@every
def test_generated_text_is_that_of_the_uncached_model_even_beyond_max_seq(
    name: str,
) -> None:
    model, start = model_of(CONFIGS[name]), tokens_of(2, 3)
    written = generate_cached(model, start, 12, temperature=0)
    assert torch.equal(written, uncached(model, start, 12))


@pytest.mark.parametrize(
    "name",
    [
        "transformer-mdha",
        "transformer-sep-conv",
        "primer-ez",
        "primer",
        "evolved-transformer",
        "switch-primer",
    ],
)
def test_the_cache_still_works_with_convolutions_replaced_by_identity(
    name: str,
) -> None:
    model, start = model_of(CONFIGS[name]), tokens_of(2, 3)
    paths = [
        path
        for path, module in model.named_modules()
        if isinstance(module, SpatialDepthWiseConvolution)
    ]
    assert paths
    for path in paths[::2]:
        model.set_submodule(path, nn.Identity())
    written = generate_cached(model, start, 12, temperature=0)
    assert torch.equal(written, uncached(model, start, 12))


@every
def test_two_texts_are_two_copies_and_the_model_stays_as_it_is(name: str) -> None:
    model, tokens = model_of(CONFIGS[name]).train(), tokens_of()
    before = {n: dict(vars(layer)) for n, layer in model.named_modules()}
    first, second = cached(model), cached(model)
    pieces: list[list[Tensor]] = [[], []]
    with torch.no_grad():
        for piece in tokens.split(3, dim=1):
            pieces[0].append(first(piece))
            pieces[1].append(second(piece.flip(0)))
    after = {n: dict(vars(layer)) for n, layer in model.named_modules()}
    assert after == before
    whole = model.eval()(tokens)
    torch.testing.assert_close(torch.cat(pieces[0], dim=1), whole)
    torch.testing.assert_close(torch.cat(pieces[1], dim=1), whole.flip(0))


def test_a_cached_model_has_the_weights_that_are_trained_meanwhile() -> None:
    model, tokens = model_of(CONFIGS["primer-ez"]), tokens_of()
    reader = cached(model)
    pairs = zip(reader.parameters(), model.parameters(), strict=True)
    assert all(a is b for a, b in pairs)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)
        torch.testing.assert_close(reader(tokens), model(tokens))


def test_gradients_flow_through_a_piece_read_with_the_cache() -> None:
    model, tokens = model_of(CONFIGS["primer-ez"]), tokens_of()
    reader = cached(model)
    with torch.no_grad():
        reader(tokens[:, :4])
    reader(tokens[:, 4:]).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


@every
def test_the_gradient_through_several_pieces_is_that_of_the_whole_text(
    name: str,
) -> None:
    model, tokens = model_of(CONFIGS[name]), tokens_of()
    weights, reader = list(model.parameters()), cached(model)
    upstream = torch.randn_like(model(tokens))

    def gradients(logits: Tensor) -> tuple[Tensor, ...]:
        total = (logits * upstream).sum()
        return torch.autograd.grad(total, weights, materialize_grads=True)

    pieces = [reader(piece) for piece in tokens.split([1, 2, 3, 1, 2], dim=1)]
    found = gradients(torch.cat(pieces, dim=1))
    torch.testing.assert_close(found, gradients(model(tokens)))


def test_a_cached_attention_layer_accepts_a_mask() -> None:
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3).double(), torch.randn(2, 7, 12).double()
    mask = torch.rand(2, 1, 7, 7) < 0.6
    whole, parts, reader = layer(x, x, mask, causal=True), [], cached(layer)
    with (
        torch.no_grad(),
        pytest.warns(RuntimeWarning, match="MultiHeadAttention could not be checked"),
    ):
        for start, end in ((0, 3), (3, 4), (4, 7)):
            part = x[:, start:end]
            parts.append(reader(part, part, mask[:, :, start:end, :end], True))
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


@pytest.mark.filterwarnings("ignore:the KV cache of")
def test_a_cache_for_an_encoder_decoder_is_an_error() -> None:
    model = Transformer(20, 20, d_model=16, heads=2, d_ff=32, layers=1).eval()
    source = torch.arange(1, 6)[None]
    with pytest.raises(TypeError, match="cross-attention"):
        cached(model)(source, source[:, :1])


def test_more_cached_tokens_than_max_seq_are_an_error() -> None:
    reader = cached(model_of(SMALL))
    reader(tokens_of(2, 6))
    with pytest.raises(ValueError, match=r"10.*9"):
        reader(tokens_of(2, 4))


@pytest.mark.parametrize("name", ["transformer", "primer-ez"])
@pytest.mark.parametrize("first, later", [(2, 1), (1, 2), (3, 2)])
def test_a_cache_refuses_another_number_of_texts_and_is_then_of_no_use(
    name: str, first: int, later: int
) -> None:
    reader = cached(model_of(CONFIGS[name]))
    reader(tokens_of(first, 4))
    both = f"a batch of {later} after one of {first}|size {first} but got size {later}"
    with pytest.raises((ValueError, RuntimeError), match=both):
        reader(tokens_of(later, 1))
    with pytest.raises(RuntimeError, match="a part of the text is missing"):
        reader(tokens_of(first, 1))


def test_plain_generation_does_not_take_a_cached_model() -> None:
    with pytest.raises(AttributeError, match=r"'CachedModel' .* no attribute 'config'"):
        generate(cached(model_of(SMALL)), tokens_of(2, 3), 2)


def test_a_cached_model_is_not_cached_again_and_not_trained() -> None:
    reader = cached(model_of(CONFIGS["primer-ez"]))
    for part in (reader, reader.model, reader.model.blocks[0]):
        with pytest.raises(TypeError, match="the model has caches"):
            cached(part)
    with pytest.raises(RuntimeError, match="for inference"):
        reader.train()
    assert not any(layer.training for layer in reader.eval().modules())


class Sliding(MultiHeadAttention):
    """Attention to the last positions, which the cache is told as a window."""

    window: int

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        back = torch.arange(x.size(1))[:, None] - torch.arange(y.size(1))
        return super().forward(x, y, back < self.window, causal)


@pytest.mark.parametrize("window", [1, 4, 80])
def test_an_attention_with_a_window_is_right_with_the_cache(window: int) -> None:
    kind = type("Windowed", (Sliding,), {"window": window})
    model = model_of(replace(SMALL, attention=kind, max_seq=120))
    tokens, reader = tokens_of(2, 100), cached(model)
    with torch.no_grad():
        pieces = [reader(piece) for piece in tokens.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))


@pytest.mark.parametrize("window", [1, 4, 80])
def test_after_a_prompt_an_attention_with_a_window_reads_pieces_of_any_length(
    window: int,
) -> None:
    kind = type("Windowed", (Sliding,), {"window": window})
    model = model_of(replace(SMALL, attention=kind, max_seq=120))
    tokens, reader = tokens_of(2, 100), cached(model)
    with torch.no_grad():
        pieces = [reader(piece) for piece in tokens.split([85, 1, 10, 4], dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))


@pytest.mark.parametrize("window", [np.int64(70), np.uint8(70)])
def test_a_window_may_be_any_kind_of_integer_and_have_a_kernel_size_beside_it(
    window: Any,
) -> None:
    names = {"window": window, "kernel_size": 3}
    for kind, right in ((Sliding, True), (OneMore, False)):
        model = LanguageModel(
            replace(SMALL, attention=type("Windowed", (kind,), names), max_seq=99)
        ).double()
        for weight in model.parameters():
            nn.init.normal_(weight, std=0.5)
        tokens, reader = tokens_of(1, 90), cached(model.eval())
        if right:
            with torch.no_grad():
                pieces = [reader(piece) for piece in tokens.split(1, dim=1)]
            torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))
        else:
            with pytest.raises(TypeError, match="cannot be cached"):
                reader(tokens)


class OneMore(Sliding):
    """Reads one position more than it declares."""

    def forward(
        self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        back = torch.arange(x.size(1))[:, None] - torch.arange(y.size(1))
        return MultiHeadAttention.forward(self, x, y, back <= self.window, causal)


@pytest.mark.parametrize("window", [1, 32, 96])
def test_a_window_that_is_declared_too_small_is_an_error_however_long_it_is(
    window: int,
) -> None:
    kind = type("Wrong", (OneMore,), {"window": window})
    model = LanguageModel(replace(SMALL, attention=kind, max_seq=200))
    for weight in model.parameters():  # so that one key of 96 counts
        nn.init.normal_(weight, std=0.5)
    said = r"attention \(Wrong\) cannot be cached.* its `window`"
    with pytest.raises(TypeError, match=said):
        cached(model)(tokens_of(2, 3))


class Delay(nn.Module):
    """Adds the vector three positions back."""

    window = 4

    def __init__(self, config: Config):
        super().__init__()
        self.linear = nn.Linear(config.d_model, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.pad(self.linear(x), (0, 0, 3, 0))[:, : x.size(1)]


class BiasedDelay(Delay):
    """Has zeros before the text where others have the bias, so inputs of zero are not enough."""

    def __init__(self, config: Config):
        super().__init__(config)
        self.linear = nn.Linear(config.d_model, config.d_model)


def test_a_layer_of_the_readers_own_declares_how_far_back_it_reads() -> None:
    model, tokens = model_of(replace(SMALL, block=Delay)), tokens_of()
    reader = cached(model)
    with torch.no_grad():
        pieces = [reader(piece) for piece in tokens.split([1, 2, 6], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(tokens))


def test_a_layer_that_the_cache_gets_wrong_at_the_beginning_is_an_error() -> None:
    reader = cached(model_of(replace(SMALL, block=BiasedDelay, max_seq=99)))
    with pytest.raises(TypeError, match=r"blocks\.0 \(BiasedDelay\) cannot be cached"):
        reader(tokens_of())


def looked_at(layer: nn.Module) -> Callable[..., Any]:
    forward = layer.forward
    return lambda *args, **kwargs: forward(*args, **kwargs)


@pytest.mark.parametrize("name", ["primer-ez", "modern", "switch-primer"])
@pytest.mark.parametrize(
    ("part", "named"),
    [
        ("", "LanguageModel"),
        ("blocks.1", r"blocks\.1 \(.*Block"),
        ("blocks.0.attention", r"blocks\.0\.attention \(.*Attention"),
    ],
)
def test_a_forward_that_was_replaced_is_an_error_that_says_so(
    name: str, part: str, named: str
) -> None:
    model, tokens = model_of(CONFIGS[name]), tokens_of(2, 3)
    layer = model.get_submodule(part)
    layer.forward = looked_at(layer)  # type: ignore[method-assign]
    with pytest.raises(TypeError, match=f"^{named}.* its forward was replaced"):
        cached(model)(tokens)
    del layer.forward
    assert torch.isfinite(cached(model)(tokens)).all()


REPLACED: dict[str, tuple[str, Callable[[nn.Module], Any]]] = {
    "a recorder": ("blocks.0.feed_forward", looked_at),
    "checkpointing": (
        "blocks.1",
        lambda layer: partial(checkpoint, layer.forward, use_reentrant=False),
    ),
    "autocast": ("", lambda layer: torch.autocast("cpu")(layer.forward)),
    "a method of the object": (
        "blocks.0.attention",
        lambda layer: MethodType(type(layer).forward, layer),
    ),
    "a function of its own": ("blocks.0.attention.query", lambda _: torch.zeros_like),
}


@pytest.mark.parametrize("how", REPLACED)
@pytest.mark.parametrize(
    "copied",
    [
        cached,
        lambda model: generate_cached(model.train(), tokens_of(1, 3), 1),
        lambda model: generate_compiled(model, tokens_of(1, 3), 2),
    ],
    ids=["cached", "generate_cached", "generate_compiled"],
)
def test_no_copy_is_made_of_a_layer_with_a_replaced_forward(
    how: str, copied: Callable[[nn.Module], object]
) -> None:
    model, (part, replacement) = model_of(CONFIGS["primer-ez"]), REPLACED[how]
    layer = model.get_submodule(part)
    layer.forward = replacement(layer)  # type: ignore[method-assign]
    named = re.escape(part or "LanguageModel")
    with pytest.raises(TypeError, match=f"^{named}.* its forward was replaced.*del"):
        copied(model)


@pytest.mark.parametrize("hooked", [True, False])
def test_a_hook_or_another_forward_outside_of_torch_compile_is_an_error_that_says_so(
    hooked: bool,
) -> None:
    model = model_of(SMALL)
    layer = model.blocks[1] = torch.compile(model.blocks[1], backend="eager")
    cached(model)
    if hooked:
        layer.register_forward_hook(lambda *_: None)
    else:
        layer.forward = looked_at(layer)
    with pytest.raises(TypeError, match="forward was replaced, or has hooks, outside"):
        cached(model)


class Chooses(nn.Module):
    """Keeps one of its methods in an attribute, as a layer does that chooses between two."""

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.attention, self.chosen = attention, self.attend
        self.dropout = nn.Dropout(0.5)

    def attend(self, x: Tensor, y: Tensor, causal: bool) -> Tensor:
        attended: Tensor = self.dropout(self.attention(x, y, causal=causal))
        return attended

    def forward(self, x: Tensor, y: Tensor, causal: bool = False) -> Tensor:
        return self.chosen(x, y, causal)


def test_a_method_that_a_layer_keeps_in_an_attribute_is_that_of_the_copy() -> None:
    model, tokens = model_of(SMALL), tokens_of(2, 6)
    for block in model.blocks:
        block.attention = Chooses(block.attention)
    reader = cached(model.train())
    with torch.no_grad():
        pieces = [reader(piece) for piece in tokens.split([3, 1, 2], dim=1)]
    assert model.blocks[0].attention.chosen.__self__ is model.blocks[0].attention
    torch.testing.assert_close(torch.cat(pieces, dim=1), model.eval()(tokens))


def test_a_replaced_projection_is_an_error_that_says_so() -> None:
    model = model_of(SMALL)
    attention: Any = model.blocks[0].attention
    project = attention.project
    attention.project = lambda *inputs: project(*inputs)
    with pytest.raises(TypeError, match=r"attention .* its project was replaced"):
        cached(model)


# Layers that the cache does not know


def causal(seq: int) -> Tensor:
    return torch.ones(seq, seq, dtype=torch.bool).triu(1)


def self_attention(layer: nn.Module, x: Tensor) -> Tensor:
    return x + layer(x, x, x, attn_mask=causal(x.size(1)))[0]


def fused_attention(layer: nn.Module, x: Tensor) -> Tensor:
    return x + F.scaled_dot_product_attention(layer(x), x, x, is_causal=True)


def shifted(_: nn.Module, x: Tensor) -> Tensor:
    return x + F.pad(x, (0, 0, 1, 0))[:, :-1]


def convolved(layer: nn.Module, x: Tensor) -> Tensor:
    return x + layer(F.pad(x.mT, (2, 0))).mT


Forward = Callable[[nn.Module, Tensor], Tensor]
# A layer, what a block does with it, and the name in the error.
FOREIGN: dict[str, tuple[Callable[[], nn.Module], Forward, str]] = {
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True),
        self_attention,
        "blocks.0.layer (MultiheadAttention)",
    ),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, batch_first=True),
        lambda layer, x: layer(x, src_mask=causal(x.size(1))),
        "blocks.0.layer",  # it, or the attention in it, which it calls unless it may be fused
    ),
    "GRU": (
        lambda: nn.GRU(D_MODEL, D_MODEL, batch_first=True),
        lambda layer, x: x + layer(x)[0],
        "blocks.0.layer (GRU)",
    ),
    "Conv1d": (
        lambda: nn.Conv1d(D_MODEL, D_MODEL, 3),
        convolved,
        "blocks.0.layer (Conv1d)",
    ),
    "scaled_dot_product_attention": (
        lambda: nn.Linear(D_MODEL, D_MODEL),
        fused_attention,
        "blocks.0 (Foreign)",
    ),
    "shift": (nn.Identity, shifted, "blocks.0 (Foreign)"),
    "attention used twice": (
        lambda: CONFIGS["transformer"].block(SMALL),
        lambda block, x: block(block(x)),
        "blocks.0.layer.attention (MultiHeadAttention)",
    ),
    "Primer's program": (
        lambda: Program(PRIMER, 16, MAX_SEQ),
        lambda program, x: x + program(F.pad(x, (0, 4)))[..., :D_MODEL],
        "blocks.0.layer (Program)",
    ),
}


class Foreign(nn.Module):
    def __init__(self, layer: nn.Module, use: Forward):
        super().__init__()
        self.layer, self.use = layer, use

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self.layer, x)


def foreign(kind: tuple[Callable[[], nn.Module], Forward, str]) -> type[nn.Module]:
    return lambda _: Foreign(kind[0](), kind[1])  # type: ignore[return-value]


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_layer_that_the_cache_does_not_know_is_an_error_that_names_it(
    kind: str,
) -> None:
    model = LanguageModel(replace(SMALL, block=foreign(FOREIGN[kind]))).eval()
    name = re.escape(FOREIGN[kind][2])
    for prompt in (torch.zeros(1, 1, dtype=torch.long), tokens_of(2, 4)):
        with pytest.raises(TypeError, match=f"^{name}.* cannot be cached"):
            generate_cached(model, prompt, 3)
        with pytest.raises(TypeError, match=f"^{name}.* cannot be cached"):
            cached(model)(prompt)


@pytest.mark.parametrize("kind", ["GRU", "Conv1d", "scaled_dot_product_attention"])
def test_unknown_layers_are_found_in_half_precision_too(kind: str) -> None:
    model = LanguageModel(replace(SMALL, block=foreign(FOREIGN[kind])))
    with pytest.raises(TypeError, match="cannot be cached"):
        generate_cached(model.to(torch.bfloat16), tokens_of(2, 4), 3)


class LowRank(nn.Module):
    """A linear layer with a change of low rank, with names that such wrappers often have."""

    def __init__(self, linear: nn.Linear):
        super().__init__()
        self.original, self.merge, self.failed = linear, False, False
        self.down = nn.Linear(linear.in_features, 2, bias=False)
        self.up = nn.Linear(2, linear.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.original(x) + self.up(self.down(x))
        return y


def test_a_layer_with_any_names_gives_the_same_text_with_the_cache() -> None:
    model = model_of(SMALL)
    attention = model.blocks[0].attention
    attention.query = LowRank(attention.query)
    orthogonal = nn.utils.parametrizations.orthogonal
    attention.value = orthogonal(attention.value)
    model.double()
    tokens, reader = tokens_of(2, 6), cached(model)
    with torch.no_grad():
        pieces = torch.cat([reader(part) for part in tokens.split(2, dim=1)], dim=1)
    torch.testing.assert_close(pieces, model(tokens))


def test_a_layer_that_a_model_calls_twice_is_an_error_that_says_so() -> None:
    model = LanguageModel(replace(SMALL, layers=2)).eval()
    model.blocks[1] = model.blocks[0]
    with pytest.raises(TypeError, match=r"attention.* called twice per text"):
        generate_cached(model, tokens_of(2, 4), 3)


def test_a_model_of_embeddings_is_checked_too() -> None:
    known, unknown = Block(SMALL).eval(), foreign(FOREIGN["GRU"])(SMALL).eval()
    x = torch.randn(2, 7, D_MODEL)
    reader = cached(known)
    pieces = torch.cat([reader(piece) for piece in x.split(1, dim=1)], dim=1)
    torch.testing.assert_close(pieces, known(x))
    with pytest.raises(TypeError, match="GRU"):
        cached(unknown)(x[:, :1])


def test_names_used_for_other_things_do_not_confuse_the_cache() -> None:
    class Names(nn.Module):
        kernel_size, window, start, encoding = 3, "Hann", 0, "utf-8"

        def __init__(self, config: Config):
            super().__init__()
            self.linear = nn.Linear(config.d_model, config.d_model)
            self.project = nn.Linear(config.d_model, config.d_model)
            self.d_k = 4

        def forward(self, x: Tensor) -> Tensor:
            return x + self.project(self.linear(x))

    class Method(Names):
        def __init__(self, config: Config):
            nn.Module.__init__(self)
            self.linear = nn.Linear(config.d_model, config.d_model)

        def project(self, x: Tensor) -> Tensor:
            return self.linear(x)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.project(x)

    for block in (Names, Method):
        model = model_of(replace(SMALL, block=block))
        start = tokens_of(2, 3)
        written = generate_cached(model, start, 5, temperature=0)
        assert torch.equal(written, uncached(model, start, 5))


@pytest.mark.parametrize("seed", range(3))
def test_experts_in_half_precision_raise_no_false_alarm(seed: int) -> None:
    torch.manual_seed(seed)
    config = replace(CONFIGS["switch-primer"], layers=4)
    generate_cached(LanguageModel(config).to(torch.bfloat16), tokens_of(1, 3), 3)


def test_random_results_are_a_warning_because_they_cannot_be_checked() -> None:
    noise = (nn.Identity, lambda _, x: F.dropout(x, 0.5, training=True), "")
    model = model_of(replace(SMALL, block=foreign(noise)))
    with pytest.warns(RuntimeWarning, match="its results are random"):
        generate_cached(model, tokens_of(1, 3), 3)


def test_the_check_leaves_seed_buffers_hooks_and_mode_alone() -> None:
    class Counts(nn.Module):
        def __init__(self, config: Config):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x + 0 * torch.rand(1)

    model = LanguageModel(replace(SMALL, layers=1, block=Counts)).train()
    model.norm.eval()
    modes = {name: layer.training for name, layer in model.named_modules()}
    hooked = []
    model.blocks[0].register_forward_hook(lambda *_: hooked.append(1))
    torch.manual_seed(5)
    cached(model)(tokens_of(1, 3))
    state = torch.get_rng_state()
    assert model.blocks[0].calls == len(hooked) == 1
    assert modes == {name: layer.training for name, layer in model.named_modules()}
    torch.manual_seed(5)
    model(tokens_of(1, 3))
    assert torch.equal(torch.get_rng_state(), state)


# One model, several texts


@pytest.mark.parametrize("compiled", ["wrapped", "in place", "a block"])
def test_a_compiled_model_generates_without_graphs_of_its_own_and_trains_compiled(
    compiled: str,
) -> None:
    torch._dynamo.reset()
    graphs = CompileCounter()
    plain, tokens = model_of(SMALL), tokens_of(2, 3)
    expected = generate_cached(plain, tokens, 6, temperature=0)
    model = plain
    if compiled == "wrapped":
        model = torch.compile(plain, backend=graphs)
    elif compiled == "in place":
        plain.compile(backend=graphs)
    else:
        plain.blocks[0] = torch.compile(plain.blocks[0], backend=graphs)
    assert torch.equal(generate_cached(model, tokens, 6, temperature=0), expected)
    reader = cached(model)
    with torch.no_grad():
        pieces = [reader(piece) for piece in expected.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(expected))
    model(expected).sum().backward()
    assert 1 <= graphs.frame_count <= 3
    before = graphs.frame_count
    with torch._dynamo.config.patch(error_on_recompile=True):
        model(expected).sum().backward()
    assert graphs.frame_count == before
    torch._dynamo.reset()


# Copied

PASTED = {
    "MultiDConvHeadAttention": "primer/primer_ez.py",
    "LanguageModel": "transformer/language_model.py",
    "RotaryMultiDConvHeadAttention": "since/rotary.py",
    "NoPositions": "since/rotary.py",
    "generate": "transformer/generation.py",
    "generate_cached": "transformer/generation.py",
    "cached": "transformer/generation.py",
}


@pytest.fixture(scope="module")
def pasted() -> dict[str, str]:
    """What the pages offer to copy."""
    book = the_book()
    library = Path(inspect.getfile(Config)).parents[1]
    return {
        name: snippets(book, book.project.at(library / path))[name]
        for name, path in PASTED.items()
    }


@pytest.mark.parametrize(
    ("attention", "positions"),
    [
        ("MultiHeadAttention", "LearnedPositionalEncoding"),
        ("MultiDConvHeadAttention", "LearnedPositionalEncoding"),
        ("RotaryMultiDConvHeadAttention", "NoPositions"),
    ],
)
def test_classes_pasted_into_one_file_have_a_cache(
    pasted: dict[str, str], attention: str, positions: str
) -> None:
    orders = (list(pasted), list(reversed(pasted)))
    for order in orders:
        file: dict[str, Any] = {"__name__": "pasted"}
        used = {}
        for name in order:
            exec(pasted[name], file)
            # A later definition may hide this one.
            used |= {
                n: file[n]
                for n in (attention, positions)
                if n in file and n not in used
            }
        torch.manual_seed(0)
        config = file["Config"](
            VOCAB,
            D_MODEL,
            HEADS,
            D_FF,
            2,
            12,
            attention=used[attention],
            positions=used[positions],
        )
        model = stirred(file["LanguageModel"](config))
        start = tokens_of(2, 3)
        reader = file["cached"](model)
        with torch.no_grad():
            parts = [reader(piece) for piece in tokens_of().split(1, dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), model(tokens_of()))
        written = file["generate_cached"](model, start, 6, temperature=0)
        assert torch.equal(written, uncached(model, start, 6))
        written = file["generate"](model, start, 6, temperature=0)
        assert torch.equal(written, uncached(model, start, 6))


def test_generate_pastes_without_the_cache_and_with_no_class_of_a_model(
    pasted: dict[str, str],
) -> None:
    for name, lines in (("generate", 90), ("generate_cached", 515)):
        assert len(pasted[name].splitlines()) <= lines
        assert "class MultiHeadAttention" not in pasted[name]
    assert not re.search("^class", pasted["generate"], re.MULTILINE)


# The loop, without a cache and with it

Loop = Callable[..., Tensor]
both = pytest.mark.parametrize("loop", [generate, generate_cached])
every_loop = pytest.mark.parametrize(
    "loop", [generate, generate_cached, generate_compiled]
)


@every
def test_the_plain_loop_reads_the_whole_text_or_the_last_max_seq_tokens(
    name: str,
) -> None:
    model, start = model_of(CONFIGS[name]), tokens_of(2, 3)
    written = generate(model, start, 12, temperature=0)
    assert torch.equal(written, uncached(model, start, 12))


@every
def test_an_empty_batch_generates_an_empty_batch(name: str) -> None:
    assert generate_cached(model_of(CONFIGS[name]), tokens_of(0, 2), 3).shape == (0, 5)


def test_generation_reads_each_token_once() -> None:
    model, lengths = model_of(SMALL), []
    model.register_forward_pre_hook(lambda _, args: lengths.append(args[0].size(1)))
    generate_cached(model, tokens_of(2, 3), 6, generator=seeded())
    assert lengths == [3, 1, 1, 1, 1, 1]


@both
def test_the_same_seed_gives_the_same_text_and_leaves_the_global_seed_alone(
    loop: Loop,
) -> None:
    model, tokens = model_of(SMALL), tokens_of(2, 3)
    state = torch.get_rng_state()
    first = loop(model, tokens, 6, generator=seeded(1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(loop(model, tokens, 6, generator=seeded(1)), first)
    assert not torch.equal(loop(model, tokens, 6, generator=seeded(2)), first)


class Merging(nn.Linear):
    """A layer that does something when its mode changes, as a low-rank one that merges its weights."""

    merged = False

    def train(self, mode: bool = True) -> "Merging":
        self.merged = not mode
        return super().train(mode)


@both
def test_dropout_is_off_during_generation_and_each_layer_has_its_mode_again_after(
    loop: Loop,
) -> None:
    model, tokens = model_of(replace(SMALL, dropout=0.5)), tokens_of(2, 3)
    model.blocks[1].merging = Merging(2, 2)
    model.train().blocks[0].eval()  # one is frozen
    modes = {name: layer.training for name, layer in model.named_modules()}
    written = loop(model, tokens, 5, temperature=0)
    assert modes == {name: layer.training for name, layer in model.named_modules()}
    assert not model.blocks[1].merging.merged
    assert torch.equal(loop(model.eval(), tokens, 5, temperature=0), written)


@both
def test_after_an_error_the_model_is_in_training_mode_again(loop: Loop) -> None:
    model = model_of(SMALL).train()
    with pytest.raises(ValueError, match="temperature"):
        loop(model, tokens_of(2, 3), 5, temperature=-1)
    assert all(module.training for module in model.modules())


@both
def test_zero_new_tokens_return_the_prompt(loop: Loop) -> None:
    tokens = tokens_of(2, 3)
    assert torch.equal(loop(model_of(SMALL), tokens, 0), tokens)


@every_loop
@pytest.mark.parametrize(
    ("tokens", "count", "said"),
    [
        (tokens_of(2, 0), 3, r"shape \[2, 0\]: need \[batch, seq\] with at least one"),
        (tokens_of(2, 3)[0], 3, r"shape \[3\]: need \[batch, seq\]"),
        (tokens_of(2, 3), -1, "max_new_tokens -1 is negative"),
    ],
    ids=["empty", "without a batch", "negative"],
)
def test_a_prompt_that_cannot_be_continued_is_an_error(
    loop: Loop, tokens: Tensor, count: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        loop(model_of(SMALL), tokens, count)


@every_loop
def test_a_wrong_setting_is_an_error_of_every_loop(loop: Loop) -> None:
    # With top_k 0 nothing is left to choose, whatever the temperature.
    for wrong in ({"top_k": 0}, {"top_k": 0, "temperature": 0}, {"temperatur": 1}):
        with pytest.raises((ValueError, TypeError), match=r"top_k 0|'temperatur'"):
            loop(model_of(SMALL), tokens_of(2, 3), 3, **wrong)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_cache_works_in_half_precision(dtype: torch.dtype) -> None:
    model, tokens = LanguageModel(CONFIGS["primer"]).to(dtype), tokens_of()
    reader = cached(model)
    with torch.no_grad():
        pieces = [reader(piece) for piece in tokens.split(3, dim=1)]
    logits = torch.cat(pieces, dim=1)
    assert logits.dtype == dtype
    torch.testing.assert_close(logits, model(tokens), atol=0.05, rtol=0)


# Beam search


def search(
    model: Transformer, source: Tensor, max_length: int, beams: int, alpha: float = 0.6
) -> tuple[Tensor, Tensor]:
    """Beam search over the answers of an encoder-decoder."""
    memory, mask = (t.repeat_interleave(beams, 0) for t in model.encode(source))

    def next_logits(tokens: Tensor) -> Tensor:
        return model.decode(tokens, memory, mask)[:, -1]

    start = source.new_full((source.size(0), 1), START)
    return beam_search(next_logits, start, END, max_length, beams, alpha)


def log_probability(model: Transformer, source: Tensor, tokens: list[int]) -> float:
    """By teacher forcing, in one pass."""
    target = torch.tensor([[START, *tokens]])
    with torch.no_grad():
        log_p = model(source, target[:, :-1]).log_softmax(dim=-1)
    return log_p.gather(2, target[:, 1:, None]).sum().item()


def by_brute_force(
    model: Transformer, source: Tensor, alpha: float
) -> list[tuple[float, list[int]]]:
    """Every sequence of at most three tokens that ends, or was cut off at three."""
    sequences = [
        list(tokens)
        for length in (1, 2, 3)
        for tokens in product(range(5), repeat=length)
        if END not in tokens[:-1] and (tokens[-1] == END or length == 3)
    ]
    scored = []
    for tokens in sequences:
        penalty = length_penalty(len(tokens), alpha)
        scored.append((log_probability(model, source, tokens) / penalty, tokens))
    return sorted(scored, reverse=True)


def test_after_the_end_token_there_is_padding() -> None:
    lengths = set()
    for _ in range(5):
        model, source = transformer(), sources()
        for row in search(model, source, 6, beams=3)[0].flatten(0, 1):
            lengths.add(len(cut(row)))
            assert (row[len(cut(row)) :] == model.padding).all()
    assert len(lengths) > 2


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_wide_beam_finds_what_brute_force_finds(alpha: float) -> None:
    model, source = transformer(std=0.3), sources(2)
    answers, log_p = search(model, source, 3, beams=100, alpha=alpha)
    for row in range(2):
        expected = by_brute_force(model, source[row : row + 1], alpha)
        found = [cut(answer) for answer in answers[row]][: len(expected)]
        assert found == [tokens for _, tokens in expected]
        # All of the probability, and nothing twice.
        assert log_p[row].exp().sum().item() == pytest.approx(1.0, abs=1e-5)
        assert (log_p[row, len(expected) :] == -math.inf).all()


def test_it_returns_the_log_probability_of_each_answer() -> None:
    model, source = transformer(), sources()
    answers, log_p = search(model, source, 5, beams=3)
    for row in range(6):
        for answer, value in zip(answers[row], log_p[row], strict=True):
            expected = log_probability(model, source[row : row + 1], cut(answer))
            assert value.item() == pytest.approx(expected, abs=1e-4)


def test_it_continues_the_text_of_a_language_model() -> None:
    model, tokens = model_of(SMALL), tokens_of(2, 3)
    answers, _ = beam_search(
        lambda t: model(t)[:, -1], tokens, end=-1, max_length=5, beams=1
    )
    expected = uncached(model, tokens, 5)[:, 3:]
    assert torch.equal(answers[:, 0], expected)


def promising(text: list[int]) -> list[float]:
    """The end now, or one of two beginnings that look better, and after which any of 17 tokens may follow."""
    odds = [1e-9] * 20
    if len(text) == 1:
        odds[END], odds[3], odds[4] = 0.2, 0.4, 0.4
    elif len(text) == 2:
        odds[3] = 1.0
    else:
        odds[3:] = [1 / 17] * 17
    return odds


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("length", [2, 3, 6])
@pytest.mark.parametrize("beams", [2, 3, 4])
def test_a_finished_answer_is_kept_while_others_look_better_for_a_time(
    alpha: float, length: int, beams: int
) -> None:
    def next_logits(tokens: Tensor) -> Tensor:
        return torch.tensor([promising(text) for text in tokens.tolist()]).log()

    first = torch.tensor([[5], [6]])
    answers, log_p = beam_search(next_logits, first, END, length, beams, alpha)
    for row in range(2):
        found = [END] in [cut(answer) for answer in answers[row]]
        assert found == (length > 2 or beams > 2)  # two others are better at first
        assert (cut(answers[row, 0]) == [END]) == (length > 2)
    expected = math.log(0.2 if length > 2 else 0.4)
    assert log_p[:, 0].tolist() == pytest.approx([expected] * 2, abs=1e-4)


@pytest.mark.parametrize(("alpha", "steps"), [(-1.0, 1), (0.0, 1), (2.0, 3), (9.0, 50)])
def test_the_search_stops_when_nothing_unfinished_can_become_the_best(
    alpha: float, steps: int
) -> None:
    """The end has probability 0.9 at each step, the best other token 0.05."""
    odds, calls = torch.tensor([0.04, 0.01, 0.9, 0.05]), []

    def next_logits(tokens: Tensor) -> Tensor:
        calls.append(tokens)
        return odds.log().expand(len(tokens), 4)

    beam_search(next_logits, torch.tensor([[0]]), END, 50, 1, alpha)
    assert len(calls) == steps


def by_lists(
    table: Tensor, length: int, beams: int, alpha: float
) -> list[tuple[float, list[int]]]:
    """The same search in lists. `table[n, a, b]` is log P of `b` after `a`, the n-th token."""
    alive: list[tuple[float, list[int]]] = [(0.0, [0])]
    ended: list[tuple[float, list[int]]] = []
    for n in range(1, length + 1):
        longer = sorted(
            (
                (log_p + step, [*text, token])
                for log_p, text in alive
                for token, step in enumerate(table[n - 1, text[-1]].tolist())
            ),
            reverse=True,
        )
        ended += [each for each in longer[: 2 * beams] if each[1][-1] == END]
        alive = [each for each in longer if each[1][-1] != END][:beams]
    every = sorted(
        ((p / length_penalty(len(t) - 1, alpha), t[1:]) for p, t in ended + alive),
        reverse=True,
    )
    return every[:beams]


@pytest.mark.parametrize("beams", [1, 2, 3])
@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.6, 2.0])
def test_few_beams_find_what_the_rule_says_and_return_no_unfinished_answer_early(
    beams: int, alpha: float
) -> None:
    for seed in range(20):
        drawn = torch.randn(5, 4, 4, generator=torch.Generator().manual_seed(seed))
        table = (3 * drawn).double().log_softmax(dim=-1)
        answers, _ = beam_search(
            lambda t, table=table: table[t.size(1) - 1][t[:, -1]],
            torch.tensor([[0]]),
            END,
            5,
            beams,
            alpha,
        )
        found = [cut(answer) for answer in answers[0]]
        assert found == [text for _, text in by_lists(table, 5, beams, alpha)]
        assert all(len(text) == 5 or text[-1] == END for text in found)


@pytest.mark.parametrize("padding", [-1, -5, 5])
def test_padding_that_is_no_token_is_an_error(padding: int) -> None:
    with pytest.raises(ValueError, match=f"padding {padding} is not one of the 5"):
        beam_search(
            lambda tokens: torch.zeros(len(tokens), 5),
            tokens_of(1, 1),
            2,
            3,
            3,
            padding=padding,
        )


def test_a_negative_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="max_length -1 is negative"):
        beam_search(lambda t: torch.zeros(len(t), 5), tokens_of(1, 1), 2, -1)


def test_fewer_than_one_beam_is_an_error() -> None:
    with pytest.raises(ValueError, match="beams 0"):
        search(transformer(), sources(), 5, beams=0)


def test_an_empty_batch_gives_an_empty_batch() -> None:
    source = torch.empty(0, 7, dtype=torch.long)
    answers, log_p = search(transformer(), source, 5, beams=3)
    assert answers.shape[:2] == log_p.shape == (0, 3)
