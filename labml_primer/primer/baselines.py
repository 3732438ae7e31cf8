r"""
# Strong baselines

A new architecture has to beat not the Transformer of 2017, but the improved versions in use since.

If Primer-EZ is better than the first Transformer, is it better than the ones in use?

The paper compares with three. One is the vanilla Transformer. *Transformer+GELU* has another activation, as
GPT-2 and BERT have. *Transformer++* has three changes that {cite:t}`narang2021transformer` had found to help
in T5: a norm without a mean, {py:class}`~labml_primer.transformer.normalization.RMSNorm`; and, together
called SwiGLU, Swish and a feed-forward layer with a gate:

$$\operatorname{FFN}(x) = \big(\operatorname{Swish}(xW) \odot xU\big)\,V$$

Each is a {py:class}`~labml_primer.transformer.language_model.Config` and needs no model of its own. Only one
layer is missing.

:::{deviation} the paper, section 4
Its Transformer+GELU has an approximation of GELU. Ours has GELU itself.
:::

Source: {cite:t}`so2021primer`, section 4 and appendix A.6; {cite:t}`shazeer2020glu`;
{cite:t}`zhang2019root`; {cite:t}`hendrycks2016gaussian` for GELU.
"""

from torch import Tensor, nn

from labml_primer.transformer.feed_forward import PositionwiseFeedForward


