import pytest
import torch
from torch import nn
from torch.nn import functional as F

from labml_primer.transformer.feed_forward import PositionwiseFeedForward


@pytest.fixture
def layer() -> PositionwiseFeedForward:
    torch.manual_seed(0)
    return PositionwiseFeedForward(d_model=6, d_ff=20).double()


def inputs() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(3, 7, 6, dtype=torch.float64)


def test_it_is_the_formula(layer):
    x = inputs()
    w1, b1 = layer.expand.weight.T, layer.expand.bias
    w2, b2 = layer.contract.weight.T, layer.contract.bias
    expected = torch.maximum(x @ w1 + b1, torch.tensor(0.0)) @ w2 + b2
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize("bend", [nn.GELU, nn.SiLU, nn.Tanh])
def test_the_activation_is_the_one_asked_for(bend):
    torch.manual_seed(0)
    layer = PositionwiseFeedForward(6, 20, activation=bend).double()
    assert isinstance(layer.activation, bend)
    expected = layer.contract(bend()(layer.expand(inputs())))
    torch.testing.assert_close(layer(inputs()), expected)


def test_dropout_acts_behind_the_bend_and_in_training_alone():
    torch.manual_seed(0)
    layer = PositionwiseFeedForward(6, 20, dropout=0.5, activation=nn.GELU).double()
    seen = []
    layer.contract.register_forward_hook(
        lambda _module, inputs, _output: seen.append(inputs[0])
    )
    hidden = F.gelu(layer.expand(inputs()))
    layer(inputs())
    kept = seen[-1] != 0
    assert 0.3 < kept.double().mean() < 0.7
    torch.testing.assert_close(seen[-1][kept], 2 * hidden[kept])
    layer.eval()
    layer(inputs())
    torch.testing.assert_close(seen[-1], hidden)


def test_nothing_is_dropped_behind_the_last_layer():
    torch.manual_seed(0)
    layer = PositionwiseFeedForward(6, 20, dropout=0.9)
    assert (layer(torch.randn(200, 6)) != 0).all()


def test_two_thirds_of_a_block_stand_here():
    from labml_primer.transformer.attention import MultiHeadAttention

    def size(module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    here, there = (
        size(PositionwiseFeedForward(512, 2048)),
        size(MultiHeadAttention(512, 8)),
    )
    assert here == 2 * 512 * 2048 + 2048 + 512
    assert here / (here + there) == pytest.approx(2 / 3, abs=1e-3)
