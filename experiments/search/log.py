"""The log of a search: one JSON object a line, only ever appended to.

A line is one of three:

- `{"began": …}`: a process began or resumed the search, with its settings, versions and machine.
- `{"born": 17, …}`: individual 17 was made. It has the program as text, its parent, the mutations that
  made it of the parent, and the loss to reach at each hurdle.
- `{"ended": 17, …}`: its losses at the hurdles and the end, or the reason why it was rejected, and its
  costs.

The state of a search depends on these lines alone, so the log is enough to resume it.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

Line = dict[str, Any]


class Log:
    """An open log. Every line is on the disk before `write` returns."""

    def __init__(self, file: TextIO):
        self.file = file

    def write(self, **line: Any) -> None:
        json.dump(line, self.file, separators=(",", ":"), ensure_ascii=False)
        self.file.write("\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def read_log(path: Path) -> list[Line]:
    """Return the lines of a log. A last line without its end, whose writer was killed, does not count.

    Raises `ValueError` with the number of a line that cannot be read.
    """
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    lines = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError as error:
            message = f"{path}, line {number}: no JSON; restore it from Git"
            raise ValueError(message) from error
    return lines


@contextmanager
def appending(path: Path) -> Iterator[Log]:
    """Open a log for writing, after its last whole line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    whole, end, _ = path.read_bytes().rpartition(b"\n")
    os.truncate(path, len(whole + end))
    with path.open("a", encoding="utf-8") as file:
        yield Log(file)
