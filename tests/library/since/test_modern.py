"""The promises of a modern baseline."""

from dataclasses import replace

import pytest
import torch
from catalogue import SMALL
from torch import nn

from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.since.modern import (
    GroupedMultiDConvHeadAttention,
    GroupedQueryAttention,
    modern,
    modern_primer_ez,
)
from labml_primer.since.rotary import Rotation
from labml_primer.training.costs import costs
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Config, LanguageModel

CONFIG = replace(SMALL, d_model=16, heads=4)
both = pytest.mark.parametrize("today", [modern, modern_primer_ez])


@pytest.mark.parametrize(
    ("kind", "whole"),
    [
        (GroupedQueryAttention, MultiHeadAttention),
        (GroupedMultiDConvHeadAttention, MultiDConvHeadAttention),
    ],
)
def test_grouped_attention_equals_attention_with_copied_keys_and_values(
    kind: type[GroupedQueryAttention], whole: type[MultiHeadAttention]
) -> None:
    torch.manual_seed(0)
    grouped, copied = kind(16, 4).double(), whole(16, 4).double()
    for weight in grouped.parameters():
        nn.init.normal_(weight)
    state = grouped.state_dict()
    for name, weight in state.items():
        if name.startswith(("key_conv", "value_conv")):
            state[name] = weight.repeat_interleave(2, dim=1)
        elif name.startswith(("key", "value")):
            heads = weight.unflatten(0, (2, 4)).repeat_interleave(2, dim=0)
            state[name] = heads.flatten(0, 1)
    copied.load_state_dict(state)
    x = torch.randn(2, 7, 16).double()
    torch.testing.assert_close(grouped(x, x, causal=True), copied(x, x, causal=True))


@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (3, 1), (3, 3), (4, 2), (6, 2)])
def test_groups_divide_the_heads(heads: int, groups: int) -> None:
    class Grouped(GroupedQueryAttention):
        pass

    Grouped.groups = groups
    layer = Grouped(4 * heads, heads)
    x = torch.randn(1, 3, 4 * heads)
    shapes = [list(each.shape) for each in layer.project(x, x)]
    assert shapes == [[1, 3, heads, 4], [1, 3, groups, 4], [1, 3, groups, 4]]


def test_groups_that_do_not_divide_the_heads_are_an_error() -> None:
    with pytest.raises(ValueError, match="heads 3 is not a multiple of groups 2"):
        GroupedQueryAttention(12, 3)


@both
def test_no_linear_layer_of_todays_models_has_a_bias(today) -> None:
    for layer in LanguageModel(today(CONFIG)).modules():
        assert not isinstance(layer, nn.Linear) or layer.bias is None


@both
def test_todays_models_depend_on_distances_only(today) -> None:
    torch.manual_seed(0)
    model = LanguageModel(today(CONFIG)).double()
    tokens = torch.randint(11, (2, 9))
    before = model(tokens)
    for layer in model.modules():
        if isinstance(layer, Rotation):
            layer.tokens_before = 1000
    torch.testing.assert_close(model(tokens), before)


def test_the_costs_count_each_kernel_once_for_each_of_its_features() -> None:
    config = Config(11, 64, heads=4, d_ff=256, layers=1)
    plain, convolved = (
        costs(LanguageModel(modern(config) if grouped else config))
        for grouped in (False, True)
    )
    assert convolved["attention"][0] < plain["attention"][0]
    parts = costs(LanguageModel(modern_primer_ez(config)))
    kernels = 3 * (64 + 2 * 32)  # queries, and the two groups of keys and values
    assert parts["attention"][1] - convolved["attention"][1] == kernels
