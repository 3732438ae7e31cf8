"""Every snippet that a page offers to copy runs where it is pasted."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from installed import install
from sphinx_annotated.take.standalone import snippets
from write_notebooks import ROOT, chapters, the_book

PARTS: dict[str, list[Path]] = {}
for path in chapters():
    PARTS.setdefault(path.parent.name, []).append(path)
every_part = pytest.mark.parametrize(
    "part",
    [
        part if part == "primer" else pytest.param(part, marks=pytest.mark.nightly)
        for part in PARTS
    ],
)
STANDARD = sys.stdlib_module_names

# A process that has torch and nothing of ours; each snippet runs in a fork of it, by itself.
PASTE = """
import json, os, sys, traceback
import torch
snippets = json.load(sys.stdin)
try:
    import labml_primer
    sys.exit("labml_primer is here")
except ImportError:
    pass
failed = []
for place, text in snippets.items():
    name = place.rpartition(".")[2]
    child = os.fork()
    if child == 0:
        try:
            pasted = {"__name__": "pasted"}
            exec(compile(text, name, "exec"), pasted)
            assert name in pasted
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(place)
print(json.dumps(failed))
"""


book = cache(the_book)  # read by the first test that needs it


@cache
def of(path: Path) -> dict[str, str]:
    module = book().project.at(path)
    return snippets(book(), module)


@pytest.mark.slow
@every_part
def test_every_definition_runs_where_it_is_pasted(part: str, tmp_path: Path) -> None:
    texts = {
        f"{path.stem}.{name}": text
        for path in PARTS[part]
        for name, text in of(path).items()
    }
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ran = subprocess.run(
        [sys.executable, "-c", PASTE],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment | {"OMP_NUM_THREADS": "1"},
        check=True,
    )
    assert json.loads(ran.stdout) == [], ran.stderr


@every_part
def test_a_snippet_says_where_it_comes_from_and_carries_no_markup(part: str) -> None:
    texts = [(path, *each) for path in PARTS[part] for each in of(path).items()]
    for path, name, text in texts:
        first, _, rest = text.partition("\n")
        page = book().address(path.relative_to(ROOT).with_suffix("").as_posix())
        assert first == f"# {name}, from {book().title}, {page}#{name} (MIT license)"
        assert "labml_primer" not in rest
        assert ":::" not in rest and "{py:" not in rest and "$" not in rest


def written(folder: Path, parts: Iterable[str]) -> Path:
    """A folder with a file for each definition of some parts."""
    for path in (path for part in parts for path in PARTS[part]):
        for name, text in of(path).items():
            file = folder / f"{path.parent.name}_{path.stem}_{name}.py"
            file.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.nightly  # `make lint` checks the modules; each part is a minute, most of it for torch
@every_part
def test_every_copy_passes_mypy_as_strict_as_torch_allows(
    part: str, tmp_path: Path
) -> None:
    # Some functions of torch have no types, such as `backward`, so calling them is allowed.
    options = ["--strict", "--allow-untyped-calls", "--scripts-are-modules"]
    if files := list(written(tmp_path, [part]).iterdir()):
        checked = subprocess.run(
            [sys.executable, "-m", "mypy", *options, *files],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
@pytest.mark.nightly
def test_every_copy_passes_pyright(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    packages = tmp_path_factory.mktemp("pyright")
    install(packages, "pyright")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    checked = subprocess.run(
        [*command, written(tmp_path, PARTS)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(packages)},
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


DOCSTRING = re.compile(r'^ *"""(.|\n)*?"""\n', re.MULTILINE)

# Lines of a pasted definition, at most, with the imports and all that it needs. Blank lines, comments and
# docstrings do not count.
LIMITS = {
    "generation": {"generate": 70},
    "primer_ez": {
        "SquaredReLU": 8,
        "SpatialDepthWiseConvolution": 18,
        "MultiDConvHeadAttention": 62,
    },
    "attention": {"MultiHeadAttention": 40},
    "language_model": {"LanguageModel": 135},
}


def test_standalone_definitions_are_short() -> None:
    paths = {path.stem: path for path in chapters()}
    for chapter, limits in LIMITS.items():
        for name, limit in limits.items():
            text = DOCSTRING.sub("", of(paths[chapter])[name])
            lines = map(str.strip, text.splitlines())
            count = sum(bool(line) and not line.startswith("#") for line in lines)
            print(f"{name:28s} {count:4d} lines, at most {limit}")
            assert count <= limit, name


@every_part
def test_a_copy_needs_torch_alone(part: str) -> None:
    # Only `train` asks for labml, which draws its progress, and does without if it is not installed.
    for path in PARTS[part]:
        for name, text in of(path).items():
            needed = {
                (each.module if isinstance(each, ast.ImportFrom) else alias.name)
                for each in ast.walk(ast.parse(text))
                if isinstance(each, ast.Import | ast.ImportFrom)
                for alias in each.names
            }
            packages = {n.partition(".")[0] for n in needed if n} - STANDARD
            assert packages <= ({"torch", "labml"} if name == "train" else {"torch"})
