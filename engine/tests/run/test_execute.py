"""Execution: which chapters run again, which errors stop a build, and their messages."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builds import ENGINE
from small_books import Built, Shelf, environment, run_chapter
from sphinx_annotated.read.modules import Project
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.run.execute import execute, stderr_lines
from sphinx_annotated.run.job import Job, job_of
from sphinx_annotated.run.store import Record, Store, is_current

New = Callable[[dict[str, str]], Shelf]
CACHED = {
    "lib/shared.py": "value = 1  # as it was\n\n\nif __name__ == '__main__':\n    print('demo')\n",
    "one.py": '''
        """# One

        Prose of one.
        """

        from lib.shared import value

        if __name__ == "__main__":
            # A note.
            print("one says", value)
    ''',
    "two.py": '"""# Two"""\n\nif __name__ == "__main__":\n    print("two says")\n',
    "three.py": '"""# Three"""\n\nfrom one import value\n\n'
    'def last():\n    return value\n\n\nprint("three says", value)\n',
    "four.py": '''
        """# Four"""

        x = 1
        print("x")

        if __name__ == "__main__":
            print("first")
            "a value"
            print("second")
    ''',
}


@pytest.fixture(scope="module")
def edits(shelf: New) -> tuple[Built, Built, str, Built]:
    """One book built cold, after edits of prose (with a page as it is then), and after edits of code."""
    book = shelf(CACHED)
    first = book.well_built()
    assert "a value" not in first.page("four").replace('"a value"', "")
    book.edit("one.py", "Prose of one.", "Better prose.")
    book.edit("one.py", "# A note.", "# A nicer note.")
    book.edit("four.py", 'print("x")', '# A comment.\nprint("x")  # and one after')
    book.edit("four.py", '    print("second")', '    # A step.\n    print("second")')
    book.edit("lib/shared.py", "# as it was", "# as it is")
    prose = book.well_built()
    pages = prose.page("one") + prose.page("four")
    pages += (prose.root / "_build/html/_static/standalone/three.js").read_text()
    book.edit("lib/shared.py", "value = 1", "value = 2")
    book.edit("lib/shared.py", "print('demo')", "print('other')")
    return first, prose, pages, book.well_built()


@pytest.mark.slow
def test_only_chapters_that_depend_on_an_edit_run_again(
    edits: tuple[Built, Built, str, Built],
) -> None:
    first, prose, pages, code = edits
    assert first.executed() == ["four", "one", "three", "two"]
    assert prose.executed() == []
    assert "0 chapters executed, 4 from the cache" in prose.log
    assert "Better prose." in pages
    assert "A nicer note." in pages
    assert "one says 1" in pages
    assert "# as it is" in pages and "# as it was" not in pages  # also in copies
    assert code.executed() == ["one", "three"]
    assert "one says 2" in code.page("one")
    assert "three says 2" in code.page("three")


@pytest.mark.slow
def test_a_comment_between_statements_runs_nothing(
    edits: tuple[Built, Built, str, Built],
) -> None:
    _, prose, pages, _ = edits
    assert prose.executed() == []
    rows = pages.split('<div class="sbs__row')
    (first,) = [row for row in rows if ">first" in row]
    (second,) = [row for row in rows if ">second" in row]
    assert "'a value'" in first  # now that of the last expression of its step
    assert "A step." in second and ">first" not in second


DYNAMIC = {
    "lib/early.py": "value = 'early 1'\n",
    "lib/late.py": "from . import later\n\nvalue = f'late 1, {later.value}'\n",
    "lib/later.py": 'value = \'later 1\'\n\n\ndef f():\n    """Old prose."""\n',
    "lib/__init__.py": "",
    "one.py": '''
        """# One"""

        import importlib

        early = importlib.import_module("lib.early")
        late = importlib.import_module("lib." + "late")
        print(early.value, late.value)
    ''',
}


def test_a_module_that_only_the_run_knew_runs_the_chapter_again(
    write: Callable[[dict[str, str]], Path],
) -> None:
    root = write(DYNAMIC)
    job = job_of(Project(root), root / "one.py")
    record = execute(job, root, 60, 1)
    assert said(record) == ["early 1 late 1, later 1\n"]
    assert is_current(record, job, Project(root))
    write({"lib/later.py": DYNAMIC["lib/later.py"].replace("Old", "New")})
    assert is_current(record, job, Project(root))  # prose
    write({"lib/later.py": DYNAMIC["lib/later.py"].replace("1", "2")})
    assert job_of(Project(root), root / "one.py").digest == job.digest
    assert not is_current(record, job, Project(root))


