"""Formulas are rendered while the book is built, however busy the machine is."""

from collections.abc import Callable
from pathlib import Path

import pytest
import rendered_math
from small_books import Shelf
from sphinxcontrib import katex

FOLDER = Path(rendered_math.__file__).parent
LATE = 6
"""Seconds, one more than sphinxcontrib-katex waits by itself."""


@pytest.mark.slow
def test_a_node_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text(f'#!/bin/sh\nsleep {LATE}\nexec {rendered_math.NODE} "$@"\n')
    node.chmod(0o755)
    rendered_math.choose_node(node)
    server = katex.KaTeXServer.start()
    assert "<msup>" in server.render({"latex": "x^2"}, timeout=60)["html"]


def test_a_bar_stands_over_its_letter() -> None:
    # A rule for what lacks a class is one for pages on which that class is nowhere.
    sheet = rendered_math.styles('<span class="katex katex-accent accent-body">')
    assert ".katex .katex-accent .accent-body:not(.accent-full){width:0}" in sheet
    assert ".vlist-t" not in sheet


@pytest.mark.slow
def test_a_formula_that_katex_cannot_read_is_a_warning_with_its_line(
    shelf: Callable[..., Shelf],
) -> None:
    text = """
        r'''
        # One

        Right: $\\frac{1}{2}$.

        Wrong: $\\frac{1$.

        $$
        \\unknown{x}
        $$
        '''

        x = 1


        # In a note: $x^$.
        y = 2
    """.replace("\\\\", "\\")
    book = shelf({"one.py": text})
    book.edit(
        "conf.py", '["sphinx_annotated"]', '["sphinx_annotated", "rendered_math"]'
    )
    book.edit(
        "conf.py",
        "import sys\n",
        f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\n",
    )
    lenient = book.well_built()
    for line, tex in ((6, r"\frac{1"), (8, r"\unknown"), (16, "x^")):
        (message,) = [x for x in lenient.log.splitlines() if f"one.py:{line}: " in x]
        assert "KaTeX cannot read the formula" in message, message
        assert tex in message.replace("\\\\", "\\")
        assert "Correct it." in message
    assert "katex-error" not in lenient.page("one")
    assert lenient.log.count("KaTeX cannot read") == 3
    strict = book.build(
        "-W", "--keep-going"
    )  # the same warnings, though nothing changed
    assert strict.code != 0
    assert strict.log.count("KaTeX cannot read") == 3
    assert strict.executed() == []
