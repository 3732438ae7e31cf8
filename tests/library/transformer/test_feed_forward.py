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


def test_it_is_two_convolutions_of_kernel_size_one(layer):
    first, second = nn.Conv1d(6, 20, 1).double(), nn.Conv1d(20, 6, 1).double()
    with torch.no_grad():
        first.weight.copy_(layer.expand.weight[:, :, None])
        first.bias.copy_(layer.expand.bias)
        second.weight.copy_(layer.contract.weight[:, :, None])
        second.bias.copy_(layer.contract.bias)
    expected = second(F.relu(first(inputs().mT))).mT
    torch.testing.assert_close(layer(inputs()), expected)


def test_without_the_bend_two_maps_are_one():
    torch.manual_seed(0)
    layer = PositionwiseFeedForward(6, 20, activation=nn.Identity).double()
    weight = layer.contract.weight @ layer.expand.weight
    bias = layer.contract.weight @ layer.expand.bias + layer.contract.bias
    torch.testing.assert_close(layer(inputs()), F.linear(inputs(), weight, bias))


@pytest.mark.parametrize("bend", [nn.GELU, nn.SiLU, nn.Tanh])
def test_the_activation_is_the_one_asked_for(bend):
    torch.manual_seed(0)
    layer = PositionwiseFeedForward(6, 20, activation=bend).double()
    assert isinstance(layer.activation, bend)
    expected = layer.contract(bend()(layer.expand(inputs())))
    torch.testing.assert_close(layer(inputs()), expected)


def test_the_features_before_the_bend_are_left_as_they_are(layer):
    seen = []
    layer.expand.register_forward_hook(
        lambda _module, _inputs, output: seen.append(output)
    )
    layer(inputs())
    assert (seen[0] < 0).any()


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


@pytest.mark.parametrize("shape", [(0, 5, 6), (2, 1, 6), (6,), (2, 3, 4, 6), (2, 0, 6)])
def test_odd_shapes(layer, shape):
    assert layer(torch.randn(shape, dtype=torch.float64)).shape == shape


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
