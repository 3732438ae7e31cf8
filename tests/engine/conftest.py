"""What the engine's tests share: small books made of a few modules."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from annotated.modules import Project
from annotated.parse import Chapter, parse

Write = Callable[[dict[str, str]], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes files below one folder, which it returns. Texts may be indented."""

    def writer(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return tmp_path

    return writer


@pytest.fixture
def project(write: Write) -> Callable[[dict[str, str]], Project]:
    """A project of these modules, nothing of it read yet."""
    return lambda files: Project(write(files))


@pytest.fixture
def chapter() -> Callable[[str], Chapter]:
    """A chapter of this text, which may be indented; its first line is line 1."""
    return lambda text: parse(textwrap.dedent(text).lstrip("\n"))
