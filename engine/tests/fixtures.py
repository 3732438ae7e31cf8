"""Fixtures of tests that build small books, here or of an extension in another folder."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from builds import ENGINE
from forked_kernels import nursery, use
from small_books import CONF, Shelf, Write
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.parse import parse


@pytest.fixture(scope="session", autouse=True)
def kernels_are_forked() -> None:
    """Chapters that a test executes, or a book that it builds here, have kernels of the nursery.

    A build that runs as a command of its own starts them itself.
    """
    use(nursery())


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


@pytest.fixture(scope="session")
def shelf(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Shelf]:
    """A new book of these files, with a configuration, more of it, and if need be a list of chapters."""

    def new(files: dict[str, str], more: str = "") -> Shelf:
        made = Shelf(tmp_path_factory.mktemp("book"))
        chapters = [
            n.removesuffix(".py")
            for n in files
            if n.endswith(".py") and "/" not in n and n != "conf.py"
        ]
        index = (
            "# Book\n\n```{toctree}\n:caption: Part\n\n"
            + "\n".join(chapters)
            + "\n```\n"
        )
        made.write(
            {
                "conf.py": CONF.format(engine=str(ENGINE)) + more,
                "index.md": index,
                **files,
            }
        )
        return made

    return new
