r"""
# Switch Transformer

Eight feed-forward layers in the place of one, and each token goes through a single one of them: more
parameters at the same work.

Must every token meet every parameter? A full stop and the middle of a name want different things of a layer.

A *mixture of experts* keeps $E$ feed-forward layers, the experts, and lets a small *router* choose among them
for each token. In the Switch Transformer it chooses one. With $W_r$ for the router's matrix:

$$
\begin{aligned}
p(x) &= \operatorname{softmax}(x\,W_r) \\
i &= \operatorname{argmax}_j\; p_j(x) \\
y &= p_i(x)\,\operatorname{FFN}_i(x)
\end{aligned}
$$

The feed-forward layers have $E$ times as many parameters, and a token is as much work as before, but for the
little that it takes to send it to its expert. How does the router learn? The choice itself has no gradient.
The factor $p_i$ has one: where an expert's answer helps, its odds for such tokens rise.

Two difficulties are left, and they are most of this chapter. Processors want equal heaps of work, and
nothing says that each expert is chosen equally often. And an expert that is not chosen learns nothing, so it
goes on not being chosen.

Source: {cite:t}`fedus2022switch`, sections 2.1 to 2.4, equations 1 to 6; the authors' released code (Mesh
TensorFlow, `transformer/moe.py`); {cite:t}`so2021primer`, section 4.2 and Table 5.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.feed_forward import PositionwiseFeedForward


def places(chosen: Tensor, experts: int) -> Tensor:
    r"""
    ## Queues

    Each expert has a queue. `chosen` `[tokens]` says which expert each token wants. The result says how many
    tokens before it want the same: its place in that expert's queue, from 0. `[tokens]`.
    """
    # Each token is a one in the column of its expert. The running sum down a column counts those so far.
    ones = chosen[:, None] == torch.arange(experts, device=chosen.device)
    return (ones.cumsum(dim=0) - 1).gather(1, chosen[:, None]).squeeze(1)


if __name__ == "__main__":
    # Ten tokens, three experts. With four places for each, the last token that wants expert 0 is left out.
    chosen = torch.tensor([0, 2, 0, 0, 1, 0, 2, 0, 1, 2])
    place = places(chosen, experts=3)
    print("token  ", *range(10))
    print("wants  ", *chosen.tolist())
    print("place  ", *place.tolist())
    print("dropped", *("x" if p >= 4 else "." for p in place.tolist()))


class Experts(nn.Linear):
    """
    ## As many layers as experts

    `experts` linear layers side by side, each for rows of its own: `[experts, rows, d_in]` to
    `[experts, rows, d_out]`, in one batched product.
    """

    def __init__(self, experts: int, d_in: int, d_out: int):
        super().__init__(d_in, d_out)
        # :::{deviation} the paper, section 2.4
        # It draws from a normal distribution, cut off at both ends, of variance $0.1 / d_\text{in}$. That is
        # a tenth of what is usual, for large models to be stable. Ours are small, and drawn as all layers of
        # this book: uniformly, with variance $\tfrac13 / d_\text{in}$.
        # :::
        bound = 1 / math.sqrt(d_in)
        self.weight = nn.Parameter(
            torch.empty(experts, d_in, d_out).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.empty(experts, 1, d_out).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


class SwitchFeedForward(PositionwiseFeedForward):
    r"""
    ## The layer

    `[batch, seq, d_model]` to the same. It is
    {py:class}`~labml_primer.transformer.feed_forward.PositionwiseFeedForward`, with
    {py:class}`~labml_primer.compared.switch.Experts` for its two matrices. A subclass that sets these changes
    them:

    * `experts`: how many there are.
    * `capacity_factor`: how much more than its fair share an expert takes while training.
    * `balance`: the weight $\alpha$ of the loss that keeps the shares alike.

    :::{deviation} the paper
    There every other feed-forward layer is a switch, in the runs of Primer's authors every fourth is, and
    here each: a {py:class}`~labml_primer.transformer.model.Config` has one block for all layers.
    :::

    Raises `ValueError` for less than one expert, and for a capacity factor that is not positive.
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

    def odds(self, x: Tensor) -> Tensor:
        """$p$, `[tokens, experts]`, in `float32` at least."""
        # In `bfloat16` two experts that are almost level are level, and the exponentials round badly. The
        # paper takes this one step to `float32` and back, *selective precision*: what is sent to other
        # machines stays narrow. `torch.autocast` would undo it.
        #
        # :::{deviation} the paper, appendix C, and the released code
        # While training they multiply `x` by random numbers near one, so that other experts have a chance.
        # Ours sends the same token the same way each time.
        # :::
        wide = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(x.to(wide), self.router.weight.to(wide)).softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        # Who comes first stands first in the queue. All first tokens of the batch go before all second ones:
        # then nothing that comes later in any text can take a token's place.
        tokens = x.transpose(0, 1).flatten(0, 1)  # [seq * batch, d_model]
        gate, chosen = self.odds(tokens).max(dim=-1)
        # An expert takes a fair share, and a little more (equation 3):
        #
        # $$\text{capacity} = \frac{\text{tokens}}{E} \cdot \text{capacity factor}$$
        #
        # All experts have equally many rows then, and their work is one batched product. What is free stays
        # empty, and who does not fit is *dropped*: the layer adds nothing to it, and the residual connection
        # carries it on.
        #
        # :::{deviation} the paper, equation 3, and the released code
        # The code rounds down, to four places at the least, and we round up, so that none is without a place.
        # It has twice the fair share for evaluation. We then have room for all: what a text gets must not
        # depend on the texts beside it. That costs $E$ times the products, most of them with empty rows.
        # Programs that serve many users sort tokens into heaps of unequal size instead.
        # :::
        capacity = tokens.size(0)
        if self.training:
            capacity = math.ceil(tokens.size(0) / self.experts * self.capacity_factor)
        place = places(chosen, self.experts)
        # Each token's row among all rows of all experts; one more row, the last, for those who are dropped.
        rows = self.experts * capacity
        row = torch.where(place < capacity, chosen * capacity + place, rows)
        sent = tokens.new_zeros(rows + 1, tokens.size(1)).index_copy(0, row, tokens)
        grouped = sent[:rows].view(self.experts, capacity, x.size(-1))
        # The layer itself is what it was.
        answers = super().forward(grouped).flatten(0, 1)
        # Back to where they came from. Behind the last row stand zeros.
        answers = F.pad(answers, (0, 0, 0, 1))[row] * gate[:, None].to(x.dtype)
        return answers.unflatten(0, (x.size(1), x.size(0))).transpose(0, 1)

    def auxiliary_loss(self, x: Tensor) -> Tensor:
        r"""
        What keeps the shares alike (equations 4 to 6). $f_i$ is the share of the tokens that want expert $i$,
        $P_i$ the mean of its odds:

        $$\alpha\,E \sum_i f_i P_i$$

        It is $\alpha$ where all are alike. $f$ is a count and has no gradient; through $P$, the odds of an
        expert sink the faster, the more tokens want it.

        The training loop of this book asks each layer that has a method of this name, with what the layer was
        called with.
        """
        odds = self.odds(x.flatten(0, 1))
        wanted = F.one_hot(odds.argmax(dim=-1), self.experts).to(odds.dtype)
        shares, mean_odds = wanted.mean(dim=0), odds.mean(dim=0)
        return self.balance * self.experts * (shares * mean_odds).sum()


