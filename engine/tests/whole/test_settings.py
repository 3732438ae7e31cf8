"""A setting of a wrong kind ends the build with its line, before a module runs."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from small_books import Shelf
from sphinx_annotated.settings import CONFIGURATION, problem

New = Callable[[dict[str, str]], Shelf]
DEFAULTS = {name: default for name, default, *_ in CONFIGURATION}
LISTS = [name for name, default in DEFAULTS.items() if isinstance(default, list)]
DICTS = [name for name, default in DEFAULTS.items() if isinstance(default, dict)]
SWITCHES = [name for name, default in DEFAULTS.items() if isinstance(default, bool)]
NUMBERS = [name for name, default in DEFAULTS.items() if type(default) is int]
STRINGS = [name for name, default in DEFAULTS.items() if isinstance(default, str)]


def test_every_setting_is_of_one_kind_and_its_default_is_right() -> None:
    assert len(LISTS + DICTS + SWITCHES + NUMBERS + STRINGS) == len(DEFAULTS)
    assert [n for n, default in DEFAULTS.items() if problem(n, default, default)] == []


@pytest.mark.parametrize("name", LISTS)
def test_a_string_instead_of_a_list_is_an_error_with_the_list(name: str) -> None:
    assert problem(name, [], "np*") == "is 'np*', and must be a list: ['np*']."


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (LISTS, [3, None, {"a": "b"}, [1], [["a"]]]),
        (DICTS, [3, None, "a", ["a"], {"a": 1}, {1: "a"}]),
        (SWITCHES, [1, 0, None, "True", []]),
        (NUMBERS, ["4", None, True, -1, [4]]),
        (STRINGS, [3, None, ["a"], True, {1: "a"}]),
    ],
)
def test_values_of_other_kinds_are_errors(names: list[str], values: list[Any]) -> None:
    for name in names:
        for value in values:
            assert repr(value) in problem(name, DEFAULTS[name], value), (name, value)


def test_an_unknown_key_of_the_repository_is_an_error_that_lists_the_keys() -> None:
    said = problem("annotated_repository", {}, {"url": "a", "adress": "b"})
    assert said == ("has adress. It may have url, branch, notebooks, site, host.")


@pytest.mark.slow
def test_all_wrong_settings_are_named_with_their_lines_and_nothing_runs(
    shelf: New,
) -> None:
    text = '"""# One"""\n\nfrom pathlib import Path\n\nPath("ran").touch()\n'
    book = shelf({"one.py": text})
    lines = (book.root / "conf.py").read_text().count("\n")
    book.configure('annotated_execute = "on*"\nannotated_chapters = "on*"\n')
    book.configure('annotated_glossary = "words.md"\n')
    done = book.build()
    assert done.code != 0 and not (book.root / "ran").exists()
    said = re.findall(r"conf\.py:(\d+): (annotated_\w+) (.*)", done.log)
    assert sorted((int(line) - lines, name) for line, name, _ in said) == [
        (1, "annotated_execute"),
        (2, "annotated_chapters"),
        (3, "annotated_glossary"),
    ]
    assert "must be a list: ['on*']." in done.log and "Traceback" not in done.log
