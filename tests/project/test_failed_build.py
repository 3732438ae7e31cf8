"""A build that fails ends, with all that it started."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "book" / "tools"

EDITION = """
import atexit, subprocess, sys, time
import build

def build_one(*_):
    formulas = subprocess.Popen(["sleep", "600"])  # it keeps this process's output open
    atexit.register(formulas.terminate)
    print(formulas.pid, flush=True)
    time.sleep(600)

build.build_one = build_one
sys.argv = ["build.py", "--edition", "xx"]
build.main()
"""


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not (
        state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"
    )


def test_an_edition_that_is_stopped_stops_the_programs_that_it_started() -> None:
    """Otherwise a book whose English edition fails waits for ever for the output of the others."""
    command = [sys.executable, "-c", EDITION]
    environment = os.environ | {"PYTHONPATH": str(TOOLS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as edition:
        assert edition.stdout
        started = int(edition.stdout.readline())
        try:
            edition.send_signal(signal.SIGTERM)
            assert edition.wait(60) == 143
            end = time.monotonic() + 60
            while is_running(started) and time.monotonic() < end:
                time.sleep(0.01)
            assert not is_running(started)
        finally:
            with suppress(ProcessLookupError):
                os.kill(started, signal.SIGKILL)
