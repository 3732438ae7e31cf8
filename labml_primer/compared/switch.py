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

There are $E$ times as many parameters in the feed-forward layers, and a token does the same work as before
(and the little that it takes to be sent). The choice itself has no gradient. The factor $p_i$ has one: where an
expert's answer helps, its odds for such tokens rise.

That leaves two questions, which are most of this chapter. Processors want equal heaps of work, and nobody
promised that each expert is chosen equally often. And an expert that nobody chooses learns nothing, so nobody
chooses it.

Source: {cite:t}`fedus2022switch`, sections 2.1, 2.2 and 2.4, equations 1 to 6; {cite:t}`so2021primer`, section
4.2 and Table 5.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.transformer.feed_forward import PositionwiseFeedForward


def places(chosen: Tensor, experts: int) -> Tensor:
    r"""
    ## Queues

    `chosen` `[tokens]` says which expert each token wants. The result says how many before it want the same:
    its place in that expert's queue, from 0. `[tokens]`.
    """
    # Each token is a one in the column of its expert. The running sum down a column counts those so far.
    ones = chosen[:, None] == torch.arange(experts, device=chosen.device)
    return (ones.cumsum(dim=0) - 1).gather(1, chosen[:, None]).squeeze(1)


class Experts(nn.Linear):
    """
    ## As many layers as experts

    `experts` linear layers side by side, each for rows of its own: `[experts, rows, d_in]` to
    `[experts, rows, d_out]`, in one batched product.
    """

    def __init__(self, experts: int, d_in: int, d_out: int):
        super().__init__(d_in, d_out)
        # :::{deviation} paper, section 2.4
        # It draws from a normal distribution with variance $0.1 / d_\text{in}$, a tenth of what is usual, for
        # large models to be stable. Ours are small, and drawn as all layers of this book: uniformly, with
        # variance $\tfrac13 / d_\text{in}$.
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

    `[batch, seq, d_model]` to the same, as {py:class}`~labml_primer.transformer.feed_forward.PositionwiseFeedForward`,
    whose two matrices are here {py:class}`Experts`. A subclass that sets these changes them:

    * `experts`: how many there are.
    * `capacity_factor`: how much more than its fair share an expert takes while training.
    * `balance`: the weight $\alpha$ of the loss that keeps the shares alike.

    :::{deviation} paper, section 2.3
    There every other feed-forward layer is a switch, and here each is: a
    {py:class}`~labml_primer.transformer.model.Config` has one block for all layers.
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
        # In `bfloat16` two experts that are almost level are level, and the exponentials round badly. The paper
        # takes this one step to `float32` and back, *selective precision*: what is sent to other machines
        # stays narrow. `torch.autocast` would undo it.
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
        # :::{deviation} paper, equation 3, and released code
        # The code rounds down, and we round up, so that no expert is without a place. It has twice the fair
        # share for evaluation. We then have room for all: what a text gets must not depend on the texts beside
        # it. That costs $E$ times the products, most of them with empty rows. Programs that serve many sort
        # tokens into heaps of unequal size instead.
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
