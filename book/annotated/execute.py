"""Executes chapters side by side, each in a kernel of its own, and keeps what came out."""

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

from annotated.difference import costs
from annotated.parse import Cell, Chapter, ChapterError
from annotated.shapes import positions

MATPLOTLIBRC = Path(__file__).parent / "matplotlibrc"
RECORDER = Path(__file__).parent / "recorder.py"
CURVES = Path(__file__).parent / "curves.py"
FONTS = Path(__file__).parent / "fonts.py"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
FRAME = re.compile(r"Cell In\s?\[(\d+)\][^\n]*?\bline (\d+)")  # as IPython writes it
MEND = "Correct the line; chapters already executed are kept."
STARTUP = (
    180  # seconds that a kernel may take to start, on a machine that has other work
)
KERNEL_ARGUMENTS = [
    "--log-level=ERROR",
    "--InlineBackend.figure_formats={'svg'}",
    "--InlineBackend.print_figure_kwargs={'bbox_inches': None, 'metadata': {'Date': None}}",
]
# The last thing that runs: what was recorded, and the processor time that all took.
HARVEST = """
print(__import__("json").dumps(
    {"shapes": __recorder__.result(), "seconds": __import__("time").process_time()}
))
"""
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


@dataclass
class Record:
    """What one execution left: the outputs of each cell that runs, and how it went."""

    outputs: list[list[dict[str, Any]]] = field(default_factory=list)
    seconds: float = 0.0
    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    shapes: dict[str, Any] = field(
        default_factory=dict
    )  # see recorder.py; lines as of then
    costs: dict[str, str] = field(default_factory=dict)  # see variants.py
    positions: list[int] = field(
        default_factory=list
    )  # the lines of then, see shapes.positions


@dataclass(frozen=True)
class Job:
    """A chapter to execute."""

    docname: str
    path: Path
    chapter: Chapter
    digest: str
    package: str
    versions: dict[str, str]


class Store:
    """Records on disk, one file a chapter and digest."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, docname: str, digest: str) -> Path:
        return self.folder / f"{docname.replace('/', '.')}-{digest}.json"

    def load(self, docname: str, digest: str) -> Record | None:
        """The record, or None where there is none that can be read."""
        try:
            return Record(
                **json.loads(self.path(docname, digest).read_text(encoding="utf-8"))
            )
        except (OSError, ValueError, TypeError):
            return None

    def save(self, docname: str, digest: str, record: Record) -> None:
        """Writes the record whole or not at all."""
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
    fonts: Sequence[str] = (),
) -> list[ChapterError]:
    """Executes the jobs, ``workers`` at a time, and saves each as it ends. Returns what failed."""
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
                done.put((job, execute(job, root, timeout, threads, fonts)))
            except ChapterError as error:
                done.put((job, error))
            except Exception as error:  # a kernel that could not start, a full disk
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
            for line in complaints(result):
                say(f"{job.docname} wrote to stderr: {line}")
            say(
                f"executed  {job.docname} in {result.seconds:.0f} s ({count} of {len(jobs)})"
            )
    return errors


def complaints(record: Record) -> list[str]:
    """What an execution wrote to stderr, as warnings are. The author reads it; the page leaves it out."""
    return [
        line
        for outputs in record.outputs
        for output in outputs
        if output.get("name") == "stderr"
        for line in "".join(output["text"]).splitlines()
        if line.strip()
    ]


def execute(
    job: Job, root: Path, timeout: int, threads: int, fonts: Sequence[str] = ()
) -> Record:
    """Runs a chapter's cells from top to bottom, with its figures set in ``fonts``.

    Raises ``ChapterError`` at the first cell that fails.
    """
    cells = [cell for cell in job.chapter.cells if cell.nodes]
    asked = costs(job.chapter)
    sources = [
        _prelude(job, cells, fonts),
        *(job.chapter.source(cell) for cell in cells),
        *(f"print({expression})" for _, expression in asked),
        HARVEST,
    ]
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": KERNEL},
        cells=[nbformat.v4.new_code_cell(source) for source in sources],
    )
    lines = [
        1,
        *(cell.line for cell in cells),
        *(line for line, _ in asked),
        1,
    ]  # where the notebook's cells start in the module
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
        message = "the kernel died here (out of memory?). Make the run smaller."
        raise ChapterError(str(job.path), lines[started[-1]], message) from None
    harvest = json.loads(notebook.cells[-1].outputs[0]["text"])
    return Record(
        outputs=[cell.outputs for cell in notebook.cells[1 : len(cells) + 1]],
        seconds=round(harvest["seconds"], 1),
        date=time.strftime("%Y-%m-%d"),
        versions=job.versions,
        shapes=harvest["shapes"],
        costs={
            expression: cell.outputs[0]["text"].strip()
            for (_, expression), cell in zip(
                asked, notebook.cells[len(cells) + 1 : -1], strict=True
            )
        },
        positions=positions(job.chapter),
    )


def _prelude(job: Job, cells: list[Cell], fonts: Sequence[str]) -> str:
    """What the kernel runs first: names that an import would set, the recorder, figures' notes and fonts."""
    return f"""
__package__, __file__ = {job.package!r}, {str(job.path)!r}
__recorder__ = __import__("runpy").run_path({str(RECORDER)!r})
__recorder__ = __recorder__["Recorder"](get_ipython(), {[cell.line for cell in cells]!r})
__recorder__.install()
__import__("runpy").run_path({str(CURVES)!r})["install"](get_ipython())
__import__("runpy").run_path({str(FONTS)!r})["use"]({list(fonts)!r})
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
    """The error at its line in the module: that of the last frame that is in one of its cells."""
    line = lines[failed]
    for count, number in FRAME.findall(ANSI.sub("", error.traceback)):
        if 1 < int(count) <= len(lines):
            line = lines[int(count) - 1] + int(number) - 1
    source = job.chapter.lines[line - 1].strip()
    message = f"{error.ename}: {error.evalue}\n    {source}\n{MEND}"
    return ChapterError(str(job.path), line, message)
