"""What PyTorch would compute without a word, and would not be what the caller meant, is an error."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labml_primer.compared.synthesizer import DenseSynthesizer
from labml_primer.primer.primer import PrimerNorm
from labml_primer.saving import save_model
from labml_primer.since.rotary import BucketedAttention
from labml_primer.training import Corpus, train
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.decoder import Decoder
from labml_primer.transformer.encoder import Encoder
from labml_primer.transformer.generation import beam_search, sample_token
from labml_primer.transformer.language_model import Config, LanguageModel
from labml_primer.transformer.model import Transformer, greedy_decode
from labml_primer.transformer.normalization import LayerNorm, RMSNorm
from labml_primer.transformer.positional_encoding import (
    LearnedPositionalEncoding,
    PositionalEncoding,
    rotate,
)

SHAPES = pytest.mark.parametrize(
    "shape", [(4, 1, 5), (4, 5, 5), (5,), (1, 1, 1, 1, 5)], ids=str
)
NUMBERS = pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)


def models_with_masks() -> dict[str, Callable[[Tensor | None], Tensor]]:
    """All that a reader gives a mask to, each with the vectors it needs."""
    x = torch.randn(4, 5, 8)
    encoder, decoder = (kind(2, 8, 4, 16) for kind in (Encoder, Decoder))
    dense, buckets = DenseSynthesizer(8, 4), BucketedAttention(8, 4)
    return {
        "encoder": lambda mask: encoder(x, mask),
        "decoder, memory": lambda mask: decoder(x, x, mask),
        "decoder": lambda mask: decoder(x, x, None, mask),
        "synthesizer": lambda mask: dense(x, x, mask),
        "buckets": lambda mask: buckets(x, x, mask),
    }


masked = pytest.mark.parametrize("name", models_with_masks())


@masked
@SHAPES
def test_a_mask_is_for_queries_and_keys_or_for_batch_and_heads_too(
    name: str, shape: tuple[int, ...]
) -> None:
    model = models_with_masks()[name]
    with pytest.raises(TypeError, match=r"mask .* is no .*mask\[:, None\]"):
        model(torch.ones(shape, dtype=torch.bool))
    padding = torch.ones(4, 5, dtype=torch.bool)  # [batch, keys], not [queries, keys]
    with pytest.raises(RuntimeError):
        model(padding)
    torch.testing.assert_close(model(padding[:, None, None]), model(None))


@masked
@NUMBERS
def test_a_mask_of_numbers_is_an_error(name: str, dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match=r"is no boolean .*pass mask\.bool\(\)"):
        models_with_masks()[name](torch.ones(4, 1, 1, 5, dtype=dtype))


def test_texts_without_a_batch_are_refused() -> None:
    x = torch.randn(5, 8)
    encoder, decoder = (kind(1, 8, 1, 16) for kind in (Encoder, Decoder))
    with pytest.raises(ValueError, match=r"must be \[batch, seq, d_model\]"):
        encoder(x)
    for target, memory in ((x, x), (x[None], x), (x, x[None])):
        with pytest.raises(ValueError, match=r"must be \[batch, seq, d_model\]"):
            decoder(target, memory)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm, PrimerNorm])
def test_a_norm_reads_as_many_features_as_it_has_weights(kind: Any) -> None:
    norm = kind(4)
    for x in (torch.randn(2, 5, 1), torch.tensor([[1, 2, 3, 4]])):
        with pytest.raises(ValueError, match=r"is not floating point \[\.\.\., 4\]"):
            norm(x)


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
