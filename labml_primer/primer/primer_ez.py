r"""
# Primer-EZ

The two changes to the Transformer that a search among programs found most worth making: square the
ReLU, and let queries, keys and values look two steps back.

Suppose you may change two lines of a Transformer. Which two? {cite:t}`so2021primer` let a search
answer: it rewrote the program of a language model again and again, and kept what learned most in a
fixed time. The model that won, Primer, differs from its ancestor in many places. Most of the gain
comes from two of them, and a Transformer with those two alone is Primer-EZ.

The first is in the feed-forward block, where the activation is squared:

$$y = \max(x, 0)^2$$

The second is in attention. Behind the projections to queries, keys and values stands a convolution
along the sequence, three wide, which sees no future, each channel by itself:

$$y_t = w_0\,x_{t-2} + w_1\,x_{t-1} + w_2\,x_t + b$$

Both make a step slower. The claim is that so many fewer steps are needed that less is computed in
all. At the end of this chapter a Transformer and a Primer-EZ race each other.

Source: {cite:t}`so2021primer`, sections 3 and 4; the annotated walk-through of
{cite:t}`jayasiri2020annotated`.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vecdot
from torch.nn import functional as F

from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.generation import Past
from labml_primer.transformer.model import Config, LanguageModel


class SquaredReLU(nn.Module):
    r"""
    ## Squared ReLU

    $$\operatorname{SquaredReLU}(x) = \max(x, 0)^2$$

    A stand-in for the ReLU between the two linear maps of the feed-forward block, of any shape. There
    is nothing to learn in it. The paper calls it the most effective of Primer's changes (section 3).

    :::{variant} labml_primer.transformer.feed_forward.PositionwiseFeedForward
    :with: activation=SquaredReLU
    :cost: added_cost(blocks["ReLU"], blocks["squared ReLU"], inputs)
    :::
    """

    def forward(self, x: Tensor) -> Tensor:
        # Where no gradient is wanted, as while a text is written, there is nothing to do by hand.
        if not torch.is_grad_enabled():
            return F.relu(x).square_()
        y: Tensor = SquaredReLUFunction.apply(x)
        return y


class SquaredReLUFunction(torch.autograd.Function):
    r"""
    ## Its gradient, by hand

    $$\frac{dy}{dx} = 2\max(x, 0)$$

    `F.relu(x).square()` gives the same numbers, and PyTorch finds its gradient alone, in several steps.
    Each of them walks through all `d_ff` features of all tokens, and fills new memory. Written by hand there
    are fewer walks, and they stay in one place. The gradient is made of operations that PyTorch knows, so
    it has a gradient too.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        # What the ReLU returns is new and nobody else's, so it can be squared where it lies.
        return F.relu(x).square_()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return x.clamp(min=0).mul_(grad).mul_(2)


