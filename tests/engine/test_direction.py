"""The engine's modules import in one direction, and know nothing of the book or its theme."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ENGINE

FOLDER = ENGINE / "annotated"
GROUPS = ["read", "run", "page", "take"]  # a module may import from its left
MODULES = sorted(FOLDER.rglob("*.py"))
FOREIGN = {
    "torch",
    "labml",
    "labml_primer",
    "experiments",
    "benchmarks",
    "theme",
    "book",
}
every_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: path.relative_to(FOLDER).as_posix()
)


def imported(path: Path) -> Iterator[str]:
    """The dotted names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rank(parts: tuple[str, ...]) -> int:
    """The place of a module's group; modules outside the groups connect them all."""
    return GROUPS.index(parts[0]) if parts[0] in GROUPS else len(GROUPS)


@every_module
def test_no_module_imports_from_a_later_group(path: Path) -> None:
    own = rank(path.relative_to(FOLDER).with_suffix("").parts)
    for name in imported(path):
        package, *rest = name.split(".")
        if package == "annotated":
            assert rank(tuple(rest)) <= own, name


def test_no_modules_import_each_other_in_a_circle() -> None:
    names = {
        "annotated." + ".".join(path.relative_to(FOLDER).with_suffix("").parts): path
        for path in MODULES
    }
    needs = {}
    for name, path in names.items():
        used = {
            part for each in imported(path) for part in (each, each.rpartition(".")[0])
        }
        needs[name] = used & set(names)
    while needs:
        free = [name for name, used in needs.items() if not used & set(needs)]
        assert free, f"a circle among {sorted(needs)}"
        for name in free:
            del needs[name]


@every_module
def test_the_engine_imports_neither_torch_nor_the_book_nor_its_theme(
    path: Path,
) -> None:
    assert not {name.partition(".")[0] for name in imported(path)} & FOREIGN


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
