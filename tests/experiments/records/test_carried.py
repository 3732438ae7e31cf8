"""The notebooks of the measured chapters carry the records that the chapters read."""

import json
from functools import cache
from pathlib import Path

import pytest
from carried import carried, json_in

from experiments.records import counts, query, timings
from experiments.search import tables

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
MEASURED = sorted(
    path.stem
    for path in (NOTEBOOKS.parent / "experiments" / "chapters").glob("*.py")
    if path.stem != "paper"  # it reads the paper's tables alone
)
RECORDED = (counts, query, timings, tables)


@cache
def read(function: str, arguments: str) -> object:
    """Return what a recorded function returns for JSON: chapters have many calls in common."""
    modules = {name: m for m in RECORDED for name in m.__recorded__}
    return getattr(modules[function], function)(*json.loads(arguments))


@pytest.mark.parametrize("name", MEASURED)
def test_a_notebook_carries_the_records_as_they_are(name: str) -> None:
    calls = carried(NOTEBOOKS / f"{name}.ipynb")
    assert calls, "make notebooks"
    for function, each in calls.items():
        for arguments, value in each:
            again = read(function, json.dumps(arguments))
            assert again == value, "make notebooks"


@pytest.mark.parametrize("name", MEASURED)
def test_a_notebook_carries_at_most_75_kb_of_readable_records(name: str) -> None:
    text = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(json_in(NOTEBOOKS / f"{name}.ipynb")) < 75_000
    assert "b64decode" not in text
