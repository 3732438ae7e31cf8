"""What the chapter on the encoder promises."""

import pytest
import torch
from torch import Tensor, nn
from twins import copy_attention, stirred

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


@pytest.fixture
def block() -> EncoderBlock:
    block = EncoderBlock(d_model=12, heads=3, d_ff=20)
    stirred(block)
    return block


@pytest.fixture
def x() -> Tensor:
    return torch.randn(2, 7, 12, dtype=torch.float64)


REAL = torch.arange(7) < torch.tensor([7, 4])[:, None]  # [batch, seq]


def test_a_block_is_pytorchs(block: EncoderBlock, x: Tensor) -> None:
    torch.testing.assert_close(block(x), pytorch_layer(block, 20)(x))


def test_a_padded_block_is_pytorchs(block: EncoderBlock, x: Tensor) -> None:
    expected = pytorch_layer(block, 20)(x, src_key_padding_mask=~REAL)
    result = block(x, REAL[:, None, None, :])
    torch.testing.assert_close(result[REAL], expected[REAL])


def test_an_encoder_is_pytorchs(x: Tensor) -> None:
    encoder = Encoder(layers=3, d_model=12, heads=3, d_ff=20)
    stirred(encoder)
    norm = nn.LayerNorm(12, dtype=torch.float64)
    norm.load_state_dict(encoder.norm.state_dict())
    first = pytorch_layer(encoder.blocks[0], 20)
    theirs = nn.TransformerEncoder(first, 3, norm, enable_nested_tensor=False)
    theirs.layers = nn.ModuleList(pytorch_layer(b, 20) for b in encoder.blocks)
    expected = theirs(x, src_key_padding_mask=~REAL)
    result = encoder(x, REAL[:, None, None, :])
    torch.testing.assert_close(result[REAL], expected[REAL])


def test_padding_changes_nothing_real(x: Tensor) -> None:
    encoder = Encoder(layers=2, d_model=12, heads=3, d_ff=20).double()
    mask = REAL[:, None, None, :]
    other = x.masked_fill(~REAL[..., None], 1e3)
    torch.testing.assert_close(encoder(other, mask)[REAL], encoder(x, mask)[REAL])
    torch.testing.assert_close(encoder(x, mask)[1, :4], encoder(x[1:, :4])[0])


def test_the_order_of_an_encoders_input_is_the_order_of_its_output(x: Tensor) -> None:
    encoder = Encoder(layers=2, d_model=12, heads=3, d_ff=20).double()
    order = torch.randperm(7)
    torch.testing.assert_close(encoder(x[:, order]), encoder(x)[:, order])


def test_a_block_with_silent_layers_passes_its_input_on(x: Tensor) -> None:
    block = EncoderBlock(d_model=12, heads=3, d_ff=20).double()
    for layer in (block.attention.output, block.feed_forward.contract):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    assert torch.equal(block(x), x)


def test_what_comes_out_has_mean_zero_and_variance_one(x: Tensor) -> None:
    encoder = Encoder(layers=2, d_model=12, heads=3, d_ff=20).double()
    y = encoder(x * 50)
    torch.testing.assert_close(y.mean(-1), torch.zeros(2, 7).double())
    ones = torch.ones(2, 7).double()
    torch.testing.assert_close(y.var(-1, unbiased=False), ones, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("d", "d_ff"), [(512, 2048), (12, 7)])
def test_a_block_has_as_many_parameters_as_the_formula(d: int, d_ff: int) -> None:
    with torch.device("meta"):
        block = EncoderBlock(d_model=d, heads=4, d_ff=d_ff)
    expected = 4 * (d**2 + d) + (2 * d * d_ff + d_ff + d) + 4 * d
    assert sum(p.numel() for p in block.parameters()) == expected


def test_sizes_may_be_odd() -> None:
    assert (
        EncoderBlock(d_model=15, heads=5, d_ff=7)(torch.randn(1, 3, 15)).shape[-1] == 15
    )


def test_heads_that_do_not_divide_d_model_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"10.*3"):
        EncoderBlock(d_model=10, heads=3, d_ff=20)
