"""What tests share: numbers, weights that no default hides, PyTorch's modules with the weights of ours."""

from typing import TypeVar

import torch
from torch import Tensor, nn

from labml_primer.transformer.attention import MultiHeadAttention

M = TypeVar("M", bound=nn.Module)


def reals(*shape: int) -> Tensor:
    """Random numbers in float64."""
    return torch.randn(shape, dtype=torch.float64)


def stirred(module: M) -> M:
    """In float64, and no parameter as tidy as a fresh one: gains are not one, biases not zero."""
    module.double()
    for weight in module.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    return module


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """PyTorch keeps the three projections in one matrix."""
    layers = (ours.query, ours.key, ours.value)
    theirs.in_proj_weight.data = torch.cat([layer.weight for layer in layers]).detach()
    theirs.in_proj_bias.data = torch.cat([layer.bias for layer in layers]).detach()
    theirs.out_proj.load_state_dict(ours.output.state_dict())
