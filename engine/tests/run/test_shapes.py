"""Shapes are recorded while a chapter runs, and compared with the notes in its prose."""

from pathlib import Path
from textwrap import dedent

import pytest
from small_books import run_chapter
from sphinx_annotated.page.html.code import Highlighter
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.parse import parse
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.run.shapes import by_line, check, moved, positions
from sphinx_annotated.run.store import Record

TEXT = '''"""# T"""

import torch


def double(x, width=3):
    """`x` is `[batch, width]`."""
    batch = x.size(0)
    y = torch.cat([x, x], dim=1)  # [batch, 2 * width]
    for row in y:
        total = row.sum()
    return y


if __name__ == "__main__":
    z = double(torch.ones(5, 3))
    for i in range(4):
        z = double(torch.ones(i, 3))
    words = ["not", "tensors"]
'''


def run(text: str, folder: Path) -> tuple[Chapter, Record]:
    return parse(text), run_chapter(text, folder)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Chapter, Record]:
    return run(TEXT, tmp_path_factory.mktemp("shapes"))


def seen(record: Record) -> dict[tuple[int, str], list[int]]:
    return {(line, name): sizes for line, name, sizes, _ in record.shapes["names"]}


def test_each_assigned_tensor_is_recorded_at_its_line(
    ran: tuple[Chapter, Record],
) -> None:
    assert seen(ran[1]) == {
        (6, "x"): [5, 3],
        (9, "y"): [5, 6],
        (10, "row"): [6],
        (11, "total"): [],
        (16, "z"): [5, 6],
        (18, "z"): [0, 6],
    }


def test_a_dtype_is_recorded(ran: tuple[Chapter, Record]) -> None:
    assert {dtype for *_, dtype in ran[1].shapes["names"]} == {"float32"}


def test_only_the_first_calls_of_a_function_are_traced(
    ran: tuple[Chapter, Record],
) -> None:
    calls = [c for c in ran[1].shapes["calls"] if c["name"] == "double"]
    assert len(calls) <= 3


def test_correct_shape_notes_pass(ran: tuple[Chapter, Record]) -> None:
    chapter, record = ran
    assert check(chapter, record.shapes["calls"], "one.py") == 2


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        ("`[batch, width]`", "`[batch, seq, width]`", 7),
        ("`[batch, width]`", "`[width, batch]`", 7),
        ("`[batch, width]`", "`[batch, 4]`", 7),
        ("# [batch, 2 * width]", "# [batch, 3 * width]", 9),
        ("# [batch, 2 * width]", "# [batch]", 9),
    ],
)
def test_a_wrong_note_is_an_error_with_its_line(
    ran: tuple[Chapter, Record], right: str, wrong: str, line: int
) -> None:
    chapter = parse(TEXT.replace(right, wrong))
    with pytest.raises(ChapterError, match=rf"^one\.py:{line}: .*Correct the note"):
        check(chapter, ran[1].shapes["calls"], "one.py")


@pytest.mark.parametrize(
    "note", ["[..., width]", "[batch, ...]", "[batch, ..., width]", "[...]"]
)
def test_an_ellipsis_matches_any_number_of_sizes(
    ran: tuple[Chapter, Record], note: str
) -> None:
    chapter = parse(TEXT.replace("`[batch, width]`", f"`{note}`"))
    assert check(chapter, ran[1].shapes["calls"], "one.py") == 2


def test_a_wrong_size_next_to_an_ellipsis_is_an_error(
    ran: tuple[Chapter, Record],
) -> None:
    chapter = parse(TEXT.replace("`[batch, width]`", "`[..., batch]`"))
    with pytest.raises(ChapterError, match="Correct the note"):
        check(chapter, ran[1].shapes["calls"], "one.py")


def test_words_that_are_not_sizes_are_ignored(ran: tuple[Chapter, Record]) -> None:
    chapter = parse(TEXT.replace("# [batch, 2 * width]", "# [batch, 'six']"))
    assert check(chapter, ran[1].shapes["calls"], "one.py") == 2


