"""Our language models give the logits of x-transformers' under the same weights, in float64."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks.peers import without_biases_it_lacks, x_model
from labml_primer import PRESETS, LanguageModel

# How x-transformers names what each of our models is made of.
OPTIONS: dict[str, dict[str, Any]] = {
    "transformer": {"ff_custom_activation": nn.ReLU()},
    "transformer-gelu": {},
    "transformer-squared-relu": {"ff_relu_squared": True},
    "transformer-pp": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
}


def both(preset: str, seq: int) -> tuple[Tensor, Tensor, nn.Module, nn.Module]:
    """Logits of ours and theirs, and the models. Every weight of ours is drawn anew, gains of norms too."""
    torch.manual_seed(0)
    config = replace(
        PRESETS[preset],
        vocab_size=31,
        d_model=48,
        heads=3,
        d_ff=144,
        layers=3,
        max_seq=20,
    )
    model = LanguageModel(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 10)
    without_biases_it_lacks(model)
    twin = x_model(model, **OPTIONS[preset])
    tokens = torch.randint(31, (2, seq))
    return model(tokens), twin(tokens), model, twin


@pytest.mark.parametrize("seq", [1, 7, 20])
@pytest.mark.parametrize("preset", OPTIONS)
def test_a_model_gives_the_logits_of_its_twin(preset: str, seq: int) -> None:
    ours, theirs, *_ = both(preset, seq)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("preset", OPTIONS)
def test_the_gradient_of_the_embedding_is_its_twins(preset: str) -> None:
    # It gathers what flows back through every layer, from the tokens' end and from the logits'.
    ours, theirs, model, twin = both(preset, 20)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    torch.testing.assert_close(
        model.get_parameter("embedding.weight").grad,
        twin.get_parameter("token_emb.emb.weight").grad,
        rtol=1e-9,
        atol=1e-9,
    )


def test_a_model_is_not_the_twin_of_another() -> None:
    ours, *_ = both("transformer", 7)
    _, theirs, *_ = both("transformer-gelu", 7)
    assert not torch.allclose(ours, theirs, rtol=1e-3, atol=1e-3)
