"""Imports go one way, beyond what the contracts in ``pyproject.toml`` say (`make lint` checks those)."""

from pathlib import Path

import grimp
import yaml

ROOT = Path(__file__).resolve().parents[2]


def chapters() -> list[str]:
    """Dotted names of the chapters that are modules, in the order of the book."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [f.replace("/", ".") for f in files if (ROOT / f"{f}.py").is_file()]


def test_a_chapter_imports_no_later_chapter_directly_or_through_others() -> None:
    graph = grimp.build_graph("labml_primer", "experiments", "benchmarks")
    ordered = [name for name in chapters() if name in graph.modules]
    assert len(ordered) > 35
    broken = graph.find_illegal_dependencies_for_layers(layers=ordered[::-1])
    assert not {(each.importer, each.imported) for each in broken}
