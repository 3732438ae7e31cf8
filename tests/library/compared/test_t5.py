"""Promises of the chapter on the T5 setting."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from twins import stirred
from x_transformers.x_transformers import RelativePositionBias as Theirs

from labml_primer.compared.t5 import (
    T5,
    T5_PRESETS,
    RelativePositionBias,
    adafactor,
    corrupt_spans,
    relative_position_bucket,
    t5_rate,
)
from labml_primer.transformer.attention import MultiHeadAttention


def small(name: str, **sizes: int) -> T5:
    torch.manual_seed(0)
    config = replace(
        T5_PRESETS[name], vocab_size=20, d_model=12, heads=3, d_ff=24, layers=2
    )
    model = T5(replace(config, **sizes)).double()  # type: ignore[arg-type]
    stirred(model)
    return model


def texts(source: int = 7, target: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randint(20, (2, source), generator=generator),
        torch.randint(20, (2, target), generator=generator),
    )


def bucket_by_integers(n: int, bidirectional: bool, B: int, M: int) -> int:  # noqa: N803
    """The formula without a logarithm, so that nothing is rounded."""
    shift = 0
    if bidirectional:
        B //= 2  # noqa: N806
        shift = B if n < 0 else 0
        n = abs(n)
    n, m = max(n, 0), B // 2
    if n < m:
        return shift + n
    steps = [j for j in range(B - m) if n ** (B - m) * m**j >= m ** (B - m) * M**j]
    return shift + m + max(steps)


@given(
    n=st.integers(-1000, 1000),
    bidirectional=st.booleans(),
    half=st.integers(2, 16),
    reach=st.integers(1, 300),
)
def test_a_bucket_is_that_of_the_formula_in_integers(n, bidirectional, half, reach):
    buckets = 4 * half if bidirectional else 2 * half
    expected = bucket_by_integers(n, bidirectional, buckets, half + reach)
    found = relative_position_bucket(
        torch.tensor(n), bidirectional, buckets, half + reach
    )
    assert found.item() == expected


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("seq", [1, 7, 300])
def test_the_bias_is_that_of_x_transformers(seq, bidirectional):
    ours = RelativePositionBias(3, bidirectional)
    theirs = Theirs(scale=1.0, causal=not bidirectional, heads=3)
    theirs.relative_attention_bias.load_state_dict(ours.table.state_dict())
    torch.testing.assert_close(ours(seq, seq), theirs(seq, seq), rtol=0, atol=0)


def test_more_queries_than_keys_are_an_error():
    with pytest.raises(ValueError, match="6 queries are more than 5 keys"):
        RelativePositionBias(2, bidirectional=True)(6, 5)


def test_fewer_queries_than_keys_have_the_last_rows_of_the_bias():
    bias = RelativePositionBias(3, bidirectional=False)
    torch.testing.assert_close(bias(2, 7), bias(7, 7)[:, 5:], rtol=0, atol=0)


@pytest.mark.parametrize(("buckets", "max_distance"), [(2, 128), (32, 8), (0, 128)])
def test_too_few_buckets_for_far_keys_are_an_error(buckets, max_distance):
    with pytest.raises(ValueError, match="far keys"):
        relative_position_bucket(torch.arange(3), True, buckets, max_distance)


def test_attention_with_a_bias_is_the_formula():
    layer = stirred(MultiHeadAttention(12, 3))
    bias = RelativePositionBias(3, bidirectional=True).double()(5, 5)
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    query, key, value = layer.project(x, x)
    heads = torch.empty(2, 5, 3, 4, dtype=torch.float64)
    for h in range(3):
        for i in range(5):
            scores = key[:, :, h] @ query[:, i, h, :, None] / math.sqrt(4)
            weights = (scores[..., 0] + bias[h, i]).softmax(dim=-1)
            heads[:, i, h] = (weights[..., None] * value[:, :, h]).sum(dim=1)
    expected = layer.output(heads.flatten(2))
    torch.testing.assert_close(layer(x, x, bias), expected)


@pytest.mark.parametrize("name", T5_PRESETS)
def test_every_target_position_sees_the_whole_source(name):
    model = small(name)
    source, target = texts()
    for place in (0, 6):
        other = source.clone()
        other[:, place] = (other[:, place] + 1) % 20
        assert (model(other, target) - model(source, target)).abs().amin() > 0


@pytest.mark.parametrize("name", T5_PRESETS)
def test_padding_of_the_source_changes_nothing(name):
    model = small(name)
    source, target = texts()
    padded = torch.cat([source, torch.randint(20, (2, 3))], dim=1)
    mask = (torch.arange(10) < 7).expand(2, 10)
    torch.testing.assert_close(model(padded, target, mask), model(source, target))


def test_without_relative_positions_the_vanilla_encoder_is_pytorchs():
    model = small("t5")
    for stack in (model.encoder, model.decoder):
        nn.init.zeros_(stack.positions.table.weight)
    encoder = nn.TransformerEncoderLayer(
        12, 3, 24, 0.0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    block = model.encoder.blocks[0]
    attention = block.attention
    rows = [getattr(attention, name).weight for name in ("query", "key", "value")]
    with torch.no_grad():
        encoder.self_attn.in_proj_weight.copy_(torch.cat(rows))
        encoder.self_attn.out_proj.weight.copy_(attention.output.weight)
        encoder.linear1.weight.copy_(block.feed_forward.expand.weight)
        encoder.linear2.weight.copy_(block.feed_forward.contract.weight)
        for name, parameter in encoder.named_parameters():
            if name.endswith("bias") and "norm" not in name:
                parameter.zero_()
    encoder.norm1.load_state_dict(block.attention_norm.state_dict())
    encoder.norm2.load_state_dict(block.feed_forward_norm.state_dict())
    x = torch.randn(2, 6, 12, dtype=torch.float64)
    torch.testing.assert_close(block(x, model.encoder.positions(6, 6)), encoder(x))


@pytest.mark.parametrize(("source", "target"), [(1, 150), (200, 1), (200, 150)])
def test_texts_of_any_length_have_finite_logits(source, target):
    logits = small("t5-primer-ez-decoder")(*texts(source, target))
    assert logits.shape == (2, target, 20)
    assert logits.isfinite().all()


def test_no_linear_layer_has_a_bias():
    linear = [m for m in small("t5-pp").modules() if isinstance(m, nn.Linear)]
    assert linear
    assert all(layer.bias is None for layer in linear)


def joined(source: list[int], target: list[int], first: int) -> list[int]:
    """Restore the text: replace each sentinel of the source by the piece after it in the target."""
    pieces: dict[int, list[int]] = {}
    for token in target:
        if token >= first:
            pieces[token] = []
        else:
            pieces[max(pieces)].append(token)
    text = [pieces.get(token, [token]) for token in source]
    return [token for piece in text for token in piece]


@settings(max_examples=50)
@given(
    seq=st.integers(20, 150),
    rate=st.floats(0.1, 0.6),
    length=st.floats(1.0, 5.0),
    seed=st.integers(0, 1000),
)
def test_source_and_target_together_are_the_text(seq, rate, length, seed):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(100, (3, seq), generator=generator)
    try:
        source, target = corrupt_spans(tokens, 100, generator, rate, length)
    except ValueError:
        return  # more spans than tokens to keep between them
    for row in range(3):
        text = joined(source[row].tolist(), target[row].tolist(), 100)
        assert text == tokens[row].tolist()
    cut = round(seq * rate)
    spans = max(1, round(cut / length))
    assert source.size(1) == seq - cut + spans
    assert target.size(1) == cut + spans + 1
    assert target[:, 0].eq(100).all() and target[:, -1].eq(100 + spans).all()


@pytest.mark.parametrize("seed", [None, 0])
def test_spans_are_cut_whatever_the_default_device_is(seed: int | None) -> None:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    text = torch.arange(60).view(2, 30)
    with torch.device("meta"):
        source, target = corrupt_spans(text, 60, generator)
    assert len(source) == len(target) == 2 and not source.is_meta


def test_places_differ_from_row_to_row():
    tokens = torch.arange(100).expand(8, 100)
    source, _ = corrupt_spans(tokens, 100, torch.Generator().manual_seed(0))
    assert len({tuple(row.tolist()) for row in source}) == 8


@pytest.mark.parametrize(("seq", "rate"), [(2, 0.15), (20, 1.0), (20, 0.99)])
def test_nothing_to_cut_or_to_keep_is_an_error(seq, rate):
    with pytest.raises(ValueError, match="do not fit"):
        corrupt_spans(
            torch.zeros(1, seq, dtype=torch.long), 100, rate=rate, mean_length=1
        )


def test_adafactor_is_pytorchs():
    torch.manual_seed(0)
    weight = torch.randn(7, 5, dtype=torch.float64)
    theirs = nn.Parameter(weight.clone())
    optimizer = torch.optim.Adafactor([theirs])
    rows, columns = weight.new_zeros(7), weight.new_zeros(5)
    for step in range(1, 200):
        theirs.grad = torch.randn_like(weight) * 10 ** float(torch.randn(()))
        optimizer.step()
        weight, rows, columns = adafactor(
            weight, theirs.grad, rows, columns, step, t5_rate(step)
        )
    torch.testing.assert_close(weight, theirs.detach())


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-8, 1.0])
def test_adafactor_stays_finite_for_vanishing_gradients(size: float) -> None:
    torch.manual_seed(0)
    weight, gradient = torch.randn(48, 32), size * torch.randn(48, 32)
    gradient[10:] = 0  # rows of tokens that did not occur
    gradient[:, 3] = 0
    theirs = nn.Parameter(weight.clone())
    theirs.grad = gradient
    torch.optim.Adafactor([theirs]).step()
    ours, _, _ = adafactor(
        weight, gradient, torch.zeros(48), torch.zeros(32), 1, t5_rate(1)
    )
    assert ours.isfinite().all()
    # PyTorch clamps its means at another number, so it differs for tiny gradients.
    if size in (0.0, 1.0):
        torch.testing.assert_close(ours, theirs.detach())


def test_pytorchs_adafactor_has_t5s_schedule_built_in():
    """Compare one step of PyTorch's optimizer with the schedule, before and after the rate falls."""
    for step in (1, 9_999, 10_000, 10_001, 40_000):
        weight = nn.Parameter(torch.ones(2, 2, dtype=torch.float64))
        weight.grad = torch.ones_like(weight)
        optimizer = torch.optim.Adafactor([weight])
        optimizer.step()
        optimizer.state[weight]["step"].fill_(step - 1)
        weight.data.fill_(1.0)
        optimizer.step()
        assert (1 - weight).mean().item() == pytest.approx(t5_rate(step), rel=1e-6)


def test_the_root_in_attention_and_smaller_queries_train_alike():
    """The chapter's deviation from T5's code, which has no root."""
    torch.manual_seed(0)
    text = torch.randn(4, 6, 16, dtype=torch.float64)

    def trained(scale: float, query_size: float, steps: int = 20) -> Tensor:
        torch.manual_seed(1)
        query, key = (
            nn.Parameter(torch.randn(16, 16, dtype=torch.float64)) for _ in range(2)
        )
        with torch.no_grad():
            query *= query_size
        optimizer = torch.optim.Adafactor([query, key])
        for _ in range(steps):
            scores = (text @ query) @ (text @ key).mT * scale
            loss = (scores.softmax(dim=-1) @ text).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return scores.detach()

    ours, theirs = trained(16**-0.5, 1.0), trained(1.0, 16**-0.5)
    torch.testing.assert_close(ours, theirs)
    assert not torch.allclose(ours, trained(16**-0.5, 1.0, steps=1), rtol=0.01)
