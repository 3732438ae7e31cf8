"""What `make new EXPERIMENT=name` promises: a plan that passes the checks, and no file overwritten."""

import shutil
from pathlib import Path

import pytest

from experiments.harness.new_plan import begin
from experiments.harness.plan import PLANS, Plan


def test_a_new_experiment_is_a_plan_after_all_others(tmp_path: Path) -> None:
    for path in PLANS.glob("today-*.toml"):
        shutil.copy(path, tmp_path)
    turns = [Plan.read(path).turn for path in tmp_path.glob("*.toml")]
    plan = Plan.read(begin("my-question", tmp_path))
    assert plan.turn > max(turns)
    # The records, counts and chapters of unfinished plans are not asked for.
    assert plan.unfinished and not plan.timed
    assert {"transformer", "primer-ez"} == plan.models.keys()
    second = Plan.read(begin("second", tmp_path))
    assert second.turn == plan.turn + 1


@pytest.mark.parametrize("name", ["", "My", "my_question", "a b", "../x", "-x"])
def test_a_name_that_cannot_be_is_refused_with_an_example(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(ValueError, match="such as my-question"):
        begin(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_plan_that_exists_is_kept(tmp_path: Path) -> None:
    before = begin("mine", tmp_path).read_text()
    with pytest.raises(ValueError, match="exists already; choose another name"):
        begin("mine", tmp_path)
    assert (tmp_path / "mine.toml").read_text() == before
