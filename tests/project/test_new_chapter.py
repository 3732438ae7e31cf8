"""What `make new` promises: a chapter that passes the checks, and no file overwritten."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import new_chapter
import pytest
import yaml
from sphinx_annotated.read.parse import parse

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = "labml_primer/primer/unwritten_layer"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What a new chapter needs of the repository."""
    for folder in ("labml_primer", "tests/library"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    return tmp_path


def test_a_new_chapter_has_its_module_picture_place_and_layer(copy: Path) -> None:
    assert new_chapter.problem(copy, CHAPTER) == ""
    files = new_chapter.begin(copy, CHAPTER)
    parsed = parse((copy / f"{CHAPTER}.py").read_text())
    assert parsed.title == "Unwritten layer"
    toc = yaml.safe_load((copy / "_toc.yml").read_text())
    part = next(p for p in toc["parts"] if p["caption"] == "Primer")
    assert part["chapters"][-1] == {"file": CHAPTER}
    catalogue = (copy / "tests/library/catalogue.py").read_text()
    assert '    "UnwrittenLayer": Layer(lambda _: UnwrittenLayer(D_MODEL)' in catalogue
    for file in files:
        if file.endswith(".py"):
            ast.parse((copy / file).read_text())
    # It runs, and its picture draws.
    code = "from unwritten_layer import draw; assert draw().startswith('<svg')"
    folders = f"{copy}:{ROOT / 'book'}:{copy / 'book/pictures/primer'}"
    environment = {"PYTHONPATH": folders, "OMP_NUM_THREADS": "1"}
    for command in (["-m", CHAPTER.replace("/", ".")], ["-c", code]):
        subprocess.run(
            [sys.executable, *command], cwd=copy, env=environment, check=True
        )


@pytest.mark.parametrize(
    ("chapter", "fix"),
    [
        ("", "name a module in a folder of labml_primer, for example"),
        ("experiments/x", "name a module in a folder of labml_primer, for example"),
        ("labml_primer/primer/Talking", "cannot be a module of this book; use lower"),
        ("labml_primer/primer/talking-heads", "cannot be a module of this book"),
        ("labml_primer/primer/2heads", "cannot be a module of this book"),
        ("labml_primer/primer/unwritten_layer.py", "cannot be a module of this book"),
        ("labml_primer/primer/class", "class cannot be a module of this book"),
        ("labml_primer/primer/tensor", "would hide torch's Tensor"),
        ("labml_primer/none/x", "there is no folder labml_primer/none"),
        ("labml_primer/primer/primer_ez", "primer_ez.py exists already"),
        ("labml_primer/compared/kernels", "kernels.py exists already"),
        ("labml_primer/primer/smear", "has a Smear already"),
    ],
)
def test_a_place_for_a_chapter_that_cannot_be_is_named_with_the_fix(
    chapter: str, fix: str
) -> None:
    assert fix in new_chapter.problem(ROOT, chapter)


def test_two_new_chapters_stand_next_to_each_other(copy: Path) -> None:
    for chapter in (CHAPTER, "labml_primer/primer/second_heads"):
        assert new_chapter.problem(copy, chapter) == ""
        new_chapter.begin(copy, chapter)
        assert "exists already" in new_chapter.problem(copy, chapter)
    toc = yaml.safe_load((copy / "_toc.yml").read_text())
    part = next(p for p in toc["parts"] if p["caption"] == "Primer")
    files = [chapter["file"] for chapter in part["chapters"][-2:]]
    assert files == [CHAPTER, "labml_primer/primer/second_heads"]
    catalogue = (copy / "tests/library/catalogue.py").read_text()
    ast.parse(catalogue)
    for kind in ("UnwrittenLayer", "SecondHeads"):
        assert catalogue.count(f'    "{kind}": Layer(') == 1
        assert len([x for x in catalogue.splitlines() if x.endswith(f" {kind}")]) == 1
