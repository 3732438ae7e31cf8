r"""
# The same, faster

Two gradients written by hand, and three convolutions merged into one. One call swaps them into a finished
model. For generating text, a step that can be compiled once.

The squared ReLU and the convolution of {doc}`primer_ez` compute very little, yet they make a training step
longer. Where does the time go, and how much of it can be saved without changing the model?

In short: the time of an *elementwise* operation, one that treats each number separately, depends on the
memory it reads and writes, not on its arithmetic. PyTorch's automatic differentiation makes a separate pass
over memory for every step of a formula, mostly into new memory. A gradient written by hand reuses memory.
{py:func}`~labml_primer.primer.faster.faster` swaps such versions into any model of this book and keeps its
parameters, outputs and gradients. With {term}`torch.compile` they are not needed, because it fuses such
operations itself, so most of this chapter is about {term}`eager mode`. Its last section makes
{term}`inference` with a {term}`KV cache` ready for `torch.compile`.

:::{picture} faster
:::

Source: our own measurements; {doc}`/benchmarks/speed` has them for several sizes, next to other libraries.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch._C._functorch import is_batchedtensor, is_legacy_batchedtensor
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
from labml_primer.transformer.cache_check import LENGTHS, check_cache
from labml_primer.transformer.generation import (
    check_prompt,
    generate_cached,
    sample_token,
    share_weights,
)

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


def by_hand() -> bool:
    """
    ## Where the plain formula stays

    Return whether to use a gradient written by hand. `torch.compile` fuses the plain formula itself. Function
    transforms (`torch.func.vmap`, `grad`, `jvp` and others) and forward-mode differentiation rewrite the
    operations of a formula, which does not work with operations in place. In all of these the layers below
    compute the plain formula.
    """
    transformed = torch._C._are_functorch_transforms_active()
    forward_mode = forward_ad._current_level >= 0
    return not (torch.compiler.is_compiling() or transformed or forward_mode)


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
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope = F.threshold(x, 0.0, 0.0)  # like ReLU, its own slope at zero is zero
        # Gradients of many outputs at once (`is_grads_batched`) need more memory than the slope has.
        if is_batchedtensor(grad) or is_legacy_batchedtensor(grad):
            return 2 * slope * grad
        return slope.mul_(grad).mul_(2)


class FasterSquaredReLU(SquaredReLU):
    """
    ## Squared ReLU, faster

    {py:class}`~labml_primer.primer.primer_ez.SquaredReLU` with the gradient above.
    """

    def forward(self, x: Tensor) -> Tensor:
        return SquaredReLUFunction.apply(x) if by_hand() else super().forward(x)


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
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
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


class FasterConvolution(SpatialDepthWiseConvolution):
    """
    ## The convolution, faster

    {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution` with the gradients above. It also
    adds the bias that some {doc}`variations` have.
    """

    def forward(self, x: Tensor) -> Tensor:
        # Under `torch.autocast`, `x` may have a narrower type than the kernel.
        weight = self.weight.to(x.dtype)
        y = CausalSum.apply(x, weight) if by_hand() else super().forward(x)
        bias: Tensor | None = getattr(self, "bias", None)
        return y if bias is None else y + bias.to(y.dtype)


class MergedConvolution(nn.Module):
    """
    ## Three convolutions in one

    Concatenate the kernels of queries, keys and values, for inputs `[batch, seq, 3 * heads, d_k]`. Channels
    are independent, so the result is the same. The parameters remain those of the three convolutions.
    """

    def __init__(
        self, convolutions: list[SpatialDepthWiseConvolution], size: torch.Size
    ):
        super().__init__()
        self.causal_window = convolutions[0].causal_window
        self.convolutions = convolutions  # a list, so they are not registered twice
        self.size = size  # [heads, d_k], for kernels that heads or channels share

    def replaces(self, *convolutions: SpatialDepthWiseConvolution) -> bool:
        """Return whether these are the three as they were, without hooks, which expect a call each."""
        return all(
            type(now) is type(then)
            and now.weight is then.weight
            and getattr(now, "bias", None) is getattr(then, "bias", None)
            and not has_hooks(now)
            for now, then in zip(convolutions, self.convolutions, strict=True)
        )

    def joined(self, name: str) -> Tensor:
        """Return a parameter of all three, `[..., 3 * heads, d_k]`."""
        parameters = [getattr(conv, name) for conv in self.convolutions]
        return torch.cat([p.expand(*p.shape[:-2], *self.size) for p in parameters], -2)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.joined("weight").to(x.dtype)
        y = CausalSum.apply(x, weight) if by_hand() else causal_sum(x, weight)
        if hasattr(self.convolutions[0], "bias"):
            y = y + self.joined("bias").to(y.dtype)
        return y


def has_hooks(layer: nn.Module) -> bool:
    """Return whether something is to be called before, after or instead of `layer`, other than a cache."""
    instead = vars(vars(layer).get("_uncached", layer)).get("forward")
    if instead is not None and not hasattr(instead, "cached"):
        return True
    forward = layer._forward_pre_hooks or layer._forward_hooks
    backward = layer._backward_pre_hooks or layer._backward_hooks
    return bool(forward or backward or nn.modules.module._has_any_global_hook())


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
        merge = not self.training and x is y and self.merged.replaces(*three)
        # A copy with a cache ({py:func}`~labml_primer.transformer.generation.share_weights`) reads one text.
        # Its convolutions keep the last inputs of that text, so all of it goes through the same ones.
        if "_uncached" in vars(self):
            merge = vars(self).setdefault("_merge", merge)
        if not merge:
            return super().project(x, y)
        projected = torch.cat(MultiHeadAttention.project(self, x, y), dim=2)
        query, key, value = self.merged(projected).chunk(3, dim=2)
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


def faster(model: Model) -> Model:
    """
    ## One call

    Swap the faster versions into `model`, in place, and return it. (If `model` is itself a layer that has a
    faster version, that is returned.) A faster version shares everything with the layer that it replaces:
    parameters and their names, hooks, buffers. So a state dict saved before the swap can be loaded after it,
    and vice versa. Outputs and gradients agree up to rounding, because a product that is added in the same
    operation is not rounded by itself.

    Only layers of exactly these classes are replaced. A subclass may compute something else, so it stays as
    it is. So does a layer with a parametrization, such as weight normalization, or with a `forward` of its
    own.
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


def merged_form(layer: nn.Module) -> nn.Module:
    """
    ## What can be merged

    The three convolutions of a layer can be merged if they have the same kernel size, and all a bias or none.
    If an experiment has replaced one by something else, the layer stays as it is.
    """
    if type(layer) not in MERGEABLE or is_changed(layer):
        return layer
    attention = cast(MultiDConvHeadAttention, layer)
    convolutions = [attention.query_conv, attention.key_conv, attention.value_conv]
    kinds = {
        (type(c), getattr(c, "kernel_size", 0), hasattr(c, "bias"))
        for c in convolutions
    }
    if len(kinds) > 1 or type(convolutions[0]) is not FasterConvolution:
        return layer
    size = torch.Size((attention.heads, attention.d_k))
    merged = twin(attention, FasterMultiDConvHeadAttention)
    merged.merged = MergedConvolution(convolutions, size)
    return merged


def is_changed(layer: nn.Module) -> bool:
    """Return whether this one layer has a method of its own, in place of that of its class."""
    return not {"forward", "project"}.isdisjoint(vars(layer))


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


class Text:
    """
    ## Generating text, compiled

    `torch.compile` helps most when each operation computes little, as when a model generates a text. But a
    {term}`KV cache` grows by a token per step, so each step has tensors of another size, and would be
    compiled again.

    A cache of *fixed length* has room for the whole text from the start. A tensor counts the tokens read so
    far, and a mask hides the places that are still empty. So all steps are the same computation with other
    numbers. As in {doc}`../transformer/generation`, the cache is attached to a copy of the model. The layers
    of a copy share a `Text`, which has the count.
    """

    def __init__(self, length: int, device: torch.device):
        self.length = length
        self.tokens = torch.zeros((), dtype=torch.long, device=device)

    def positions(self, new: Tensor) -> Tensor:
        """Return the positions of new tokens `[batch, seq, ...]`."""
        return self.tokens + torch.arange(new.size(1), device=new.device)

    def write(self, new: Tensor, places: Tensor | None) -> Tensor:
        """Write `new` `[batch, seq, ...]` at its positions in `places` `[batch, length, ...]`."""
        if places is None:
            places = new.new_zeros(new.size(0), self.length, *new.shape[2:])
        return places.index_copy_(1, self.positions(new), new)


def fix_keys_and_values(layer: Any, text: Text) -> None:
    """
    ### Attention

    Write keys and values at the positions of their tokens, and hide all later places from each query. Other
    than causal self-attention raises `TypeError`.
    """
    project, forward = layer.project, layer.forward
    keys: Tensor | None = None
    values: Tensor | None = None

    def project_new(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        nonlocal keys, values
        query, key, value = project(x, y)
        keys, values = text.write(key, keys), text.write(value, values)
        return query, keys, values

    def forward_new(
        x: Tensor, y: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        if x is not y or mask is not None or not causal:
            raise TypeError("a cache of fixed length is for causal self-attention")
        places = torch.arange(text.length, device=x.device)
        visible = places <= text.positions(x)[:, None]  # [queries, length]
        output: Tensor = forward(x, y, visible)
        return output

    layer.project, layer.forward = project_new, forward_new


def fix_window(layer: Any) -> None:
    """
    ### Convolutions

    Keep the last inputs of a convolution in one tensor.
    """
    back, forward = layer.causal_window - 1, layer.forward
    window: Tensor | None = None

    def forward_new(x: Tensor) -> Tensor:
        nonlocal window
        if window is None:
            window = x.new_zeros(x.size(0), back, *x.shape[2:])
        x = torch.cat([window, x], dim=1)
        window.copy_(x[:, x.size(1) - back :])
        y: Tensor = forward(x)
        return y[:, back:]

    layer.forward = forward_new


def fix_positions(layer: Any, text: Text) -> None:
    """
    ### Positions

    Look up the encodings of the new tokens' positions.
    """

    def forward_new(x: Tensor) -> Tensor:
        y: Tensor = layer.dropout(x + layer.encoding[text.positions(x)])
        return y

    layer.forward = forward_new


def add_fixed_caches(model: nn.Module, text: Text) -> Any:
    """
    ### Which layers?

    Attach a cache of fixed length to each layer of `model` that depends on past tokens, in place, and return
    the model. Layers are known by what they declare, as in
    {py:func}`~labml_primer.transformer.generation.add_caches`. `tokens_before` becomes a tensor.
    """
    for layer in model.modules():
        if hasattr(type(layer), "project") and hasattr(layer, "d_k"):
            fix_keys_and_values(layer, text)
        elif isinstance(getattr(layer, "encoding", None), Tensor):
            fix_positions(layer, text)
        elif hasattr(layer, "tokens_before"):
            layer.tokens_before = text.tokens
        elif hasattr(layer, "causal_window"):
            fix_window(layer)
    forward = model.forward

    def forward_new(new: Tensor) -> Tensor:
        output: Tensor = forward(new)
        text.tokens += new.size(1)
        return output

    vars(model)["forward"] = forward_new
    return model


def last_logits(model: nn.Module, new: Tensor) -> Tensor:
    """Return the logits after the last of the new tokens `[batch, seq]`."""
    logits: Tensor = model(new)
    return logits[:, -1]


@cache
def compiled() -> Callable[[nn.Module, Tensor], Tensor]:
    """Return `last_logits`, compiled for each model at its first call."""
    return torch.compile(last_logits)


def check_fixed(model: nn.Module, tokens: Tensor) -> None:
    """
    ### Does it know every layer?

    Raise `TypeError` if a cache of fixed length changes what `model` computes
    ({py:func}`~labml_primer.transformer.generation.check`).
    """
    plain, fixed = (share_weights(model, training=False) for _ in range(2))
    text = Text(max(*LENGTHS, plain.config.max_seq), tokens.device)
    check_cache(plain, add_fixed_caches(fixed, text), (tokens,), {})


@torch.no_grad()
def generate_compiled(
    model: nn.Module, tokens: Tensor, max_new_tokens: int, **settings: Any
) -> Tensor:
    """
    ### The loop

    Do the same as {py:func}`~labml_primer.transformer.generation.generate`, in compiled steps. The first one
    takes as long as its compilation, half a minute or so; later texts of the same model, or of one of the
    same shape, use what was compiled. The prompt is read without compilation, because its length differs from
    text to text. So is what exceeds `max_seq`.

    Raises `TypeError` for layers that cannot be cached at fixed length, such as
    {py:class}`~labml_primer.since.rotary.BucketBias`. On a CPU, `torch.compile` needs a C++ compiler.
    """
    check_prompt(tokens, max_new_tokens)
    end = tokens.size(1) + max_new_tokens
    plain = share_weights(model, training=False)
    max_seq = plain.config.max_seq
    if tokens.size(1) < min(max_seq, end - 1):
        check_fixed(plain, tokens)
        text = Text(max_seq, tokens.device)
        fixed = add_fixed_caches(share_weights(plain), text)
        logits = last_logits(fixed, tokens)
        while True:
            new = sample_token(logits, **settings)[:, None]
            tokens = torch.cat([tokens, new], dim=1)
            if tokens.size(1) == min(end, max_seq + 1):
                break
            logits = compiled()(fixed, new)
    rest = end - tokens.size(1)
    return generate_cached(model, tokens, rest, **settings)


if __name__ == "__main__":
    # ### The same logits
    #
    # A Primer-EZ reads a text in pieces with a cache of fixed length, which has room for twice as many
    # tokens, and then as a whole without a cache.
    model = LanguageModel(config).double().eval()
    tokens = torch.randint(256, (2, 20))
    fixed = add_fixed_caches(share_weights(model), Text(40, tokens.device))
    with torch.no_grad():
        pieces = [fixed(piece) for piece in tokens.split([5, 1, 1, 13], dim=1)]
        difference = (torch.cat(pieces, dim=1) - model(tokens)).abs().max()
    print(f"largest difference {difference:.0e}")
    # {doc}`/benchmarks/speed` has the tokens per second, eager and compiled.


if __name__ == "__main__":
    # ## In short
    #
    # - The cost of an elementwise operation is memory traffic, so a short formula can make a step several
    #   percent longer.
    # - Gradients written by hand reuse memory and save part of that time. `torch.compile` fuses such
    #   operations itself.
    # - One call swaps in the faster versions: same parameters, same outputs, same gradients.
    # - With a KV cache of fixed length, all steps of generation are the same computation, which is compiled
    #   once.
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

    # How were Primer's changes found? The next part takes the search apart, and begins with its operations:
    # {doc}`/labml_primer/search/primitives`.
