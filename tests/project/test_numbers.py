"""Measured numbers in prose are computed, wherever they are shown."""

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx_annotated.read.expressions import ROLE, expressions, of_others
from sphinx_annotated.read.modules import Project
from write_notebooks import ROOT, chapters

PROJECT = Project(ROOT)
# Their own numbers are measured. The chapter on the paper has the paper's, and that on the method has none.
MEASURED = [
    path
    for path in chapters()
    if "labml_primer" not in path.parts and path.stem not in ("paper", "method")
]
PAGES = sorted((ROOT / "book" / "pages").glob("*.md"))
NO_PROSE = re.compile(
    r"\$\$.*?\$\$|\$[^$]+\$|`[^`]+`|\"[^\"]*\"|[Ss]ections? [\d.]+(?: and [\d.]+)?",
    re.DOTALL,
)
SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n\s*\n|\n(?=\s*(?:[-*|] |:))")
OURS = re.compile(r"\b[Oo]urs?\b")
SOURCE = re.compile(r"\bpaper|\breleased code\b|\b(?:Table|[Ss]ection)s? \d|\{cite:")
TYPED = re.compile(r"(?<![\w.-])(?!95%)\d[\d,]*(?:\.\d+%?|%)(?!\w|\.\d)")


def notes_of(path: Path) -> Iterator[str]:
    """Yield the prose of a chapter or a page."""
    if path.suffix == ".md":
        yield path.read_text(encoding="utf-8")
    else:
        cells = PROJECT.at(path).chapter.cells
        yield from (
            note for cell in cells for row in cell.rows for _, note in row.notes
        )


def of_ours(path: Path) -> Iterator[str]:
    """Yield each sentence of our measurements, from where it speaks of them, without what is computed."""
    for note in notes_of(path):
        for sentence in SENTENCE.split(note):
            cited = SOURCE.search(sentence)
            prose = NO_PROSE.sub(" ", ROLE.sub(" ", sentence))
            ours = OURS.search(prose)
            if path in MEASURED and not cited:
                yield " ".join(prose.split())
            elif ours:
                yield " ".join(prose[ours.start() :].split())


def test_no_decimal_or_percentage_of_our_measurements_is_typed() -> None:
    said = [(path, each) for path in [*chapters(), *PAGES] for each in of_ours(path)]
    assert len(said) > 100
    typed = [
        f"{path.relative_to(ROOT)}: {found[0]} in '{sentence}' Compute it: {{value}}`expression`, or "
        "with </chapter> another chapter's; if it is a source's, name it in the sentence."
        for path, sentence in said
        if (found := TYPED.search(sentence))
    ]
    assert not typed, "\n".join(typed)


def test_a_value_of_another_chapter_is_one_that_it_shows() -> None:
    asked = [
        (path, *other)
        for path in chapters()
        for other in of_others(PROJECT.at(path).chapter).values()
    ]
    assert asked
    for path, docname, expression in asked:
        other = PROJECT.at(ROOT / f"{docname}.py")
        assert expression in expressions(other.chapter, docname), path
