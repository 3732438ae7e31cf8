"""Show a run's progress in the terminal, with labml if it is installed."""

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from types import TracebackType


class Progress:
    """A line for the run `name`: step, loss, time spent and time left.

    It is shown in a terminal only. In a notebook, a pipe or a test nothing is printed and labml
    is not imported, because it would leave HTML in the page and does not work with IPython 9.
    Nothing is written to disk, and no server is contacted. Without labml, step and loss are
    printed ten times.
    """

    def __init__(self, name: str):
        self.name = name
        self.shown = self.drawn = sys.stdout.isatty()
        self.interval = 1
        if self.shown:
            try:
                from labml import logger, monit, tracker  # type: ignore[import-untyped]
            except ImportError:
                self.drawn = False
            else:
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
        self.interval = max(len(steps) // 10, 1)
        return self.monit.loop(steps, is_track=False) if self.drawn else steps

    def report(self, step: int, loss: float) -> None:
        """Redraw the line, or print one."""
        if self.drawn:
            self.tracker.save(step, {"loss": loss})
        elif self.shown and step % self.interval == 0:
            print(f"{self.name}: step {step}, loss {loss:.3f}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.drawn:
            self.monit.clear()
            self.logger.log()
