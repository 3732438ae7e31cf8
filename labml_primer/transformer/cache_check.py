"""Check that a model with a KV cache computes the same as without it."""

import warnings
from functools import partial
from inspect import isfunction
from numbers import Integral
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

LENGTHS = (64, 32, 8, 2)
"""How many tokens the check reads, unless a layer declares a longer window: the first number that works."""

TOLERANCE = {torch.float64: 1e-5, torch.float32: 2e-3, torch.float16: 0.03}
"""The relative error that rounding may cause. For narrower types, such as `bfloat16`, it is 0.1."""


class Call(NamedTuple):
    """All tensors that a layer was given, and that it returned."""

    layer: str
    inputs: list[Tensor]
    outputs: list[Tensor]


Calls = dict[tuple[str, int], Call]
"""Calls by the name of the layer and a number, in the order in which they ended."""


def window_of(layer: object, *names: str) -> int:
    """Return on how many positions an output depends, by the layer's word, or zero."""
    sizes = (getattr(layer, name, 0) for name in names or ("kernel_size", "window"))
    return max(0, *(int(size) for size in sizes if isinstance(size, Integral)))


def check_lengths(model: nn.Module) -> list[int]:
    """Return how many tokens to try to read. The longest window ends in the first."""
    windows = [window_of(layer) + 4 for layer in model.modules()]
    return [max(*LENGTHS, *windows), *LENGTHS]


def replaced_method(layer: object) -> str:
    """Return the name of a method that this object has, and not its class, or ""."""
    names = (n for n in vars(layer) if isfunction(getattr(type(layer), n, None)))
    return next(names, "")


def refuse_replaced(model: nn.Module) -> None:
    """Raise `TypeError` if a method of a layer was replaced."""
    for name, layer in named_layers(model):
        method = replaced_method(layer)
        why = f"and may call the layer, not a copy; del layer.{method}"
        # `torch.compile` wraps a layer, `_orig_mod`, and replaces the `forward` of the wrapper.
        if hasattr(layer, "_orig_mod"):
            made: Any = torch.compile(nn.Identity(), backend="eager")
            same = getattr(layer.forward, "__code__", None) is made.forward.__code__
            hooks = layer._forward_hooks or layer._forward_pre_hooks
            method = "" if same and not hooks else "forward"
            why = "or has hooks, outside of what was compiled; change the layer inside"
        if method:
            raise TypeError(
                f"{name} cannot be copied: its {method} was replaced, {why}"
            )


