"""Tests of the chapter on the paper's numbers."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.chapters import paper as chapter
from experiments.paper.claims import (
    average_time,
    by_intervals,
    by_test,
    by_topic,
    counted,
    hurdle_marks,
)
from experiments.paper.rounding import Claim, Rounded, claim, recompute
from experiments.paper.tables import Paper, read_paper

ROOT = Path(__file__).parents[3]
SHAPES = {  # rows and columns, counted in the paper
    "table_1": (6, 4),
    "table_4": (18, 7),
    "table_5": (15, 9),
    "table_6": (30, 8),
    "table_7": (4, 6),
    "table_8": (6, 5),
    "text": (40, 4),
}
# Failing claims by cause: each is the rest of a flag's first line, after "the paper, ".
CAUSES = {
    "section 1": [("1", '... "given the same training cost"')],
    "Table 1": [("4.3", "hours of 207K steps, at one pace")],
    "Table 4": [("A.6", "steps of Primer-EZ, T5")],
    "section 4.4: parameters": [("4.4", "parameters, with the vocabulary of 4.1")],
    "section 4.4 against the caption of Table 6": [
        ("4.4", "tasks, Primer 1/3: better"),
        ("4.4", "tasks, Primer 1/3: worse"),
        ("4.4", "tasks, Primer 1/3: the same"),
        ("4.4", "tasks, Primer full: better"),
        ("4.4", "tasks, Primer full: the same"),
    ],
    "Table 6": [
        ("A.11", "Transformer 1/3, choice"),
        ("A.11", "Transformer full, choice"),
        ("A.11", "Primer 1/3, choice"),
        ("A.11", "Primer full, choice"),
    ],
    "section 2 against appendix A.3": [
        ("2", "saved by hurdles"),
        ("2", "saved by both"),
    ],
    "appendix A.13: trainings with T5": [("A.13", "T5 trainings, t")],
    "appendix A.13: pretrainings": [
        ("A.13", "pretrainings, t"),
        ("A.13", "saved by Primer, t"),
        ("A.13", "saved, over the search"),
    ],
}
WORDS = {"model", "setup", "data", "group", "task", "metric", "section", "name"}


@cache
def tables_of_paper() -> Paper:
    """The paper's tables."""
    return read_paper([str(ROOT / path) for path in chapter.__data__])


def every_claim(paper: Paper) -> list[Claim]:
    """The claims of all topics."""
    return [each for claims in by_topic(paper).values() for each in claims]


# -- the files ------------------------------------------------------------------------------


def test_every_table_has_all_of_its_rows_and_columns() -> None:
    found = {
        name: (len(t.rows), len(t.columns)) for name, t in tables_of_paper().items()
    }
    assert found == SHAPES
    for table in tables_of_paper().values():
        assert {len(row) for row in table.rows} == {len(table.columns)}


@pytest.mark.parametrize("name", SHAPES)
def test_source_of_a_table_names_its_number_in_the_paper(name: str) -> None:
    source = tables_of_paper()[name].source
    assert "arXiv 2109.08668" in source
    if name != "text":
        assert source.endswith(f"Table {name[-1]}")


@pytest.mark.parametrize("name", SHAPES)
def test_a_column_of_numbers_has_numbers_and_a_unit(name: str) -> None:
    for column, unit in tables_of_paper()[name].columns.items():
        if column in WORDS or (name, column) in {("text", "unit")}:
            continue
        for entry in tables_of_paper()[name].column(column):
            assert entry == "-" or Rounded.read(entry).value > 0
        # Numbers of the text have their units in a column of their own.
        assert unit or name == "text", column
    if name == "text":
        assert all(tables_of_paper()[name].column("unit"))


def test_no_table_has_duplicate_rows() -> None:
    for table in tables_of_paper().values():
        assert len({tuple(row) for row in table.rows}) == len(table.rows)


