"""Numbers in prose: the `value` role shows what the chapter's kernel computed."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_books import Built, Shelf, run_chapter, words
from sphinx_annotated.read.expressions import expressions
from sphinx_annotated.read.parse import parse
from sphinx_annotated.read.syntax import ChapterError

New = Callable[[dict[str, str]], Shelf]
ONE = '''
    r"""
    # One

    A summary of {value}`len(numbers)` numbers.

    Their mean is {value}`f"{total / len(numbers):.3f}"`, and ``{value}`x` `` is code.
    """

    numbers = [1, 2, 4]


    def word() -> str:
        """## A word

        It is {value}`word()`, and {value}`(1, 2)` is a tuple.
        """
        return "Zanzibar <b>*&"


    if __name__ == "__main__":
        # ## A sum
        #
        # At the end it is {value}`total *
        # 10`.
        total = 0
        # :::{exercise} Next
        # After {value}`numbers[-1]`?
        # :::
        # :::{solution}
        # It is {value}`2 * numbers[-1]`.
        # :::
        total = sum(numbers)
'''
SHOWN = [
    "A summary of 3 numbers.",
    "Their mean is 2.333, and {value}`x` is code.",
    "It is Zanzibar <b>*&, and (1, 2) is a tuple.",
    "At the end it is 70.",
    "After 4?",
    "It is 8.",
]


@pytest.fixture(scope="module")
def book(shelf: New) -> Shelf:
    # A chapter with a committed notebook offers it on its page.
    made = shelf({"one.py": ONE, "notebooks/one.ipynb": "{}"})
    made.edit("conf.py", '"_build"', '"_build", "notebooks"')
    return made


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    return book.well_built("-W", "--keep-going")


@pytest.mark.parametrize("shown", SHOWN)
def test_the_page_shows_the_value_after_the_last_cell(built: Built, shown: str) -> None:
    assert shown in words(built.page("one"))


@pytest.mark.parametrize("name", ["one", "one-with-outputs"])
def test_notebooks_show_the_value_as_text(built: Built, name: str) -> None:
    path = built.root / "_build" / "html" / "notebooks" / f"{name}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells)
    for part in (
        "A summary of 3 numbers.",
        "Their mean is 2.333, and ``{value}`x` `` is code.",
        r"It is Zanzibar \<b\>\*&, and (1, 2) is a tuple.",
        "it is 70.",
        "It is 8.",
    ):
        assert part in prose, part


def test_the_search_index_contains_the_value(built: Built) -> None:
    index = (built.root / "_build/html/searchindex.js").read_text(encoding="utf-8")
    assert '"zanzibar"' in index[index.index('"terms"') :]


@pytest.mark.slow
def test_a_changed_expression_runs_the_chapter_again_and_other_prose_does_not(
    shelf: New,
) -> None:
    book = shelf(
        {"one.py": '"""# One\n\nA summary.\n\nNow {value}`x + 1`."""\n\nx = 1\n'}
    )
    assert "Now 2." in words(book.build().page("one"))
    book.edit("one.py", "Now", "And now")
    prose = book.build()
    assert prose.executed() == [] and "And now 2." in words(prose.page("one"))
    book.edit("one.py", "x + 1", "x + 2")
    changed = book.build()
    assert changed.executed() == ["one"] and "And now 3." in words(changed.page("one"))


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("absent", "NameError: name 'absent' is not defined"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = 1", "`x = 1` is not a Python expression. Correct it."),
    ],
)
def test_an_expression_that_fails_ends_the_build_at_its_line(
    tmp_path: Path, expression: str, error: str
) -> None:
    text = f'"""# One\n\nA summary.\n\nNow\n{{value}}`{expression}`."""\n\nx = 1\n'
    with pytest.raises(ChapterError, match=re.escape(f"{tmp_path}/one.py:6: {error}")):
        run_chapter(text, tmp_path)


def test_expressions_are_found_with_their_first_lines() -> None:
    text = '''"""# T

    Now {value}`a` and ``{value}`b` ``.

    ```python
    {value}`c`
    ```
    """

    x = 1
    # :::{variant} A
    # :of: B
    # :cost: cost(A, 3)
    # :::
    # Later {value}`d +
    # e` and again {value}`a`.
    y = 2
    '''
    chapter = parse(re.sub("(?m)^    ", "", text))
    assert expressions(chapter, "t.py") == {"a": 3, "cost(A, 3)": 13, "d + e": 15}


