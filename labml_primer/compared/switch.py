r"""
# Switch Transformer

A mixture of experts: replace one feed-forward layer by eight and send each token through one of them. More
parameters for the same work.

Must every token use every parameter? A period needs different features from the middle of a name.

A {term}`mixture of experts` has $E$ feed-forward layers, the experts, and a small *router* that chooses among
them for each token. In the {term}`Switch Transformer` it chooses one. With $W_r$ for the router's matrix:

$$
\begin{aligned}
p(x) &= \operatorname{softmax}(x\,W_r) \\
i &= \operatorname{argmax}_j\; p_j(x) \\
y &= p_i(x)\,\operatorname{FFN}_i(x)
\end{aligned}
$$

In short: the feed-forward layers have $E$ times as many parameters, and the work per token is the same,
except for the cost of routing. The router learns through the factor $p_i$: the choice itself has no gradient,
but if an expert's output reduces the loss, its probability for such tokens rises.

Two difficulties take up most of this chapter. Accelerators need equal batch sizes for every expert, but the
router may choose some experts more often than others. And an expert that is never chosen never learns. Both
are reasons for {term}`load balancing`.

:::{picture} switch
:::

Source: {cite:t}`fedus2022switch`, sections 2.1 to 2.4, equations 1 to 6; the authors' released code (Mesh
TensorFlow, `transformer/moe.py`); {cite:t}`so2021primer`, section 4.2 and Table 5.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.feed_forward import PositionwiseFeedForward


def places(chosen: Tensor, experts: int) -> Tensor:
    r"""
    ## Queues

    Return each token's place in the queue of its expert, counted from 0: the number of earlier tokens that
    chose the same expert. `chosen` `[tokens]` is the expert of each token; the result has the same shape.
    """
    # Each token is a one in the column of its expert. The running sum down a column counts the ones so far.
    ones = chosen[:, None] == torch.arange(experts, device=chosen.device)
    return (ones.cumsum(dim=0) - 1).gather(1, chosen[:, None]).squeeze(1)


if __name__ == "__main__":
    # Ten tokens, three experts, and four places in each queue: the fifth token for expert 0 is dropped.
    chosen = torch.tensor([0, 2, 0, 0, 1, 0, 2, 0, 1, 2])
    place = places(chosen, experts=3)
    print("token  ", *range(10))
    print("expert ", *chosen.tolist())
    print("place  ", *place.tolist())
    print("dropped", *("x" if p >= 4 else "." for p in place.tolist()))


class Experts(nn.Linear):
    """
    ## One linear layer per expert

    `experts` linear layers, each for rows of its own: `[experts, rows, d_in]` to `[experts, rows, d_out]`, in
    one batched matrix product.
    """

    def __init__(self, experts: int, d_in: int, d_out: int):
        super().__init__(d_in, d_out)
        # :::{deviation} the paper, section 2.4
        # It initializes from a truncated normal distribution of variance $0.1 / d_\text{in}$, 10% of the
        # usual, to keep large models stable. Our models are small, and are initialized like all linear layers
        # of this book: uniformly, with variance $\tfrac13 / d_\text{in}$.
        # :::
        bound = 1 / math.sqrt(d_in)
        self.weight = nn.Parameter(
            torch.empty(experts, d_in, d_out).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.empty(experts, 1, d_out).uniform_(-bound, bound))

    def forward(self, input: Tensor) -> Tensor:
        # Some models have no biases, {doc}`t5` for example.
        if self.bias is None:
            return torch.bmm(input, self.weight)
        return torch.baddbmm(self.bias, input, self.weight)


class AddLoss(torch.autograd.Function):
    """
    ## A loss inside a layer

    Return `x` unchanged. In the backward pass `loss`, a single number, gets the gradient 1, as if it had been
    added to the loss of the model. So a layer can have a loss of its own, called an *auxiliary loss*, and no
    training loop needs to know of it. The reported loss stays the {term}`cross-entropy`.

    If the loss is divided or multiplied before its backward pass, this one is not. So a loop that reads a
    batch in pieces divides the gradients instead, and one that scales the loss, as for half precision, must
    scale `balance` too.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, loss: Tensor) -> Tensor:
        ctx.save_for_backward(loss)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (loss,) = ctx.saved_tensors
        return gradients[0], torch.ones_like(loss)


