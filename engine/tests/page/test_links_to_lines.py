"""Links to lines: each names a line by its place in a definition."""

from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.parse import parse

MODULE = '''
"""# T"""

import os


@property
def first():
    return 1


class Second:
    x = 1

    def method(self):
        """Note."""
        # Why.
        return 2

    y = 2


def first():
    return 3
'''


def anchors(chapter: Chapter) -> dict[str, str]:
    """Text of a line -> what a link to it names."""
    shown = (b for c in chapter.cells for r in c.rows for b in r.blocks)
    lines = [n for block in shown for n in block.lines]
    return {chapter.lines[n - 1].strip(): chapter.anchor(n) for n in lines}


def test_a_line_has_an_anchor_in_its_innermost_definition() -> None:
    found = anchors(parse(MODULE))
    assert found["@property"] == "first:1"
    assert found["return 1"] == "first:3"
    assert found["x = 1"] == "Second:2"
    assert found["return 2"] == "Second.method:4"
    assert found["y = 2"] == "Second:9"


def test_other_lines_have_their_number_as_anchor() -> None:
    found = anchors(parse(MODULE))
    assert found["import os"] == "L4"
    assert found["return 3"] == f"L{MODULE.split(chr(10)).index('    return 3') + 1}"


def test_links_to_lines_stay_valid_when_lines_are_inserted_above() -> None:
    before = anchors(parse(MODULE))
    above = MODULE.replace("import os", "import os\n\n# A note.\nLIMIT = 3\n")
    after = anchors(
        parse(above.replace("    x = 1", "    x = 1\n    # More.\n    z = 1"))
    )
    for line in ("return 1", "x = 1", "return 2"):
        assert after[line] == before[line]
