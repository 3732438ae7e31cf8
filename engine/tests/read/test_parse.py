"""`parse` sorts each line of a module into one row, with its number in the file."""

import ast
import sys
import sysconfig
import textwrap
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sphinx_annotated.read.chapter import Cell, Chapter
from sphinx_annotated.read.parse import parse
from sphinx_annotated.read.syntax import ChapterError, docstring, is_demo, split_lines

Make = Callable[[str], Chapter]
STDLIB = Path(sysconfig.get_path("stdlib"))
# Packages whose modules are written in many hands and ways, and what tries Python's grammar.
FOLDERS = ("asyncio", "collections", "email", "http", "json", "logging", "unittest")
TRIED = ("grammar", "fstring", "patma", "syntax")
MODULES = [path for name in FOLDERS for path in sorted((STDLIB / name).glob("*.py"))]
MODULES += [STDLIB / f"{name}.py" for name in ("turtle", "typing", "enum", "heapq")]
MODULES += sorted(p for n in TRIED if (p := STDLIB / f"test/test_{n}.py").is_file())
LONG = 70_000  # bytes


def shown(chapter: Chapter) -> list[int]:
    """Numbers of the lines that stand in rows, in the order of the page."""
    return [
        n
        for cell in chapter.cells
        for row in cell.rows
        for block in row.blocks
        for n in block.lines
    ]


def demo_heads(chapter: Chapter) -> set[int]:
    return {n.lineno for n in chapter.tree.body if is_demo(n)}


def what_runs(chapter: Chapter) -> str:
    """The module's own tree without its docstring (unless it shares its line), demos opened."""
    body: list[ast.stmt] = []
    for node in chapter.tree.body:
        if is_demo(node):
            assert isinstance(node, ast.If)
            alone = len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
            body += [] if alone else node.body
        else:
            body.append(node)
    opening = docstring(chapter.tree)
    if opening and opening.lineno not in shown(chapter):
        body.remove(opening)
    return ast.dump(ast.Module(body, []))


def check(chapter: Chapter) -> None:
    """What holds of every chapter, whatever its module."""
    lines = split_lines(chapter.text)
    numbers = shown(chapter)
    assert numbers == sorted(set(numbers)), "a line stands twice, or out of order"
    blank = {n for n, line in enumerate(lines, 1) if not line.strip()}
    assert not set(numbers) & chapter.aside
    everything = set(numbers) | chapter.aside | blank | demo_heads(chapter)
    assert everything == set(range(1, len(lines) + 1)), "a line is lost"
    ran = "\n".join(chapter.source(cell) for cell in chapter.cells)
    assert ast.dump(ast.parse(ran)) == what_runs(chapter)
    for cell in chapter.cells:
        for k, line in enumerate(
            chapter.source(cell).split("\n") if cell.nodes else []
        ):
            assert lines[cell.line + k - 1].endswith(line), (
                "source lines are module lines"
            )
        for row in cell.rows:
            assert row.notes == sorted(row.notes), "prose in the order of the module"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            marks=[pytest.mark.nightly] * (path.stat().st_size > LONG),
            id=path.relative_to(STDLIB).with_suffix("").as_posix(),
        )
        for path in MODULES
    ],
)
def test_every_line_of_code_of_a_real_module_is_in_one_row(path: Path) -> None:
    with tokenize.open(path) as file:
        text = file.read()
    chapter = parse(text, str(path))
    check(chapter)
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(
            iter(text.splitlines(keepends=True)).__next__
        )
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    }
    strings = {
        n
        for node in ast.walk(chapter.tree)
        if (opening := docstring(node))
        for n in range(opening.lineno, (opening.end_lineno or 0) + 1)
    }
    above = range(1, first.lineno) if (first := docstring(chapter.tree)) else ()
    assert chapter.aside <= comments | strings | set(above)


