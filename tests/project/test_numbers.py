"""Measured numbers in prose are computed, wherever they are shown."""

import re
from pathlib import Path

from annotated.read.expressions import ROLE, expressions, of_others
from annotated.read.modules import Project
from write_notebooks import ROOT, chapters

PROJECT = Project(ROOT)
OURS = re.compile(r"\b[Oo]ur (own |small |longer |short )*runs\b")
# Of a measured number. Exact ones, and those of a source, may be typed.
TYPED = re.compile(r"\d%|\d\.\d")


def sentences_of_ours(chapter: Path) -> list[str]:
    """The sentences of a chapter's prose from where they speak of our runs, without computed numbers."""
    cells = PROJECT.at(chapter).chapter.cells
    notes = [note for cell in cells for row in cell.rows for _, note in row.notes]
    prose = (ROLE.sub(" ", " ".join(note.split())) for note in notes)
    sentences = [each for text in prose for each in re.split(r"(?<=[.:;]) ", text)]
    found = [(each, OURS.search(each)) for each in sentences]
    return [each[match.start() :].replace("95%", "") for each, match in found if match]


def test_numbers_of_ours_in_the_library_are_those_of_the_records() -> None:
    library = [path for path in chapters() if "labml_primer" in path.parts]
    said = {path: sentences_of_ours(path) for path in library}
    assert sum(map(len, said.values())) > 5
    typed = [
        f"{path}: {sentence} Show what the chapter that measures it shows: "
        "{value}`expression </chapter>`."
        for path, sentences in said.items()
        for sentence in sentences
        if TYPED.search(sentence)
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
