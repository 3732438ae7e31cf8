"""What PyTorch would compute without a word, and would not be what the caller meant, is an error."""

import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labml_primer.compared.synthesizer import DenseSynthesizer
from labml_primer.primer.primer import PrimerNorm
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.saving import save_model
from labml_primer.since.rotary import BucketedAttention
from labml_primer.training import Corpus, train
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.generation import beam_search, kv_cache, sample_token
from labml_primer.transformer.language_model import Config, LanguageModel
from labml_primer.transformer.model import Transformer, greedy_decode
from labml_primer.transformer.normalization import LayerNorm, RMSNorm
from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    rotate,
)


@pytest.mark.parametrize("shape", [(4, 5), (4, 1, 5), (4, 5, 5), (5,), (1, 1, 1, 1, 5)])
@pytest.mark.parametrize(
    "kind", [MultiHeadAttention, DenseSynthesizer, BucketedAttention]
)
def test_a_mask_is_for_queries_and_keys_or_for_batch_and_heads_too(
    shape: tuple[int, ...], kind: type[MultiHeadAttention]
) -> None:
    layer, x = kind(8, 4), torch.randn(4, 5, 8)
    mask = torch.ones(shape, dtype=torch.bool)
    if len(shape) == 2:  # not [queries, keys], here, but [batch, keys]
        with pytest.raises(RuntimeError):
            layer(x, x, mask)
        layer(x, x, mask[:, None, None])
    else:
        with pytest.raises(TypeError, match=r"mask .* is no .*mask\[:, None\]"):
            layer(x, x, mask)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm, PrimerNorm])
def test_a_norm_reads_as_many_features_as_it_has_weights(kind: Any) -> None:
    norm = kind(4)
    for x in (torch.randn(2, 5, 1), torch.tensor([[1, 2, 3, 4]])):
        with pytest.raises(ValueError, match=r"is not floating point \[\.\.\., 4\]"):
            norm(x)


@pytest.mark.parametrize("heads", [1, 4])
def test_a_convolution_reads_a_batch_of_numbers_that_are_not_integers(
    heads: int,
) -> None:
    convolution = SpatialDepthWiseConvolution(heads, 8)
    for x in (torch.randn(5, 4, 8), torch.ones(2, 5, 4, 8, dtype=torch.int64)):
        with pytest.raises(
            ValueError, match=r"is not floating point \[batch, seq, heads"
        ):
            convolution(x)


@pytest.mark.parametrize("kind", [PositionalEncoding, LearnedPositionalEncoding])
@pytest.mark.parametrize("shape", [(2, 5, 1), (2, 5, 3, 8), (5, 8)])
def test_positions_are_added_to_tokens_of_their_width(
    kind: Callable[..., nn.Module], shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=r"is not \[batch, seq, 8\]"):
        kind(8, max_seq=9)(torch.randn(shape))


def test_integers_are_not_rotated() -> None:
    with pytest.raises(TypeError, match="int64, not floating point"):
        rotate(torch.ones(3, 4, dtype=torch.int64), torch.arange(3))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_logit_that_is_nan_is_no_token(temperature: float) -> None:
    logits = torch.tensor([[0.0, 9.0, math.nan, 1.0]])
    with pytest.raises(ValueError, match="a logit is nan"):
        sample_token(logits, temperature)
    with pytest.raises(ValueError, match="a logit is nan"):
        beam_search(lambda t: logits.expand(len(t), 4), torch.zeros(1, 1), 3, 2)


def test_greedy_decoding_refuses_nan_and_any_layer_in_training_mode() -> None:
    model = Transformer(11, 11, d_model=8, heads=2, d_ff=16, layers=1).eval()
    source = torch.randint(1, 11, (2, 5))
    model.decoder.train()
    with pytest.raises(ValueError, match="training mode"):
        greedy_decode(model, source, 1, 2, 3)
    model.eval()
    for weight in model.parameters():
        weight.data.fill_(math.nan)
    with pytest.raises(ValueError, match="a logit is nan"):
        greedy_decode(model, source, 1, 2, 3)


def test_a_model_is_saved_with_the_symbols_of_its_tokens_only(tmp_path: Path) -> None:
    model = LanguageModel(Config(5, 8, 2, 16, layers=1))
    for symbols, message in (("abc", "3 symbols"), ("zyxwv", "not sorted")):
        with pytest.raises(ValueError, match=message):
            save_model(model, tmp_path / "model.pt", symbols=symbols)
    save_model(model, tmp_path / "model.pt", symbols="vwxyz")


@pytest.mark.parametrize(
    ("sizes", "part"), [((9, 90), "learn from"), ((90, 9), "held")]
)
def test_a_text_that_is_too_short_is_named(sizes: tuple[int, int], part: str) -> None:
    texts: tuple[Tensor, ...] = tuple(torch.zeros(n, dtype=torch.int64) for n in sizes)
    corpus = Corpus(texts[0], texts[1], "a")
    model = LanguageModel(Config(1, 8, 2, 16, layers=1))
    with pytest.raises(ValueError, match=f"seq 20 does not fit a .*{part}.* of 9 "):
        train(model, corpus, name="short", seq=20)


def test_a_model_whose_layers_are_shared_is_not_saved_as_another(
    tmp_path: Path,
) -> None:
    model = LanguageModel(Config(5, 8, 2, 16, layers=2))
    model.blocks[1] = model.blocks[0]
    with pytest.raises(ValueError, match="share parameters"):
        save_model(model, tmp_path / "model.pt")


def test_a_layer_that_differs_far_from_the_first_token_is_not_saved_as_another(
    tmp_path: Path,
) -> None:
    class Window(MultiHeadAttention):
        def forward(
            self, x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
        ) -> Tensor:
            far = torch.ones(x.size(1), y.size(1), dtype=torch.bool).tril(-17)
            return super().forward(x, y, ~far, causal)

    model = LanguageModel(Config(5, 8, 2, 16, layers=1, max_seq=64))
    model.blocks[0].attention = Window(8, 2)
    with pytest.raises(ValueError, match="other logits"):
        save_model(model, tmp_path / "model.pt")


def test_a_model_is_not_copied_or_saved_with_an_open_cache(tmp_path: Path) -> None:
    model = LanguageModel(Config(5, 8, 2, 16, layers=1)).eval()
    with kv_cache(model):
        with pytest.raises(RuntimeError, match="outside of the kv_cache block"):
            deepcopy(model)
        with pytest.raises(RuntimeError, match="outside of the kv_cache block"):
            torch.save(model, tmp_path / "model.pt")
    deepcopy(model)
