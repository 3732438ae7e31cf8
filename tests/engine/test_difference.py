"""The difference between two classes."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from annotated.page.difference import Change, Line, as_markdown, changes, marks
from annotated.read.modules import Project
from conftest import Built, Shelf

BASE = '''
class Base:
    """What it was."""

    def __init__(self, width):
        super().__init__()
        # Kept.
        self.width = width

    def forward(self, x):
        a = x + 1
        return a * 2

    def untouched(self):
        return 0
'''
CHILD = '''
from base import Base


class Child(Base):
    """What it became."""

    def __init__(self, width):
        super().__init__(width)
        self.more = 1

    def forward(self, x):
        y = super().forward(x)
        return y + self.more
'''
SIBLING = """
class Sibling:
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        a = x - 1
        return a * 2
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for name, text in (("base", BASE), ("child", CHILD), ("sibling", SIBLING)):
        (tmp_path / f"{name}.py").write_text(text)
    return Project(tmp_path)


def shown(project: Project, base: str, variant: str) -> list[str]:
    module = project.find(variant.split(".")[0])
    assert module
    found = changes(project, module, base, variant)
    return [f"{c.sign}{c.line.text.strip()}" for c in found]


def test_a_call_of_super_is_replaced_by_the_lines_it_runs(
    project: Project,
) -> None:
    assert shown(project, "base.Base", "child.Child") == [
        "-class Base:",
        "+class Child(Base):",
        " def __init__(self, width):",
        "+self.more = 1",
        " def forward(self, x):",
        "-return a * 2",
        "+y = a * 2",
        "+return y + self.more",
    ]


def test_an_overridden_assignment_is_shown_as_a_change(
    tmp_path: Path,
) -> None:
    (tmp_path / "pair.py").write_text("""
class Base:
    def __init__(self):
        self.one = f()
        self.two = g()


class Child(Base):
    def __init__(self):
        super().__init__()
        self.one = h()
""")
    assert shown(Project(tmp_path), "pair.Base", "pair.Child")[2:] == [
        " def __init__(self):",
        "-self.one = f()",
        "+self.one = h()",
    ]


def test_a_class_that_does_not_inherit_shows_what_it_lacks(project: Project) -> None:
    assert shown(project, "base.Base", "sibling.Sibling") == [
        "-class Base:",
        "+class Sibling:",
        " def forward(self, x):",
        "-a = x + 1",
        "+a = x - 1",
        "-def untouched(self):",
        "-return 0",
    ]


def test_each_line_keeps_its_own_module_and_number(project: Project) -> None:
    module = project.find("child")
    assert module
    for change in changes(project, module, "base.Base", "Child"):
        owner = project.find(change.line.module)
        assert owner
        line = owner.text.split("\n")[change.line.number - 1]
        returned = change.line.text.strip().removeprefix("y = ")
        assert returned in line


def test_a_name_is_found_through_imports(project: Project) -> None:
    module = project.find("child")
    assert module
    assert changes(project, module, "Base", "Child") == changes(
        project, module, "base.Base", "child.Child"
    )


def test_an_unknown_class_is_an_error_with_its_name(project: Project) -> None:
    module = project.find("child")
    assert module
    with pytest.raises(LookupError, match="there is no class Absent"):
        changes(project, module, "Absent", "Child")


def test_the_notebook_shows_the_difference_as_a_block(project: Project) -> None:
    module = project.find("child")
    assert module
    lines = as_markdown(changes(project, module, "Base", "Child"))
    assert lines[0] == "```diff" and lines[-1] == "```"
    assert "+class Child(Base):" in lines


def marked(*lines: str) -> list[list[str]]:
    found = [
        Change(line[0], Line("m", n, line[1:]))  # type: ignore[arg-type]
        for n, line in enumerate(lines)
    ]
    return [
        [change.line.text[a:b] for a, b in stretches]
        for change, stretches in zip(found, marks(found), strict=True)
    ]


def test_the_changed_words_of_a_line_are_marked() -> None:
    assert marked(" def f(x):", "-    return g(x)", "+    return h(x)") == [
        [],
        ["g"],
        ["h"],
    ]


def test_lines_that_are_not_similar_have_no_marks() -> None:
    assert marked("-a = b + c", "+for each in others:") == [[], []]
    assert marked("+x = 1", "-x = 2") == [[], []]


def test_each_removed_line_is_compared_with_a_similar_added_line() -> None:
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


def test_a_class_is_compared_with_itself_with_another_argument(tmp_path: Path) -> None:
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
def test_a_parameter_without_a_default_is_an_error(tmp_path: Path, given: str) -> None:
    (tmp_path / "layer.py").write_text(CLASS)
    module = Project(tmp_path).find("layer")
    assert module
    with pytest.raises(LookupError, match="Layer has no parameter"):
        changes(Project(tmp_path), module, "", "Layer", given)


TWO_CHAPTERS = {
    "base.py": """
        '''
        # Base

        Prose.
        '''


        class Base:
            '''## A base'''

            def size(self):
                return 1
    """,
    "other.py": """
        '''
        # Other
        '''

        from base import Base


        class Other(Base):
            '''
            ## Another

            :::{variant} Other
            :of: base.Base
            :::
            '''

            def size(self):
                return 2
    """,
}


def test_a_difference_has_the_new_line_numbers_after_the_other_chapters_prose_changed(
    shelf: Callable[[dict[str, str]], Shelf],
) -> None:
    def number(built: Built) -> int:
        """The line of the base that the other chapter's page shows as removed."""
        removed = re.search(
            r'href="base.html#L(\d+)" data-sign="-"', built.page("other")
        )
        assert built.code == 0 and removed, built.log
        return int(removed[1])

    book = shelf(TWO_CHAPTERS)
    before = number(book.build("-W"))
    book.edit("base.py", "Prose.", "Prose.\n\nAnd more.")
    again = book.build("-W")
    assert again.executed() == [] and number(again) == before + 2
