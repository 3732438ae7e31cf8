"""The seconds that each stage of a build takes, as its last line."""

from __future__ import annotations

import time

from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
FIRST, LAST = -1, 10_000  # before and after all other handlers of an event
# What happens between an event and the one before it.
STAGES = (
    ("config-inited", FIRST, ""),
    ("env-get-outdated", FIRST, "set-up"),
    ("env-get-outdated", LAST, "execution"),
    ("env-updated", LAST, "reading"),
    ("build-finished", FIRST, "writing"),
    ("build-finished", LAST, "search and downloads"),
)


class Stopwatch:
    """Notes the seconds since the event before, under the name of what happened between them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def note(self, stage: str) -> list[str]:
        """Note a stage, and return no page as outdated, which one of the events asks for."""
        now = time.perf_counter()
        if stage:
            self.seconds[stage] = now - self.last
        self.last = now
        return []

    def __str__(self) -> str:
        each = [f"{name} {spent:.0f}" for name, spent in self.seconds.items()]
        total = sum(self.seconds.values())
        return f"seconds by stage: {', '.join(each)} ({total:.0f} in all)"


def setup(app: Sphinx) -> dict[str, bool]:
    watch = Stopwatch()
    for event, priority, stage in STAGES:
        app.connect(event, lambda *_, s=stage: watch.note(s), priority=priority)
    app.connect("build-finished", lambda *_: report(watch), priority=LAST + 1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def report(watch: Stopwatch) -> None:
    LOGGER.info(str(watch))
