"""Track a long run with labml: to a file in its folder, and to a terminal."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

from experiments.harness.command import environment


@contextmanager
def tracked(
    folder: Path, steps: range, silent: bool = False
) -> Iterator[tuple[Iterable[int], Callable[[int, dict[str, float]], None]]]:
    """Track `steps` of the run in `folder`. In a terminal, also draw a line with the time left.

    Yields the steps to take, and a function that records the values measured at a step.

    labml by default writes to the home folder and sends to a server. Here its home is a folder of the
    run, it has no server, and its own messages are suppressed. `silent` is for all processes but the first.
    """
    if silent:
        yield steps, lambda *_: None
        return
    drawn, home = sys.stdout.isatty(), folder / "labml"
    home.mkdir(parents=True, exist_ok=True)
    with environment({"HOME": str(home)}), redirect_stdout(StringIO()):
        from labml import (  # type: ignore[import-untyped]
            experiment,
            logger,
            monit,
            tracker,
        )
        from labml.internal.computer import configs  # type: ignore[import-untyped]
        from labml.internal.tracker.writers import file  # type: ignore[import-untyped]

        configs._internal = None  # otherwise it keeps the previous run's home
        recorded = experiment.record(
            name="runs",
            writers={"file", "screen"} if drawn else {"file"},
            lab_conf={"path": str(home), "experiments_path": "."},
        )
    if drawn:
        logger.log(folder.name)
    try:
        yield monit.loop(steps, is_track=False) if drawn else steps, tracker.save
    finally:
        with redirect_stdout(StringIO()):
            recorded.__exit__(*sys.exc_info())
        for thread in threading.enumerate():
            if isinstance(thread, file.FileWriterThread):
                thread.join()
        if drawn:
            monit.clear()
            logger.log()
