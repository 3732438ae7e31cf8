"""A book builds where Python has neither forks, nor process groups, nor the modules of POSIX."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from builds import ENGINE
from small_books import Shelf, plain, run

LACKING = """
import os, signal, sys

for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "getpgid", "getuid", "killpg", "register_at_fork", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
if "ipykernel_launcher" not in sys.orig_argv:  # it takes this one where Python says Linux
    del signal.SIGKILL
"""
FILES = {
    "one.py": """
        '''
        # One
        '''

        from lib.value import value

        print("printed", value)
    """,
    "lib/value.py": "value = 3\n",
}


@pytest.mark.slow
@pytest.mark.nightly
def test_a_book_builds_without_what_windows_lacks(
    shelf: Callable[[dict[str, str]], Shelf],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(LACKING)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ENGINE}")
    book, log = shelf(FILES), tmp_path / "log.txt"
    code = run(book.command("-W", "--keep-going"), log)
    assert code == 0, plain(log)
    page = (book.root / "_build/html/one.html").read_text(encoding="utf-8")
    assert "printed 3" in page