PIECES = st.sampled_from(
    [
        "x = 1",
        "x = 1; y = 2",
        "# a note",
        "    # an indented note",
        "",
        "\f",
        "def f(): pass",
        'def f():\n    """## F"""\n    return 1',
        'def g(): "doc"; return 2',
        "@d\n# between\n@d\nasync def f(\n    a,  # one\n    # two\n    b=1,\n):\n    # in\n    pass",
        "class A:\n    # note\n\n    x = 1\n\n    def m(self):\n        r'''Doc.\n\n        More.'''",
        'if __name__ == "__main__":\n    x = [\n1,\n    # inside\n    ]\n    # cut\n    print(x)\n    # end',
        'if __name__ == "__main__":\n\tx = """\nkept\n\t"""\n\t# cut\n\tf"""\n  {x}\n"""',
        'if __name__ == "__main__":  # pragma: no cover\n    pass',
        'if __name__ == "__main__":\n    pass\nelse:\n    # other\n    pass',
        "if x:\n    # note\n    y\n    # end",
        'z = """\n# no note\n"""',
        "z = 1 + \\\n  2",
        "for x in y:\n    pass\n# between\nelse:\n    pass",
        "import a  # noqa: F401\n# type: ignore\nimport b",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PIECES, max_size=8),
    st.sampled_from(["", '"""# T\n\nProse."""\n', "# license\n'T'; z = 0\n"]),
)
def test_every_line_is_in_one_row_in_any_order_of_statements(
    pieces: list[str], opening: str
) -> None:
    text = opening + "\n".join(pieces)
    try:
        compile(text, "", "exec")
    except SyntaxError:
        with pytest.raises(ChapterError):
            parse(text)
    else:
        check(parse(text))


def notes(cell: Cell) -> list[str]:
    return [row.prose for row in cell.rows]


def rows(chapter: Chapter) -> list[tuple[str, list[int]]]:
    return [
        (row.prose, [n for block in row.blocks for n in block.lines])
        for cell in chapter.cells
        for row in cell.rows
    ]


def test_a_definition_can_have_several_rows(chapter: Make) -> None:
    made = chapter('''
        def f(x):
            """## F"""
            a = x
            # First.
            b = a

            # Second,
            # and more.
            return b
    ''')
    assert rows(made) == [
        ("## F", [1, 3]),
        ("First.", [5]),
        ("Second,\nand more.", [9]),
    ]


def test_a_comment_at_the_end_of_a_demo_is_below_it(chapter: Make) -> None:
    made = chapter('''
        if __name__ == "__main__":
            # Run.
            print(1)
            # Ran.


        class Next:
            """Next."""
    ''')
    assert [(cell.kind, notes(cell)) for cell in made.cells] == [
        ("demo", ["Run."]),
        ("demo", ["Ran."]),
        ("definition", ["Next."]),
    ]
    assert not made.cells[1].nodes


def test_a_comment_directly_above_a_definition_joins_its_docstring(
    chapter: Make,
) -> None:
    made = chapter('''
        # Why.
        @decorated(
            1
        )
        def f(
            x,
        ):
            """What."""
    ''')
    (row,) = made.cells[0].rows
    assert row.notes == [(1, "Why."), (8, "What.")]
    assert row.prose == "Why.\n\nWhat."
    assert row.placed.split("\n")[7] == "What."
    assert row.name is not None and row.name.qualname == "f"


def test_a_note_keeps_the_spacing_of_the_module(chapter: Make) -> None:
    made = chapter('''
        """

        # T

        Prose.
        """
        # One.

        # Two.
        x = 1
    ''')
    assert [(row.line, row.placed) for row in made.cells[0].rows] == [
        (3, "# T\n\nProse.")
    ]
    assert [(row.line, row.placed) for row in made.cells[1].rows] == [
        (7, "One.\n\nTwo.")
    ]


def test_names_of_nested_definitions(chapter: Make) -> None:
    made = chapter('''
        class A:
            """A."""

            async def m(self):
                def inner(): ...

            @overload
            def n(self, x: int) -> int: ...
            @overload
            def n(self, x: str) -> str: ...

            class B:
                def k(self): ...

        if x:
            def f(): ...

        if __name__ == "__main__":
            def helper(): ...
    ''')
    assert [(n.kind, n.qualname, n.level, line) for n, line in made.names()] == [
        ("class", "A", 1, 1),
        ("method", "A.m", 2, 4),
        ("function", "A.m.inner", 3, 5),
        ("method", "A.n", 2, 7),
        ("method", "A.n", 2, 9),
        ("class", "A.B", 2, 12),
        ("method", "A.B.k", 3, 13),
        ("function", "f", 1, 16),
    ]