class SwitchFeedForward(PositionwiseFeedForward):
    r"""
    ## A mixture of experts

    `[batch, seq, d_model]` to the same. It is
    {py:class}`~labml_primer.transformer.feed_forward.PositionwiseFeedForward` with
    {py:class}`~labml_primer.compared.switch.Experts` for its two matrices. A subclass may change three
    numbers:

    * `experts`: the number of experts.
    * `capacity_factor`: how many tokens an expert takes during training, as a multiple of its fair share.
    * `balance`: the weight $\alpha$ of the loss that balances the load.

    :::{deviation} the paper
    There every second feed-forward layer has experts, and every fourth in the runs of Primer's authors. Here
    all have, because a {py:class}`~labml_primer.transformer.language_model.Config` has one block for all
    layers.
    :::

    :::{deviation} Primer's released code
    Its configuration (`switch_transformer.gin`) has a capacity factor of 1.2 (for a scope spelled `deccoder`,
    so it may have had no effect), 32 experts, and noise on the router's inputs. Here the factor is 1.25, with
    8 experts and no noise.
    :::

    Raises `ValueError` for fewer than one expert, and for a capacity factor that is not positive.
    """

    experts: int = 8
    capacity_factor: float = 1.25
    balance: float = 0.01

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.ReLU,
    ):
        super().__init__(d_model, d_ff, dropout, activation)
        if self.experts < 1:
            raise ValueError(f"experts {self.experts} is below 1")
        if self.capacity_factor <= 0:
            raise ValueError(f"capacity_factor {self.capacity_factor} is not positive")
        self.router = nn.Linear(d_model, self.experts, bias=False)
        self.expand = Experts(self.experts, d_model, d_ff)
        self.contract = Experts(self.experts, d_ff, d_model)

    def probabilities(self, x: Tensor) -> Tensor:
        """Return the experts' probabilities $p$, `[..., experts]`, in `float32` at least."""
        # In `bfloat16`, nearly equal scores become equal, and exponentials have large rounding errors. The
        # paper computes only this step in `float32` and calls that *selective precision*: tensors sent to
        # other devices stay in `bfloat16`. `torch.autocast` would undo it.
        #
        # :::{deviation} the paper, appendix C, and the released code
        # During training they multiply `x` by random numbers near one, so that other experts are tried too.
        # Ours always routes the same token in the same way.
        # :::
        wide, device = torch.promote_types(x.dtype, torch.float32), x.device.type
        device = device if torch.amp.is_autocast_available(device) else "cpu"
        with torch.autocast(device, enabled=False):
            return F.linear(x.to(wide), self.router.weight.to(wide)).softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        # Queues are in the order of positions: all first tokens of the batch come before all second tokens.
        # So no token loses its place to a later token of any text.
        tokens = x.transpose(0, 1).flatten(0, 1)  # [seq * batch, d_model]
        gate, chosen = self.probabilities(tokens).max(dim=-1)
        # An expert takes its fair share and a little more (equation 3):
        #
        # $$\text{capacity} = \frac{\text{tokens}}{E} \cdot \text{capacity factor}$$
        #
        # So all experts have the same number of rows, and their work is one batched product. Unused rows stay
        # empty. A token whose queue is full is *dropped*: the layer adds nothing to it, and the residual
        # connection passes it on unchanged.
        #
        # :::{deviation} the paper, equation 3, and the released code
        # The code rounds down, with a minimum of four places; we round up, so that every expert has one. For
        # evaluation it allows twice the fair share. We then have room for every token, because the result for
        # a text must not depend on the other texts of its batch. That costs $E$ times the multiply-adds, most
        # of them for empty rows. Inference servers sort tokens into groups of unequal size instead.
        # :::
        capacity = tokens.size(0)
        if self.training:
            capacity = math.ceil(tokens.size(0) / self.experts * self.capacity_factor)
        place = places(chosen, self.experts)
        # Each token's row among the rows of all experts. Dropped tokens go to one more row, the last.
        #
        # :::{deviation} the released code
        # It routes by a product with a tensor of ones and zeros, `[tokens, experts, capacity]`, which suits
        # TPUs. Its cost grows with the square of the number of tokens; the cost of copying rows does not.
        # :::
        rows = self.experts * capacity
        row = torch.where(place < capacity, chosen * capacity + place, rows)
        sent = tokens.new_zeros(rows + 1, tokens.size(1)).index_copy(0, row, tokens)
        grouped = sent[:rows].view(self.experts, capacity, x.size(-1))
        # The layer itself is unchanged.
        answers = super().forward(grouped).flatten(0, 1)
        # Back to the original order. A row of zeros at the end is the result for dropped tokens.
        answers = F.pad(answers, (0, 0, 0, 1))[row] * gate[:, None].to(x.dtype)
        y = torch.unflatten(answers, 0, (x.size(1), x.size(0))).transpose(0, 1)
        if self.training and torch.is_grad_enabled():
            y = AddLoss.apply(y, self.auxiliary_loss(x))
        return y

    def auxiliary_loss(self, x: Tensor) -> Tensor:
        r"""
        Return the *load-balancing loss* (equations 4 to 6), where $f_i$ is the share of tokens that choose
        expert $i$, and $P_i$ is the mean of its probability:

        $$\alpha\,E \sum_i f_i P_i$$

        It is $\alpha$ if all shares are equal. The count $f$ has no gradient. Through $P$, the probability of
        an expert falls faster, the more tokens choose it.
        """
        p = self.probabilities(x.flatten(0, 1))
        chosen = F.one_hot(p.argmax(dim=-1), self.experts).to(p.dtype)
        shares, mean_p = chosen.mean(dim=0), p.mean(dim=0)
        return self.balance * self.experts * (shares * mean_p).sum()


