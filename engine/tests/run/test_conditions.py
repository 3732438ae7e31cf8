"""Builds under bad conditions: interrupted, at the same time, without room, without rights."""

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from small_books import Shelf, environment, plain, run

pytestmark = pytest.mark.slow
New = Callable[[dict[str, str]], Shelf]
ONE = '"""# One"""\n\nfrom lib.value import value\n\nprint("value", value)\n'


@pytest.fixture
def book(shelf: New) -> Shelf:
    return shelf({"one.py": ONE, "lib/value.py": "value = 0\n"})


def test_two_cold_builds_at_once_both_end_well_and_run_a_chapter_once(
    book: Shelf,
) -> None:
    running = [
        subprocess.Popen(
            book.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            text=True,
        )
        for _ in range(2)
    ]
    logs = [each.communicate(timeout=300)[0] for each in running]
    assert [each.returncode for each in running] == [0, 0], logs
    assert sum(log.count("executing one") for log in logs) == 1
    page = (book.root / "_build/html/one.html").read_text(encoding="utf-8")
    assert "value 0" in page and page.rstrip().endswith("</html>")


def test_a_build_waits_for_another_only_if_that_computes_what_it_needs(
    book: Shelf,
) -> None:
    book.well_built()
    with FileLock(book.root / "_build/.executed-lock"):
        assert "Another" not in book.well_built().log


DIE = """

def setup(app):
    import os
    from pathlib import Path

    def dying(event):
        def die(*_):
            if (Path(app.srcdir) / "die").read_text() == event:
                os.kill(os.getpid(), 9)
            return []

        app.connect(event, die)

    for event in EVENTS:
        dying(event)
"""
EVENTS = [
    "builder-inited",
    "env-get-outdated",  # after chapters ran
    "source-read",
    "doctree-read",
    "env-updated",
    "html-page-context",
    "build-finished",
]


@pytest.mark.parametrize(
    "stages",
    [
        ["env-updated"],  # pages are read, and not written
        pytest.param(EVENTS, marks=pytest.mark.nightly),
    ],
    ids=["one", "seven"],
)
def test_builds_killed_at_seven_stages_leave_no_old_page_and_run_nothing_twice(
    book: Shelf, stages: list[str]
) -> None:
    book.configure(DIE.replace("EVENTS", repr(EVENTS)))
    die = book.root / "die"
    die.write_text("")
    assert "value 0" in book.well_built().page("one")
    for number, event in enumerate(stages, 1):
        book.edit("lib/value.py", str(number - 1), str(number))
        die.write_text(event)
        killed = book.build()
        assert killed.code == -signal.SIGKILL, (event, killed.log)
        die.write_text("")
        again = book.well_built()
        assert [*killed.executed(), *again.executed()] == ["one"], event
        assert f"value {number}" in again.page("one"), event


def limited(size: int) -> Callable[[], None]:
    """What leaves a process no room for a file of more than ``size`` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize(
    ("room", "notes", "message"),
    [
        (400_000, 1, r"one\.py:1: its outputs were not saved in .*: .* Make room"),
        pytest.param(1_050_000, 30_000, "File too large", marks=pytest.mark.nightly),
    ],
)
def test_a_build_without_room_says_so_and_the_next_one_is_right(
    shelf: New, room: int, notes: int, message: str
) -> None:
    table = """
        class Table:
            def _repr_html_(self):
                return "<table><tr><td>" + "cell " * 180_000 + "</td></tr></table>"
    """
    # Its record has one million bytes, and its page some more.
    text = (
        '"""# One"""\n\nfrom lib.table import Table\n\nTable()\n' + "# Note\n" * notes
    )
    book = shelf({"one.py": text, "lib/table.py": table})
    log = book.root / "log.txt"
    code = run(book.command(), log, preexec_fn=limited(room))
    said = plain(log)
    assert code != 0
    assert re.search(message, said), said
    assert "Traceback" not in said
    page = book.well_built().page("one")
    assert page.count("cell ") >= 180_000
    assert page.rstrip().endswith("</html>")


@pytest.mark.parametrize("left", [0, 0.5], ids=["empty", "half"])
def test_what_a_full_disk_cut_is_made_again(shelf: New, left: float) -> None:
    book = shelf({"one.py": ONE, "lib/value.py": "value = 1\n"})
    book.configure(DIE.replace("EVENTS", '["build-finished"]'))
    (book.root / "die").write_text("")
    whole = files(book.well_built("-W").copy().root / "_build/html")
    (book.root / "die").write_text("build-finished")
    book.edit("one.py", "value)", "value, 2)")
    assert book.build().code == -signal.SIGKILL
    for path in filter(Path.is_file, (book.root / "_build").rglob("*")):
        os.truncate(path, int(path.stat().st_size * left))
    (book.root / "die").write_text("")
    book.edit("one.py", "value, 2)", "value)")
    again = files(book.well_built("-W").root / "_build/html")
    assert [name for name in whole if again.get(name) != whole[name]] == []


def files(folder: Path) -> dict[str, bytes]:
    """What a site has, without the digests of styles, which a first build does not know."""
    paths = filter(Path.is_file, folder.rglob("*"))
    return {
        path.relative_to(folder).as_posix(): re.sub(rb"\?v=\w+", b"", path.read_bytes())
        for path in paths
    }


def test_a_build_whose_folder_cannot_be_written_says_so(book: Shelf) -> None:
    (book.root / "_build").write_text("a file where the folder should be")
    done = book.build()
    assert done.code != 0
    assert str(book.root / "_build") in done.log
    assert "Traceback (most" not in done.log


def test_sources_that_cannot_be_written_are_built_elsewhere(
    book: Shelf, tmp_path: Path
) -> None:
    files = [book.root, *book.root.rglob("*")]
    for path in files:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in files}
    out = ["-d", str(tmp_path / "doctrees"), str(book.root), str(tmp_path / "html")]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "-b", "html", *out],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
            check=False,
        )
    finally:
        for path in files:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "value 0" in (tmp_path / "html/one.html").read_text(encoding="utf-8")
    assert {path: path.stat().st_mtime_ns for path in book.root.rglob("*")} | {
        book.root: book.root.stat().st_mtime_ns
    } == before


@pytest.fixture(scope="module")
def poor(
    shelf: New, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Shelf, subprocess.CompletedProcess[str]]:
    """A book that was built with one core, little memory, an odd name, no home and no network."""

    def little() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31))

    book = shelf({"one.py": ONE, "lib/value.py": "value = 1\n"})
    odd = tmp_path_factory.mktemp("odd") / "ein Büch, (kopiert) & 100% [neu]"
    book.root.rename(odd)
    without = {k: v for k, v in environment().items() if k != "HOME"}
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    done = subprocess.run(
        Shelf(odd).command("-W", "--keep-going"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=without | dict.fromkeys(names, "http://127.0.0.1:9"),
        preexec_fn=little,
        check=False,
    )
    return Shelf(odd), done


def test_one_core_and_two_gigabytes_are_enough(
    poor: tuple[Shelf, subprocess.CompletedProcess[str]],
) -> None:
    _, done = poor
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_with_spaces_and_umlauts_and_no_home(
    poor: tuple[Shelf, subprocess.CompletedProcess[str]],
) -> None:
    moved, _ = poor
    page = (moved.root / "_build/html/one.html").read_text(encoding="utf-8")
    assert "value 1" in page
    assert moved.well_built().executed() == []
