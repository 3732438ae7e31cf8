"""`pytest -p changed`: only the tests that what you changed can break.

A changed Python file selects the tests that import it, directly or through others. Any other file, and a
picture, which is imported by a computed name, selects the tests of its room. What changed is what git shows
as not committed, or the last commit if all is.
"""

import subprocess
from pathlib import Path

import pytest
from annotated.read.modules import Module, Project

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {  # whose tests a file that is not Python belongs to
    "labml_primer": "library",
    "experiments": "experiments",
    "benchmarks": "benchmarks",
    "book/annotated": "engine",
    "book": "book",
}
PICTURES = ROOT / "book" / "pictures"


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Deselect the tests that no changed file can break."""
    changed = changed_files()
    folders = [ROOT / folder for folder in config.getini("pythonpath")]
    kept, left = [], []
    files = {item.path for item in items}
    chosen = {path: can_break(changed, path, folders) for path in files}
    for item in items:
        (kept if chosen[item.path] else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def changed_files() -> set[Path]:
    """Return what git shows as changed or new; if that is nothing, what the last commit changed."""
    new = git("ls-files", "--others", "--exclude-standard")
    files = git("diff", "--name-only", "HEAD") + new
    files = files or git("show", "--name-only", "--format=", "--first-parent", "-m")
    return {ROOT / file for file in files}


def git(*arguments: str) -> list[str]:
    run = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


def can_break(changed: set[Path], test: Path, folders: list[Path]) -> bool:
    """Return whether one of the files is the test, is imported by it, or belongs to its room."""
    room = test.relative_to(ROOT / "tests").parts[0]
    conftests = {folder / "conftest.py" for folder in test.parents}
    if changed & ({test, ROOT / "pyproject.toml"} | conftests) or room == "project":
        return True
    found_by_room = {f for f in changed if f.suffix != ".py" or PICTURES in f.parents}
    if room in map(room_of, found_by_room):
        return True
    return bool(changed & imported_files(test, folders))


def room_of(file: Path) -> str | None:
    """Return the folder of tests that a file belongs to; ``tests/library/figures/x.svg`` is a part of one."""
    name = file.relative_to(ROOT).as_posix()
    if name.startswith("tests/"):
        return name.split("/")[1]
    return next(
        (room for folder, room in ROOMS.items() if name.startswith(f"{folder}/")), None
    )


def imported_files(test: Path, folders: list[Path]) -> set[Path]:
    """Return the project's files that importing the test imports, by the folders on the path."""
    found: set[Path] = set()
    waiting = [Module("test", test, test.read_text(encoding="utf-8"))]
    while waiting:
        module = waiting.pop()
        for folder in folders:
            project = PROJECTS.setdefault(folder, Project(folder))
            body = module.tree.body if module.path == test else module.library
            for other in project.imported(module, body):
                if other.path not in found:
                    found.add(other.path)
                    waiting.append(other)
    return found


PROJECTS: dict[Path, Project] = {}
