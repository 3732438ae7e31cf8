"""The recorded counts are those of the text that the runs read, and every run has them."""

import json

import pytest
from built_book import nightly

from experiments.harness.counts import amounts, counted
from experiments.harness.plan import Plan
from experiments.harness.texts import load_texts
from experiments.records.counts import COUNTS, LENGTHS, best_counts, counts_of, key
from experiments.records.runs import RESULTS

ENTRIES = json.loads((RESULTS / COUNTS).read_text(encoding="utf-8"))["counts"]


def test_every_amount_of_text_that_a_finished_plan_reads_is_counted(
    plans: dict[str, Plan],
) -> None:
    finished = amounts(plan for plan in plans.values() if not plan.unfinished)
    every = {key(*amount) for amount in amounts(plans.values())}
    assert {key(*amount) for amount in finished} <= ENTRIES.keys() <= every
    for data in ("characters", "code"):  # of subwords, where they are learned
        assert len(load_texts(data).train) == LENGTHS[data]
    for entry in ENTRIES.values():
        assert entry["tokens"] <= LENGTHS[entry["data"]], "each token once"


@pytest.mark.parametrize("data", ["characters", nightly("subwords")])
def test_recorded_counts_are_computed_again(plans: dict[str, Plan], data: str) -> None:
    shown = amounts(plan for plan in plans.values() if not plan.unfinished)
    amount = min(
        (each for each in shown if each[0] == data),
        key=lambda each: each[1] * each[2] * each[3],
    )
    again, recorded = counted(*amount), ENTRIES[key(*amount)]
    assert again["tokens"] == recorded["tokens"]
    for reading in ("windows", "whole", "text"):
        assert again[reading] == pytest.approx(recorded[reading], abs=2e-6)


def test_an_amount_that_is_not_counted_names_the_command_that_counts_it() -> None:
    with pytest.raises(ValueError, match=r"experiments\.harness\.counts"):
        counts_of("characters", 7, "windows")


def test_counts_that_see_more_of_a_text_predict_it_better() -> None:
    for data, steps in (("characters", 1200), ("subwords", 1200)):
        assert (
            best_counts(data, steps, "text")[1] <= best_counts(data, steps, "whole")[1]
        )
