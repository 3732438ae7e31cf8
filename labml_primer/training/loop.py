r"""
# Training

One loop trains every model of this book, so that only the models differ.

How does a model learn from plain text without any labels? The text is its own label. A {term}`language model`
reads the characters $c_1 \dots c_{t-1}$ and gives each character of the alphabet a probability of coming
next. Training compares this prediction with $c_t$, the character that does come, and adjusts the model's
{term}`parameters`, the numbers it computes with, so that $c_t$ becomes a little more probable. That lowers
the {term}`loss`, the mean of $-\log p(c_t)$ ({doc}`counting`).

The picture shows one step, with the simplest neural language model there is: a table with one row per
character. A real step reads a {term}`batch` of windows at once. The chapter builds the parts of the loop
(batches, loss, step, evaluation, learning rate), and at the end trains such a table on the plays. Its best
possible loss is known, because it can be computed by counting pairs of characters.

:::{picture} training
:::

Source: {cite:t}`vaswani2017attention`, section 5.3, for the optimizer and its learning rate;
{cite:t}`loshchilov2019decoupled` for weight decay; {cite:t}`pascanu2013difficulty` for gradient clipping.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from operator import index

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.training.corpus import Corpus
from labml_primer.training.progress import Progress

if __name__ == "__main__":
    # ## From scores to probabilities
    #
    # A model returns a score for every character. These scores are its {term}`logits` $z$ and can be any real
    # numbers. {term}`Softmax` turns them into probabilities, which are positive and sum to one:
    #
    # $$\operatorname{softmax}(z)_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$
    #
    # Only differences between scores count, because a number added to all of them cancels. In the table, with
    # an alphabet of four characters, each logit is 1 less than the one above it, so each probability is
    # smaller by a factor of $e \approx 2.7$.
    from IPython.display import display

    from labml_primer.training.table import Table

    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    probabilities = logits.softmax(dim=-1)
    display(
        Table(
            ["character", "logit", "probability"],
            [
                [character, f"{z:.1f}", f"{p:.3f}"]
                for character, z, p in zip("etao", logits, probabilities, strict=True)
            ],
        )
    )

    # Suppose that "e" comes next. The {term}`cross-entropy` is $-\log p$ of "e". `F.cross_entropy` takes
    # logits and computes softmax and logarithm in one step, which is faster and does not overflow.
    e = torch.tensor(0)
    loss = F.cross_entropy(logits, e)
    torch.testing.assert_close(loss, -probabilities[0].log())
    print(f"cross-entropy {loss:.3f} nats, perplexity {loss.exp():.3f}")


def check_length(text: Tensor, seq: int, what: str = "a text") -> None:
    """Raise `ValueError` unless a window of `seq + 1` characters fits into `text`."""
    if not 1 <= seq < len(text):
        raise ValueError(f"seq {seq} does not fit {what} of {len(text)} characters")


def draw_windows(text: Tensor, batch: int, seq: int, seed: int, step: int) -> Tensor:
    """
    ## A batch of windows

    Return a {term}`batch`: `batch` windows of `seq + 1` consecutive characters from random places in `text`,
    `[batch, seq + 1]`.

    A window is used twice. Without its last character it is the input; without its first it is the *target*,
    the same text shifted by one: each position's target is the character that comes after it. So one window
    has `seq` predictions to learn from. There are no epochs: some places are read again, and others never.

    The windows depend only on `seed` and `step`. Two models trained with the same seed read the same text in
    the same order, so they can be compared more precisely.
    """
    check_length(text, seq)
    generator = torch.Generator().manual_seed(seed_of_step(seed, step))
    # On the CPU, as the generator is, even if new tensors are on another device by default.
    with torch.device("cpu"):
        starts = torch.randint(len(text) - seq, (batch, 1), generator=generator)
        return text[starts + torch.arange(seq + 1)]


def seed_of_step(seed: int, step: int) -> int:
    """
    Return the seed for what is random in one step of a run: another one for each seed and step, as far as the
    32 bits that PyTorch's generator uses allow.
    """
    seed, step = index(seed), index(step)  # also NumPy's integers, and no floats
    if 0 <= seed < 4294 and 0 <= step < 1_000_003:  # all different, below 2**32
        return seed * 1_000_003 + step
    digest = sha256(f"{seed} {step}".encode()).digest()
    return int.from_bytes(digest[:4])


if __name__ == "__main__":
    # Two windows of 28 characters from Shakespeare's plays. Each character of a target is predicted from the
    # input character directly above it and those to the left of that. A line break is shown as `|`.
    from labml_primer.training.corpus import load_corpus

    corpus = load_corpus()
    V = corpus.vocab_size
    for window in draw_windows(corpus.train, batch=2, seq=28, seed=0, step=1):
        for name, part in (("input", window[:-1]), ("target", window[1:])):
            print(f"{name:7s}", corpus.decode(part).replace("\n", "|"))


def next_character_loss(model: nn.Module, windows: Tensor) -> Tensor:
    """
    ## The loss

    Return the mean cross-entropy over `windows`, `[batch, seq + 1]`. Every character except the first of its
    window is predicted from those before it. The model maps tokens `[batch, seq]` to logits
    `[batch, seq, vocab_size]`.

    :::{deviation} the Transformer's paper, section 5.4
    It trains with label smoothing of 0.1: the target gets 0.9 of the probability, and all tokens share the
    rest. Here the target gets all of it, as in the measure of a model, its perplexity.
    :::
    """
    logits = model(windows[:, :-1])
    # Half precision has too few digits for a sum of exponentials, so use single precision at least.
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


if __name__ == "__main__":
    # ## One step
    #
    # A training step has three parts. The {term}`forward pass` computes the loss of a batch. The
    # {term}`backward pass` computes its *gradient* $g$: for each parameter, how fast the loss grows with it.
    # The *update* moves each parameter $\theta$ a little against its $g$. In its simplest form that is
    # *gradient descent*:
    #
    # $$\theta \leftarrow \theta - \text{rate} \cdot g$$
    #
    # Here is the step of the picture, with the simplest model: a table `[V, V]` with a row of logits for each
    # character read. All logits start at zero, so each of five characters has probability 1/5.
    letters = " beot"
    table = nn.Embedding(5, 5)
    nn.init.zeros_(table.weight)
    window = torch.tensor([[letters.index(c) for c in "to be"]])  # [batch, seq + 1]

    loss = next_character_loss(table, window)  # forward
    loss.backward()  # backward: the gradient is in `table.weight.grad`
    gradient = table.weight.grad
    assert gradient is not None
    with torch.no_grad():
        table.weight -= 4.0 * gradient  # update
    after = next_character_loss(table, window)
    print(f"loss before {loss:.3f}, after {after:.3f}")

    # The gradient of a logit is its probability, minus 1 if its character is the target, divided by the
    # number of predictions, here 4. So it is negative for the target: more of it would lower the loss. After
    # "t" came "o". The row of "e" has only zeros, because "e" was predicted and never read.
    display(
        Table(
            ["row", *map(repr, letters)],
            [
                [repr(letter), *(f"{slope:.2f}" for slope in gradient[i])]
                for i, letter in enumerate(letters)
                if letter in "te"
            ],
        )
    )
    # In a larger model, the backward pass applies the chain rule through all layers. PyTorch does that for
    # every model of this book. The *optimizer* decides how far to move. This book's is {term}`AdamW`.


if __name__ == "__main__":
    # ## The optimizer: AdamW
    #
    # :::{deeper}
    # The formulas behind `torch.optim.AdamW`, and one step of it.
    # :::
    #
    # *Adam* {cite:p}`kingma2015adam` keeps two running averages for each parameter, $m$ of its gradient and
    # $v$ of the square of its gradient, and moves it by the first divided by the square root of the second:
    #
    # $$\begin{aligned}
    # m &\leftarrow \beta_1 m + (1 - \beta_1)\, g \\
    # v &\leftarrow \beta_2 v + (1 - \beta_2)\, g^2 \\
    # \theta &\leftarrow \theta - \text{rate} \cdot \Big( \frac{\hat m}{\sqrt{\hat v} + \varepsilon}
    #   + \lambda \theta \Big)
    # \end{aligned}$$
    #
    # The constants $\beta_1$ and $\beta_2$, just below 1, set how many past steps the averages cover. Both
    # averages start at 0, so $\hat m$ and $\hat v$ are $m$ and $v$ divided by the sum of their weights after
    # $s$ steps, $1 - \beta^s$. The tiny $\varepsilon$ prevents a division by zero.
    #
    # The quotient is about one in size if the gradient always has the same sign, and smaller if the sign
    # changes. So the learning rate limits how far a parameter moves in a step, whatever the scale of its
    # gradient.
    #
    # The last term is {term}`weight decay`: each step shrinks every parameter by a small fraction $\lambda$
    # of itself, times the rate, so that weights do not grow without need. The W in {term}`AdamW` means that
    # decay is outside the quotient. If it were part of the gradient, it would also be divided by
    # $\sqrt{\hat v}$ {cite:p}`loshchilov2019decoupled`.
    #
    # The demo takes one step at rate 0.1. A loss 1000 times as large gives the same step. The three
    # parameters, whose gradients differ by up to 200 times, all move by 0.1 too:
    for factor in (1.0, 1000.0):
        parameter = nn.Parameter(torch.tensor([1.0, -2.0, 0.01]))
        optimizer = torch.optim.AdamW([parameter], lr=0.1, weight_decay=0.0)
        (factor * parameter.square().sum()).backward()
        before = parameter.detach().clone()
        optimizer.step()
        print(
            f"loss times {factor:6.0f}: step", *(f"{s:.3f}" for s in parameter - before)
        )


def held_out_windows(text: Tensor, seq: int) -> Tensor:
    """
    ## Evaluation on held-out plays

    The training loss is measured on text that the model learns from and may know by heart. So three whole
    plays are kept out of training, *A Midsummer Night's Dream*, *Macbeth* and *Richard II*, and the loss on
    them, the *validation loss*, is the result. If random pages were held out instead, the same names and
    phrases would be in both parts, and knowing them would look like knowing English.

    Return `VALIDATION_WINDOWS` windows spread evenly over `text`, `[windows, seq + 1]`.
    """
    check_length(text, seq)
    last = len(text) - seq - 1
    # Single precision has 24 bits, so in a long text the last start could be rounded up past the end.
    with torch.device("cpu"):
        starts = torch.linspace(0, last, VALIDATION_WINDOWS).long().clamp(max=last)
        return text[starts[:, None] + torch.arange(seq + 1)]


VALIDATION_WINDOWS = 64
"""The number of windows of the held-out plays that an evaluation reads."""


@torch.no_grad()
def held_out_loss(model: nn.Module, text: Tensor, batch: int, seq: int) -> float:
    """
    Return the mean loss over the held-out windows of `text`.

    The model is in evaluation mode meanwhile, without {term}`dropout`: some models set random features to
    zero in training, so that they depend on no single one, and use all of them otherwise.
    """
    windows = held_out_windows(text, seq).to(next(model.parameters()).device)
    # Read `batch` windows at a time, as in training, to save memory. The result does not depend on it.
    with in_mode(model, training=False):
        total = sum(
            float(next_character_loss(model, part)) * len(part)
            for part in torch.split(windows, batch)
        )
    return total / len(windows)


@contextmanager
def in_mode(model: nn.Module, training: bool) -> Iterator[None]:
    """Set the mode of all layers for a block. At its end, each layer has its own mode again."""
    modes = {layer: layer.training for layer in model.modules()}
    model.train(training)
    try:
        yield
    finally:
        for layer, before in modes.items():
            if layer.training != before:
                layer.train(before)


def warmed_up_rate(step: int, rate: float, warmup: int) -> float:
    r"""
    ## The learning rate

    The {term}`learning rate` scales how far one training step moves the parameters. It rises linearly over
    the first $w$ steps, the {term}`warm-up`, and then falls in proportion to one over the square root of the
    step $s$:

    $$\text{rate}(s) = \text{rate} \cdot \min\!\left(\frac{s}{w}, \sqrt{\frac{w}{s}}\right)$$

    At first it must be small, because the averages that the optimizer keeps are based on a few noisy batches.
    Later it must fall, because steps of constant size jump around the minimum instead of reaching it. Steps
    count from 1 (at step 0, before the first, the rate is 0), and $w$ is `warmup`.

    :::{deviation} the Transformer's paper, section 5.3
    It derives the peak from the model's width, $1 / \sqrt{d_\text{model}\, w}$. Here the peak is an argument.
    :::
    """
    return rate * min(step / warmup, math.sqrt(warmup / max(step, 1)))


if __name__ == "__main__":
    # The loop's default learning rate (teal) peaks at 0.004 after 100 steps. By step 400, four times as many,
    # it has halved. A longer warm-up (orange) delays the peak and raises the rate after it.
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
    for warmup, color in ((100, "C0"), (300, "C1")):
        rates = [warmed_up_rate(step, 4e-3, warmup) for step in range(1, 1001)]
        ax.plot(range(1, 1001), rates, color=color)
        ax.text(1010, rates[-1], f"warmup {warmup}", color=color, va="center")
    ax.set(xlabel="step", ylabel="learning rate", xlim=(0, 1180), ylim=(0, 4.4e-3))
    plt.show()


@dataclass
class History:
    """
    ## The record of a run

    Each list has one entry per evaluation. Losses are in nats per character, and `train_loss` is the mean
    over the steps since the previous evaluation. `seconds` is the time spent on training, without
    evaluations. On a CPU it is the CPU time of all cores, which leaves out other programs; otherwise it is
    wall-clock time.
    """

    steps: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@contextmanager
def kept_in_error(history: History) -> Iterator[None]:
    """If a run is interrupted, give the exception an attribute `history`, so that no measurement is lost."""
    try:
        yield
    except BaseException as stop:
        vars(stop)["history"] = history
        raise


def train(
    model: nn.Module,
    corpus: Corpus,
    *,
    name: str,
    steps: int = 400,
    batch: int = 16,
    seq: int = 128,
    rate: float = 4e-3,
    warmup: int = 100,
    seed: int = 0,
    evaluations: int = 10,
    report: Callable[[str], object] | None = None,
) -> History:
    """
    ## The loop

    Train `model` in place to predict the next character, and return its history. `model` maps tokens
    `[batch, seq]` to logits `[batch, seq, vocab_size]`. It is evaluated `evaluations` times at equal
    intervals, the last time after the last step. `report`, such as `print`, then gets a line with the step
    and both losses.

    The result depends only on the model, the seed and the other arguments. The global random state of the CPU
    and of CUDA's GPUs does not affect it and is the same afterwards. A second call reads the same windows
    again, unless it has another `seed`.

    Raises `ValueError` for impossible settings, and `FloatingPointError` as soon as a loss is infinite or not
    a number (`nan`). This error, and the `KeyboardInterrupt` of Ctrl-C, have what was measured until then as
    their attribute `history`.
    """
    for label, number in (("steps", steps), ("batch", batch), ("warmup", warmup)):
        if number < 1:
            raise ValueError(f"{label} {number} is not positive")
    if not 1 <= evaluations <= steps:
        raise ValueError(f"{evaluations} evaluations do not fit {steps} steps")
    check_length(corpus.train, seq, "a text to learn from")
    check_length(corpus.validation, seq, "a held-out text")

    device = next(model.parameters()).device
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    # $\beta_2 = 0.98$, as in the Transformer's paper, averages over about 50 steps. PyTorch's default, 0.999,
    # averages over about 1000, which is more than most runs here have.
    #
    # :::{deviation} the Transformer's paper, section 5.3
    # It uses Adam, without weight decay, and $\varepsilon = 10^{-9}$. Ours is PyTorch's $10^{-8}$.
    # :::
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    history = History()
    reports = {steps * i // evaluations for i in range(1, evaluations + 1)}
    losses: list[float] = []
    seconds = 0.0
    # {term}`Dropout` draws from the global generator. It is seeded at each step, and restored at the end.
    borrowed = torch.random.fork_rng(range(torch.cuda.device_count()))
    in_training = in_mode(model, training=True)
    with borrowed, in_training, Progress(name) as progress, kept_in_error(history):
        for step in progress.steps(range(1, steps + 1)):
            start = clock()
            torch.manual_seed(seed_of_step(seed, step))
            for group in optimizer.param_groups:
                group["lr"] = warmed_up_rate(step, rate, warmup)
            windows = draw_windows(corpus.train, batch, seq, seed, step).to(device)
            # Forward: the loss of this batch.
            loss = next_character_loss(model, windows)
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                raise FloatingPointError(
                    f"{name}: the loss is {losses[-1]} at step {step}"
                )
            # Backward: the gradient of every parameter.
            optimizer.zero_grad()
            loss.backward()
            # {term}`Gradient clipping`: if all gradients together, as one long vector, are longer than 1,
            # they are scaled down to length 1. So one unusual batch cannot distort Adam's averages for many
            # steps.
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            seconds += clock() - start
            # In a terminal, labml shows a line with step, loss and time left. Without labml, ten lines are
            # printed. Elsewhere nothing is shown.
            progress.report(step, losses[-1])
            if step in reports:
                held_out = held_out_loss(model, corpus.validation, batch, seq)
                if not math.isfinite(held_out):
                    raise FloatingPointError(
                        f"{name}: the validation loss is {held_out} at step {step}"
                    )
                history.steps.append(step)
                history.train_loss.append(sum(losses) / len(losses))
                history.validation_loss.append(held_out)
                history.seconds.append(seconds)
                losses.clear()
                if report:
                    both = (
                        f"loss {history.train_loss[-1]:.3f}, validation {held_out:.3f}"
                    )
                    report(f"{name}: step {step}, {both}")
    return history


if __name__ == "__main__":
    # ## The best that a table can do
    #
    # Now the loop trains the table of all {value}`V` characters. A table sees one character, so it cannot be
    # better than the counts of pairs. How good are these? Here are the losses of three guesses on the text
    # that was counted, where nothing is new and no mixing is needed:
    #
    # - The *uniform* guess gives each of the $V$ characters probability $1/V$, so its loss is $\log V$.
    # - The *unigram* guess knows how frequent each character is. Its loss is the entropy of the frequencies,
    #   $-\sum_c p(c) \log p(c)$.
    # - The *bigram* guess knows how frequently each character $b$ follows each character $a$. Its loss is
    #   $-\sum_{a,b} p(a,b) \log p(b \mid a)$. A model with a lower loss must use more than the last
    #   character.
    pairs = torch.bincount(corpus.train[:-1] * V + corpus.train[1:], minlength=V * V)
    pairs = pairs.view(V, V).double()  # [character, next character]
    joint = pairs / pairs.sum()
    single = joint.sum(dim=0)
    uniform = math.log(V)
    unigram = -torch.special.xlogy(single, single).sum().item()
    following = joint / joint.sum(dim=1, keepdim=True)
    bigram = -torch.special.xlogy(joint, following).sum().item()
    guesses = {"uniform": uniform, "unigram": unigram, "bigram": bigram}
    display(
        Table(
            ["guess", "loss, nats per character", "perplexity"],
            [
                [name, f"{nats:.3f}", f"{math.exp(nats):.1f}"]
                for name, nats in guesses.items()
            ],
            f"{len(corpus.train):,} characters to learn from, {V} of them different",
        )
    )


if __name__ == "__main__":
    # ## The simplest language model
    #
    # It is the table of the picture, `[V, V]`: a row for each character, with a logit for each possible next
    # one. The softmax of a row can be any distribution, so the best table is the bigram guess. At the start
    # all logits are zero, which is the uniform guess.
    def new_table() -> nn.Embedding:
        table = nn.Embedding(V, V)
        nn.init.zeros_(table.weight)
        return table

    tables = {rate: new_table() for rate in (4e-3, 1e-1)}
    histories = {
        rate: train(table, corpus, name=f"rate {rate}", rate=rate, evaluations=20)
        for rate, table in tables.items()
    }

    # Compare training with counting. A pair that never occurs in training must not get probability zero,
    # because its first occurrence in a held-out play would then cost an infinite loss. So one is added to
    # each count.
    counted = new_table()
    counted.weight.data = (pairs + 1).log().float()
    best = held_out_loss(counted, corpus.validation, batch=16, seq=128)
    print(f"the counted table        {best:.3f} nats per character on held-out plays")
    for rate, history in histories.items():
        print(f"trained at rate {rate:5.3f}   {history.validation_loss[-1]:.3f}")

    # The loss on held-out plays by step. Grey lines are the three guesses' losses above. At rate 0.1 (teal)
    # the table passes the unigram guess within 60 steps and ends within 0.01 of the counted table. At 0.004
    # (orange), a typical rate for a small Transformer, it has only just passed the unigram guess after 400
    # steps.
    #
    # The reason is that a step changes a logit by at most about the learning rate. To give "h" after "t" its
    # probability, logits must be several units apart, but 400 steps of at most 0.004 add up to only about
    # one. In a Transformer every logit depends on many parameters, so small steps of each suffice.
    fig, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (rate, history), color in zip(histories.items(), ("C1", "C0"), strict=True):
        curve = [uniform, *history.validation_loss]
        ax.plot([0, *history.steps], curve, color=color)
        ax.text(405, curve[-1] + 0.1, f"rate {rate}", color=color)
    for name, nats in guesses.items():
        ax.axhline(nats, color="C5", linewidth=0.8)
        ax.text(495, nats - 0.05, name, color="C5", ha="right", va="top")
    ax.set(xlabel="step", ylabel="loss, nats per character")
    ax.set(xlim=(0, 500), ylim=(2.2, 4.6))
    plt.show()

    # What has the table learned? Each row shows the most probable next characters after one character, with
    # their probabilities, and in parentheses the frequencies that were counted. The two differ by about 5
    # percentage points at most.
    learned = tables[1e-1].weight.detach().softmax(dim=-1)
    rows = []
    for character in "qt,\n":
        row = corpus.symbols.index(character)
        top = learned[row].topk(4)
        rows.append(
            [repr(character)]
            + [
                f"{corpus.symbols[i]!r} {p:.0%} ({following[row, i]:.0%})"
                for p, i in zip(top.values, top.indices.tolist(), strict=True)
            ]
        )
    display(Table(["after", "first", "second", "third", "fourth"], rows))


if __name__ == "__main__":
    # ## Seeds
    #
    # :::{deeper}
    # How far two runs of the same model differ, from the choice of windows alone.
    # :::
    #
    # The {term}`random seed` of a run determines which windows it reads and which features {term}`dropout`
    # removes. (It does not determine the initial parameters, which are drawn earlier, when the model is
    # made.) The first two lines have the same seed and agree in every digit. The others differ slightly. If
    # one run of each of two models differs by less than this, it may be noise. Several seeds, the same for
    # both models, can decide.
    for seed in (0, 0, 1, 2):
        history = train(
            new_table(), corpus, name="seed", steps=100, rate=0.1, seed=seed
        )
        print(f"seed {seed}: {history.validation_loss[-1]:.6f}")


if __name__ == "__main__":
    # ## In short
    #
    # - A neural language model gives every possible next character a probability: the softmax of its logits.
    #   The loss is the cross-entropy $-\log p$ of the true character.
    # - A training step draws windows, computes the loss and its gradient, clips the gradient, and lets AdamW
    #   change each parameter by at most about the learning rate, which warms up and then falls.
    # - The result of a run is its loss on plays that were held out whole. Its seed determines its
    #   windows and its dropout.
    #
    # ## Exercise
    #
    # :::{exercise} Sure or steady
    # One model gives the true character probability 1/2 half of the time and 1/8 otherwise. Another gives it
    # 1/4 every time. Which has the lower loss? Compute both perplexities.
    # :::
    # :::{solution}
    # Both losses are equal. The mean of $\log 2$ and $\log 8 = 3 \log 2$ is $2 \log 2 = \log 4$, so both
    # perplexities are 4. Perplexity is one over the *geometric* mean of the probabilities. By the arithmetic
    # mean, 5/16, the first model would have looked better.
    # :::
    sure, steady = torch.tensor([1 / 2, 1 / 8]), torch.tensor([1 / 4, 1 / 4])
    perplexities = [(-p.log()).mean().exp() for p in (sure, steady)]
    print(*(f"perplexity {perplexity:.3f}" for perplexity in perplexities))
    torch.testing.assert_close(perplexities[0], perplexities[1])
    assert sure.mean() > steady.mean()

    # :::{exercise} Write it: cross-entropy
    # Write the loss of one prediction without `F.cross_entropy`. `logits` is `[vocab_size]`, `target` the
    # number of the token that comes next.
    # :::
    from labml_primer.training.exercises import Case, check_answer

    def cross_entropy(logits: Tensor, target: int) -> Tensor:
        raise NotImplementedError  # your code instead of this line

    cases: list[Case] = [
        ((torch.zeros(4), 2), math.log(4), "equal logits: probability 1/4 for each"),
        (
            (torch.tensor([2.0, 1.0, 0.0, -1.0]), 0),
            0.4402,
            "the first table of this chapter gives the token probability 0.644",
        ),
        ((torch.tensor([1e3, 0.0]), 1), 1e3, "e to the power of 1000 is too large"),
    ]
    check_answer(cross_entropy, cases)

    # :::{solution}
    # $-\log \big(e^{z_t} / \sum_j e^{z_j}\big) = \log \sum_j e^{z_j} - z_t$. `logsumexp` subtracts the
    # largest logit first, so nothing overflows.
    # :::
    def solved(logits: Tensor, target: int) -> Tensor:
        return logits.logsumexp(dim=-1) - logits[target]

    assert check_answer(solved, cases)

    # This table sees one character only. A Transformer sees many tokens. What else can a token be?
    # {doc}`../transformer/tokens`.
