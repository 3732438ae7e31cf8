"""What a reader's tools stand on: ties, exercises, links to lines, marks, BibTeX."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from annotated.bibtex import entries
from annotated.code import Highlighter
from annotated.difference import Change, Line, changes, marks
from annotated.execute import Record
from annotated.modules import Project
from annotated.parse import Chapter, parse
from annotated.site import site_notebook
from annotated.ties import tie, tied
from conftest import Built, Shelf
from docutils import nodes

# -- ties -----------------------------------------------------------------------------------


def sentence(text: str) -> nodes.container:
    """Prose as a page has it: code between backticks, formulas between dollar signs."""
    paragraph = nodes.paragraph()
    for part in re.split(r"(`[^`]*`|\$[^$]*\$)", text):
        kind = {"`": nodes.literal, "$": nodes.math}.get(part[:1])
        inner = part[1:-1]
        paragraph += kind(inner, inner) if kind else nodes.Text(part)
    return nodes.container("", paragraph)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Here `x` is $X$.", ["x X"]),
        ("`q`, `k` and `v` are $Q$, $K$ and $V$.", ["q Q", "k K", "v V"]),
        ("`a`, `b`, and `c` stand for $A$, $B$, and $C$", ["a A", "b B", "c C"]),
        ("`omega`\nstands for\n$\\omega_k$.", ["omega \\omega_k"]),
        ("`w` is $W_1$, `b` is $b_\\text{out}$.", ["w W_1", "b b_\\text{out}"]),
        ("As `y` and $y$ say, `z` is $Z$.", ["z Z"]),
        ("`x` is `[batch, seq]`.", []),
        ("`x` is large, and $X$ is not.", []),
        ("`a` and `b` are $A$.", []),
        ("`x` is $X + 1$.", []),
        ("`nn.Linear` is $W$.", []),
    ],
)
def test_a_sentence_ties_names_to_symbols(text: str, pairs: list[str]) -> None:
    prose = sentence(text)
    tied(prose)
    found: dict[str, list[str]] = {}
    for node in prose.findall(tie):
        found.setdefault(node["name"], []).append(node[0].astext())
    assert [" ".join(each) for each in found.values()] == pairs
    assert prose.astext() == sentence(text).astext()


# -- links to lines -------------------------------------------------------------------------

MODULE = '''
"""# T"""

import os


@property
def first():
    return 1


class Second:
    x = 1

    def method(self):
        """Note."""
        # Why.
        return 2

    y = 2


def first():
    return 3
