"""Show a run's progress in the terminal, with labml."""

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from types import TracebackType


class Progress:
    """A line for the run `name`: step, loss, time spent and time left.

    It is shown in a terminal only. In a notebook, a pipe or a test nothing is printed and labml
    is not imported, because it would leave HTML in the page and does not work with IPython 9.
    Nothing is written to disk, and no server is contacted.
    """

    def __init__(self, name: str):
        self.name = name
        self.drawn = sys.stdout.isatty()
        if self.drawn:
            from labml import logger, monit, tracker  # type: ignore[import-untyped]

            self.logger, self.monit, self.tracker = logger, monit, tracker

    def __enter__(self) -> "Progress":
        if self.drawn:
            # On first use labml warns that it has no configuration file. None is needed.
            with redirect_stdout(StringIO()):
                self.tracker.get_global_step()
            self.logger.log(self.name)
        return self

    def steps(self, steps: range) -> Iterable[int]:
        """Iterate over `steps` and measure the time left."""
        return self.monit.loop(steps, is_track=False) if self.drawn else steps

    def report(self, step: int, loss: float) -> None:
        """Redraw the line."""
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
