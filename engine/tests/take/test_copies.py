"""A copy or notebook is offered if it was run and has what its module has, and is else refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from idioms import IDIOMS
from small_books import Built, Shelf
from sphinx_annotated.page.build.book import Book
from sphinx_annotated.read.modules import Module, Project
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.take.compare import NOTEBOOK, Chapter, Comparison, Verdict
from sphinx_annotated.take.standalone import MENTIONING, NEEDED, WHOLE, snippet

Make = Callable[[dict[str, str]], Project]
Compared = Callable[..., tuple[Book, Module, Verdict]]


def book_of(project: Project) -> Book:
    return Book("Fixture", project, "https://example.org/", {})


@pytest.fixture
def compared(project: Make, tmp_path: Path) -> Compared:
    """The verdict of ``pkg/one.py`` among these files, which may have a notebook."""

    def comparer(
        files: dict[str, str], notebook: bool = False
    ) -> tuple[Book, Module, Verdict]:
        book = book_of(project({"pkg/__init__.py": "", **files}))
        module = book.project.find("pkg.one")
        assert module is not None
        chapter = Chapter(module, str(files), (lambda: {}) if notebook else None)
        comparison = Comparison(book, tmp_path, 60)
        return book, module, comparison.verdicts({"pkg/one": chapter})["pkg/one"]

    return comparer


def answer(text: str, ask: str) -> object:
    """What pasted code answers, where the project is not."""
    command = [sys.executable, "-c", f"{text}\nprint(repr({ask}))"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    return eval(ran.stdout)


@pytest.mark.slow
def test_a_copy_answers_as_its_module_or_is_refused(
    project: Make, tmp_path: Path
) -> None:
    names = {f"m{i}": idiom for i, idiom in enumerate(IDIOMS.values())}
    book = book_of(
        project({f"{name}.py": f"{each.code}\n" for name, each in names.items()})
    )
    modules = {
        name: book.project.at(book.project.root / f"{name}.py") for name in names
    }
    chapters = {name: Chapter(module, "") for name, module in modules.items()}
    verdicts = Comparison(book, tmp_path, 60).verdicts(chapters)
    wrong = {}
    for (title, idiom), name in zip(IDIOMS.items(), names, strict=True):
        found: object = None
        try:
            reach = verdicts[name].reach_of(book.project, modules[name], idiom.copy)
            found = answer(snippet(book, modules[name], idiom.copy, reach), idiom.ask)
        except ChapterError as error:
            assert f"{name}.py:" in str(error) and "in the copy" in str(error)
        if found != idiom.answer:
            wrong[title] = found
    assert wrong == {}


@pytest.mark.slow
def test_a_copy_takes_more_only_where_that_makes_it_right(compared: Compared) -> None:
    one = """
        T = {}
        U = []
        REST = [T, 1]


        def plain():
            return 1


        def filled():
            return T


        also = T
        also["x"] = 1
        exec("Z = 5")


        def run():
            return Z
    """
    book, module, verdict = compared({"pkg/one.py": one})
    assert verdict.reach == {"plain": NEEDED, "filled": MENTIONING, "run": WHOLE}
    texts = {
        name: snippet(book, module, name, reach)
        for name, reach in verdict.reach.items()
    }
    assert "T = {}" not in texts["plain"]
    assert "also = T" in texts["filled"] and "U = []" not in texts["filled"]
    assert "U = []" in texts["run"]


@pytest.mark.slow
def test_a_copy_that_would_have_to_be_long_is_refused(compared: Compared) -> None:
    many = "\n".join(f"A{i} = {i}" for i in range(400))
    one = f"exec('Z = 5')\n{many}\n\n\ndef f():\n    return Z\n"
    book, module, verdict = compared({"pkg/one.py": one})
    with pytest.raises(
        ChapterError, match=r"`Z is missing` in the copy and `Z is 5` in the module"
    ):
        verdict.reach_of(book.project, module, "f")


@pytest.mark.slow
def test_what_differs_is_named_with_the_line_that_makes_it(compared: Compared) -> None:
    files = {
        "pkg/one.py": "from pkg.two import where\n\ndef f():\n    return where()\n\ndef g():\n    return 1\n",
        "pkg/two.py": "import sys\n\nNAME = __name__.upper()\n\n\ndef where():\n    return NAME\n",
    }
    book, module, verdict = compared(files)
    words = (
        r"two\.py:3: .*NAME is another: `NAME is 'PASTED'` in the copy and .*'PKG\.TWO'"
    )
    with pytest.raises(ChapterError, match=words):
        verdict.reach_of(book.project, module, "f")
    assert verdict.reach_of(book.project, module, "g") == NEEDED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "error"),
    [
        ("raise SystemExit(3)\n\n\ndef f(): ...\n", "it stops with SystemExit: 3"),
        ("import os\nos.kill(os.getpid(), 9)\n\n\ndef f(): ...\n", "its process ended"),
    ],
)
def test_a_module_that_cannot_be_imported_has_no_copies(
    compared: Compared, one: str, error: str
) -> None:
    book, module, verdict = compared({"pkg/one.py": one})
    with pytest.raises(ChapterError, match=error):
        verdict.reach_of(book.project, module, "f")


@pytest.mark.slow
def test_what_functions_import_from_the_project_is_the_same_in_a_copy(
    compared: Compared,
) -> None:
    files = {
        "pkg/one.py": """
            from __future__ import annotations

            from .two import base as given


            class Parent:
                def child(self) -> Child:
                    from .three import Child, table as known
                    import json

                    return Child() if known else json


            def f(x: int):
                return given(x).get
        """,
        "pkg/two.py": "table = {}\n\n\ndef base(x: int):\n    return table.get(x) if table.get else x\n",
        "pkg/three.py": "from .one import Parent\n\ntable = {1: 2}\n\n\nclass Child(Parent): ...\n",
    }
    _, _, verdict = compared(files)
    assert verdict.reach == {"Parent": NEEDED}
    assert "`x 'int'` in the copy" in verdict.different["f"][2]  # an annotation
    files["pkg/two.py"] = f"from __future__ import annotations\n{files['pkg/two.py']}"
    assert compared(files)[2].reach == {"Parent": NEEDED, "f": NEEDED}


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    try:\n        from .two import x\n    except KeyError:\n        x = 0\n    return x",
        "def f(y):\n    if y:\n        from .two import x\n    else:\n        x = 0\n    return x",
        "class A:\n    from .two import x\ndef f():\n    return A.x",
    ],
)
def test_an_import_that_a_copy_cannot_have_is_a_difference(
    compared: Compared, code: str
) -> None:
    _, _, verdict = compared({"pkg/one.py": f"{code}\n", "pkg/two.py": "x = 1\n"})
    assert "f" in verdict.different


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "two", "difference"),
    [
        ("from .two import f\n\ntable = {1: f()}\n", "def f():\n    return 2\n", ""),
        # A setting that imported code reads as it runs, which is above the chapter's code in a notebook.
        (
            "import os\nos.environ['M_1'] = 'f'\nfrom .two import mode\nkept = mode\n",
            "import os\nmode = os.environ.get('M_1')\n",
            "kept is None",
        ),
        (
            "from .two import f\n\n\ndef g():\n    'Told.'\n\n\ntold = g.__doc__\n",
            "def f(): ...\n",
            "g is another",
        ),
        (
            "from .two import f\n\n\ndef g():\n    return f.__doc__\n",
            "def f():\n    'Told. More.'\n",
            "",
        ),
    ],
)
def test_a_notebook_has_what_its_module_has_or_is_refused(
    compared: Compared, one: str, two: str, difference: str
) -> None:
    files = {"pkg/one.py": f"'# One'\n\n{one}", "pkg/two.py": two}
    book, module, verdict = compared(files, notebook=True)
    if difference:
        with pytest.raises(ChapterError, match=rf"one\.py:\d+: .*{difference}"):
            verdict.reach_of(book.project, module, NOTEBOOK)
    else:
        assert verdict.reach_of(book.project, module, NOTEBOOK) == NEEDED


BOOK = {
    "index.md": "# Book\n\n```{toctree}\nran\nleft\n```\n",
    "ran.py": """
        '''# Ran'''

        from pathlib import Path

        T = []
        U = T
        U += [1]
        NAME = __name__[:1]


        def filled():
            '''Filled.'''
            return T


        def named():
            '''Named.'''
            return NAME


        if __name__ == "__main__":
            with Path("demos.txt").open("a") as file:
                file.write("one more")
    """,
    "left.py": """
        '''# Left'''

        from pathlib import Path

        Path("left.txt").write_text("ran")


        def g():
            '''G.'''
            return 1
    """,
}


@pytest.fixture(scope="module")
def built(shelf: Callable[[dict[str, str]], Shelf]) -> tuple[Built, str, list[int]]:
    """A book that executes one chapter, its copies after an edit of prose, and when it compared them."""
    book = shelf(BOOK)
    with (book.root / "conf.py").open("a") as conf:
        conf.write('annotated_execute = ["ran"]\n')
    verdict = book.root / "_build/.executed/ran.copies.json"
    first = book.well_built().copy()
    times = [verdict.stat().st_mtime_ns]
    book.edit("ran.py", "Filled.", "Filled, and more.")
    edited = copies_of(book.well_built(), "ran")
    return first, edited, [*times, verdict.stat().st_mtime_ns]


def copies_of(built: Built, page: str) -> str:
    text = (built.root / f"_build/html/_static/standalone/{page}.js").read_text()
    return str(json.loads(text.partition(" = ")[2]))


@pytest.mark.slow
def test_a_page_offers_copies_that_were_run_and_warns_of_others(
    built: tuple[Built, str, list[int]],
) -> None:
    first = built[0]
    assert "U += [1]" in copies_of(first, "ran")
    assert "was not run" not in copies_of(first, "ran")
    assert 'title="named"' not in copies_of(first, "ran")
    assert "ran.py:8: WARNING: where this is pasted, NAME is another" in first.log
    assert "readers cannot copy this with what it needs: named." in first.log


@pytest.mark.slow
def test_nothing_runs_for_a_copy_that_the_book_did_not_ask_to_execute(
    built: tuple[Built, str, list[int]],
) -> None:
    first = built[0]
    assert (first.root / "demos.txt").read_text() == "one more"  # as the chapter ran
    assert not (first.root / "left.txt").exists()
    assert "g, from Fixture" in copies_of(first, "left")
    assert "This copy was not run." in copies_of(first, "left")


@pytest.mark.slow
def test_an_edit_of_prose_compares_no_copy_again(
    built: tuple[Built, str, list[int]],
) -> None:
    _, edited, times = built
    assert "Filled, and more" in edited
    assert times[0] == times[1]
