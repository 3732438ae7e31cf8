"""The documentation builds without a warning, and describes all that an author can write."""

import re
from pathlib import Path
from unittest import mock

import pytest
from builds import ENGINE, sphinx
from small_books import environment, plain
from sphinx_annotated import RELEASE, setup
from sphinx_annotated.settings import CONFIGURATION, OF_REPOSITORY
from sphinx_annotated.sphinx_extension import DIRECTIVES

DOCS = ENGINE / "docs"
SOURCES = [
    path.read_text(encoding="utf-8")
    for path in (ENGINE / "sphinx_annotated").rglob("*.py")
]
README = (ENGINE / "README.md").read_text(encoding="utf-8")


def headings(name: str) -> list[str]:
    text = (DOCS / name).read_text(encoding="utf-8")
    return re.findall(r"(?m)^## (?:The role )?`(\w+)`$", text)


def test_every_setting_is_described_with_its_default() -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert sorted(headings("settings.md")) == sorted(n for n, *_ in CONFIGURATION)
    keys = re.findall(r"(?m)^\| `(\w+)` \|", text)
    assert keys == list(OF_REPOSITORY)
    for name, default, *_ in CONFIGURATION:
        section = text.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        if default not in ("", {}, []):
            shown = repr(default).replace("'", '"')
            assert f"`{shown}`" in section, name
        row = re.search(rf"(?m)^\| `{name}` \| `(.*?)` \|", README)
        assert row and row[1] == repr(default).replace("'", '"'), name


def test_sphinx_shows_the_version_of_the_package() -> None:
    pinned = re.search(
        r'(?m)^version = "(.+)"$', (ENGINE / "pyproject.toml").read_text()
    )
    assert pinned and pinned[1] == RELEASE
    with mock.patch("sphinx_annotated.sphinx_extension.Again"):
        assert setup(mock.MagicMock())["version"] == RELEASE


def test_every_directive_and_role_is_described_and_used_by_an_example() -> None:
    written = {name for name in DIRECTIVES if not name.startswith("annotated-")}
    assert set(headings("directives.md")) == written | {"value"}
    example = (DOCS / "examples" / "devices.py").read_text(encoding="utf-8")
    assert written == set(re.findall(r":::\{(\w+)\}", example)) - {"note"}
    assert "{value}`" in example
    assert all(f"`{name}`" in README for name in written | {"value"})


def test_every_kind_of_warning_is_described() -> None:
    text = (DOCS / "warnings.md").read_text(encoding="utf-8")
    described = re.findall(r"(?m)^\| `annotated\.(\w+)` \|", text)
    given = set(re.findall(r'(?:subtype=|, kind = .*, )"(\w+)"', "\n".join(SOURCES)))
    assert set(described) == given and described == sorted(described)


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning_in_a_stock_theme(
    tmp_path: Path,
) -> None:
    log, site = tmp_path / "log.txt", tmp_path / "html"
    arguments = ["-W", "--keep-going", "-d", str(tmp_path / "doctrees")]
    code = sphinx([*arguments, str(DOCS), str(site)], log, environment())
    assert code == 0, plain(log)
    for name in ("numpy", "google", "rest", "plain", "cells"):
        page = (site / "examples" / f"in_{name}.html").read_text(encoding="utf-8")
        assert "sbs__row" in page and not re.search(r":\w+:`|>>>[^<]*</p>", page), name