if __name__ == "__main__":
    # ## Token by token
    #
    # The same by the formulas, with a loop over tokens, which no one would want to wait for.
    def one_by_one(layer: SwitchFeedForward, x: Tensor) -> Tensor:
        first, second = layer.expand, layer.contract
        tokens = x.transpose(0, 1).flatten(0, 1)
        capacity = math.ceil(len(tokens) / layer.experts * layer.capacity_factor)
        y, taken = torch.zeros_like(tokens), [0] * layer.experts
        for t, token in enumerate(tokens):
            odds = (token @ layer.router.weight.T).softmax(dim=-1)
            i = int(odds.argmax())
            if taken[i] < capacity:
                taken[i] += 1
                hidden = layer.activation(token @ first.weight[i] + first.bias[i])
                y[t] = odds[i] * (hidden @ second.weight[i] + second.bias[i])
        return y.view(x.size(1), x.size(0), -1).transpose(0, 1)

    torch.manual_seed(0)
    layer, x = SwitchFeedForward(64, 256).double(), torch.randn(4, 25, 64).double()
    with torch.no_grad():
        expected = one_by_one(layer, x)
        difference = (layer(x) - expected).abs().max()
    dropped = (expected == 0).all(dim=-1).sum()
    print(f"{dropped} of 100 tokens dropped; largest difference {difference:.0e}")


