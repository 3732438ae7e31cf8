"""`pytest -p changed`: only the tests that what you changed can break first, and nothing that builds.

A changed Python file selects the tests nearest to it: those that import it, or if none does, those that
import it through one other module, and so on; `make test` runs the rest. Any other file, and a picture, which
is imported by a computed name, selects the tests in `ROOMS`. What changed is what git shows as not
committed, or the last commit if all is. A file of tests that is not selected is not even imported.
"""

import ast
import subprocess
from collections import deque
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from sphinx_annotated.read.modules import Module, Project, imported_names

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {  # the tests that a file that is not Python selects, by its folder
    "labml_primer": ("tests/library",),
    "experiments": tuple(
        f"tests/experiments/{room}" for room in ("plans", "records", "chapters")
    ),
    "experiments/real_scale": ("tests/experiments/real_scale",),
    "experiments/search": ("tests/experiments/search",),
    "experiments/results/search": ("tests/experiments/search",),
    "benchmarks": ("tests/benchmarks",),
    "engine": ("engine/tests",),
    "book": ("tests/book",),
    "book/live": ("tests/experiments/live",),
    "tests/library": ("tests/library",),
}
TESTS = [ROOT / "tests", ROOT / "engine" / "tests"]
PICTURES = ROOT / "book" / "pictures"
BUILDING = ("tests/browser", "tests/site")  # their tests need the built book


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker what is selected, so that it is found once."""
    node.workerinput["selected"] = list(map(str, chosen(node.config)))


def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> Literal[True] | None:
    """Leave out the files of tests that no changed file can break."""
    tests = collection_path.name.startswith("test_") and collection_path.is_file()
    return True if tests and collection_path not in chosen(config) else None


def chosen(config: pytest.Config) -> set[Path]:
    """Return the files of tests that this run has: those that a worker was told, or those found now."""
    if config not in CHOSEN:
        told = getattr(config, "workerinput", {}).get("selected")
        folders = [ROOT / folder for folder in config.getini("pythonpath")]
        found = selected(changed_files(), folders) if told is None else map(Path, told)
        CHOSEN[config] = set(found)
    return CHOSEN[config]


CHOSEN: dict[pytest.Config, set[Path]] = {}


def selected(changed: set[Path], folders: list[Path]) -> set[Path]:
    """Return the files of tests to run after these files were changed."""
    tests = [
        test
        for folder in TESTS
        for test in folder.rglob("test_*.py")
        if not is_in(test, BUILDING)
    ]
    found = {test for test in tests if belongs(changed, test)}
    code = [file for file in changed if file.suffix == ".py"]
    far = {test: distances(test, folders) for test in tests} if code else {}
    for file in code:
        reached = {test: steps[file] for test, steps in far.items() if file in steps}
        found |= {t for t in reached if reached[t] == min(reached.values())}
    return found


def changed_files() -> set[Path]:
    """Return what git shows as changed or new; if that is nothing, what the last commit changed."""
    new = git("ls-files", "--others", "--exclude-standard")
    files = git("diff", "--name-only", "HEAD") + new
    files = files or git("show", "--name-only", "--format=", "--first-parent", "-m")
    return {ROOT / file for file in files}


def git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise pytest.UsageError(
            f"Git does not say what was changed in {ROOT}. Clone the repository, or run: make test"
        ) from None
    return run.stdout.splitlines()


def belongs(changed: set[Path], test: Path) -> bool:
    """Return whether one of the files is the test or its conftest, or selects it by its folder."""
    conftests = {folder / "conftest.py" for folder in test.parents}
    if changed & ({test} | conftests) or is_in(test, ["tests/project"]):
        return True
    others = {f for f in changed if f.suffix != ".py" or PICTURES in f.parents}
    return any(
        is_in(test, rooms)
        for folder, rooms in ROOMS.items()
        if any(is_in(file, [folder]) for file in others)
    )


def is_in(file: Path, folders: Iterable[str]) -> bool:
    """Return whether a file is in one of the project's folders."""
    return any(file.is_relative_to(ROOT / folder) for folder in folders)


def distances(test: Path, folders: list[Path]) -> dict[Path, int]:
    """Return the project's files that importing a test imports, with the fewest imports from it to each."""
    found: dict[Path, int] = {}
    waiting = deque([(Module("test", test, test.read_text(encoding="utf-8")), 1)])
    while waiting:
        module, steps = waiting.popleft()
        for other in imported(module, module.path == test, tuple(folders)):
            if other.path not in found:
                found[other.path] = steps
                waiting.append((other, steps + 1))
    return found


@cache
def imported(module: Module, whole: bool, folders: tuple[Path, ...]) -> list[Module]:
    """Return the modules that one imports, by the folders on the path; with its demonstrations if whole."""
    body, package = module.tree.body if whole else module.library, module.package
    nodes = (node for statement in body for node in ast.walk(statement))
    names = {name for node in nodes for name in imported_names(node, package)}
    projects = [PROJECTS.setdefault(folder, Project(folder)) for folder in folders]
    found = {
        other.path: other
        for project in projects
        for name in names
        if (local := project.find(name))
        for other in (local, *project.parents(name))
    }
    return list(found.values())


PROJECTS: dict[Path, Project] = {}