# -- rounding -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "low", "high"),
    [
        ("3.8K", 3750, 3850),
        ("12,193.5", 12193.45, 12193.55),
        ("2.14E+21", 2.135e21, 2.145e21),
        ("35.00 ± 0.12", 34.995, 35.005),
        ("1M", 0.5e6, 1.5e6),
        ("1.9B", 1.85e9, 1.95e9),
        ("0.0", 0, 0.05),
    ],
)
def test_a_printed_number_is_all_that_rounds_to_it(
    printed: str, low: float, high: float
) -> None:
    read = Rounded.read(printed)
    assert (read.low, read.high) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.parametrize("printed", ["-", "Primer", "", "3X", "1.2.3"])
def test_error_quotes_what_is_not_a_number(printed: str) -> None:
    with pytest.raises(ValueError, match=r"does not start with a number"):
        Rounded.read(printed)


digits = st.tuples(st.integers(1, 999), st.integers(0, 2)).map(
    lambda pair: f"{pair[0] / 10 ** pair[1]:.{pair[1]}f}"
)


@given(digits, digits, digits)
def test_bounds_contain_every_input_that_rounds_to_the_printed_one(
    a: str, b: str, c: str
) -> None:
    def formula(x: float, y: float, z: float) -> float:
        return x / (y + 1) - z

    found = recompute(formula, a, b, c)
    ends = [(r.low, r.value, r.high) for r in map(Rounded.read, (a, b, c))]
    every = [formula(x, y, z) for x in ends[0] for y in ends[1] for z in ends[2]]
    assert found.low == pytest.approx(min(every))
    assert found.high == pytest.approx(max(every))


@pytest.mark.parametrize(
    ("printed", "sign"), [("4.1", "="), ("4.2", "≈"), ("4.0", "≠"), ("4.4", "≠")]
)
def test_verdict_allows_for_rounding(printed: str, sign: str) -> None:
    divided = claim("", "", printed, float.__truediv__, "15.7K", "3.8K")
    assert divided.sign == sign


@pytest.mark.parametrize(
    ("printed", "sign"),
    [("≥4.1", "="), ("<4.2", "="), ("≥4.2", "≈"), ("<4.1", "≈"), ("≥4.4", "≠")],
)
def test_verdict_on_a_bound_depends_on_its_side(printed: str, sign: str) -> None:
    divided = claim("", "", printed, float.__truediv__, "15.7K", "3.8K")
    assert divided.sign == sign


# -- claims come from the files -------------------------------------------------------------


def changed(paper: Paper) -> Iterator[Paper]:
    """The paper with one number of one table a little larger, for each of its numbers in turn."""
    for name, table in paper.items():
        for i, row in enumerate(table.rows):
            for j, entry in enumerate(row):
                try:
                    value = Rounded.read(entry).value * 1.5
                except ValueError:
                    continue
                _, mark, spread = entry.partition(" ± ")
                rows = [list(each) for each in table.rows]
                rows[i][j] = f"{value:.4f}{mark}{spread}"
                yield {**paper, name: replace(table, rows=rows)}


def test_each_claim_is_recomputed_from_the_files() -> None:
    def results(paper: Paper) -> dict[tuple[str, str], Rounded]:
        return {(each.section, each.words): each.result for each in every_claim(paper)}

    before = results(tables_of_paper())
    moved = set()
    for paper in changed(tables_of_paper()):
        try:
            after = results(paper)
        except LookupError:  # a number by which a line is found
            continue
        moved |= {key for key, result in before.items() if after.get(key) != result}
    assert set(before) - moved == set()


def test_no_two_claims_have_the_same_words() -> None:
    words = [(each.section, each.words) for each in every_claim(tables_of_paper())]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("hours, original T5 over Primer", Fraction(157, 38)),
        ("least speedup of the Primers", Fraction(172, 100)),
        ("saved by hurdles", Fraction(31, 5)),
        ("days of the T5 trainings", Fraction(15700 + 16500 + 17300, 24)),
        ("pretrainings, t", Fraction(2 * 343 * 71800 * 108 * 55, 100 * 1000 * 10**6)),
    ],
)
def test_claim_matches_the_calculation_by_hand(words: str, value: Fraction) -> None:
    results = [
        each.result for each in every_claim(tables_of_paper()) if each.words == words
    ]
    assert results
    for result in results:
        assert result.value == pytest.approx(float(value), rel=1e-4)
        assert result.low <= value + 1e-3 and value - 1e-3 <= result.high


