"""A bundle contains what a definition needs and no more, in an order that runs."""

import ast
from collections.abc import Callable
from decimal import localcontext
from inspect import cleandoc

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


def test_a_name_comes_with_statements_that_change_it(
    collect: Callable[..., str],
) -> None:
    source = collect(
        {
            "pkg/one.py": """
                import functools

                REGISTRY = []


                @functools.singledispatch
                def show(x):
                    return "any"


                @show.register
                def _(x: int):
                    return "int"


                REGISTRY.append(show)
                REGISTRY += [1]
                apart = 1
            """
        },
        "REGISTRY",
    )
    registry = run(source)["REGISTRY"]
    assert registry[0](1) == "int"  # type: ignore[index]
    assert registry[1] == 1  # type: ignore[index]
    assert "apart" not in source


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


def test_imports_inside_definitions_are_followed_and_removed(
    collect: Callable[..., str],
) -> None:
    source = collect(
        {
            "pkg/one.py": """
                def f():
                    from .two import late
                    import json

                    return json.dumps(late())


                def g():
                    if True:
                        from .two import late
            """,
            "pkg/two.py": "def late():\n    return 1\n",
        },
        *("f", "g"),
    )
    assert run(source)["f"]() == "1"  # type: ignore[operator]
    assert "two" not in source


def test_imports_inside_functions_are_available_when_called(
    collect: Callable[..., str],
) -> None:
    source = collect(
        {
            "pkg/one.py": """
                from .three import made


                def f():
                    return made
            """,
            "pkg/three.py": """
                def make():
                    from .two import late

                    return late()


                made = make()
            """,
            "pkg/two.py": "def late():\n    return 1\n",
        },
        "f",
    )
    assert run(source)["made"] == 1


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


def test_annotations_run_without_a_future_import(
    collect: Callable[..., str],
) -> None:
    files = {
        "pkg/one.py": "class A:\n    def f(self) -> 'B': ...\n\n\nclass B:\n    def g(self) -> A: ...\n"
    }
    assert defined(collect(files, "B")) == ["A", "B"]
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
            {"pkg/one.py": "from math import *\n\n\ndef f():\n    return pow(2, 3)\n"},
            "one.py:1: imports everything. Import the names that are used.",
        ),
        (
            {
                "pkg/two.py": "h = 1\n\n\ndef g():\n    return h\n",
                "pkg/one.py": "from .two import g\n\nh = 2\n\n\ndef f():\n    return g(), h\n",
            },
            r"one.py:3: h means `pkg.one.h` here and `pkg.two.h` elsewhere.*Rename one\.",
        ),
        (
            {
                "pkg/two.py": "import json as h\n\n\ndef g():\n    return h\n",
                "pkg/one.py": "from .two import g\nimport ast as h\n\n\ndef f():\n    return g(), h\n",
            },
            r"one.py:2: h means `import ast as h` here and `import json as h` elsewhere",
        ),
    ],
)
def test_code_that_cannot_be_copied_is_an_error_with_file_and_line(
    collect: Callable[..., str], files: dict[str, str], error: str
) -> None:
    with pytest.raises(ChapterError, match=error):
        collect(files, "f")


