"""Run cells in a kernel of their own, and place what goes wrong at a line of the chapter."""

from __future__ import annotations

import ast
import asyncio
import atexit
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from sphinx_annotated.read.chapter import Cell
from sphinx_annotated.read.modules import tops
from sphinx_annotated.read.syntax import ChapterError, first_line
from sphinx_annotated.run.clean import cleaned
from sphinx_annotated.run.job import (
    CURVES,
    FONTS,
    MATPLOTLIBRC,
    NARROW,
    PROGRAM,
    READS,
    RECORDER,
    RETURNED,
    Job,
)

NO_FORK = '__import__("os").register_at_fork = lambda **_: None'
FRAME = re.compile(r"Cell In\s?\[(\d+)\][^\n]*?\bline (\d+)")  # as IPython writes it
STOPPED = "Timeout ("  # as faulthandler writes it
STACK = re.compile(r'File "([^"]+)", line (\d+)')  # as faulthandler writes it
FIX = "Correct the line."
KEPT = "Chapters already executed are kept."
# Words of errors that come of the machine, as Python, the system and PyTorch write them.
LACK = re.compile(
    "memory|map segment|new thread|space left|read-only file|quota|open files", re.I
)
FREE = "If the machine lacks memory or room, free some, and build again. If not, correct the line."
GRACE = 5  # seconds that a kernel has to write where it is, after its time
STARTUP = 180  # seconds that a kernel may take to start on a busy machine
KERNEL_ARGUMENTS = [
    "--log-level=ERROR",
    "--InteractiveShell.cache_size=0",  # else the kernel keeps the value of every statement
    "--InlineBackend.figure_formats={'svg'}",
    "--InlineBackend.print_figure_kwargs={'bbox_inches': None, 'metadata': {'Date': None}}",
]
OURS = '__import__("sys").modules["__annotated__"]'  # what the engine has in a kernel
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def look_up() -> None:
    """Let the libraries resolve the names of classes, which they do on first use: in two threads it fails."""

    async def prepare() -> None:
        manager: Any = client.create_kernel_manager()
        manager.client()
        await manager.pre_start_kernel()
        await manager.cleanup_resources()

    # What is wrong with a kernel, its chapter says.
    with TemporaryDirectory() as folder, suppress(Exception):
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL})
        client = _Client(notebook, config=sockets(Path(folder)))
        asyncio.run(prepare())


def run(
    job: Job,
    sources: list[str],
    lines: list[int],
    root: Path,
    timeout: int,
    threads: int,
    trail: Path,
) -> list[nbformat.NotebookNode]:
    """Run cells of a notebook in a new kernel, and return them with their outputs.

    The kernel's own messages are shown only if it dies, because it may also write some when it ends.
    """
    log = trail.with_name("log")
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": KERNEL},
        cells=[nbformat.v4.new_code_cell(source) for source in sources],
    )
    for piece, (cell, _) in zip(notebook.cells[1:], job.chapter.pieces(), strict=False):
        piece.metadata["cell"] = cell.line
        piece.metadata["tags"] = cell.ways
    started = [0]
    groups: set[int | None] = set()

    def start(cell: Any, cell_index: int) -> None:
        started.append(cell_index)
        provisioner: Any = client.km and client.km.provisioner
        groups.add(getattr(provisioner, "pgid", None))

    client = _Client(
        notebook,
        timeout=timeout + GRACE,
        startup_timeout=STARTUP,
        on_cell_start=start,
        resources={"metadata": {"path": str(root)}},
        extra_arguments=KERNEL_ARGUMENTS,
        config=sockets(trail.parent),
    )
    try:
        with log.open("w", encoding="utf-8") as stderr:
            client.execute(env=_environment(root, threads), stderr=stderr)
    except CellExecutionError as error:
        failed = notebook.cells[started[-1]].outputs
        raise _chapter_error(job, lines, started[-1], error, failed, trail) from None
    except CellTimeoutError:
        message = f"ran longer than {timeout} s. Make the run shorter, or raise annotated_timeout."
        line = _running(trail, lines[started[-1]])
        raise ChapterError(str(job.path), line, message) from None
    except DeadKernelError:
        message = "the kernel died here, perhaps out of memory. Free some, or make the run smaller."
        if STOPPED in trail.read_text(encoding="utf-8", errors="replace"):
            message = (
                "the kernel did not answer any more before this line. Do not change the shell "
                "that runs the code, nor close files that it did not open."
            )
        line = _running(trail, lines[started[-1]])
        raise ChapterError(str(job.path), line, message + _last_words(log)) from None
    except RuntimeError as error:
        if started != [0]:
            raise
        message = f"its kernel did not start: {error}. "
        message += f"See what `{sys.executable} -m ipykernel_launcher --version` says."
        raise ChapterError(str(job.path), 1, message + _last_words(log)) from None
    finally:
        # If a kernel does not start, nbclient does not take back its exit hook.
        atexit.unregister(client._cleanup_kernel)
        for group in groups:  # what the chapter started and left running
            if group is not None:  # Windows has no groups of processes
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
    return list(notebook.cells)


