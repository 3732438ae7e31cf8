"""A second text, in another register: the Python code of SymPy, without its tests.

PyTorch requires SymPy, so it is there wherever a model can be trained. Its code is read, and never imported.
"""

from importlib.util import find_spec
from pathlib import Path

from experiments.records.runs import HELD_OUT

VERSION = "1.14.0"
"""The version that `requirements.lock` has."""
NO_TEXT = {"tests", "benchmarks", "_antlr"}
"""Folders that are left out: what tests the code, and what a program wrote."""


def load_sources() -> dict[str, str]:
    """Return the code of each package of SymPy by name, sorted; the name of the modules outside is `sympy`.

    The few files with characters that are not ASCII are left out. Raises `ValueError` for another version.
    """
    spec = find_spec("sympy")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            f"the text `code` is in SymPy; install it: pip install sympy=={VERSION}"
        )
    root = Path(spec.origin).parent
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        first, *others = path.relative_to(root).parts
        text = path.read_text(encoding="utf-8")
        if text.isascii() and not NO_TEXT & {first, *others}:
            found.setdefault(first if others else "sympy", []).append(text)
    release = (root / "release.py").read_text(encoding="utf-8")
    if VERSION not in release or not {*HELD_OUT["code"]} <= found.keys():
        raise ValueError(f"{root} is not SymPy {VERSION}, with which runs are recorded")
    return {name: "".join(texts) for name, texts in sorted(found.items())}
