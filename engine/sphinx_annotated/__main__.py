"""The command ``sphinx-annotated``: it begins a book."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

TEMPLATE = Path(__file__).parent / "template"


def new(folder: Path) -> str:
    """Write a book of one chapter into a new folder, and return the command that builds it.

    Raises ``FileExistsError`` if the folder is there.
    """
    folder.mkdir(parents=True)
    for path in sorted(TEMPLATE.iterdir()):
        if path.suffix in (".md", ".py"):
            text = path.read_text(encoding="utf-8")
            text = text.replace('"PROJECT"', repr(folder.name))
            text = text.replace("PROJECT", folder.name)
            (folder / path.name).write_text(text, encoding="utf-8")
    python = Path(sys.executable).name.removesuffix(".exe")
    out = (folder / "_build" / "html").as_posix()
    return shlex.join([python, "-m", "sphinx", folder.as_posix(), out])


def failed(message: str) -> int:
    print(message, file=sys.stderr)
    return 1


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says, and return its exit code."""
    parser = argparse.ArgumentParser("sphinx-annotated", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    begin = commands.add_parser("new", help="write a book of one chapter that runs")
    begin.add_argument(
        "folder", type=Path, help="where: a folder that is not there yet"
    )
    given = parser.parse_args(arguments)
    try:
        command = new(given.folder)
    except FileExistsError:
        return failed(f"{given.folder} exists already. Name another folder.")
    except OSError as error:
        return failed(f"{given.folder} cannot be written: {error.strerror}.")
    print(
        f"Wrote {given.folder}. Build it, and open index.html in _build/html:\n\n    {command}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
