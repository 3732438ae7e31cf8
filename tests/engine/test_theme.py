"""The theme writes pages again only if a script or a style changed."""

from collections.abc import Callable

from builds import ENGINE
from small_books import Shelf

New = Callable[[dict[str, str]], Shelf]
CONF = f"""
import sys
sys.path.insert(0, {str(ENGINE)!r})
exclude_patterns = ["_build"]
extensions = ["myst_parser", "theme"]
html_theme = "primer"
"""


def test_pages_are_written_again_when_a_script_changed_and_only_then(
    shelf: New,
) -> None:
    book = shelf({"index.md": "# Book\n", "conf.py": CONF})
    site = book.root / "_build" / "html"

    def written() -> int:
        done = book.build("-W")
        assert done.code == 0, done.log
        return (site / "index.html").stat().st_mtime_ns

    first = written()
    assert written() == first
    script = site / "_static" / "primer.js"
    script.write_text(script.read_text("utf-8") + "\n", "utf-8")  # as of another day
    assert written() > first
