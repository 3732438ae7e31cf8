"""Exercises: the solution is folded, and it runs with the chapter."""

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from annotated.read.parse import ChapterError, parse
from annotated.run.execute import Job, execute
from conftest import Built, Shelf

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
    done = shelf({"one.py": ONE}).build("-W", "--keep-going")
    assert done.code == 0, done.log
    return done


def test_code_outputs_and_text_of_a_solution_are_folded(built: Built) -> None:
    page = built.page("one")
    assert 'class="note note--exercise"' in page
    assert "The <em>next</em> one</p>" in page
    (folded,) = re.findall(r'<details class="solution">.*?</details>', page, re.DOTALL)
    for part in ("<summary>Solution</summary>", "Three, of course.", "then 3"):
        assert part in folded and page.count(part) == 1, part
    assert "assert" in folded
    assert "What comes after" not in folded
    assert "Closing words" not in folded


def test_a_wrong_solution_ends_the_build_at_its_line(tmp_path: Path) -> None:
    text = textwrap.dedent(ONE).lstrip("\n").replace("== 3", "== 4")
    path = tmp_path / "one.py"
    line = text.split("\n").index("    assert grow(2) == 4") + 1
    job = Job("one", path, parse(text, str(path)), "digest", "", {})
    with pytest.raises(ChapterError, match=rf"one\.py:{line}: AssertionError"):
        execute(job, tmp_path, timeout=60, threads=1)


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
