"""What is kept from one build to the next follows from contents alone, and is never old."""

import os
from pathlib import Path

import pytest
from sphinx_annotated.read import modules
from sphinx_annotated.read.memo import Memo
from sphinx_annotated.read.modules import Project
from sphinx_annotated.run.job import Job, job_of

ONE = '"""# One"""\n\nfrom two import x\n\ny = x + 1\n'
TWO = "x = 1\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(ONE)
    (tmp_path / "two.py").write_text(TWO)
    return tmp_path


def built(root: Path) -> tuple[Project, Job]:
    """Do what a build does first."""
    project = Project(root, memo=Memo(root / "_build" / "memo.json"))
    job = job_of(project, root / "one.py")
    project.memo.save()
    return project, job


def test_a_module_that_has_not_changed_is_not_parsed_again(root: Path) -> None:
    _, before = built(root)
    project, job = built(root)
    assert job.digest == before.digest
    assert not any(module.is_parsed for module in project.read.values())


@pytest.mark.parametrize("name", ["one.py", "two.py"])
def test_an_edit_that_keeps_size_and_time_is_seen(root: Path, name: str) -> None:
    _, before = built(root)
    path = root / name
    times = path.stat()
    path.write_text(path.read_text().replace("1\n", "2\n"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size
    assert built(root)[1].digest != before.digest


def test_a_module_of_the_project_that_appears_is_seen(root: Path) -> None:
    (root / "two.py").unlink()
    _, before = built(root)
    (root / "two.py").write_text(TWO)
    assert built(root)[1].digest != before.digest


def test_what_is_damaged_or_anothers_is_computed_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, before = built(root)
    path = root / "_build" / "memo.json"
    text = path.read_text()
    for broken in ("", "x", text[:-20], text.replace('"imports', '"export', 1)):
        path.write_text(broken)
        assert Memo(path).before == {}
        assert built(root)[1].digest == before.digest
    assert Memo(path).before != {}
    monkeypatch.setattr("sphinx_annotated.read.memo.engine", lambda: "another")
    assert Memo(path).before == {}


def test_few_parsed_modules_are_in_memory_and_the_last_one_always(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "LINES", 0)
    project = Project(root)
    for name in ("one", "two", "one"):
        module = project.at(root / f"{name}.py")
        title, library = module.chapter.title, module.library
        project.trim()
        assert [m.path for m in project.read.values() if m.is_parsed] == [module.path]
        assert module.chapter.title == title and module.library is library
