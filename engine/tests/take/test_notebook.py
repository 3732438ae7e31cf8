"""The reader's notebook runs alone, and contains plain Markdown and plain Python."""

import codeop
import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from sphinx_annotated.page.build.book import Book, book_of, verified
from sphinx_annotated.page.build.repository import Repository
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.parse import parse
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.run.execute import execute
from sphinx_annotated.run.job import job_of
from sphinx_annotated.run.returned import Returned
from sphinx_annotated.run.store import Record
from sphinx_annotated.take.markdown import MarkdownWriter
from sphinx_annotated.take.notebook import VALUE, reader_notebook
from sphinx_annotated.take.standalone import Collector

Make = Callable[[dict[str, str]], Project]
URL = "https://example.org/book/"
KEYS = {"ada1843": "[Lovelace (1843)](https://example.org/ada)", "b": "B (2000)"}


def a_book(project: Project, **more: Any) -> Book:
    titles = {"pkg/one": "One", "pkg/two": "Two"}
    return Book(
        "Fixture",
        project,
        URL,
        titles=titles,
        cite=KEYS.__getitem__,
        **{"install": {}, **more},
    )


@pytest.fixture
def made(project: Make) -> Callable[..., dict[str, Any]]:
    """The notebook of ``pkg/one.py`` in a book of these files."""

    def maker(files: dict[str, str], **more: Any) -> dict[str, Any]:
        root = project({"pkg/__init__.py": "", **files})
        text = reader_notebook(root.root / "pkg/one.py", a_book(root, **more))
        nbformat.validate(nbformat.reads(text, as_version=4))
        return json.loads(text)

    return maker


def sources(notebook: dict[str, Any], kind: str = "code") -> list[str]:
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == kind]


def run(notebook: dict[str, Any]) -> dict[str, object]:
    """Runs a notebook's code from top to bottom where the project is not."""
    space: dict[str, object] = {"__name__": "__main__"}
    compiler = (
        codeop.Compile()
    )  # like IPython, it remembers what a cell took from the future
    for source in sources(notebook):
        if not source.startswith("%"):
            exec(compiler(source, "cell", "exec"), space)
    return space


CHAPTER = '''
    """
    # One

    Summary, see {doc}`two`.
    """

    import json

    from pkg.two import Base, helped
    from pkg.two import helped as again

    __all__ = ["f"]


    # Above.
    class Empty(Base):  # for its name
        """Only this."""


    def f(x):
        """## F

        The *formula*.
        """
        from .two import late

        # First.
        y = x + 1
        # Second.

        # Third.
        text = """
        kept

        # kept
        """
        return helped(y), text, late, json


    def nothing():
        """Nothing."""
        # Really.


    def inside():
        if again:
            from .two import late
        else:
            pass


    if __name__ == "__main__":
        # ## It runs
        #
        # - one
        from pkg.two import late

        result = f(1)
        # And {py:func}`f` again.
        for k in range(2):
            # Inside.
            result = f(k)
        # Done.
'''
TWO = '''
    """# Two"""

    import math


    class Base:
        """Base."""


    def helped(x):
        return math.floor(x)


    late = 1
'''
FILES = {"pkg/one.py": CHAPTER, "pkg/two.py": TWO}


def test_a_notebook_runs_without_the_project(
    made: Callable[..., Any],
) -> None:
    space = run(made(FILES))
    assert space["result"][:3] == (2, "\n    kept\n\n    # kept\n    ", 1)  # type: ignore[index]
    assert space["Empty"].__mro__[1].__name__ == "Base"  # type: ignore[attr-defined]
    assert space["again"] is space["helped"]


def test_cells_are_in_the_order_of_the_page(made: Callable[..., Any]) -> None:
    notebook = made(FILES)
    assert [c["cell_type"] for c in notebook["cells"]] == [
        *("markdown", "markdown", "markdown", "code"),  # title, origin, definitions
        *("code", "markdown", "code", "markdown", "code", "markdown", "code", "code"),
        *("markdown", "code", "markdown", "code", "markdown"),
    ]
    assert notebook["cells"][3]["metadata"]["jupyter"] == {"source_hidden": True}
    prose = sources(notebook, "markdown")
    assert prose[0] == f"# One\n\nSummary, see [Two]({URL}pkg/two.html)."
    assert f"[Fixture]({URL}pkg/one.html)" in prose[1]
    assert f"[Two]({URL}pkg/two.html)" in prose[2]
    assert prose[4] == "## F\n\nThe *formula*.\n\n1. First.\n\n2. Second.\n\n   Third."
    assert prose[6] == "## It runs\n\n- one"
    assert prose[-1] == "Done."


