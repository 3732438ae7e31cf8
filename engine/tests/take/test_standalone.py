"""A bundle contains what a definition needs and no more, in an order that runs."""

import ast
from collections.abc import Callable

import pytest
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.take.standalone import Collector

Make = Callable[[dict[str, str]], Project]


@pytest.fixture
def collect(project: Make) -> Callable[..., str]:
    """The source that ``names`` of the module ``name`` need."""

    def collector(files: dict[str, str], *names: str, name: str = "pkg.one") -> str:
        made = Collector(project({"pkg/__init__.py": "", **files}))
        module = made.project.find(name)
        assert module is not None
        for each in names:
            made.need(module, each)
        return made.source()

    return collector


def run(source: str) -> dict[str, object]:
    """Runs a bundle where the project is not."""
    space: dict[str, object] = {"__name__": "elsewhere"}
    exec(compile(source, "bundle", "exec", dont_inherit=True), space)
    return space


def defined(source: str) -> list[str]:
    return [
        n.name if isinstance(n, ast.FunctionDef | ast.ClassDef) else ast.unparse(n)
        for n in ast.parse(source).body
        if not isinstance(n, ast.Import | ast.ImportFrom)
    ]


def test_only_needed_definitions_are_copied(collect: Callable[..., str]) -> None:
    source = collect(
        {
            "pkg/one.py": """
                import json
                from math import pi, tau

                from pkg.two import Base, unused
                from pkg.two import scale as scaled

                LIMIT = 3
                OTHER = 4


                def decorator(f):
                    '''Doc.'''
                    # Note.
                    return f


                def not_needed():
                    return unused, json, tau


                @decorator
                class Thing(Base):
                    '''Doc.'''

                    size: int = LIMIT

                    def area(self, radius=pi):
                        # Note.
                        return scaled(radius) + helper(1)


                def helper(x):
                    return x if x > 5 else helper(x + 1)
            """,
            "pkg/two.py": """
                import math
                from math import e

                unused = 1


                class Base:
                    '''Only a docstring.'''


                def scale(x):
                    return math.floor(x * e)


                if __name__ == "__main__":
                    scale(3)
            """,
        },
        "Thing",
    )
    space = run(source)
    assert space["Thing"]().area() == 8 + 6  # type: ignore[operator]
    assert set(defined(source)) == {
        *(
            "Base",
            "scale",
            "scaled = scale",
            "LIMIT = 3",
            "decorator",
            "Thing",
            "helper",
        )
    }
    assert "Doc." not in source
    assert "Note." not in source
    assert source.startswith("import math\nfrom math import e, pi\n")


def test_definitions_needed_at_once_come_first(
    collect: Callable[..., str],
) -> None:
    source = collect(
        {
            "pkg/one.py": """
                class Parent:
                    def child(self):
                        return Child()


                class Child(Parent):
                    pass


                def even(n):
                    return n == 0 or odd(n - 1)


                def odd(n):
                    return n != 0 and even(n - 1)


                FOUND = even(4)
                TABLE = {"a": 1}
                TABLE["b"] = len(TABLE) + FOUND
            """
        },
        *("Parent", "TABLE"),
    )
    space = run(source)
    assert space["TABLE"] == {"a": 1, "b": 2}
    assert type(space["Parent"]().child()).__name__ == "Child"  # type: ignore[operator]


def test_conditional_definitions_and_imports_are_copied_whole(
    collect: Callable[..., str],
) -> None:
    source = collect(
        {
            "pkg/one.py": """
                import sys

                try:
                    import tomllib as toml
                except ImportError:
                    toml = None
                if sys.version_info > (3,):
                    def new():
                        return toml
                else:
                    new = None
            """
        },
        "new",
    )
    assert run(source)["new"]().__name__ == "tomllib"  # type: ignore[operator]


def test_reexports_and_other_names_are_followed(collect: Callable[..., str]) -> None:
    source = collect(
        {
            "pkg/one.py": "from pkg import near as shown\n\n\nclass A(shown):\n    pass\n",
            "pkg/__init__.py": "from .near import near\n",
            "pkg/near.py": """
                from . import far as unused
                from .deep.base import Base as Root


                class near(Root):
                    pass
            """,
            "pkg/far.py": "",
            "pkg/deep/__init__.py": "",
            "pkg/deep/base.py": "from ..numbers import xs as n\n\n\nclass Base:\n    x = n.sqrt(4)\n",
            "pkg/numbers.py": "import math as xs\n",
        },
        "A",
    )
    assert run(source)["A"].x == 2.0  # type: ignore[attr-defined]


def test_several_modules_of_one_package_are_imported(
    collect: Callable[..., str],
) -> None:
    source = collect(
        {
            "pkg/one.py": """
                import os.path
                import os as system
                import importlib.util
                import importlib.metadata
                from pkg.two import f


                def g():
                    return os.path.join(f(), system.sep), importlib.util, importlib.metadata
            """,
            "pkg/two.py": "import os\n\n\ndef f():\n    return os.sep\n",
        },
        "g",
    )
    assert run(source)["g"]()[0] == "/"  # type: ignore[operator]


