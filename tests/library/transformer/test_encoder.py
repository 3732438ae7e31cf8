"""What the chapter on the encoder promises."""

import pytest
import torch
from torch import nn
from twins import copy_attention, reals, stirred

from labml_primer.transformer.encoder import Encoder, EncoderBlock


def pytorch_layer(block: EncoderBlock, d_ff: int) -> nn.TransformerEncoderLayer:
    d_model = block.attention_norm.normalized_shape[0]
    layer = nn.TransformerEncoderLayer(
        d_model,
        block.attention.heads,
        d_ff,
        dropout=0.0,
        batch_first=True,
        norm_first=True,
        dtype=torch.float64,
    )
    copy_attention(block.attention, layer.self_attn)
    layer.linear1.load_state_dict(block.feed_forward.expand.state_dict())
    layer.linear2.load_state_dict(block.feed_forward.contract.state_dict())
    layer.norm1.load_state_dict(block.attention_norm.state_dict())
    layer.norm2.load_state_dict(block.feed_forward_norm.state_dict())
    return layer


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


REAL = torch.arange(7) < torch.tensor([7, 4])[:, None]  # [batch, seq]


@pytest.mark.parametrize("masked", [False, True])
def test_an_encoder_is_pytorchs(masked: bool) -> None:
    encoder = stirred(Encoder(layers=3, d_model=12, heads=3, d_ff=20))
    norm = nn.LayerNorm(12, dtype=torch.float64)
    norm.load_state_dict(encoder.norm.state_dict())
    first = pytorch_layer(encoder.blocks[0], 20)
    theirs = nn.TransformerEncoder(first, 3, norm, enable_nested_tensor=False)
    theirs.layers = nn.ModuleList(pytorch_layer(b, 20) for b in encoder.blocks)
    x, real = reals(2, 7, 12), REAL if masked else torch.ones_like(REAL)
    expected = theirs(x, src_key_padding_mask=~real)
    result = encoder(x, real[:, None, None, :] if masked else None)
    torch.testing.assert_close(result[real], expected[real])


@pytest.mark.parametrize(("d", "d_ff"), [(512, 2048), (12, 7)])
def test_a_block_has_as_many_parameters_as_the_formula(d: int, d_ff: int) -> None:
    with torch.device("meta"):
        block = EncoderBlock(d_model=d, heads=4, d_ff=d_ff)
    expected = 4 * (d**2 + d) + (2 * d * d_ff + d_ff + d) + 4 * d
    assert sum(p.numel() for p in block.parameters()) == expected
