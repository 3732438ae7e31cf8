"""Tests of the tables that answer the question of the plans of today."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis import final, of_factors, seed_factors, until
from experiments.records import RESULTS, read_runs
from experiments.today import (
    FOUR,
    KINDS,
    gains,
    losses,
    modern_changes,
    read_kinds,
    read_setting,
    read_settings,
    savings,
    share_of_positions,
    typical,
    written,
)

GATHERED = str(RESULTS / "gathered.json")


def run(seed: int, *loss: float, **more: Any) -> dict[str, Any]:
    costs = list(range(1, len(loss) + 1))
    return {"seed": seed, "loss": list(loss), "multiply_adds": costs} | more


def test_runs_of_a_model_are_those_of_the_plan_with_the_most(tmp_path: Path) -> None:
    path = tmp_path / "gathered.json"
    one, two = [run(0, 3.0, 2.0)], [run(0, 3.0, 2.0), run(1, 3.0, 2.0)]
    path.write_text(
        json.dumps(
            {
                "today-characters": {"transformer": one, "mdha": []},
                "today-first": {"transformer": two},
                "today-subwords-positions": {"mdha-learned": one, "mdha-rotary": two},
            }
        )
    )
    found = read_settings(str(path))
    assert found == {
        ("characters", "rotary"): {"transformer": two},
        ("subwords", "learned"): {"mdha": one},
        ("subwords", "rotary"): {"mdha": two},
    }


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


def test_two_factors_are_both_written() -> None:
    assert written([2.0, 8.0]) == "4.00 (2.00 to 8.00)"
    assert written([2.0]) == "2.00 (2.00)" and written([]) == ""


def test_share_of_positions_is_one_if_nothing_is_left() -> None:
    assert share_of_positions([4.0, 4.0], [1.0]) == pytest.approx(1)
    assert share_of_positions([4.0], [2.0, 2.0]) == pytest.approx(0.5)


def test_final_loss_is_that_of_whole_plays_if_measured() -> None:
    assert final(run(0, 3.0, 2.0, whole=1.9)) == 1.9
    assert final(run(0, 3.0, 2.0)) == 2.0
    # The whole plays were read after the last step only.
    assert final(until(run(0, 3.0, 2.0, whole=1.9), 1)) == 3.0


def test_tables_have_a_row_for_each_setting_with_runs_and_every_model() -> None:
    for table, first, columns in (
        (losses(GATHERED), 3, FOUR.values()),
        (gains(GATHERED), 2, list(FOUR.values())[1:]),
    ):
        assert [*table.columns][first:] == [*columns]
        assert ["characters", "learned"] in [row[:2] for row in table.rows]
        assert all(table.rows[0])


def test_what_is_said_of_the_four_kinds_of_positions_is_so() -> None:
    saved = {
        kind: savings(runs, "primer-ez") for kind, runs in read_kinds(GATHERED).items()
    }
    assert all(len(seeds) == 3 and min(seeds) > 1 for seeds in saved.values())
    least, *_, most = sorted(saved, key=lambda kind: typical(saved[kind]))
    assert (least, most) == ("rotary", "learned") and [*saved] == [*KINDS]
    t5 = read_kinds(GATHERED)["t5"]["transformer"]
    assert {run["rate"] for run in t5} == {0.008}


def test_what_is_said_of_the_baseline_of_today_is_so() -> None:
    runs = read_runs(GATHERED, "today-modern")
    ends = {model: [final(run) for run in seeds] for model, seeds in runs.items()}
    both = ends.pop("primer-ez")
    lowest = map(min, zip(*ends.values(), strict=True))
    assert all(map(float.__lt__, both, lowest)) and len(both) == 3
    assert all(map(float.__gt__, ends["squared-relu"], ends["modern"]))
    assert all(map(float.__gt__, ends["token-shift"], ends["modern"]))
    saved = {model: savings(runs, model, over="modern") for model in runs}
    _, low, high = of_factors(saved["canon-b"])
    assert low < 1 < high, "Canon-B is not shown to save"
    _, low, _ = of_factors(saved["mdha"])
    assert low > 1 > max(saved["squared-relu"])
    product = typical(saved["mdha"]) * typical(saved["squared-relu"])
    assert of_factors(saved["primer-ez"])[1] > product
    rates = {model: {run["rate"] for run in seeds} for model, seeds in runs.items()}
    assert rates.pop("mdha") == {0.002}
    assert all(rate == {0.004} for rate in rates.values())


def test_every_change_of_the_baseline_has_a_row_with_its_factor() -> None:
    none, *rows = modern_changes(GATHERED).rows
    assert len(rows) == 5 and none[-1] == ""
    assert all(" to " in str(row[-1]) for row in rows)


def test_what_the_chapter_says_of_the_records_is_so() -> None:
    """The statements of `experiments/chapters/positions.py` that its text does not compute."""
    learned, rotary = (
        read_setting(GATHERED, "characters", positions)
        for positions in ("learned", "rotary")
    )
    assert all(len(seeds) >= 2 for seeds in rotary.values())
    assert min(savings(rotary, "primer-ez")) > 1
    subwords = read_setting(GATHERED, "subwords", "rotary")
    with_table = read_setting(GATHERED, "subwords", "learned")
    on_subwords = savings(subwords, "primer-ez")
    assert len(on_subwords) == 3 and min(on_subwords) > 1
    _, low, high = of_factors(on_subwords)
    assert low < 1 < high
    gone = share_of_positions(savings(with_table, "primer-ez"), on_subwords)
    both = (savings(runs, "primer-ez") for runs in (learned, rotary))
    assert gone < share_of_positions(*both)
    pairs = zip(subwords["transformer"], with_table["primer-ez"], strict=True)
    assert all(final(plain) > final(changed) for plain, changed in pairs)
    worse, better = sorted(savings(subwords, "mdha"))
    assert worse < 1 < better
    assert all(
        final(relu) < final(mdha)
        for relu, mdha in zip(rotary["squared-relu"], rotary["mdha"], strict=True)
    )
    _, low, high = of_factors(savings(rotary, "mdha"))
    assert low < 1 < high, "MDHA alone is not shown to save"
    added = seed_factors(rotary["squared-relu"], rotary["primer-ez"], "multiply_adds")
    _, low, high = of_factors(added)
    assert low < 1 < high, "convolutions are not shown to add to the squared ReLU"
    _, _, high = of_factors(savings(rotary, "primer-ez"))
    assert high < 1.75, "with rotary positions, less than the paper's least"
    rates = {model: {run["rate"] for run in seeds} for model, seeds in rotary.items()}
    assert rates.pop("primer-ez") != {0.002}
    assert all(rate == {0.002} for rate in rates.values())
    for runs, whole in ((learned, False), (rotary, True), (with_table, True)):
        assert all(("whole" in run) == whole for s in runs.values() for run in s)
    parts = {
        model: typical(savings(learned, model)) for model in ("squared-relu", "mdha")
    }
    assert parts["mdha"] > parts["squared-relu"]
    positions = seed_factors(
        learned["transformer"], rotary["transformer"], "multiply_adds"
    )
    changes = savings(learned, "primer-ez")
    assert typical(positions) > typical(changes) > typical(savings(rotary, "primer-ez"))
    worst = max(run["loss"][-1] for run in rotary["transformer"])
    assert worst < min(run["loss"][-1] for run in learned["primer-ez"])
