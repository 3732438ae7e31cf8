"""What the chapter on MDHA says of a bias is so for any weights."""

from copy import deepcopy

import torch
from torch import nn

from labml_primer.primer.variations import MultiDConvSharedByHeadsAttention


def test_bias_of_the_convolution_adds_little() -> None:
    """On keys it has no effect; on values it equals an output bias; on queries, a projection bias."""
    torch.manual_seed(0)
    layer = MultiDConvSharedByHeadsAttention(16, 2).double()
    x = torch.randn(3, 9, 16, dtype=torch.float64)
    without = deepcopy(layer)
    for conv in (without.query_conv, without.key_conv, without.value_conv):
        nn.init.zeros_(conv.bias)
    with torch.no_grad():
        to_all_heads = layer.value_conv.bias.flatten().repeat(2)
        without.output.bias += without.output.weight @ to_all_heads
        through = layer.query_conv.weight.sum(0)
        without.query.bias += (layer.query_conv.bias / through).flatten().repeat(2)
    same = torch.isclose(layer(x, x, causal=True), without(x, x, causal=True)).all(-1)
    assert same.all(0).tolist() == [True, False] + [True] * 7
