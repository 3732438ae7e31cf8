"""Execute chapters in parallel, each in its own kernel, and store their outputs."""

from __future__ import annotations

import ast
import asyncio
import atexit
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

from sphinx_annotated.read.digest import content, digest, imported, recorded, versions
from sphinx_annotated.read.expressions import expressions
from sphinx_annotated.read.modules import Module, Project, tops
from sphinx_annotated.read.parse import Cell, Chapter, ChapterError, first_line
from sphinx_annotated.run.clean import cleaned
from sphinx_annotated.run.reads import file_digest, variable_digest
from sphinx_annotated.run.shapes import positions

MATPLOTLIBRC = Path(__file__).parent / "matplotlibrc"
RECORDER = Path(__file__).parent / "recorder.py"
CURVES = Path(__file__).parent / "curves.py"
NARROW = Path(__file__).parent / "narrow.py"
FONTS = Path(__file__).parent / "fonts.py"
NO_FORK = '__import__("os").register_at_fork = lambda **_: None'
PROGRAM = Path(__file__).parent / "program.py"
READS = Path(__file__).parent / "reads.py"
RETURNED = Path(__file__).parent / "returned.py"
KERNEL_FILES = (
    *(MATPLOTLIBRC, RECORDER, CURVES, NARROW),
    *(FONTS, PROGRAM, READS, RETURNED),
)
FRAME = re.compile(r"Cell In\s?\[(\d+)\][^\n]*?\bline (\d+)")  # as IPython writes it
STOPPED = "Timeout ("  # as faulthandler writes it
STACK = re.compile(r'File "([^"]+)", line (\d+)')  # as faulthandler writes it
FIX = "Correct the line. Chapters already executed are kept."
GRACE = 5  # seconds that a kernel has to write where it is, after its time
STARTUP = 180  # seconds that a kernel may take to start on a busy machine
KERNEL_ARGUMENTS = [
    "--log-level=ERROR",
    "--InteractiveShell.cache_size=0",  # else the kernel keeps the value of every statement
    "--InlineBackend.figure_formats={'svg'}",
    "--InlineBackend.print_figure_kwargs={'bbox_inches': None, 'metadata': {'Date': None}}",
]
# The last cell: what the recorder saw, the CPU time of the run, and the values for the prose.
HARVEST = """
print(__import__("json").dumps(dict(
    shapes={ours}.recorder.result(),
    imported={ours}.recorder.imported({root!r}),
    reads={ours}.reads.result(),
    returned={ours}.returned.result(),
    seconds=__import__("time").process_time(),
    values={ours}.values,
)))
"""
OURS = '__import__("sys").modules["__annotated__"]'  # what the engine has in a kernel
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def kernel_files(fonts: Sequence[Path], project: Project) -> str:
    """Return the digests of the files that every kernel uses: outputs depend on them."""
    return "".join(project.seen(path, content) for path in (*KERNEL_FILES, *fonts))


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


@dataclass(frozen=True)
class Job:
    """A chapter to execute."""

    docname: str
    path: Path
    module: Module
    digest: str
    package: str
    versions: dict[str, str]
    recorded: dict[str, list[str]] = field(default_factory=dict)  # functions, by module

    @property
    def chapter(self) -> Chapter:
        """The module's cells and rows."""
        return self.module.chapter


def job_of(project: Project, path: Path, fonts: Sequence[Path] = ()) -> Job:
    """Return the job of executing the chapter in a file, with figures set in ``fonts``."""
    module = project.at(path)
    others = project.dependencies(module)
    names = {m.name: recorded(m, project) for m in others}
    return Job(
        docname=project.docname(module),
        path=path,
        module=module,
        digest=digest(module, project, kernel_files(fonts, project)),
        package=module.package,
        versions=versions(module, others, project),
        recorded={name: found for name, found in names.items() if found},
    )


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