def test_definitions_that_need_each_other_are_in_an_order_that_runs(
    collect: Callable[..., str],
) -> None:
    files = {
        "pkg/one.py": """
            class Parent:
                def child(self):
                    from .two import Child

                    return Child()
        """,
        "pkg/two.py": "from .one import Parent\n\n\nclass Child(Parent): ...\n",
    }
    for name, module in (("Child", "pkg.two"), ("Parent", "pkg.one")):
        source = collect(files, name, name=module)
        run(source)
        assert defined(source) == ["Parent", "Child"]


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


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("from math import pi\npi = round(pi, 2)", 2),
        ("from os.path import join\ndef join(*x): return x", 2),
        ("from .two import limit\n\nlimit = limit * 10", 3),
        ("from .two import TABLE\nTABLE['x'] = 1", 2),
        ("from .two import show\n@show.register\ndef _(x: int): ...", 3),
    ],
)
def test_a_name_that_is_imported_and_changed_is_an_error(
    collect: Callable[..., str], code: str, line: int
) -> None:
    name = code.partition("import ")[2].partition("\n")[0]
    two = "from functools import singledispatch\nTABLE, limit = {}, 2\n@singledispatch\ndef show(x): ...\n"
    files = {
        "pkg/one.py": f"{code}\n\n\ndef f():\n    return {name}\n",
        "pkg/two.py": two,
    }
    words = rf"one\.py:{line}: {name} is imported in line 1 .* Use another name"
    with pytest.raises(ChapterError, match=words):
        collect(files, "f")


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        (
            "def f():\n    try:\n        from .two import fast\n    except ImportError:\n"
            "        fast = None\n    return fast",
            3,
            "fast is imported in f, which gives it another value too. Use another name",
        ),
        (
            "def f(x):\n    if x:\n        from .two import fast\n    else:\n"
            "        from math import sin as fast\n    return fast",
            3,
            "fast is imported in f, which gives it another value too",
        ),
        (
            "class Quick:\n    from .two import fast\ndef f():\n    return Quick().fast",
            2,
            "imported into the class Quick; .* Import it above the class",
        ),
    ],
)
def test_an_import_that_a_copy_moves_and_that_would_leave_a_gap_is_an_error(
    collect: Callable[..., str], code: str, line: int, words: str
) -> None:
    files = {"pkg/one.py": f"{code}\n", "pkg/two.py": "def fast(x):\n    return x\n"}
    with pytest.raises(ChapterError, match=rf"one\.py:{line}: .*{words}"):
        collect(files, "f")


def test_a_name_of_a_builtin_in_one_module_is_an_error_if_another_takes_the_builtin(
    collect: Callable[..., str],
) -> None:
    files = {
        "pkg/one.py": """
            from .two import total


            def sum(a, b):
                return a + b + 100


            def f():
                return total([1, 2]) + sum(1, 2)
        """,
        "pkg/two.py": "def total(xs):\n    return sum(xs)\n",
    }
    with pytest.raises(ChapterError, match=r"sum means .*builtins\.sum.* Rename one"):
        collect(files, "f")
    assert "def sum" in collect(files, "sum")


def test_a_class_body_that_reads_a_name_of_the_module_before_it_binds_it_has_it(
    collect: Callable[..., str],
) -> None:
    code = (
        "limit = 3\nother = 4\n\n\nclass A:\n    limit = limit\n    b = 1\n    c = b\n"
    )
    source = collect({"pkg/one.py": code}, "A")
    assert run(source)["A"].limit == 3  # type: ignore[attr-defined]
    assert defined(source) == ["limit = 3", "A"]


def test_summaries_are_indented_as_the_code_is(project: Make) -> None:
    code = 'class A:\n\t"""Doc one."""\n\n\tdef f(self):\n\t\t"""Return one."""\n\t\treturn 1\n'
    made = Collector(project({"pkg/__init__.py": "", "pkg/one.py": code}))
    module = made.project.find("pkg.one")
    assert module is not None
    made.need(module, "A")
    source = made.source(documented=True)
    assert run(source)["A"]().f() == 1  # type: ignore[operator]
    assert "Doc one." in source and "Return one." in source