if __name__ == "__main__":
    # ## Token by token
    #
    # The same formulas in a loop over tokens, slow but easy to check, give the same result.
    def one_by_one(layer: SwitchFeedForward, x: Tensor) -> Tensor:
        first, second = layer.expand, layer.contract
        tokens = x.transpose(0, 1).flatten(0, 1)
        capacity = math.ceil(len(tokens) / layer.experts * layer.capacity_factor)
        y, taken = torch.zeros_like(tokens), [0] * layer.experts
        for t, token in enumerate(tokens):
            p = (token @ layer.router.weight.T).softmax(dim=-1)
            i = int(p.argmax())
            if taken[i] < capacity:
                taken[i] += 1
                hidden = layer.activation(token @ first.weight[i] + first.bias[i])
                y[t] = p[i] * (hidden @ second.weight[i] + second.bias[i])
        return y.view(x.size(1), x.size(0), -1).transpose(0, 1)

    torch.manual_seed(0)
    layer, x = SwitchFeedForward(64, 256).double(), torch.randn(4, 25, 64).double()
    with torch.no_grad():
        expected = one_by_one(layer, x)
        difference = (layer(x) - expected).abs().max()
    dropped = (expected == 0).all(dim=-1).sum()
    print(f"{dropped} of 100 tokens dropped; largest difference {difference:.0e}")


if __name__ == "__main__":
    # ## Which tokens affect each other?
    #
    # During training, tokens compete for places. Take four texts of 32 tokens and change something: how many
    # results change elsewhere? Later tokens never affect earlier ones, so the layer is causal. But during
    # training texts of a batch take places from each other, and fewer tokens have fewer places. In evaluation
    # no token is dropped, and each result depends on its own token only.
    from IPython.display import display

    from labml_primer.training.table import Table

    class Narrow(SwitchFeedForward):
        capacity_factor = 0.75

    def moved(layer: SwitchFeedForward, change: str) -> str:
        torch.manual_seed(1)
        x = torch.randn(4, 32, 64)
        other = x.clone()
        with torch.no_grad():
            if change == "cut":
                pairs = layer(x[:, :16]), layer(x)[:, :16]
            elif change == "later":
                other[0, 16:] = torch.randn(16, 64)
                pairs = layer(x)[:, :16], layer(other)[:, :16]
            else:
                other[0, :16] = torch.randn(16, 64)
                pairs = layer(x)[1:, 16:], layer(other)[1:, 16:]
        count = (pairs[0] - pairs[1]).abs().amax(dim=-1).gt(1e-6).sum()
        return f"{count:3d} of {pairs[0][..., 0].numel()}"

    layer = Narrow(64, 256)
    rows = [
        (what, moved(layer.train(), change), moved(layer.eval(), change))
        for change, what in (
            ("later", "end of text 1 changed: beginnings affected"),
            ("early", "its beginning changed: ends of others affected"),
            ("cut", "texts cut in half: beginnings affected"),
        )
    ]
    display(Table(("change", "in training", "in evaluation"), rows))
    # So generation with a {term}`KV cache` is exact ({doc}`../transformer/generation`).
    #
    # Besides its two matrix products, the layer sorts and copies tokens, and it multiplies 25% more rows.
    # {doc}`/benchmarks/speed` has its time over a dense layer's.


