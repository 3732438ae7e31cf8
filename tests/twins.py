"""PyTorch's own modules with the weights of ours."""

import torch
from torch import nn

from labml_primer.transformer.attention import MultiHeadAttention


def scramble(module: nn.Module) -> nn.Module:
    """Weights that no default hides, in float64: norms with gains and biases of their own."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.double()


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """PyTorch keeps the three projections in one matrix."""
    layers = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.data = torch.cat([layer.weight for layer in layers]).detach()
    theirs.in_proj_bias.data = torch.cat([layer.bias for layer in layers]).detach()
    theirs.out_proj.load_state_dict(ours.output.state_dict())
