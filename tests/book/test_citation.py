"""What the welcome page says of citing is what CITATION.cff and the references say."""

import re
from pathlib import Path

import yaml
from citation import bibtex
from pybtex.database import Entry, parse_file, parse_string

ROOT = Path(__file__).resolve().parents[2]
ABOUT = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
REFERENCES = ROOT / "book" / "pages" / "references.bib"


def plain(text: str) -> str:
    """The words of a field, without its accents and braces."""
    return re.sub(r"[^A-Za-z0-9 ]", "", text.replace("ń", "n"))


def of(entry: Entry) -> tuple[str, list[str], str, str]:
    people = [plain(str(person)) for person in entry.persons["author"]]
    fields = entry.fields
    return plain(fields["title"]), people, fields["year"], fields["url"]


def test_the_paper_is_cited_as_in_the_references() -> None:
    (paper,) = ABOUT["references"]
    entries = parse_string(bibtex(paper), "bibtex").entries
    ((key, entry),) = entries.items()
    listed = parse_file(str(REFERENCES)).entries[key]
    assert entry.type == listed.type
    assert of(entry) == of(listed)


def test_the_book_is_cited_with_its_version_and_address() -> None:
    ((_key, entry),) = parse_string(bibtex(ABOUT), "bibtex").entries.items()
    assert plain(entry.fields["title"]) == plain(ABOUT["title"])
    assert entry.fields["version"] == ABOUT["version"]
    assert entry.fields["url"] == ABOUT["url"]
    assert entry.fields["year"] == str(ABOUT["date-released"].year)
    assert [plain(str(person)) for person in entry.persons["author"]] == [
        plain(author["name"]) for author in ABOUT["authors"]
    ]
