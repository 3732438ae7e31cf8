"""Count each amount of text that the recorded runs read, and record what the counts reach.

    .venv/bin/python -m experiments.harness.counts

It takes about ten minutes. The counts are Kneser and Ney's, those of the chapter "Counting", of the text that
seed 0 reads. A run draws windows at random, so it reads some places several times and others never; each
place that it has read counts once.

`experiments/results/counts.json` has an entry for each text and amount: the losses of the orders from 0, the
uniform guess, to the longest that 64 bits can number, in nats per character, as the mean of the reported
texts. `windows` are the windows of the learning curves. `whole` are the whole texts in windows that follow
one another, as a model reads them after its last step. `text` are the texts without windows, so no context is
cut. The best `order` is chosen on the text that selects learning rates, in its windows, and so is the `cache`
that is mixed with it: the length of its n-grams, and its trust in the counts. On code the longest order is
the best, so still longer ones would be a little lower.

`two_sided` has what the same counts reach at BERT's task, in nats per masked character.
"""

import sys
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from experiments.harness.configuration import Run
from experiments.harness.plan import Plan, read_plans
from experiments.harness.provenance import surroundings
from experiments.harness.tasks import masked_language_modeling, whole_places
from experiments.harness.texts import Texts, load_texts
from experiments.records.counts import COUNTS, key
from experiments.records.lines import write_json
from experiments.records.runs import HELD_OUT, RESULTS
from labml_primer.training.counted import CountsOfRead, longest, places_read
from labml_primer.training.counting import Counts, with_window
from labml_primer.training.loop import held_out_windows

CACHES = [(n, trust) for n in (2, 3, 4, 5) for trust in (1, 2, 4, 8, 16, 32)]
"""The lengths of n-grams of a cache that are tried, each with its trust in the counts."""


def amounts(plans: Iterable[Plan]) -> list[tuple[str, int, int, int]]:
    """Return text, steps, batch and seq of what the plans' language models read, each amount once."""
    found: dict[str, tuple[str, int, int, int]] = {}
    for plan in plans:
        for run in plan.models.values():
            if not run.predicts_next:
                continue
            for steps in (plan.tuning_steps, run.steps):
                read = key(run.data, steps, run.batch, run.seq)
                found.setdefault(read, (run.data, steps, run.batch, run.seq))
    return [found[each] for each in sorted(found)]


def counts_read(texts: Texts, steps: int, batch: int, seq: int) -> CountsOfRead:
    """Return the counts of what a run with seed 0 reads."""
    places = places_read(len(texts.train), steps=steps, batch=batch, seq=seq)
    highest = longest(texts.vocab_size)
    return CountsOfRead(texts.train, places, highest, texts.vocab_size)


def mean_loss(p: Tensor) -> Tensor:
    """Return the losses `[...]` of probabilities `[..., windows, seq]`, in nats per token."""
    return -p[..., 1:].log().flatten(-2).mean(dim=-1)


def counted(data: str, steps: int, batch: int, seq: int) -> dict[str, Any]:
    """Return the entry of a text and an amount."""
    texts = load_texts(data)
    counts = counts_read(texts, steps, batch, seq)
    tuning, *names = HELD_OUT[data]
    windows = held_out_windows(texts.held_out[tuning], seq)
    p = counts.probabilities(windows)
    order = int(mean_loss(p).argmin())

    def with_this(cache: tuple[int, int], p: Tensor, windows: Tensor) -> Tensor:
        return mean_loss(with_window(p[order], windows, *cache, texts.vocab_size))

    cache = min(CACHES, key=lambda each: with_this(each, p, windows).item())
    entry: dict[str, Any] = {"data": data, "tokens": len(counts.places), "order": order}
    of_cache: dict[str, Any] = {"n": cache[0], "trust": cache[1]}
    readings: dict[str, Callable[[Tensor], Tensor]] = {
        "windows": lambda play: held_out_windows(play, seq),
        "whole": lambda play: play[whole_places(play, seq)],
        "text": lambda play: play[None],
    }
    for name, read in readings.items():
        each = []
        for play in names:
            windows = read(texts.held_out[play])
            p = counts.probabilities(windows)
            found = mean_loss(p)
            if name != "text":  # which is no window
                found = torch.cat([found, with_this(cache, p, windows)[None]])
            each.append(found / texts.characters[play])
        mean = torch.stack(each).mean(dim=0).tolist()
        losses = [round(nats, 6) for nats in mean]
        if name != "text":
            of_cache[name] = losses.pop()
        entry[name] = losses
    return entry | {"cache": of_cache}


def two_sided_loss(counts: Counts, order: int, windows: Tensor) -> float:
    """Return the loss of counts at BERT's task, in nats per masked token, with the masks of the runs.

    By Bayes' rule, the probability of a token between others is proportional to that after the tokens before
    it, times that of the tokens after it, given it. On either side, tokens count up to the next masked one.
    """
    mask = counts.vocab_size
    inputs = masked_language_modeling(mask).inputs
    source, target = inputs(windows, torch.Generator().manual_seed(0))
    each = torch.arange(mask)[:, None]

    def seen(tokens: Tensor) -> Tensor:
        known = int((tokens == mask).cumsum(0).eq(0).sum())
        return tokens[: min(known, order - 1)]

    losses = []
    for window, at in (source == mask).nonzero().tolist():
        before = seen(source[window, :at].flip(0)).flip(0).expand(mask, -1)
        after = seen(source[window, at + 1 :]).expand(mask, -1)
        p = counts.probabilities(torch.cat([before, each, after], dim=1))[order]
        log_p = p[:, before.size(1) :].log().sum(dim=1).log_softmax(dim=0)
        losses.append(-log_p[target[window, at]].item())
    return fmean(losses)


def two_sided(run: Run) -> dict[str, Any]:
    """Return what counts of the text that a run with BERT's task reads reach at it."""
    texts = load_texts(run.data)
    counts = counts_read(texts, run.steps, run.batch, run.seq)
    tuning, *reported = (
        held_out_windows(texts.held_out[name], run.seq) for name in HELD_OUT[run.data]
    )
    order = int(mean_loss(counts.probabilities(tuning)).argmin())
    each = [two_sided_loss(counts, order, windows) for windows in reported]
    return {"order": order, "windows": round(fmean(each), 6)}


def main() -> None:
    torch.set_num_threads(1)
    here, entries, plans = surroundings(), {}, read_plans()
    if here["commit"].endswith("+"):
        sys.exit("the code is modified, so its record could not be reported; commit it")
    for data, steps, batch, seq in amounts(plans.values()):
        entry = counted(data, steps, batch, seq)
        entries[key(data, steps, batch, seq)] = entry
        order, cache = entry["order"], entry["cache"]
        print(
            f"{data}, {entry['tokens']:,} tokens: {order}-gram "
            f"{entry['whole'][order]:.3f}, with a cache {cache['whole']:.3f}",
            flush=True,
        )
    run = next(iter(plans["masked"].models.values()))
    at_masks = {key(run.data, run.steps, run.batch, run.seq): two_sided(run)}
    print(f"two-sided: {at_masks}")
    write_json(RESULTS / COUNTS, here | {"counts": entries, "two_sided": at_masks})


if __name__ == "__main__":
    main()
