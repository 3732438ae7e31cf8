"""Small books made of a few modules, and how their builds went."""

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

from builds import LONGEST, sphinx

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

    def well_built(self) -> Built:
        """Builds, which must succeed."""
        done = self.build()
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


def plain(log: Path) -> str:
    """The text of a log, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", log.read_text())


def environment() -> dict[str, str]:
    """One thread a process, and no colours in what it says."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
