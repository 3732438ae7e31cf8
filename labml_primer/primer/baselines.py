r"""
# Strong baselines

A new architecture has to beat the improved Transformers in use, not only the one of 2017.

Primer-EZ is better than the first Transformer. Is it also better than the improved versions?

In short: in the paper, GELU saves little, Transformer++ more and Primer-EZ most, but in our small runs with
rotary positions, Primer-EZ's lead over Transformer++ is small ({doc}`/experiments/chapters/results`).

| model | changes | {term}`speed-up factor` |
|---|---|---|
| Transformer+GELU | {term}`GELU` | 0.97 to 1.23 |
| Transformer++ | {term}`SwiGLU`, {term}`RMSNorm` | 1.33 to 1.54 |
| Primer-EZ | squared ReLU, MDHA | 1.75 to 2.34 |

The factors are those of the paper's Table 4, compared with the Transformer of 2017, except that it is
{term}`pre-norm`. GELU is the {term}`activation function` of GPT-2 and BERT. The changes of Transformer++ are
those that {cite:t}`narang2021transformer` found to help in T5. Each baseline is a
{py:class}`~labml_primer.transformer.language_model.Config`, and they need only one layer that earlier
chapters do not have: a feed-forward layer with a gate.

:::{deviation} the paper, section 4
Its Transformer+GELU uses an approximation of GELU. Ours uses the exact function.
:::

:::{picture} baselines
:::

Source: {cite:t}`so2021primer`, section 4 and appendix A.6; {cite:t}`shazeer2020glu`;
{cite:t}`zhang2019root`; {cite:t}`hendrycks2016gaussian` for GELU.
"""

from torch import Tensor, nn

from labml_primer.transformer.feed_forward import PositionwiseFeedForward


