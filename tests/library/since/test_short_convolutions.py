"""The promises of token shift, smear and Canon layers."""

import torch
from torch import nn

from labml_primer.primer.primer import SeparableConvolutionAttention
from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
)
from labml_primer.since.short_convolutions import (
    CanonAttention,
    Smear,
    TokenShiftAttention,
)


def test_canon_b_is_a_wider_mdha_with_one_added_to_the_current_token() -> None:
    torch.manual_seed(0)
    canon, mdha = CanonAttention(16, 4).double(), MultiDConvHeadAttention(16, 4)
    mdha.load_state_dict(canon.state_dict(), strict=False)
    for name in ("query_conv", "key_conv", "value_conv"):
        wide = SpatialDepthWiseConvolution(4, 4, kernel_size=4)
        weight = canon.get_submodule(name).get_parameter("canon_conv.weight").detach()
        wide.weight.data = weight.clone()
        wide.weight.data[-1] += 1
        setattr(mdha, name, wide)
    x = torch.randn(2, 9, 16).double()
    expected = mdha.double()(x, x, causal=True)
    torch.testing.assert_close(canon(x, x, causal=True), expected)


def test_token_shift_is_a_separable_convolution_of_width_two() -> None:
    torch.manual_seed(0)
    shifted, separable = (
        TokenShiftAttention(16, 4),
        SeparableConvolutionAttention(16, 4),
    )
    separable.load_state_dict(shifted.state_dict(), strict=False)
    for name in ("query", "key", "value"):
        mu = nn.init.uniform_(shifted.get_parameter(f"{name}_shift.mu")).detach()
        narrow = SpatialDepthWiseConvolution(1, 16, kernel_size=2)
        narrow.weight.data = torch.stack([1 - mu, mu])[:, None]
        setattr(separable, f"{name}_conv", narrow)
    x = torch.randn(2, 9, 16)
    expected = separable(x, x, causal=True)
    torch.testing.assert_close(shifted(x, x, causal=True), expected)


def test_a_new_smear_changes_nothing() -> None:
    x = torch.randn(2, 9, 16)
    assert torch.equal(Smear(16, 9)(x), x)


def test_smear_adds_the_previous_token_times_the_factor_and_the_gate() -> None:
    layer = Smear(3, 9)
    nn.init.constant_(layer.factor, 0.5)
    x = torch.tensor([[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]])  # a gate of 1/2
    assert layer(x)[0, 1].tolist() == [0.25, 0.5, 0.75]
