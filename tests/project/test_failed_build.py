"""A build that fails or is stopped ends, with all that it started."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import build
import pytest
from writing import said_if_refused, whole

TOOLS = Path(__file__).parents[2] / "book" / "tools"

BOOK = """
import atexit, subprocess, time
from pathlib import Path
from types import SimpleNamespace

import build

STARTED = Path(__file__).with_name("started")

def build_one(code, strict, drafts, executed=None):
    if code:  # the edition: its formulas' server keeps the edition's output open
        formulas = subprocess.Popen(["sleep", "600"])
        atexit.register(formulas.terminate)
        written = STARTED.with_name("written")
        written.write_text(str(formulas.pid))
        written.rename(STARTED)
        time.sleep(600)
    executed()
    while not STARTED.exists():
        time.sleep(0.01)
    if strict:
        return 1  # the book is wrong
    print("building", flush=True)
    time.sleep(600)

build.__file__, build.build_one = __file__, build_one
build.ROOT = STARTED.parent
build.languages = lambda _: [SimpleNamespace(code="xx", draft=False)]
build.compile_catalogues = lambda *_: None
build.main()
"""


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Path]:
    """A command that builds a book with an edition, without Sphinx. With `--strict` the book has an error."""
    path = tmp_path / "book.py"
    path.write_text(BOOK)
    yield path
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(int((tmp_path / "started").read_text()), signal.SIGKILL)


def run(book: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(book), *arguments],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(TOOLS)},
    )


def has_ended(process: int) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state.split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("stopped", [False, True], ids=["fails", "is-stopped"])
def test_a_build_ends_with_all_that_it_started_if_it(stopped: bool, book: Path) -> None:
    with run(book, *([] if stopped else ["--strict"])) as process:
        try:
            if stopped:
                assert process.stdout and process.stdout.readline() == b"building\n"
                process.send_signal(signal.SIGTERM)
            assert process.wait(60) == (143 if stopped else 1)
        finally:
            process.kill()
    assert has_ended(int(book.with_name("started").read_text()))


def test_a_build_without_room_or_the_right_to_write_says_so_and_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build.obstacle(tmp_path / "new") == ""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=20_000_000))
    assert "only 20 MB are free on its disk. Make room" in build.obstacle(tmp_path)
    (tmp_path / "file").touch()
    assert "Build where this folder can be" in build.obstacle(tmp_path / "file")
    monkeypatch.setattr(build, "obstacle", lambda _: "no room")
    monkeypatch.setattr(build, "build", lambda *_: pytest.fail("it began"))
    monkeypatch.setattr(sys, "argv", ["build"])
    with pytest.raises(SystemExit, match="no room"):
        build.main()


def test_a_file_that_cannot_be_written_stays_as_it_was_and_one_line_says_why(
    tmp_path: Path,
) -> None:
    path = tmp_path / "book.zip"
    path.write_text("as it was")
    message = "No space left on device. Make room"
    with (
        pytest.raises(SystemExit, match=message),
        said_if_refused(tmp_path),
        whole(path) as part,
    ):
        part.write_text("a part")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert [each.read_text() for each in tmp_path.iterdir()] == ["as it was"]
