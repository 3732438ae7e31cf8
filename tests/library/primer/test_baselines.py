"""What the chapter on strong baselines promises."""

import pytest
import torch
from catalogue import CONFIGS
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from twins import reals

from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.language_model import Block


@pytest.mark.parametrize("activation", [nn.SiLU, nn.GELU, nn.ReLU])
def test_a_gated_layer_is_the_formula(activation: type[nn.Module]) -> None:
    layer, x = GatedFeedForward(6, 12, activation=activation).double(), reals(2, 5, 6)
    w, b = layer.gate.weight, layer.gate.bias
    u, c = layer.expand.weight, layer.expand.bias
    v, d = layer.contract.weight, layer.contract.bias
    expected = (activation()(x @ w.T + b) * (x @ u.T + c)) @ v.T + d
    torch.testing.assert_close(layer(x), expected)


def test_swiglu_is_pytorchs_glu_with_swish_for_the_gate() -> None:
    layer, x = GatedFeedForward(6, 12).double(), reals(2, 5, 6)
    # PyTorch's own GLU has the logistic function: x sigmoid(x) is Swish.
    both = torch.cat([layer.gate(x) * layer.expand(x), layer.gate(x)], dim=-1)
    torch.testing.assert_close(layer(x), layer.contract(F.glu(both)))


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


def test_with_equal_matrices_and_relu_the_gate_is_the_squared_relu() -> None:
    layer, x = GatedFeedForward(6, 12, activation=nn.ReLU).double(), reals(2, 5, 6)
    layer.gate.load_state_dict(layer.expand.state_dict())
    expected = layer.contract(layer.expand(x).relu().square())
    torch.testing.assert_close(layer(x), expected)


def test_dropout_acts_on_the_hidden_features() -> None:
    layer, x = GatedFeedForward(6, 12, dropout=1.0).double(), reals(2, 5, 6)
    torch.testing.assert_close(layer(x), layer.contract.bias.expand_as(x))


def test_transformer_pp_is_rms_norm_swish_and_a_gate() -> None:
    block = Block(CONFIGS["transformer-pp"]).double()
    x = reals(2, 5, 12)

    def rms(x: Tensor, gain: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + 2**-52).sqrt() * gain

    y = rms(x, block.attention_norm.weight)  # type: ignore[arg-type]
    middle = x + block.attention(y, y, causal=True)
    z = rms(middle, block.feed_forward_norm.weight)  # type: ignore[arg-type]
    layer = block.feed_forward
    assert isinstance(layer, GatedFeedForward)
    gate = layer.gate(z)
    expected = middle + layer.contract(gate * gate.sigmoid() * layer.expand(z))
    torch.testing.assert_close(block(x), expected)
