"""What the committed notebooks carry: the results of recorded functions."""

import json
import re
from pathlib import Path
from typing import Any

JSON = re.compile(r'^RETURNED = r"""\n(.*?)\n"""$', re.DOTALL | re.MULTILINE)


def carried(notebook: Path) -> dict[str, list[Any]]:
    """Return the calls in a notebook by function: pairs of arguments and result."""
    calls: dict[str, list[Any]] = json.loads(json_in(notebook))
    return calls


def json_in(notebook: Path) -> str:
    """Return the text of the calls, and that of none if there are none."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    found = (JSON.search("".join(cell["source"])) for cell in cells)
    return next((match[1] for match in found if match), "{}")


class Carried(dict[str, list[Any]]):
    """The calls of a notebook, by the full name of the function."""

    def __init__(self, notebook: Path):
        super().__init__(carried(notebook))

    def __contains__(self, name: object) -> bool:
        return str(name).rpartition(".")[2] in self.keys()

    def __getitem__(self, name: str) -> list[Any]:
        return super().__getitem__(name.rpartition(".")[2])
