"""What the chapter on the decoder promises."""

import pytest
import torch
from torch import nn
from twins import copy_attention, reals, stirred

from labml_primer.transformer.decoder import Decoder, DecoderBlock


def pytorch_layer(block: DecoderBlock) -> nn.TransformerDecoderLayer:
    layer = nn.TransformerDecoderLayer(
        12, 3, 20, 0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    copy_attention(block.attention, layer.self_attn)
    copy_attention(block.cross_attention, layer.multihead_attn)
    layer.linear1.load_state_dict(block.feed_forward.expand.state_dict())
    layer.linear2.load_state_dict(block.feed_forward.contract.state_dict())
    layer.norm1.load_state_dict(block.attention_norm.state_dict())
    layer.norm2.load_state_dict(block.cross_attention_norm.state_dict())
    layer.norm3.load_state_dict(block.feed_forward_norm.state_dict())
    return layer


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


HIDDEN = torch.ones(5, 5, dtype=torch.bool).triu(1)
REAL_MEMORY = torch.arange(7) < torch.tensor([7, 4])[:, None]
REAL_TARGET = torch.arange(5) < torch.tensor([3, 5])[:, None]


@pytest.mark.parametrize("masked", [False, True])
def test_a_decoder_is_pytorchs(masked: bool) -> None:
    decoder = stirred(Decoder(layers=2, d_model=12, heads=3, d_ff=20))
    norm = nn.LayerNorm(12, dtype=torch.float64)
    norm.load_state_dict(decoder.norm.state_dict())
    theirs = nn.TransformerDecoder(pytorch_layer(decoder.blocks[0]), 2, norm)
    theirs.layers = nn.ModuleList(pytorch_layer(b) for b in decoder.blocks)
    x, memory = reals(2, 5, 12), reals(2, 7, 12)
    masks = [REAL_MEMORY, REAL_TARGET] if masked else []
    padding = {
        f"{name}_key_padding_mask": ~mask
        for name, mask in zip(("memory", "tgt"), masks, strict=False)
    }
    expected = theirs(x, memory, tgt_mask=HIDDEN, **padding)
    result = decoder(x, memory, *(mask[:, None, None, :] for mask in masks))
    torch.testing.assert_close(result, expected)


def test_a_block_has_as_many_parameters_as_the_formula() -> None:
    with torch.device("meta"):
        block = DecoderBlock(d_model=12, heads=3, d_ff=7)
    expected = 2 * 4 * (12**2 + 12) + (2 * 12 * 7 + 7 + 12) + 6 * 12
    assert sum(p.numel() for p in block.parameters()) == expected
