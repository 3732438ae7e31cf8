"""The engine knows nothing of the book or its theme, and needs what its project names and nothing else."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from builds import ENGINE

FOLDER = ENGINE / "sphinx_annotated"


def test_the_engine_does_not_name_torch_or_the_theme() -> None:
    for path in FOLDER.rglob("*"):
        if path.suffix in (".py", ".js"):
            text = path.read_text(encoding="utf-8")
            assert "torch" not in text and "primer" not in text.lower(), path


def test_the_engines_script_asks_only_for_files_of_the_engine() -> None:
    text = (FOLDER / "static" / "annotated.js").read_text(encoding="utf-8")
    asked = [part for part in text.split('"') if part.endswith((".js", ".css", ".svg"))]
    assert asked == ["curves.js"]
    assert all((FOLDER / "static" / name).is_file() for name in asked)


def test_every_package_that_the_engine_imports_is_a_dependency_or_comes_with_one() -> (
    None
):
    project = tomllib.loads((ENGINE / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"]]
    for group in project["optional-dependencies"].values():
        named += group
    allowed = {re.match(r"[\w-]+", each)[0].lower() for each in named}  # type: ignore[index]
    # With Sphinx, MyST-NB and sphinxcontrib-bibtex. Of matplotlib, the engine styles what a chapter draws.
    allowed |= {"babel", "docutils", "pygments", "markdown-it-py", "myst-parser"}
    allowed |= {"nbclient", "nbformat", "ipython", "pybtex", "matplotlib"}
    owners = packages_distributions()
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for top in {name.partition(".")[0] for name in names}:
                if top == "sphinx_annotated" or top in sys.stdlib_module_names:
                    continue
                known = {owner.lower() for owner in owners.get(top, [])}
                assert known & allowed, f"{path} imports {top}"