@pytest.mark.slow
def test_errors_are_listed_and_other_chapters_are_kept(shelf: New) -> None:
    book = shelf(
        {
            "one.py": '"""# One"""\n\nprint("fine")\n',
            "two.py": '''
                """# Two"""


                def f(x):
                    """Fails."""
                    # Here.
                    return 1 / x


                if __name__ == "__main__":
                    # Later
                    # than that.
                    f(0)
            ''',
            "three.py": '"""# Three"""\n\nimport lib.broken\n',
            "lib/broken.py": "raise ValueError('in the library')\n",
            "four.py": '"""# Four"""\n\nx = bytearray(10**15)\n',
        }
    )
    done = book.build()
    assert done.code != 0
    assert "x = bytearray(10**15)\nIf the machine lacks memory" in done.log
    assert (
        f"{book.root}/two.py:7: ZeroDivisionError: division by zero\n    return 1 / x"
        in done.log
    )
    assert (
        f"{book.root}/three.py:3: ValueError: in the library\n    import lib.broken"
        in done.log
    )
    assert "Traceback" not in done.log
    assert done.log.count("Correct the line. Chapters already executed are kept") == 2
    book.edit("four.py", "bytearray(10**15)", "1")
    book.edit("two.py", "f(0)", "f(1)")
    book.edit("lib/broken.py", "raise ValueError('in the library')", "x = 1")
    assert book.well_built().executed() == ["four", "three", "two"]


def test_a_build_ends_with_all_that_is_invalid_python(shelf: New) -> None:
    book = shelf(
        {
            "one.py": '"""# One"""\n\ndef f(:\n',
            "two.py": '"""# Two"""\n',
            "three.py": '"""# Three"""\n\nx = (\n',
        }
    )
    done = book.build()
    assert done.code != 0
    assert f"{book.root}/one.py:3: this is not Python: " in done.log
    assert f"{book.root}/three.py:3: this is not Python: " in done.log
    assert "Traceback" not in done.log


WRONG = '''
    r"""
    # One

    Summary {bad04}`x`.

    {bad06}`x` and
    more {bad06b}`x`.

    :::{bad09}
    :::
    """

    # {bad13}`x` at the start.
    #
    # - {bad15}`x`
    # - {doc}`bad16`
    x = 1


    # {bad20}`x` above.
    @property
    def f(
        a,
    ):
        """## F {bad25}`x`

        {ref}`bad27`

        :::{note}
        {bad30}`x`
        :::

        :::{deviation} a {bad33}`x`
        {bad34}`x`
        :::
        """
        # ### Sub
        #
        # {bad39}`x`
        return a


    if __name__ == "__main__":
        # ## Demo
        # {bad45}`x`
        print(x)
        # {bad47}`x`
'''


def test_errors_in_prose_have_their_line_in_the_module(shelf: New) -> None:
    book = shelf({"one.py": WRONG})
    done = book.build("-W", "--keep-going")
    assert done.code != 0
    numbers = [4, 6, 9, 13, 15, 16, 20, 25, 27, 30, 33, 34, 39, 45, 47]
    for number in numbers:
        (line,) = [
            x for x in done.log.splitlines() if re.search(rf"bad{number:02d}\b", x)
        ]
        # Within a paragraph MyST knows of its first line only.
        assert line.startswith(f"{book.root}/one.py:{number}: WARNING"), line


# A kernel keeps the stderr that it was started with, and writes there what goes wrong within it.
OF_ITSELF = """
import os
import sys

started_with = getattr(sys.stderr, "_original_stdstream_copy", 2)
os.write(started_with, b"Traceback of the kernel")
"""