@pytest.mark.parametrize("title", ["# T", "No heading."])
def test_a_license_above_the_docstring_is_in_the_notebook(
    made: Callable[..., Any], title: str
) -> None:
    text = f'#!/usr/bin/env python\n# Copyright Ada.\n# MIT.\n"""{title}"""\nx = 1\n'
    assert sources(made({"pkg/one.py": text})) == [
        "# Copyright Ada.\n# MIT.",
        "x = 1",
    ]
    without = made({"pkg/one.py": f'"""{title}"""\nx = 1\n'})
    assert sources(without) == ["x = 1"]


def test_notes_inside_a_cell_are_numbered_at_their_lines(
    made: Callable[..., Any],
) -> None:
    code = next(s for s in sources(made(FILES)) if s.startswith("def f("))
    assert code.startswith(
        "def f(x):\n\n    # (1)\n    y = x + 1\n\n    # (2)\n    text"
    )
    assert '    text = """\n    kept\n\n    # kept\n    """\n' in code


def test_a_body_of_only_prose_becomes_a_pass(
    made: Callable[..., Any],
) -> None:
    codes = sources(made(FILES))
    assert "class Empty(Base):  # for its name\n    pass" in codes
    assert "def nothing():\n    pass" in codes


def test_definitions_from_other_chapters_are_folded_and_linked(
    made: Callable[..., Any],
) -> None:
    files = {
        "pkg/one.py": '"""# One"""\n\nfrom .hid import g\nfrom .two import f\n\nf(g)\n',
        "pkg/two.py": "def f(x): ...\n",
        "pkg/hid.py": "def g(): ...\n",
    }
    notebook = made(files, repository=Repository("https://github.com/a/b", "draft"))
    words, cell = notebook["cells"][2:4]
    assert "".join(words["source"]).endswith(
        f"[Two]({URL}pkg/two.html), "
        "[`pkg/hid.py`](https://github.com/a/b/blob/draft/pkg/hid.py)."
    )
    assert "".join(cell["source"]).startswith("# @title ")
    assert cell["metadata"]["cellView"] == "form"
    assert cell["metadata"]["jupyter"] == {"source_hidden": True}


def test_a_notebook_has_no_outputs_and_names_its_kernel(
    made: Callable[..., Any],
) -> None:
    notebook = made(FILES)
    assert all(
        c["outputs"] == [] for c in notebook["cells"] if c["cell_type"] == "code"
    )
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert len({c["id"] for c in notebook["cells"]}) == len(notebook["cells"])


OUTPUTS = '''
    """
    # One

    Summary.
    """

    from .two import Base

    import math


    def f(x):
        return math.floor(x)


    if __name__ == "__main__":
        # Nothing is left of this in the notebook.
        from pkg.two import late
        # It prints.
        print(f(1.5))
        # A value.
        Base(), late
'''


def ran(outputs: Callable[[str], list[dict[str, Any]]], project: Project) -> Record:
    """A record in which each piece of code left what ``outputs`` makes of its source."""
    chapter = parse(project.at(project.root / "pkg/one.py").text)
    pieces = [chapter.source(cell, nodes) for cell, nodes in chapter.pieces()]
    return Record(outputs=[outputs(source) for source in pieces], date="2026-11-21")


@pytest.fixture
def executed(project: Make) -> Callable[..., dict[str, Any]]:
    """The notebook of a chapter that ran."""

    def maker(outputs: Callable[[str], list[dict[str, Any]]]) -> dict[str, Any]:
        files = {"pkg/__init__.py": "", "pkg/one.py": OUTPUTS, "pkg/two.py": TWO}
        root = project(files)
        path, record = root.root / "pkg/one.py", ran(outputs, root)
        text = reader_notebook(path, a_book(root), record)
        nbformat.validate(nbformat.reads(text, as_version=4))
        bare = json.loads(reader_notebook(path, a_book(root)))
        assert sources(bare) == sources(json.loads(text))
        return json.loads(text)

    return maker


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def test_outputs_are_at_their_cells(
    executed: Callable[..., Any],
) -> None:
    cells = executed(lambda source: [printed(f"{source}\n")])["cells"]
    shown = [cell for cell in cells if cell.get("outputs")]
    assert len(shown) == 4  # the import, f, and two steps of the demo
    for cell in shown:
        last = "".join(cell["source"]).splitlines()[-1]
        assert "".join(cell["outputs"][0]["text"]).splitlines()[-1] == last
    counts = [cell["execution_count"] for cell in shown]
    assert counts == [1, 2, 3, 4]


