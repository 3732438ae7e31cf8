r"""
# Primitives

The 39 operations from which the search for Primer builds an architecture.

Which operations does a search need to find something better than attention? If whole layers were
operations, it could only rearrange them. So the pieces must be smaller.

In short: the vocabulary has sums, products, activation functions, reductions, two matrix products, dense
layers and convolutions. Only the matrix products and the convolutions move information between positions.
Each of them uses the current and earlier tokens only, so whatever a search builds from them is
{term}`causal <causal mask>`. Inputs of different widths are made to match, so any two values can be added or
multiplied.

:::{picture} primitives
:::

Source: {cite:t}`so2021primer`, appendices A.1 and A.2, Tables 2 and 3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# ## The values of a program
#
# Every value is a tensor `[copies, batch, seq, width]`. The width is that of the {term}`residual stream`,
# that of a head, `seq` for attention scores, or 1 for a mean. There are several copies if an instruction runs
# several times at once, for example once for each head.


def resize(x: Tensor, width: int) -> Tensor:
    """Cut the features of `x` to `width`, or repeat them from the first until they are as many."""
    if x.size(-1) == width:
        return x
    return x.repeat(1, 1, 1, math.ceil(width / x.size(-1)))[..., :width]


def match(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    r"""
    ## Widths that differ

    Return `x` and `y` with equal widths. A program may add 48 features to 64; nothing in the search forbids
    it.

    :::{deviation} the paper, appendix A.2
    "We deterministically pseudorandomly set one of the tensor dimensions to match the other." Neither the
    choice of the tensor nor the way of setting its size is described. Here a checksum of the two widths
    chooses the tensor, and {py:func}`~labml_primer.search.primitives.resize` cuts it or repeats its features.
    Repeating needs no parameters, and unlike zeros, it does not make a division infinite.
    :::
    """
    widths = x.size(-1), y.size(-1)
    if widths[0] == widths[1]:
        return x, y
    if crc32(repr(widths).encode()) % 2:
        return resize(x, widths[1]), y
    return x, resize(y, widths[0])


def elementwise(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return `function` for values of different widths. A width of 1, such as a mean's, is broadcast."""

    def apply(x: Tensor, y: Tensor) -> Tensor:
        if 1 not in (x.size(-1), y.size(-1)):
            x, y = match(x, y)
        return function(x, y)

    return apply


def divide(x: Tensor, y: Tensor) -> Tensor:
    """Return $x / y$. If `y` is one number per row, multiply by its reciprocal, which is faster."""
    return x * y.reciprocal() if y.size(-1) == 1 else x / y


def reciprocal(x: Tensor) -> Tensor:
    """Return $1/x$, and 0 for 0."""
    # As $1/\infty$, so that the gradient there is 0 too. A `torch.where` after dividing has `nan`.
    return x.masked_fill(x == 0, math.inf).reciprocal()


def lower(x: Tensor) -> Tensor:
    """Return `x` with zeros above the diagonal of its last two dimensions, `[seq, width]`."""
    # On a CPU this takes half the time of `torch.tril`.
    mask = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).tril()
    return torch.where(mask, x, 0.0)


def matmul(x: Tensor, y: Tensor) -> Tensor:
    r"""
    ## Causality

    A block must not see later tokens, and a random program would use them if it could. The paper adds masks
    "to operations that move information spatially". There are few of these: the two matrix products and the
    convolutions. Every other primitive computes row $i$ of its result, the one for position $i$, from row $i$
    alone.

    The rule for these few is that row $i$ of the result depends on the rows up to $i$ of the inputs. If each
    operation obeys it, so does every program whose values are finite. (A masked weight of zero times an
    infinite value is `nan`.) For $XY$ the triangle of $X$ on and below the diagonal is used:

    $$(XY)_i = \sum_{j \le i} x_{ij}\, y_j$$

    `x` needs one column for each row of `y`, so it is resized to `seq`.
    """
    return lower(resize(x, y.size(-2))) @ y


