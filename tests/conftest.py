"""What holds for all tests: a property is true or false, however busy the machine is."""

from collections import Counter

import pytest
from hypothesis import settings

settings.register_profile("book", deadline=None)
settings.load_profile("book")


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
