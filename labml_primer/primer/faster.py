r"""
# The same, faster

Two gradients written by hand, and three convolutions merged into one. One call swaps them into a finished
model.

The squared ReLU and the convolution of {doc}`primer_ez` compute very little, yet they make a training step
longer. Where does the time go, and how much of it can be saved without changing the model?

In short: the time of an *elementwise* operation, one that treats each number separately, depends on the
memory it reads and writes, not on its arithmetic. PyTorch's automatic differentiation makes a separate pass
over memory for every step of a formula, mostly into new memory. A gradient written by hand reuses memory.
{py:func}`~labml_primer.primer.faster.faster` swaps such versions into any model of this book and keeps its
parameters, outputs and gradients. With {term}`torch.compile` they are not needed, because it fuses such
operations itself, so this chapter is about {term}`eager mode`, and {doc}`compiled_generation` about text that
is generated in compiled steps.

:::{picture} faster
:::

Source: our own measurements; {doc}`/benchmarks/speed` has them for several sizes, next to other libraries.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.linalg import vecdot
from torch.nn import functional as F

from labml_primer.primer.primer_ez import (
    MultiDConvHeadAttention,
    SpatialDepthWiseConvolution,
    SquaredReLU,
)
from labml_primer.primer.variations import (
    BiasedConvolution,
    MultiDConvSharedByHeadsAttention,
    MultiDPHConvHeadAttention,
    MultiDSharedConvHeadAttention,
    SpatialDepthWisePerHeadConvolution,
    SpatialDepthWiseSharedConvolution,
)
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.cache_check import replaced_method

Model = TypeVar("Model", bound=nn.Module)

if __name__ == "__main__":
    # ## Where a step spends its time
    #
    # Milliseconds of each kind of operation in a forward and a backward pass of a small Transformer and a
    # small Primer-EZ, from PyTorch's profiler: the fastest of twenty. Both compute the same matrix products,
    # so those two times differ by noise only. What Primer-EZ adds is elementwise operations.
    from dataclasses import replace

    from IPython.display import display
    from torch.autograd.profiler import profile

    from labml_primer.training.table import Table
    from labml_primer.transformer.language_model import Config, LanguageModel

    transformer = Config(vocab_size=256, d_model=256, heads=4, d_ff=1024, layers=2)
    primer_ez = replace(
        transformer, attention=MultiDConvHeadAttention, activation=SquaredReLU
    )
    kinds = {
        "matrix products": ("addmm", "mm", "bmm"),
        "elementwise": ("mul", "add", "relu", "threshold_backward", "pow", "sum"),
    }

    def step(model: nn.Module, tokens: Tensor) -> None:
        model(tokens).logsumexp(dim=-1).sum().backward()

    def milliseconds(model: nn.Module) -> list[float]:
        with profile(use_kineto=False) as profiled:  # Kineto logs each start and end
            step(model, tokens)
        events = [
            (event.key.removeprefix("aten::").rstrip("_"), event.self_cpu_time_total)
            for event in profiled.key_averages()
        ]
        return [
            sum(microseconds / 1000 for name, microseconds in events if name in kind)
            for kind in kinds.values()
        ]

    tokens = torch.zeros(8, 128, dtype=torch.long)
    models = {
        "Transformer": LanguageModel(transformer),
        "Primer-EZ": LanguageModel(primer_ez),
    }
    runs = [[milliseconds(model) for model in models.values()] for _ in range(20)]
    fastest = torch.tensor(runs).amin(dim=0)
    rows = [
        (name, *(f"{ms:.1f}" for ms in row.tolist()))
        for name, row in zip(models, fastest, strict=True)
    ]
    display(Table(("milliseconds", *kinds), rows))


if __name__ == "__main__":
    # ## Elementwise operations cost memory traffic
    #
    # The time of some operations on four million numbers, as a multiple of the time of copying them. One pass
    # over memory takes about as long as a copy, whatever it computes. A second pass, in the last row, adds to
    # that.
    from labml_primer.training import median_seconds

    x, out = torch.randn(4_000_000), torch.empty(4_000_000)
    taken = median_seconds(
        {
            "copy": lambda: out.copy_(x),
            "relu": lambda: torch.clamp(x, min=0, out=out),
            "square": lambda: torch.mul(x, x, out=out),
            "relu, then square": lambda: torch.clamp(x, min=0, out=out).mul_(out),
        }
    )
    rows = [(name, f"{seconds / taken['copy']:.2f}") for name, seconds in taken.items()]
    display(Table(("operation", "copies"), rows))


def by_hand(*inputs: Tensor) -> bool:
    """
    ## Where the plain formula stays

    Return whether to use a gradient written by hand. `torch.compile` fuses the plain formula itself. Function
    transforms (`torch.func.vmap`, `grad`, `jvp` and others) and forward-mode differentiation, where an input
    has a *tangent*, rewrite the operations of a formula, which does not work with operations in place. In all
    of these the layers below compute the plain formula.
    """
    if torch.compiler.is_compiling():
        return False
    # PyTorch has no public name for this. In a version without the private one, the plain formula stays.
    transformed = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
    tangents = (forward_ad.unpack_dual(x).tangent for x in inputs)
    return not transformed() and all(tangent is None for tangent in tangents)


class SquaredReLUFunction(torch.autograd.Function):
    r"""
    ## The squared ReLU's gradient by hand

    $$\frac{dy}{dx} = 2\max(x, 0)$$

    Forward and backward together, `F.relu(x).square()` goes over all features six times, and each time needs
    new memory. The version by hand goes over them five times, but needs new memory only twice, and otherwise
    works in place. PyTorch can differentiate this gradient, so second derivatives work too.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return F.relu(x).square_()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,), (grad,) = ctx.saved_tensors, gradients
        # The gradient of ReLU, which at zero is zero, times $2x$.
        slope: Tensor = torch.ops.aten.threshold_backward(grad, x, 0.0)
        return slope.mul_(x).mul_(2)