def transposed_matmul(x: Tensor, y: Tensor) -> Tensor:
    r"""
    Return $XY^\top$, zero above the diagonal: entry $i, j$ compares position $i$ with position $j \le i$.

    :::{deviation} the paper, appendix A.2 and Figure 24
    The paper does not say how the automatic mask relates to the primitive MASK. In the Transformer's program
    both are needed: after the product with its zeros comes EXP, and $e^0 = 1$. MASK makes these zero again,
    for the sum that the softmax divides by. Without MASK a program is still causal, but divides by a larger
    sum.
    :::
    """
    x, y = match(x, y)
    return lower(x @ y.transpose(-2, -1))


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    r"""
    ## Dense layers and convolutions

    Convolve over positions: `[copies, batch, seq, width]` to `[copies, batch, seq, units]`. `weight` is
    `[width * kernel_size, copies, units]`, with the rows of a feature next to each other and that of the
    current token last. With a kernel of size 1 this is a dense layer. The paper shifts the inputs by the
    kernel's size minus one, and so do we, with zeros before the first token.

    :::{deviation} the paper, Table 2
    `tf.layers.dense` has a bias unless told otherwise. The programs add a SHIFT where the Transformer has
    one, so here dense layers and convolutions have no bias.
    :::
    """
    kernel_size, copies = weight.size(0) // x.size(-1), weight.size(1)
    if kernel_size > 1:
        x = F.pad(x, (0, 0, kernel_size - 1, 0)).unfold(2, kernel_size, 1).flatten(3)
    # All copies with the same input are one large product, as in
    # {py:class}`~labml_primer.transformer.attention.MultiHeadAttention`.
    if x.size(0) == 1:
        y = x.squeeze(0) @ weight.flatten(1)
        return torch.unflatten(y, -1, (copies, -1)).movedim(2, 0)
    y = torch.bmm(x.flatten(1, 2), weight.transpose(0, 1))
    return torch.unflatten(y, 1, x.shape[1:3])


def convolve_depthwise(x: Tensor, weight: Tensor) -> Tensor:
    """
    Convolve each feature with its own kernel. `weight` is `[kernel_size, copies, 1, 1, width]`.

    The same as {py:class}`~labml_primer.primer.primer_ez.SpatialDepthWiseConvolution`, with copies for heads.

    :::{deviation} the paper, Figure 25
    Table 2 gives this operation a dimension, its number of filters, and instructions 14, 18 and 23 print 384.
    Their inputs have 48 features, and their outputs must have 48, because eight of them become the 384 of
    instruction 33. So the dimension is ignored.
    :::
    """
    kernel_size, seq = len(weight), x.size(2)
    padded = F.pad(x, (0, 0, kernel_size - 1, 0))
    y = padded[:, :, :seq] * weight[0]
    for k in range(1, kernel_size):
        y = y + padded[:, :, k : k + seq] * weight[k]
    return y


# ## Branches
#
# An instruction may run 1, 2, 4, 8 or 16 times at once, with weights of its own each time, and the results
# are concatenated along the features. The eight heads of attention are one call with eight branches.
#
# All branches are computed at once: they are the first dimension of a value. Branches may be nested: two in
# each of eight make 16 copies.
def fork(x: Tensor, branches: int) -> Tensor:
    """Return the input of the branches. A value of one copy stays one, shared by all of them."""
    return x if x.size(0) == 1 else x.repeat_interleave(branches, dim=0)


def merge(x: Tensor, branches: int) -> Tensor:
    """Concatenate the results of the branches: `[copies * branches, ..., width]` to `[copies, ...]`."""
    if x.size(0) == 1:
        return x.repeat(1, 1, 1, branches)
    x = torch.unflatten(x, 0, (-1, branches))
    return x.permute(0, 2, 3, 1, 4).flatten(3)


BRANCHING = {"BRANCH INPUT 1": fork, "BRANCH INPUT 2": fork, "BRANCH MERGE": merge}

# ## Weights
#
# A shape is computed from the width of the input, the `units` of the output and the number of copies.
Shape = Callable[[int, int, int], tuple[int, ...]]


def features(width: int, units: int, copies: int) -> tuple[int, ...]:
    """Return the shape of one weight per feature."""
    return copies, 1, 1, width


def dense(kernel_size: int) -> Shape:
    """Return the shape of the weights of a dense layer or convolution."""
    return lambda width, units, copies: (kernel_size * width, copies, units)


