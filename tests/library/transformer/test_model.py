"""What the chapter on the encoder-decoder promises."""

import pytest
import torch
from twins import END, START, cut, sources, transformer

from labml_primer.transformer.model import (
    Transformer,
    greedy_decode,
    learning_rate,
)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


# The Transformer


def test_padding_changes_no_logit_of_another_sequence() -> None:
    model = transformer()
    source, target = sources(), torch.randint(0, 5, (6, 4))
    result = model(source, target)
    torch.testing.assert_close(result[0], model(source[:1], target[:1])[0])
    torch.testing.assert_close(result[1], model(source[1:2, :5], target[1:2])[0])


def test_each_logit_depends_on_every_source_token() -> None:
    model = transformer()
    source, target = torch.randint(1, 9, (1, 7)), torch.randint(0, 5, (1, 4))
    for i in range(7):
        other = source.clone()
        other[:, i] = other[:, i] % 8 + 1
        assert (model(other, target) != model(source, target)).all()


def test_output_matrix_is_the_target_embedding() -> None:
    model = transformer()
    memory, mask = model.encode(sources())
    target = torch.randint(0, 5, (6, 4))
    x = model.decoder(model.positions(model.target_embedding(target)), memory, mask)
    table = model.target_embedding.table.weight
    expected = torch.einsum("btd,vd->btv", x, table)
    torch.testing.assert_close(model.decode(target, memory, mask), expected)


def test_the_base_model_of_the_paper_has_63_million_parameters() -> None:
    with torch.device("meta"):
        model = Transformer(37_000, 37_000)
    d, d_ff = 512, 2048
    encoder = 4 * (d**2 + d) + 2 * d * d_ff + d_ff + d + 4 * d
    decoder = 8 * (d**2 + d) + 2 * d * d_ff + d_ff + d + 6 * d
    expected = 6 * (encoder + decoder) + 4 * d + 2 * 37_000 * d
    assert sum(p.numel() for p in model.parameters()) == expected
    assert round((expected - 37_000 * d) / 1e6) == 63


# The learning rate


def test_rate_rises_linearly_then_falls_with_the_square_root() -> None:
    peak = learning_rate(4000, 512)
    assert peak == pytest.approx((512 * 4000) ** -0.5)
    assert learning_rate(1000, 512) == pytest.approx(peak / 4)
    assert learning_rate(16_000, 512) == pytest.approx(peak / 2)
    assert max(learning_rate(s, 512) for s in range(1, 20_000)) == pytest.approx(peak)


def test_a_rate_before_step_1_is_an_error() -> None:
    with pytest.raises(ValueError, match="step 0"):
        learning_rate(0, 512)


# Decoding


def test_greedy_decoding_takes_the_most_probable_token_each_time() -> None:
    model, source = transformer(), sources()
    for row, answer in zip(
        source, greedy_decode(model, source, START, END, 6), strict=True
    ):
        tokens: list[int] = []
        while len(tokens) < 6 and END not in tokens:
            with torch.no_grad():
                logits = model(row[None], torch.tensor([[START, *tokens]]))
            tokens.append(int(logits[0, -1].argmax()))
        assert cut(answer) == tokens


def test_after_the_end_token_there_is_padding() -> None:
    lengths = set()
    for _ in range(5):
        model, source = transformer(), sources()
        for row in greedy_decode(model, source, START, END, 6):
            lengths.add(len(cut(row)))
            assert (row[len(cut(row)) :] == model.padding).all()
    assert len(lengths) > 2


def test_an_empty_batch_is_decoded_to_an_empty_batch() -> None:
    source = torch.empty(0, 7, dtype=torch.long)
    assert greedy_decode(transformer(), source, START, END, 5).size(0) == 0


def test_a_negative_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="max_length -1 is negative"):
        greedy_decode(transformer(), sources(), START, END, -1)
