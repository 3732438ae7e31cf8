"""A reader who follows the contents meets no term of the glossary unexplained.

A term that a later chapter explains has, at its first use in a chapter, a link to the glossary, which shows
its definition, or is in italics, because it is explained in place.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from sphinx_annotated.read.parse import parse

ROOT = Path(__file__).resolve().parents[2]
ENTRY = re.compile(r"((?:^\S.*\n)+)((?:^  .*\n|^\n)+)", re.MULTILINE)
PLACE = re.compile(r"\{(?:doc|py:\w+)\}`~?/?([\w./]+)`")
# Words that are also used in their everyday sense, or in that of programming.
EVERYDAY = {"block", "head", "key", "kernel", "population", "primitive", "program"}
EVERYDAY |= {
    "query",
    "sampling",
    "significant",
    "value",
    "hurdle",
    "lineage",
    "smear",
    "weights",
}
# What is no prose: code, formulas, citations, links to pages and definitions. Links to terms are kept.
APART = re.compile(
    r"(\{term\}`[^`]*`)|\{[\w:]+\}`[^`]*`|```.*?```|``.*?``|`[^`]*`|\$\$.*?\$\$|\$[^$\n]+?\$"
    r"|^:{3,}\{(?:picture|variant).*$|^:\w+:.*$",
    re.DOTALL | re.MULTILINE,
)
LINK = re.compile(r"\{term\}`([^`<]*?)\s*(?:<([^`>]*)>)?`", re.DOTALL)
ITALIC = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")


def contents() -> list[tuple[int, str]]:
    """Each page of the book, with the number of its part."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    return [
        (number, chapter["file"])
        for number, part in enumerate(parts)
        for chapter in part["chapters"]
    ]


def glossary() -> Iterator[tuple[list[str], int]]:
    """The names of each term, and the place in the contents of the page that explains it."""
    order = [page for _, page in contents()]
    text = (ROOT / "book/pages/glossary.md").read_text(encoding="utf-8")
    text = text.partition(":sorted:\n\n")[2].rpartition("```")[0]
    for names, body in ENTRY.findall(text):
        target = PLACE.findall(body)[-1].replace(".", "/")
        while target not in order:
            target = target.rpartition("/")[0]
        yield names.strip().split("\n"), order.index(target)


def pattern(name: str) -> re.Pattern[str]:
    """Finds a name in prose, also in the plural. Capitals in a name must be in the prose."""
    words = r"\s+".join(map(re.escape, name.split()))
    same = re.IGNORECASE if name == name.lower() else 0
    return re.compile(rf"(?<![\w-]){words}(?:e?s)?(?![\w-])", same)


def first_use(names: list[str], prose: str) -> tuple[int, int]:
    """Where prose first uses a term, and where it first links or explains it; its end if it never does."""
    end = len(prose)
    links = [
        match
        for match in LINK.finditer(prose)
        if " ".join((match[2] or match[1]).split()).lower() in map(str.lower, names)
    ]
    links += [
        match
        for match in ITALIC.finditer(prose)
        if any(pattern(name).search(match[1]) for name in names)
    ]
    shown = min((match.start() for match in links), default=end)
    uses = [
        match.start()
        for name in names
        if name not in EVERYDAY
        for match in pattern(name).finditer(prose)
    ]
    return min(uses, default=end), shown


def prose_of(text: str) -> str:
    """The notes of a chapter, in their order."""
    rows = [row for cell in parse(text).cells for row in cell.rows]
    return "\n\n".join(row.prose for row in rows)


def unexplained(prose: str, at: int, terms: list[tuple[list[str], int]]) -> list[str]:
    """The terms that a page, at a place in the contents, uses before they are explained."""
    prose = APART.sub(r"\1 ", prose)
    found = []
    for names, home in terms:
        used, shown = first_use(names, prose)
        if home > at and used < shown:
            around = " ".join(prose[max(0, used - 30) : used + 40].split())
            found.append(f"{names[0]} (…{around}…)")
    return found


FIRST_PART = [page for part, page in contents() if part == 0]


@pytest.mark.parametrize("page", FIRST_PART)
def test_a_term_is_linked_or_explained_where_a_reader_first_meets_it(page: str) -> None:
    order = [each for _, each in contents()]
    prose = prose_of((ROOT / f"{page}.py").read_text(encoding="utf-8"))
    assert unexplained(prose, order.index(page), list(glossary())) == []


def test_the_welcome_page_explains_or_links_its_terms_before_the_way_through() -> None:
    text = (ROOT / "book/pages/index.md").read_text(encoding="utf-8")
    first, _, _ = text.partition("## The way through")
    _, _, words = first.partition("\n")  # after the title
    assert unexplained(words, -1, list(glossary())) == []


def test_a_term_that_comes_too_early_is_reported() -> None:
    terms = [(["layer norm"], 5), (["GELU"], 7), (["token"], 0)]
    text = '"""\n# One\n\nEach token has a layer norm. A {term}`layer norm` or a *GELU*.\n"""'
    (found,) = unexplained(prose_of(text), 3, terms)
    assert found.startswith("layer norm (…")
    linked = "It has {term}`norms <layer norm>`, then layer norms. `GELU`."
    assert unexplained(linked, 3, terms) == []
    assert unexplained(prose_of(text), 6, terms) == []
