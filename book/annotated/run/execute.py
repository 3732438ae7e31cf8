"""Execute chapters in parallel, each in its own kernel, and store their outputs."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from annotated.read.digest import digest, versions
from annotated.read.expressions import expressions
from annotated.read.modules import Project
from annotated.read.parse import Cell, Chapter, ChapterError
from annotated.run.shapes import positions

MATPLOTLIBRC = Path(__file__).parent / "matplotlibrc"
RECORDER = Path(__file__).parent / "recorder.py"
CURVES = Path(__file__).parent / "curves.py"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
FRAME = re.compile(r"Cell In\s?\[(\d+)\][^\n]*?\bline (\d+)")  # as IPython writes it
FIX = "Correct the line. Chapters already executed are kept."
STARTUP = 180  # seconds that a kernel may take to start on a busy machine
KERNEL_ARGUMENTS = [
    "--log-level=ERROR",
    "--InlineBackend.figure_formats={'svg'}",
    "--InlineBackend.print_figure_kwargs={'bbox_inches': None, 'metadata': {'Date': None}}",
]
# The last cell: the recorded shapes, the CPU time of the run, and the values for the prose.
HARVEST = """
print(__import__("json").dumps(
    {
        "shapes": __recorder__.result(),
        "seconds": __import__("time").process_time(),
        "values": __values__,
    }
))
"""
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def kernel_files() -> str:
    """Return the text of the files that run in every kernel: outputs depend on them."""
    files = (MATPLOTLIBRC, RECORDER, CURVES)
    return "".join(path.read_text(encoding="utf-8") for path in files)


@dataclass
class Record:
    """The result of one execution: the outputs of each cell, and how the run went."""

    outputs: list[list[dict[str, Any]]] = field(default_factory=list)
    seconds: float = 0.0
    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, Any] = field(default_factory=dict)  # see recorder.py
    values: dict[str, str] = field(default_factory=dict)  # by expression in prose
    positions: list[int] = field(default_factory=list)  # of the code when it ran


@dataclass(frozen=True)
class Job:
    """A chapter to execute."""

    docname: str
    path: Path
    chapter: Chapter
    digest: str
    package: str
    versions: dict[str, str]


def job_of(project: Project, path: Path) -> Job:
    """Return the job of executing the chapter in a file."""
    module = project.at(path)
    return Job(
        docname=project.docname(module),
        path=path,
        chapter=module.chapter,
        digest=digest(module.chapter, module, project, kernel_files()),
        package=module.package,
        versions=versions(module, project.dependencies(module)),
    )


class Store:
    """Records on disk, one file per chapter and digest."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, docname: str, digest: str) -> Path:
        return self.folder / f"{docname.replace('/', '.')}-{digest}.json"

    def load(self, docname: str, digest: str) -> Record | None:
        """Return the record, or None if there is none that can be read."""
        try:
            return Record(
                **json.loads(self.path(docname, digest).read_text(encoding="utf-8"))
            )
        except (OSError, ValueError, TypeError):
            return None

    def save(self, docname: str, digest: str, record: Record) -> None:
        """Write the record completely or not at all."""
        path = self.path(docname, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
        part.write_text(json.dumps(asdict(record)), encoding="utf-8")
        part.replace(path)


def execute_all(
    jobs: Sequence[Job],
    store: Store,
    root: Path,
    workers: int,
    timeout: int,
    say: Callable[[str], None],
) -> list[ChapterError]:
    """Execute the jobs, ``workers`` at a time, and save each when it ends.

    Returns the errors of those that failed.
    """
    errors: list[ChapterError] = []
    waiting: SimpleQueue[Job | None] = SimpleQueue()
    done: SimpleQueue[tuple[Job, Record | ChapterError]] = SimpleQueue()
    workers = max(1, min(workers, len(jobs)))
    for job in [*jobs, *([None] * workers)]:
        waiting.put(job)
    threads = max(1, (os.cpu_count() or 1) // workers)

    def work() -> None:
        while (job := waiting.get()) is not None:
            say(f"executing {job.docname}")
            try:
                done.put((job, execute(job, root, timeout, threads)))
            except ChapterError as error:
                done.put((job, error))
            except Exception as error:  # the kernel did not start, or the disk is full
                done.put(
                    (
                        job,
                        ChapterError(
                            str(job.path), 1, f"could not be executed: {error}"
                        ),
                    )
                )

    for _ in range(workers):
        threading.Thread(target=work, daemon=True).start()
    for count in range(1, len(jobs) + 1):
        job, result = done.get()
        if isinstance(result, ChapterError):
            errors.append(result)
            say(f"failed    {job.docname} ({count} of {len(jobs)})")
        else:
            store.save(job.docname, job.digest, result)
            for line in stderr_lines(result):
                say(f"{job.docname} wrote to stderr: {line}")
            say(
                f"executed  {job.docname} in {result.seconds:.0f} s ({count} of {len(jobs)})"
            )
    return errors


def stderr_lines(record: Record) -> list[str]:
    """Return lines that an execution wrote to stderr: for the author, not for the page."""
    return [
        line
        for outputs in record.outputs
        for output in outputs
        if output.get("name") == "stderr"
        for line in "".join(output["text"]).splitlines()
        if line.strip()
    ]


def execute(job: Job, root: Path, timeout: int, threads: int) -> Record:
    """Run a chapter's cells from top to bottom. Raises ``ChapterError`` at the first error."""
    cells = [cell for cell in job.chapter.cells if cell.nodes]
    asked = expressions(job.chapter, str(job.path))
    sources = [
        _prelude(job, cells),
        *(job.chapter.source(cell) for cell in cells),
        *(f"__values__.append(str(({expression}\n)))" for expression in asked),
        HARVEST,
    ]
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": KERNEL},
        cells=[nbformat.v4.new_code_cell(source) for source in sources],
    )
    # The module line on which each of the notebook's cells starts.
    lines = [1, *(cell.line for cell in cells), *asked.values(), 1]
    started = [0]
    client = NotebookClient(
        notebook,
        timeout=timeout,
        startup_timeout=STARTUP,
        on_cell_start=lambda cell, cell_index: started.append(cell_index),
        resources={"metadata": {"path": str(root)}},
        extra_arguments=KERNEL_ARGUMENTS,
    )
    try:
        client.execute(env=_environment(root, threads))
    except CellExecutionError as error:
        raise _chapter_error(job, lines, started[-1], error) from None
    except CellTimeoutError:
        message = f"ran longer than {timeout} s. Make the run shorter, or raise annotated_timeout."
        raise ChapterError(str(job.path), lines[started[-1]], message) from None
    except DeadKernelError:
        message = "the kernel died here, perhaps out of memory. Make the run smaller."
        raise ChapterError(str(job.path), lines[started[-1]], message) from None
    harvest = json.loads(notebook.cells[-1].outputs[0]["text"])
    return Record(
        outputs=[cell.outputs for cell in notebook.cells[1 : len(cells) + 1]],
        seconds=round(harvest["seconds"], 1),
        date=time.strftime("%Y-%m-%d"),
        versions=job.versions,
        shapes=harvest["shapes"],
        values=dict(zip(asked, harvest["values"], strict=True)),
        positions=positions(job.chapter),
    )


def _prelude(job: Job, cells: list[Cell]) -> str:
    """Return the first code to run: names that an import would set, and the recorders."""
    return f"""
__values__ = []
__package__, __file__ = {job.package!r}, {str(job.path)!r}
__recorder__ = __import__("runpy").run_path({str(RECORDER)!r})
__recorder__ = __recorder__["Recorder"](get_ipython(), {[cell.line for cell in cells]!r})
__recorder__.install()
__import__("runpy").run_path({str(CURVES)!r})["install"](get_ipython())
"""


def _environment(root: Path, threads: int) -> dict[str, str]:
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "MATPLOTLIBRC": str(MATPLOTLIBRC),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _chapter_error(
    job: Job, lines: list[int], failed: int, error: CellExecutionError
) -> ChapterError:
    """Place the error at the module line of the last stack frame in one of its cells."""
    line = lines[failed]
    for count, number in FRAME.findall(ANSI.sub("", error.traceback)):
        if 1 < int(count) <= len(lines):
            line = lines[int(count) - 1] + int(number) - 1
    source = job.chapter.lines[line - 1].strip()
    message = f"{error.ename}: {error.evalue}\n    {source}\n{FIX}"
    return ChapterError(str(job.path), line, message)
