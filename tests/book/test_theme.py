"""The theme writes pages again only if a script or a style changed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import theme
from small_books import Shelf

BOOK = Path(__file__).resolve().parents[2] / "book"
New = Callable[[dict[str, str]], Shelf]
CONF = f"""
import sys
sys.path.insert(0, {str(BOOK)!r})
exclude_patterns = ["_build"]
extensions = ["myst_parser", "theme"]
html_theme = "primer"
"""
OWN_COPY = """
from pathlib import Path
import theme
theme.FOLDER = Path("copy").resolve()
"""


def test_pages_are_written_again_when_a_script_changed_and_only_then(
    shelf: New,
) -> None:
    book = shelf({"index.md": "# Book\n", "conf.py": CONF + OWN_COPY})
    shutil.copytree(theme.FOLDER, book.root / "copy")
    site = book.root / "_build" / "html"

    def written() -> int:
        book.well_built("-W")
        return (site / "index.html").stat().st_mtime_ns

    first = written()
    assert written() == first
    book.edit("copy/static/primer.js", "(", " (")
    assert written() > first