class _Client(NotebookClient):
    """Clears the outputs of a whole cell of the chapter, whose pieces are cells here."""

    waits: int | None = None  # the cell whose next output clears the others

    async def async_execute_cell(
        self,
        cell: Any,
        cell_index: int,
        execution_count: int | None = None,
        store_history: bool = True,
    ) -> Any:
        """Run a piece, unless one of its cell has failed: then it does nothing."""
        of, before = self._cell(cell_index), self.nb.cells[:cell_index]
        same = (
            c for i, c in enumerate(before) if of is not None and self._cell(i) == of
        )
        if any(map(_failed, same)):
            cell.source = "pass"
        done = await super().async_execute_cell(
            cell, cell_index, execution_count, store_history
        )
        for output in filter(_is_error, cell.outputs):  # as Python's last line
            output.traceback = [f"{output.ename}: {output.evalue}"]
        return done

    def clear_output(self, outs: Any, msg: Any, cell_index: int) -> None:
        super().clear_output(outs, msg, cell_index)
        self.waits = self._cell(cell_index)
        if not msg["content"].get("wait"):
            self._clear_before(cell_index)

    def output(
        self, outs: Any, msg: Any, display_id: str | None, cell_index: int
    ) -> Any:
        if self.waits is not None and self.waits == self._cell(cell_index):
            self._clear_before(cell_index)
        return super().output(outs, msg, display_id, cell_index)

    def _cell(self, piece: int) -> int | None:
        line: int | None = self.nb.cells[piece].metadata.get("cell")
        return line

    def _clear_before(self, piece: int) -> None:
        self.waits = None
        for i, earlier in enumerate(self.nb.cells[:piece]):
            if self._cell(i) == self._cell(piece):
                earlier.outputs.clear()


def _is_error(output: Any) -> bool:
    return bool(output.output_type == "error")


def _failed(cell: Any) -> bool:
    return any(map(_is_error, cell.outputs))


def sockets(folder: Path) -> Config:
    """Let a kernel be spoken to through sockets in a folder.

    Not through ports: the free ones that are chosen for it may be another program's when it starts.
    Windows has ports alone.
    """
    if os.name == "nt":
        return Config()
    return Config(KernelManager={"transport": "ipc", "ip": str(folder / "socket")})


def _running(trail: Path, line: int) -> int:
    """Return the line of the chapter that was running, or ``line`` if the kernel left none."""
    text = trail.read_text(encoding="utf-8", errors="replace") if trail.exists() else ""
    return next(iter(_frames(text, trail)), line)


def _last_words(log: Path) -> str:
    """Return the end of what a kernel that died wrote of itself."""
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    return "\nIt wrote:\n" + "\n".join(text.splitlines()[-10:]) if text else ""


def starts(trail: Path) -> dict[str, int]:
    """Return the names of files that the kernel gave the cells, with the number of lines above each."""
    text = trail.read_text(encoding="utf-8", errors="replace") if trail.exists() else ""
    cells = re.findall(r"^cell (.+) (\d+)$", text, re.MULTILINE)
    return {name: int(before) for name, before in cells}


def name_lines(
    cells: list[nbformat.NotebookNode], path: Path, root: Path, starts: dict[str, int]
) -> None:
    """Name the module and its line in printed texts: the kernel names files that differ from run to run."""
    if not starts:
        return
    module = path.relative_to(root) if path.is_relative_to(root) else path
    names = "|".join(map(re.escape, starts))
    place = re.compile(rf"({names})(?:([\"'], line |:)(\d+))?")

    def name(match: re.Match[str]) -> str:
        line = f"{match[2]}{starts[match[1]] + int(match[3])}" if match[2] else ""
        return f"{module.as_posix()}{line}"

    for output in (each for cell in cells for each in cell.outputs):
        texts = output if output.output_type == "stream" else output.get("data", {})
        for kind in ("text", "text/plain"):
            if isinstance(texts.get(kind), str):
                texts[kind] = place.sub(name, texts[kind])


