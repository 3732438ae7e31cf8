"""The recorded counts are those of the text that the runs read, and every run has them."""

import json
import math

import pytest
import torch
from built_book import nightly

from experiments.harness.counts import amounts, counted, two_sided_loss
from experiments.harness.plan import Plan
from experiments.harness.texts import load_texts
from experiments.records.counts import (
    COUNTS,
    LENGTHS,
    best_counts,
    cached_counts,
    key,
    two_sided_counts,
)
from experiments.records.runs import RESULTS
from labml_primer.training.counting import KneserNey

ENTRIES = json.loads((RESULTS / COUNTS).read_text(encoding="utf-8"))["counts"]


def test_every_amount_of_text_that_a_finished_plan_reads_is_counted(
    plans: dict[str, Plan],
) -> None:
    finished = amounts(plan for plan in plans.values() if not plan.unfinished)
    every = {key(*amount) for amount in amounts(plans.values())}
    missing = {key(*amount) for amount in finished} - ENTRIES.keys()
    assert not missing, (
        f"not counted: {missing}. Commit, run .venv/bin/python -m experiments.harness.counts (10 minutes)"
    )
    assert ENTRIES.keys() <= every
    for data in ("characters", "code"):  # of subwords, where they are learned
        assert len(load_texts(data).train) == LENGTHS[data]
    for entry in ENTRIES.values():
        assert entry["tokens"] <= LENGTHS[entry["data"]], "each token once"


@pytest.mark.parametrize("data", ["characters", nightly("subwords")])
def test_recorded_counts_are_computed_again(plans: dict[str, Plan], data: str) -> None:
    shown = amounts(plan for plan in plans.values() if not plan.unfinished)
    amount = min(
        (each for each in shown if each[0] == data and key(*each) in ENTRIES),
        key=lambda each: each[1] * each[2] * each[3],
    )
    again, recorded = counted(*amount), ENTRIES[key(*amount)]
    assert again["tokens"] == recorded["tokens"]
    assert again["order"] == recorded["order"]
    for reading in ("windows", "whole", "text"):
        assert again[reading] == pytest.approx(recorded[reading], abs=2e-6)
    assert again["cache"] == pytest.approx(recorded["cache"], abs=2e-6)


def test_an_amount_that_is_not_counted_names_the_command_that_counts_it() -> None:
    with pytest.raises(ValueError, match=r"experiments\.harness\.counts"):
        best_counts("characters", 7, "windows")


def test_counts_that_see_more_of_a_text_predict_it_better() -> None:
    for data, steps in (("characters", 1200), ("subwords", 1200)):
        cut, whole = (best_counts(data, steps, how)[1] for how in ("whole", "text"))
        assert whole <= cut
        assert cached_counts(data, steps, "whole") < cut
    assert two_sided_counts("characters", 1200, 64) < best_counts("characters", 1200)[1]


def test_two_sided_counts_predict_a_masked_token_from_those_before_and_after_it() -> (
    None
):
    # Between two equal tokens is another token than between two others; from one side, nobody can say which.
    pairs = torch.randint(2, (3000,), generator=torch.Generator().manual_seed(0))
    text = torch.stack([pairs[:-1], 2 + (pairs[:-1] ^ pairs[1:])], dim=1).flatten()
    counts = KneserNey(text[:4000], 3, 4)
    windows = text[4000:].unfold(0, 41, 41)
    found = two_sided_loss(counts, 3, windows)
    one_sided = -counts.probabilities(windows)[3, :, 2:].log().mean().item()
    assert one_sided == pytest.approx(math.log(2) / 2, abs=0.03)
    assert found < 0.6 * one_sided
