"""Modules are found where projects keep them: beside ``conf.py``, or in ``src``."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_books import Shelf
from sphinx_annotated.read.modules import Project

FILES = {
    "index.md": "# Book\n\n```{toctree}\nsrc/lib/one\nsrc/lib/two\n```\n",
    "src/lib/__init__.py": "",
    "src/lib/one.py": '''
        """# One"""

        from lib.two import double

        from .two import HALF


        def quadruple(x: int) -> int:
            return double(double(x))


        if __name__ == "__main__":
            print(f"{quadruple(3)} of {__name__}, {HALF}")
    ''',
    "src/lib/two.py": '''
        """
        Two
        ===

        A summary.

        Underlined
        ==========

        More.
        """

        HALF = 0.5


        def double(x: int) -> int:
            return int(x / HALF)
    ''',
}


def test_a_book_of_modules_in_src_runs_links_and_copies_them(
    shelf: Callable[..., Shelf],
) -> None:
    built = shelf(FILES).well_built()
    page = built.page("src/lib/one")
    assert "12 of __main__, 0.5" in page
    assert 'href="two.html#double"' in page
    assert re.findall(r"<h1[^>]*>([^<]+)", built.page("src/lib/two")) == ["Two"]
    copies = built.root / "_build/html/_static/standalone/src.lib.one.js"
    text = copies.read_text(encoding="utf-8")
    assert "def double" in text and "import" not in text.partition("<b")[0]
    assert "WARNING" not in built.log


@pytest.mark.parametrize("name", ["src/__init__.py", "src/lib/three.py"])
def test_src_is_a_package_if_it_says_so_or_modules_import_from_it(
    write: Callable[[dict[str, str]], Path], name: str
) -> None:
    text = {"src/__init__.py": "", "src/lib/three.py": "from src.lib import two\n"}
    root = write({**FILES, name: text[name]})
    project = Project(root)
    assert project.find("lib.two") is None
    module = project.find("src.lib.two")
    assert module is not None and module.name == "src.lib.two"