@torch.no_grad()
def check_cache(
    plain: nn.Module,
    cached: list[nn.Module],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Read a short text as a whole, and with a cache in pieces. Raise `TypeError` if the results differ.

    `plain` and `cached` are copies of a model in evaluation mode, which the check uses up. `args` and
    `kwargs` are the arguments of the model's first call. The text is random and consists of the values of
    their first tensor, 0 and 1. One cached copy reads its first three tokens, one by one; the other reads its
    last three so, after the others at once.

    The error names the first layer whose inputs agree and whose outputs do not. Warn if the check is
    impossible, because there are other tensors among the arguments, or because the outputs are random.
    """
    given = tensors((args, kwargs))
    if not given or given[0].dim() < 2 or any(x is not given[0] for x in given):
        return unchecked(plain, "its input is not one tensor [batch, seq, ...]")

    def read(model: nn.Module, text: Tensor) -> None:
        text = text.clone()  # a model may change its input
        each = {key: text if x is given[0] else x for key, x in kwargs.items()}
        model(*(text if x is given[0] else x for x in args), **each)

    whole = watch(plain)
    with torch.random.fork_rng([given[0].device] if given[0].is_cuda else []):
        for length in check_lengths(plain):
            text = random_text(given[0], length)
            whole.clear()
            try:
                read(plain, text)
                break
            except Exception:  # perhaps the text is too long
                continue
        else:
            return unchecked(plain, f"it does not read {LENGTHS[-1]} tokens")

        def read_in_pieces(model: nn.Module, sizes: list[int]) -> list[Calls]:
            """Return the calls of each piece."""
            piece, steps = watch(model), []
            for part in torch.split(text[:, : sum(sizes)], sizes, dim=1):
                piece.clear()
                try:
                    read(model, part)
                except Exception as error:
                    layer = vars(error).get("layer", type(plain).__name__)
                    raise TypeError(f"{layer} cannot be cached: {error}") from error
                steps.append(piece.copy())
            return steps

        single = [1] * min(3, length - 1)
        before = length - len(single)
        last = read_in_pieces(cached[0], [before, *single])[1:]
        wrong = first_wrong(whole, last, before, length) or first_wrong(
            whole, read_in_pieces(cached[1], single), 0, length
        )
        if not wrong:
            return None
        first = whole.copy()
        whole.clear()
        read(plain, text)
        if first_wrong(first, [whole], length - 1, length):
            return unchecked(plain, "its results are random")
        reason = "it reads other tokens than it declares (the last ones, its `window`)"
        if (wrong, 1) in first:
            reason = "it is called twice per text"
        raise TypeError(f"{wrong} cannot be cached: {reason}")


def unchecked(model: nn.Module, reason: str) -> None:
    """Warn the caller of a cached model."""
    text = f"the KV cache of {type(model).__name__} could not be checked: {reason}"
    warnings.warn(text, RuntimeWarning, stacklevel=8)


def random_text(like: Tensor, length: int) -> Tensor:
    """Return `[1, length, ...]` with values of `like` `[batch, seq, ...]`, 0 and 1."""
    values: Tensor = torch.cat([like[:1, :32].flatten(), like.new_tensor([0, 1])])
    values = torch.unique(values)
    shape, generator = (1, length, *like.shape[2:]), torch.Generator().manual_seed(0)
    drawn = torch.randint(len(values), shape, generator=generator, device="cpu")
    return values[drawn.to(like.device)]


def watch(model: nn.Module) -> Calls:
    """Return a dictionary that gets a call whenever a layer of a copied model ran.

    The hooks of the model are not called, and what it writes into its buffers is lost. An error gets the name
    of the layer in which it occurred.
    """
    calls: Calls = {}

    def run(layer: str, forward: Any, *args: Any, **kwargs: Any) -> object:
        try:
            outputs = forward(*args, **kwargs)
        except Exception as error:
            vars(error).setdefault("layer", layer)
            raise
        number = 0
        while (layer, number) in calls:
            number += 1
        call = Call(layer, tensors((args, kwargs)), tensors(outputs))
        calls[layer, number] = call
        return outputs

    for name, layer in named_layers(model):
        for buffer, value in list(layer.named_buffers(recurse=False)):
            setattr(layer, buffer, value.clone())
        vars(layer).update(_forward_hooks={}, _forward_pre_hooks={})
        vars(layer)["forward"] = partial(run, name, layer.forward)
    return calls


def named_layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers of a model, each with its name and the name of its class."""
    return [
        (f"{name} ({type(layer).__name__})" if name else type(layer).__name__, layer)
        for name, layer in model.named_modules()
    ]


def tensors(x: object) -> list[Tensor]:
    """Return all tensors in nested tuples, lists and dictionaries."""
    if isinstance(x, Tensor):
        return [x]
    if not isinstance(x, tuple | list | dict):
        return []
    parts = x.values() if isinstance(x, dict) else x
    return [each for part in parts for each in tensors(part)]


def first_wrong(whole: Calls, steps: list[Calls], start: int, length: int) -> str:
    """Return the first layer that computes tokens from `start` on wrongly, or nothing.

    Each step has one token. The last layer that can be compared decides whether anything is wrong. Most
    steps must be, because rounding can change all of one, for example the expert that its token is sent to.
    """
    computed = [x.dtype for call in whole.values() for x in call.outputs]
    floats = {dtype for dtype in computed if dtype.is_floating_point}
    limit = max((TOLERANCE.get(dtype, 0.1) for dtype in floats), default=0.0)

    def largest_errors(key: tuple[str, int], part: str) -> list[float]:
        """Return the largest error of each step that can be compared."""
        found = []
        for at, step in enumerate(steps, start):
            if key in step:  # an expert may have no tokens in some steps
                right, new = getattr(whole[key], part), getattr(step[key], part)
                found.append(max(relative_errors(right, new, at, length), default=-1.0))
        return [error for error in found if error >= 0]

    for last in reversed(whole):
        if errors := largest_errors(last, "outputs"):
            break
    else:
        return ""
    if median(errors) <= limit:
        return ""
    for key, call in whole.items():
        before, after = (largest_errors(key, part) for part in ("inputs", "outputs"))
        if max(before, default=0) <= limit < median(after or [0]):
            return call.layer
    return whole[last].layer


def relative_errors(
    whole: list[Tensor], new: list[Tensor], at: int, length: int
) -> list[float]:
    """Compare tensors of a whole text with those of its token `at` alone.

    The error is the norm of the difference, relative to that of the right tensor. A tensor without a
    dimension for the text is compared after its last token, and others not at all.
    """
    errors = []
    for right, value in zip(whole, new, strict=False):
        sizes = zip(right.shape, value.shape, strict=False)
        unlike = [(i, *pair) for i, pair in enumerate(sizes) if len(set(pair)) == 2]
        if [pair for _, *pair in unlike] == [[length, 1]]:
            right = right.narrow(unlike[0][0], at, 1)
        if right.shape != value.shape or not (unlike or at == length - 1):
            continue
        right, value = (x.float().nan_to_num(0, 0, 0) for x in (right, value))
        errors.append(((value - right).norm() / (right.norm() + 1e-30)).item())
    return errors
