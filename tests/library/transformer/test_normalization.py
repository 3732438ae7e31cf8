import pytest
import torch
from torch import nn

from labml_primer.transformer.normalization import LayerNorm, PostNorm, PreNorm, RMSNorm


def inputs(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return 3 * torch.randn(*shape, dtype=torch.float64) + 2


def trained(norm: nn.Module) -> nn.Module:
    """With gains and biases that are neither one nor zero."""
    torch.manual_seed(2)
    for parameter in norm.parameters():
        nn.init.normal_(parameter, mean=0.5)
    return norm


PAIRS = [
    (LayerNorm, lambda d, eps: nn.LayerNorm(d, eps=eps)),
    (RMSNorm, lambda d, eps: nn.RMSNorm(d, eps=eps)),
]


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
@pytest.mark.parametrize("shape", [(2, 5, 8), (8,), (0, 5, 8), (2, 1, 8), (3, 4, 1)])
@pytest.mark.parametrize("eps", [1e-5, 1e-2])
def test_the_norms_are_pytorchs(mine, theirs, shape, eps):
    norm = trained(mine(shape[-1], eps)).double()
    other = theirs(shape[-1], eps).double()
    other.load_state_dict(norm.state_dict())
    torch.testing.assert_close(norm(inputs(*shape)), other(inputs(*shape)))


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_holds_large_features(mine, theirs, dtype):
    x = (1000 * inputs(2, 5, 8)).to(dtype)
    norm, other = mine(8).to(dtype), theirs(8, 1e-5)
    result = norm(x)
    assert result.dtype == dtype
    torch.testing.assert_close(result.float(), other(x.float()), atol=2e-2, rtol=0)
    assert result.double().square().mean() > 0.5


@pytest.mark.parametrize(("mine", "theirs"), PAIRS)
def test_half_precision_is_kept_and_rounded_once(mine, theirs):
    norm = trained(mine(64))
    x = inputs(200, 64).bfloat16()
    # With gains and biases in single precision, as mixed precision has them.
    assert norm(x).dtype == torch.bfloat16
    norm, exact = norm.bfloat16(), theirs(64, 1e-5).double()
    exact.load_state_dict(norm.state_dict())
    torch.testing.assert_close(
        norm(x), exact(x.double()).bfloat16(), atol=1e-5, rtol=2**-7
    )


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_equal_features_give_finite_numbers_and_gradients(kind):
    x = torch.zeros(2, 8, requires_grad=True)
    result = kind(8)(x)
    result.sum().backward()
    assert (result == 0).all()
    assert x.grad is not None and x.grad.isfinite().all()


def test_pre_norm_normalizes_what_the_sublayer_reads():
    wrapper, x, sublayer = PreNorm(8).double(), inputs(2, 5, 8), torch.sin
    torch.testing.assert_close(wrapper(x, sublayer), x + sublayer(wrapper.norm(x)))


def test_post_norm_normalizes_the_sum():
    wrapper, x, sublayer = PostNorm(8).double(), inputs(2, 5, 8), torch.sin
    torch.testing.assert_close(wrapper(x, sublayer), wrapper.norm(x + sublayer(x)))


@pytest.mark.parametrize("kind", [PreNorm, PostNorm])
def test_dropout_takes_from_the_sublayer_and_not_from_the_stream(kind):
    wrapper, x = kind(8, dropout=1.0).double(), inputs(2, 5, 8)
    expected = x if kind is PreNorm else wrapper.norm(x)
    torch.testing.assert_close(wrapper(x, torch.sin), expected)
    wrapper.eval()
    assert not torch.allclose(wrapper(x, torch.sin), expected)
