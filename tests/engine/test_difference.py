"""One class as a change of another."""

import ast
from pathlib import Path

import pytest
from annotated.difference import as_markdown, changes, costs
from annotated.modules import Project
from annotated.parse import parse

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


def test_a_call_of_the_parent_is_read_as_the_lines_it_stands_for(
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


def test_what_the_class_puts_in_place_of_its_parents_is_shown_as_a_change(
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


def test_a_class_that_is_not_there_is_named(project: Project) -> None:
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


def test_an_expression_for_the_cost_is_found_with_its_line() -> None:
    text = '"""# T"""\n\nx = 1\n# :::{variant} A\n# :of: B\n# :cost: cost(A, 3)\n# :::\ny = 2\n'
    assert costs(parse(text)) == [(6, "cost(A, 3)")]
    assert ast.parse(costs(parse(text))[0][1])