if __name__ == "__main__":
    # ## How small can the balancing loss be?
    #
    # The loss without $\alpha$, for two experts. It is 1 if shares and probabilities are uniform. In the last
    # row three of four tokens choose the same expert, and yet the loss is 7/8, the lowest value that two
    # experts can have: if a share $f$ of the tokens chooses the first with $p \approx 1/2$ and the others
    # choose the second with certainty, it is $2f^2 - 3f + 2$.
    def uneven(p: Tensor) -> float:
        shares = F.one_hot(p.argmax(dim=-1), 2).float().mean(dim=0)
        return float(2 * (shares * p.mean(dim=0)).sum())

    near = torch.tensor([[0.501, 0.499]])
    cases = {
        "half and half, certain": torch.eye(2),
        "all to one, certain": torch.tensor([[1.0, 0.0]]),
        "all to one, undecided": near,
        "three undecided, one certain": torch.cat(
            [near.expand(3, 2), 1 - torch.eye(2)[:1]]
        ),
    }
    losses = [(name, f"{uneven(p):.3f}") for name, p in cases.items()]
    display(Table(("tokens", "loss"), losses))
    # :::{deviation} the paper, section 2.2
    # It says that the loss is smallest if shares and probabilities are uniform. That is true if $P = f$, when
    # the loss is $E\sum_i f_i^2$, but the two can differ. The loss pushes in the right direction, but does
    # not measure the balance.
    # :::


if __name__ == "__main__":
    # ## The gain
    #
    # In Primer's paper, a Switch Transformer is far ahead of the Transformer at equal steps, and Primer's
    # changes help both. Table 5, on C4, has the perplexities of the two after 525 thousand steps and a
    # million, and of each Primer after as much compute as its own baseline used:
    #
    # | model | parameters | 525K | 1M |
    # |---|---|---|---|
    # | Transformer | 110M | 20.61 | 19.82 |
    # | Primer-EZ | 110M | 19.83 | 19.07 |
    # | Switch Transformer | 550M | 17.16 | 16.32 |
    # | Switch Primer | 550M | 16.56 | 15.82 |
    #
    # It reports speed-ups of 1.45 and 1.56 for Switch Primer over Switch Transformer. It does not state the
    # number of experts; the released configuration, `switch_transformer.gin`, has 32 in every fourth layer.
    # The table has the sizes, in millions, with 8 to 64 experts in every layer, or in every second, third or
    # fourth. The size with 32 in every fourth is closest to 550 million.
    from labml_primer.transformer.language_model import Config, LanguageModel

    with torch.device("meta"):
        dense = LanguageModel(
            Config(32_128, d_model=768, heads=12, d_ff=3072, layers=12, max_seq=512)
        )
    size = sum(weight.numel() for weight in dense.parameters())
    expert = sum(
        w.numel() for w in dense.get_submodule("blocks.0.feed_forward").parameters()
    )
    sizes = []
    for every in (1, 2, 3, 4):
        totals = [
            size + 12 // every * ((count - 1) * expert + count * 768)
            for count in (8, 16, 32, 64)
        ]
        sizes.append((every, *(f"{number / 1e6:,.0f}" for number in totals)))
    display(Table(("every", "8 experts", "16", "32", "64"), sizes))