def test_warnings_are_not_in_the_notebook(executed: Callable[..., Any]) -> None:
    outputs = [printed("a"), printed("warned", "stderr"), printed("b")]
    cells = executed(lambda source: outputs)["cells"]
    shown = [output for cell in cells for output in cell.get("outputs", [])]
    assert {output["name"] for output in shown} == {"stdout"}
    assert {output["text"].replace("ab", "") for output in shown} == {""}


def test_a_figure_in_a_notebook_has_a_white_ground(
    executed: Callable[..., Any],
) -> None:
    figure = '<?xml version="1.0"?>\n<svg width="9"\n height="9"><g/></svg>'
    output = {"output_type": "display_data", "metadata": {}}
    cells = executed(lambda _: [output | {"data": {"image/svg+xml": figure}}])["cells"]
    shown = next(cell["outputs"][0] for cell in cells if cell.get("outputs"))
    svg = "".join(shown["data"]["image/svg+xml"])
    assert re.search(r"<svg [^>]*><rect [^>]*fill=.white./><g/></svg>", svg, re.DOTALL)


def test_a_notebook_names_the_versions_it_was_tested_with(
    project: Make, executed: Callable[..., Any]
) -> None:
    lock = "# made by: compile --python-version 3.11\ntorch==2.13.0\nipython==8.39.0\n"
    root = project({"requirements.lock": lock, "one.py": '"""# One"""\n'})
    book = book_of(root, "B", {}, ["one"], {}, ["torch", "IPython"], [])
    origin = json.loads(reader_notebook(root.root / "one.py", book))["cells"][1]
    assert "with Python 3.11, torch 2.13.0, IPython 8.39.0." in "".join(
        origin["source"]
    )
    dated = "".join(executed(lambda source: [])["cells"][1]["source"])
    assert "outputs are from 2026-11-21" in dated


def test_a_package_missing_in_the_lock_is_an_error(project: Make) -> None:
    root = project({"requirements.lock": "torch==2\n"})
    with pytest.raises(
        LookupError, match=r"requirements\.lock:1: does not pin numpy\."
    ):
        verified(root.root / "requirements.lock", ["torch", "numpy"])


READS = {
    "pkg/one.py": """
        '''
        # One

        Summary.
        '''

        from pathlib import Path

        from pkg.two import other

        __data__ = ("d/one.txt",)

        both = Path("d/one.txt").read_text(), other()
    """,
    "pkg/two.py": """
        from pathlib import Path

        __data__ = ("d/two.txt",)


        def other():
            return Path("d/two.txt").read_text()
    """,
    "d/one.txt": "it's {a} \\n '''\n",
    "d/two.txt": "two\n",
}


