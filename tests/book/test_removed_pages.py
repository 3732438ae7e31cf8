"""The site's search forgets a page that was renamed."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import search_index
from small_books import Shelf

New = Callable[[dict[str, str]], Shelf]


@pytest.mark.slow
def test_the_search_forgets_a_page_that_was_renamed(shelf: New) -> None:
    index = "# B\n\n```{toctree}\none\npkg/two\n```\n"
    files = {"one.py": '"""# One"""\n', "pkg/two.py": '"""# Two"""\n\nx = 1\n'}
    book = shelf({"index.md": index, **files})
    folder = str(Path(search_index.__file__).parent)
    book.edit(
        "conf.py", "import sys\n", f"import sys\nsys.path.insert(0, {folder!r})\n"
    )
    extensions = '["sphinx_annotated", "glossary", "search_index"]'
    book.edit("conf.py", '["sphinx_annotated"]', extensions)
    book.well_built()
    (book.root / "pkg/two.py").rename(book.root / "pkg/three.py")
    book.edit("index.md", "pkg/two", "pkg/three")
    book.well_built()
    site = book.root / "_build/html"
    assert "pkg/two" not in (site / "_pagefind/places.json").read_text(encoding="utf-8")
    indexed = [
        gzip.decompress(path.read_bytes())
        for path in (site / "_pagefind/fragment").glob("*.pf_fragment")
    ]
    assert any(b"/pkg/three.html" in page for page in indexed)
    assert not any(b"/pkg/two.html" in page for page in indexed)
