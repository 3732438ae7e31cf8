"""Imports go one way: read from the source, demonstrations included."""

import ast
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("labml_primer", "experiments", "benchmarks")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__init__"
    ): path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def chapters() -> list[str]:
    """Dotted names of the chapters that are modules, in the order of the book."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    names = [file.replace("/", ".") for file in files]
    return [name for name in names if name in MODULES]


CHAPTERS = chapters()


@cache
def imports(path: Path, demos: bool = True) -> set[str]:
    """Dotted names of all that a module imports, wherever in the module that happens.

    `from a import b` is `a.b` if that is a module of the project, else `a`.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not demos:
        tree.body = [
            node
            for node in tree.body
            if not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))
        ]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full"
            base = str(node.module)
            for alias in node.names:
                name = f"{base}.{alias.name}"
                found.add(name if name in MODULES else base)
    return found


def reached(name: str, demos: bool) -> set[str]:
    """Modules of the project that importing a module imports, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        module = waiting.pop()
        new = imports(MODULES[module], demos and module == name) & MODULES.keys()
        waiting += new - found
        found |= new
    return found


# The map of all models is near the front of the book. Its demonstrations build the models of later chapters;
# what others import from it does not.
MAP = "experiments.chapters.family"


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_imports_no_later_chapter_directly_or_through_others(
    name: str,
) -> None:
    later = CHAPTERS[CHAPTERS.index(name) + 1 :]
    assert not reached(name, demos=name != MAP) & set(later)


def test_no_module_imports_itself_through_others() -> None:
    circles = [name for name in MODULES if name in reached(name, demos=False)]
    assert not circles


def test_training_imports_no_chapter_but_its_own() -> None:
    own = "labml_primer.training"
    for name, path in MODULES.items():
        if name.startswith(own):
            others = imports(path) & set(CHAPTERS)
            assert all(other.startswith(own) for other in others), name


def test_the_library_imports_neither_experiments_nor_benchmarks() -> None:
    for name, path in MODULES.items():
        if name.startswith("labml_primer"):
            tops = {imported.partition(".")[0] for imported in imports(path)}
            assert not tops & {"experiments", "benchmarks", "annotated"}, name


# From the bottom up: each layer imports the ones above it in this list, and none below.
LAYERS = (
    "labml_primer.training",
    "labml_primer.transformer",
    "labml_primer.primer",
    "labml_primer.search",
    "labml_primer.compared",
    "labml_primer.since",
    "labml_primer",  # the presets of all models
    "experiments.paper.rounding",
    "experiments.measured.tables",
    "experiments.records.timings",
    "experiments.records",
    "experiments.paper.claims",
    "experiments.measured.analysis",
    "experiments.measured.scaling",
    "experiments.measured.figures",
    "experiments.measured.settings",
    "experiments.harness",
    "experiments.search",
    "experiments.chapters",
    "benchmarks",
)


def layer_of(name: str) -> int:
    """The position in `LAYERS` of a module."""
    return next(
        i for i, layer in enumerate(LAYERS) if f"{name}.".startswith(f"{layer}.")
    )


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_no_later_layer(name: str) -> None:
    for imported in imports(MODULES[name]) & MODULES.keys():
        assert layer_of(imported) <= layer_of(name), imported


def test_measured_chapters_do_not_import_the_harness() -> None:
    for path in (ROOT / "experiments" / "chapters").glob("*.py"):
        found = imports(path)
        assert not any(name.startswith("experiments.harness") for name in found), path