OTHER_STYLE = '''
    """Other
    =====

    There are :value:`len(items)` items, one ``as :value:`x` y``, and :value:`total </sub/o-n.e>`.

    :cost: no expression, as in a list of fields
    """

    __docformat__ = "restructuredtext"

    items = [1, 2]


    class A:
        """A step, :value:`A.step`."""

        step = 7

        def next(self):
            return self.step


    class B(A):
        """Another.

        .. variant:: B
           :of: A
           :cost: f"{len(items)} more"
        """

        step = 8

    # {value}`is no role` in a plain comment.
'''


def test_reStructuredText_has_values_and_costs_too(shelf: New) -> None:  # noqa: N802
    one = '"""# One\n\nA summary of {value}`total`."""\n\ntotal = 2.5\n'
    index = "# Book\n\n```{toctree}\nsub/o-n.e\nother\n```\n"
    made = shelf(
        {
            "sub/o-n.e.py": one,
            "other.py": OTHER_STYLE,
            "index.md": index,
            "notebooks/other.ipynb": "{}",
        }
    )
    made.edit("conf.py", '"_build"', '"_build", "notebooks"')
    built = made.well_built("-W", "--keep-going")
    page = words(built.page("other"))
    notebook = built.root / "_build/html/notebooks/other.ipynb"
    for text in (page, notebook.read_text(encoding="utf-8")):
        assert "There are 2 items" in text and "and 2.5." in text
        assert "A step, 7." in text
    assert "2 more" in page and "no expression, as in a list of fields" in page


def test_an_invalid_expression_is_named_with_its_line() -> None:
    with pytest.raises(ChapterError, match=r"^t\.py:4: `a b` is not a Python"):
        expressions(parse('"""# T\n\nNow\n{value}`a\nb`."""\n'), "t.py")


MEAN = 'f"{total / len(numbers):.3f}" </one>'
# It stands before the chapter whose value it shows.
EARLIER = f'''
    """# Earlier

    The mean is {{value}}`{MEAN}`, and here it is {{value}}`own`.
    """

    own = 5
'''
NO_CHAPTER = f"# Welcome\n\nThe mean is {{value}}`{MEAN}`.\n"


def test_a_page_and_an_earlier_chapter_show_the_values_of_a_chapter(shelf: New) -> None:
    made = shelf(
        {
            "early.py": EARLIER,
            "one.py": ONE,
            "welcome.md": NO_CHAPTER,
            "notebooks/early.ipynb": "{}",
        }
    )
    made.edit("conf.py", '"_build"', '"_build", "notebooks"')
    made.edit("index.md", "\none\n", "\none\nwelcome\n")

    def shown(done: Built) -> list[str]:
        notebook = done.root / "_build/html/notebooks/early.ipynb"
        texts = [words(done.page(name)) for name in ("welcome", "early")]
        return [*texts, notebook.read_text(encoding="utf-8")]

    first = made.well_built("-W")
    assert all("The mean is 2.333" in text for text in shown(first))
    assert "and here it is 5." in shown(first)[1]
    made.edit("one.py", "[1, 2, 4]", "[1, 2, 6]")
    second = made.build("-W")
    assert second.executed() == ["one"]
    assert all("The mean is 3.000" in text for text in shown(second))


WRONG = '''
    """# Wrong

    Of {value}`len(numbers) + 1 </one>` and of {value}`len(numbers) </three>`.
    """
'''


@pytest.fixture(scope="module")
def wrong(shelf: New) -> Built:
    index = "# Book\n\nNow {value}`1`.\n\n{value}`2 </one>`\n\n{value}`3 </no>`\n"
    index += "\n```{toctree}\none\nwrong\n```\n"
    made = shelf({"one.py": ONE, "wrong.py": WRONG, "index.md": index})
    done = made.build("-W", "--keep-going")
    assert done.code != 0
    return done


def test_a_value_outside_chapters_is_an_error_at_its_line(wrong: Built) -> None:
    assert re.search(r"index\.md:3: .*`1` was not evaluated", wrong.log)


@pytest.mark.parametrize(
    "place",
    [
        r"index\.md:5: .*`2 </one>`",
        r"index\.md:7: .*`3 </no>`",
        r"wrong\.py:3: .*`len\(numbers\) \+ 1 </one>`",
        r"wrong\.py:3: .*`len\(numbers\) </three>`",
    ],
)
def test_a_value_that_the_named_chapter_does_not_show_is_an_error(
    wrong: Built, place: str
) -> None:
    assert re.search(f"{place} was not evaluated", wrong.log), wrong.log
