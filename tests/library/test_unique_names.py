"""Copies from several chapters can be pasted into one file: a name means the same in the whole library."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_name_means_one_thing_in_the_whole_library() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "labml_primer").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for statement in ast.parse(path.read_text("utf-8")).body:
            for name, meaning in bound(statement, module.removesuffix(".__init__")):
                meanings[name].add(meaning)
    del meanings["__all__"]  # which is never copied
    assert len(meanings) > 300
    assert {name: each for name, each in meanings.items() if len(each) > 1} == {}


def bound(statement: ast.stmt, module: str) -> Iterator[tuple[str, str]]:
    """Yield each name that a statement at the top of a module binds, and the place that it is from."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name, f"{module}.{statement.name}"
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        source = getattr(statement, "module", "")
        for each in statement.names:
            yield each.asname or each.name, f"{source}.{each.name}"
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, f"{module}.{node.id}"
