"""Every difference of the book shows lines that are in its modules, in statements that are whole."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sphinx_annotated.page.directives.difference import Change, changes
from sphinx_annotated.read.modules import Module, Project

ROOT = Path(__file__).resolve().parents[2]
DIRECTIVE = re.compile(r":{3,}\{variant\} (\S+)\n((?:[ #]*:\w+: .*\n)*)", re.MULTILINE)


def directives() -> Iterator[tuple[str, str, str]]:
    """The chapter, the class, and the class that it is compared with."""
    for folder in ("labml_primer", "experiments", "benchmarks", "book/pages"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name, options in DIRECTIVE.findall(path.read_text(encoding="utf-8")):
                found = dict(re.findall(r":(\w+): (.*)", options))
                if "of" in found:  # the others replace an argument by its value
                    yield path.relative_to(ROOT).as_posix(), name, found["of"]


@pytest.fixture(scope="module")
def project() -> Project:
    return Project(ROOT)


@pytest.fixture(params=sorted(set(directives())), ids=lambda each: each[1])
def shown(request: pytest.FixtureRequest, project: Project) -> list[Change]:
    chapter, name, base = request.param
    return changes(project, project.at(ROOT / chapter), base, name)


def test_each_line_is_a_whole_line_of_its_module(
    shown: list[Change], project: Project
) -> None:
    assert any(change.sign == "+" for change in shown)
    for change in shown:
        module = project.find(change.line.module)
        assert module
        text = module.chapter.lines[change.line.number - 1]
        head = f"{text}...):" if change.sign == " " and text.endswith("(") else text
        assert change.line.text in (text, head), change


def test_a_statement_is_shown_to_its_end(shown: list[Change], project: Project) -> None:
    texts = {
        sign: {each.line.text for each in shown if each.sign in (sign, " ")}
        for sign in "+-"
    }
    for change in shown:
        if change.sign == " ":
            continue
        module = project.find(change.line.module)
        assert module
        for number in statement(module, change.line.number):
            text = module.chapter.lines[number - 1]
            assert text in texts[change.sign], (change, text)


def statement(module: Module, number: int) -> list[int]:
    """The lines of the smallest statement around a line, without a body: what is read as one."""
    around = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.stmt)
        and node.lineno <= number <= (node.end_lineno or node.lineno)
    ]
    inner = max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    body = getattr(inner, "body", None)
    end = body[0].lineno - 1 if body else inner.end_lineno or inner.lineno
    lines = range(inner.lineno, end + 1)
    return [
        n
        for n in lines
        if module.chapter.lines[n - 1].strip() and n not in module.chapter.aside
    ]
