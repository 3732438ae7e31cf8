"""Exercises: the solution is folded, and it runs with the chapter."""

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from small_books import Built, Shelf, notebook_of, run_chapter
from sphinx_annotated.read.syntax import ChapterError

ONE = '''
    r"""
    # One

    A summary.

    Here `size` is $S$.
    """


    def grow(size: int) -> int:
        """## Grow"""
        return size + 1


    if __name__ == "__main__":
        # ## Exercise
        #
        # :::{exercise} The *next* one
        # What comes after two?
        # :::
        # :::{solution}
        # Three, of course.
        # :::
        print("then", grow(2))
        assert grow(2) == 3

        # Closing words.
'''


@pytest.fixture(scope="module")
def built(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    return shelf({"one.py": ONE}).well_built("-W", "--keep-going")


def test_code_outputs_and_text_of_a_solution_are_folded(built: Built) -> None:
    page = built.page("one")
    assert 'class="note note--exercise"' in page
    assert "The <em>next</em> one</p>" in page
    (folded,) = re.findall(r'<details class="solution">.*?</details>', page, re.DOTALL)
    for part in ("<summary>Solution<", "Three, of course.", "then 3"):
        assert part in folded and page.count(part) == 1, part
    assert "assert" in folded
    assert "What comes after" not in folded
    assert "Closing words" not in folded


def test_a_wrong_solution_ends_the_build_at_its_line(tmp_path: Path) -> None:
    text = textwrap.dedent(ONE).lstrip("\n").replace("== 3", "== 4")
    line = text.split("\n").index("    assert grow(2) == 4") + 1
    with pytest.raises(ChapterError, match=rf"one\.py:{line}: AssertionError"):
        run_chapter(text, tmp_path)


@pytest.fixture(scope="module")
def commented(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    """In one chapter, the exercise comes after other notes; in the other, its solution has a comment."""
    text = textwrap.dedent(ONE).lstrip("\n")
    after = text.replace(
        "# ## Exercise",
        "# ## In short\n    #\n    # - Grow.\n    #\n    # ## Exercise",
    )
    wrong = text.replace(
        '    print("then", grow(2))',
        '    for _ in range(1):\n        # Why?\n        print("then", grow(2))',
    )
    return shelf({"after.py": after, "wrong.py": wrong}).build("-W", "--keep-going")


def test_a_comment_inside_a_solution_is_an_error(commented: Built) -> None:
    assert commented.code != 0
    (error,) = [
        each
        for each in commented.log.splitlines()
        if "WARNING" in each or "ERROR" in each
    ]
    assert "wrong.py" in error and "its solution is one step" in error


def test_an_exercise_after_other_notes_has_a_row_of_its_own(commented: Built) -> None:
    rows = commented.page("after").split('<div class="sbs__row')
    (before,) = [row for row in rows if "Grow.</p>" in row]
    (question,) = [row for row in rows if "What comes after two" in row]
    assert "solution" not in before and 'id="in-short"' in before
    assert 'class="solution"' in question and 'id="exercise"' in question


WRITTEN = '''
    """
    # Two

    A summary.
    """

    if __name__ == "__main__":
        # ## Exercise
        #
        # :::{exercise} Write it
        # Write `double`.
        # :::
        def check(function, given, expected):
            try:
                print("right" if function(given) == expected else "wrong")
            except NotImplementedError:
                print("not yet written")

        def double(x: int) -> int:
            raise NotImplementedError

        check(double, 2, 4)

        # :::{solution}
        # Add it to itself.
        # :::
        def solved(x: int) -> int:
            return x + x

        check(solved, 2, 4)

        # Closing words.
'''


@pytest.fixture(scope="module")
def written(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    return shelf({"two.py": WRITTEN}).well_built("-W", "--keep-going")


def test_what_the_reader_is_to_write_is_shown_with_its_solution_folded_below(
    written: Built,
) -> None:
    rows = written.page("two").split('<div class="sbs__row')
    (row,) = [row for row in rows if "Write <code" in row]
    shown, _, folded = row.partition('<details class="solution">')
    for part in ("NotImplementedError", "not yet written"):
        assert part in shown, part
    for part in ("Add it to itself.", "solved", ">right"):
        assert part in folded and part not in shown, part


def test_in_the_notebook_the_stub_is_a_cell_to_fill_and_the_solution_a_folded_one(
    written: Built,
) -> None:
    cells = notebook_of(written.root, "two")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    stub, solution = ("".join(cell["source"]) for cell in code)
    assert "raise NotImplementedError" in stub and "@title" not in stub
    assert solution.startswith("# @title Solution") and "x + x" in solution