def depthwise(kernel_size: int) -> Shape:
    """Return the shape of the kernels of a depthwise convolution."""
    return lambda width, units, copies: (kernel_size, copies, 1, 1, width)


def start_dense(weight: Tensor) -> Tensor:
    """Draw weights as `nn.Linear` does, between $-1/\\sqrt{n}$ and $1/\\sqrt{n}$ for $n$ inputs."""
    return nn.init.uniform_(weight, -(len(weight) ** -0.5), len(weight) ** -0.5)


def start_depthwise(weight: Tensor) -> Tensor:
    """
    Start kernels as Primer-EZ does: 0.5 for the current token, 0.5/`kernel_size` for earlier ones.

    :::{deviation} the paper
    It does not say how weights start, neither these nor those of dense layers. SCALE starts at 1 and SHIFT at
    0, as in a layer norm.
    :::
    """
    nn.init.constant_(weight, 0.5 / len(weight))
    nn.init.constant_(weight[-1], 0.5)
    return weight


@dataclass(frozen=True)
class Primitive:
    """
    ## The 39 primitives

    `arguments` says what a primitive takes: the tensors `x` and `y`, the constant `c`, the dimension `d` and
    its own weights `w`. An instruction has all of the first four, and those that are not named are ignored.
    """

    apply: Callable[..., Tensor]
    arguments: str
    shape: Shape = features
    start: Callable[[Tensor], Tensor] = nn.init.zeros_


# The paper's Table 2, in its order. The names are those of the table.
#
# :::{deviation} the paper, Table 2: SCALE and SHIFT
# There SCALE adds a variable and SHIFT multiplies by one. They are exchanged: the Transformer's norm ends
# with SCALE and SHIFT, and the bias after a dense layer is a SHIFT (Figures 20 and 24).
# :::
# :::{deviation} the paper, Table 2: axes
# It names no axis for the sums, means and products. TensorFlow's own choices would reduce everything to one
# number. With the last axis, and a width of 1 kept, Figure 24 is a layer norm and a softmax. We take the last
# axis for the cumulative operations too, so that none of them moves information between positions. The row of
# CUM PROD has one dash less than the others, which we take for a misprint.
# :::
# :::{deviation} the paper, Figure 24: no safeguards
# The programs subtract no maximum before EXP and add no $\varepsilon$ before dividing, and we add neither. So
# a softmax overflows if a score is above 88 in `float32`, and a norm of equal features is `nan`. A search
# rejects such candidates.
# :::
# :::{deviation} the paper, Table 2: MASK
# `tf.linalg.band_part` needs a band, which is not given. It must be the lower triangle for Figure 24 to be a
# softmax over earlier tokens. It also applies to features: position $i$ keeps the first $i + 1$.
# :::
PRIMITIVES = {
    "ADD": Primitive(elementwise(torch.add), "xy"),
    "DIFFERENCE": Primitive(elementwise(torch.sub), "xy"),
    "DIVIDE": Primitive(elementwise(divide), "xy"),
    "MULTIPLY": Primitive(elementwise(torch.mul), "xy"),
    "ABS ROOT": Primitive(lambda x: x.abs().sqrt(), "x"),
    "SQUARE": Primitive(torch.square, "x"),
    "EXP": Primitive(torch.exp, "x"),
    "LOG": Primitive(lambda x: x.abs().log(), "x"),
    "C MUL": Primitive(torch.mul, "xc"),
    "ABS": Primitive(torch.abs, "x"),
    "RECIP": Primitive(reciprocal, "x"),
    "SIGN": Primitive(torch.sign, "x"),
    "COS": Primitive(torch.cos, "x"),
    "SIN": Primitive(torch.sin, "x"),
    "TANH": Primitive(torch.tanh, "x"),
    "MAX": Primitive(lambda x, c: F.threshold(x, c, c), "xc"),
    "MIN": Primitive(lambda x, c: x.clamp(max=c), "xc"),
    "SCALE": Primitive(torch.mul, "xw", features, nn.init.ones_),
    "SHIFT": Primitive(torch.add, "xw", features, nn.init.zeros_),
    "SIGMOID": Primitive(torch.sigmoid, "x"),
    "MASK": Primitive(lower, "x"),
    "CUM PROD": Primitive(lambda x: x.cumprod(-1), "x"),
    "CUM SUM": Primitive(lambda x: x.cumsum(-1), "x"),
    "RED MEAN": Primitive(lambda x: x.mean(-1, keepdim=True), "x"),
    "RED SUM": Primitive(lambda x: x.sum(-1, keepdim=True), "x"),
    "RED MIN": Primitive(lambda x: x.amin(-1, keepdim=True), "x"),
    "RED MAX": Primitive(lambda x: x.amax(-1, keepdim=True), "x"),
    "RED PROD": Primitive(lambda x: x.prod(-1, keepdim=True), "x"),
    "MAT MUL": Primitive(matmul, "xy"),
    "T-MAT MUL": Primitive(transposed_matmul, "xy"),
    "CONV 1X1": Primitive(convolve, "xdw", dense(1), start_dense),
    "CONV 3X1": Primitive(convolve, "xdw", dense(3), start_dense),
    "CONV 7X1": Primitive(convolve, "xdw", dense(7), start_dense),
    "CONV 15X1": Primitive(convolve, "xdw", dense(15), start_dense),
    "CONV 31X1": Primitive(convolve, "xdw", dense(31), start_dense),
    "DCONV 3X1": Primitive(convolve_depthwise, "xw", depthwise(3), start_depthwise),
    "DCONV 7X1": Primitive(convolve_depthwise, "xw", depthwise(7), start_depthwise),
    "DCONV 15X1": Primitive(convolve_depthwise, "xw", depthwise(15), start_depthwise),
    "DCONV 31X1": Primitive(convolve_depthwise, "xw", depthwise(31), start_depthwise),
}


