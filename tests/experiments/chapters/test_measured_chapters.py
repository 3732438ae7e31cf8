"""A measured chapter says what its records say, or does not run."""

import json
import runpy
import shutil
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import pytest
from sphinx_annotated.read.expressions import expressions
from sphinx_annotated.read.parse import parse
from sphinx_annotated.take.notebook import Calls, reader_notebook
from write_notebooks import the_book

from experiments.chapters import ours
from experiments.harness.plan import PLANS
from experiments.records import counts, query
from experiments.records.lines import read_lines, write_lines
from experiments.records.runs import RESULTS

ROOT = PLANS.parent.parent


def prose_of(chapter: ModuleType) -> str:
    """Return the prose of a chapter's notebook after a run in the current folder, as one line."""
    path = Path(str(chapter.__file__))
    space = runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    asked = expressions(parse(path.read_text(encoding="utf-8")), path.name)
    values = {text: str(eval(text, space)) for text in asked}
    returned: Calls = {
        f"{module.__name__}.{name}": []
        for module in (query, counts)
        for name in module.__recorded__
    }
    cells = json.loads(
        reader_notebook(path, the_book(), values=values, returned=returned)
    )["cells"]
    prose = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    return " ".join("\n".join(prose).split())


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the records, which chapters read instead."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(ROOT)
    shutil.copytree(RESULTS, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(query, "RESULTS", tmp_path)
    return tmp_path


def test_number_in_prose_changes_with_the_record(results: Path) -> None:
    records = read_lines(results / "speedup.jsonl")
    records["transformer-0"]["parameters"] = 777_700_000
    write_lines(results / "speedup.jsonl", records)
    assert " 777.7 million parameters" in prose_of(ours)


def test_chapter_with_a_statement_that_its_records_contradict_does_not_run(
    results: Path,
) -> None:
    records = read_lines(results / "speedup.jsonl")
    for seed in range(5):
        losses = records[f"primer-ez-{seed}"]["curve"]["held_out"]
        for play, curve in losses.items():
            losses[play] = [loss / 2 for loss in curve]
    write_lines(results / "speedup.jsonl", records)
    with pytest.raises(AssertionError, match="none reaches the counts"):
        prose_of(ours)
