"""A build does what it was asked to: chapters are named, and run if the book lets them."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builds import ENGINE
from small_books import Shelf, words
from sphinx.util.matching import get_matching_files
from sphinx_annotated.page.build import chapters
from sphinx_annotated.read.patterns import matches

pytestmark = pytest.mark.slow
New = Callable[[dict[str, str]], Shelf]
LEAVE = 'from pathlib import Path\n\nPath("{}").write_text("ran")\nprint("printed")\n'
MODULE = '"""# {}"""\n\n' + LEAVE
BESIDE = {
    "scripts/deploy.py": MODULE.format("Deploy", "deployed"),
    "tests/test_it.py": MODULE.format("Test", "tested"),
    "setup.py": MODULE.format("Setup", "set-up"),
}


@pytest.fixture
def book(shelf: New) -> Shelf:
    files = {
        "one.py": MODULE.format("One", "one-ran"),
        "pkg/two.py": MODULE.format("Two", "two-ran"),
        "pkg/sub/three.py": MODULE.format("Three", "three-ran"),
        "pkg/index.md": "# Pkg\n\n```{toctree}\n:glob:\n\nsub/*\n```\n",
        "index.md": "# Book\n\n```{toctree}\none\nSecond <pkg/two.py>\npkg/index\n```\n",
    }
    return shelf({**files, **BESIDE})


def pages(book: Shelf) -> list[str]:
    """The pages of modules."""
    site = book.root / "_build" / "html"
    others = ("index", "pkg/index", "genindex", "search", "py-modindex")
    found = {
        p.relative_to(site).with_suffix("").as_posix() for p in site.rglob("*.html")
    }
    return sorted(f for f in found - set(others) if not f.startswith("_"))


def test_modules_of_the_toctrees_are_chapters_and_nothing_else_runs(
    book: Shelf,
) -> None:
    done = book.well_built("-W")
    assert done.executed() == ["one", "pkg/sub/three", "pkg/two"]
    assert pages(book) == ["one", "pkg/sub/three", "pkg/two"]
    files = {p.name for p in book.root.iterdir() if p.is_file()}
    assert {"one-ran", "two-ran", "three-ran"} <= files
    assert not files & {"deployed", "tested", "set-up"}


def test_patterns_name_chapters_instead_and_conf_py_is_never_one(book: Shelf) -> None:
    book.configure(
        'annotated_chapters = ["*.py", "pkg/**"]\nannotated_execute = ["pkg/**"]\n'
    )
    (book.root / "setup.py").write_text('"""# Setup"""\n\nx = 1\n')
    done = book.well_built()
    assert pages(book) == ["one", "pkg/sub/three", "pkg/two", "setup"]
    assert done.executed() == ["pkg/sub/three", "pkg/two"]
    assert "This module was not executed" in done.page("one")
    assert "printed" in done.page("pkg/two") and "not executed" not in done.page(
        "pkg/two"
    )


def test_a_book_that_executes_no_notebook_executes_no_chapter(book: Shelf) -> None:
    book.configure('nb_execution_mode = "off"\n')
    text = '"""# One\n\nIt is {value}`1 + 1`.\n"""\n\nprint("printed")\n'
    (book.root / "one.py").write_text(text)
    done = book.well_built("-W")
    assert done.executed() == []
    page = done.page("one")
    assert "This module was not executed" in page
    assert "It is 1 + 1." in words(page)
    assert not re.search(r'class="[^"]*\bout\b', page)
    book.configure("annotated_say_unexecuted = False\n")
    assert "not executed" not in book.well_built("-W").page("one")
    book.edit("conf.py", 'nb_execution_mode = "off"', 'nb_execution_mode = "auto"')
    again = book.well_built("-W")
    assert again.executed() == ["one", "pkg/sub/three", "pkg/two"]
    page = again.page("one")
    assert "not executed" not in page and re.search(r"It is <[^>]+>2<", page)
    assert re.search(r'class="[^"]*\bout\b', page)


def test_a_chapter_that_lacks_a_package_is_shown_and_the_warning_names_it(
    shelf: New,
) -> None:
    needs = '"""# One"""\n\nimport no_such_thing.sub\n\nprint("printed")\n'
    book = shelf({"one.py": needs, "two.py": MODULE.format("Two", "two-ran")})
    for _ in range(2):  # a later build says so again
        done = book.well_built()
        assert re.search(
            r"one\.py:3: WARNING: .*package no_such_thing, which is not installed.*Install what has it",
            done.log,
        ), done.log
        assert "needs the package no_such_thing" in done.page("one")
        assert "printed" in done.page("two")
    assert book.build("-W").code != 0
    (book.root / "python" / "no_such_thing").mkdir(parents=True)
    assert "add python to PYTHONPATH" in book.well_built().log
    (book.root / "no_such_thing").mkdir()
    (book.root / "no_such_thing" / "sub.py").write_text("x = 1\n")
    done = book.well_built("-W")
    assert done.executed() == ["one"] and "not installed" not in done.page("one")