if __name__ == "__main__":
    # ## What moves between positions
    #
    # Each primitive gets values of 6 positions and 6 features, and its inputs change at position 3. The table
    # has the rows of the result that change. For most primitives it is row 3 alone, and never an earlier one.
    from IPython.display import display

    from labml_primer.training.table import Table

    def changed_rows(primitive: Primitive) -> str:
        torch.manual_seed(0)
        weight = torch.rand(primitive.shape(6, 6, 1))
        before = torch.randn(1, 1, 6, 6)
        after = before.clone()
        after[..., 3, :] = torch.randn(6)
        results = []
        for x in (before, after):
            arguments = {"x": x, "y": x.square(), "c": 0.1, "w": weight}
            chosen = [a for a in primitive.arguments if a != "d"]
            results.append(primitive.apply(*(arguments[a] for a in chosen)))
        differ = (results[0] != results[1]).any(dim=-1).flatten()
        return " ".join(str(row) for row in range(6) if differ[row])

    groups: dict[str, list[str]] = {}
    for name, primitive in PRIMITIVES.items():
        groups.setdefault(changed_rows(primitive), []).append(name)
    rows = [(changed, ", ".join(names)) for changed, names in groups.items()]
    display(Table(("rows that change", "primitives"), rows))


if __name__ == "__main__":
    # ## In short
    #
    # - The search has 39 primitives. Of these, 11 have weights: SCALE, SHIFT, the dense layer and the
    #   convolutions.
    # - Values of different widths are cut or repeated to match.
    # - Matrix products and convolutions move information between positions, and only forward.
    # - Branches are copies of a value in its first dimension.
    #
    # ## Exercise
    #
    # :::{exercise} A sum over earlier tokens
    # CUM SUM runs along the features. Use other primitives to add up each *position* and all earlier ones.
    # :::
    # :::{solution}
    # A matrix product with a matrix of ones: only its lower triangle is used, so row $i$ is the sum of the
    # rows up to $i$. The ones are EXP of a value minus itself.
    # :::
    x = torch.randn(1, 2, 6, 8)
    ones = PRIMITIVES["EXP"].apply(PRIMITIVES["DIFFERENCE"].apply(x, x))
    total = PRIMITIVES["MAT MUL"].apply(ones, x)
    torch.testing.assert_close(total, x.cumsum(dim=2))
    print(f"largest difference {(total - x.cumsum(dim=2)).abs().max():.0e}")

    # How do these operations become a block of a model? {doc}`programs`.