def test_a_notebook_contains_declared_data_and_overwrites_no_file(
    made: Callable[..., dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notebook = made(READS)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert run(notebook)["both"] == (READS["d/one.txt"], READS["d/two.txt"])
    Path("d/one.txt").write_text("newer")
    assert run(notebook)["both"] == ("newer", READS["d/two.txt"])


def test_missing_data_is_an_error(made: Callable[..., dict[str, Any]]) -> None:
    files = READS | {"pkg/one.py": READS["pkg/one.py"].replace("one.txt", "none.txt")}
    with pytest.raises(ChapterError, match=r"one\.py:\d+: __data__ names d/none\.txt"):
        made(files)


def test_packages_are_installed_only_if_they_are_used(
    made: Callable[..., Any],
) -> None:
    install = {"pytest": "pytest==1", "yaml": "pyyaml"}
    assert not any("%pip" in s for s in sources(made(FILES, install=install)))
    files = {
        "pkg/one.py": '"""# One"""\n\nfrom .two import f\n\nf()\n',
        "pkg/two.py": "import pytest\n\n\ndef f():\n    return pytest\n",
    }
    assert sources(made(files, install=install))[0] == "%pip install -q pytest==1"


def test_a_future_import_applies_to_the_whole_bundle(made: Callable[..., Any]) -> None:
    files = {
        "pkg/one.py": """
            '# One'

            from __future__ import annotations

            from .two import f


            def g(x: Later) -> None: ...
        """,
        "pkg/two.py": "from __future__ import annotations\n\n\ndef f(x: Later) -> None: ...\n",
    }
    run(made(files))


def test_what_only_a_type_checker_imports_is_not_in_a_notebook(
    made: Callable[..., Any],
) -> None:
    head = "'# One'\n\nfrom __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n"
    code = f"{head}\nif TYPE_CHECKING:\n    from .two import C\n\n\ndef f(x: C): ...\n"
    notebook = made({"pkg/one.py": code, "pkg/two.py": "class C: ...\n"})
    assert "C" not in run(notebook)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("from .two import f\nfrom math import *\n", "one.py:4: imports everything"),
        (
            "from .two import f\n\n\ndef t():\n    global g\n    g = 2\n",
            "one.py:6: g also means `pkg.two.g`",
        ),
        (
            "from .two import f\nmath = 1\n",
            "one.py:4: math also means `import math`, which this",
        ),
        (
            "from .two import f\n\n\ndef g(): ...\n",
            "one.py:6: g also means `pkg.two.g`",
        ),
        (
            'from .two import f\n\n\nif __name__ == "__main__":\n    x = 1\n    g = 2\n',
            "one.py:8: g also means `pkg.two.g`",
        ),
    ],
)
def test_a_chapter_that_cannot_become_a_notebook_is_an_error_with_its_line(
    made: Callable[..., Any], code: str, error: str
) -> None:
    two = "import math\n\n\ndef g():\n    return math, sum, open\n\n\ndef f():\n    return g()\n"
    with pytest.raises(ChapterError, match=error):
        made({"pkg/one.py": '"""# One"""\n\n' + code, "pkg/two.py": two})


@pytest.fixture
def plain(project: Make) -> MarkdownWriter:
    book = a_book(project({"pkg/__init__.py": "", **FILES}))
    path = book.project.root / "pkg" / "one.py"
    return MarkdownWriter(book.project.at(path), book, {"a * 2": "4_*2"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{cite:t}`ada1843`", KEYS["ada1843"]),
        ("It is {value}`a *\n2`.", r"It is 4\_\*2."),
        ("{cite:p}`ada1843,b`", f"{KEYS['ada1843']}, B (2000)"),
        ("{py:class}`~pkg.two.Base`", f"[`Base`]({URL}pkg/two.html#Base)"),
        (
            "{py:func}`pkg.two.helped`",
            f"[`pkg.two.helped()`]({URL}pkg/two.html#helped)",
        ),
        ("{py:meth}`~pkg.two.Base.m`", f"[`m()`]({URL}pkg/two.html#Base.m)"),
        ("{py:class}`words <pkg.two.Base>`", f"[`words`]({URL}pkg/two.html#Base)"),
        ("{py:class}`torch.nn.Linear`", "`torch.nn.Linear`"),
        ("{doc}`two`", f"[Two]({URL}pkg/two.html)"),
        ("{doc}`/pkg/two`", f"[Two]({URL}pkg/two.html)"),
        ("{doc}`../pkg/two`", f"[Two]({URL}pkg/two.html)"),
        ("{doc}`words <two>`", f"[words]({URL}pkg/two.html)"),
        ("{ref}`words <label>`", "words"),
        ("{math}`x^2`", "$x^2$"),
        ("(label)=\n## Title", "\n## Title"),
        ("`{doc}` and ``{ref}`x` ``", "`{doc}` and ``{ref}`x` ``"),
        (
            "```python\n(x)=\n:::{note}\n{doc}`two`\n```",
            "```python\n(x)=\n:::{note}\n{doc}`two`\n```",
        ),
        (
            "~~~\n{doc}`two`\n~~~\n{doc}`two`",
            f"~~~\n{{doc}}`two`\n~~~\n[Two]({URL}pkg/two.html)",
        ),
        (
            ":::{note}\nA {doc}`two`.\n\nB.\n:::\nC.",
            f"> **Note**\n>\n> A [Two]({URL}pkg/two.html).\n>\n> B.\nC.",
        ),
        (
            "```{warning}\n{doc}`two`\n```",
            f"> **Warning**\n>\n> [Two]({URL}pkg/two.html)",
        ),
        (":::{admonition} Title {math}`x`\nA.\n:::", "> **Title $x$**\n>\n> A."),
        (
            ":::{deviation} {cite:t}`b`, 3\nA.\n:::",
            "> **Deviation from B (2000), 3**\n>\n> A.",
        ),
        (
            "::::{note}\n:::{tip}\n```\n:::\n```\n:::\nB.\n::::\nC.",
            "> **Note**\n>\n> > **Tip**\n> >\n> > ```\n> > :::\n> > ```\n> B.\nC.",
        ),
        ("$$\nx_{a}`\n$$", "$$\nx_{a}`\n$$"),
        (":::{note}\n$$\nx\n  = y\n$$\n:::", "> **Note**\n>\n> $$ x = y $$"),
    ],
)
def test_markdown_is_plain(plain: MarkdownWriter, text: str, expected: str) -> None:
    assert VALUE.sub(r"\1", plain(text, 1)) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "a\n\nb {nope}`x`",
            r"pkg/one\.py:12: the notebook has no form for the role \{nope\}",
        ),
        (
            "a\n:::{nope} x\n:::",
            r"pkg/one\.py:11: .* no form for the directive \{nope\}",
        ),
        (":::{note}\n\na\n{nope}`x`\n:::", r"pkg/one\.py:13: .* the role \{nope\}"),
        (":::{note} x\na\n:::\n{nope}`x`\n", r"pkg/one\.py:13: .* the role \{nope\}"),
        (
            "a\n{cite:t}`ada1843, gone`",
            r"pkg/one\.py:11: gone is not among the references",
        ),
    ],
)
def test_roles_and_directives_without_a_form_are_errors_with_their_lines(
    plain: MarkdownWriter, text: str, error: str
) -> None:
    with pytest.raises(ChapterError, match=error):
        plain(text, 10)