def test_what_a_kernel_says_of_itself_is_heard_only_if_it_dies(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    record = run_chapter(OF_ITSELF, tmp_path)
    assert stderr_lines(record) == []
    assert "of the kernel" not in capfd.readouterr().err
    with pytest.raises(
        ChapterError, match=r"7: the kernel died here[^\n]*\nIt wrote:\nTraceback of"
    ):
        run_chapter(OF_ITSELF + "os._exit(1)\n", tmp_path)


def test_a_kernel_that_does_not_start_is_an_error_with_its_reason(
    shelf: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ipykernel_launcher.py").write_text("raise OSError('no kernel today')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = shelf({"one.py": "x = 1\n"}).build()
    assert done.code != 0
    assert re.search(
        r"(?s)one\.py:1: its kernel did not start: .*no kernel today", done.log
    )
    assert "Exception ignored" not in done.log


SPOKEN_TO = """
from ipykernel.connect import get_connection_info

print(get_connection_info(unpack=True)["transport"])
"""


def test_a_kernel_needs_no_port_that_another_program_could_take(tmp_path: Path) -> None:
    record = run_chapter(SPOKEN_TO, tmp_path)
    assert [output["text"] for outputs in record.outputs for output in outputs] == [
        "ipc\n"
    ]


# Runs the chapters of the folder it is started in. When a thread looks a class up by its name, each line
# waits for the other thread, and one of them is a little later.
TOGETHER = """
import sys
import threading
import time
from pathlib import Path

from sphinx_annotated.read.modules import Project
from sphinx_annotated.run.execute import execute_all
from sphinx_annotated.run.job import job_of
from sphinx_annotated.run.store import Store

both = threading.Barrier(2)


def line(frame, event, argument):
    if event == "line":
        try:
            time.sleep(0.05 * both.wait(timeout=2))
        except threading.BrokenBarrierError:
            both.reset()
    return line


def call(frame, event, argument):
    if frame.f_code.co_name == "_resolve_classes":
        return line if isinstance(frame.f_locals["self"].klass, str) else None


threading.settrace(call)
root = Path.cwd()
project = Project(root)
jobs = [job_of(project, path) for path in root.glob("*.py")]
errors = execute_all(jobs, Store(root / "out"), root, len(jobs), 60, print)
sys.exit("".join(map(str, errors)) or 0)
"""


def run_well(program: str, folder: Path) -> None:
    """Run a program in a folder, with the engine. It must end well."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(ENGINE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_chapters_whose_kernels_start_at_once_are_all_executed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f'"""# {name}"""\n\nprint("{name}")\n')
    run_well(TOGETHER, tmp_path)


PARSE_SLOWLY = """
import ast
import threading
import time

parse, busy = ast.parse, threading.Lock()


def slowly(*given, **settings):
    assert busy.acquire(blocking=False), "two threads parse at once"
    try:
        time.sleep(0.05)
        return parse(*given, **settings)
    finally:
        busy.release()


ast.parse = slowly
"""


@pytest.mark.slow
def test_no_two_threads_parse_at_once_which_python_3_11_cannot(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("value = 1\n")
    for name in ("one", "two"):
        text = f'"""# {name}\n\n{{value}}`value`\n"""\n\nfrom shared import value\n'
        (tmp_path / f"{name}.py").write_text(text)
    run_well(PARSE_SLOWLY + TOGETHER.replace("threading.settrace(call)", ""), tmp_path)


@pytest.mark.slow
def test_chapters_run_at_the_same_time(shelf: New) -> None:
    wait = '''
        """# One"""

        import time
        from pathlib import Path

        Path("MINE").touch()
        end = time.monotonic() + 300
        while not Path("OTHER").exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert Path("OTHER").exists()
    '''
    book = shelf(
        {
            "one.py": wait.replace("MINE", "a").replace("OTHER", "b"),
            "two.py": wait.replace("MINE", "b").replace("OTHER", "a"),
        }
    )
    assert book.well_built().executed() == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.nightly)]
)
def test_an_interrupted_build_resumes_and_leaves_no_kernel(
    shelf: New, how: signal.Signals
) -> None:
    book = shelf(
        {
            "one.py": '"""# One"""\n\nprint("one")\n',
            "two.py": '''
                """# Two"""

                import os
                import time
                from pathlib import Path

                Path("pid").write_text(str(os.getpid()))
                while Path("wait").exists():
                    time.sleep(0.05)
            ''',
            "wait": "",
        }
    )
    book.edit("conf.py", "annotated_workers = 2", "annotated_workers = 1")
    with (book.root / "log.txt").open("w") as log:
        build = subprocess.Popen(
            book.command(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment(),
            start_new_session=True,
            # A background process of a shell ignores SIGINT, and so do its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        kernel = int(until(lambda: read(book.root / "pid")))
        build.send_signal(how)
        assert build.wait(timeout=300) != 0
    until(lambda: not alive(kernel))
    (book.root / "wait").unlink()
    assert book.well_built().executed() == ["two"]


def until(ask: Callable[[], Any]) -> Any:
    """Asks until there is an answer."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


RECORD = Record(
    [[{"output_type": "stream", "name": "stdout", "text": "x"}]], 1.5, "2026-01-01", {}
)


def test_a_record_is_read_by_its_key_and_not_if_its_writer_was_killed(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    assert store.load("a/b", "key") is None
    store.save("a/b", "key", RECORD)
    assert store.load("a/b", "key") == RECORD
    assert store.load("a/b", "other") is None
    path = store.path("a/b", "key")
    saved = path.read_text()
    for length in range(len(saved)):
        path.write_text(saved[:length])
        assert store.load("a/b", "key") is None


def test_a_damaged_record_is_none_and_is_replaced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.path("a", "key")
    store.save("a", "key", RECORD)
    edited = path.read_text().replace("1.5", '"1"')
    wrong = ("", "{}", '{"outputs": {}}', '{"unknown": 1}', "null", "\0", "x\n{}")
    for text in (edited, *wrong):
        path.write_text(text)
        assert store.load("a", "key") is None, text
    path.unlink()
    (path / "inside").mkdir(parents=True)  # a folder in its place
    assert store.load("a", "key") is None
    store.save("a", "key", RECORD)
    assert store.load("a", "key") == RECORD


def said(record: Record) -> list[str]:
    return [output["text"] for outputs in record.outputs for output in outputs]


# Each prints what it prints under `python -m`.
AS_A_PROGRAM = {
    "event loops, arguments, exit": (
        """
        import argparse
        import asyncio
        import sys


        async def wait():
            await asyncio.sleep(0)
            return "result"


        def main():
            print(asyncio.run(wait()))
            print(asyncio.new_event_loop().run_until_complete(wait()))
            print(argparse.ArgumentParser().parse_args(), len(sys.argv))


        if __name__ == "__main__":
            sys.exit(main())
        """,
        "result\nresult\nNamespace() 1\n",
    ),
    "texts like a session of Python": (
        '''
        TEXT = """
        >>> f(1)
        2
        """
        print(repr(TEXT))
        print("""%time
        ... !ls
        """)
        ''',
        "'\\n>>> f(1)\\n2\\n'\n%time\n... !ls\n\n",
    ),
    "processes": (
        """
        import multiprocessing
        import os
        import sys


        def f(x):
            return x * x


        if __name__ == "__main__":
            with multiprocessing.Pool(2) as pool:
                print(pool.map(f, range(3)))
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(f, range(3)))
            pid = os.fork()
            if pid == 0:
                print("child")
                os._exit(3)
            print(os.waitpid(pid, 0)[1] >> 8)
            sys.exit(0)
        """,
        "[0, 1, 4]\n[0, 1, 4]\nchild\n3\n",
    ),
    "a child that returns": (
        """
        import os


        def f():
            if os.fork():
                os.wait()


        if __name__ == "__main__":
            f()
            print("twice")
        """,
        "twice\ntwice\n",
    ),
}


@pytest.mark.parametrize(
    "what",
    [
        "event loops, arguments, exit",
        "texts like a session of Python",
        "processes",
        pytest.param("a child that returns", marks=pytest.mark.nightly),
    ],
)
def test_a_chapter_runs_as_it_does_under_python_m(tmp_path: Path, what: str) -> None:
    text, printed = AS_A_PROGRAM[what]
    text = textwrap.dedent(text).lstrip()
    assert "".join(said(run_chapter(text, tmp_path))) == printed


TAKEN = """
'''
# One

It is {value}`x`.
'''
import io
import sys

print("shown")
x = 3
print = dict = str = list = None
sys.stdout = io.StringIO()
"""


def test_a_chapter_may_take_the_names_of_builtins_and_the_stream(
    tmp_path: Path,
) -> None:
    record = run_chapter(TAKEN, tmp_path)
    assert said(record) == ["shown\n"] and record.values == {"x": "3"}


def test_a_kernel_without_its_shell_is_an_error_before_the_time_is_over(
    tmp_path: Path,
) -> None:
    text = 'print("x")\nget_ipython().kernel.shell = None\nprint("y")\n'
    with pytest.raises(ChapterError, match=r"one\.py:3: the kernel did not answer"):
        run_chapter(text, tmp_path, 5)


TRACED = """
import traceback
import warnings


def f():
    # A comment.
    return 1 / 0


if __name__ == "__main__":
    print(f.__code__.co_filename)

    try:
        f()
    except ZeroDivisionError:
        print(traceback.format_exc())
    warnings.warn("a warning")
"""


def test_a_printed_traceback_names_the_module_and_its_lines(tmp_path: Path) -> None:
    record = run_chapter(TRACED, tmp_path)
    name, stack, warning = said(record)
    assert name == "one.py\n"
    assert re.findall('File "(.*)", line (\\d+)', stack) == [
        ("one.py", "15"),
        ("one.py", "8"),
    ]
    assert warning.startswith("one.py:18: UserWarning: a warning")


CLEARED = """
from IPython.display import clear_output

print("above")

if __name__ == "__main__":
    print("gone")
    clear_output()
    print("at once")

    # A step.
    print("gone")
    clear_output(wait=True)
    print("then")

    # A step.
    print("kept")
    clear_output(wait=True)
"""


def test_clear_output_clears_its_whole_cell(tmp_path: Path) -> None:
    record = run_chapter(CLEARED, tmp_path)
    assert said(record) == ["above\n", "at once\n", "then\n", "kept\n"]


READING = '''
"""# One"""

import os
from pathlib import Path

from lib.table import rows

if __name__ == "__main__":
    folder = Path("data")
    print(rows(), sorted(path.name for path in folder.glob("*.txt")))
    print(os.environ.get("ANNOTATED_TEST"), len(dict(os.environ)) > 3)
    print(Path("data/own.txt").write_text("x"), Path("data/own.txt").read_text())
    try:
        Path("data/later.txt").read_text()
    except OSError:
        print("not yet")
'''
TABLE = '''
import json
from pathlib import Path


def rows():
    """Rows."""
    return json.loads(Path(__file__).with_name("table.json").read_text())
'''


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Job, Record]:
    """A chapter that reads what it does not declare, after a run."""
    root = tmp_path_factory.mktemp("reads")
    for name in ("lib", "data"):
        (root / name).mkdir()
    (root / "lib/table.py").write_text(TABLE)
    (root / "lib/table.json").write_text("[1, 2]")
    (root / "data/a.txt").write_text("a")
    (root / "data/own.txt").write_text("x")
    (root / "data/unread.txt").write_text("x")
    (root / "one.py").write_text(READING.lstrip())
    job = job_of(Project(root), root / "one.py")
    return root, job, execute(job, root, 60, 1)


def test_what_a_chapter_reads_is_recorded_with_its_outputs(
    reads: tuple[Path, Job, Record],
) -> None:
    root, job, record = reads
    assert list(record.files) == ["data", "data/later.txt", "lib/table.json"]
    assert list(record.environment) == ["ANNOTATED_TEST"]
    assert is_current(record, job, Project(root))


@pytest.mark.parametrize(
    ("name", "text", "current"),
    [
        ("lib/table.json", "[1, 3]", False),
        ("lib/table.json", "[1, 2]", True),
        ("data/later.txt", "now", False),
        ("data/b.txt", "a new one in a folder that it lists", False),
        ("data/own.txt", "what it writes itself", True),
        ("data/unread.txt", "other", True),
    ],
)
def test_an_undeclared_file_that_changed_runs_the_chapter_again(
    reads: tuple[Path, Job, Record], name: str, text: str, current: bool
) -> None:
    root, job, record = reads
    path = root / name
    before = path.read_text() if path.exists() else None
    path.write_text(text)
    try:
        assert is_current(record, job, Project(root)) is current
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before)


def test_an_environment_variable_that_changed_runs_the_chapter_again(
    reads: tuple[Path, Job, Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, job, record = reads
    monkeypatch.setenv("ANNOTATED_TEST", "set")
    assert not is_current(record, job, Project(root))