if __name__ == "__main__":
    # ## Who can change whose answer?
    #
    # While training, places are few, and a token that comes early takes one from a token that comes late.
    # Four texts of 32 tokens; which of them move when something else is changed?
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
    print(f"{'':48s}{'training':>10s}{'else':>11s}")
    for change, what in (
        ("later", "the end of text 1: beginnings that moved"),
        ("early", "its beginning: ends of other texts that moved"),
        ("cut", "texts cut in half: beginnings that moved"),
    ):
        print(
            f"{what:48s}{moved(layer.train(), change):>10s}{moved(layer.eval(), change):>11s}"
        )
    # Nothing that comes later moves what came before: the layer is causal. But texts of a batch take places
    # from each other, and with fewer tokens there are fewer places. In evaluation nobody is dropped, and each
    # token is alone with its expert: so what was kept of a past can be trusted, see
    # {doc}`../transformer/generation`.


if __name__ == "__main__":
    # ## Is it fast?
    #
    # There and back for 1,024 tokens, 256 wide, over the time of a plain layer, which does as many products a
    # token. Beside ours, two other ways to group. The released code sends tokens by a product with a matrix
    # of ones and zeros, `[tokens, experts, capacity]`, which grows with the square of the tokens. And one can
    # go through the experts one after another.
    from functools import partial

    from labml_primer.training import median_seconds

    class ByProduct(SwitchFeedForward):
        def forward(self, x: Tensor) -> Tensor:
            tokens = x.flatten(0, 1)
            gate, chosen = self.odds(tokens).max(dim=-1)
            capacity = math.ceil(len(tokens) / self.experts * self.capacity_factor)
            place = places(chosen, self.experts)[:, None] == torch.arange(capacity)
            sent = F.one_hot(chosen, self.experts)[:, :, None] * place[:, None, :]
            grouped = torch.einsum("tec, td -> ecd", sent.to(x.dtype), tokens)
            answers = PositionwiseFeedForward.forward(self, grouped)
            back = sent * gate[:, None, None]
            return torch.einsum("tec, ecd -> td", back, answers).view_as(x)

    class OneAfterAnother(SwitchFeedForward):
        def forward(self, x: Tensor) -> Tensor:
            tokens = x.flatten(0, 1)
            gate, chosen = self.odds(tokens).max(dim=-1)
            y = torch.zeros_like(tokens)
            for i in range(self.experts):
                at = (chosen == i).nonzero().squeeze(1)
                hidden = tokens[at] @ self.expand.weight[i] + self.expand.bias[i]
                answers = self.activation(hidden) @ self.contract.weight[i]
                y = y.index_copy(0, at, answers + self.contract.bias[i])
            return (y * gate[:, None]).view_as(x)

    def there_and_back(module: nn.Module, x: Tensor) -> None:
        module(x).sum().backward()

    class Tight(SwitchFeedForward):
        capacity_factor = 1.0

    x = torch.randn(16, 64, 256, requires_grad=True)
    layers: dict[str, PositionwiseFeedForward] = {
        "plain": PositionwiseFeedForward(256, 1024),
        "ours, capacity factor 1": Tight(256, 1024),
        "ours, 1.25": SwitchFeedForward(256, 1024),
        "sent by a product, 1.25": ByProduct(256, 1024),
        "one after another": OneAfterAnother(256, 1024),
    }
    taken = median_seconds(
        {name: partial(there_and_back, module, x) for name, module in layers.items()}, 9
    )
    for name, module in layers.items():
        size = sum(p.numel() for p in module.parameters())
        print(
            f"{name:25s}{size / 1e6:6.2f}M parameters{taken[name] / taken['plain']:7.2f}"
        )


