"""Names that refer to definitions, and modules that imports load."""

import ast
import textwrap
from collections.abc import Callable

import pytest
from sphinx_annotated.read.modules import Project, absolute, imported_names
from sphinx_annotated.read.names import bound_names, free_names, uses


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


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (
            "def f(x=a, *, y: b = c) -> d:\n    return x, y, e, len(f)",
            "a b c d e f len",
        ),
        (
            "@deco\nclass A(Base, key=k):\n    x = y\n    def m(self): return x, A, __class__",
            "A Base deco k x y",
        ),
        ("x = [i for i in xs if i > low]", "low xs"),
        ("x = lambda a: a + b", "b"),
        (
            "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = y\n    return g",
            "y",
        ),
        ("def f():\n    global x\n    x = 1", ""),
        ("x = f'{a!r:{width}}'", "a width"),
        ("try:\n    import a\nexcept ImportError:\n    a = b", "ImportError b"),
    ],
)
def test_free_names(code: str, names: str) -> None:
    assert free_names(ast.parse(code).body[0]) - {"x"} == set(names.split()) - {"x"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x = y = 1", "x y"),
        ("(a, [b, *c]) = z", "a b c"),
        ("x: int = 1", "x"),
        ("x += 1", "x"),
        ("x[0] = 1", ""),
        ("import a.b, c as d", "a d"),
        ("from a import b, c as d", "b d"),
        ("class A:\n    x = 1", "A"),
        ("if t:\n    def f(): y = 1\nelse:\n    f = [q for q in []]", "f"),
        ("try:\n    import a\nexcept E as e:\n    a = None", "a e"),
        ("with o() as (p, q): ...", "p q"),
        ("for i in j: k = 1", "i k"),
        ("print(w := 1)", "w"),
        ("[v := q for q in [lambda: (p := 1)] if (w := q)]", "v w"),
        ("match x:\n    case [a, *b]: ...\n    case {**c}: ...", "a b c"),
    ],
)
def test_bound_names(code: str, names: str) -> None:
    assert sorted(set(bound_names(ast.parse(code).body[0]))) == names.split()


@pytest.mark.parametrize(
    ("code", "package", "names"),
    [
        ("import a.b, c", "p.q", "a.b c"),
        ("from a.b import c", "p.q", "a.b.c a.b"),
        ("from . import c", "p.q", "p.q.c p.q"),
        ("from .a import c", "p.q", "p.q.a.c p.q.a"),
        ("from .. import c", "p.q", "p.c p"),
        ("from ..a.b import c", "p.q", "p.a.b.c p.a.b"),
        ("x = 1", "p.q", ""),
    ],
)
def test_modules_that_an_import_may_load(code: str, package: str, names: str) -> None:
    node = ast.parse(code).body[0]
    assert imported_names(node, package) == names.split()
    if isinstance(node, ast.ImportFrom):
        assert absolute(node, package) == names.split()[-1]


def test_modules_know_their_names_and_packages(
    project: Callable[[dict[str, str]], Project],
) -> None:
    made = project(
        {"a/__init__.py": "", "a/b/__init__.py": "", "a/b/c.py": "", "d.py": ""}
    )
    assert [
        (m.name, m.package) for n in ("a", "a.b", "a.b.c", "d") if (m := made.find(n))
    ] == [
        *(("a", "a"), ("a.b", "a.b"), ("a.b.c", "a.b"), ("d", "")),
    ]
    assert made.find("a.c") is None
    assert made.find("") is None
    assert [m.name for m in made.parents("a.b.c")] == ["a.b", "a"]
    assert made.owns("a.gone.further")
    assert made.owns("d")
    assert not made.owns("torch.nn")
