"""Measured numbers in prose are computed, wherever they are shown."""

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx_annotated.read.expressions import ROLE, expressions, of_others
from sphinx_annotated.read.modules import Project
from write_notebooks import ROOT, chapters

PROJECT = Project(ROOT)

# -- no number of the measured part is typed -------------------------------------------------

PAGES = ("index", "descendants", "write", "individuals")
MEASURED = [
    *(path for path in chapters() if "experiments" in path.parts),
    *(path for path in chapters() if path.parent.name in ("primer", "since")),
    ROOT / "benchmarks" / "speed.py",
    *(ROOT / "book" / "pages" / f"{name}.md" for name in PAGES),
]
MEASURED.remove(
    ROOT / "experiments" / "chapters" / "paper.py"
)  # its numbers are the paper's

# A part of a text that has no numbers in prose: formulas, quotations, links, HTML, and examples.
NO_PROSE = re.compile(
    r"\$\$.*?\$\$|\$[^$]+\$|\[[^\]]*\]\([^)]*\)|\"[^\"]*\"|<[^>]+>"
    r"|^```+\{literalinclude.*?^```+$|(?<=\n\n)(?: {4}[^\n]*\n+)+",
    re.DOTALL | re.MULTILINE,
)
# Where a sentence ends: at a mark, an empty line, a directive, or an item of a list or a table.
END = re.compile(r"(?<=[.;:!?])\s+|\n\s*\n|\n(?=\s*(?:[-*|] |\d+\. |:))")
# Not those that belong to a name, such as T5, GPT-2 and Canon-2.
NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?:/\d+)?%?(?!\w)")

# 1. A source's number: the sentence names where it is from, and does not speak of ours.
SOURCE = re.compile(
    r"\bpaper|\bwalk-through|\breleased code\b|\b(?:Table|Figure|[Ss]ection)s? \d"
    r"|\bappendi(?:x|ces) A|\{cite:"
)
OURS = re.compile(r"\b(?:[Oo]urs?|[Hh]ere|[Tt]hese runs)\b")
PLACE = re.compile(
    r"(?:Tables?|Figures?|[Ss]ections?|appendi\w+)(?: [\d.]+,?(?: to| and)?)* $"
)
# 2. A setting: a whole number of what a run or a model is given, or the value of a setting.
THINGS = (
    "steps characters tokens subwords seeds heads blocks layers windows positions features channels "
    "threads cores neighbours operations bytes sequences "
    "programs individuals pairs branches groups numbers models letters levels"
)
OF_THINGS = re.compile(
    rf"(?: (?:to|and|or|instead of) [\d,]+)*(?: [a-z-]+)? (?:{'|'.join(THINGS.split())})\b|-"
)
SETTINGS = (
    "widths? size steps? seeds? positions? offset lengths? rates? norm kernels? vocabulary rows? lines? "
    "temperature versions? instructions? slope constants? starts feature wide"
)
OF_SETTING = re.compile(
    rf"\b(?:{'|'.join(SETTINGS.split())})(?: of| from| is| at| with)?(?: @)?"
    r"(?:,? [\d,.]+(?:,| to| and| or| instead of)?)*,? $"
)
# 3. A date, a level of confidence, one as the ratio of equal things, and a numbered item.
FIXED = re.compile(r"(?:19|20)\d\d,?|95%|1,?")
ITEM = re.compile(r"\s*(?::+\{container\} way )?")
# 4. What is exact, or another's, and of no kind above.
EXACT = {
    "family.py": ["sequences of 64"],
    "mdha.py": [
        "- With a learned table of positions, widths 5 and 7 end below 3",
        "Width 2",
    ],
    "method.py": [
        "within 1%",  # a test of the plans
        "SymPy 1.14.0",  # a version
        "a weight decay of 0.01",
        "1/3 as long",
        "A number like 1.91 ± 0.04",
        "25% of cases",  # two of the eight orders of three coins, two of 32
        "With five seeds it is 6%",
        "of 2 and",
        "only 5% of such tables",
        "20,000 simulated tables",
        "waits 30 seconds",
    ],
    "parts.py": ["12 times as wide"],
    "positions.py": ["4,800 steps instead of 1,200"],
    "transfer.py": ["a mask replaces 15%"],  # as in BERT
    "sizes.py": [
        "32 to 128 wide",
        "Counted in time, 32 is",
        "Widths above 64",
        "1/3 of the run",
        "differ by 17 in parameters",  # the paper's
        "are 128 wide",
    ],
    "baselines.py": ["a multiple of 64"],
    "primer.py": [
        "whose mean is 0, 1 or 10",
        "with a mean of 10",
        "reduces 1 to 0.76",  # the hyperbolic tangent
        "It is 0 at zero",
        "both layers by 2",
        "12 times as wide",
        "As 385 is rounded",
        "T5's 32,128",
    ],
    "primer_ez.py": [
        "512 with 8 heads",
        "less than 1%",
        "kernel (0, 0, 1)",
        "Those from 5 to 11",
    ],
    "variations.py": [
        "512 with 8 heads",
        "1.1 to 2.1 million steps",
        "cannot equal 128",
    ],
    "modern.py": ["4 GiB"],
    "rotary.py": [
        "0.24 for four",
        "0.09 for a width",
        "4.4 and 3.1",
        "pieces of 1, 5 and 14",
    ],
    "short_convolutions.py": [
        "| ",  # the table of widths
        "from 0 to 1",
        "the width, 4 instead of 3",
        "Those from 5 to 11",
    ],
    "speed.py": ["sequences of 64"],
    "index.md": ["in 36 instructions"],
    "descendants.md": [
        "up to 340 billion",
        "from 4 to 340 billion",
        "in Hyena 3",
        "1.1 and 3 billion",
    ],
    "write.md": ["Set the temperature to 0", "a tolerance of 0.1%"],
}


