"""Execute chapters in parallel, each in its own kernel, and store their outputs."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from sphinx_annotated.read.digest import imported
from sphinx_annotated.read.expressions import expressions
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.syntax import ChapterError, first_line
from sphinx_annotated.run.clean import cleaned
from sphinx_annotated.run.job import Job
from sphinx_annotated.run.kernel import OURS, look_up, name_lines, prelude, run, starts
from sphinx_annotated.run.shapes import positions
from sphinx_annotated.run.store import Record, Store

# Python 3.11 cannot parse in two threads at once: garbage collection in one lets the other in, and the first
# ends with "AST constructor recursion depth mismatch".
READING = threading.Lock()

# The last cell: what the recorder saw, the CPU time of the run, and the values for the prose.
# A chapter may have other values of all names, and other streams.
HARVEST = """
{ours}.publish({{"text/plain": __import__("json").dumps({{
    "shapes": {ours}.recorder.result(),
    "imported": {ours}.recorder.imported({root!r}),
    "reads": {ours}.reads.result(),
    "returned": {ours}.returned.result(),
    "seconds": __import__("time").process_time(),
    "values": {ours}.values,
}})}})
"""


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
        look_up()
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
    with READING:
        pieces = list(job.chapter.pieces())
        asked = expressions(job.chapter, str(job.path))
    # The module line on which each of the notebook's cells starts.
    lines = [1, *(first_line(nodes[0]) for _, nodes in pieces), *asked.values(), 1]
    started = time.time()
    with TemporaryDirectory() as folder:
        trail = Path(folder) / "trail"
        sources = [
            prelude(job, pieces, fonts, trail, timeout, root),
            *(job.chapter.source(cell, nodes) for cell, nodes in pieces),
            *(
                f"{OURS}.values.append({OURS}.text(({expression}\n)))"
                for expression in asked
            ),
            HARVEST.format(ours=OURS, root=str(root.resolve())),
        ]
        cells = run(job, sources, lines, root, timeout, threads, trail)
        name_lines(cells[:-1], job.path, root, starts(trail))
    outputs = [cell.outputs for cell in cells[1 : len(pieces) + 1]]
    harvest = json.loads(cells[-1].outputs[0]["data"]["text/plain"])
    with READING:
        places = positions(job.chapter)
        modules = _imported(job, harvest["imported"], root, started)
    return Record(
        outputs=outputs,
        seconds=round(harvest["seconds"], 1),
        date=time.strftime("%Y-%m-%d"),
        versions=job.versions,
        shapes=harvest["shapes"],
        values=dict(zip(asked, cleaned(harvest["values"]), strict=True)),
        positions=places,
        imported=modules,
        returned=harvest["returned"],
        **harvest["reads"],
    )


def _imported(job: Job, names: list[str], root: Path, started: float) -> dict[str, str]:
    """Return the digests of the modules that a run imported.

    One that was edited since the run started has none, so the chapter runs again.
    """
    found = imported(names, job.path, Project(root))
    edited = (name for name in found if (root / name).stat().st_mtime > started)
    return found | dict.fromkeys(edited, "")
