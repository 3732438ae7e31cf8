"""Formulas are rendered while the book is built, however busy the machine is."""

from pathlib import Path

import pytest
import rendered_math
from sphinxcontrib import katex

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
    sheet = rendered_math.styles('<span class="katex accent accent-body">')
    assert ".katex .accent .accent-body:not(.accent-full){width:0}" in sheet
    assert ".vlist-t" not in sheet