if __name__ == "__main__":
    # ## What the square changes
    #
    # Beside the usual activations, as in the paper's Figure 5. At the left, near zero: the squared ReLU
    # leaves it as flat as it came, as its slope $2\max(x, 0)$ has no jump. At the right, far out, with
    # both axes logarithmic: the others are all the line $y = x$ in the end, and the squared ReLU climbs
    # twice as steeply. Twice the input is four times the output.
    import matplotlib.pyplot as plt

    activations: dict[str, tuple[nn.Module, str]] = {
        "ReLU": (nn.ReLU(), "C5"),
        "GELU": (nn.GELU(), "C1"),
        "Swish": (nn.SiLU(), "C2"),
        "squared ReLU": (SquaredReLU(), "C0"),
    }
    fig, (near, far) = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
    x_near, x_far = torch.linspace(-2, 2, 201), torch.logspace(0, 2, 50)
    for name, (activation, color) in activations.items():
        near.plot(x_near, activation(x_near), color=color, label=name)
        far.loglog(x_far, activation(x_far), color=color)
    near.set(xlabel="x", ylabel="y")
    near.legend(frameon=False)
    far.set(xlabel="x", ylabel="y")
    far.annotate("squared ReLU", (12, 300), ha="right", color="C0")
    far.annotate("ReLU, GELU, Swish", (8, 1.5), color="C5")
    plt.show()
    # ### It is a gate that opens itself
    #
    # Gated units multiply two projections of the same input; ReGLU {cite:p}`shazeer2020glu` is
    # $xU \odot \max(xV, 0)$. With $U = V$ the gate and what it lets through are one, and as
    # $u \cdot \max(u, 0) = \max(u, 0)^2$, what is left is the squared ReLU, without the second matrix.
    torch.manual_seed(0)
    x, u = torch.randn(16, 64), torch.randn(64, 256) / 8
    reglu = (x @ u) * F.relu(x @ u)
    difference = (reglu - SquaredReLU()(x @ u)).abs().max()
    print(f"largest difference from ReGLU with U = V: {difference:.1e}")
    # ### What it costs
    #
    # One more product for each hidden feature, and one more tensor kept for the way back: the square
    # needs what it squared, and the linear map behind it needs the square. Here for a feed-forward block
    # of width 128 on 2048 tokens, with the gradient by hand and as PyTorch finds it. In a wider model the
    # share of the time is less: the two matrix products grow with the square of the width, the activation
    # only in line with it.
    from labml_primer.training import median_seconds

    inputs = torch.randn(2048, 128)

    class PlainlySquaredReLU(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.relu(x).square()

    blocks = {
        name: nn.Sequential(nn.Linear(128, 512), activation, nn.Linear(512, 128))
        for name, activation in (
            ("ReLU", nn.ReLU()),
            ("squared ReLU", SquaredReLU()),
            ("not by hand", PlainlySquaredReLU()),
        )
    }

    def hidden_tensors_kept(block: nn.Module) -> int:
        sizes: dict[int, int] = {}

        def note(tensor: Tensor) -> Tensor:
            sizes[tensor.data_ptr()] = tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            block(inputs)
        return sum(size == 2048 * 512 for size in sizes.values())

    def there_and_back(block: nn.Module) -> None:
        block(inputs).sum().backward()

    taken = median_seconds(
        {name: partial(there_and_back, block) for name, block in blocks.items()}
    )
    for name, block in blocks.items():
        print(
            f"{name:12s} {1e3 * taken[name]:5.1f} ms there and back, "
            f"{hidden_tensors_kept(block)} x [batch, seq, d_ff] kept"
        )


class SpatialDepthWiseConvolution(nn.Module):
    r"""
    ## A causal convolution for each channel

    Each channel $c$ of a head has a kernel of its own, `kernel_size` long, that runs along the
    sequence and never looks ahead. All heads use the same `d_k` kernels:

    $$y_{t,h,c} = b_c + \sum_{i=0}^{K-1} w_{i,c}\; x_{t-(K-1)+i,\,h,\,c}$$

    In the code `weight` and `bias` are $w$ and $b$, and `kernel_size` is $K$. The last weight, $w_{K-1}$, is
    for the current token. Before the beginning there are zeros. The
    paper calls it *spatial*, as positions are its space, and *depth-wise*, as no channel sees
    another; the projection before it has already mixed them.

    :::{deviation} the walk-through of Primer-EZ
    Its tensors are sequence-first, `[seq, batch, heads, d_k]`. Here, as in the whole book, the batch
    comes first: `[batch, seq, heads, d_k]`. A test holds the two to the same numbers.
    :::

    Raises `ValueError` where `kernel_size` is below one. Source: the walk-through's main class.
    """

    def __init__(self, d_k: int, kernel_size: int = 3):
        super().__init__()
        if kernel_size < 1:
            raise ValueError(f"kernel_size {kernel_size} is below 1")
        self.kernel_size = kernel_size
        # The walk-through leaves the start to PyTorch: uniform up to $1/\sqrt{K}$, as each output has
        # $K$ inputs. So a fresh layer mixes three tokens at random.
        #
        # :::{deviation} the paper's released code
        # In `causal_depthwise_conv` (google-research, `primer/t5_models.py`) **each head has kernels
        # of its own**, there is no bias, and a layer starts by looking mostly at the current token:
        # its weight is 0.5, that of each earlier one 0.5/3. For such kernels see
        # {py:class}`~labml_primer.primer.variations.SpatialDepthWisePerHeadConvolution`.
        # :::
        bound = 1 / math.sqrt(kernel_size)
        self.weight = nn.Parameter(
            torch.empty(kernel_size, d_k).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.empty(d_k).uniform_(-bound, bound))

    def forward(self, x: Tensor, past: Past | None = None) -> Tensor:
        """
        `[batch, seq, heads, d_k]` to the same shape, for any `seq`, shorter than the kernel too. With a
        `past`, `x` goes on where the last call ended: see {doc}`../transformer/generation`.
        """
        # Under `torch.autocast`, `x` may come in a narrower type than the kernel has.
        weight = self.weight.to(x.dtype)
        if past is None and not torch.compiler.is_compiling():
            y = CausalSum.apply(x, weight)
        else:
            # The formula as it stands, a shift of the whole tensor for each term. Zeros before the
            # beginning and none behind the end: this alone makes it causal. It serves where a text goes
            # on, and under `torch.compile`, which fuses such a sum by itself.
            before = self.kernel_size - 1
            zeros = (0, 0, 0, 0, before, 0)
            padded = F.pad(x, zeros) if past is None else past.last(self, x, before)
            y = padded[:, : x.size(1)] * weight[0]
            for i in range(1, self.kernel_size):
                y = torch.addcmul(y, padded[:, i : i + x.size(1)], weight[i])
        return y if self.bias is None else y + self.bias.to(x.dtype)


class CausalSum(torch.autograd.Function):
    r"""
    ## The sum, and its gradients, by hand

    The formula without its bias, for `x` `[batch, seq, ...]` and `weight` `[kernel_size, ...]`. With three
    multiplications an element, moving the data is most of the work: what counts is how often the whole
    tensor is walked through. Without a padded copy, and with the gradients of all terms added in one place,
    few walks are left:

    $$\begin{aligned}
      \frac{dL}{dx_t} &= \sum_{j} w_{K-1-j}\; \frac{dL}{dy_{t+j}} \\
      \frac{dL}{dw_{K-1-j}} &= \sum_t x_{t-j}\; \frac{dL}{dy_t}
    \end{aligned}$$

    Here $j$ counts how far back a term looks. A test holds this to the plain sum. The gradients are made of
    operations that PyTorch knows, so they have gradients too.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        # The token itself, for every position. Then those before it, for the positions that have them.
        here, *earlier = reversed(weight.unbind())
        y = x * here
        for back, w in enumerate(earlier, start=1):
            y[:, back:].addcmul_(x[:, :-back], w)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        here, *earlier = reversed(weight.unbind())
        grad_x = grad * here
        # `vecdot` sums products along the sequence as it makes them, and fills no memory with them.
        grad_weight = [vecdot(grad, x, dim=1).sum_to_size(here.shape)]
        for back, w in enumerate(earlier, start=1):
            later = grad[:, back:]
            grad_x[:, :-back].addcmul_(later, w)
            product = vecdot(later, x[:, :-back], dim=1)
            grad_weight.append(product.sum_to_size(w.shape))
        return grad_x, torch.stack(grad_weight[::-1])


if __name__ == "__main__":
    # ## What reaches what
    #
    # Nudge the token at position 5 and see which outputs move: its own and the two after it.
    torch.manual_seed(0)
    convolution = SpatialDepthWiseConvolution(d_k=32)
    x = torch.randn(1, 10, 4, 32)
    nudged = x.clone()
    nudged[:, 5] += 1.0
    moved = (convolution(nudged) - convolution(x)).abs().amax(dim=(0, 2, 3))
    print("outputs that moved:", moved.nonzero().flatten().tolist())
    # ### The same as `nn.Conv1d`
    #
    # PyTorch's convolution, with as many groups as channels, computes the same, and is what the
    # walk-through uses. It wants the sequence last, and pads both ends, so the last two outputs are
    # cropped. The shifts leave the data where it is.
    reference = nn.Conv1d(32, 32, kernel_size=3, padding=2, groups=32)
    reference.load_state_dict(
        {"weight": convolution.weight.T[:, None], "bias": convolution.bias}
    )

    def by_conv1d(x: Tensor) -> Tensor:
        batch, seq, heads, d_k = x.shape
        channels = x.permute(0, 2, 3, 1).reshape(batch * heads, d_k, seq)
        y = reference(channels)[:, :, :seq]
        return y.view(batch, heads, d_k, seq).permute(0, 3, 1, 2)

    x = torch.randn(16, 128, 4, 32, requires_grad=True)
    difference = (convolution(x) - by_conv1d(x)).abs().max()
    print(f"largest difference: {difference:.1e}")
    taken = median_seconds(
        {
            "by hand": lambda: convolution(x).sum().backward(),
            "nn.Conv1d": lambda: by_conv1d(x).sum().backward(),
        }
    )
    for name, seconds in taken.items():
        print(f"{name:9s} {1e3 * seconds:5.2f} ms there and back")


class MultiDConvHeadAttention(MultiHeadAttention):
    r"""
    ## Multi-DConv-head attention

    {py:class}`~labml_primer.transformer.attention.MultiHeadAttention` with a convolution behind each
    of its three projections, and nothing else changed. The pseudo-code of the paper's Figure 4 makes
    each head of queries, keys and values so: project to the head's size, then convolve along the
    sequence, three wide, with a causal mask.

    Now a key can stand for "a *t* and an *h* before me", and a query can ask for it. A plain head sees
    single tokens, and needs a layer below it to tell it of their neighbours.

    The order is the reverse of a separable convolution, which the paper found less effective
    (appendix A.6): first every channel is mixed at each position, then every position in each channel.

    :::{variant} MultiDConvHeadAttention
    :of: MultiHeadAttention
    :cost: added_cost(plain, layer, x, x)
    :::
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0):
        super().__init__(d_model, heads, dropout)
        self.query_conv = SpatialDepthWiseConvolution(self.d_k)
        self.key_conv = SpatialDepthWiseConvolution(self.d_k)
        self.value_conv = SpatialDepthWiseConvolution(self.d_k)

    def project(
        self, x: Tensor, y: Tensor, past: Past | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of `x`, keys and values of `y`, `[batch, seq, heads, d_k]`. With `past` equally long."""
        query, key, value = super().project(x, y)
        if past is not None:
            return self.goes_on(query, key, value, past)
        return (
            self.query_conv(query),
            self.key_conv(key),
            self.value_conv(value),
        )

    def goes_on(
        self, query: Tensor, key: Tensor, value: Tensor, past: Past
    ) -> tuple[Tensor, Tensor, Tensor]:
        """
        The three convolutions where a text goes on, a token at a time. That is little work in many calls, and
        the fewer the better. No channel sees another, so side by side the three are one.
        """
        weight, *bias = past.once(self, lambda: self.side_by_side(query.dtype))
        x = torch.cat([query, key, value], dim=2)
        width = weight.size(-1)
        padded = past.last(self, x, width - 1)
        # The sum of the formula once more, now as a product of each kernel with the last $K$ inputs.
        y = vecdot(padded.unfold(1, width, 1), weight)
        for b in bias:
            y = y + b
        query, key, value = y.chunk(3, dim=2)
        return query, key, value

    def side_by_side(self, dtype: torch.dtype) -> list[Tensor]:
        """Kernels `[3 * heads, d_k, kernel_size]`, and biases `[3 * heads, d_k]` where there are any."""
        # Kernels that heads share are repeated for each.
        convolutions = (self.query_conv, self.key_conv, self.value_conv)
        channels, split = self.heads * self.d_k, (self.heads, self.d_k)
        weight, *bias = (
            torch.cat(
                [p.tile(channels // p.size(-1)).unflatten(-1, split) for p in parts], -2
            ).to(dtype)
            for parts in zip(*(conv.parameters() for conv in convolutions), strict=True)
        )
        return [weight.movedim(0, -1).contiguous(), *bias]


if __name__ == "__main__":
    # ## How much is there to learn?
    #
    # At `d_model` 512 with 8 heads, the size of the first Transformer, for queries, keys and values
    # together: kernels and biases shared by the heads, as here, and kernels for each head without a
    # bias, as in the paper's released code. Either is nothing beside the four projections.
    layer = MultiDConvHeadAttention(d_model=512, heads=8)
    shared = sum(
        parameter.numel()
        for name, parameter in layer.named_parameters()
        if "conv" in name
    )
    per_head = 3 * layer.heads * layer.d_k * layer.query_conv.kernel_size
    whole = sum(parameter.numel() for parameter in layer.parameters())
    print(f"shared by the heads, with a bias: {shared:9,d}")
    print(f"for each head, without a bias:    {per_head:9,d}")
    print(f"the four projections:             {whole - shared:9,d}")
    # ### It can be what it was
    #
    # With the kernel (0, 0, 1) and no bias the convolution passes everything on as it is. The layer is
    # then plain attention: whatever that can compute, this can.
    plain = MultiHeadAttention(d_model=512, heads=8)
    layer.load_state_dict(plain.state_dict(), strict=False)
    for conv in (layer.query_conv, layer.key_conv, layer.value_conv):
        nn.init.zeros_(conv.bias)
        nn.init.zeros_(conv.weight)
        nn.init.ones_(conv.weight[-1])
    x = torch.randn(2, 20, 512)
    difference = (layer(x, x, causal=True) - plain(x, x, causal=True)).abs().max()
    print(f"largest difference from plain attention: {difference:.1e}")
    # What it costs beside plain attention, on two sequences of 128.
    from labml_primer.training import added_cost

    x = torch.randn(2, 128, 512)
    print(added_cost(plain, layer, x, x))


def speedup_factor(
    baseline_cost: Sequence[float],
    baseline_loss: Sequence[float],
    cost: Sequence[float],
    loss: Sequence[float],
) -> float:
    r"""
    ## The speed-up factor

    How the paper grades a model (section 4.1): the compute that the baseline has spent at its end, over
    the compute with which the model first was as good.

    $$F = \frac{C_{\text{baseline}}}
               {\min\{\,C : L(C) \le L_{\text{baseline}}\}}$$

    Compute is any cost that grows along a run: steps, seconds. Each run is a list of costs and a list
    of losses, one of each for every evaluation; between two evaluations the loss is taken to be a
    straight line. Not a number where the model never gets there.
    """
    target = baseline_loss[-1]
    # The first evaluation at or below the target, and where the line to it crosses.
    for i, reached in enumerate(loss):
        if reached <= target:
            if i == 0:
                return baseline_cost[-1] / cost[0]
            share = (loss[i - 1] - target) / (loss[i - 1] - reached)
            crossing = cost[i - 1] + share * (cost[i] - cost[i - 1])
            return baseline_cost[-1] / crossing
    return math.nan


if __name__ == "__main__":
    # ## The race
    #
    # A Transformer and a Primer-EZ, each with the same seed, the same characters of Shakespeare in the
    # same order, and the same budget of steps. They differ in the two lines of this chapter.
    from labml_primer.training import load_corpus, sample, train

    corpus = load_corpus()
    entrants: dict[str, tuple[type[MultiHeadAttention], type[nn.Module], str]] = {
        "Transformer": (MultiHeadAttention, nn.ReLU, "C5"),
        "Primer-EZ": (MultiDConvHeadAttention, SquaredReLU, "C0"),
    }
    models, histories = {}, {}
    for name, (attention_type, activation_type, _) in entrants.items():
        torch.manual_seed(0)
        config = Config(
            corpus.vocab_size,
            max_seq=64,
            attention=attention_type,
            activation=activation_type,
        )
        models[name] = LanguageModel(config)
        histories[name] = train(
            models[name], corpus, name=name, steps=600, seq=64, evaluations=15
        )
    # At the left the loss on plays that neither has read, over steps; at the right over the seconds
    # the processor worked, where Primer-EZ pays for its slower steps. The dotted line is the quality
    # that the Transformer ends with.
    vanilla, primer_ez = histories["Transformer"], histories["Primer-EZ"]
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(7, 2.6), sharey=True, layout="constrained"
    )
    for name, history in histories.items():
        color = entrants[name][2]
        left.plot(history.steps, history.validation_loss, color=color)
        right.plot(history.seconds, history.validation_loss, color=color)
    middle = len(vanilla.steps) // 2
    for name, offset, side in (
        ("Transformer", (4, 6), "left"),
        ("Primer-EZ", (-4, -12), "right"),
    ):
        left.annotate(
            name,
            (vanilla.steps[middle], histories[name].validation_loss[middle]),
            xytext=offset,
            textcoords="offset points",
            ha=side,
            color=entrants[name][2],
        )
    for ax in (left, right):
        ax.axhline(vanilla.validation_loss[-1], color="C5", ls=":", lw=1)
    left.set(xlabel="step", ylabel="loss, nats a character")
    right.set(xlabel="seconds of processor time")
    plt.show()
    # ### Who won, and by how much
    #
    # The paper's factor, once with steps as the compute and once with seconds.
    factors = {
        cost: speedup_factor(
            getattr(vanilla, cost),
            vanilla.validation_loss,
            getattr(primer_ez, cost),
            primer_ez.validation_loss,
        )
        for cost in ("steps", "seconds")
    }
    slower = primer_ez.seconds[-1] / vanilla.seconds[-1]
    print(
        f"Final loss: Transformer {vanilla.validation_loss[-1]:.3f}, "
        f"Primer-EZ {primer_ez.validation_loss[-1]:.3f}.\n"
        f"A step of Primer-EZ takes {slower:.2f} times as long.\n"
        f"Speed-up factor: {factors['steps']:.1f} in steps, "
        f"{factors['seconds']:.1f} in seconds."
    )
    # One race on one seed, over a short way. Much of what there is to learn this early is in the one or two
    # characters before the current one. A convolution has them at hand, and plain attention must first learn
    # to find them: this may be why Primer-EZ leads so early. The factor holds for this seed, this budget and
    # this text. {doc}`/experiments/chapters/ours` has longer runs of five seeds.
    #
    # The walk-through says that Primer-EZ trains "a lot faster". The paper, with runs of many hours,
    # counts factors from 1.75 to 2.34 for Primer-EZ on the task of its search, by code base and hardware
    # (Table 4), and from 1.71 to 1.98 on larger data with 110 million parameters (Table 5). Its often
    # quoted 4.2 is the whole Primer's, at 537 million parameters (Table 1, section 4.3).
    #
    # What do the two write by now? Both go on from the same words, with the same dice.
    for name, model in models.items():
        text = sample(model, corpus, "ROMEO.\n", length=160)
        print(f"--- {name}\n{text}\n")


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} Three in a row
    # One convolution looks two tokens back. Put three of them behind one another, and nudge the token at
    # position 5 of twenty. Which outputs move?
    # :::
    # :::{solution}
    # Those from 5 to 11. Each convolution passes on what reached it, two positions further, so $n$ of width
    # $K$ look $n\,(K - 1)$ back. That is how Primer-EZ hears of tokens that are six back after three layers,
    # by another way than attention's.
    # :::
    three = nn.Sequential(*(SpatialDepthWiseConvolution(d_k=32) for _ in range(3)))
    stream = torch.randn(1, 20, 4, 32)
    nudged = stream.clone()
    nudged[:, 5] += 1.0
    moved = (
        (three(nudged) - three(stream)).abs().amax(dim=(0, 2, 3)).nonzero().flatten()
    )
    print("outputs that moved:", moved.tolist())
    assert moved.tolist() == [5, 6, 7, 8, 9, 10, 11]

    # Which of the two changes does the work? {doc}`variations` takes them apart.
