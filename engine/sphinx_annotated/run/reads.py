"""Record, in a chapter's kernel, what its run reads of the project, and of the environment.

Python reports each file that it opens and each folder that it lists. What compiled code, another process or a
database opens is not seen, nor are files outside the project. It imports nothing of the engine.
"""

import hashlib
import os
import re
import site
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

ABSENT = "absent"
CELL = re.compile(r"ipykernel_\d+")  # in the file name of a cell
# Python reads modules, and their source for messages: for those, the chapter's digest has rules of its own.
OF_MODULES = ("<frozen importlib", "/importlib/", "linecache.py", "tokenize.py")


def file_digest(path: Path) -> str:
    """Return a digest of a file's content, or of the names in a folder."""
    try:
        if path.is_dir():
            names = (each.name for each in path.iterdir())
            content = "\0".join(sorted(n for n in names if n[0] not in "._")).encode()
        else:
            content = path.read_bytes()
    except OSError:
        return ABSENT
    return hashlib.sha256(content).hexdigest()[:24]


def variable_digest(value: str | None) -> str:
    """Return a digest of an environment variable, which may be secret."""
    return ABSENT if value is None else hashlib.sha256(value.encode()).hexdigest()[:24]


class Reads:
    """Collects what is read below ``root``, except files that are ``known`` or that the run wrote.

    ``variables`` are those that the engine sets.
    """

    def __init__(self, root: str, known: Collection[str], variables: Collection[str]):
        self.root = os.path.realpath(root)
        libraries = (sys.prefix, *site.getsitepackages())
        self.apart = [os.path.realpath(path) + os.sep for path in libraries]
        self.known = {os.path.realpath(path) for path in known}
        self.variables = set(variables)
        self.files: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.written: set[str] = set()
        self.busy = False

    def install(self) -> None:
        sys.addaudithook(self.hear)
        os.environ = Asked(self, os.environ)  # type: ignore[assignment]  # noqa: B003

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note of a file that is opened, or of a folder that is listed."""
        if self.busy or event not in ("open", "os.listdir", "os.scandir"):
            return
        self.busy = True  # a digest opens the file, too
        try:
            self._note(event, *arguments)
        finally:
            self.busy = False

    def _note(self, event: str, place: Any, *how: Any) -> None:
        if not isinstance(place, str | bytes | os.PathLike | None):
            return  # a descriptor of a file that was opened before
        path = os.path.realpath(os.fsdecode(place or "."))
        if not path.startswith(self.root + os.sep):
            return
        if path in self.known or path.startswith(tuple(self.apart)):
            return
        if self._of_modules():
            return
        if event == "open" and _writes(*how):
            self.written.add(path)
        elif path not in self.written and path not in self.files:
            self.files[path] = file_digest(Path(path))

    def _of_modules(self) -> bool:
        """Return whether Python itself opens the file, to import a module or to show its lines."""
        name = sys._getframe(3).f_code.co_filename
        return any(each in name for each in OF_MODULES)

    def ask(self, name: str, value: str | None) -> None:
        """Take note of a variable that the project's code reads, before it was set."""
        frame = sys._getframe(2)
        while frame.f_back and _is_of_environment(frame.f_code.co_filename):
            frame = frame.f_back
        path = os.path.realpath(frame.f_code.co_filename)
        own = path.startswith(self.root) and not path.startswith(tuple(self.apart))
        if (own or CELL.search(path)) and name not in self.variables:
            self.environment.setdefault(name, variable_digest(value))

    def result(self) -> dict[str, dict[str, str]]:
        """Return the digests of what was read, by paths from the root and by names."""
        files = {
            os.path.relpath(path, self.root).replace(os.sep, "/"): digest
            for path, digest in sorted(self.files.items())
            if path not in self.written
        }
        return {"files": files, "environment": self.environment}


def _writes(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return bool(set(mode) & set("wax+"))
    return bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def _is_of_environment(path: str) -> bool:
    return path == __file__ or path.startswith("<frozen ") or path.endswith("os.py")


class Asked(type(os.environ)):  # type: ignore[misc]
    """The environment, which says what is asked of it."""

    def __init__(self, reads: Reads, environ: Any):
        super().__init__(
            environ._data,
            *(environ.encodekey, environ.decodekey),
            *(environ.encodevalue, environ.decodevalue),
        )
        self.reads = reads
        self.copied: set[str] = (
            set()
        )  # asked for all, as a copy for another process does

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            self.copied.add(name)
            yield name

    def __getitem__(self, name: str) -> str:
        try:
            value: str | None = super().__getitem__(name)
        except KeyError:
            self.reads.ask(name, None)
            raise
        if name not in self.copied:
            self.reads.ask(name, value)
        self.copied.discard(name)
        return value  # type: ignore[return-value]

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(name, value)
        self.reads.variables.add(name)