class FasterSquaredReLU(SquaredReLU):
    """
    ## Squared ReLU, faster

    {py:class}`~labml_primer.primer.primer_ez.SquaredReLU` with the gradient above. Where gradients are
    off, as in {term}`inference`, none is prepared.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return F.relu(x).square_()
        return SquaredReLUFunction.apply(x) if by_hand(x) else super().forward(x)


class CausalSum(torch.autograd.Function):
    r"""
    ## The convolution's gradients by hand

    The convolution of `x` `[batch, seq, heads, d_k]` with `weight` `[kernel_size, heads, d_k]` is a sum of
    shifted products. Its gradients, with $L$ for the loss and $j$ for the number of positions that a term
    looks back, are added up in place:

    $$\begin{aligned}
      \frac{dL}{dx_t} &= \sum_{j} w_{K-1-j}\; \frac{dL}{dy_{t+j}} \\
      \frac{dL}{dw_{K-1-j}} &= \sum_t x_{t-j}\; \frac{dL}{dy_t}
    \end{aligned}$$
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return causal_sum(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (x, weight), (grad,) = ctx.saved_tensors, gradients
        current, *earlier = reversed(weight.unbind())
        grad_x = grad * current
        # `vecdot` sums the products along the sequence without storing them. `sum_to_size` adds up the
        # gradients of the batch, and those of heads or channels that share a kernel.
        grad_weight = [vecdot(grad, x, dim=1).sum_to_size(current.shape)]
        for back, w in enumerate(earlier, start=1):
            later = grad[:, back:]
            grad_x[:, :-back].addcmul_(later, w)
            grad_weight.append(vecdot(later, x[:, :-back], dim=1).sum_to_size(w.shape))
        return grad_x, torch.stack(grad_weight[::-1])


def causal_sum(x: Tensor, weight: Tensor) -> Tensor:
    """
    ## The sum itself

    Compute the same as {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution`, with product
    and sum in one pass.
    """
    current, *earlier = reversed(weight.unbind())
    y = x * current
    for back, w in enumerate(earlier, start=1):
        y[:, back:].addcmul_(x[:, :-back], w)
    return y


def convolved(x: Tensor, weight: Tensor) -> Tensor:
    """Return the sum, prepared for the gradients above if they are wanted."""
    hand = torch.is_grad_enabled() and by_hand(x, weight)
    return CausalSum.apply(x, weight) if hand else causal_sum(x, weight)


class FasterConvolution(SpatialDepthWiseConvolution):
    """
    ## The convolution, faster

    {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution` with the gradients above. It also
    adds the bias that some {doc}`variations` have.
    """

    def forward(self, x: Tensor) -> Tensor:
        # Under `torch.autocast`, `x` may have a narrower type than the kernel.
        weight = self.weight.to(x.dtype)
        plain = torch.is_grad_enabled() and not by_hand(x, weight)
        y = super().forward(x) if plain else convolved(x, weight)
        bias: Tensor | None = getattr(self, "bias", None)
        return y if bias is None else y + bias.to(y.dtype)


class MergedConvolution(nn.Module):
    """
    ## Three convolutions in one

    Compute the convolutions of queries, keys and values, stacked `[batch, seq, 3, heads, d_k]`, with their
    kernels stacked alike. Channels are independent, so the result is the same. The parameters remain those of
    the three convolutions.
    """

    def __init__(self, kernel_size: int):
        super().__init__()
        self.kernel_size = kernel_size

    def forward(self, x: Tensor, *convolutions: Any) -> Tensor:
        kernels = [conv.weight for conv in convolutions]
        weight = torch.stack(kernels, dim=1).to(x.dtype)  # [kernel_size, 3, heads, d_k]
        y = convolved(x, weight)
        if hasattr(convolutions[0], "bias"):
            y = y + torch.stack([conv.bias for conv in convolutions]).to(y.dtype)
        return y


def can_merge(*convolutions: nn.Module) -> bool:
    """
    ## What can be merged

    Three convolutions can be merged if their kernels have the same shape, and all a bias or none. If an
    experiment has replaced one by something else, each computes for itself. They also do if one has a hook or
    a `forward` of its own, because these expect a call each. (Hooks of PyTorch for all modules see the merged
    convolution as a module.)

    A module has dictionaries of its parameters, buffers, children and hooks. Here all but the first should be
    empty.
    """
    if not all(isinstance(conv, FasterConvolution) for conv in convolutions):
        return False
    kinds = []
    for conv in convolutions:
        full = [x for x in vars(conv).values() if isinstance(x, dict) and x]
        if len(full) != 1 or "forward" in vars(conv):
            return False
        shapes = {name: kernel.shape for name, kernel in full[0].items()}
        kinds.append((type(conv), shapes))
    return kinds.count(kinds[0]) == len(kinds)


class FasterMultiDConvHeadAttention(MultiDConvHeadAttention):
    """
    ## Attention with merged convolutions

    When a model generates text, each operation has little to compute, so the number of operations determines
    the time. In evaluation mode, one convolution therefore replaces three. In training three are faster,
    because concatenating queries, keys and values takes another pass over memory.
    """

    merged: MergedConvolution

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        three = self.query_conv, self.key_conv, self.value_conv
        # In cross-attention `x` and `y` may differ in length, so they cannot be concatenated.
        if self.training or x is not y or not can_merge(*three):
            return super().project(x, y)
        projected = torch.stack(MultiHeadAttention.project(self, x, y), dim=2)
        query, key, value = self.merged(projected, *three).unbind(dim=2)
        return query, key, value


FASTER_FORMS: dict[type[nn.Module], type[nn.Module]] = {
    SquaredReLU: FasterSquaredReLU,
    SpatialDepthWiseConvolution: FasterConvolution,
    BiasedConvolution: FasterConvolution,
    SpatialDepthWiseSharedConvolution: FasterConvolution,
    SpatialDepthWisePerHeadConvolution: FasterConvolution,
}
MERGEABLE: tuple[type[nn.Module], ...] = (
    MultiDConvHeadAttention,
    MultiDConvSharedByHeadsAttention,
    MultiDSharedConvHeadAttention,
    MultiDPHConvHeadAttention,
    FasterMultiDConvHeadAttention,
)


def methods_of(kind: type) -> tuple[object, object]:
    """Return the methods of a class that a faster form has otherwise."""
    return getattr(kind, "forward", None), getattr(kind, "project", None)


METHODS = {kind: methods_of(kind) for kind in (*FASTER_FORMS, *MERGEABLE)}
"""Those that the faster forms compute. A class may get others later."""


def faster(model: Model) -> Model:
    """
    ## One call

    Swap the faster versions into `model`, in place, and return it. (If `model` is itself a layer that has a
    faster version, that is returned.) A faster version shares everything with the layer that it replaces:
    parameters and their names, hooks, buffers. So a state dict saved before the swap can be loaded after it,
    and vice versa. Outputs and gradients agree up to rounding, because a product that is added in the same
    operation is not rounded by itself.

    Only layers of exactly these classes are replaced. A subclass may compute something else, so it stays as
    it is. So does a layer with a parametrization, such as weight normalization, or with a method, such as
    `forward`, that was replaced on this one object or on its class.
    """
    return cast(Model, swap_layers(swap_layers(model, faster_form), merged_form))


def swap_layers(model: nn.Module, form: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """Replace each layer of `model`, and `model` itself, by what `form` returns for it."""
    forms = {layer: form(layer) for layer in model.modules()}
    for layer in forms.values():
        for name, part in list(layer.named_children()):
            if forms[part] is not part:
                setattr(layer, name, forms[part])
    return forms[model]


def faster_form(layer: nn.Module) -> nn.Module:
    """Return the faster version of `layer`, or `layer` itself if there is none."""
    kind = FASTER_FORMS.get(type(layer))
    return layer if kind is None or is_changed(layer) else twin(layer, kind)


def is_changed(layer: nn.Module) -> bool:
    """Return whether a method was replaced, on this layer or on its class."""
    kind = type(layer)
    return bool(replaced_method(layer)) or methods_of(kind) != METHODS[kind]


def merged_form(layer: nn.Module) -> nn.Module:
    """Return attention whose convolutions can be merged in a version that does so."""
    if type(layer) not in MERGEABLE or is_changed(layer):
        return layer
    attention = cast(MultiDConvHeadAttention, layer)
    three = attention.query_conv, attention.key_conv, attention.value_conv
    if not all(type(convolution) is FasterConvolution for convolution in three):
        return layer
    merged = twin(attention, FasterMultiDConvHeadAttention)
    merged.merged = MergedConvolution(three[0].kernel_size)
    return merged


def twin(layer: nn.Module, kind: type[Model]) -> Model:
    """Return a layer of class `kind` with all attributes of `layer`: the same, not copies."""
    made = kind.__new__(kind)
    vars(made).update(vars(layer))
    return made


if __name__ == "__main__":
    # ## The same, and faster
    #
    # Swap the faster versions into a copy of a Primer-EZ. Both have the same state dict keys, and their
    # outputs and gradients agree up to rounding.
    from copy import deepcopy

    torch.manual_seed(0)
    config = replace(primer_ez, layers=4)
    plain = LanguageModel(config)
    swapped = faster(deepcopy(plain))
    assert swapped.state_dict().keys() == plain.state_dict().keys()
    tokens = torch.randint(256, (4, 128))
    for model in (plain, swapped):
        step(model, tokens)
    with torch.no_grad():
        print(f"outputs differ by {(plain(tokens) - swapped(tokens)).abs().max():.1e}")
    largest = max(
        (a.grad - b.grad).abs().max().item() / a.grad.abs().max().item()
        for a, b in zip(plain.parameters(), swapped.parameters(), strict=True)
        if a.grad is not None and b.grad is not None
    )
    print(f"gradients differ by {largest:.1e} of the largest")
    # {doc}`/benchmarks/speed` has the times of a training step, plain and faster, for three widths and three
    # lengths, with and without `torch.compile`.


if __name__ == "__main__":
    # ## In short
    #
    # - The cost of an elementwise operation is memory traffic, so a short formula can take longer than its
    #   arithmetic suggests.
    # - Gradients written by hand reuse memory and save part of that time. `torch.compile` fuses such
    #   operations itself.
    # - One call swaps in the faster versions: same parameters, same outputs, same gradients.
    #
    # ## Exercise
    #
    # :::{exercise} How many tensors?
    # PyTorch keeps tensors of the forward pass for the backward pass. How many does `F.relu(x).square()`
    # keep, and how many does the version by hand keep?
    # :::
    # :::{solution}
    # One each. The ReLU keeps its result, which shows where its slope is zero, and the square keeps its
    # input, which is the same tensor. The version by hand keeps `x`. So it saves time, but keeps as much.
    # :::
    def kept(activation: nn.Module) -> int:
        places: set[int] = set()

        def note(tensor: Tensor) -> Tensor:
            places.add(tensor.data_ptr())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            activation(torch.randn(1000, requires_grad=True))
        return len(places)

    for name, activation in (
        ("plain", SquaredReLU()),
        ("by hand", FasterSquaredReLU()),
    ):
        print(f"{name:8s} keeps {kept(activation)}")
    assert kept(SquaredReLU()) == kept(FasterSquaredReLU()) == 1

    # :::{exercise} Write it: the gradient of the square
    # Write the backward pass of the squared ReLU: `x` is the input, `upstream` the gradient of its output.
    # Return the gradient of `x`.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def backward(x: Tensor, upstream: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    points, unit = torch.tensor([-2.0, 0.0, 3.0]), torch.ones(3)
    cases: list[Case] = [
        ((points, unit), [0.0, 0.0, 6.0], "the slope of max(x, 0)² is 2 max(x, 0)"),
        (
            (torch.tensor([-2.0, 1.0, 3.0]), torch.tensor([5.0, -2.0, 1.0])),
            [0.0, -4.0, 6.0],
            "the chain rule multiplies each slope by its own upstream gradient",
        ),
    ]
    check_answer(backward, cases)

    # :::{solution}
    # $\tfrac{dy}{dx} = 2\max(x, 0)$, times the gradient of the output.
    # :::
    def solved(x: Tensor, upstream: Tensor) -> Tensor:
        return 2 * F.relu(x) * upstream

    assert check_answer(solved, cases)

    # When a text is generated, each step has even less to compute: {doc}`compiled_generation`.