def test_two_ways_to_import_the_same_are_one_import(
    collect: Callable[..., str],
) -> None:
    source = collect(
        {
            "pkg/one.py": """
                import os.path as paths
                import json as json
                from pkg.two import f


                def g():
                    return f(), paths.sep, json
            """,
            "pkg/two.py": """
                import json
                from os import path as paths


                def f():
                    return paths.sep, json
            """,
        },
        "g",
    )
    assert run(source)["g"]()[1] == "/"  # type: ignore[operator]
    assert source.count("import") == 2


def test_annotations_run_without_a_future_import(
    collect: Callable[..., str],
) -> None:
    files = {
        "pkg/one.py": "class A:\n    def f(self) -> 'B': ...\n\n\nclass B:\n    def g(self) -> A: ...\n"
    }
    assert defined(collect(files, "B")) == ["A", "B"]
    assert defined(collect(files, "A")) == ["A", "B"]  # type checkers read the text
    later = {
        "pkg/one.py": "from __future__ import annotations\n\n\n"
        "class A:\n    def f(self) -> B: ...\n\n\nclass B(A): ...\n"
    }
    source = collect(later, "A")
    run(source)
    assert source.startswith("from __future__ import annotations\n")
    assert defined(source) == ["A", "B"]


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (
            {
                "pkg/two.py": "x = 1\n",
                "pkg/one.py": "from pkg import two\n\n\ndef f():\n    return two.x\n",
            },
            "one.py:1: imports the module two whole. Import the names",
        ),
        (
            {
                "pkg/two.py": "x = 1\n",
                "pkg/one.py": "import pkg.two\n\n\ndef f():\n    return pkg.two.x\n",
            },
            "one.py:1: imports the module pkg.two whole. Import the names",
        ),
        (
            {
                "pkg/two.py": "x = 1\n",
                "pkg/one.py": "z = 0\nfrom .two import y\n\n\ndef f():\n    return y\n",
            },
            "one.py:2: pkg.two does not define y. Correct the name.",
        ),
        (
            {"pkg/one.py": "z = 0\nfrom .gone import y\n\n\ndef f():\n    return y\n"},
            "one.py:2: pkg.gone does not exist. Write it, or correct the name.",
        ),
        (
            {
                "pkg/two.py": "x = 1\n",
                "pkg/one.py": "from .two import *\n\n\ndef f():\n    return x\n",
            },
            "one.py:1: imports everything. Import the names that are used.",
        ),
        (
            {
                "pkg/two.py": "x = 1\ndef change():\n    global x\n    x += 1\n",
                "pkg/one.py": "from .two import x, change\ndef f():\n    return x, change\n",
            },
            r"one.py:1: x is imported, and line 2 of pkg.two may change it later.*Import a function",
        ),
        (
            {"pkg/one.py": "from math import *\n\n\ndef f():\n    return pow(2, 3)\n"},
            "one.py:1: imports everything. Import the names that are used.",
        ),
        (
            {
                "pkg/two.py": "h = 1\n\n\ndef g():\n    return h\n",
                "pkg/one.py": "from .two import g\n\nh = 2\n\n\ndef f():\n    return g(), h\n",
            },
            r"two.py:1: h means `pkg.two.h` here and `pkg.one.h` elsewhere.*Rename one\.",
        ),
        (
            {
                "pkg/two.py": "import json as h\n\n\ndef g():\n    return h\n",
                "pkg/one.py": "from .two import g\nimport ast as h\n\n\ndef f():\n    return g(), h\n",
            },
            r"two.py:1: h means `import json as h` here and `import ast as h` elsewhere",
        ),
    ],
)
def test_code_that_cannot_be_copied_is_an_error_with_file_and_line(
    collect: Callable[..., str], files: dict[str, str], error: str
) -> None:
    with pytest.raises(ChapterError, match=error):
        collect(files, "f")


SUMMED = """
    class Layer:
        '''
        ## A layer

        Each layer has its reasons.
        '''

        def forward(self, x):
            '''Map `[batch, seq]` to {term}`logits` `[batch, seq, vocab]`, which is a sentence too long for
            one line. Then more.'''
            # A note.
            return x  # [batch, seq]

        def size(self): return 1


    def keep(k):
        r'''
        ## Top-k

        Keep the $k$ best: $\\sqrt{k}$ of them.
        '''

        def inner():
            '''Return {py:func}`~pkg.one.keep`, as {doc}`the chapter </one>` says.'''
            return keep

        return Layer, inner
"""


def test_a_copy_keeps_a_sentence_of_each_docstring_and_the_shapes(
    project: Make,
) -> None:
    made = Collector(project({"pkg/__init__.py": "", "pkg/one.py": SUMMED}))
    module = made.project.find("pkg.one")
    assert module is not None
    made.need(module, "keep")
    source = made.source(documented=True)
    layer, inner = run(source)["keep"](1)  # type: ignore[operator]
    assert layer.__doc__ == "A layer"
    assert " ".join(layer.forward.__doc__.split()) == (
        "Map `[batch, seq]` to logits `[batch, seq, vocab]`, which is a sentence too long for one line."
    )
    assert layer.size.__doc__ is None
    assert inner.__doc__ == "Return keep, as the chapter says."
    assert "return x  # [batch, seq]" in source and "A note" not in source
    assert all(len(line) <= 88 for line in source.splitlines())
    assert run(source)["keep"].__doc__ == "Top-k"  # its sentence has a formula