if __name__ == "__main__":
    # ## How small can the balancing loss be?
    #
    # Two experts, and the loss without $\alpha$. It is 1 where shares and odds are uniform.
    def uneven(odds: Tensor) -> float:
        shares = F.one_hot(odds.argmax(dim=-1), 2).float().mean(dim=0)
        return float(2 * (shares * odds.mean(dim=0)).sum())

    near = torch.tensor([[0.501, 0.499]])
    for name, odds in (
        ("half and half, certain", torch.eye(2)),
        ("all to one, certain", torch.tensor([[1.0, 0.0]])),
        ("all to one, undecided", near),
        (
            "three undecided, one certain",
            torch.cat([near.expand(3, 2), 1 - torch.eye(2)[:1]]),
        ),
    ):
        print(f"{name:30s}{uneven(odds):6.3f}")
    # :::{deviation} the paper, section 2.2
    # It says that the loss is smallest where shares and odds are uniform. If the odds were as uneven as the
    # shares, $P = f$, it would be $E\sum_i f_i^2$, and that is so. They need not be: in the last line three
    # of four tokens go to one expert, and the loss is below 1. It is a push in the right direction, not a
    # measure.
    # :::


if __name__ == "__main__":
    # ## A race
    #
    # Small models on the plays, with four experts where there are any. Switch Primer is Switch Transformer
    # with convolutions and squared ReLU, as {doc}`../primer/primer_ez` has them. The last one has no
    # balancing loss.
    from dataclasses import replace

    from labml_primer.primer.primer import PaperMultiDConvHeadAttention
    from labml_primer.primer.primer_ez import SquaredReLU, speedup_factor
    from labml_primer.training import load_corpus, train
    from labml_primer.transformer.model import Config, LanguageModel

    class FourExperts(SwitchFeedForward):
        experts = 4

    class Unbalanced(FourExperts):
        balance = 0.0

    corpus = load_corpus()
    transformer = Config(
        corpus.vocab_size, d_model=64, heads=4, d_ff=256, layers=2, max_seq=64
    )
    primer_ez = replace(
        transformer, attention=PaperMultiDConvHeadAttention, activation=SquaredReLU
    )
    entrants = {
        "Transformer": transformer,
        "Switch Transformer": replace(transformer, feed_forward=FourExperts),
        "Primer-EZ": primer_ez,
        "Switch Primer": replace(primer_ez, feed_forward=FourExperts),
        "Switch, no balance": replace(transformer, feed_forward=Unbalanced),
    }
    models, histories = {}, {}
    for name, config in entrants.items():
        torch.manual_seed(0)
        models[name] = LanguageModel(config)
        histories[name] = train(models[name], corpus, name=name, steps=300, seq=64)

    # ### What each costs, and what it brings
    #
    # Parameters and multiplications a token, in thousands; the time of a step there and back over the
    # Transformer's; the loss at the end; how many times as few steps were needed for the Transformer's last
    # loss.
    def step(model: LanguageModel, tokens: Tensor) -> None:
        model(tokens).logsumexp(dim=-1).sum().backward()

    tokens = corpus.train[: 16 * 64].view(16, 64)
    taken = median_seconds({n: partial(step, m, tokens) for n, m in models.items()}, 7)
    vanilla = histories["Transformer"]
    print(f"{'':19s}{'params':>7s}{'MACs':>7s}{'time':>6s}{'loss':>7s}{'x steps':>9s}")
    for name, history in histories.items():
        costs = models[name].costs().values()
        size, products = (sum(column) / 1e3 for column in zip(*costs, strict=True))
        factor = speedup_factor(
            vanilla.steps,
            vanilla.validation_loss,
            history.steps,
            history.validation_loss,
        )
        print(
            f"{name:19s}{size:6.0f}k{products:6.0f}k{taken[name] / taken['Transformer']:6.2f}"
            f"{history.validation_loss[-1]:7.3f}{factor:9.2f}"
        )
    # What Primer changes helps both. The experts do not, in so short a run: each sees a quarter of the text,
    # and what it says is multiplied by its odds, which begin between a third and a half. This is one seed,
    # and small differences are no finding.
    #
    # The paper of Primer has runs of more than a thousand times as many steps, and there the experts are far
    # ahead at equal steps. Table 5, on C4: the perplexities of the Transformer and the Switch Transformer
    # after 525 thousand steps and a million, and of each Primer after as much computing as its own baseline
    # took.
    #
    # | model | parameters | 525K | 1M |
    # |---|---|---|---|
    # | Transformer | 110M | 20.61 | 19.82 |
    # | Primer-EZ | 110M | 19.83 | 19.07 |
    # | Switch Transformer | 550M | 17.16 | 16.32 |
    # | Switch Primer | 550M | 16.56 | 15.82 |
    #
    # It counts a speed-up by 1.45 and 1.56 for Switch Primer over Switch Transformer. How many experts there
    # were is not said; the released configuration, `switch_transformer.gin`, has 32 in every fourth layer.
    # Does that come to 550 million? In millions, for 8 to 64 experts in each layer, or in every second, third
    # or fourth:
    with torch.device("meta"):
        dense = LanguageModel(
            Config(32_128, d_model=768, heads=12, d_ff=3072, layers=12, max_seq=512)
        )
    size = sum(weight.numel() for weight in dense.parameters())
    expert = sum(
        w.numel() for w in dense.get_submodule("blocks.0.feed_forward").parameters()
    )
    print("experts " + "".join(f"{count:8d}" for count in (8, 16, 32, 64)))
    for every in (1, 2, 3, 4):
        totals = [
            size + 12 // every * ((count - 1) * expert + count * 768)
            for count in (8, 16, 32, 64)
        ]
        print(f"every {every} " + "".join(f"{number / 1e6:8.0f}" for number in totals))
    # It does, and no other number here comes as near.


