"""The glossary: links by letter, and the definitions that each link to a term shows and the search finds."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import combining, normalize

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.locale import _
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join
from sphinx.util.logging import getLogger

LOGGER = getLogger(__name__)
IDEOGRAPHS = "㐀"  # the first of the characters whose reading is not seen
LINK = _("Link to this term")  # said by Sphinx, and missing in its own translations


@dataclass(frozen=True)
class Entry:
    """A term with its other names, its definition, and the link to what explains it."""

    docname: str
    anchors: dict[str, str]  # name -> anchor, the term's own name first
    text: str
    link: tuple[str, str] | None  # kind and target


class Glossaries(Domain):
    """The entries of each page's glossary. Sphinx pickles them with its environment."""

    name = "glossaries"
    label = "Glossaries"
    initial_data = {"entries": {}, "shown": None}  # noqa: RUF012

    @property
    def entries(self) -> dict[str, list[Entry]]:
        """The entries of each page that has any."""
        found: dict[str, list[Entry]] = self.data["entries"]
        return found

    @property
    def definitions(self) -> dict[str, str]:
        """The definition at each anchor."""
        every = [entry for entries in self.entries.values() for entry in entries]
        return {
            anchor: entry.text for entry in every for anchor in entry.anchors.values()
        }

    def process_doc(
        self, env: BuildEnvironment, docname: str, document: nodes.document
    ) -> None:
        """Keep the entries of a page that was read."""
        found = [
            _entry(docname, item)
            for glossary in document.findall(addnodes.glossary)
            for item in glossary.findall(nodes.definition_list_item)
        ]
        if found:
            self.entries[docname] = found

    def clear_doc(self, docname: str) -> None:
        """Forget the entries of a page that will be read again or is gone."""
        self.entries.pop(docname, None)

    def merge_domaindata(
        self, docnames: Iterable[str], otherdata: dict[str, Any]
    ) -> None:
        """Take over the entries of pages that another process has read."""
        read: dict[str, list[Entry]] = otherdata["entries"]
        self.entries.update({name: read[name] for name in docnames if name in read})

    def changed(self) -> bool:
        """Return whether the definitions are others than in the last build."""
        before, self.data["shown"] = self.data["shown"], self.definitions
        return before not in (None, self.definitions)


def glossaries(env: BuildEnvironment) -> Glossaries:
    """Return the glossaries of a book."""
    domain = env.get_domain("glossaries")
    assert isinstance(domain, Glossaries)
    return domain


def entries(env: BuildEnvironment) -> list[Entry]:
    """Return the entries of all glossaries, page by page."""
    found = glossaries(env).entries
    return [entry for docname in sorted(found) for entry in found[docname]]


def explained(env: BuildEnvironment, entry: Entry) -> tuple[str, str] | None:
    """Return the page and the anchor that an entry's link leads to, if there is such a place."""
    if entry.link is None:
        return None
    kind, target = entry.link
    if kind == "doc":
        return docname_join(entry.docname, target), ""
    found = env.get_domain("py").objects.get(target)  # type: ignore[attr-defined]
    return found and (found.docname, found.node_id)


def _entry(docname: str, item: nodes.Element) -> Entry:
    anchors = {term.astext(): term["ids"][0] for term in item.findall(nodes.term)}
    paragraphs = list(item.findall(nodes.paragraph))
    text = " ".join(paragraphs[0].astext().split())
    links = paragraphs[-1].findall(addnodes.pending_xref)
    link = next((link for link in links if link["refdomain"] in ("py", "std")), None)
    place = (link["reftype"], link["reftarget"]) if link else None
    return Entry(docname, anchors, text, place)


def collect(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """If a definition has changed, write all pages again: links hold it."""
    return sorted(env.found_docs) if glossaries(env).changed() else []


class SortByReading(SphinxTransform):
    """Sorts a translated glossary by how its terms are read, Latin letters first.

    Sphinx sorts by the first character, of which Chinese and Japanese have thousands: `glossary_readings` has
    how these are read.
    """

    default_priority = 510  # after Sphinx has sorted by the translation

    def apply(self, **kwargs: Any) -> None:
        if self.config.language == "en":
            return
        for glossary in self.document.findall(addnodes.glossary):
            if glossary["sorted"]:
                items = glossary[0]
                items[:] = sorted(items, key=self._read)  # type: ignore[arg-type,index]

    def _read(self, item: nodes.Element) -> str:
        term = next(iter(item.findall(nodes.term)))
        term["reading"] = found = reading(_name(term), self.config.glossary_readings)
        if found >= IDEOGRAPHS:
            text = f"no reading of {_name(term)}, by which to sort it. Add it to glossary_readings."
            LOGGER.warning(text, location=term)
        return found


def _name(term: nodes.Element) -> str:
    """Return a term without its English in brackets."""
    return term.astext().partition("（")[0]


def reading(name: str, readings: Mapping[str, str]) -> str:
    """Return what a name is sorted by: its reading, without accents, in small letters and hiragana."""
    found = max(
        (word for word in readings if name.startswith(word)), key=len, default=""
    )
    text = (readings.get(found, "") + name.removeprefix(found)).lower()
    plain = [each for each in normalize("NFKD", text) if not combining(each)]
    return "".join(_kana(each) for each in plain if each != "ー")


def _kana(letter: str) -> str:
    """Return a kana as the hiragana of full size, and any other letter as it is."""
    said = unicodedata.name(letter, "")
    if not said.startswith(("KATAKANA LETTER", "HIRAGANA LETTER")):
        return letter
    return unicodedata.lookup(
        said.replace("KATAKANA", "HIRAGANA").replace("SMALL ", "")
    )


def initial(name: str, letters: str) -> str:
    """Return what a term is found under: the last of these letters before it, or its own first one."""
    first = name[0].upper()
    return max((letter for letter in letters if letter <= first), default=first)


class AddLetters(SphinxPostTransform):
    """HTML only: puts links to the first term of each letter before a glossary that is sorted."""

    default_priority = 20
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for glossary in list(self.document.findall(addnodes.glossary)):
            if not glossary.get("sorted"):
                continue
            first: dict[str, str] = {}
            for item in glossary.findall(nodes.definition_list_item):
                term = next(iter(item.findall(nodes.term)))
                letter = initial(
                    term.get("reading") or term.astext(), self.config.glossary_letters
                )
                first.setdefault(letter, term["ids"][0])
            bar = nodes.paragraph(classes=["letters"])
            for letter, anchor in first.items():
                bar += nodes.reference("", letter, refid=anchor, internal=True)
            glossary.parent.insert(glossary.parent.index(glossary), bar)


class ShowDefinitions(SphinxPostTransform):
    """HTML only: gives each link to a term the definition as its title."""

    default_priority = 20  # after Sphinx has resolved the references
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        definitions = glossaries(self.env).definitions
        for link in self.document.findall(nodes.reference):
            if any("std-term" in n["classes"] for n in link.findall(nodes.Element)):
                anchor = link.get("refid") or link["refuri"].partition("#")[2]
                link["reftitle"] = definitions[anchor]


def setup(app: Sphinx) -> dict[str, Any]:
    # Of a translated glossary: how words are read, by which it is sorted, and to which letters it has links.
    app.add_config_value("glossary_readings", {}, "env", types=[dict])
    app.add_config_value("glossary_letters", "", "env", types=[str])
    app.add_domain(Glossaries)
    app.add_transform(SortByReading)
    app.add_post_transform(AddLetters)
    app.add_post_transform(ShowDefinitions)
    app.connect("env-updated", collect)
    return {"env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
