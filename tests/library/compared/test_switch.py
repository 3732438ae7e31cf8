"""Promises of the chapter on the Switch Transformer."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from catalogue import CONFIGS
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from labml_primer.compared.switch import AddLoss, SwitchFeedForward
from labml_primer.compared.t5 import T5, Parts, T5Config
from labml_primer.presets import PRESETS
from labml_primer.training import Corpus, train
from labml_primer.training.costs import costs
from labml_primer.transformer.feed_forward import PositionwiseFeedForward
from labml_primer.transformer.language_model import LanguageModel


def layer_of(
    experts: int = 3, factor: float = 1.0, width: int = 6, **options: object
) -> SwitchFeedForward:
    kind = type(
        "Some", (SwitchFeedForward,), {"experts": experts, "capacity_factor": factor}
    )
    torch.manual_seed(0)
    layer: SwitchFeedForward = kind(width, 10, **options).double()
    return layer


def text(batch: int = 3, seq: int = 7, width: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(batch, seq, width, generator=generator, dtype=torch.float64)


def one_by_one(layer: SwitchFeedForward, x: Tensor, capacity: float) -> Tensor:
    """One token at a time, all first ones before all second ones."""
    y, taken = torch.zeros_like(x), [0] * layer.experts
    for t in range(x.size(1)):
        for b in range(x.size(0)):
            scores = [layer.router.weight[i] @ x[b, t] for i in range(layer.experts)]
            raised = [math.exp(score) for score in scores]
            i = raised.index(max(raised))
            if taken[i] >= capacity:
                continue
            taken[i] += 1
            hidden = x[b, t] @ layer.expand.weight[i] + layer.expand.bias[i, 0]
            answer = layer.activation(hidden) @ layer.contract.weight[i]
            y[b, t] = raised[i] / sum(raised) * (answer + layer.contract.bias[i, 0])
    return y


@given(
    experts=st.integers(1, 9),
    factor=st.sampled_from([0.1, 0.5, 1.0, 1.25, 3.0]),
    batch=st.integers(1, 4),
    seq=st.integers(1, 7),
)
@settings(max_examples=30)
@torch.no_grad()
def test_it_equals_a_loop_over_tokens(
    experts: int, factor: float, batch: int, seq: int
) -> None:
    layer, x = layer_of(experts, factor), text(batch, seq)
    capacity = math.ceil(batch * seq / experts * factor)
    torch.testing.assert_close(layer(x), one_by_one(layer, x, capacity))
    torch.testing.assert_close(layer.eval()(x), one_by_one(layer, x, math.inf))


@pytest.mark.parametrize("shape", [(0, 5, 6), (3, 0, 6), (1, 1, 6)])
def test_empty_batches_and_single_tokens_keep_their_shape(
    shape: tuple[int, int, int],
) -> None:
    for layer in (layer_of(), layer_of().eval()):
        assert layer(torch.randn(shape, dtype=torch.float64)).shape == shape


def test_the_router_computes_in_float32_whatever_the_dtype() -> None:
    layer, x = layer_of(8, 1.0, width=64).float(), text(4, 50, 64).float()
    exact = layer.probabilities(x.flatten(0, 1))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer.probabilities(x.flatten(0, 1)), exact)
        layer(x).sum().backward()
    half = copy.deepcopy(layer).bfloat16()
    assert half.probabilities(x.bfloat16().flatten(0, 1)).dtype == torch.float32
    assert half(x.bfloat16()).dtype == torch.bfloat16


# The balancing loss


@given(experts=st.integers(1, 6), seq=st.integers(1, 9))
@settings(max_examples=20)
@torch.no_grad()
def test_the_balancing_loss_is_equations_4_to_6(experts: int, seq: int) -> None:
    layer, x = layer_of(experts), text(2, seq)
    odds = [
        (layer.router.weight @ token).softmax(dim=0).tolist()
        for token in x.flatten(0, 1)
    ]
    total = 0.0
    for i in range(experts):
        share = sum(p.index(max(p)) == i for p in odds) / len(odds)
        total += share * sum(p[i] for p in odds) / len(odds)
    expected = torch.tensor(0.01 * experts * total, dtype=torch.float64)
    torch.testing.assert_close(layer.auxiliary_loss(x), expected)


SMALL = CONFIGS["switch-transformer"]


def test_a_layers_loss_adds_its_gradient_and_changes_no_result() -> None:
    """The gradients are those of the model's loss plus the losses of all layers, each of its own input."""
    torch.manual_seed(0)
    model, seen = LanguageModel(SMALL), []
    tokens = torch.randint(5, (2, 8))
    result = model(tokens)
    result.logsumexp(-1).mean().backward()
    found = [weight.grad for weight in model.parameters()]
    model.zero_grad()
    for module in model.modules():
        if isinstance(module, SwitchFeedForward):
            module.register_forward_pre_hook(
                lambda layer, x: seen.append(layer.auxiliary_loss(*x))
            )
    # Without a loss of its own, a layer's result is the same.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AddLoss, "apply", lambda x, loss: x)
        assert torch.equal(model(tokens), result)
        seen.clear()
        (model(tokens).logsumexp(-1).mean() + sum(seen)).backward()
    assert len(seen) == 2
    for got, weight in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(got, weight.grad)


