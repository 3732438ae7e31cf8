"""Places of a page that prose names in HTML, and links to pages by their addresses.

``<a id="here"></a>`` is a place, and ``[words](other.html#here)`` leads to it, as on a site that was made of
the same modules. A page has the address of its module, and ``index.html`` is that of ``__init__.py``. A link
that leads nowhere is text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from sphinx_annotated.page.build.state import state_of

OPENED = re.compile(r"""<a +(?:id|name)=["']([^"'<>]+)["'] *>""")
NO_PLACE = "The page %s has no place #%s. The link leads to its start."
LOGGER = logging.getLogger(__name__)


def linked(target: str, docname: str, known: Container[str]) -> str:
    """Return the page to which a link on another page leads by its address, or nothing."""
    path = posixpath.join(posixpath.dirname(docname), target)
    path = posixpath.normpath(path.removesuffix(".html"))
    folder = path.removesuffix("index") if path.endswith("/index") else f"{path}/"
    names = (path, f"{folder}index", f"{folder}__init__".removeprefix("./"))
    return next((name for name in names if name in known), "")


class Html(SphinxRole):
    """A tag of HTML in a notebook's cell of Markdown."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        return [nodes.raw("", self.text, format="html")], []


class Places(SphinxTransform):
    """Makes a place of each ``<a id="here"></a>``, and lets links find it and the chapter's definitions."""

    default_priority = 870  # before MyST looks for the places of links

    def apply(self, **kwargs: object) -> None:
        if state_of(self.env).page is None:
            return
        for raw in list(self.document.findall(nodes.raw)):
            match = OPENED.fullmatch(raw.astext())
            if match and raw.parent is not None:
                self._place(raw, match[1])
        for link in self.document.findall(nodes.reference):
            name = str(link.get("refuri", ""))[1:]
            if link.get("id_link") and name in self.document.ids:
                del link["refuri"], link["id_link"]
                link["refid"] = name

    def _place(self, raw: nodes.raw, name: str) -> None:
        """Give the name to what is below it, or else to this place, if no definition has it."""
        around, at = raw.parent, raw.parent.index(raw)
        closing = around[at + 1] if at + 1 < len(around) else None
        if isinstance(closing, nodes.raw) and closing.astext() == "</a>":
            around.remove(closing)
        place: nodes.Element = nodes.target()
        raw.replace_self(place)
        if isinstance(around, nodes.paragraph) and not around.astext().strip():
            below = around.next_node(descend=False, siblings=True, ascend=True)
            if isinstance(below, nodes.section) and len(around) == 1:
                around.parent.remove(around)
                place = below
        if name in self.document.ids:
            if isinstance(place, nodes.target):
                place.parent.remove(place)
            return
        place["ids"].append(name)
        self.document.ids[name] = place


class LinksByAddress(SphinxPostTransform):
    """Resolves links to pages by their addresses."""

    default_priority = 8  # before MyST

    def run(self, **kwargs: object) -> None:
        docname = self.env.docname
        if docname not in state_of(self.env).jobs:
            return
        for link in list(self.document.findall(addnodes.pending_xref)):
            if link["reftype"] != "myst" or link.get("refdomain"):
                continue
            target, _, name = link["reftarget"].partition("#")
            page = linked(target, docname, self.env.found_docs) if target else ""
            if page and ("/" in target or "." in target):
                name = self._known(page, name, link)
                builder, words = self.env.app.builder, link[0].deepcopy()
                new = make_refnode(builder, docname, page, name, words)
                link.replace_self(new)

    def _known(self, page: str, name: str, link: nodes.Element) -> str:
        """Return the name of a place if its page has it, or nothing with a warning."""
        if not name or name in self.env.get_doctree(page).ids:
            return name
        LOGGER.warning(
            *(NO_PLACE, page, name), location=link, type="annotated", subtype="link"
        )
        return ""


class DeadLinks(SphinxPostTransform):
    """Shows links that MyST did not find, and has warned of, as text."""

    default_priority = 12  # after MyST

    def run(self, **kwargs: object) -> None:
        if self.env.docname not in state_of(self.env).jobs:
            return
        known = {n for e in self.document.findall(nodes.Element) for n in e["ids"]}
        for link in list(self.document.findall(nodes.reference)):
            if "refid" in link and link["refid"] not in known:
                link.replace_self(link.children)
