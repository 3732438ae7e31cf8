"""What the chapter on the decoder promises."""

import pytest
import torch
from torch import Tensor, nn
from twins import copy_attention, stirred

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


@pytest.fixture
def decoder() -> Decoder:
    decoder = Decoder(layers=2, d_model=12, heads=3, d_ff=20)
    stirred(decoder)
    return decoder


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 5, 12, dtype=torch.float64)


@pytest.fixture
def memory() -> Tensor:
    return torch.randn(2, 7, 12, dtype=torch.float64)


HIDDEN = torch.ones(5, 5, dtype=torch.bool).triu(1)
REAL_MEMORY = torch.arange(7) < torch.tensor([7, 4])[:, None]
REAL_TARGET = torch.arange(5) < torch.tensor([3, 5])[:, None]


def test_a_block_is_pytorchs(decoder: Decoder, x: Tensor, memory: Tensor) -> None:
    block = decoder.blocks[0]
    expected = pytorch_layer(block)(x, memory, tgt_mask=HIDDEN)
    torch.testing.assert_close(block(x, memory), expected)


def test_a_masked_block_is_pytorchs(
    decoder: Decoder, x: Tensor, memory: Tensor
) -> None:
    block = decoder.blocks[0]
    expected = pytorch_layer(block)(
        x,
        memory,
        tgt_mask=HIDDEN,
        tgt_key_padding_mask=~REAL_TARGET,
        memory_key_padding_mask=~REAL_MEMORY,
    )
    result = block(
        x, memory, REAL_MEMORY[:, None, None, :], REAL_TARGET[:, None, None, :]
    )
    torch.testing.assert_close(result, expected)


def test_a_decoder_is_pytorchs(decoder: Decoder, x: Tensor, memory: Tensor) -> None:
    norm = nn.LayerNorm(12, dtype=torch.float64)
    norm.load_state_dict(decoder.norm.state_dict())
    theirs = nn.TransformerDecoder(pytorch_layer(decoder.blocks[0]), 2, norm)
    theirs.layers = nn.ModuleList(pytorch_layer(b) for b in decoder.blocks)
    expected = theirs(x, memory, tgt_mask=HIDDEN, memory_key_padding_mask=~REAL_MEMORY)
    result = decoder(x, memory, REAL_MEMORY[:, None, None, :])
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("masked", [False, True])
def test_the_future_changes_nothing_before_it(
    decoder: Decoder, x: Tensor, memory: Tensor, masked: bool
) -> None:
    mask = REAL_TARGET[:, None, None, :] if masked else None
    other = x.clone()
    other[:, 3:] = torch.randn(2, 12)
    moved = (decoder(other, memory, mask=mask) - decoder(x, memory, mask=mask)).abs()
    assert (moved[:, :3] == 0).all()
    assert (moved[:, 3:].amax(dim=-1) > 0).all()


def test_every_output_moves_with_the_memory(
    decoder: Decoder, x: Tensor, memory: Tensor
) -> None:
    other = memory.clone()
    other[:, 6] = torch.randn(12)
    moved = (decoder(x, other) - decoder(x, memory)).abs().amax(dim=-1)
    assert (moved > 0).all()


def test_padding_of_the_memory_changes_nothing(
    decoder: Decoder, x: Tensor, memory: Tensor
) -> None:
    mask = REAL_MEMORY[:, None, None, :]
    other = memory.masked_fill(~REAL_MEMORY[..., None], 1e3)
    assert torch.equal(decoder(x, other, mask), decoder(x, memory, mask))
    alone = decoder(x[1:], memory[1:, :4])
    torch.testing.assert_close(decoder(x, memory, mask)[1:], alone)


def test_padding_before_the_target_changes_nothing(
    decoder: Decoder, x: Tensor, memory: Tensor
) -> None:
    padded = torch.cat([torch.full((2, 3, 12), 1e3).double(), x], dim=1)
    mask = (torch.arange(8) >= 3)[None, None, None, :]
    result = decoder(padded, memory, mask=mask)[:, 3:]
    torch.testing.assert_close(result, decoder(x, memory))


def test_the_order_of_the_memory_does_not_matter(
    decoder: Decoder, x: Tensor, memory: Tensor
) -> None:
    shuffled = memory[:, torch.randperm(7)]
    torch.testing.assert_close(decoder(x, shuffled), decoder(x, memory))


def test_a_block_has_as_many_parameters_as_the_formula() -> None:
    with torch.device("meta"):
        block = DecoderBlock(d_model=12, heads=3, d_ff=7)
    expected = 2 * 4 * (12**2 + 12) + (2 * 12 * 7 + 7 + 12) + 6 * 12
    assert sum(p.numel() for p in block.parameters()) == expected


def test_heads_that_do_not_divide_d_model_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"10.*3"):
        DecoderBlock(d_model=10, heads=3, d_ff=20)
