"""`make check` runs the tests nearest to a change, and no others."""

import subprocess
from pathlib import Path

import changed
import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow  # reads the imports of the whole project
FOLDERS = [ROOT / name for name in (".", "engine", "engine/tests", "book", "tests")]


def breaks(file: str, test: str) -> bool:
    return ROOT / test in changed.selected({ROOT / file}, FOLDERS)


def test_a_changed_module_selects_the_tests_that_import_it_or_else_the_nearest() -> (
    None
):
    generation = "tests/library/transformer/test_generation.py"
    assert breaks("labml_primer/transformer/generation.py", generation)
    assert breaks("labml_primer/transformer/attention.py", generation)
    far = (
        "tests/experiments/harness/test_sweeps.py"  # through the models that it trains
    )
    assert not breaks("labml_primer/transformer/attention.py", far)
    decoder = "tests/library/transformer/test_decoder.py"
    assert not breaks("labml_primer/search/mutations.py", decoder)
    assert breaks(
        "engine/sphinx_annotated/read/parse.py", "engine/tests/read/test_parse.py"
    )
    assert not breaks("engine/sphinx_annotated/read/parse.py", decoder)


def test_a_changed_test_selects_itself_and_its_conftest_all_beside_it() -> None:
    parse, code = "engine/tests/read/test_parse.py", "engine/tests/page/test_code.py"
    assert breaks(parse, parse)
    assert not breaks(parse, code)
    assert breaks("engine/tests/conftest.py", code)
    assert not breaks(
        "engine/tests/conftest.py", "tests/library/transformer/test_generation.py"
    )
    assert breaks("tests/conftest.py", "tests/book/test_stages.py")


def test_a_changed_file_that_is_not_python_selects_the_tests_of_its_room() -> None:
    assert breaks(
        "engine/sphinx_annotated/static/annotated.js", "engine/tests/page/test_code.py"
    )
    assert breaks(
        "tests/library/search/figures/any.svg",
        "tests/library/transformer/test_generation.py",
    )
    plan = "experiments/plans/any.toml"
    assert breaks(plan, "tests/experiments/plans/test_plans.py")
    assert breaks(plan, "tests/experiments/records/test_records.py")
    assert not breaks(plan, "tests/experiments/search/test_search_runs.py")
    assert not breaks(plan, "engine/tests/page/test_code.py")
    search = "experiments/results/search/any.jsonl"
    assert breaks(search, "tests/experiments/search/test_search_runs.py")


def test_a_changed_picture_selects_the_tests_that_draw_it() -> None:
    assert breaks("book/pictures/primer/primer_ez.py", "tests/book/test_pictures.py")
    assert not breaks(
        "book/pictures/primer/primer_ez.py", "engine/tests/page/test_code.py"
    )


def test_the_whole_project_is_checked_at_every_change() -> None:
    assert breaks("README.md", "tests/project/test_project.py")


def test_a_folder_that_git_does_not_know_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    with pytest.raises(pytest.UsageError, match="Clone the repository"):
        changed.changed_files()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.UsageError, match="Clone the repository"):
        changed.changed_files()


def test_with_everything_committed_the_last_commit_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")

    def commit(name: str) -> None:
        (tmp_path / name).write_text("a = 1\n")
        for command in (["add", name], [*identity, "commit", "-qm", "one"]):
            where = ["git", *identity, "-C", str(tmp_path), *command]
            subprocess.run(where, check=True)

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    commit("first.py")
    assert changed.changed_files() == {tmp_path / "first.py"}
    commit("second.py")
    assert changed.changed_files() == {tmp_path / "second.py"}
    (tmp_path / "new.py").touch()
    (tmp_path / "first.py").write_text("a = 2\n")
    assert changed.changed_files() == {tmp_path / "new.py", tmp_path / "first.py"}
