"""Factors of recorded runs and the tables of settings."""

import math
from typing import Any

import pytest

from experiments.measured.analysis import (
    last_loss,
    until,
)
from experiments.measured.settings import (
    MODELS,
    factor_table,
    loss_table,
    modern_table,
    read_rates,
    savings,
    savings_if_annealed,
    share_of_positions,
    written,
)
from experiments.records.query import Runs, read_runs


def run(seed: int, *loss: float, **more: Any) -> dict[str, Any]:
    costs = list(range(1, len(loss) + 1))
    return {"seed": seed, "loss": list(loss), "multiply_adds": costs} | more


def test_factors_are_those_of_seeds_that_both_have() -> None:
    runs = {
        "transformer": [run(0, 4.0, 3.0, 2.0, 1.0), run(1, 4.0, 3.0, 2.0, 1.0)],
        "mdha": [run(1, 2.0, 1.0, 0.5, 0.4), run(2, 9.0, 9.0, 9.0, 9.0)],
    }
    assert savings(runs, "mdha") == [2.0]
    assert savings(runs, "primer-ez") == savings({}, "mdha") == []


def test_factors_are_averaged_as_logarithms() -> None:
    mean, interval = written([2.0, 4.0, 8.0]).split(" (")
    assert mean == "4.00"
    low, high = map(float, interval.rstrip(")").split(" to "))
    reach = 4.303 * math.log(2) / 3**0.5
    assert high == pytest.approx(4 * math.exp(reach), rel=1e-2)
    assert low == pytest.approx(4 * math.exp(-reach), abs=0.01)


def test_two_factors_have_a_wide_interval_and_a_single_one_has_none() -> None:
    mean, low, _, high = written([2.0, 4.0]).replace("(", "").rstrip(")").split()
    assert mean == "2.83" and float(low) < 0.1 and float(high) > 100
    assert written([2.0]) == "2.00" and written([]) == ""


def test_share_of_positions_is_one_if_nothing_is_left() -> None:
    assert share_of_positions([4.0, 4.0], [1.0]) == pytest.approx(1)
    assert share_of_positions([4.0], [2.0, 2.0]) == pytest.approx(0.5)


def test_final_loss_is_that_of_whole_plays_if_measured() -> None:
    assert last_loss(run(0, 3.0, 2.0, whole=1.9)) == 1.9
    assert last_loss(run(0, 3.0, 2.0)) == 2.0
    # The whole plays were read after the last step only.
    assert last_loss(until(run(0, 3.0, 2.0, whole=1.9), 1)) == 3.0


def test_tables_have_a_row_for_each_setting_with_runs_and_every_model() -> None:
    for table, first, columns in (
        (loss_table(), 4, MODELS.values()),
        (factor_table(), 2, list(MODELS.values())[1:]),
    ):
        assert [*table.columns][first:] == [*columns]
        assert ["characters", "learned"] in [row[:2] for row in table.rows]
        assert all(table.rows[0])


def test_every_change_of_the_baseline_has_a_row_with_its_factor() -> None:
    none, *rows, counts = modern_table().rows
    assert counts[0] == "counts instead of a model"
    assert len(rows) == 6 and none[-1] == ""
    assert all(" to " in str(row[-1]) for row in rows)


def test_the_saving_of_annealed_runs_is_interpolated_between_two_lengths() -> None:
    def end(loss: float, cost: float) -> Runs:
        return [{"seed": 0, "loss": [loss], "multiply_adds": [cost]}]

    runs = {"transformer": end(2.0, 8.0), "primer-ez": end(1.0, 8.0)}
    for half, saved in ((2.0, 2.0), (3.0, 2**0.5)):
        runs["primer-ez-half"] = end(half, 4.0)
        assert savings_if_annealed(runs) == [pytest.approx(saved)]
    for half in (1.5, 1.0):  # the Transformer is worse, and beyond what was measured
        runs["primer-ez-half"] = end(half, 4.0)
        with pytest.raises(ValueError, match=f"2.000 is not within 1.000 to {half}"):
            savings_if_annealed(runs)
    runs["primer-ez-half"] = [end(3.0, 4.0)[0] | {"seed": 1}]
    with pytest.raises(ValueError, match="differ in their seeds"):
        savings_if_annealed(runs)


def test_models_that_kept_their_rate_have_the_same_runs_in_both_plans() -> None:
    assert read_rates()[1200] == read_runs(plan="today-rates")
