"""`digest` depends on code that runs, and not on prose."""

import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sphinx_annotated.read import digest as digest_module
from sphinx_annotated.read.digest import digest, versions
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.syntax import ChapterError

CHAPTER = '''
"""# T

Prose.
"""

import json

from pkg.near import near


def f(x):
    """## F"""
    # Why.
    return near(x) + 1


if __name__ == "__main__":
    # Look.
    f(1)
    f(2)
'''
NEAR = '''
"""Near."""

from . import far
from .sub.deep import deep


def near(x):
    """N."""
    from pkg import late

    return x


if __name__ == "__main__":
    near(1)
'''
FILES = {
    "pkg/__init__.py": "from typing import TYPE_CHECKING\n\nfrom pkg.through import reached\n\n"
    "if TYPE_CHECKING:\n    from pkg.for_types import x\n",
    "pkg/through.py": "reached = 1\n\n\nif __name__ == '__main__':\n    import pkg.demo_only\n",
    "pkg/demo_only.py": "x = 1\n",
    "pkg/near.py": NEAR,
    "pkg/far.py": "y = 1\n",
    "pkg/farther.py": "y = 1\n",
    "pkg/late.py": "z = 1\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/deep.py": "import pkg.whole\n\ndeep = 1\n",
    "pkg/whole.py": "x = 1\n",
    "pkg/apart.py": "x = 1\n",
    "pkg/for_types.py": "x = 1\n",
    "pkg/one.py": CHAPTER,
}
ON = ["__init__", "through", "near", "late", "far", "sub/__init__", "sub/deep", "whole"]


@pytest.fixture
def root(write: Callable[[dict[str, str]], Path]) -> Path:
    return write(FILES)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Versions are looked up once a process."""
    yield
    digest_module._version.cache_clear()


def key(root: Path, name: str = "pkg/one.py", extra: str = "") -> str:
    project = Project(root)
    module = project.at(root / name)
    return digest(module, project, extra)


def edited(root: Path, old: str, new: str, name: str = "pkg/one.py") -> str:
    path = root / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return key(root)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prose.", "Other prose, \\n with a line more.\n\nAnd a paragraph."),
        ("## F", "Another heading"),
        ('    """## F"""\n', ""),
        ("# Why.", "# Because.\n    #\n    # $x$"),
        ("    # Look.\n", ""),
        ("    f(1)", "    f(1)\n    # A comment more."),
        ("    f(1)\n    f(2)", "    f(1)\n    # Between them.\n    f(2)"),
        ("import json\n", "import json\n\n# Between them.\n"),
        ("# Look.", "# Look at it."),
        ("near(x) + 1", "(\n        near( x )\n        + 1  # trailing\n    )"),
        ("\n\n\ndef", "\n\ndef"),
        ("import json\n", "import json  # noqa: F401\n"),
    ],
)
def test_editing_prose_or_layout_keeps_the_digest(
    root: Path, old: str, new: str
) -> None:
    before = key(root)
    assert edited(root, old, new) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("near(x) + 1", "near(x) + 2"),
        ("f(1)", "f(2)"),
        ("f(1)", "f(1);"),
        ("import json", "import ast"),
        ("f(1)", "f(1)\n    # A step more.\n    f(3)"),
        ('if __name__ == "__main__":', "if True:"),
    ],
)
def test_editing_code_changes_the_digest(root: Path, old: str, new: str) -> None:
    before = key(root)
    assert edited(root, old, new) != before


@pytest.mark.parametrize("name", ON)
def test_editing_an_imported_module_changes_the_digest(root: Path, name: str) -> None:
    before = key(root)
    path = root / f"pkg/{name}.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nnew = 1\n", encoding="utf-8")
    assert key(root) != before


def test_a_relative_import_is_followed_beyond_one_package(root: Path) -> None:
    (root / "pkg/sub/deep.py").write_text("from ..farther import y as deep\n")
    before = key(root)
    assert edited(root, "y = 1", "y = 2", "pkg/farther.py") != before


@pytest.mark.parametrize(
    "call",
    [
        'importlib.import_module("pkg.apart")',
        'import_module(".apart", "pkg")',
        'import_module(".apart", package=__package__)',
        'import_module(name="pkg.apart")',
        '__import__("pkg.apart")',
    ],
)
@pytest.mark.parametrize("name", ["pkg/one.py", "pkg/far.py"])
def test_a_call_that_imports_by_a_literal_name_is_followed(
    root: Path, call: str, name: str
) -> None:
    path = root / name
    path.write_text(path.read_text(encoding="utf-8") + f"\n{call}\n", encoding="utf-8")
    before = key(root)
    assert edited(root, "x = 1", "x = 2", "pkg/apart.py") != before