class GatedFeedForward(PositionwiseFeedForward):
    r"""
    ## A feed-forward layer with a gate

    A second matrix reads the same input, and the two results are multiplied, feature by feature, one of them
    after the activation function:

    $$\operatorname{FFN}(x) = \big(a(xW + b) \odot (xU + c)\big)\,V + d$$

    With the activation $a$ = Swish it is *SwiGLU*, with GELU *GEGLU*, with ReLU *ReGLU*. Of the last,
    {doc}`primer_ez` shows that with $U = W$ it is the squared ReLU. `[batch, seq, d_model]` to the same.

    Source: {cite:t}`shazeer2020glu`, section 2. There are no biases there.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.SiLU,
    ):
        # Three matrices instead of two, so each is made two thirds as wide, and the sum stays:
        # $3 \cdot \tfrac23 = 2$. Thus `d_ff` says for every layer how large it is, and configurations that
        # differ in the gate alone can be compared.
        width = round(2 * d_ff / 3)
        super().__init__(d_model, width, dropout, activation)
        self.gate = nn.Linear(d_model, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.gate(x)) * self.expand(x)
        return self.contract(self.dropout(hidden))


if __name__ == "__main__":
    # ## As many parameters as without
    #
    # With $w = \tfrac23 d_\text{ff}$ the two layers differ by rounding, and by the biases, of which the gated
    # one has a third more:
    import torch

    print("d_model   d_ff  plain layer   width  gated layer")
    for d_model, d_ff in ((64, 256), (512, 2048), (768, 3072), (1024, 8192)):
        plain, gated = (
            PositionwiseFeedForward(d_model, d_ff),
            GatedFeedForward(d_model, d_ff),
        )
        counts = [sum(p.numel() for p in f.parameters()) for f in (plain, gated)]
        print(
            f"{d_model:7d}{d_ff:7d}{counts[0]:13,}{gated.gate.out_features:8d}"
            f"{counts[1]:13,}"
        )


if __name__ == "__main__":
    # ## What a gate adds to an activation function
    #
    # Bands of equal output, for one hidden feature of each kind. A feature of a plain layer sees one
    # direction of $x$. With a gate it sees two and multiplies them.
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
    # The second direction turns the sign round, which neither ReLU can do. The squared ReLU has no second
    # direction and pays for no second matrix.


if __name__ == "__main__":
    # ## The race of the baselines
    #
    # Each model is one line: the Transformer with other parts.
    from dataclasses import replace

    from labml_primer.primer.primer_ez import (
        MultiDConvHeadAttention,
        SquaredReLU,
        speedup_factor,
    )
    from labml_primer.training import load_corpus, train
    from labml_primer.training.costs import costs
    from labml_primer.transformer.language_model import Config, LanguageModel

    paper_size = Config(
        vocab_size=32_000, d_model=512, heads=8, d_ff=2048, layers=6, max_seq=64
    )

    def models(transformer: Config) -> dict[str, Config]:
        return {
            "Transformer": transformer,
            "Transformer+GELU": replace(transformer, activation=nn.GELU),
            "Transformer++": replace(
                transformer,
                activation=nn.SiLU,
                feed_forward=GatedFeedForward,
                norm=nn.RMSNorm,
            ),
            "squared ReLU alone": replace(transformer, activation=SquaredReLU),
            "Primer-EZ": replace(
                transformer, attention=MultiDConvHeadAttention, activation=SquaredReLU
            ),
        }

    corpus = load_corpus()
    small = Config(corpus.vocab_size, d_model=64, d_ff=256, layers=2, max_seq=64)
    histories = {}
    for name, config in models(small).items():
        torch.manual_seed(0)
        model = LanguageModel(config)
        histories[name] = train(model, corpus, name=name, steps=400, seq=64)

    lines = dict(zip(histories, ("C5", "C1", "C2", "C0:", "C0"), strict=True))
    fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for name, history in histories.items():
        ax.plot(history.steps, history.validation_loss, lines[name], label=name)
    ax.set(xlabel="step", ylabel="loss, nats per character")
    ax.legend(frameon=False)
    plt.show()
    # ### Costs and gains
    #
    # The costs are those of the paper's size, 35 million parameters at 64 tokens: parameters and
    # multiply-adds per token, in millions. The gains are those of the race above, and of the paper: its
    # speed-up factors on Tensor2Tensor with TPUs, Tensor2Tensor with a V100, and T5 (Table 4).
    paper = {
        "Transformer+GELU": "1.23  1.05  0.97",
        "Transformer++": "1.37  1.54  1.33",
        "Primer-EZ": "2.34  2.03  1.75",
    }
    vanilla = histories["Transformer"]
    print(f"{'':19s}params   MACs   loss  x steps  paper")
    for name, config in models(paper_size).items():
        with torch.device("meta"):
            parts = costs(LanguageModel(config)).values()
        parameters, products = (
            sum(column) / 1e6 for column in zip(*parts, strict=True)
        )
        history = histories[name]
        factor = speedup_factor(
            vanilla.steps,
            vanilla.validation_loss,
            history.steps,
            history.validation_loss,
        )
        print(
            f"{name:19s}{parameters:6.2f} {products:6.2f}"
            f"{history.validation_loss[-1]:7.3f}{factor:9.2f}  {paper.get(name, '')}"
        )
    # A model with `nan` did not reach the Transformer's final loss in this race.
    #
    # A strong baseline says more than a weak one: in the paper Transformer++ alone makes up a good part of
    # Primer-EZ's lead over the first Transformer, and GELU, depending on the setup, little or none of it. For
    # the squared ReLU alone the paper's table has no row; its Figure 5 draws it above SwiGLU at 110 million
    # parameters.
    #
    # Our race has one seed, and one learning rate for all, which favours some. In
    # {doc}`/experiments/chapters/ours`, where each model has its own rate and five seeds, Transformer++ does
    # beat the Transformer.


if __name__ == "__main__":
    # ## In short
    #
    # - GELU alone changes little. Transformer++ has a gated feed-forward layer with Swish (SwiGLU) and
    #   RMSNorm.
    # - A gate costs a third matrix, so its layer is two thirds as wide for the same number of parameters.
    # - A new architecture should be compared with these, with a learning rate for each.
    #
    # ## Exercise
    #
    # :::{exercise} Hold the gate open
    # Set two tensors of a {py:class}`~labml_primer.primer.baselines.GatedFeedForward` so that it computes
    # what a plain layer with Swish computes.
    # :::
    # :::{solution}
    # The second matrix becomes zero and its bias one: every feature is multiplied by one. So the gated layer
    # can be all that a plain one of its own width can. The price is width: it has two thirds of the
    # features of a plain layer of its size.
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

    # What else did the search find? {doc}`primer` takes it all in.
