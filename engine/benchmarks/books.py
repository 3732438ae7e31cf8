"""What a build costs: synthetic books, next to plain Sphinx with MyST-NB in the same minute.

``python engine/benchmarks/books.py`` prints CPU seconds and megabytes, ours and those of the peer, and their
ratios. Nothing is executed. The peer builds the same prose and code as notebooks. ``--chapters 80 160 320``
shows how the cost grows, ``--themes furo`` that in one theme. Themes must be installed, or in folders of
``PYTHONPATH``. In most of them each page has the contents of the whole book.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ENGINE = Path(__file__).resolve().parents[1]
WORDS = (
    *("attention", "kernel", "layer", "token", "weight", "gradient", "sample"),
    *("model", "sequence", "position", "head", "channel", "batch", "step", "loss"),
)
THEMES = ("alabaster", "furo", "sphinx_book_theme", "pydata_sphinx_theme")
Part = tuple[str, str]  # "prose" or "code", and the text


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a build, and its memory at the peak in megabytes."""

    seconds: float
    memory: float

    def __str__(self) -> str:
        return f"{self.seconds:6.1f} s {self.memory:5.0f} MB"


# -- the books -----------------------------------------------------------------------------


def sentence(random: random.Random, count: int = 9) -> str:
    """Return a sentence, some with a formula or a link."""
    words = random.choices(WORDS, k=count)
    words[count // 2] = random.choice(["`x`", "$x_i^2$", "*one*", words[0]])
    return f"{' '.join(words).capitalize()}."


def definition(random: random.Random, name: str) -> Iterator[Part]:
    """Yield a function with a note above it and in it."""
    yield "prose", f"{sentence(random)}\n{sentence(random)}"
    lines = [f"def {name}(x: float, n: int = 3) -> float:"]
    for i in range(random.randint(1, 5)):
        lines += [
            f"    y_{i} = x * {random.randint(2, 9)} + n  # [batch]",
            f"    x = max(y_{i}, abs(x))",
        ]
    yield "code", "\n".join([*lines, "    return x"])


def chapter(number: int, lines: int) -> list[Part]:
    """Return a chapter of about so many lines, which uses another of its ten."""
    rng = random.Random(number)
    base = number - number % 10
    parts: list[Part] = [
        ("prose", f"# Chapter {number}\n\n{sentence(rng)}\n\n{sentence(rng, 20)}")
    ]
    count = 4
    if base != number:
        parts.append(("code", f"from c{base:04} import f{base:04}_0"))
        count += 2
    functions = 0
    while count < lines:
        name = f"f{number:04}_{functions}"
        if functions % 5 == 4:
            parts.append(("prose", f"## Part {functions // 5 + 1}\n\n{sentence(rng)}"))
            parts.append(("code", f"limit_{functions} = {rng.randint(1, 99)}"))
            count += 7
        parts += definition(rng, name)
        functions += 1
        count += parts[-1][1].count("\n") + 6
    return parts


def chain(count: int) -> list[Part]:
    """Return a chapter of functions that each call the two before, so that the last copy has all."""
    parts: list[Part] = [("prose", "# Chain\n\nEach calls two.")]
    for i in range(count):
        calls = " + ".join(["x", *(f"f{j}(x)" for j in (i - 1, i - 2) if j >= 0)])
        text = f'def f{i}(x):\n    """Step {i}."""\n    return {calls}'
        parts += [("prose", f"Step {i}."), ("code", text)]
    return parts


def module(parts: list[Part]) -> str:
    """Return a chapter as a module."""
    (_, opening), *rest = parts
    out = [f'r"""\n{opening}\n"""\n']
    for kind, text in rest:
        if kind == "prose":
            out += [f"# {line}".rstrip() for line in text.split("\n")]
        else:
            out += [text, "", ""]
    return "\n".join(out) + "\n"


def notebook(parts: list[Part]) -> str:
    """Return a chapter as a notebook."""
    cells: list[dict[str, object]] = []
    for i, (kind, text) in enumerate(parts):
        cell = {"id": f"c{i}", "metadata": {}, "source": text}
        if kind == "prose":
            cells.append({"cell_type": "markdown", **cell})
        else:
            code = {"cell_type": "code", "outputs": [], "execution_count": None}
            cells.append(code | cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}}
    return json.dumps({**whole, "nbformat": 4, "nbformat_minor": 5})


def write(folder: Path, chapters: list[list[Part]], ours: bool, theme: str) -> None:
    """Write a book: its settings, its index and its chapters."""
    folder.mkdir(parents=True)
    settings = {
        "project": "A book",
        "extensions": ["sphinx_annotated" if ours else "myst_nb"],
        "html_theme": theme,
        "nb_execution_mode": "off",
        "myst_enable_extensions": ["dollarmath"],
    }
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    (folder / "conf.py").write_text("\n".join(lines) + "\n")
    names = "\n".join(f"c{i:04}" for i in range(len(chapters)))
    (folder / "index.md").write_text(f"# A book\n\n```{{toctree}}\n{names}\n```\n")
    for i, parts in enumerate(chapters):
        text = module(parts) if ours else notebook(parts)
        (folder / f"c{i:04}{'.py' if ours else '.ipynb'}").write_text(text)


# -- measuring -----------------------------------------------------------------------------


def build(folder: Path) -> Cost:
    """Build a book in a process of its own, and return its cost."""
    folders = filter(None, [str(ENGINE), os.environ.get("PYTHONPATH")])
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(folder)]
    process = subprocess.Popen(
        [*command, str(folder.with_name(f"{folder.name}-site"))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        stdin=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{folder} was not built")
    per_megabyte = 1024 if sys.platform != "darwin" else 1024**2
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / per_megabyte)


def edit(folder: Path, parts: list[Part]) -> None:
    """Change a word in the last line of prose of the last chapter."""
    at = max(i for i, (kind, _) in enumerate(parts) if kind == "prose")
    parts[at] = ("prose", f"{parts[at][1]} Edited.")
    path = max(folder.glob("c[0-9]*.*"))
    path.write_text(module(parts) if path.suffix == ".py" else notebook(parts))


def compared(where: Path, chapters: list[list[Part]], theme: str) -> None:
    """Build a book cold, unchanged, and with one line edited; print ours, the peer's and the ratio."""
    folders = where / "ours", where / "peer"
    for folder, ours in zip(folders, (True, False), strict=True):
        write(folder, chapters, ours, theme)
    for what in ("cold", "nothing changed", "one line edited"):
        if what == "one line edited":
            for folder in folders:
                edit(folder, list(chapters[-1]))
        ours, peer = map(build, folders)
        print(f"  {what:16} {ours}   {peer}   {ours.seconds / peer.seconds:5.2f}")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chapters", type=int, nargs="*", default=[640])
    parser.add_argument("--lines", type=int, nargs="*", default=[20_010])
    parser.add_argument("--chains", type=int, nargs="*", default=[300, 600])
    parser.add_argument("--themes", nargs="*", default=THEMES)
    options = parser.parse_args()
    sizes = random.Random(0)
    books = {
        f"{count} chapters": [chapter(i, sizes.randint(30, 100)) for i in range(count)]
        for count in options.chapters
    }
    books |= {
        f"one module of {count} lines": [chapter(0, count)] for count in options.lines
    }
    books |= {f"a chain of {n} functions": [chain(n)] for n in options.chains}
    for name, chapters in books.items():
        for theme in options.themes:
            print(f"{name} in {theme}: ours, MyST-NB, ratio")
            with TemporaryDirectory() as folder:
                compared(Path(folder), chapters, theme)


if __name__ == "__main__":
    main()
