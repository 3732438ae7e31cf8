"""The text of a bibliography's entries."""

from sphinx_annotated.take.bibtex import entries


def test_an_entry_of_a_bibliography_keeps_its_text() -> None:
    one = "@book{ada1843,\n  title = {{Notes}, or {\\'e}},\n}"
    two = "@misc{x:2,year=1}"
    text = f"% a comment\n{one}\n\n{two}\nafter"
    assert dict(entries(text)) == {"ada1843": one, "x:2": two}
