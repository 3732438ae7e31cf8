"""The version of the package, which is written in `pyproject.toml` alone."""

import tomllib
from importlib.metadata import version
from pathlib import Path


def installed_version() -> str:
    """Return the version of this checkout, or of the installed package."""
    project = Path(__file__).parents[1] / "pyproject.toml"
    if project.is_file():
        found = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        if found["name"] == "labml_primer":
            return str(found["version"])
    return version("labml_primer")
