"""The directive ``{citation}``: BibTeX of the book, and of what it refers to, from `CITATION.cff`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FILE = "CITATION.cff"
KINDS = {"software": "software", "conference-paper": "inproceedings"}


def bibtex(entry: dict[str, Any]) -> str:
    """Return an entry of BibTeX for a work, as `CITATION.cff` describes it.

    Its key is the first author's family name, the year and the first word of the title; a group has no such
    name.
    """
    year = str(entry.get("year") or entry["date-released"])[:4]
    people = [_person(author) for author in entry["authors"]]
    first = entry["title"].split()[0].strip(":,")
    family = entry["authors"][0].get("family-names", "")
    fields = {
        "title": f"{{{entry['title']}}}",
        "author": " and ".join(people),
        "booktitle": entry.get("collection-title"),
        "year": year,
        "version": entry.get("version"),
        "url": entry["url"],
    }
    lines = [f"  {name} = {{{text}}}," for name, text in fields.items() if text]
    key = (f"{family}{year}{first}" if family else f"{first}{year}").lower()
    return "\n".join([f"@{KINDS[entry['type']]}{{{key},", *lines, "}"])


def _person(author: dict[str, str]) -> str:
    """Return a name as BibTeX writes it; a group's is one word."""
    if "name" in author:
        return f"{{{author['name']}}}"
    return f"{author['family-names']}, {author['given-names']}"


class Citation(SphinxDirective):
    """The entries: the book first."""

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir, FILE)
        self.env.note_dependency(str(path))
        about = yaml.safe_load(path.read_text("utf-8"))
        text = "\n\n".join(map(bibtex, [about, *about.get("references", [])]))
        return [nodes.literal_block(text, text, language="bibtex", classes=["wraps"])]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("citation", Citation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
