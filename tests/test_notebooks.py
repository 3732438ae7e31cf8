"""The committed notebooks: what the sources give, and alone from top to bottom."""

from pathlib import Path

import nbformat
import pytest
from nbconvert.preprocessors import ExecutePreprocessor

import notebooks

PATHS = [notebooks.NOTEBOOKS / f"{path.stem}.ipynb" for path in notebooks.chapters()]
ALONE = "try:\n    import labml_primer\nexcept ImportError:\n    print('alone')"
HIDE = "import sys\nsys.modules['labml_primer'] = None\n"  # where it is installed for development


def test_the_committed_notebooks_are_what_the_sources_give() -> None:
    stale = [
        path.name
        for path, text in notebooks.notebooks().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run `make notebooks`"
    assert sorted(notebooks.NOTEBOOKS.glob("*.ipynb")) == sorted(PATHS)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom_without_the_package(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = nbformat.read(path, as_version=4)
    for source in (ALONE, HIDE):
        notebook.cells.insert(0, nbformat.v4.new_code_cell(source))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    runner = ExecutePreprocessor(timeout=600, startup_timeout=180)
    runner.preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    assert notebook.cells[1].outputs[0].text == "alone\n"
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert len(outputs) > 1