@pytest.mark.parametrize(
    ("code", "old", "new", "seen"),
    [
        ("f.__doc__", "## F", "## G", True),
        ('getattr(f, "__doc__")', "## F", "## G", True),
        ("help(f)", "## F", "## G", True),
        ("inspect.getdoc(f)", "## F", "## G", True),
        ("inspect.getsource(f)", "## F", "## G", True),
        ("inspect.getsource(f)", "# Why.", "# Because.", True),
        ("f.__doc__", "# Why.", "# Because.", False),
        ("parser.add(help=f)", "## F", "## G", False),
        ("inspect.signature(f)", "## F", "## G", False),
    ],
)
def test_prose_counts_only_where_the_code_asks_for_it(
    root: Path, code: str, old: str, new: str, seen: bool
) -> None:
    edited(root, "f(1)", code)
    before = key(root)
    assert (edited(root, old, new) != before) == seen


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("import traceback", '"""N."""', "# A note.\n"),
        ("from traceback import print_exception", "def near", "# A note.\ndef near"),
        ("print(error.__traceback__.tb_lineno)", "def near", "# A note.\ndef near"),
        ("print(near.__code__.co_firstlineno)", "def near", "# A note.\ndef near"),
        ("inspect.currentframe().f_back", "def near", "# A note.\ndef near"),
        ("from unittest import main", '"""N."""', '"""M."""'),
    ],
)
def test_text_of_imported_modules_counts_where_an_output_can_show_it_or_its_lines(
    root: Path, code: str, old: str, new: str
) -> None:
    edited(root, "f(1)", code)
    before = key(root)
    assert edited(root, old, new, "pkg/near.py") != before


def test_docstrings_of_imported_modules_count_where_the_code_asks_for_them(
    root: Path,
) -> None:
    edited(root, "f(1)", "print(near.__doc__)")
    before = key(root)
    assert edited(root, '"""N."""', '"""M."""', "pkg/near.py") != before


def test_docstrings_count_if_an_imported_module_asks_for_them(root: Path) -> None:
    edited(root, "y = 1", "y = lambda f: f.__doc__", "pkg/far.py")
    before = key(root)
    assert edited(root, "## F", "## G") != before


@pytest.mark.parametrize("name", ["apart", "demo_only", "for_types"])
def test_editing_an_unused_module_keeps_the_digest(root: Path, name: str) -> None:
    before = key(root)
    assert edited(root, "x = 1", "x = 2", f"pkg/{name}.py") == before


@pytest.mark.parametrize(
    ("old", "new"),
    [("near(1)", "near(2)"), ("Near.", "Nearer."), ('"""N."""', "# A note.")],
)
def test_demos_and_prose_of_imported_modules_keep_the_digest(
    root: Path, old: str, new: str
) -> None:
    before = key(root)
    assert edited(root, old, new, "pkg/near.py") == before


def test_the_python_version_changes_the_digest(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key(root)
    monkeypatch.setattr(platform, "python_version", lambda: "3.99.0")
    assert key(root) != before


def test_versions_of_imported_packages_change_the_digest(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(root, "x = 1", "import hypothesis", "pkg/whole.py")
    before = key(root)
    project = Project(root)
    one = project.at(root / "pkg/one.py")
    assert "hypothesis" in versions(one, project.dependencies(one), project)
    monkeypatch.setattr(
        digest_module, "_version", lambda name: "99" if name == "hypothesis" else None
    )
    assert key(root) != before


def test_installing_the_project_itself_keeps_the_digest(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = key(root)
    version = digest_module._version
    monkeypatch.setattr(
        digest_module, "_version", lambda name: "1" if name == "pkg" else version(name)
    )
    assert key(root) == before


def test_a_package_known_by_another_name_is_found(root: Path) -> None:
    edited(root, "import json", "import yaml")
    project = Project(root)
    one = project.at(root / "pkg/one.py")
    assert "yaml" in versions(one, [], project)


def test_a_package_mentioned_for_its_files_changes_the_digest(root: Path) -> None:
    edited(root, "f(1)", 'files("pytest")')
    project = Project(root)
    assert "pytest" in versions(project.at(root / "pkg/one.py"), [], project)


@pytest.mark.parametrize(
    "form", ['__data__ = ("d/x.json",)', '__data__: tuple[str, ...] = ("d/x.json",)']
)
@pytest.mark.parametrize("name", ["pkg/one.py", "pkg/far.py"])
def test_declared_data_files_change_the_digest(
    write: Callable[[dict[str, str]], Path], root: Path, form: str, name: str
) -> None:
    write({"d/x.json": "1"})
    path = root / name
    path.write_text(path.read_text(encoding="utf-8") + f"\n{form}\n", encoding="utf-8")
    before = key(root)
    write({"d/x.json": "2"})
    assert key(root) != before


@pytest.mark.parametrize(
    ("declared", "what"),
    [
        ('("d/none.json",)', "names d/none.json, which does not exist"),
        ('"d/none.json"', "must be a literal tuple of paths"),
        ("tuple(range(3))", "must be a literal tuple of paths"),
        ("(1,)", "must be a literal tuple of paths"),
    ],
)
def test_invalid_data_declarations_are_errors_with_their_lines(
    root: Path, declared: str, what: str
) -> None:
    (root / "pkg/far.py").write_text(
        f"y = 1\n__data__ = {declared}\n", encoding="utf-8"
    )
    with pytest.raises(ChapterError, match=rf"far\.py:2: __data__ {what}"):
        key(root)


def test_a_broken_import_is_an_error_with_file_and_line(root: Path) -> None:
    (root / "pkg/far.py").write_text("x = 1\ndef f(:\n", encoding="utf-8")
    with pytest.raises(ChapterError, match=r"far\.py:2: this is not Python"):
        key(root)


def test_a_module_that_is_not_utf8_is_an_error_with_file_and_line(root: Path) -> None:
    (root / "pkg/far.py").write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    with pytest.raises(ChapterError, match=r"far\.py:2: this is not UTF-8\. Save"):
        key(root)