def test_a_module_of_the_project_that_is_not_there_ends_the_build(shelf: New) -> None:
    book = shelf({"one.py": '"""# One"""\n\nimport lib.gone\n', "lib/__init__.py": ""})
    done = book.build()
    assert done.code != 0 and re.search(r"one\.py:3: ModuleNotFoundError", done.log)


def test_a_first_build_needs_neither_fonttools_nor_fcntl(shelf: New) -> None:
    book = shelf({"one.py": MODULE.format("One", "one-ran")})
    book.configure(
        'for name in ("fontTools", "fontTools.ttLib"):\n    sys.modules[name] = None\n'
    )
    assert "printed" in book.well_built("-W").page("one")
    (book.root / "a.woff2").write_bytes(b"")
    book.configure('annotated_figure_fonts = ["a.woff2"]\n')
    done = book.build()
    assert (
        done.code != 0
        and "annotated_figure_fonts needs fontTools: pip install" in done.log
    )
    sources = [
        path.read_text("utf-8") for path in (ENGINE / "sphinx_annotated").rglob("*.py")
    ]
    asked = re.compile(r"(?m)^\s*(import|from)\b.*\bfcntl\b|import_module\(.fcntl")
    assert not any(asked.search(text) for text in sources)


def test_an_unknown_style_is_an_error_that_lists_the_styles(shelf: New) -> None:
    book = shelf({"one.py": '"""# One"""\n'})
    book.configure('annotated_style = {"one": "nympy"}\n')
    done = book.build()
    assert done.code != 0
    assert re.search(
        r"annotated_style: one has the style 'nympy'.*numpy, google", done.log
    )


def test_a_pattern_that_names_no_chapter_is_a_warning_with_the_fix(shelf: New) -> None:
    book = shelf({"one.py": '"""# One"""\n', "pkg/two.py": '"""# Two"""\n'})
    book.configure(
        'annotated_chapters = ["one.py", "pkg", "tow"]\n'
        'annotated_style = {"**": "markdown", "pkg/twos": "numpy", "*": "markdown"}\n'
        'annotated_execute = ["*", "nowhere/*"]\n'
    )
    done = book.well_built()
    found = re.findall(
        r"conf\.py:\d+: WARNING: (\w+): the pattern \"(.*?)\" (.*)", done.log
    )
    assert [each[:2] for each in found] == [
        ("annotated_chapters", "tow"),
        ("annotated_execute", "nowhere/*"),
        ("annotated_style", "pkg/twos"),
    ]
    assert "Did you mean pkg/two? Correct it, or remove it." in found[2][2]
    assert done.executed() == ["one"]


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("*", ["a"]),
        ("**", ["a", "p/b", "p/q/c"]),
        ("**.py", ["a", "p/b", "p/q/c"]),
        ("p", ["p/b", "p/q/c"]),
        ("p/", ["p/b", "p/q/c"]),
        ("p/*", ["p/b"]),
        ("p/*.py", ["p/b"]),
        ("**/c", ["p/q/c"]),
        ("p/b.py", ["p/b"]),
        ("[ab]", ["a"]),
    ],
)
def test_all_settings_have_the_patterns_of_sphinx(
    pattern: str, named: list[str]
) -> None:
    assert [name for name in ("a", "p/b", "p/q/c") if matches(pattern, name)] == named


@pytest.mark.parametrize("out", ["book/_build/html", "elsewhere/html"])
def test_what_a_build_writes_is_no_page_of_the_next(tmp_path: Path, out: str) -> None:
    """Also if the earlier build wrote elsewhere."""
    notebooks = ("_build/jupyter_execute", "jupyter_execute", "_build/html/_sources")
    book = tmp_path / "book"
    for folder in (*notebooks[: 3 if "book" in out else 2], "part"):
        (book / folder).mkdir(parents=True)
        (book / folder / "one.ipynb").touch()
    app: Any = SimpleNamespace(srcdir=str(book), outdir=str(tmp_path / out))
    found = get_matching_files(book, ("**",), chapters.written(app))
    assert list(found) == ["part/one.ipynb"]
