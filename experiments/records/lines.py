"""Files with a record on each line, as JSON, by a name of its own.

A file is always replaced as a whole, so it never holds half a line. Git merges the lines that two branches
add; if both have changed the same record, its name is there twice, and reading says so.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Line = dict[str, Any]
"""A record as it is on its line: its name is the first entry, `run`."""


def read_lines(path: Path) -> dict[str, Line]:
    """Return the records of a file by name, and none if there is no such file.

    Raises `ValueError` with the number of a line that is no record, or of a name's second one.
    """
    found: dict[str, Line] = {}
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record: Line = json.loads(line)
            name = record["run"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(
                f"{path}, line {number} is no whole record. Restore it from Git, or delete the line and "
                "repeat the run."
            ) from None
        if name in found:
            raise ValueError(
                f"{path}, line {number}: {name} is recorded twice. Keep one of the two lines."
            )
        found[name] = record
    return found


def write_line(path: Path, name: str, record: Mapping[str, Any]) -> None:
    """Add a record to a file, or replace the one with its name. All other lines stay as they are."""
    write_lines(path, read_lines(path) | {name: {"run": name, **record}})


def write_lines(path: Path, lines: Mapping[str, Line]) -> None:
    """Write a file of records, by their names."""
    texts = (json.dumps(line) + "\n" for line in lines.values())
    replace_text(path, "".join(texts))


def replace_text(path: Path, text: str) -> None:
    """Write a file as a whole: `path` never holds a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of one JSON object, as a whole."""
    replace_text(path, json.dumps(content, indent=1) + "\n")