def execute_all(
    jobs: Sequence[Job],
    store: Store,
    root: Path,
    workers: int,
    timeout: int,
    say: Callable[[str], None],
    fonts: Sequence[str] = (),
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
                done.put((job, execute(job, root, timeout, threads, fonts)))
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

    if workers > 1:
        _look_up()
    for _ in range(workers):
        threading.Thread(target=work, daemon=True).start()
    for count in range(1, len(jobs) + 1):
        job, result = done.get()
        if isinstance(result, Record):
            result = _saved(store, job, result)
        if isinstance(result, ChapterError):
            errors.append(result)
            say(f"failed    {job.docname} ({count} of {len(jobs)})")
        else:
            for line in stderr_lines(result):
                say(f"{job.docname} wrote to stderr: {line}")
            say(
                f"executed  {job.docname} in {result.seconds:.0f} s ({count} of {len(jobs)})"
            )
    return errors


def _look_up() -> None:
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


def _saved(store: Store, job: Job, record: Record) -> Record | ChapterError:
    try:
        store.save(job.docname, job.digest, record)
        return record
    except OSError as error:
        message = f"its outputs were not saved in {store.folder}: {error.strerror}. "
        message += "Make room or give the right to write there, and build again."
        return ChapterError(str(job.path), 1, message)


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


def execute(
    job: Job, root: Path, timeout: int, threads: int, fonts: Sequence[str] = ()
) -> Record:
    """Run a chapter's code from top to bottom, with its figures set in ``fonts``.

    Raises ``ChapterError`` at the first error.
    """
    pieces = list(job.chapter.pieces())
    asked = expressions(job.chapter, str(job.path))
    # The module line on which each of the notebook's cells starts.
    lines = [1, *(first_line(nodes[0]) for _, nodes in pieces), *asked.values(), 1]
    started = time.time()
    with TemporaryDirectory() as folder:
        trail = Path(folder) / "trail"
        sources = [
            _prelude(job, pieces, fonts, trail, timeout, root),
            *(job.chapter.source(cell, nodes) for cell, nodes in pieces),
            *(f"{OURS}.values.append(str(({expression}\n)))" for expression in asked),
            HARVEST.format(ours=OURS, root=str(root.resolve())),
        ]
        cells = _run(job, sources, lines, root, timeout, threads, trail)
        _name_lines(cells[:-1], job.path, root, _starts(trail))
    outputs = [cell.outputs for cell in cells[1 : len(pieces) + 1]]
    harvest = json.loads(cells[-1].outputs[0]["text"])
    return Record(
        outputs=outputs,
        seconds=round(harvest["seconds"], 1),
        date=time.strftime("%Y-%m-%d"),
        versions=job.versions,
        shapes=harvest["shapes"],
        values=dict(zip(asked, cleaned(harvest["values"]), strict=True)),
        positions=positions(job.chapter),
        imported=_imported(job, harvest["imported"], root, started),
        returned=harvest["returned"],
        **harvest["reads"],
    )


def _run(
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
        message = "the kernel died here, perhaps out of memory. Make the run smaller."
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


def sockets(folder: Path) -> Config:
    """Let a kernel be spoken to through sockets in a folder.

    Not through ports: the free ones that are chosen for it may be another program's when it starts.
    Windows has ports alone.
    """
    if os.name == "nt":
        return Config()
    return Config(KernelManager={"transport": "ipc", "ip": str(folder / "socket")})


def _imported(job: Job, names: list[str], root: Path, started: float) -> dict[str, str]:
    """Return the digests of the modules that a run imported.

    One that was edited since the run started has none, so the chapter runs again.
    """
    found = imported(names, job.path, Project(root))
    edited = (name for name in found if (root / name).stat().st_mtime > started)
    return found | dict.fromkeys(edited, "")


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


def _running(trail: Path, line: int) -> int:
    """Return the line of the chapter that was running, or ``line`` if the kernel left none."""
    text = trail.read_text(encoding="utf-8", errors="replace") if trail.exists() else ""
    return next(iter(_frames(text, trail)), line)


def _last_words(log: Path) -> str:
    """Return the end of what a kernel that died wrote of itself."""
    text = log.read_text(encoding="utf-8", errors="replace").strip()
    return "\nIt wrote:\n" + "\n".join(text.splitlines()[-10:]) if text else ""


def _starts(trail: Path) -> dict[str, int]:
    """Return the names of files that the kernel gave the cells, with the number of lines above each."""
    text = trail.read_text(encoding="utf-8", errors="replace") if trail.exists() else ""
    cells = re.findall(r"^cell (.+) (\d+)$", text, re.MULTILINE)
    return {name: int(before) for name, before in cells}


def _name_lines(
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
    starts = _starts(trail)
    return [
        starts[name] + int(number)
        for name, number in STACK.findall(stack)
        if name in starts
    ]


def _prelude(
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
{OURS} = __import__("types").SimpleNamespace(values=[])
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
    message = f"{what.ename}: {what.evalue}\n    {source}\n{FIX}"
    if what.ename == "SystemExit" and what.evalue in ("", "0", "None"):
        message = f"the program ends here, and the code below never runs. Move this to the end.\n    {source}"
    return ChapterError(str(job.path), line, message)