'''


def anchors(chapter: Chapter) -> dict[str, str]:
    """Text of a line -> what a link to it names."""
    shown = (b for c in chapter.cells for r in c.rows for b in r.blocks)
    lines = [n for block in shown for n in block.lines]
    return {chapter.lines[n - 1].strip(): chapter.anchor(n) for n in lines}


def test_a_line_is_named_by_its_place_in_the_innermost_definition() -> None:
    found = anchors(parse(MODULE))
    assert found["@property"] == "first:1"
    assert found["return 1"] == "first:3"
    assert found["x = 1"] == "Second:2"
    assert found["return 2"] == "Second.method:4"
    assert found["y = 2"] == "Second:9"


def test_a_line_outside_definitions_and_in_a_second_one_of_a_name_has_its_number() -> (
    None
):
    found = anchors(parse(MODULE))
    assert found["import os"] == "L4"
    assert found["return 3"] == f"L{MODULE.split(chr(10)).index('    return 3') + 1}"


def test_links_to_lines_stay_true_when_lines_come_in_above() -> None:
    before = anchors(parse(MODULE))
    above = MODULE.replace("import os", "import os\n\n# A note.\nLIMIT = 3\n")
    after = anchors(
        parse(above.replace("    x = 1", "    x = 1\n    # More.\n    z = 1"))
    )
    for line in ("return 1", "x = 1", "return 2"):
        assert after[line] == before[line]


# -- differences ----------------------------------------------------------------------------


def marked(*lines: str) -> list[list[str]]:
    found = [
        Change(line[0], Line("m", n, line[1:]))  # type: ignore[arg-type]
        for n, line in enumerate(lines)
    ]
    return [
        [change.line.text[a:b] for a, b in stretches]
        for change, stretches in zip(found, marks(found), strict=True)
    ]


def test_the_words_of_a_line_that_changed_are_marked() -> None:
    assert marked(" def f(x):", "-    return g(x)", "+    return h(x)") == [
        [],
        ["g"],
        ["h"],
    ]


def test_lines_that_are_no_versions_of_one_another_have_no_marks() -> None:
    assert marked("-a = b + c", "+for each in others:") == [[], []]
    assert marked("+x = 1", "-x = 2") == [[], []]


def test_each_removed_line_is_held_against_the_added_one_that_is_like_it() -> None:
    assert marked("-q = f(x)", "-k = f(y)", "+new()", "+q = g(x)", "+k = g(y)") == [
        ["f"],
        ["f"],
        [],
        ["g"],
        ["g"],
    ]


CLASS = """
class Layer:
    def __init__(
        self,
        width,
        bend=old.Bend,
    ):
        self.bend = bend()
        self.width = width

    def forward(self, x):
        return self.bend(x)
"""


def test_a_class_is_compared_with_itself_given_another_argument(tmp_path: Path) -> None:
    (tmp_path / "layer.py").write_text(CLASS)
    module = Project(tmp_path).find("layer")
    assert module
    found = changes(Project(tmp_path), module, "", "Layer", "bend=New")
    assert [f"{c.sign}{c.line.text.strip()}" for c in found] == [
        " def __init__(...):",
        "-self.bend = old.Bend()",
        "+self.bend = New()",
    ]
    assert [c.line.number for c in found] == [3, 8, 8]


@pytest.mark.parametrize("given", ["width=3", "absent=3", ""])
def test_a_parameter_without_a_default_is_named(tmp_path: Path, given: str) -> None:
    (tmp_path / "layer.py").write_text(CLASS)
    module = Project(tmp_path).find("layer")
    assert module
    with pytest.raises(LookupError, match="Layer has no parameter"):
        changes(Project(tmp_path), module, "", "Layer", given)


# -- small promises -------------------------------------------------------------------------


def test_an_entry_of_a_bibliography_is_its_own_text() -> None:
    one = "@book{ada1843,\n  title = {{Notes}, or {\\'e}},\n}"
    two = "@misc{x:2,year=1}"
    text = f"% a comment\n{one}\n\n{two}\nafter"
    assert dict(entries(text)) == {"ada1843": one, "x:2": two}


def test_a_keyword_in_a_call_is_no_tensor() -> None:
    chapter = parse("x = f(x=x, y=g(x))\n")
    seen = {1: {"x": ("2, 3", "float32", True)}}
    segments = Highlighter(chapter, "m", "", seen).line(chapter.cells[0], 1)
    tensors = [tensor is not None for _, text, _, tensor in segments if text == "x"]
    assert tensors == [True, False, True, True]


def test_prints_are_joined_and_stay_on_their_side_of_a_figure() -> None:
    def said(text: str, name: str = "stdout") -> dict[str, Any]:
        return {"output_type": "stream", "name": name, "text": text}

    drawn = {
        "output_type": "display_data",
        "data": {"text/plain": ["F"]},
        "metadata": {},
    }
    chapter = parse("x = 1\n")
    outputs = [said("a"), said("w", "stderr"), said("b"), drawn, said("c")]
    notebook = site_notebook(chapter, Record(outputs=[outputs]))
    shown = notebook.cells[-1].outputs
    assert [o.get("text", "figure") for o in shown] == ["ab", "figure", "c"]


# -- a page that has them -------------------------------------------------------------------

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


def test_code_outputs_and_words_of_a_solution_are_folded(built: Built) -> None:
    page = built.page("one")
    assert 'class="note note--exercise"' in page
    assert "The <em>next</em> one</p>" in page
    (folded,) = re.findall(r'<details class="solution">.*?</details>', page, re.DOTALL)
    for part in ("<summary>Solution</summary>", "Three, of course.", "then 3"):
        assert part in folded and page.count(part) == 1, part
    assert "assert" in folded
    assert "What comes after" not in folded
    assert "Closing words" not in folded


def test_a_tie_is_in_the_page(built: Built) -> None:
    page = built.page("one")
    assert '<span class="tie" data-tie="size" tabindex="0"><code' in page
    assert re.search(r'<span class="tie" data-tie="size"><span class="math', page)


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


def test_a_comment_inside_a_solution_is_refused(
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