def _frames(stack: str, trail: Path) -> list[int]:
    """Return the lines of the chapter in a stack as Python prints it."""
    above = starts(trail)
    found = STACK.findall(stack)
    return [above[name] + int(number) for name, number in found if name in above]


def prelude(
    job: Job,
    pieces: list[tuple[Cell, list[ast.stmt]]],
    fonts: Sequence[str],
    trail: Path,
    timeout: int,
    root: Path,
) -> str:
    """Return the first code to run: names that an import would set, recorders, and fonts."""
    lines = [first_line(nodes[0]) for _, nodes in pieces]
    kinds = [cell.kind for cell, _ in pieces]
    # Figures are shown at the end of a demo, however many comments cut it into cells.
    last = [kind != after for kind, after in pairwise([*kinds, None])]
    sources = [job.chapter.source(cell, nodes) for cell, nodes in pieces]
    name = ".".join(filter(None, (job.package, job.path.stem)))
    recorder = f"get_ipython(), {lines}, {last}, {str(trail)!r}, {timeout}"
    program = f"get_ipython(), {str(job.path)!r}, {name!r}, {sources}"
    known = [str(path) for path in (MATPLOTLIBRC, *fonts)]
    reads = f"{str(root)!r}, {known}, {sorted(_settings(root, 1))}"
    # Windows has no forks, so nothing is to be done at one.
    forks = "" if hasattr(os, "register_at_fork") else f"{NO_FORK}\n"
    return f"""{forks}
__doc__ = {ast.get_docstring(job.chapter.tree, clean=False)!r}
__package__, __file__ = {job.package!r}, {str(job.path)!r}
{OURS} = __import__("types").SimpleNamespace(values=[], text=str)
{OURS}.publish = get_ipython().display_pub.publish
{OURS}.run = __import__("runpy").run_path
{OURS}.run({str(PROGRAM)!r})["Program"]({program}).install()
{OURS}.recorder = {OURS}.run({str(RECORDER)!r})["Recorder"]({recorder})
{OURS}.recorder.install()
{OURS}.run({str(CURVES)!r})["install"](get_ipython())
{OURS}.run({str(NARROW)!r})["install"](get_ipython())
{OURS}.run({str(FONTS)!r})["use"]({list(fonts)!r})
{OURS}.reads = {OURS}.run({str(READS)!r})["Reads"]({reads})
{OURS}.reads.install()
{OURS}.returned = {OURS}.run({str(RETURNED)!r})["Returned"]({job.recorded!r})
"""


def _environment(root: Path, threads: int) -> dict[str, str]:
    return {**os.environ, **_settings(root, threads)}


def _settings(root: Path, threads: int) -> dict[str, str]:
    """Return the variables of a kernel's environment that the engine sets."""
    paths = [
        *map(str, reversed(tops(root))),
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "MATPLOTLIBRC": str(MATPLOTLIBRC),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _chapter_error(
    job: Job,
    lines: list[int],
    failed: int,
    error: CellExecutionError,
    outputs: list[nbformat.NotebookNode],
    trail: Path,
) -> ChapterError:
    """Place the error at the module line of the last stack frame in one of its cells."""
    shown = [output for output in outputs if output.output_type == "error"]
    what = shown[0] if shown else error  # the reply knows no error of a ``__repr__``
    stack = cleaned(error.traceback)
    found = [
        lines[int(count) - 1] + int(number) - 1
        for count, number in FRAME.findall(stack)
        if 1 < int(count) <= len(lines)
    ]
    # IPython prints the stack of a group of exceptions as Python does.
    stack = "".join(output.get("text", "") for output in outputs)
    line = [lines[failed], *_frames(stack, trail), *found][-1]
    source = job.chapter.lines[line - 1].strip()
    what_is_wrong = f"{what.ename}: {what.evalue}"
    fix = FREE if LACK.search(what_is_wrong) else FIX
    message = f"{what_is_wrong}\n    {source}\n{fix} {KEPT}"
    if what.ename == "SystemExit" and what.evalue in ("", "0", "None"):
        message = f"the program ends here, and the code below never runs. Move this to the end.\n    {source}"
    return ChapterError(str(job.path), line, message)
