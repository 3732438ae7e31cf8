"""The glossary's definitions: every link to a term shows one, and the site's search finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join


@dataclass(frozen=True)
class Entry:
    """A term with its other names, its definition, and the place that explains it."""

    docname: str
    anchors: dict[str, str]  # name -> anchor, the term's own name first
    text: str
    explained: tuple[str, str] | None  # docname and anchor


def entries(env: BuildEnvironment) -> list[Entry]:
    """Return the entries of all glossaries."""
    terms = env.get_domain("std").get_objects()
    docnames = sorted({docname for _, _, kind, docname, *_ in terms if kind == "term"})
    return [
        _entry(env, docname, item)
        for docname in docnames
        for glossary in env.get_doctree(docname).findall(addnodes.glossary)
        for item in glossary.findall(nodes.definition_list_item)
    ]


def _entry(env: BuildEnvironment, docname: str, item: nodes.Element) -> Entry:
    anchors = {term.astext(): term["ids"][0] for term in item.findall(nodes.term)}
    paragraphs = list(item.findall(nodes.paragraph))
    text = " ".join(paragraphs[0].astext().split())
    links = paragraphs[-1].findall(addnodes.pending_xref)
    link = next((link for link in links if link["refdomain"] in ("py", "std")), None)
    return Entry(docname, anchors, text, link and _target(env, link))


def _target(
    env: BuildEnvironment, link: addnodes.pending_xref
) -> tuple[str, str] | None:
    """Return the page and the anchor that a link will lead to, if there is such a place."""
    if link["reftype"] == "doc":
        return docname_join(link["refdoc"], link["reftarget"]), ""
    found = env.get_domain("py").objects.get(link["reftarget"])  # type: ignore[attr-defined]
    return found and (found.docname, found.node_id)


def collect(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Keep the definitions for the links. If one has changed, write all pages again."""
    before = getattr(env, "definitions", None)
    now = {
        anchor: entry.text
        for entry in entries(env)
        for anchor in entry.anchors.values()
    }
    env.definitions = now  # type: ignore[attr-defined]
    return [] if before in (None, now) else sorted(env.found_docs)


class ShowDefinitions(SphinxPostTransform):
    """HTML only: gives each link to a term the definition as its title."""

    default_priority = 20  # after Sphinx has resolved the references
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        definitions: dict[str, str] = getattr(self.env, "definitions", {})
        for link in self.document.findall(nodes.reference):
            if any("std-term" in n["classes"] for n in link.findall(nodes.Element)):
                anchor = link.get("refid") or link["refuri"].partition("#")[2]
                link["reftitle"] = definitions[anchor]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_post_transform(ShowDefinitions)
    app.connect("env-updated", collect)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