def test_a_docstring_that_shares_its_line_stays_code(chapter: Make) -> None:
    made = chapter("""
        def f(): "Doc."
        def g():
            "Doc."; return 1
        def h():
            "Doc."  # noqa: D400
    """)
    assert [prose for prose, _ in rows(made)] == ["", "", "Doc."]
    assert shown(made) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "pragma",
    [
        *(
            "# noqa: E501",
            "# type: ignore",
            "# fmt: off",
            "# pragma: no cover",
            "#!shebang",
        ),
        *(
            "# mypy: strict",
            "# -*- coding: utf-8 -*-",
            "# region x",
            "# ruff: noqa",
        ),
    ],
)
def test_pragmas_stay_in_the_code(chapter: Make, pragma: str) -> None:
    made = chapter(f"x = 1\n{pragma}\ny = 2\n")
    assert rows(made) == [("", [1, 2, 3])]


@pytest.mark.parametrize(
    "word", ["regional", "pragmatic", "typed", "noqable", "formatted"]
)
def test_prose_that_starts_like_a_pragma_stays_prose(chapter: Make, word: str) -> None:
    assert rows(chapter(f"# {word} words\ny = 2\n")) == [(f"{word} words", [2])]


def test_demos_keep_their_place_and_are_dedented(chapter: Make) -> None:
    made = chapter("""
        def f(): ...


        if __name__ == "__main__":
            for x in f():
                print(x)
            # Then.
            f()


        def g(): ...


        if "__main__" == __name__:
            g()
    """)
    assert [(c.kind, made.source(c)) for c in made.cells] == [
        ("definition", "def f(): ..."),
        ("demo", "for x in f():\n    print(x)"),
        ("demo", "f()"),
        ("definition", "def g(): ..."),
        ("demo", "g()"),
    ]


def test_strings_in_demos_keep_their_indent(chapter: Make) -> None:
    made = chapter('''
        if __name__ == "__main__":
            a = """
            kept
            """
            b = rf"""
            {a}
            """
            c = (
        1,
            )
    ''')
    space: dict[str, object] = {}
    exec(made.source(made.cells[0]), space)
    assert space["a"] == "\n    kept\n    "
    assert space["b"] == f"\n    {space['a']}\n    "
    assert space["c"] == (1,)


def test_an_else_makes_the_main_block_plain_code(chapter: Make) -> None:
    made = chapter("""
        if __name__ == "__main__":
            pass
        else:
            x = 1
    """)
    assert [cell.kind for cell in made.cells] == ["code"]
    assert shown(made) == [1, 2, 3, 4]


def test_comments_inside_brackets_are_notes_on_the_lines_below(
    chapter: Make,
) -> None:
    made = chapter("""
        x = [
            # One.
            1,
            # Two.
            2,
        ]
    """)
    assert rows(made) == [("", [1]), ("One.", [3]), ("Two.", [5, 6])]
    assert len(made.cells) == 1


def test_a_license_above_the_docstring_is_shown_as_code(chapter: Make) -> None:
    made = chapter('#!/usr/bin/env python\n# A license.\n"""# T"""\nx = 1\n')
    assert rows(made) == [("# T", [2, 4])]


def test_pragmas_above_the_docstring_are_not_shown(chapter: Make) -> None:
    made = chapter('#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"""# T"""\nx = 1\n')
    assert rows(made) == [("# T", [4])]


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff"])
def test_an_empty_module_has_no_cells(text: str) -> None:
    assert parse(text).cells == []
    assert parse(text).title == ""