if __name__ == "__main__":
    # ## Where the tokens went
    #
    # What each expert was asked for, in 4,096 characters of a play that no model has read: its share of them
    # in each of the two layers, and what share of them would have been dropped while training.
    def choices(model: LanguageModel, tokens: Tensor) -> list[Tensor]:
        """Who was chosen in each layer, in the shape of `tokens`."""
        seen: list[Tensor] = []
        hooks = [
            module.register_forward_pre_hook(
                lambda layer, x: seen.append(layer.odds(x[0]).argmax(dim=-1))
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
    for name in ("Switch Transformer", "Switch Primer", "Switch, no balance"):
        for number, chosen in enumerate(choices(models[name], text), 1):
            shares = F.one_hot(chosen, 4).float().mean(dim=(0, 1))
            lost = [
                (places(batch.T.flatten(), 4) >= 16 * 64 / 4 * 1.25).float().mean()
                for batch in chosen.split(16)
            ]
            print(
                f"{name:19s} layer {number} "
                + "".join(f"{share:6.0%}" for share in shares)
                + f"   dropped {torch.stack(lost).mean():4.0%}"
            )
    # Without the balancing loss some experts are crowded while others wait, and more tokens are dropped. The
    # loss on text need not show it in so short a run.
    #
    # Which characters an expert was asked for, in Switch Primer: a column is a character, and says how its
    # occurrences are shared out.
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
    # And some lines of a play, each character in the colour of its expert in the second layer:
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
    # Nobody told the experts what to care for. In the first layer most characters go to the same expert
    # nearly each time, and those of one expert have something in common: vowels in one, say, and what stands
    # between words in another.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} When all want the same
    # Eight experts, and every one of 128 tokens is sure that it wants the first. How many are dropped while
    # training, and how large is the balancing loss? From which capacity factor on is nobody dropped?
    # :::
    # :::{solution}
    # The first expert takes $\tfrac{128}{8} \cdot 1.25 = 20$ tokens, and 108 are dropped. As $f_1 = P_1 = 1$,
    # the loss is $\alpha E$, the most that it can be. A factor of $E$ has room for all, and all experts then
    # work through as many rows as there are tokens.
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

    # Most of the paper's larger runs have one more thing in common, the code base that they were made with:
    # {doc}`t5`.