def test_failing_claims_are_the_expected_ones() -> None:
    failed = {
        (e.section, e.words) for e in every_claim(tables_of_paper()) if e.sign == "≠"
    }
    assert failed == {claim for claims in CAUSES.values() for claim in claims}


def test_failing_claims_are_flagged_by_cause() -> None:
    source = Path(str(chapter.__file__)).read_text(encoding="utf-8")
    flags = re.findall(r":::\{deviation\} the paper, (.+)", source)
    assert set(CAUSES) <= set(flags)


def test_table_counts_the_claims_with_each_verdict() -> None:
    table = counted(by_topic(tables_of_paper()))
    for _, *numbers in table.rows:
        whole, *parts = map(int, numbers)
        assert whole == sum(parts)
    assert table.entry("disagrees", **{"claims on": "Emissions"}) == "4"
    assert table.entry("disagrees", **{"claims on": "all"}) == "19"


@pytest.mark.parametrize(
    ("section", "words", "printed", "sign"),
    [
        ("4.1", "least speedup of the Primers", "≥1.7", "="),
        ("4.2", "least speedup at the end", "≥1.8", "="),
        ("abs.", "training cost, T5 over Primer", "4", "="),
        ("4.3", "hours, original T5 over Primer", "4.2", "≈"),
        ("4.4", "perplexity of Primer at 1/3", "14.3", "="),
        ("A.3", "time of an individual, s", "4064", "≈"),
        ("A.3", "saved by hurdles", "6.2", "="),
        ("A.3", "... as 1 hour 8, in minutes", "68", "="),
        ("4.1", "parameters of the smallest model", "23M", "="),
        ("A.13", "days of a T5 training", "687.5", "="),
    ],
)
def test_main_claims_have_their_section_and_verdict(
    section: str, words: str, printed: str, sign: str
) -> None:
    claims = [
        (e.section, e.words, e.printed, e.sign) for e in every_claim(tables_of_paper())
    ]
    assert (section, words, printed, sign) in claims


# -- formulas -------------------------------------------------------------------------------


def within(quantile: float, freedom: int) -> float:
    """How much of Student's t lies within plus and minus a quantile, by adding up its density."""
    grid = torch.linspace(-quantile, quantile, 20_001, dtype=torch.float64)
    density = torch.distributions.StudentT(torch.tensor(float(freedom))).log_prob(grid)
    return float(torch.trapezoid(density.exp(), grid))


@pytest.mark.parametrize(
    ("needed", "freedom", "scale"),
    [(by_test, 8, math.sqrt(2 / 5)), (by_intervals, 4, 2 / math.sqrt(5))],
)
def test_significant_difference_uses_the_quantile_of_students_t(
    needed: Callable[[float, float], float], freedom: int, scale: float
) -> None:
    assert within(needed(1, 1) / scale, freedom) == pytest.approx(0.95, abs=1e-4)


@given(st.floats(1, 1e6), st.integers(0, 8))
def test_hurdles_halve_and_every_band_costs_the_same(longest: float, n: int) -> None:
    marks = hurdle_marks(longest, n)
    assert len(marks) == n + 1 and marks[-1] == pytest.approx(longest)
    bands = [b - a for a, b in zip([0, *marks], marks, strict=False)]
    costs = [band / 2**i for i, band in enumerate(bands)]
    assert costs == pytest.approx([costs[0]] * (n + 1))
    assert average_time(*marks) == pytest.approx(longest * (n + 1) / (2 ** (n + 1) - 1))


# -- tables ---------------------------------------------------------------------------------


def test_error_of_an_ambiguous_entry_names_table_and_condition() -> None:
    with pytest.raises(
        LookupError, match=r"3 rows of .*Table 1 match .*Primer.*not one"
    ):
        tables_of_paper()["table_1"].entry("hours", model="Primer")
