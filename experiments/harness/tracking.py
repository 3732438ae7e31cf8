"""Track a long run with labml: to a file in its folder, and to a terminal."""

import sys
import threading
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from experiments.harness.command import environment


class Tracking:
    """Tracks the run in `folder`. In a terminal it also draws a line, with the time left.

    labml by default writes to the home folder and sends to a server. Here its home is a folder of the
    run, it has no server, and its own messages are suppressed. `silent` is for all workers but the first.
    """

    def __init__(self, folder: Path, silent: bool = False):
        self.name = folder.name
        self.silent = silent
        self.drawn = sys.stdout.isatty() and not silent
        if silent:
            return
        home = folder / "labml"
        home.mkdir(parents=True, exist_ok=True)
        with (
            environment({"HOME": str(home)}),
            redirect_stdout(StringIO()),
        ):
            from labml import (  # type: ignore[import-untyped]
                experiment,
                logger,
                monit,
                tracker,
            )
            from labml.internal.computer import configs  # type: ignore[import-untyped]
            from labml.internal.tracker.writers import (  # type: ignore[import-untyped]
                file,
            )

            configs._internal = None  # otherwise it keeps the previous run's home
            self.writing = file.FileWriterThread
            self.logger, self.monit, self.tracker = logger, monit, tracker
            self.experiment = experiment.record(
                name="runs",
                writers={"file", "screen"} if self.drawn else {"file"},
                lab_conf={"path": str(home), "experiments_path": "."},
            )

    def __enter__(self) -> "Tracking":
        if self.drawn:
            self.logger.log(self.name)
        return self

    def steps(self, steps: range) -> Iterable[int]:
        """Iterate over `steps`, drawing progress."""
        return self.monit.loop(steps, is_track=False) if self.drawn else steps

    def report(self, step: int, values: dict[str, float]) -> None:
        """Record the values measured at `step`."""
        if not self.silent:
            self.tracker.save(step, values)

    def __exit__(self, *error: object) -> None:
        if self.silent:
            return
        with redirect_stdout(StringIO()):
            self.experiment.__exit__(*error)
        for thread in threading.enumerate():
            if isinstance(thread, self.writing):
                thread.join()
        if self.drawn:
            self.monit.clear()
            self.logger.log()
