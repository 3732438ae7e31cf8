"""Shared by the engine's tests: small books made of a few modules."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from annotated.read.modules import Project
from annotated.read.parse import Chapter, parse
from builds import ENGINE, LONGEST, sphinx
from forked_kernels import nursery, use

Write = Callable[[dict[str, str]], Path]


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


@dataclass
class Built:
    """How a build went."""

    root: Path
    code: int
    log: str

    def page(self, name: str) -> str:
        """A page's HTML."""
        return (self.root / "_build" / "html" / f"{name}.html").read_text(
            encoding="utf-8"
        )

    def copy(self) -> "Built":
        """The book as it is now, elsewhere: a later build does not change it."""
        root = Path(mkdtemp(dir=self.root.parent, prefix="copy"))
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return Built(root, self.code, self.log)

    def executed(self) -> list[str]:
        """Chapters that this build executed."""
        return sorted(re.findall(r"\] executing (\S+)", self.log))


CONF = """
import sys
sys.path.insert(0, {engine!r})
project = "Fixture"
extensions = ["annotated"]
exclude_patterns = ["_build", "conf.py", "**/__init__.py", "lib", "tests"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_dmath_double_inline = True
annotated_workers = 2
"""


@dataclass
class Shelf:
    """A folder for one book, built as often as a test likes."""

    root: Path

    def write(self, files: dict[str, str]) -> None:
        """Adds or replaces files; texts may be indented."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replaces what must be there."""
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text
        (self.root / name).write_text(text.replace(old, new), encoding="utf-8")

    def command(
        self, *options: str, builder: str = "html", python: str = sys.executable
    ) -> list[str]:
        """What builds the book."""
        out = self.root / "_build" / builder
        doctrees = self.root / "_build" / f"doctrees-{builder}"
        sphinx = [python, "-m", "sphinx", "-b", builder, "-d", str(doctrees)]
        return [*sphinx, *options, str(self.root), str(out)]

    def build(
        self, *options: str, builder: str = "html", python: str = sys.executable
    ) -> Built:
        """Builds, as the command line does. The log is both outputs together."""
        log = self.root / "log.txt"
        command = self.command(*options, builder=builder, python=python)
        if python != sys.executable:
            return Built(self.root, run(command, log), plain(log))
        code = sphinx(command[3:], log, environment())
        return Built(self.root, code, plain(log))


def run(command: list[str], log: Path, **options: Any) -> int:
    """Runs a command, both outputs of which go to `log`, and returns its exit code."""
    with log.open("w") as file:
        return subprocess.call(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(),
            timeout=LONGEST,
            **options,
        )


def plain(log: Path) -> str:
    """The text of a log, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", log.read_text())


def environment() -> dict[str, str]:
    """One thread a process, and no colours in what it says."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}


@pytest.fixture(scope="session")
def shelf(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[dict[str, str]], Shelf]:
    """A new book of these files, with a configuration and, if there is none, a list of chapters."""

    def new(files: dict[str, str]) -> Shelf:
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
            {"conf.py": CONF.format(engine=str(ENGINE)), "index.md": index, **files}
        )
        return made

    return new
