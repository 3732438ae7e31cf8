"""Every chapter has one title, whatever its module starts with."""

import pytest
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.parse import parse
from sphinx_annotated.read.titles import titled


def made(text: str) -> Chapter:
    return titled(parse(text), "the_module")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"""# A title\n\nText."""\n', "A title"),
        ('"""## A title\n\nText."""\n', "A title"),
        ('"""\n(label)=\n## A title\n"""\n', "A title"),
        ("# # A title\n#\n# Text.\nx = 1\n", "A title"),
        ('"""\nA title\n=======\n\nText."""\n', "A title"),
        ('"""\nA title\n-------\n\nText."""\n', "A title"),
        ('"""\n=======\nA title\n=======\n\nText."""\n', "A title"),
        ('"""\nA title\n~~~~~~~\n\nText."""\n', "A title"),
        ('"""\n---\ntitle: "A title"\nauthor: me\n---\n\nText."""\n', "A title"),
        ('"""\n---\ntitle: Another\n---\n\n# A title\n"""\n', "A title"),
        ('"""A first line.\n\nText."""\n', "A first line"),
        ('"""A first line."""\n', "A first line"),
        ('"""A first line that goes on\nin a second one."""\n', "the_module"),
        ('"""One sentence. And another."""\n', "the_module"),
        ('"""- A list."""\n', "the_module"),
        ('""""""\n', "the_module"),
        ("# A note.\nx = 1\n", "the_module"),
        ("x = 1\n", "the_module"),
        ("", "the_module"),
    ],
)
def test_a_chapter_has_a_title_however_its_module_starts(text: str, title: str) -> None:
    chapter = made(text)
    assert chapter.title == title
    assert chapter.opening and chapter.opening.prose.count("# ") == 1
    if "Text." in text:
        prose = "\n".join(row.prose for cell in chapter.cells for row in cell.rows)
        assert prose.count("Text.") == 1
        assert not set("=~") & set(prose)


def test_text_after_a_title_keeps_its_line() -> None:
    for text in (
        '"""\n---\ntitle: T\n---\n\nText."""\n',
        '"""\n=====\nTitle\n=====\n\nText."""\n',
        '"""A title.\n\nText."""\n',
        '"""First line\nand second.\n\nText."""\n',
    ):
        opening = made(text).opening
        assert opening
        before = opening.placed[: opening.placed.index("Text.")]
        line = text[: text.index("Text.")].count("\n") + 1
        assert opening.line + before.count("\n") == line, text


def test_further_headings_of_the_first_level_are_sections() -> None:
    chapter = made(
        '"""# One\n\nText.\n\n# Two\n\n```python\n# no heading\n```\n"""\n'
        "x = 1\n\n\n# # Three\n#\n# Text.\ny = 2\n"
    )
    assert chapter.title == "One"
    notes = [row.prose for cell in chapter.cells for row in cell.rows]
    assert "\n## Two\n" in notes[0] and "\n# no heading\n" in notes[0]
    assert notes[-1].startswith("## Three")
