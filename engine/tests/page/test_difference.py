"""The difference between two classes."""

from pathlib import Path

import pytest
from sphinx_annotated.page.directives.difference import (
    Change,
    Line,
    as_markdown,
    changes,
    marks,
)
from sphinx_annotated.read.modules import Project

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


def test_lines_that_a_call_of_super_runs_are_not_shown_as_removed(
    project: Project,
) -> None:
    assert shown(project, "base.Base", "child.Child") == [
        "-class Base:",
        "+class Child(Base):",
        " def __init__(self, width):",
        "+self.more = 1",
        " def forward(self, x):",
        "+y = super().forward(x)",
        "+return y + self.more",
    ]


PAIR = """
class Base:
    def forward(self, x):
        x = prepare(x)
        return (
            first(x),
            second(x),
        )


class Child(Base):
    def forward(self, x):
        {}
        return a
"""


@pytest.mark.parametrize(
    "call",
    [
        "a, b = super().forward(x)  # [batch, seq]",
        "a, b = super().forward(f(x))",
        "a, b = super().forward(\n            x,\n        )",
        "a, b = super(Child, self).forward(x)",
        "a = super().forward(x)[0] + 1",
        "for _ in range(3):\n            a = super().forward(x)",
    ],
)
def test_no_line_that_still_runs_is_shown_as_removed_however_super_is_called(
    tmp_path: Path, call: str
) -> None:
    (tmp_path / "pair.py").write_text(PAIR.format(call))
    found = shown(Project(tmp_path), "pair.Base", "pair.Child")
    added = [f"+{line.strip()}" for line in [*call.split("\n"), "return a"]]
    assert found[2:] == [" def forward(self, x):", *added]


def test_a_value_that_the_new_assignment_uses_is_not_shown_as_removed(
    tmp_path: Path,
) -> None:
    (tmp_path / "pair.py").write_text("""
class Base:
    def __init__(self):
        self.norm = f()


class Child(Base):
    def __init__(self):
        super().__init__()
        self.norm = both(self.norm, g())
""")
    assert shown(Project(tmp_path), "pair.Base", "pair.Child")[2:] == [
        " def __init__(self):",
        "+self.norm = both(self.norm, g())",
    ]


def test_attributes_of_the_classes_are_compared(tmp_path: Path) -> None:
    (tmp_path / "pair.py").write_text("""
class Base:
    kept = 0
    size = 1


class Child(Base):
    "What it became."

    size = 2
    more: int = 3
""")
    assert shown(Project(tmp_path), "pair.Base", "pair.Child")[2:] == [
        "-size = 1",
        "+size = 2",
        "+more: int = 3",
    ]


def test_a_class_two_steps_away_shows_both_steps(project: Project) -> None:
    (project.root / "last.py").write_text("""
from child import Child


class Last(Child):
    def forward(self, x):
        return super().forward(x) - 1
""")
    assert shown(project, "base.Base", "last.Last") == [
        *shown(project, "base.Base", "child.Child"),
        *shown(project, "child.Child", "last.Last"),
    ]
    assert "-def untouched(self):" not in shown(project, "base.Base", "last.Last")


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


@pytest.mark.parametrize("variant", ["child.Child", "sibling.Sibling"])
def test_each_line_is_a_whole_line_of_its_own_module_with_its_number(
    project: Project, variant: str
) -> None:
    module = project.find("child")
    assert module
    for change in changes(project, module, "base.Base", variant):
        owner = project.find(change.line.module)
        assert owner
        assert owner.text.split("\n")[change.line.number - 1] == change.line.text
        owners = {"-": "base", "+": variant.split(".")[0]}
        assert owner.name == owners.get(change.sign, owner.name)


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