# -- what recorded functions returned ---------------------------------------------------------

RECORDED = {
    "pkg/one.py": """
        '''
        # One

        Summary.
        '''

        from pkg.two import doubled

        if __name__ == "__main__":
            first, second = doubled("a"), doubled("b")
            first.append(7)
            again = doubled("a")
    """,
    "pkg/two.py": """
        from pathlib import Path

        __recorded__ = ("curve", "never")


        def never():
            return None


        def curve(name):
            return {"losses": [float(each) for each in Path(f"{name}.txt").read_text().split()]}


        def doubled(name):
            return [2 * loss for loss in (curve(name) if name else never())["losses"]]
    """,
    "a.txt": "1.5 0.1\n",
    "b.txt": "3\n",
    "c.txt": "not read\n",
}


def test_a_notebook_carries_what_recorded_functions_returned_in_the_chapters_run(
    project: Make,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = project({"pkg/__init__.py": "", **RECORDED})
    path = root.root / "pkg/one.py"
    record = execute(job_of(root, path), root.root, 60, 1)
    assert record.returned == {
        "pkg.two.curve": [
            [["a"], {"losses": [1.5, 0.1]}],
            [["b"], {"losses": [3.0]}],
        ],
        "pkg.two.never": [],
    }
    notebook = json.loads(
        reader_notebook(path, a_book(root), values={}, returned=record.returned)
    )
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    space = run(notebook)
    assert space["first"] == [3.0, 0.2, 7] and space["again"] == [3.0, 0.2]
    text = "\n".join(sources(notebook))
    assert '[["a"],{"losses":[1.5,0.1]}]' in text, "to be read, a line a call"
    assert "read_text" not in text and "c.txt" not in text
    with pytest.raises(LookupError, match=r"curve\('c',\) was not called"):
        space["doubled"]("c")  # type: ignore[operator]


def test_a_notebook_without_recorded_results_is_an_error(project: Make) -> None:
    root = project({"pkg/__init__.py": "", **RECORDED})
    with pytest.raises(
        ChapterError, match=r"curve of pkg\.two was not recorded\. Build"
    ):
        reader_notebook(root.root / "pkg/one.py", a_book(root))


def test_a_snippet_has_the_code_of_recorded_functions(project: Make) -> None:
    root = project({"pkg/__init__.py": "", **RECORDED})
    collector = Collector(root)
    collector.need(root.at(root.root / "pkg/two.py"), "doubled")
    assert "def curve" in collector.source()


@pytest.mark.parametrize(
    "value", [(1, 2), {1: "a"}, {"a": {3}}, float("nan"), Path("x")]
)
def test_a_recorded_result_that_json_would_change_is_an_error(value: object) -> None:
    module = types.ModuleType("odd_results")
    module.odd = lambda: value  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    returned = Returned({module.__name__: ["odd"]})
    with pytest.raises(
        TypeError, match=r"odd_results\.odd is recorded, so .* must be JSON"
    ):
        module.odd()
    assert returned.result() == {"odd_results.odd": []}
    del sys.modules[module.__name__]


@pytest.mark.parametrize(
    "declared", ['"curve"', '("curve", 3)', '("curve", "other")', "tuple(names)"]
)
def test_recorded_names_that_are_no_functions_are_an_error(
    project: Make, declared: str
) -> None:
    text = RECORDED["pkg/two.py"].replace('("curve", "never")', declared)
    root = project({"pkg/__init__.py": "", **RECORDED, "pkg/two.py": text})
    with pytest.raises(
        ChapterError, match=r"two\.py:3: __recorded__ must be a literal"
    ):
        job_of(root, root.root / "pkg/one.py")


# -- the cells' ids ---------------------------------------------------------------------------


def ids(notebook: dict[str, Any]) -> dict[str, str]:
    """The ids of the cells by their source."""
    return {"".join(cell["source"]): cell["id"] for cell in notebook["cells"]}


def test_ids_of_cells_do_not_change_with_other_cells(
    made: Callable[..., dict[str, Any]],
) -> None:
    before = ids(made({"pkg/one.py": CHAPTER, "pkg/two.py": TWO}))
    more = CHAPTER.replace("# Above.", "# New.\n    new = 3\n\n\n    # Above.")
    more = more.replace(
        "# ## It runs",
        "# ## New\n        #\n        # New.\n        print(0)\n        # ## It runs",
    )
    after = ids(made({"pkg/one.py": more, "pkg/two.py": TWO}))
    assert len(after) >= len(before) + 2
    common = before.keys() & after.keys()
    assert len(common) >= len(before) - 1
    assert {source: after[source] for source in common} == {
        source: before[source] for source in common
    }


def test_ids_of_cells_do_not_change_with_values(project: Make) -> None:
    text = (
        "'''# One'''\nx = 3\n# Of {value}`x` apples.\ny = 1\n# All {value}`x` again.\n"
    )
    root = project({"pkg/__init__.py": "", "pkg/one.py": text})
    path = root.root / "pkg/one.py"
    three, words = (
        json.loads(reader_notebook(path, a_book(root), values={"x": value}))["cells"]
        for value in ("3", "less than *four*")
    )
    assert [cell["id"] for cell in three] == [cell["id"] for cell in words]
    shown = ["".join(cell["source"]) for cell in words]
    assert "Of less than \\*four\\* apples." in shown


def test_ids_of_cells_do_not_change_with_the_address_of_the_site(
    made: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "'''# One\n\nSee {doc}`two`.'''\nx = 1\n# {doc}`two` is\ny = 1\n# {doc}`two` is\n"
    files = {"pkg/one.py": text, "pkg/two.py": TWO}
    ours = made(files)["cells"]
    monkeypatch.setattr(sys.modules[__name__], "URL", "https://other.org/primer/")
    theirs = made(files)["cells"]
    assert str(ours) != str(theirs) and "https" in str(ours)
    assert [cell["id"] for cell in ours] == [cell["id"] for cell in theirs]
    assert "https" not in str([cell["id"] for cell in ours])


def test_ids_of_cells_say_what_they_are_and_are_unique(
    made: Callable[..., dict[str, Any]],
) -> None:
    notebook = made({"pkg/one.py": CHAPTER, "pkg/two.py": TWO})
    found = [cell["id"] for cell in notebook["cells"]]
    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each) for each in found)
    assert any(each.endswith("-f") or each == "F" for each in found), found
    same = {
        "pkg/one.py": "'''# One'''\n" + "# Note.\nprint(1)\n\n# Note.\nprint(1)\n" * 3
    }
    found = [cell["id"] for cell in made(same)["cells"]]
    assert len(set(found)) == len(found)