def test_a_module_of_only_comments_is_prose(chapter: Make) -> None:
    assert rows(chapter("# # T\n\n# More.\n")) == [("# T\n\nMore.", [])]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_byte_order_marks_are_ignored(end: str) -> None:
    text = '"""# T\n\nProse.\n"""\n# Note.\nx = 1\n'
    made = parse("\ufeff" + text.replace("\n", end))
    assert rows(made) == rows(parse(text))
    assert made.title == "T"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\ndef f(:\n", 2),
        ("x = 1\n\nreturn x\n", 3),
        ("if x:\n    y\n  z\n", 3),
        ("x = (\n", 1),
        ("x = '''\n", 1),
        ("x = 1\nfor", 2),
        ("def f():\n    x = 1\n    nonlocal y\n", 3),
    ],
)
def test_invalid_python_is_an_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(
        ChapterError, match=rf"^a/b\.py:{line}: this is not Python: .*Correct"
    ):
        parse(text, "a/b.py")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("type Pair = tuple[int, int]\n", (3, 12)),
        ("type Pair[T] = tuple[T, T]\n", (3, 12)),
        ("def first[T](items: list[T]) -> T: ...\n", (3, 12)),
        ("class Box[T]:\n    x: T\n", (3, 12)),
        ('x = f"{d["key"]}"\n', (3, 12)),
        ("try:\n    f()\nexcept TypeError, ValueError:\n    pass\n", (3, 14)),
        ("x = t'{name}'\n", (3, 14)),
    ],
)
def test_syntax_of_a_newer_python_is_named_with_its_version(
    text: str, version: tuple[int, int]
) -> None:
    if sys.version_info >= version:
        pytest.skip("this Python reads it")
    words = rf"b\.py:\d+: this is not Python: .* Python {version[0]}\.{version[1]}, and this"
    with pytest.raises(ChapterError, match=words):
        parse(text, "b.py")


def test_an_escape_that_is_no_character_is_an_error_that_says_how_to_write_it() -> None:
    with pytest.raises(
        ChapterError, match=r'b\.py:1: .* Put an r before the quotes: r"""'
    ):
        parse('"""The matrix \\xi."""\n', "b.py")


@pytest.mark.parametrize("text", ["type = (\n", "x = d['t'\n", "def f(:\n"])
def test_other_invalid_python_names_no_version(text: str) -> None:
    with pytest.raises(ChapterError, match="this is not Python") as found:
        parse(text, "b.py")
    assert "Python 3" not in str(found.value)


def test_null_bytes_are_an_error() -> None:
    with pytest.raises(ChapterError, match=r"b\.py:\d+: this is not Python"):
        parse("x = 1\n\0", "b.py")


def test_parsing_shows_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    parse('x = "\\d"\n')
    assert not recwarn.list


def test_the_text_of_a_line_is_the_same_on_the_page_and_in_the_file() -> None:
    text = textwrap.dedent(Path(__file__).read_text(encoding="utf-8"))
    made = parse(text)
    counts = Counter(made.line_of(cell, n) for cell in made.cells for n in range(1, 3))
    assert made.lines == text.split("\n")
    assert counts[text.split("\n")[0]] == len(made.cells)


def test_a_comment_between_a_decorator_and_its_function_starts_no_step(
    chapter: Make,
) -> None:
    made = chapter("""
        if __name__ == "__main__":
            @print
            # Between.
            def f(): ...
    """)
    assert [made.source(cell) for cell in made.cells] == [
        "@print\n# Between.\ndef f(): ..."
    ]


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("{row}\n# Title\n{row}\nx = 1\n", "Title"),
        ("{row}\n#  Title     #\n{row}\n# More.\nx = 1\n", "Title\n\nMore."),
        ("{row}\n#\n# One\n# Two\n#\n{row}\nx = 1\n", "One\nTwo"),
        ("# ------\n# Title\n# ------\nx = 1\n", "Title"),
    ],
)
@pytest.mark.parametrize("row", ["#" * 7, "#" * 50])
def test_the_box_around_a_comment_is_no_prose(row: str, text: str, prose: str) -> None:
    (cell,) = parse(text.format(row=row)).cells
    assert cell.rows[0].prose.strip() == prose
