"""What the chapter on the language model promises."""

import math
from dataclasses import replace

import pytest
import torch
from catalogue import SMALL
from torch import nn
from torch.nn import functional as F
from twins import reals, stirred

from labml_primer.transformer.encoder import EncoderBlock
from labml_primer.transformer.language_model import Block, Config, LanguageModel


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def test_a_block_is_the_encoders_block_with_a_causal_mask() -> None:
    block, encoder = stirred(Block(SMALL)), EncoderBlock(12, 3, 20).double()
    encoder.load_state_dict(block.state_dict())
    x = reals(2, 7, 12)
    mask = torch.ones(7, 7, dtype=torch.bool).tril()
    torch.testing.assert_close(block(x), encoder(x, mask))


@pytest.mark.parametrize("tokens", [[3, 3, 3], [3, 4, 4]])
def test_equal_tokens_at_different_positions_get_different_logits(
    tokens: list[int],
) -> None:
    logits = LanguageModel(SMALL)(torch.tensor([tokens]))[0]
    assert (logits[1] != logits[2]).any()


def test_initial_loss_is_the_log_of_the_vocabulary_size() -> None:
    model = LanguageModel(Config(vocab_size=80))
    tokens = torch.randint(0, 80, (8, 128))
    loss = F.cross_entropy(model(tokens)[:, :-1].mT, tokens[:, 1:])
    assert abs(loss.item() - math.log(80)) < 0.1


def test_large_tied_embeddings_would_predict_the_current_token_again() -> None:
    model = LanguageModel(Config(vocab_size=80))
    nn.init.normal_(model.embedding.weight)
    tokens = torch.randint(0, 80, (8, 128))
    assert torch.equal(model(tokens).argmax(dim=-1), tokens)


@pytest.mark.parametrize(
    "config", [SMALL, Config(vocab_size=80), replace(SMALL, d_ff=7, layers=1)]
)
def test_number_of_parameters_is_that_of_the_formula(config: Config) -> None:
    d, d_ff = config.d_model, config.d_ff
    expected = (config.vocab_size + config.max_seq) * d + 2 * d
    expected += config.layers * (4 * d**2 + 2 * d * d_ff + 9 * d + d_ff)
    model = LanguageModel(config)
    assert sum(p.numel() for p in model.parameters()) == expected


def test_embedding_and_output_share_one_matrix() -> None:
    model = LanguageModel(SMALL)
    model(torch.tensor([[3]])).logsumexp(-1).sum().backward()
    gradient = model.embedding.weight.grad
    assert gradient is not None
    # Only token 3 was read. Every other was only predicted, and still learns.
    assert (gradient.abs().amax(dim=1) > 0).all()
