"""Count each amount of text that the recorded runs read, and record what the counts reach.

    .venv/bin/python -m experiments.harness.counts

It takes about a minute. `experiments/results/counts.json` has an entry for each text and amount: the losses
of the orders from 0, the uniform guess, in nats per character, as the mean of the reported plays. `windows`
are the windows of the learning curves. `whole` are the whole plays in windows that follow one another, as a
model reads them after its last step. `text` are the plays without windows, so no context is cut.

The counts are those of the text that seed 0 reads. A run draws windows at random, so it reads some places
several times and others never; each place that it has read counts once.
"""

import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from experiments.harness.plan import Plan, read_plans
from experiments.harness.provenance import surroundings
from experiments.harness.tasks import whole_places
from experiments.harness.texts import load_texts
from experiments.records.counts import COUNTS, key
from experiments.records.lines import write_json
from experiments.records.runs import HELD_OUT, RESULTS
from labml_primer.training.counted import CountsOfRead, places_read
from labml_primer.training.counting import losses
from labml_primer.training.loop import held_out_windows

HIGHEST = {"characters": 7, "subwords": 5, "code": 9}
"""The highest order that is counted."""


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


def counted(data: str, steps: int, batch: int, seq: int) -> dict[str, Any]:
    """Return the entry of a text and an amount."""
    texts = load_texts(data)
    places = places_read(len(texts.train), steps=steps, batch=batch, seq=seq)
    counts = CountsOfRead(texts.train, places, HIGHEST[data], texts.vocab_size)
    names = HELD_OUT[data][1:]

    def reported(windows: Iterable[Tensor]) -> list[float]:
        plays = zip(names, windows, strict=True)
        each = [losses(counts, text) / texts.characters[play] for play, text in plays]
        return [round(nats, 6) for nats in torch.stack(each).mean(dim=0).tolist()]

    plays = [texts.held_out[play] for play in names]
    return {
        "data": data,
        "tokens": len(places),
        "windows": reported(held_out_windows(play, seq) for play in plays),
        "whole": reported(play[whole_places(play, seq)] for play in plays),
        "text": reported(play[None] for play in plays),
    }


def main() -> None:
    torch.set_num_threads(1)
    here, entries = surroundings(), {}
    if here["commit"].endswith("+"):
        sys.exit("the code is modified, so its record could not be reported; commit it")
    for data, steps, batch, seq in amounts(read_plans().values()):
        entry = counted(data, steps, batch, seq)
        entries[key(data, steps, batch, seq)] = entry
        order, loss = min(enumerate(entry["text"]), key=lambda pair: pair[1])
        print(f"{data}, {entry['tokens']:,} tokens: {order}-gram {loss:.3f}")
    write_json(RESULTS / COUNTS, here | {"counts": entries})


if __name__ == "__main__":
    main()