@pytest.mark.parametrize("evaluated", [True, False])
def test_a_layer_without_gradients_or_in_evaluation_computes_no_loss(
    evaluated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Tensor] = []
    monkeypatch.setattr(
        SwitchFeedForward, "auxiliary_loss", lambda _, x: asked.append(x)
    )
    model = LanguageModel(SMALL).train(not evaluated)
    with torch.set_grad_enabled(evaluated):
        model(torch.randint(5, (2, 8)))
    assert asked == []


def corpus() -> Corpus:
    generator = torch.Generator().manual_seed(0)
    train_text, validation = torch.randint(5, (2, 200), generator=generator)
    return Corpus(train_text, validation, "abcde")


class Asking(nn.Linear):
    """A layer whose auxiliary loss is a parameter that nothing else uses."""

    def __init__(self) -> None:
        super().__init__(5, 5)
        self.wish = nn.Parameter(torch.tensor(100.0))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = AddLoss.apply(super().forward(x), self.wish)
        return y


def test_training_minimizes_auxiliary_losses_and_does_not_record_them() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 5), Asking())
    history = train(model, corpus(), name="asking", steps=5, seq=8, evaluations=1)
    assert model[1].wish < 100
    assert history.train_loss[0] < 10


class Checkpointed(nn.Module):
    """A model whose blocks are computed again in the backward pass."""

    def __init__(self, model: LanguageModel, reentrant: bool):
        super().__init__()
        self.model, self.reentrant = model, reentrant

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.model.positions(self.model.embedding(tokens))
        for block in self.model.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return self.model.norm(x) @ self.model.embedding.weight.T


def gradients(model: nn.Module) -> list[Tensor | None]:
    tokens = torch.arange(16).view(2, 8) % 5
    model.zero_grad()
    model(tokens).logsumexp(-1).mean().backward()
    return [weight.grad for weight in model.parameters()]


@pytest.mark.parametrize("reentrant", [False, True])
def test_auxiliary_losses_have_their_gradients_under_activation_checkpointing(
    reentrant: bool,
) -> None:
    torch.manual_seed(0)
    model = LanguageModel(SMALL)
    expected = gradients(model)
    assert any("router" in name for name, _ in model.named_parameters())
    torch.testing.assert_close(gradients(Checkpointed(model, reentrant)), expected)


# In a model


def test_experts_without_biases_are_experts_whose_biases_are_zero() -> None:
    layer, plain = layer_of(), layer_of()
    for part in ("expand", "contract"):
        plain.get_parameter(f"{part}.bias").data.zero_()
        layer.get_submodule(part).register_parameter("bias", None)
    torch.testing.assert_close(layer(text()), plain(text()))


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_t5_takes_experts_in_either_stack(stack: str) -> None:
    torch.manual_seed(0)
    parts = Parts(feed_forward=SwitchFeedForward)
    config = T5Config(5, 12, 3, 20, layers=1, **{stack: parts})
    model, tokens = T5(config), torch.arange(8).view(2, 4) % 5
    model(tokens, tokens).logsumexp(-1).mean().backward()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_multiply_adds_are_those_of_one_expert_and_the_router() -> None:
    switch, plain = (
        costs(LanguageModel(config))
        for config in (SMALL, replace(SMALL, feed_forward=PositionwiseFeedForward))
    )
    router = 12 * 8
    assert plain["feed_forward"][1] == 2 * 2 * 12 * 20
    assert switch["feed_forward"][1] == 2 * (2 * 12 * 20 + router)
    experts = 8 * (2 * 12 * 20 + 12 + 20)
    assert switch["feed_forward"][0] == 2 * (experts + router)
    del switch["feed_forward"], plain["feed_forward"]
    assert switch == plain


def test_switch_primer_is_primer_ez_with_experts() -> None:
    assert PRESETS["switch-primer"] == replace(
        PRESETS["primer-ez"], feed_forward=SwitchFeedForward
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"experts": 0}, "experts 0"),
        ({"factor": 0.0}, r"capacity_factor 0\.0"),
        ({"factor": -1.0}, r"capacity_factor -1\.0"),
    ],
)
def test_impossible_settings_are_errors_that_name_them(
    options: dict, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        layer_of(**options)
