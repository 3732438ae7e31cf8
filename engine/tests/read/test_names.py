"""Names that refer to definitions, and modules that imports load."""

import ast
import textwrap

import pytest
from sphinx_annotated.read.names import uses


def found(code: str) -> list[tuple[int, int, int, str]]:
    text = textwrap.dedent(code).lstrip("\n")
    by_line = uses(text, ast.parse(text), "pkg.one", "pkg")
    return [
        (u.line, u.start, u.end, u.target) for line in by_line.values() for u in line
    ]


def texts(code: str) -> list[tuple[str, str]]:
    """Each linked text with its target."""
    lines = textwrap.dedent(code).lstrip("\n").split("\n")
    return [(lines[line - 1][a:b], target) for line, a, b, target in found(code)]


def test_names_refer_to_definitions_here_and_elsewhere() -> None:
    assert texts(
        """
        from .two import near, far as distant
        from other.deep import Thing
        import torch

        def f(x: Thing = near) -> Thing:
            return distant(f(x)), torch.nn
        """
    ) == [
        ("near", "pkg.two.near"),
        ("Thing", "other.deep.Thing"),
        ("Thing", "other.deep.Thing"),
        ("near", "pkg.two.near"),
        ("Thing", "other.deep.Thing"),
        ("distant", "pkg.two.far"),
        ("f", "pkg.one.f"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "def g(f):\n    return f(1)",
        "def g():\n    f = 1\n    return f",
        "def g():\n    for f in []:\n        f()",
        "def g():\n    def f(): ...\n    f()",
        "g = lambda f: f(1)",
        "g = [f for f in []]",
        "g = {f: 1 for f in []}",
        "class A:\n    def m(self, f):\n        return f",
        "def g():\n    try: ...\n    except E as f:\n        return f",
        "def g(x):\n    match x:\n        case [f]: return f\n        case {**f}: return f",
        "def g(x):\n    match x:\n        case [*f]: return f",
    ],
)
def test_local_names_refer_to_no_definition(body: str) -> None:
    assert texts(f"def f(): ...\n{body}\n") == []


def test_an_import_inside_a_function_is_that_functions_own() -> None:
    assert texts(
        """
        def a():
            from .two import load
            return load()

        def b():
            from .three import load
            return load()

        def c():
            return load()
        """
    ) == [
        ("load", "pkg.two.load"),
        ("load", "pkg.two.load"),
        ("load", "pkg.three.load"),
        ("load", "pkg.three.load"),
    ]


def test_methods_of_self_refer_to_the_class() -> None:
    assert texts(
        """
        class A:
            def m(self):
                return self.n(self.other)

            def n(self, x): ...
        """
    ) == [("n", "pkg.one.A.n")]


def test_columns_count_characters() -> None:
    assert found("def f(): ...\nx = 'äöü€𝄞', f\n")[0] == (2, 13, 14, "pkg.one.f")