@pytest.mark.parametrize(
    "code",
    [
        "for i in range(3):\n    TABLE[i] = i * i",
        "if True:\n    TABLE.update({2: 4})",
        "with suppress(KeyError):\n    TABLE[2] = 4\n    TABLE[3]",
        "TABLE[2], other = 4, 5",
        "TABLE[2] = 4\nTABLE[3] = 9\ndel TABLE[3]",
        "TABLE[2], TABLE[3] = 4, 9\nlast = TABLE.pop(3)",
        "[TABLE.update({n: n + 2}) for n in (1, 2)]",
        "TABLE[2] = []\nfor row in TABLE.values():\n    row.append(1)\nTABLE[2] = 3 + len(TABLE[2])",
        "alias = TABLE\nalso = alias\nalso[2] = 4",
        "from heapq import heappop\nTABLE = [0, 1, 4, 5]\nfirst = heappop(TABLE)",
    ],
)
def test_statements_that_fill_an_object_are_copied_with_it(
    collect: Callable[..., str], code: str
) -> None:
    head = "from contextlib import suppress\n\nTABLE = {}\n"
    text = f"{head}{code}\n\n\ndef look():\n    return TABLE[2], 3 in TABLE\n\n\nfor x in []:\n    y = x\n"
    source = collect({"pkg/one.py": text}, "look")
    assert run(source)["look"]() == (4, False)  # type: ignore[operator]
    assert "y = x" not in source


@pytest.mark.parametrize(
    "code",
    [
        "def fill(table):\n    table[2] = 4\n\nfill(TABLE)",
        "def fill(table, key):\n    put(table, key)\n\ndef put(t, k):\n    t[k] = 4\n\nfill(TABLE, key=2)",
        "def fill(n):\n    TABLE[n] = 4\n\ndef more():\n    fill(2)\n\nmore()",
        "def fill(n):\n    TABLE[n] = 4\n\nfilled = [fill(n) for n in (1, 2)]",
        "def keep(f):\n    TABLE[f()] = 4\n    return f\n\n@keep\ndef two():\n    return 2",
        "def keep(n):\n    return lambda f: TABLE.update({n: f()})\n\n@keep(2)\ndef four():\n    return 4",
        "class Kept:\n    def __init_subclass__(cls):\n        TABLE[2] = 4\n\nclass Two(Kept): ...",
        "setattr(TABLE, 'two', 4)\nTABLE[2] = TABLE.two",
        "operator.setitem(TABLE, 2, 4)",
        "def start():\n    global TABLE\n    TABLE = Table({2: 4})\n\nstart()",
    ],
)
def test_what_functions_that_run_on_import_do_to_an_object_is_copied_with_it(
    collect: Callable[..., str], code: str
) -> None:
    head = (
        "import operator\n\nclass Table(dict):\n    pass\n\nTABLE = Table()\nSIZE = 3\n"
    )
    rest = "def look():\n    return TABLE[2], 3 in TABLE\n\ndef show(t):\n    print(t, SIZE)\n\nshow(TABLE)\n"
    source = collect({"pkg/one.py": f"{head}\n{code}\n\n{rest}"}, "look")
    assert run(source)["look"]() == (4, False)  # type: ignore[operator]
    assert "SIZE" not in source


def test_attributes_that_a_loop_gives_a_class_are_copied_with_it(
    collect: Callable[..., str],
) -> None:
    code = "class A: ...\n\nfor n in (1, 2):\n    setattr(A, f'm{n}', n)\n"
    assert run(collect({"pkg/one.py": code}, "A"))["A"].m2 == 2  # type: ignore[attr-defined]


def test_a_function_that_alone_sets_a_name_is_copied_with_it(
    collect: Callable[..., str],
) -> None:
    code = """
        def set_up(size):
            global SIZE
            SIZE = size


        def look():
            return SIZE
    """
    space = run(collect({"pkg/one.py": code}, "look"))
    space["set_up"](3)  # type: ignore[operator]
    assert space["look"]() == 3  # type: ignore[operator]