def notes_of(path: Path) -> Iterator[tuple[int, str]]:
    """The pieces of a chapter's or a page's prose, each with its first line."""
    if path.suffix == ".md":
        yield 1, path.read_text(encoding="utf-8")
        return
    for cell in PROJECT.at(path).chapter.cells:
        for row in cell.rows:
            yield from row.notes


def blank(match: re.Match[str]) -> str:
    """A mark instead of what is no prose, on as many lines. That of a source names one."""
    source = match[0].startswith("{cite") or "](http" in match[0]
    return (" {cite: " if source else " @ ") + "\n" * match[0].count("\n")


def typed(
    notes: Iterator[tuple[int, str]], exact: set[str]
) -> Iterator[tuple[int, str, str]]:
    """Each number of no allowed kind, with its line and sentence. Removes from `exact` what is used."""
    allowed = tuple(exact)
    for first, note in notes:
        text, start = NO_PROSE.sub(blank, ROLE.sub(blank, note)), 0
        for end in [*(match.end() for match in END.finditer(text)), len(text)]:
            prose, begin = text[start:end], first + text.count("\n", 0, start)
            start = end
            cited = SOURCE.search(prose) and not OURS.search(prose)
            for match in NUMBER.finditer(prose):
                before, after = (
                    re.sub(r"\s+", " ", part)
                    for part in (prose[: match.start()], prose[match.end() :])
                )
                whole = not re.search(r"[.%/]", match[0])
                sentence = " ".join(prose.split())
                if used := [each for each in allowed if each in sentence]:
                    exact.difference_update(used)
                elif not (
                    cited
                    or PLACE.search(before)
                    or FIXED.fullmatch(match[0])
                    or (whole and OF_THINGS.match(after))
                    or OF_SETTING.search(before)
                    or (ITEM.fullmatch(before) and after.startswith("."))
                ):
                    line = begin + prose.count("\n", 0, match.start())
                    yield line, match[0], sentence


def test_no_measured_number_is_typed() -> None:
    found, unused = [], []
    for path in MEASURED:
        exact = set(EXACT.get(path.name, []))
        name = path.relative_to(ROOT)
        found += [
            f"{name}:{line}: {number} in '{sentence}' Compute it: {{value}}`expression`, or with "
            "</chapter> another chapter's; if it is exact or a source's, say so in the sentence or in EXACT"
            for line, number, sentence in typed(notes_of(path), exact)
        ]
        unused += [f"{name} has no '{each}' any more" for each in sorted(exact)]
    assert not found, "\n".join(found)
    assert not unused, "\n".join(unused)


# -- the same, wherever the library speaks of our runs ---------------------------------------

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
