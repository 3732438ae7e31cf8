"""The same book builds under Sphinx 7, and under Jupyter Book 1, which asks for it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from builds import ENGINE
from locked import python_of
from small_books import Built, Shelf, plain, run

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # they install what is older
New = Callable[[dict[str, str]], Shelf]
LOCK = ENGINE / "tests" / "jupyter_book.lock"

FILES = {
    "one.py": '''
        """
        # One

        A summary, $x$.

        See {py:func}`two.twice` and {doc}`two`.
        """

        import matplotlib.pyplot as plt


        def f(x: int) -> int:
            """## F

            Doubles.
            """
            # :::{deviation} the paper
            # It adds.
            # :::
            return x * 2


        if __name__ == "__main__":
            # ## It runs
            #
            # Printed.
            print("printed", f(2))
            # Drawn.
            plt.subplots()[1].plot([1, 2])
            plt.show()
    ''',
    "two.py": '''
        """
        # Two

        Another.
        """

        from one import f


        def twice(x: int) -> int:
            """## Twice"""
            return f(f(x))


        if __name__ == "__main__":
            # Value.
            twice(1)
    ''',
}


def check(page: str) -> None:
    """What a page of this book holds, whoever builds it."""
    for part in (
        'id="f"',
        'href="two.html#twice"',
        "printed 4",
        '<svg class="plot"',
        "note--deviation",
        'id="L20"',
    ):
        assert part in page, part
    row = next(x for x in page.split('<div class="sbs__row') if "printed 4" in x)
    assert "Printed." in row
    assert not re.search(r"\{\w+\}`|:::", page)


@pytest.fixture(scope="module")
def older() -> Path:
    """Python of an environment with what ``jupyter_book.lock`` names."""
    return python_of(LOCK, "jupyter-book")


@pytest.mark.parametrize(
    "theme",
    [pytest.param("sphinx_book_theme", marks=pytest.mark.nightly), "alabaster"],
)
def test_it_builds_under_sphinx_7_and_its_messages_have_their_lines(
    shelf: New, older: Path, theme: str
) -> None:
    book = shelf(FILES)
    book.edit(
        "conf.py", 'project = "Fixture"', f'project = "Fixture"\nhtml_theme = "{theme}"'
    )
    done = book.build("-W", "--keep-going", python=str(older))
    assert done.code == 0, done.log
    assert re.search(r"Sphinx v7\.", done.log)
    check(done.page("one"))
    assert 'href="one.html#f"' in done.page("two")
    # Again, with errors in prose.
    book.edit("one.py", "Doubles.", "{bad}`x`")
    book.edit("one.py", "# Printed.", "# {ref}`gone`")
    again = book.build("-W", "--keep-going", python=str(older))
    assert again.code != 0 and again.executed() == []
    assert re.search(r'one\.py:15: WARNING: .*"bad"', again.log)
    assert re.search(r"one\.py:26: WARNING: .*gone", again.log)
    # An error of an author's is said without the state of Sphinx.
    book.edit("one.py", "f(2))", "f(2) / 0)")
    failed = book.build(python=str(older))
    assert failed.code != 0 and "one.py:27: ZeroDivisionError" in failed.log
    book.configure("annotated_timeout = None\n")
    unset = book.build(python=str(older))
    assert unset.code != 0 and "annotated_timeout is None" in unset.log
    for log in (failed.log, unset.log):
        assert "Loaded Extensions" not in log and "Traceback" not in log


def test_the_lock_pins_every_version() -> None:
    lines = [x for x in LOCK.read_text().splitlines() if x and not x.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+", line) for line in lines)
    assert not any(line.startswith("torch") for line in lines)


CONFIG = """
title: Fixture
only_build_toc_files: true
sphinx:
  local_extensions:
    sphinx_annotated: {engine}
  config:
    annotated_workers: 2
"""
TOC = """
format: jb-book
root: index
parts:
- caption: Part
  chapters:
  - file: one
  - file: two
"""


@pytest.fixture
def book(shelf: New) -> Shelf:
    """The same chapters as Jupyter Book 1 has them."""
    made = shelf({**FILES, "index.md": "# Book\n", "_toc.yml": TOC})
    made.write({"_config.yml": CONFIG.format(engine=ENGINE)})
    (made.root / "conf.py").unlink()
    return made


def jupyter_book(book: Shelf, python: Path) -> Built:
    log = book.root / "log.txt"
    command = str(python.with_name("jupyter-book"))
    code = run([command, "build", ".", "-W", "--keep-going"], log, cwd=book.root)
    return Built(book.root, code, plain(log))


def test_it_builds_under_jupyter_book_1(book: Shelf, older: Path) -> None:
    done = jupyter_book(book, older)
    assert done.code == 0, done.log
    check(done.page("one"))
    assert 'href="one.html#f"' in done.page("two")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "_toc.yml",
            "file: two",
            "file: gone",
            r"_toc\.yml:7: lists gone, which is no page\.",
        ),
        ("one.py", "return x * 2", "return x *", r"one\.py:20: this is not Python"),
        pytest.param(
            *("one.py", "Doubles.", "{bad}`x`", r'one\.py:15: WARNING: .*"bad"'),
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            *("one.py", "f(2))", "f(2) / 0)", r"one\.py:27: ZeroDivisionError"),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_errors_end_the_build_of_jupyter_book_1(
    book: Shelf, older: Path, name: str, old: str, new: str, message: str
) -> None:
    book.edit(name, old, new)
    done = jupyter_book(book, older)
    assert done.code != 0, done.log
    assert re.search(message, done.log), done.log
