"""The committed notebooks: what the sources give, and alone from top to bottom.

A run that passed leaves a file in `_build/.passed`, and is not repeated while the notebook's code, the
lock and Python stay the same. CI keeps the folder between its runs.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest
import write_notebooks
from locked import BUILT, python_of
from nbconvert.preprocessors import ExecutePreprocessor
from nbformat import NotebookNode
from notebook_patterns import without_values
from sphinx_annotated.run.kernel import sockets

ROOT = write_notebooks.ROOT
PATHS = [
    write_notebooks.NOTEBOOKS / f"{path.stem}.ipynb"
    for path in write_notebooks.chapters()
]
LOCKS = sorted((Path(__file__).parents[1] / "kernels").glob("*.lock"))
PASSED = BUILT / ".passed"
ALONE = "try:\n    import labml_primer\nexcept ImportError:\n    print('alone')"
STEPS = re.compile(r"(?<=\bsteps=)\d{3,}\b")
HIDE = "import sys\nsys.modules['labml_primer'] = None\n"  # where it is installed for development
# Definitions from elsewhere, an installation, the corpus, a training; data, figures, tables.
ALONE_EACH_TIME = {"generation", "transfer"}
TWICE_EACH_TIME = {"decoder"}


@pytest.mark.slow
def test_the_committed_notebooks_are_what_the_sources_give() -> None:
    stale = [
        path.name
        for path, chapter in zip(PATHS, write_notebooks.chapters(), strict=True)
        if not path.is_file()
        or not without_values(chapter).fullmatch(path.read_text(encoding="utf-8"))
    ]
    assert not stale, "run `make notebooks`"
    assert sorted(write_notebooks.NOTEBOOKS.glob("*.ipynb")) == sorted(PATHS)


def code(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def passed(notebook: NotebookNode, how: str, lock: str, python: str) -> Path:
    """The file that says that this code passed such a run under these versions."""
    parts = [how, lock, python, Path(__file__).read_text("utf-8"), *code(notebook)]
    return PASSED / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def due(path: Path, how: str, *kernel: Path) -> Iterator[NotebookNode]:
    """Yield the notebook unless it has passed; it has when the loop's body has ended."""
    notebook = nbformat.read(path, as_version=4)
    locks = [p.read_text("utf-8") for p in (ROOT / "requirements.lock", *kernel)]
    mark = passed(notebook, how, "".join(locks), sys.version)
    if not mark.exists():
        yield notebook
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def run(notebook: NotebookNode, folder: Path, kernel: str = "python3") -> None:
    """Run a notebook in a folder of its own, where the package is not.

    A long training takes a tenth of its steps: the build runs it whole, from the same source.
    """
    for cell in notebook.cells:
        cell.source = STEPS.sub(lambda steps: str(int(steps[0]) // 10), cell.source)
    for source in (ALONE, HIDE):
        notebook.cells.insert(0, nbformat.v4.new_code_cell(source))
    with TemporaryDirectory() as short, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        patch.delenv("PYTHONPATH", raising=False)
        runner = ExecutePreprocessor(
            timeout=600,
            startup_timeout=180,
            kernel_name=kernel,
            config=sockets(Path(short)),
        )
        runner.preprocess(notebook, {"metadata": {"path": str(folder)}})
    assert notebook.cells[1].outputs[0].text == "alone\n"
    del notebook.cells[:2]


def named(each_time: set[str]) -> list[Any]:
    """Every notebook; those that are not named are run each night."""
    marks = [[] if p.stem in each_time else [pytest.mark.nightly] for p in PATHS]
    return [
        pytest.param(path, marks=mark, id=path.stem)
        for path, mark in zip(PATHS, marks, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("path", named(ALONE_EACH_TIME))
def test_a_notebook_runs_from_top_to_bottom_without_the_package(
    path: Path, tmp_path: Path
) -> None:
    for notebook in due(path, "alone"):
        run(notebook, tmp_path)
        outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
        assert not [output for output in outputs if output.output_type == "error"]
        assert len(outputs) > 1


@pytest.mark.slow
@pytest.mark.parametrize("path", named(TWICE_EACH_TIME))
def test_cells_that_are_each_run_twice_show_what_they_show_when_run_once(
    path: Path, tmp_path: Path
) -> None:
    for notebook in due(path, "twice"):
        once, twice = code_alone(code(notebook)), code_alone(repeated(code(notebook)))
        run(once, tmp_path)
        run(twice, tmp_path)
        for number, cell in enumerate(once.cells):
            first, second = twice.cells[4 * number + 1 : 4 * number + 4 : 2]
            assert shown(first) == shown(second) == shown(cell), cell.source


# A second run draws the random numbers of the first: only what else a cell changes should show.
DRAWN = """
import random as __random, sys as __sys
__torch = __sys.modules.get("torch")
__kinds = (__random.Random, __torch.Generator) if __torch else __random.Random
__named = [each for each in globals().values() if isinstance(each, __kinds)]
__sources = [__random, *([__torch.default_generator] if __torch else []), *__named]
"""
KEEP = f"""{DRAWN}
__states = {{
    id(each): each.getstate() if hasattr(each, "getstate") else each.get_state()
    for each in __sources
}}
"""
RESTORE = f"""{DRAWN}
for __each in __sources:
    if id(__each) in __states:
        __set = getattr(__each, "setstate", None) or __each.set_state
        __set(__states[id(__each)])
"""


def repeated(cells: list[str]) -> list[str]:
    """Each cell twice in a row."""
    return [each for cell in cells for each in (KEEP, cell, RESTORE, cell)]


def code_alone(cells: list[str]) -> NotebookNode:
    return nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])


# What a clock says differs from run to run.
CLOCK = re.compile(r"\d[\d.,]*(?= ?(?:s|ms|µs|seconds|milliseconds|minutes)\b)")
NUMBER = re.compile(r"\d[\d.,]*")
# A cell with a figure or a table of times.
TIMES = re.compile(r"\.seconds\b|\bmilliseconds\b|\bmedian_seconds\(")


def shown(cell: NotebookNode) -> list[str]:
    """The texts, tables and figures of a cell, without what a clock said."""
    prints, others, times = "", [], TIMES.search(cell.source)
    for output in cell.outputs:
        if output.output_type == "stream":
            prints += output.text if output.name == "stdout" else ""
        else:
            kinds = ("text/html", "image/png", "text/plain")
            kind = next(kind for kind in kinds if kind in output.data)
            text = "".join(output.data[kind])
            if times:
                others.append(kind if kind == "image/png" else NUMBER.sub("0", text))
            else:
                others.append(CLOCK.sub("0", text))
    return [CLOCK.sub("0", prints), *others]


@pytest.fixture
def kernel(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """A kernel whose IPython is that of a lock file; torch and the rest are those of this Python."""
    name = f"kernel-{request.param.stem}"
    python = python_of(request.param, name)
    own, shared = site_packages(str(python)), site_packages(sys.executable)
    (Path(own) / "zz-shared.pth").write_text(shared)
    spec = tmp_path / "kernels" / name / "kernel.json"
    spec.parent.mkdir(parents=True)
    start = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(
        json.dumps({"argv": start, "display_name": name, "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    return name


def site_packages(python: str) -> str:
    code = "import sysconfig; print(sysconfig.get_path('purelib'), end='')"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout


# Together: definitions from elsewhere, prints, figures, an installation, the corpus.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["feed_forward", pytest.param("generation", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(lock, marks=[pytest.mark.nightly] * (lock.stem != "colab"))
        for lock in LOCKS
    ],
    ids=[lock.stem for lock in LOCKS],
    indirect=True,
)
def test_a_notebook_runs_under_the_ipython_of_colab_and_under_the_current_one(
    name: str, kernel: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lock = request.node.callspec.params["kernel"]
    for notebook in due(write_notebooks.NOTEBOOKS / f"{name}.ipynb", "ipython", lock):
        notebook.cells.append(
            nbformat.v4.new_code_cell("import IPython; print(IPython.__version__)")
        )
        run(notebook, tmp_path, kernel)
        version = notebook.cells[-1].outputs[0].text.strip()
        assert f"\nipython=={version}\n" in lock.read_text()
