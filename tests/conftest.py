"""What holds for all tests: a property is true or false, however busy the machine is."""

import os
from collections import Counter

import pytest
from hypothesis import settings

settings.register_profile("book", deadline=None)
settings.load_profile("book")


def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than cores: many tests wait, for a kernel, a browser or a time-out."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(trylast=True)  # after each folder has marked its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files with slow tests first, so that no worker waits at the end for one of them."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each room's tests, added up over the workers."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                room = report.nodeid.removeprefix("tests/").split("/")[0]
                seconds[room] += report.duration
    rooms = [f"{room} {spent:.0f}" for room, spent in seconds.most_common()]
    if rooms:
        terminalreporter.write_line(f"seconds by room: {', '.join(rooms)}")
