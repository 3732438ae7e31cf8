"""Shared by tests: random numbers, weights unlike fresh ones, PyTorch's modules with the weights of ours."""

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.model import Transformer

M = TypeVar("M", bound=nn.Module)


def reals(*shape: int) -> Tensor:
    """Random numbers in float64."""
    return torch.randn(shape, dtype=torch.float64)


def stirred(module: M) -> M:
    """In float64 with noise on every weight, so that gains are not 1 and biases not 0."""
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


def conv1d(x: Tensor, weight: Tensor) -> Tensor:
    """`[batch, seq, channels]` through PyTorch's convolution: padded left, a group per channel."""
    padded = F.pad(x.mT, (weight.size(0) - 1, 0))
    return F.conv1d(padded, weight.flatten(1).T[:, None], groups=x.size(-1)).mT


START, END = 1, 2


def transformer(std: float = 0.5) -> Transformer:
    """Random, with large weights, so that its probabilities differ clearly."""
    model = Transformer(9, 5, 12, 3, 20, layers=2, max_seq=16, dropout=0.0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model.double().eval()


def sources(batch: int = 6) -> Tensor:
    """Texts for it, most of them padded."""
    source = torch.randint(1, 9, (batch, 7))
    source[1:, 5:] = 0
    return source


def cut(tokens: Tensor) -> list[int]:
    """Up to the end token, included."""
    row = tokens.tolist()
    return row[: row.index(END) + 1] if END in row else row
