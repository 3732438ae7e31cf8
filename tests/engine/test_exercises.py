"""Exercises: the solution is folded, and it runs with the chapter."""

import re
from collections.abc import Callable

import pytest
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


def test_a_wrong_solution_ends_the_build_at_its_line(
    shelf: Callable[[dict[str, str]], Shelf],
) -> None:
    made = shelf({"one.py": ONE})
    made.edit("one.py", "== 3", "== 4")
    done = made.build("-q")
    assert done.code != 0
    line = (
        (made.root / "one.py").read_text().split("\n").index("    assert grow(2) == 4")
    )
    assert f"one.py:{line + 1}: AssertionError" in done.log


def test_a_comment_inside_a_solution_is_an_error(
    shelf: Callable[[dict[str, str]], Shelf],
) -> None:
    made = shelf({"one.py": ONE})
    made.edit(
        "one.py",
        '    print("then", grow(2))',
        '    for _ in range(1):\n        # Why?\n        print("then", grow(2))',
    )
    done = made.build("-q", "-W", "--keep-going")
    assert done.code != 0
    assert "its solution is one step" in done.log


def test_an_exercise_after_other_notes_has_a_row_of_its_own(
    shelf: Callable[[dict[str, str]], Shelf],
) -> None:
    made = shelf({"one.py": ONE})
    made.edit(
        "one.py",
        "# ## Exercise",
        "# ## In short\n    #\n    # - Grow.\n    #\n    # ## Exercise",
    )
    done = made.build("-W", "--keep-going")
    assert done.code == 0, done.log
    rows = done.page("one").split('<div class="sbs__row')
    (before,) = [row for row in rows if "Grow.</p>" in row]
    (question,) = [row for row in rows if "What comes after two" in row]
    assert "solution" not in before and 'id="in-short"' in before
    assert 'class="solution"' in question and 'id="exercise"' in question
