"""The committed notebooks: what the sources give, and alone from top to bottom."""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
import write_notebooks
from annotated.run.execute import sockets
from locked import python_of
from nbconvert.preprocessors import ExecutePreprocessor
from nbformat import NotebookNode
from notebook_patterns import without_values

PATHS = [
    write_notebooks.NOTEBOOKS / f"{path.stem}.ipynb"
    for path in write_notebooks.chapters()
]
WITHOUT_VALUES = {
    path.stem: without_values(path) for path in write_notebooks.chapters()
}
LOCKS = sorted((Path(__file__).parent / "kernels").glob("*.lock"))
ALONE = "try:\n    import labml_primer\nexcept ImportError:\n    print('alone')"
STEPS = re.compile(r"(?<=\bsteps=)\d{3,}\b")
HIDE = "import sys\nsys.modules['labml_primer'] = None\n"  # where it is installed for development


def test_the_committed_notebooks_are_what_the_sources_give() -> None:
    stale = [
        path.name
        for path in PATHS
        if not path.is_file()
        or not WITHOUT_VALUES[path.stem].fullmatch(path.read_text(encoding="utf-8"))
    ]
    assert not stale, "run `make notebooks`"
    assert sorted(write_notebooks.NOTEBOOKS.glob("*.ipynb")) == sorted(PATHS)


def run(path: Path, folder: Path, kernel: str = "python3") -> NotebookNode:
    """The notebook after a run in a folder of its own, where the package is not.

    A long training takes a tenth of its steps: the build runs it whole, from the same source.
    """
    notebook = nbformat.read(path, as_version=4)
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
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_without_the_package(
    path: Path, tmp_path: Path
) -> None:
    cells = run(path, tmp_path).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert len(outputs) > 1


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
@pytest.mark.parametrize("name", ["feed_forward", "generation"])
@pytest.mark.parametrize("kernel", LOCKS, ids=lambda lock: lock.stem, indirect=True)
def test_a_notebook_runs_under_the_ipython_of_colab_and_under_the_current_one(
    name: str, kernel: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = tmp_path / "asks.ipynb"
    notebook = nbformat.read(write_notebooks.NOTEBOOKS / f"{name}.ipynb", as_version=4)
    notebook.cells.append(
        nbformat.v4.new_code_cell("import IPython; print(IPython.__version__)")
    )
    nbformat.write(notebook, path)
    ran = run(path, tmp_path, kernel)
    asked = request.node.callspec.params["kernel"].read_text()
    version = ran.cells[-1].outputs[0].text.strip()
    assert f"\nipython=={version}\n" in asked
