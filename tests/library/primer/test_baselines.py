"""What the chapter on strong baselines promises."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from twins import reals

from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.transformer.feed_forward import PositionwiseFeedForward


@pytest.mark.parametrize("activation", [nn.SiLU, nn.GELU, nn.ReLU])
def test_a_gated_layer_is_the_formula(activation: type[nn.Module]) -> None:
    layer, x = GatedFeedForward(6, 12, activation=activation).double(), reals(2, 5, 6)
    w, b = layer.gate.weight, layer.gate.bias
    u, c = layer.expand.weight, layer.expand.bias
    v, d = layer.contract.weight, layer.contract.bias
    expected = (activation()(x @ w.T + b) * (x @ u.T + c)) @ v.T + d
    torch.testing.assert_close(layer(x), expected)


@given(st.integers(8, 300), st.integers(3, 1200))
def test_a_gated_layer_has_the_parameters_of_a_plain_one(
    d_model: int, d_ff: int
) -> None:
    with torch.device("meta"):
        gated, plain = (
            GatedFeedForward(d_model, d_ff),
            PositionwiseFeedForward(d_model, d_ff),
        )
    sizes = [sum(p.numel() for p in layer.parameters()) for layer in (gated, plain)]
    # Rounding moves the width by a third at most, and three matrices with it; a third of the bias is added.
    assert abs(sizes[0] - sizes[1]) <= d_model + d_ff / 3 + 1


def test_dropout_acts_on_the_hidden_features() -> None:
    layer, x = GatedFeedForward(6, 12, dropout=1.0).double(), reals(2, 5, 6)
    torch.testing.assert_close(layer(x), layer.contract.bias.expand_as(x))
