"""Record the small search that the chapter on programs shows: forty programs on a task of digits.

    python -m experiments.search.small

Its log has the form of the other searches' (`experiments.search.log`).
"""

import math
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from experiments.harness.provenance import surroundings
from experiments.records.runs import RESULTS
from experiments.search.log import appending
from experiments.search.searches import Candidate, Population, child, write_birth
from labml_primer.search.evolution import Evolution, train_over_hurdles
from labml_primer.search.programs import DNA, parse
from labml_primer.search.running import Program

PATH = RESULTS / "search" / "small.jsonl"
SIZE, TOURNAMENT, GENERATIONS = 10, 3, 3
DIGITS, SEQ, D_MODEL, BATCH, STEPS = 5, 12, 16, 8, 150

START = parse(
    """
    constants 0.0 1.0
    dimensions 8 8 16 8 4 1
    S0
      h2 = S1(h0, h0)
      h3 = ADD(h0, h2)
    S1
      h2 = CONV 1X1(h0, h0) d2
      h3 = MAX(h2, h2)
      h4 = CONV 1X1(h3, h3)
    """
)
"""A feed-forward layer with a residual connection. No operation reads another position."""


def texts(count: int, seed: int) -> Tensor:
    """Return texts in which nine of ten digits repeat the one two places before, `[count, SEQ]`."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(DIGITS, (count, SEQ), generator=generator)
    repeats = torch.rand(count, SEQ, generator=generator) < 0.9
    for i in range(2, SEQ):
        drawn[:, i] = torch.where(repeats[:, i], drawn[:, i - 2], drawn[:, i])
    return drawn


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    """Return the loss on all digits but the first two, which repeat nothing."""
    logits = model(batch[:, :-1])[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 2:].flatten())


def curve(dna: DNA, seed: int) -> Iterator[float]:
    """Train a program as the one block of a model, and yield its loss on other texts."""
    torch.manual_seed(seed)
    try:
        block = Program(dna, D_MODEL, SEQ - 1)
    except ValueError:  # too large
        yield math.nan
        return
    model = nn.Sequential(
        nn.Embedding(DIGITS, D_MODEL), block, nn.Linear(D_MODEL, DIGITS)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for batch in texts(BATCH * STEPS, seed=1).split(BATCH):
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        yield loss_of(model, texts(512, seed=2)).item()


def search(seed: int = 0) -> Population:
    """Return the search before its first individual."""
    return Evolution(
        lambda random: Candidate(START),
        child,
        seed=seed,
        size=SIZE,
        tournament=TOURNAMENT,
        hurdles=0,
    )


def record(path: Path) -> None:
    """Run the search, and write its log."""
    evolution = search()
    path.unlink(missing_ok=True)
    settings = {"seed": evolution.seed, "size": SIZE, "tournament": TOURNAMENT}
    with appending(path) as log:
        log.write(began=settings, **surroundings())
        for number in range(SIZE * (1 + GENERATIONS)):
            individual = evolution.ask()
            write_birth(log, individual)
            trained = curve(individual.program.dna, number)
            losses = train_over_hurdles(trained, individual.bars)
            evolution.tell(individual, losses)
            rejected = "" if losses else "not finite, or too large"
            rounded = [round(loss, 5) for loss in losses]
            log.write(ended=number, losses=rounded, rejected=rejected)


if __name__ == "__main__":
    torch.set_num_threads(1)
    record(PATH)
