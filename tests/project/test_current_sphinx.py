"""The whole book on the current Sphinx, MyST-NB and docutils, from the same two configuration files."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from built_book import BUILT, PAGES, ROOT, built
from jupyter_book.config import get_final_config
from locked import folder_of

LOCK = ROOT / "engine" / "tests" / "current.lock"
# What Jupyter Book 1 holds back. All else is that of the book's own environment, so that the outputs of
# chapters are those that are recorded, and no cell runs.
HELD_BACK = (
    *("Sphinx", "docutils", "myst-nb", "myst-parser", "markdown-it-py"),
    *("mdit-py-plugins", "roman-numerals", "snowballstemmer", "sphinxcontrib-bibtex"),
)
OF_JUPYTER_BOOK = ("jupyter_book", "sphinx_comments")


def configuration() -> str:
    """`conf.py` with what Jupyter Book 1 reads of `_config.yml` and `_toc.yml`."""
    given = {"external_toc_path": "_toc.yml", "latex_individualpages": False}
    config, _ = get_final_config(
        user_yaml=ROOT / "_config.yml", cli_config=given, sourcedir=ROOT
    )
    config["extensions"] = [
        name for name in config["extensions"] if name not in OF_JUPYTER_BOOK
    ]
    config["annotated_outputs"] = "_build"
    # Newer versions look for them next to `conf.py`, which is elsewhere here.
    config["bibtex_bibfiles"] = [str(ROOT / each) for each in config["bibtex_bibfiles"]]
    path = [str(ROOT / name) for name in ("", "engine", "book", "book/extensions")]
    return (
        f"import json, sys\nsys.path[:0] = {path!r}\n"
        f"globals().update(json.loads({json.dumps(config)!r}))\n"
    )


def words(page: Path) -> str:
    """What a page says."""
    main = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").main
    assert main
    return " ".join(main.get_text(" ").split())


@pytest.mark.slow
@pytest.mark.nightly
def test_the_whole_book_builds_on_the_current_sphinx_and_says_the_same(
    tmp_path: Path,
) -> None:
    built()
    (tmp_path / "conf.py").write_text(configuration(), encoding="utf-8")
    site = tmp_path / "build" / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-b", "html"]
    command += ["-c", str(tmp_path), "-d", str(tmp_path / "doctrees"), str(ROOT)]
    packages = folder_of(LOCK, "sphinx-current", HELD_BACK)
    done = subprocess.run(
        [*command, str(site)],
        env={**os.environ, "PYTHONPATH": str(packages)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(r"Sphinx v(9|[1-9]\d)\.", done.stdout)
    assert "0 chapters executed" in done.stdout
    for page in PAGES:
        assert words(site / f"{page}.html") == words(BUILT / f"{page}.html"), page