class GatedFeedForward(PositionwiseFeedForward):
    r"""
    ## SwiGLU: a feed-forward layer with a gate

    Two linear maps read the same input. One of them, the *gate*, goes through the activation function, and
    the two results are multiplied feature by feature:

    $$\operatorname{FFN}(x) = \big(a(xW + b) \odot (xU + c)\big)\,V + d$$

    With the activation function $a$ = {term}`Swish` this is *SwiGLU*, with GELU *GEGLU*, and with ReLU
    *ReGLU*. With $U = W$, ReGLU is the squared ReLU ({doc}`primer_ez`). In a `Config`, whose activation
    function is the ReLU by default, set `activation=nn.SiLU` too. Maps `[batch, seq, d_model]` to the same
    shape.

    Source: {cite:t}`shazeer2020glu`, section 2, which has no biases.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.SiLU,
    ):
        # There are three matrices instead of two. So that the number of parameters stays the same, each is
        # two thirds as wide: $3 \cdot \tfrac23 = 2$. Note that the layer has fewer than `d_ff` features.
        # Large models round the width to a multiple of 64 or more, which is faster on a GPU.
        width = round(2 * d_ff / 3)
        super().__init__(d_model, width, dropout, activation)
        self.gate = nn.Linear(d_model, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.gate(x)) * self.expand(x)
        y: Tensor = self.contract(self.dropout(hidden))
        return y


if __name__ == "__main__":
    # ## As many parameters as without
    #
    # The two numbers of parameters differ only by rounding and by the biases of hidden features, of which
    # the gated layer has a third more.
    import torch
    from IPython.display import display

    from labml_primer.training.table import Table

    rows = []
    for d_model, d_ff in ((64, 256), (512, 2048), (768, 3072), (1024, 8192)):
        plain = PositionwiseFeedForward(d_model, d_ff)
        gated = GatedFeedForward(d_model, d_ff)
        counts = [
            sum(p.numel() for p in layer.parameters()) for layer in (plain, gated)
        ]
        width = gated.gate.out_features
        rows.append((d_model, d_ff, f"{counts[0]:,}", width, f"{counts[1]:,}"))
    display(Table(("d_model", "d_ff", "plain layer", "width", "gated layer"), rows))


if __name__ == "__main__":
    # ## What a gate adds to an activation function
    #
    # The output of one hidden feature, over two directions of the input $x$: blue is positive, red negative.
    # A feature of a plain layer depends on one direction only. With a gate (on the right) it depends on two,
    # and the second can change its sign.
    import matplotlib.pyplot as plt

    first, second = torch.meshgrid(
        torch.linspace(-2, 2, 321), torch.linspace(-2, 2, 321), indexing="xy"
    )
    features = {
        "ReLU": first.relu(),
        "squared ReLU": first.relu().square(),
        "SwiGLU": nn.functional.silu(first) * second,
    }
    fig, axes = plt.subplots(1, 3, figsize=(7, 2.6), layout="constrained", sharey=True)
    for ax, (name, output) in zip(axes, features.items(), strict=True):
        ax.imshow(
            output,
            cmap=plt.get_cmap("RdBu", 17),
            vmin=-4.25,
            vmax=4.25,
            extent=(-2, 2, -2, 2),
            origin="lower",
        )
        ax.set_xlabel(f"first direction: {name}")
    axes[0].set_ylabel("second direction")
    plt.show()


if __name__ == "__main__":
    # ## Costs and gains
    #
    # Each model is the Transformer with other parts. The first two columns are the costs at the paper's size
    # and a length of 64: parameters and {term}`multiply-adds` per token, in millions. They are almost the
    # same. The other three are the paper's {term}`speed-up factors <speed-up factor>` with two code bases,
    # Tensor2Tensor (T2T) and T5, on a TPU or a V100 GPU (Table 4).
    from dataclasses import replace

    from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
    from labml_primer.training.costs import costs
    from labml_primer.transformer.language_model import Config, LanguageModel

    transformer = Config(
        vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=64
    )
    plus_plus = replace(
        transformer,
        activation=nn.SiLU,
        feed_forward=GatedFeedForward,
        norm=nn.RMSNorm,
    )
    primer_ez = replace(
        transformer, attention=MultiDConvHeadAttention, activation=SquaredReLU
    )
    gelu = replace(transformer, activation=nn.GELU)
    paper_rows = (
        ("Transformer", transformer, "1", "1", "1"),
        ("Transformer+GELU", gelu, "1.23", "1.05", "0.97"),
        ("Transformer++", plus_plus, "1.37", "1.54", "1.33"),
        ("Primer-EZ", primer_ez, "2.34", "2.03", "1.75"),
    )
    models = []
    for name, config, *factors in paper_rows:
        with torch.device("meta"):
            parts = costs(LanguageModel(config)).values()
        millions = [f"{sum(part) / 1e6:.2f}" for part in zip(*parts, strict=True)]
        models.append((name, *millions, *factors))
    columns = ("parameters", "multiply-adds", "T2T, TPU", "T2T, V100", "T5, TPU")
    display(Table(("model", *columns), models))
    # Primer-EZ saves more than Transformer++ in all three setups. The gain of GELU depends on the setup: with
    # T5 there is none.
    #
    # A single learning rate for all models would favour some of them. {doc}`/experiments/chapters/ours`
    # compares these models with a tuned learning rate and five seeds for each.


if __name__ == "__main__":
    # ## In short
    #
    # - Transformer++ is a Transformer with RMSNorm and a gated feed-forward layer, SwiGLU.
    # - A gate needs a third matrix. For the same number of parameters, the layer is two thirds as wide.
    # - In the paper GELU gains little, Transformer++ more, and Primer-EZ most. In our runs with rotary
    #   positions, Primer-EZ's lead over Transformer++ is small ({doc}`/experiments/chapters/results`).
    # - A new architecture should be compared with strong baselines, each with its own learning rate.
    #
    # ## Exercise
    #
    # :::{exercise} Hold the gate open
    # Set two tensors of a {py:class}`~labml_primer.primer.baselines.GatedFeedForward` so that it computes the
    # same as a plain layer with Swish.
    # :::
    # :::{solution}
    # Set the matrix of `expand` to zero and its bias to one, so that every feature is multiplied by one. The
    # gated layer can compute everything that a plain layer of the same width can. But with as many
    # parameters, it has only two thirds of a plain layer's features.
    # :::
    gated = GatedFeedForward(d_model=64, d_ff=256)
    plain = PositionwiseFeedForward(64, gated.gate.out_features, activation=nn.SiLU)
    with torch.no_grad():
        gated.expand.weight.zero_()
        gated.expand.bias.fill_(1.0)
    plain.expand, plain.contract = gated.gate, gated.contract
    x = torch.randn(10, 64)
    torch.testing.assert_close(gated(x), plain(x))
    print(f"the same outputs, {gated.gate.out_features} features instead of 256")

    # :::{exercise} Write it: SwiGLU
    # Write the layer without biases: `gate` is $W$ and `up` is $U$, both `[d_model, width]`; `down` is $V$.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def gated_layer(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    unit, two = torch.ones(1, 1), 2 * torch.ones(1, 1)
    cases: list[Case] = [
        ((unit, unit, two, unit), [[1.4621]], "Swish(1) is 0.7311, times 2"),
        (
            (unit, two, unit, unit),
            [[1.7616]],
            "Swish(2) is 1.7616: only the gate goes through it",
        ),
        ((-unit, unit, unit, two), [[0.5379]], "Swish(-1) is -0.2689, times -1 and 2"),
        (
            (
                torch.tensor([[1.0, -1.0]]),
                torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
                torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]),
                torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]),
            ),
            [[0.0, 0.4621]],
            "x W is (1, -1, 1) and x U is (1, 1, -1), multiplied feature by feature",
        ),
    ]
    check_answer(gated_layer, cases)

    # :::{solution}
    # Two products of the same input, one of them through Swish.
    # :::
    def solved(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        return (nn.functional.silu(x @ gate) * (x @ up)) @ down

    assert check_answer(solved, cases)

    # What else did the search find? {doc}`primer` has all of its changes.
