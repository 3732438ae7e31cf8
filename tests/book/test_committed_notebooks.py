"""The committed notebooks: plain cells that compile, and formulas that Colab and JupyterLab can show."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
import write_notebooks
from sphinx_annotated.read.parse import parse

of_every_chapter = pytest.mark.parametrize(
    "path", write_notebooks.chapters(), ids=lambda path: path.stem
)


def sources(notebook: dict[str, Any], kind: str = "code") -> list[str]:
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == kind]


def committed(chapter: Path) -> str:
    path = write_notebooks.NOTEBOOKS / f"{chapter.stem}.ipynb"
    name = path.relative_to(write_notebooks.ROOT)
    assert path.is_file(), f"{name} is missing: write it by `make notebooks`"
    return path.read_text(encoding="utf-8")


@of_every_chapter
def test_every_notebook_has_plain_cells_that_compile(path: Path) -> None:
    text = committed(path)
    notebook = json.loads(text)
    nbformat.validate(nbformat.reads(text, as_version=4))
    for source in sources(notebook):
        if not source.startswith("%pip"):
            compile(source, path.stem, "exec")
            assert "labml_primer" not in re.sub(r'"[^"\n]*"', "", source)
    for source in sources(notebook, "markdown"):
        plain = re.sub(r"```.*?```|`[^`]*`", "``", source, flags=re.DOTALL)
        assert not re.search(
            r"\{[\w:]+\}`|^(> )*[:`]{3,}\{|^\([\w-]+\)=$", plain, re.MULTILINE
        )
    assert (
        parse(path.read_text(encoding="utf-8")).title
        in sources(notebook, "markdown")[0]
    )


@of_every_chapter
def test_formulas_are_valid_in_colab_and_jupyterlab(path: Path) -> None:
    notebook = json.loads(committed(path))
    for source in sources(notebook, "markdown"):
        words = re.sub(r"```.*?```|`[^`]*`", "", source, flags=re.DOTALL)
        for formula in re.findall(r"\$\$.*?\$\$", words, re.DOTALL):
            assert not re.search(r"\n\s*(\n|>)", formula), formula
        words = re.sub(r"\$\$.*?\$\$", "", words, flags=re.DOTALL)
        for formula in re.findall(r"\$([^$]*)\$", words):
            assert formula == formula.strip() and "\n" not in formula, formula
        assert not re.search(r"\$|\\[a-z]", re.sub(r"\$[^$]*\$", "", words))