if __name__ == "__main__":
    # ## Where the tokens went
    #
    # Train three small models with four experts: a Switch Transformer, one with the two changes of
    # {doc}`../primer/primer_ez`, and one without the balancing loss.
    from dataclasses import replace

    from labml_primer.primer.primer_ez import MultiDConvHeadAttention, SquaredReLU
    from labml_primer.training import load_corpus, train

    class FourExperts(SwitchFeedForward):
        experts = 4

    class Unbalanced(FourExperts):
        balance = 0.0

    corpus = load_corpus()
    switch = Config(
        corpus.vocab_size,
        d_model=64,
        heads=4,
        d_ff=256,
        layers=2,
        max_seq=64,
        feed_forward=FourExperts,
    )
    entrants = {
        "Switch Transformer": switch,
        "Switch Primer": replace(
            switch, attention=MultiDConvHeadAttention, activation=SquaredReLU
        ),
        "Switch, no balance": replace(switch, feed_forward=Unbalanced),
    }
    models = {}
    for name, config in entrants.items():
        torch.manual_seed(0)
        models[name] = LanguageModel(config)
        train(models[name], corpus, name=name, steps=300, batch=8, seq=64)

    # The share of each expert in each of the two layers, for 4,096 characters of a held-out play, and the
    # share of tokens that would have been dropped during training. Without the balancing loss, some experts
    # are overloaded while others get few tokens, and more tokens are dropped.
    def choices(model: LanguageModel, tokens: Tensor) -> list[Tensor]:
        """Return the chosen experts of each layer, in the shape of `tokens`."""
        seen: list[Tensor] = []
        hooks = [
            module.register_forward_pre_hook(
                lambda layer, x: seen.append(layer.probabilities(x[0]).argmax(dim=-1))
            )
            for module in model.modules()
            if isinstance(module, SwitchFeedForward)
        ]
        with torch.no_grad():
            model.eval()(tokens)
        for hook in hooks:
            hook.remove()
        return seen

    text = corpus.validation[: 64 * 64].view(64, 64)
    routed = []
    for name, model in models.items():
        for number, chosen in enumerate(choices(model, text), 1):
            shares = F.one_hot(chosen, 4).float().mean(dim=(0, 1))
            lost = [
                (places(batch.T.flatten(), 4) >= 16 * 64 / 4 * 1.25).float().mean()
                for batch in chosen.split(16)
            ]
            numbers = (*shares, torch.stack(lost).mean())
            routed.append((name, number, *(f"{share:.0%}" for share in numbers)))
    columns = ("model", "layer", *(f"expert {i}" for i in range(4)), "dropped")
    display(Table(columns, routed))
    # The characters of each expert of Switch Primer: each column is a character, and its four cells show how
    # its occurrences are divided among the experts.
    import matplotlib.pyplot as plt

    common = (
        torch.bincount(text.flatten(), minlength=corpus.vocab_size).topk(40).indices
    )
    common = common.sort().values
    names = [{"\n": "\\n", " ": "·"}.get(c, c) for c in corpus.decode(common)]
    both = choices(models["Switch Primer"], text)
    fig, axes = plt.subplots(2, 1, figsize=(7, 3), layout="constrained", sharex=True)
    for number, (ax, chosen) in enumerate(zip(axes, both, strict=True), 1):
        shares = torch.stack(
            [torch.bincount(chosen[text == c], minlength=4).float() for c in common]
        )
        ax.imshow(
            (shares / shares.sum(dim=1, keepdim=True)).T, aspect="auto", vmin=0, vmax=1
        )
        ax.set(ylabel=f"layer {number}", yticks=range(4))
    axes[1].set_xticks(range(40), names)
    plt.show()
    # Some lines of a play, each character in the colour of its expert in the second layer:
    fig, ax = plt.subplots(figsize=(7, 2), layout="constrained")
    ax.set(xlim=(0, 62), ylim=(-8, 0.5))
    ax.axis("off")
    lines, at = [], 0
    for line in corpus.decode(text.flatten()).splitlines(keepends=True):
        if len(line) > 20:
            lines.append((line, both[1].flatten()[at : at + len(line)].tolist()))
        at += len(line)
    for row, (line, experts) in enumerate(lines[8:16]):
        for column, character in enumerate(line[:62].rstrip()):
            ax.text(
                column, -row, character, color=f"C{experts[column]}", family="monospace"
            )
    plt.show()
    # The experts have specialized, although the loss does not require it. In the first layer most characters
    # almost always go to the same expert, and the characters of an expert are related: one gets the vowels,
    # for example, another the spaces and punctuation.


if __name__ == "__main__":
    # ## In short
    #
    # - In a mixture of experts, a router sends each token to one of $E$ feed-forward layers: $E$ times the
    #   parameters for the same work.
    # - The router learns through the factor $p_i$. A load-balancing loss keeps the experts' shares closer to
    #   equal.
    # - In training, each expert has a fixed capacity, and tokens beyond it are dropped. In evaluation none
    #   are.
    #
    # ## Exercise
    #
    # :::{exercise} Everything to one expert
    # The router sends each of 128 tokens to the first of eight experts with certainty. How many are dropped
    # during training, and how large is the balancing loss? From which capacity factor on is none dropped?
    # :::
    # :::{solution}
    # The first expert takes $\tfrac{128}{8} \cdot 1.25 = 20$ tokens, and 108 are dropped. Because
    # $f_1 = P_1 = 1$, the loss is $\alpha E$, its maximum. With a capacity factor of $E$ none is dropped, but
    # then every expert multiplies as many rows as there are tokens.
    # :::
    crowded = SwitchFeedForward(d_model=16, d_ff=32)
    with torch.no_grad():
        crowded.router.weight.zero_()
        crowded.router.weight[0] = 100.0
        x = torch.rand(4, 32, 16)  # nothing is negative, so the first score is large
        dropped = (crowded(x) == 0).all(dim=-1).sum()
        loss = float(crowded.auxiliary_loss(x))
    print(f"{dropped} dropped, loss {loss:.3f}, balanced {crowded.balance:.3f}")
    assert dropped == 108 and abs(loss - 8 * crowded.balance) < 1e-6

    # Most of the paper's larger runs use the same code base, T5, with other positions, another task and
    # another optimizer: {doc}`t5`.
