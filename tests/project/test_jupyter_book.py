"""`jupyter-book build .` stays a way to build the book."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from built_book import BUILT, PAGES, ROOT, built


def words(page: Path) -> str:
    """What a page says."""
    main = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").main
    assert main
    return " ".join(main.get_text(" ").split())


@pytest.mark.slow
@pytest.mark.nightly
def test_jupyter_book_by_itself_builds_the_same_pages(tmp_path: Path) -> None:
    built()
    shutil.copytree(ROOT / "_build" / ".executed", tmp_path / "_build" / ".executed")
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "."]
    done = subprocess.run(
        [*command, "--path-output", str(tmp_path), "-W", "--keep-going"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "0 chapters executed" in done.stdout
    for page in PAGES:
        site = tmp_path / "_build" / "html"
        assert words(site / f"{page}.html") == words(BUILT / f"{page}.html"), page