def test_shapes_move_with_their_code(
    ran: tuple[Chapter, Record],
) -> None:
    _, record = ran
    longer = TEXT.replace(
        "    batch = x", "    # A note\n    # of two lines.\n    batch = x"
    )
    later = parse(longer.replace('"""# T"""', '"""\n# T\n\nMore.\n"""'))
    shapes = moved(record.shapes, record.positions, positions(later))
    lines = {(line, name) for line, name, *_ in shapes["names"]}
    assert (15, "y") in lines and (10, "x") in lines
    assert later.lines[14].strip().startswith("y = ")
    assert check(later, shapes["calls"], "one.py") == 2


def test_a_use_has_the_shape_of_the_last_assignment(
    ran: tuple[Chapter, Record],
) -> None:
    lines = by_line(ran[0], ran[1].shapes["names"])
    assert lines[9]["y"] == ("5, 6", "float32", True)
    assert lines[12]["y"] == ("5, 6", "float32", False)
    assert "y" not in lines[16]


def test_the_recorder_does_not_change_the_chapters_namespace(tmp_path: Path) -> None:
    text = '"""# T"""\n\nif __name__ == "__main__":\n    print(sorted(n for n in dir() if "ecord" in n))\n'
    _, record = run(text, tmp_path)
    assert record.outputs[0][0]["text"] == "[]\n"


REUSED = '''"""# T"""

import torch


def first(query):
    return query.sum()


if __name__ == "__main__":
    query = torch.ones(8, 32)

    def attend(query, key=lambda query: query):
        raise NotImplementedError

    def outer(query):
        def inner(query):
            return query

        return inner(query[0])

    class Layer:
        query = torch.ones(9)

        def forward(self, query):
            return query

    first(query[0, :4])
    outer(torch.ones(2, 3))


if __name__ == "__main__":
    rows = [query.sum() for query in torch.ones(5, 4)]
    same = (lambda query: query)(query)
    query = torch.cat(
        [query, query],
        dim=1,
    )
    query = torch.stack(tuple(query * 2 for query in rows))
    with torch.no_grad() as query:
        print(query)
    if (query := torch.ones(7)) is not None:
        print(query)
    for query in ["a", "b"]:
        print(query)
    query = torch.ones(6)
    query = "text"
    print(query)
'''


SIZES = """\
def first(query):                                        [4]
return query.sum()                                       [4]
query = torch.ones(8, 32)                                [8, 32]
def attend(query, key=lambda query: query):              none, none, none
def outer(query):                                        [2, 3]
def inner(query):                                        [3]
return query                                             [3]
return inner(query[0])                                   [2, 3]
query = torch.ones(9)                                    [9]
def forward(self, query):                                none
return query                                             none
first(query[0, :4])                                      [8, 32]
rows = [query.sum() for query in torch.ones(5, 4)]       none, none
same = (lambda query: query)(query)                      none, none, [8, 32]
query = torch.cat(                                       [8, 64]
[query, query],                                          [8, 64], [8, 64]
query = torch.stack(tuple(query * 2 for query in rows))  [5], none, none
with torch.no_grad() as query:                           none
print(query)                                             none
if (query := torch.ones(7)) is not None:                 [7]
print(query)                                             [7]
for query in ["a", "b"]:                                 none
print(query)                                             none
query = torch.ones(6)                                    [6]
query = "text"                                           none
print(query)                                             none
"""


def test_a_name_shows_the_shape_that_it_has_in_its_own_scope(tmp_path: Path) -> None:
    chapter, record = run(REUSED, tmp_path)
    page = Highlighter(chapter, "one", "", by_line(chapter, record.shapes["names"]))
    shown = []
    for cell in chapter.cells:
        for line in range(cell.nodes[0].lineno, (cell.nodes[-1].end_lineno or 0) + 1):
            words = [s for s in page.line(cell, line) if s[1] == "query"]
            sizes = [f"[{seen[0]}]" if seen else "none" for *_, seen in words]
            code = chapter.lines[line - 1].strip()
            shown += [f"{code:57}{', '.join(sizes)}"] if words else []
    assert shown == SIZES.splitlines()


def test_a_reused_name_is_compared_with_the_note_of_its_own_line(
    tmp_path: Path,
) -> None:
    text = """
        import torch

        if __name__ == "__main__":
            x = torch.ones(2, 3)
            x = torch.cat(
                [x, x],
                dim=1,
            )  # [2, 6]
    """
    chapter, record = run('"""# T"""\n' + dedent(text), tmp_path)
    assert check(chapter, record.shapes["calls"], "one.py") == 1
