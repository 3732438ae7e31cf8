"""The welcome page links the book's downloads that exist."""

import re
from collections.abc import Callable
from pathlib import Path

from small_books import Shelf

BOOK = Path(__file__).resolve().parents[2] / "book"
New = Callable[[dict[str, str]], Shelf]


def test_the_welcome_page_links_existing_downloads(shelf: New) -> None:
    book = shelf({"index.md": "# Book\n", "conf.py": ""})
    settings = (
        'extensions = ["myst_parser", "theme", "offline_links"]\nhtml_theme = "primer"'
    )
    paths = [str(BOOK), str(BOOK / "extensions")]
    engine = f"import sys\nsys.path[:0] = {paths}\n"
    book.write({"conf.py": f'{engine}exclude_patterns = ["_build"]\n{settings}\n'})
    folder = book.root / "_build" / "html" / "downloads"

    def linked() -> list[str]:
        done = book.well_built("-W")
        return re.findall(r'href="(downloads/[^"]+)"', done.page("index"))

    assert linked() == []
    folder.mkdir()
    for name in ("book.pdf", "book.zip", "book.epub", "book.part"):
        (folder / name).write_bytes(b"some")
    kinds = ("epub", "pdf", "zip")
    assert linked() == [f"downloads/book.{kind}" for kind in kinds]
    (folder / "book.zip").unlink()
    assert linked() == ["downloads/book.epub", "downloads/book.pdf"]
