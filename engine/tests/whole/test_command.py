"""The command begins a book that builds without a warning, here and in an empty environment."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builds import ENGINE
from small_books import Shelf
from sphinx_annotated.__main__ import main

pytestmark = pytest.mark.slow


def test_a_new_book_builds_without_a_warning_and_its_chapter_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'my "first" book'
    assert main(["new", str(folder)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"python\S* -m sphinx '.*book' '.*book/_build/html'", said)
    monkeypatch.setenv("PYTHONPATH", str(ENGINE))
    book = Shelf(folder)
    done = book.well_built("-W", "--keep-going")
    assert done.executed() == ["square_roots"]
    page = done.page("square_roots")
    assert "1.41421356237468" in page and r"\sqrt{a}" in page
    assert "2e-12" in page and "{value}" not in page
    assert "my “first” book" in done.page("index")


def test_a_folder_that_exists_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "file"):
        assert main(["new", str(folder)]) == 1
        assert capsys.readouterr().err == (
            f"{folder} exists already. Name another folder.\n"
        )
    assert main(["new", str(tmp_path / "file" / "book")]) == 1
    assert re.fullmatch(r"\S+ cannot be written: [^\n]+\n", capsys.readouterr().err)


@pytest.mark.nightly
def test_the_wheel_builds_a_book_in_an_empty_environment(tmp_path: Path) -> None:
    """As the README says, and with nothing of this environment. It needs the network."""

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            list(map(str, command)), cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    shutil.copytree(ENGINE, tmp_path / "engine")
    run(sys.executable, "-m", "venv", "env")
    inside = tmp_path / "env" / "bin"
    run(inside / "pip", "wheel", "-q", "--no-deps", "-w", "wheels", "./engine")
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    readme = (ENGINE / "README.md").read_text("utf-8")
    lines = readme.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert len(lines) == 3 and lines[0].endswith('#subdirectory=engine"')
    run(inside / "pip", "install", "-q", wheel)  # instead of the repository's address
    for line in lines[1:]:
        command, *arguments = line.split()
        run(inside / command, *arguments)
    page = (tmp_path / "mybook/_build/html/square_roots.html").read_text("utf-8")
    assert "1.41421356237468" in page
    static = tmp_path / "mybook/_build/html/_static"
    assert {"annotated.css", "annotated.js"} <= {p.name for p in static.iterdir()}