def test_a_call_that_changes_nothing_is_not_copied_with_what_it_is_given(
    collect: Callable[..., str],
) -> None:
    code = """
        import torch

        SEED, RATE = 3, {"rate": 1}
        LIMIT = 4


        def show(table):
            return len(table)


        def double(x):
            y = 2 * x
            y[0] = 1
            return y


        torch.manual_seed(LIMIT)
        show(RATE)
        double(RATE)
        print(RATE)


        def look():
            return RATE, LIMIT
    """
    assert defined(collect({"pkg/one.py": code}, "look")) == [
        "SEED, RATE = (3, {'rate': 1})",
        "LIMIT = 4",
        "look",
    ]


def test_what_only_a_type_checker_imports_is_not_copied(
    collect: Callable[..., str],
) -> None:
    files = {
        "pkg/one.py": """
            from __future__ import annotations

            import typing as t
            from typing import TYPE_CHECKING

            if t.TYPE_CHECKING:
                from pkg.two import C


            def f(x: C | None = None) -> int:
                if TYPE_CHECKING:
                    from pkg.two import C
                return 1
        """,
        "pkg/two.py": "class C: ...\n",
    }
    source = collect(files, "f")
    assert run(source)["f"]() == 1  # type: ignore[operator]
    assert "class C" not in source


@pytest.mark.parametrize(
    "code",
    [
        "A = x\nx = 2",
        "def last(y=x): return y\nx = 2\nA = last()",
        "class Old:\n    x = x\nx = 2\nA = Old.x",
        "A = x\nfor x in range(3): ...",
        "def read(): return x\nA = read()\nx = 2",
        "T = [x]\nA = len(T)\nT.append(x)\nx = len(T)",
        "A = min(x, 2)\ndef min(*numbers): ...\nmin(3)\nx = 2",
    ],
)
def test_what_runs_before_a_name_changes_has_the_earlier_value(
    collect: Callable[..., str], code: str
) -> None:
    rest = "B = [x]\n\ndef look():\n    return A, B, min\n"
    source = collect({"pkg/one.py": f"x = 1\n{code}\n{rest}"}, "look")
    assert run(source)["look"]()[:2] == (1, [2])  # type: ignore[operator]


