"""Tests of the tables that answer the question of the plans of today."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from experiments.today import (
    FOUR,
    Setting,
    final,
    gains,
    losses,
    seed_factors,
    share_of_positions,
    written,
)


def run(seed: int, *loss: float, **more: Any) -> dict[str, Any]:
    costs = list(range(1, len(loss) + 1))
    return {"seed": seed, "loss": list(loss), "multiply_adds": costs} | more


def test_most_complete_plan_with_runs_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gathered.json"
    few = {"transformer": [run(0, 3.0, 2.0)], "mdha": []}
    path.write_text(
        json.dumps({"first": few, "other": {"mdha-learned": [run(0, 1.0)]}})
    )
    assert Setting("", "", ["whole", "first"]).runs(str(path)).keys() == {"transformer"}
    assert Setting("", "", ["other"], "-learned").runs(str(path)).keys() == {"mdha"}
    assert Setting("", "", ["whole"]).runs(str(path)) == {}


def test_factors_are_those_of_seeds_that_both_have() -> None:
    runs = {
        "transformer": [run(0, 4.0, 3.0, 2.0, 1.0), run(1, 4.0, 3.0, 2.0, 1.0)],
        "mdha": [run(1, 2.0, 1.0, 0.5, 0.4), run(2, 9.0, 9.0, 9.0, 9.0)],
    }
    assert seed_factors(runs, "mdha") == [2.0]
    assert seed_factors(runs, "primer-ez") == seed_factors({}, "mdha") == []


def test_factors_are_averaged_as_logarithms() -> None:
    mean, interval = written([2.0, 8.0]).split(" (")
    assert mean == "4.00" and interval.endswith("2 seeds)")
    low, high = map(float, interval.split(", ")[0].split(" to "))
    reach = 12.706 * math.log(4) / 2
    assert high == pytest.approx(4 * math.exp(reach), rel=1e-2)
    assert low == pytest.approx(4 * math.exp(-reach), abs=0.01)
    assert written([2.0]) == "2.00 (1 seed)" and written([]) == "no run yet"


def test_share_of_positions_is_one_if_nothing_is_left() -> None:
    assert share_of_positions([4.0, 4.0], [1.0]) == pytest.approx(1)
    assert share_of_positions([4.0], [2.0, 2.0]) == pytest.approx(0.5)


def test_final_loss_is_that_of_whole_plays_if_measured() -> None:
    assert final(run(0, 3.0, 2.0, whole=1.9)) == 1.9
    assert final(run(0, 3.0, 2.0)) == 2.0


def test_tables_have_a_row_for_each_setting_and_every_model() -> None:
    for table, columns in (
        (losses(), FOUR.values()),
        (gains(), list(FOUR.values())[1:]),
    ):
        assert len(table.rows) == 4 and [*table.columns][2:] == [*columns]
        assert all(table.rows[0])
