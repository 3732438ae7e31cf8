"""Records of executions: what each piece of a chapter showed, kept in files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from sphinx_annotated.read.chapter import Cell, Chapter
from sphinx_annotated.read.digest import imported
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.syntax import first_line
from sphinx_annotated.run.job import Job
from sphinx_annotated.run.reads import file_digest, variable_digest


@dataclass
class Record:
    """The result of one execution: the outputs of each piece, and how the run went."""

    outputs: list[list[dict[str, Any]]] = field(default_factory=list)
    seconds: float = 0.0
    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, Any] = field(default_factory=dict)  # see recorder.py
    values: dict[str, str] = field(default_factory=dict)  # by expression in prose
    positions: list[int] = field(default_factory=list)  # of the code when it ran
    imported: dict[str, str] = field(
        default_factory=dict
    )  # modules, with their digests
    returned: dict[str, list[Any]] = field(default_factory=dict)  # see returned.py
    files: dict[str, str] = field(default_factory=dict)  # read, see reads.py
    environment: dict[str, str] = field(default_factory=dict)  # read, too

    def placed(self, chapter: Chapter) -> Iterator[tuple[Cell, int, dict[str, Any]]]:
        """Yield what each cell shows, with the line of the statement. Of values, it shows the last."""
        pieces = list(zip(chapter.pieces(), self.outputs, strict=False))
        cells = [cell for (cell, _), _ in pieces]
        for i, ((cell, nodes), outputs) in enumerate(pieces):
            last = cells[i + 1 : i + 2] != [cell]
            for output in outputs:
                if last or output["output_type"] != "execute_result":
                    yield cell, first_line(nodes[0]), output

    def by_cell(self, chapter: Chapter) -> Iterator[list[dict[str, Any]]]:
        """Yield what each cell shows."""
        shown: dict[int, list[dict[str, Any]]] = {}
        for cell, _, output in self.placed(chapter):
            shown.setdefault(id(cell), []).append(output)
        for cell in filter(lambda cell: cell.nodes, chapter.cells):
            yield shown.get(id(cell), [])


@dataclass(frozen=True)
class Ran:
    """What every build asks of a record."""

    values: dict[str, str] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


class Store:
    """Records on disk, one file per chapter and digest."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, docname: str, digest: str) -> Path:
        return self.folder / f"{docname.replace('/', '.')}-{digest}.json"

    def load(self, docname: str, digest: str) -> Record | None:
        """Return the record, or None if there is none that is just as it was saved."""
        try:
            text = self.path(docname, digest).read_text(encoding="utf-8")
            seal, _, content = text.partition("\n")
            return Record(**json.loads(content)) if seal == _seal(content) else None
        except (OSError, ValueError, TypeError):
            return None

    def ran(self, job: Job, project: Project) -> tuple[str, Ran] | None:
        """Return a digest of the record and a part of it, which is read again only if it has changed."""
        try:
            text = self.path(job.docname, job.digest).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

        def work() -> dict[str, dict[str, str]] | None:
            record = self.load(job.docname, job.digest)
            names = (each.name for each in fields(Ran))
            return {name: getattr(record, name) for name in names} if record else None

        seal, _, content = text.partition("\n")
        given = f"{seal} {_seal(content)}"
        found = project.once(job.module, f"ran {job.digest}", work, given)
        return (given, Ran(**found)) if found else None

    def save(self, docname: str, digest: str, record: Record) -> None:
        """Write the record completely or not at all."""
        path = self.path(docname, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
        content = json.dumps(asdict(record))
        try:
            part.write_text(f"{_seal(content)}\n{content}", encoding="utf-8")
            if path.is_dir():
                shutil.rmtree(path)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)  # the disk may be full


def _seal(content: str) -> str:
    """Return a digest by which a damaged record is known."""
    return hashlib.sha256(content.encode()).hexdigest()


def is_current(record: Ran | Record, job: Job, project: Project) -> bool:
    """Return whether the modules that the run imported, and what it read, are as they were."""
    return (
        imported(record.imported, job.path, project) == record.imported
        and all(
            project.seen(project.root / name, file_digest) == digest
            for name, digest in record.files.items()
        )
        and all(
            variable_digest(os.environ.get(name)) == digest
            for name, digest in record.environment.items()
        )
    )