@pytest.mark.parametrize(
    ("head", "setting", "value", "result"),
    [
        ("import random", "random.seed(3)", "random.random()", 0.23796462709189137),
        ("import os", "os.environ['MODE_3'] = 'fast'", "os.environ['MODE_3']", "fast"),
        (
            "import decimal",
            "decimal.getcontext().prec = 2",
            "str(decimal.Decimal(1) / 3)",
            "0.33",
        ),
        (
            "from collections.abc import Sized",
            "class S: ...\nSized.register(S)",
            "issubclass(S, Sized)",
            True,
        ),
    ],
)
def test_settings_of_packages_are_copied_with_what_uses_the_package(
    collect: Callable[..., str], head: str, setting: str, value: str, result: object
) -> None:
    shown = "import sys\nsys.path.append(__file__)\nsys.stdout.write('shown')\n"
    shown += "import random\nX = [1]\nrandom.shuffle(X)\n"
    code = f"{head}\n{shown}{setting}\nA = {value}\n\ndef look():\n    return {value}, A, sys, random\n"
    with localcontext(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODE_3", "slow")
        source = collect({"pkg/one.py": code}, "look")
        assert run(source)["A"] == result
        assert "sys." not in source and "X" not in source
    assert defined(collect({"pkg/one.py": f"{code}\nB = 1\n"}, "B")) == ["B = 1"]


FUTURE = "from __future__ import annotations\n\n\ndef g(x: int): ...\n"
FIELDS = """
    from dataclasses import dataclass, fields
    from .two import g


    @dataclass
    class C:
        x: int


    def f():
        return g(C(2)), fields(C)[0].type
"""


def test_annotations_that_are_read_are_alike_in_all_modules_of_a_copy(
    collect: Callable[..., str],
) -> None:
    files = {"pkg/one.py": FIELDS, "pkg/two.py": FUTURE}
    words = r"one\.py:6: its annotations are read, .* in both modules or in none"
    with pytest.raises(ChapterError, match=words):
        collect(files, "f")
    alike = "from __future__ import annotations\n" + cleandoc(FIELDS)
    assert collect(files | {"pkg/one.py": alike}, "f")
    assert collect(files | {"pkg/one.py": FIELDS.replace("].type", "]")}, "f")


def test_an_imported_name_that_its_module_gives_another_value_later_is_an_error(
    collect: Callable[..., str],
) -> None:
    two = "counter = 0\ndef bump():\n    global counter\n    counter += 1\ndef count():\n    return counter\n"
    one = "from .two import bump, {0}\ndef f():\n    bump()\n    return {0}\n"
    files = {"pkg/two.py": two, "pkg/one.py": one.format("counter")}
    words = (
        r"one\.py:1: counter is imported, and line 2 of pkg\.two may change it later"
    )
    with pytest.raises(ChapterError, match=words):
        collect(files, "f")
    source = collect(files | {"pkg/one.py": one.format("count")}, "f")
    assert run(source)["f"]()() == 1  # type: ignore[operator]


def test_a_name_that_no_code_binds_is_an_error(collect: Callable[..., str]) -> None:
    code = """
        globals().update(limit=3)
        pairs = [last := i for i in range(3) if (kept := i)]

        try:
            unicode
        except NameError:
            names = str


        def f(x: "Unknown" = 1):
            y: Unknown = __name__
            try:
                return x, y, last, kept, names
            finally:
                display(x)


        def g():
            return limit
    """
    space = run(collect({"pkg/one.py": code}, "f"))
    assert (space["last"], space["kept"]) == (2, 2)
    words = r"one\.py:18: nothing in this module binds limit, .* Assign, define or"
    with pytest.raises(ChapterError, match=words):
        collect({"pkg/one.py": code}, "g")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("try:\n    from .two import h\nexcept ImportError:\n    def h(): ...", 2),
        (
            "import os\nif os.name:\n    from .two import h\nelse:\n    from .three import h",
            3,
        ),
    ],
)
def test_an_import_under_a_condition_is_an_error(
    collect: Callable[..., str], code: str, line: int
) -> None:
    two = "def h(): ...\n"
    one = f"{code}\n\ndef f():\n    return h\n"
    words = rf"one\.py:{line}: h is imported .* under a condition, .* without one\."
    with pytest.raises(ChapterError, match=words):
        collect({"pkg/two.py": two, "pkg/three.py": two, "pkg/one.py": one}, "f")


def test_names_in_texts_that_annotate_fields_are_followed(
    collect: Callable[..., str],
) -> None:
    code = """
        from dataclasses import dataclass, fields
        from typing import ClassVar, Literal

        a = b = 1


        class Made: ...


        @dataclass
        class C:
            size: "ClassVar[int]" = 1
            kind: "Literal['b']" = "a"
            mode: Literal["b"] = "b"
            made: "Made | Unknown | None" = None
            odd: "not one" = 0

            def same(self) -> "Same": ...


        class Same: ...
    """
    source = collect({"pkg/one.py": code}, "C")
    assert defined(source) == ["Made", "C"]
    assert "from typing import ClassVar, Literal\n" in source


@pytest.mark.parametrize("read", ["told.__doc__", "getdoc(told)"])
def test_docstrings_that_the_code_reads_are_copied_whole(
    project: Make, read: str
) -> None:
    head = "from inspect import getdoc\n\n\ndef told():\n    '''One. Two.\n\n    Three.'''\n"
    code = f"{head}\n\ndef f():\n    from .two import x\n    return {read}\n"
    files = {"pkg/__init__.py": "", "pkg/one.py": code, "pkg/two.py": "x = 1\n"}
    made = Collector(project(files))
    module = made.project.find("pkg.one")
    assert module is not None
    made.need(module, "f")
    for source in (made.source(), made.source(documented=True)):
        assert str(run(source)["f"]()).endswith("Three.")  # type: ignore[operator]
