"""The line in the terminal that says how far a run has come, drawn by labml."""

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from types import TracebackType


class Progress:
    """A line for the run `name`: step, loss, time spent and time left.

    Only a terminal gets it. In a notebook, in a pipe and in a test nothing is printed, and
    labml is not even imported: there it would leave HTML in the page, and it breaks where
    IPython is 9 or later. Nothing is written to disk in either case, and no server is asked.
    """

    def __init__(self, name: str):
        self.name = name
        self.drawn = sys.stdout.isatty()
        if self.drawn:
            from labml import logger, monit, tracker  # type: ignore[import-untyped]

            self.logger, self.monit, self.tracker = logger, monit, tracker

    def __enter__(self) -> "Progress":
        if self.drawn:
            # At its first use labml warns that it has no configuration file. It needs none.
            with redirect_stdout(StringIO()):
                self.tracker.get_global_step()
            self.logger.log(self.name)
        return self

    def steps(self, steps: range) -> Iterable[int]:
        """`steps`, one after another, watched."""
        return self.monit.loop(steps, is_track=False) if self.drawn else steps

    def report(self, step: int, loss: float) -> None:
        """Draws the line anew."""
        if self.drawn:
            self.tracker.save(step, {"loss": loss})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.drawn:
            self.monit.clear()
            self.logger.log()
