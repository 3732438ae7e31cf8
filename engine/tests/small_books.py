"""Small books made of a few modules, and how their builds went."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from builds import LONGEST, sphinx
from sphinx_annotated.page.build.book import book_of
from sphinx_annotated.read.modules import Module, Project
from sphinx_annotated.run.execute import execute
from sphinx_annotated.run.job import Job
from sphinx_annotated.run.store import Record
from sphinx_annotated.take.notebook import reader_notebook

Write = Callable[[dict[str, str]], Path]


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
extensions = ["sphinx_annotated"]
exclude_patterns = [".*/**", "_build", "conf.py", "**/__init__.py", "lib", "tests"]
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

    def configure(self, text: str) -> None:
        """Adds lines to the configuration."""
        with (self.root / "conf.py").open("a") as conf:
            conf.write(text)

    def well_built(self, *options: str, builder: str = "html") -> Built:
        """Builds, which must succeed."""
        done = self.build(*options, builder=builder)
        assert done.code == 0, done.log
        return done


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


def run_chapter(text: str, folder: Path, timeout: int = 60) -> Record:
    """What a chapter of this text left that ran in a folder."""
    path = folder / "one.py"
    path.write_text(text, encoding="utf-8")
    job = Job("one", path, Module("one", path, text), "digest", "", {})
    return execute(job, folder, timeout, threads=1)


def notebook_of(root: Path, name: str) -> list[dict[str, Any]]:
    """The cells of the notebook that readers get of a chapter."""
    book = book_of(Project(root), "Fixture", {}, [name], {}, [], [])
    text = reader_notebook(root / f"{name}.py", book)
    return list(json.loads(text)["cells"])


def words(html: str) -> str:
    """The text of HTML, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def plain(log: Path) -> str:
    """The text of a log, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", log.read_text())


def environment() -> dict[str, str]:
    """One thread a process, and no colours in what it says."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
